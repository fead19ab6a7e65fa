#!/usr/bin/env python3
"""Time networks for pictures in ONNX files: ours (rten), ONNX Runtime and PyTorch, in turns.

The networks are torchvision's ResNet-50 and ViT-B/16 with random weights, exported by both of PyTorch's exporters into --folder where they are not there
yet, and run on one made-up picture of 224 x 224 pixels again and again. PyTorch's forms: f32 and bf16 (autocast), the ResNet also channels-last.

Usage (needs: pip install torch torchvision onnx onnxscript onnxruntime)
  cargo build --release -p negscale-encoders --features onnx --example onnx
  python onnx_pictures.py --folder /tmp/onnx [--threads 1] [--rounds 3]

Prints for each network and form milliseconds by the clock and of CPU time (of all threads together) for a picture: medians of the rounds. On a machine that
does other work too only the second is worth something, and only with one thread.
"""
import argparse
import json
import os
import statistics
import subprocess
import time
from pathlib import Path

OURS = Path(__file__).resolve().parent.parent.parent / "target/release/examples/onnx"


def networks():
    import torch
    import torchvision

    torch.manual_seed(0)
    resnet, vit = torchvision.models.resnet50().eval(), torchvision.models.vit_b_16().eval()
    torch.nn.init.normal_(vit.heads.head.weight, 0, 0.05)  # Zeros otherwise.
    return {"resnet50": resnet, "vit_b_16": vit}


def export(network, path, dynamo):
    import torch

    pixels = torch.zeros(2, 3, 224, 224)
    free = {"dynamic_shapes": ({0: torch.export.Dim.DYNAMIC},)} if dynamo else {"dynamic_axes": {"pixels": {0: "batch"}}}
    torch.onnx.export(network, (pixels,), path, dynamo=dynamo, input_names=["pixels"], output_names=["out"], **({"external_data": False} if dynamo else {}), **free)


def forms(name, network, path, threads):
    import numpy
    import onnxruntime
    import torch

    torch.set_num_threads(threads)
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    session = onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
    pixels = numpy.random.default_rng(0).normal(size=(1, 3, 224, 224)).astype("float32")
    found = {"onnxruntime": lambda: session.run(None, {"pixels": pixels})}
    for layout in ["", "+channels-last"] if name.startswith("resnet") else [""]:
        x = torch.from_numpy(pixels)
        if layout:
            network, x = network.to(memory_format=torch.channels_last), x.to(memory_format=torch.channels_last)
        for bf16 in [False, True]:

            def run(network=network, x=x, bf16=bf16):
                with torch.inference_mode(), torch.autocast("cpu", torch.bfloat16, enabled=bf16):
                    network(x)

            found[f"torch-{'bf16' if bf16 else 'f32'}{layout}"] = run
    return found


def measured(run, seconds):
    run()
    began, worked, count = time.perf_counter(), time.process_time(), 0
    while count == 0 or time.perf_counter() - began < seconds:
        run()
        count += 1
    return (time.perf_counter() - began) / count * 1000, (time.process_time() - worked) / count * 1000


def ours(arguments, path):
    words = [arguments.ours, str(path), str(arguments.seconds), str(arguments.threads)]
    found = json.loads(subprocess.run(words, env=os.environ | {"RAYON_NUM_THREADS": str(arguments.threads)}, stdout=subprocess.PIPE, text=True, check=True).stdout)
    return found["ms"], found["cpu_ms"]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--folder", required=True)
    parser.add_argument("--threads", type=int, default=os.cpu_count())
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=2.0)
    parser.add_argument("--exporters", nargs="+", default=["legacy", "dynamo"])
    parser.add_argument("--ours", default=str(OURS))
    arguments = parser.parse_args()
    for name, network in networks().items():
        for exporter in arguments.exporters:
            path = Path(arguments.folder) / f"{name}-{exporter}.onnx"
            if not path.exists():
                export(network, path, exporter == "dynamo")
            results = {}
            others = forms(name, network, path, arguments.threads)
            for _ in range(arguments.rounds):
                results.setdefault("ours", []).append(ours(arguments, path))
                for form, run in others.items():
                    results.setdefault(form, []).append(measured(run, arguments.seconds))
            for form, pairs in results.items():
                clock, cpu = (statistics.median(values) for values in zip(*pairs))
                print(f"{name:10} {exporter:8} {form:26} {clock:9.1f} ms  {cpu:9.1f} ms CPU", flush=True)


main()
