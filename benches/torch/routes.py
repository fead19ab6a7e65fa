#!/usr/bin/env python3
"""Time `negscale.torch.NegScaleLoss` against the same loss in torch operations, on the CPU, and print a Markdown table.

  kernel         the compiled kernel, as NegScaleLoss takes it for tensors on the CPU
  closed form    the closed form in torch operations with autograd, as NegScaleLoss takes it on other devices (without its check)
  compiled       the closed form after torch.compile
  SNOP alone     the closed form without DCSA and local term
  literal        lists of pairs and the P x d matrix of directions, as in plugin.py

Usage (needs: pip install "negscale[torch]")
  python routes.py                                    the default grid
  python routes.py --cases "128,512" --rounds 400     batch,dim pairs
  python routes.py --forms "kernel,closed form"       some of the forms

Timed is a step from float32 features, labels and confidences to the gradient of the features, forward and backward with all terms. The
forms take turns, so that other work on the machine meets all of them, with some steps in a row each: a form that follows another finds
its threads still waiting on the cores, and its own data out of the caches. A ratio is the median over rounds of the form's time divided
by the kernel's in the same round. The literal form takes part in every tenth round only, with one step.
"""

import argparse
import os
import platform
import statistics
import time


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cases", default="64,128 64,512 128,128 128,512 448,128 448,512")
    parser.add_argument("--forms", default="kernel,closed form,compiled,SNOP alone,literal")
    parser.add_argument("--classes", type=int, choices=(10, 100), default=10)
    parser.add_argument("--rounds", type=int, default=40)
    parser.add_argument("--steps", type=int, default=10, help="in a row")
    parser.add_argument("--threads", type=int, default=os.cpu_count())
    args = parser.parse_args()
    # Before the kernel starts its threads.
    os.environ.setdefault("RAYON_NUM_THREADS", str(args.threads))
    import torch

    import negscale
    import plugin
    from negscale.torch import NegScaleLoss

    torch.set_num_threads(args.threads)
    tree = f"cifar{args.classes}"
    closed = NegScaleLoss(tree, route="torch", check=False)
    distances = torch.from_numpy(negscale.Taxonomy(tree).distances())
    forms = {
        "kernel": NegScaleLoss(tree),
        "closed form": closed,
        "compiled": torch.compile(closed),
        "SNOP alone": NegScaleLoss(tree, route="torch", check=False, dcsa=False, local_weight=0),
        "literal": lambda *data: plugin.plug_in(*data, distances, "dxd", "mean")[0],
    }
    names = [name.strip() for name in args.forms.split(",")]
    if set(names) - set(forms) or names[0] != "kernel":
        parser.error(f"--forms starts with kernel; the others are {', '.join(list(forms)[1:])}")

    print(
        f"torch {torch.__version__}, {args.threads} threads, {processor()}, {tree}, medians of {args.rounds} rounds of {args.steps} steps: "
        "milliseconds, and how many times the kernel's\n"
    )
    print("| batch x width | " + " | ".join(names) + " |\n|---" + "|---:" * len(names) + "|")
    for case in args.cases.split():
        batch, width = map(int, case.split(","))
        data = plugin.make_case(batch, width, args.classes, 0)

        def step(name):
            steps = 1 if name == "literal" else args.steps
            begin = time.perf_counter()
            for _ in range(steps):
                leaf = data[0].detach().requires_grad_()
                forms[name](leaf, *data[1:]).backward()
            return (time.perf_counter() - begin) / steps

        for name in names:
            step(name), step(name)
        times = {name: [] for name in names}
        for number in range(args.rounds):
            for name in names:
                if name != "literal" or number % 10 == 0:
                    times[name].append((number, step(name)))
        kernel = dict(times["kernel"])
        cells = [f"{statistics.median(kernel.values()) * 1e3:.2f}"]
        for name in names[1:]:
            ratio = statistics.median(seconds / kernel[number] for number, seconds in times[name])
            cells.append(f"{statistics.median(seconds for _, seconds in times[name]) * 1e3:.2f} ({ratio:.1f})")
        print(f"| {batch} x {width} | " + " | ".join(cells) + " |", flush=True)


def processor():
    """Name of the processor, where the system tells."""
    try:
        with open("/proc/cpuinfo", encoding="utf-8") as lines:
            return next(line.split(":")[1].strip() for line in lines if line.startswith("model name"))
    except (OSError, StopIteration):
        return platform.processor() or platform.machine()


if __name__ == "__main__":
    main()
