#!/usr/bin/env python3
"""Time sentence embeddings in PyTorch (CPU) in its forms, in turns with ours.

The network is MiniLM (`negscale data get minilm`); the work is a file with a sentence on each line, tokenised and embedded in batches in the order of the
file. PyTorch's side is the `transformers` model with mean pooling, as Sentence Transformers runs it: a batch is sorted into pieces of --piece
sentences by length and filled up. Forms: f32, bf16 (autocast); each also compiled with --compile (which needs a C++ compiler).

Usage (needs: pip install torch transformers)
  cargo build --release -p negscale-encoders --example sentences
  python sentences.py FOLDER FILE                      all in turns (ours in f32, in bf16, each form, ours, ...), medians
  python sentences.py FOLDER FILE --made-up 256        the same, the file written first, with so many made-up sentences
  python sentences.py FOLDER FILE --batches 1 128 --threads 1 --rounds 5

Prints a line for each batch size and form: sentences a second by the clock, and milliseconds of CPU time for a sentence (of all threads together). On a
machine that does other work too only the second is worth something, and only with one thread: PyTorch's threads wait for each other by spinning.
"""
import argparse
import json
import os
import random
import statistics
import subprocess
import time
from pathlib import Path

OURS = Path(__file__).resolve().parent.parent.parent / "target/release/examples/sentences"


def made_up(count):
    """Sentences of 5 to some 250 tokens, most of them short, as people write them about what they bought."""
    draw = random.Random(7)
    kinds = "small old broken cheap wonderful noisy heavy light blue unreliable sturdy odd gentle expensive slow bright".split()
    things = "phone charger blanket lamp book camera kettle keyboard jacket headphones seller battery screen package manual filter bicycle coffee".split()
    what = "stopped working,arrived late,works well,broke after a week,surprised me,was returned,fits perfectly,smells strange,does not fit".split(",")
    how = "honestly,in the end,after two months,to my surprise,as described,according to my sister,for the price,sadly".split(",")
    for _ in range(count):
        clauses = [f"the {draw.choice(kinds)} {draw.choice(things)} {draw.choice(what)}" for _ in range(max(1, min(24, int(draw.lognormvariate(0.9, 0.8)))))]
        yield draw.choice(how).capitalize() + ", " + ", ".join(clauses) + draw.choice(".!?")


def pytorch(folder, threads, compiled):
    """The forms of PyTorch: functions from sentences to rows."""
    import torch
    from transformers import AutoModel, AutoTokenizer

    torch.set_num_threads(threads)
    tokenizer, network = AutoTokenizer.from_pretrained(folder), AutoModel.from_pretrained(folder).eval()

    def form(network, bf16):
        def embed(sentences, piece):
            order = sorted(range(len(sentences)), key=lambda i: -len(sentences[i]))
            rows = [None] * len(sentences)
            for start in range(0, len(order), piece):
                some = order[start : start + piece]
                batch = tokenizer([sentences[i] for i in some], padding=True, truncation=True, max_length=256, return_tensors="pt")
                with torch.inference_mode(), torch.autocast("cpu", torch.bfloat16, enabled=bf16):
                    states = network(**batch).last_hidden_state.float()
                mask = batch["attention_mask"][..., None].float()
                unit = torch.nn.functional.normalize((states * mask).sum(1) / mask.sum(1), dim=1)
                for i, row in zip(some, unit.numpy()):
                    rows[i] = row
            return rows

        return embed

    forms = {"torch-f32": form(network, False), "torch-bf16": form(network, True)}
    if compiled:
        faster = torch.compile(network, dynamic=True)
        forms |= {"torch-f32-compiled": form(faster, False), "torch-bf16-compiled": form(faster, True)}
    return forms


def measured(embed, sentences, batch, piece, seconds):
    def once():
        for start in range(0, len(sentences), batch):
            embed(sentences[start : start + batch], piece)

    once()
    began, worked, passes = time.perf_counter(), time.process_time(), 0
    while passes == 0 or time.perf_counter() - began < seconds:
        once()
        passes += 1
    count = passes * len(sentences)
    return count / (time.perf_counter() - began), (time.process_time() - worked) / count * 1000


def ours(arguments, precision, batch):
    words = [arguments.ours, arguments.folder, arguments.file, precision, str(batch), str(arguments.seconds)]
    found = json.loads(subprocess.run(words, env=os.environ | {"RAYON_NUM_THREADS": str(arguments.threads)}, stdout=subprocess.PIPE, text=True, check=True).stdout)
    return found["sentences_per_s"], found["cpu_ms"]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder")
    parser.add_argument("file")
    parser.add_argument("--made-up", type=int)
    parser.add_argument("--batches", type=int, nargs="+", default=[1, 32, 128])
    parser.add_argument("--piece", type=int, default=32)
    parser.add_argument("--threads", type=int, default=os.cpu_count())
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=2.0)
    parser.add_argument("--compile", action="store_true")
    parser.add_argument("--ours", default=str(OURS))
    arguments = parser.parse_args()
    if arguments.made_up:
        Path(arguments.file).write_text("".join(f"{sentence}\n" for sentence in made_up(arguments.made_up)))
    sentences = Path(arguments.file).read_text().splitlines()
    forms = pytorch(arguments.folder, arguments.threads, arguments.compile)
    for batch in arguments.batches:
        results = {}
        for _ in range(arguments.rounds):
            for precision in ["f32", "bf16"]:
                results.setdefault(f"ours-{precision}", []).append(ours(arguments, precision, batch))
            for name, embed in forms.items():
                results.setdefault(name, []).append(measured(embed, sentences, batch, arguments.piece, arguments.seconds))
        for name, pairs in results.items():
            rates, costs = zip(*pairs)
            print(f"batch {batch:4}  {name:20} {statistics.median(rates):8.1f} sentences/s  {statistics.median(costs):7.3f} ms CPU", flush=True)


main()
