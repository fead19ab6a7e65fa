"""Writes events.tfevents with TensorBoard's own writer: pip install tensorboard, then run in this folder."""

from tensorboard.compat.proto.event_pb2 import Event
from tensorboard.compat.proto.summary_pb2 import Summary
from tensorboard.summary.writer.record_writer import RecordWriter

START = 1_700_000_000
EPOCHS = [
    (0, 12.5, {"loss/cross-entropy": 2.25, "accuracy/test": 0.5, "run/learning_rate": 0.02, "run/epoch_seconds": 12.5}),
    (300, 23.5, {"loss/cross-entropy": float("nan"), "loss/größe": -1e-3, "labels/separation_auc": 0.875,
                 "run/learning_rate": 0.002, "run/epoch_seconds": 11.0}),
]

with open("events.tfevents", "wb") as file:
    writer = RecordWriter(file)
    writer.write(Event(wall_time=START, file_version="brain.Event:2").SerializeToString())
    for step, seconds, scalars in EPOCHS:
        values = [Summary.Value(tag=tag, simple_value=value) for tag, value in scalars.items()]
        writer.write(Event(wall_time=START + seconds, step=step, summary=Summary(value=values)).SerializeToString())
    writer.flush()
