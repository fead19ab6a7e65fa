#!/usr/bin/env python3
"""Time training steps and forward passes of small networks in PyTorch (CPU), alone or in turns with ours.

A training step is forward, cross-entropy, backward and SGD (lr 0.01, momentum 0.9, weight decay 5e-4; gradients set to
None); a forward pass is in evaluation mode without gradients. Inputs are random and the same for every step. ms is the median over
the steps after three uncounted ones, taken for at least two seconds; mib is the peak resident memory of the process (VmHWM). Every case runs in a
process of its own, so that the peak is the case's.

Usage (needs: pip install torch)
  python step.py                                       PyTorch alone, all cases
  python step.py --nets resnet-20 mlp --modes train    some of them
  python step.py --against target/release/negscale     both in turns (ours, PyTorch, ours, ...), medians and ratios
  python step.py --json ...                            one object per line

Columns: ours_ms, torch_ms, ratio (ours/PyTorch in time: below 1 is faster), ours_mib, torch_mib.
Our side is `negscale bench step --net N --batch B --mode M --steps K --json`, which prints {"ms", "mib", ...}.
torch_mib includes what loading PyTorch takes (several hundred MiB).

Measure on an idle machine. PyTorch's threads wait for each other by spinning; beside other work that made an MLP step take
224 ms in two processes of three, and 16 ms in the third. With OMP_WAIT_POLICY=PASSIVE in the environment, which is passed on,
it took 12 to 17 ms each time: on a busy machine set it, or the ratio says nothing. On an idle one measure both, and give PyTorch
the better.
"""
import argparse
import json
import os
import resource
import statistics
import subprocess
import sys
import time
from pathlib import Path

# Net, batch and sample shape of every case.
CASES = [
    ("resnet-20", 128, (3, 32, 32)),
    ("preact-resnet-18", 64, (3, 32, 32)),
    ("preact-resnet-18", 448, (3, 32, 32)),
    ("mlp", 512, (512,)),
    ("cnn-small", 128, (1, 28, 28)),
]
MODES = ["train", "forward"]
CLASSES = 10
WARM = 3
# Seconds that a measurement takes at least: ten steps of a few milliseconds say little.
AT_LEAST = 2.0


def networks():
    """Builders by name; PyTorch is loaded here, so that the process that only starts others stays small."""
    try:
        import torch
        from torch import nn
        from torch.nn import functional as F
    except ImportError as error:
        sys.exit(f"step.py: {error.name or error} is missing: pip install torch")

    def conv(inputs, outputs, stride=1, size=3):
        return nn.Conv2d(inputs, outputs, size, stride, size // 2, bias=False)

    class Block(nn.Module):
        """ResNet-20's: shortcut without parameters (every second pixel, zeros for missing channels)."""

        def __init__(self, inputs, outputs, stride):
            super().__init__()
            self.conv1, self.bn1 = conv(inputs, outputs, stride), nn.BatchNorm2d(outputs)
            self.conv2, self.bn2 = conv(outputs, outputs), nn.BatchNorm2d(outputs)
            self.stride, self.extra = stride, outputs - inputs

        def forward(self, x):
            skip = x if self.stride == 1 else x[:, :, ::2, ::2]
            if self.extra:
                skip = F.pad(skip, (0, 0, 0, 0, self.extra // 2, self.extra - self.extra // 2))
            return F.relu(self.bn2(self.conv2(F.relu(self.bn1(self.conv1(x))))) + skip)

    class PreAct(nn.Module):
        """The skip carries the activated input; a 1x1 convolution where size or channels change."""

        def __init__(self, inputs, outputs, stride):
            super().__init__()
            self.bn1, self.conv1 = nn.BatchNorm2d(inputs), conv(inputs, outputs, stride)
            self.bn2, self.conv2 = nn.BatchNorm2d(outputs), conv(outputs, outputs)
            changes = stride != 1 or inputs != outputs
            self.shortcut = conv(inputs, outputs, stride, 1) if changes else nn.Identity()

        def forward(self, x):
            x = F.relu(self.bn1(x))
            return self.conv2(F.relu(self.bn2(self.conv1(x)))) + self.shortcut(x)

    def stages(block, depth, widths):
        """Stages of `depth` blocks; all but the first begin with stride 2."""
        inputs = widths[0]
        for index, width in enumerate(widths):
            for position in range(depth):
                yield block(inputs, width, 2 if index and not position else 1)
                inputs = width

    def residual(block, depth, widths):
        stem = [conv(3, widths[0]), nn.BatchNorm2d(widths[0]), nn.ReLU()]
        end = [nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(widths[-1], CLASSES)]
        return nn.Sequential(*stem, *stages(block, depth, widths), *end)

    def small():
        def layer(inputs, outputs, stride=1):
            return [conv(inputs, outputs, stride), nn.BatchNorm2d(outputs), nn.ReLU()]

        return nn.Sequential(
            *layer(1, 16), nn.MaxPool2d(2), *layer(16, 32), nn.MaxPool2d(2), *layer(32, 64), *layer(64, 64, 2),
            nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(64, CLASSES))

    return {
        "resnet-20": lambda: residual(Block, 3, [16, 32, 64]),
        "preact-resnet-18": lambda: residual(PreAct, 2, [64, 128, 256, 512]),
        "mlp": lambda: nn.Sequential(nn.Linear(512, 512), nn.ReLU(), nn.Linear(512, CLASSES)),
        "cnn-small": small,
    }


# As the documentation of our networks says; checked before every measurement.
PARAMETERS = {"resnet-20": 269_722, "preact-resnet-18": 11_171_274, "mlp": 267_786, "cnn-small": 61_050}


def peak_mib():
    """Peak resident memory of this process."""
    try:
        rows = dict(row.split(":", 1) for row in Path("/proc/self/status").read_text().splitlines())
        return int(rows["VmHWM"].split()[0]) / 1024
    except (OSError, KeyError):
        # Starts from the parent's peak on some systems.
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / (2**20 if sys.platform == "darwin" else 2**10)


def measure(name, batch, mode, steps, threads):
    """One case in this process; prints a JSON object."""
    builders = networks()
    import torch

    torch.set_num_threads(threads)
    torch.manual_seed(0)
    net = builders[name]()
    count = sum(parameter.numel() for parameter in net.parameters())
    if count != PARAMETERS[name]:
        sys.exit(f"step.py: {name} has {count} parameters, not the {PARAMETERS[name]} of our network")
    shape = next(shape for net_name, _, shape in CASES if net_name == name)
    inputs, labels = torch.randn(batch, *shape), torch.randint(0, CLASSES, (batch,))
    optimiser = torch.optim.SGD(net.parameters(), lr=0.01, momentum=0.9, weight_decay=5e-4)
    net.train(mode == "train")

    def train():
        optimiser.zero_grad(set_to_none=True)
        torch.nn.functional.cross_entropy(net(inputs), labels).backward()
        optimiser.step()

    def forward():
        with torch.no_grad():
            net(inputs)

    step, times = train if mode == "train" else forward, []
    begin = time.perf_counter()
    while len(times) < WARM + steps or time.perf_counter() - begin < AT_LEAST:
        start = time.perf_counter()
        step()
        times.append((time.perf_counter() - start) * 1e3)
    print(json.dumps({"net": name, "batch": batch, "mode": mode, "ms": statistics.median(times[WARM:]), "mib": peak_mib(),
                      "steps": len(times) - WARM, "threads": threads, "torch": torch.__version__}))


def run(command, threads):
    """The JSON object that a case's process prints."""
    environment = {**os.environ, "RAYON_NUM_THREADS": str(threads), "OMP_NUM_THREADS": str(threads)}
    done = subprocess.run(command, capture_output=True, text=True, env=environment)
    lines = [line for line in done.stdout.splitlines() if line.startswith("{")]
    if done.returncode or not lines:
        sys.exit(f"{' '.join(command)} failed:\n{done.stderr or done.stdout}")
    return json.loads(lines[-1])


def compare(case, mode, args):
    """Medians over the rounds of both sides."""
    name, batch, _ = case
    what = ["--net", name, "--batch", str(batch), "--mode", mode, "--steps", str(args.steps)]
    sides = {"torch": [sys.executable, __file__, "--one", *what, "--threads", str(args.threads)]}
    if args.against:
        sides = {"ours": [args.against, "bench", "step", *what, "--json"], **sides}
    found = {side: [] for side in sides}
    for _ in range(args.rounds):
        for side, command in sides.items():
            found[side].append(run(command, args.threads))
    line = {"net": name, "batch": batch, "mode": mode}
    for key in ("ms", "mib"):
        for side in ("ours", "torch"):
            values = [result[key] for result in found.get(side, []) if result[key] is not None]
            line[f"{side}_{key}"] = statistics.median(values) if values else None
    line["ratio"] = line["ours_ms"] and line["ours_ms"] / line["torch_ms"]
    return {key: line[key] for key in ("net", "batch", "mode", "ours_ms", "torch_ms", "ratio", "ours_mib", "torch_mib")}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    add = parser.add_argument
    add("--nets", nargs="+", choices=sorted(PARAMETERS), default=sorted(PARAMETERS))
    add("--modes", nargs="+", choices=MODES, default=MODES)
    add("--batches", nargs="+", type=int, help="only cases of these batch sizes")
    add("--steps", type=int, default=10, help="counted steps of a process, at least (default 10)")
    add("--rounds", type=int, default=3, help="processes per side and case (default 3)")
    add("--threads", type=int, default=2, help="of both sides (default 2)")
    add("--against", metavar="NEGSCALE", help="our program, run in turns with PyTorch")
    add("--json", action="store_true", help="one object per line")
    for name in ("--one", "--net", "--batch", "--mode"):      # for the processes that measure
        add(name, help=argparse.SUPPRESS, **({"action": "store_true"} if name == "--one" else {}))
    args = parser.parse_args()
    if args.steps < 1 or args.rounds < 1:
        parser.error("--steps and --rounds must be at least 1")
    if args.one:
        return measure(args.net, int(args.batch), args.mode, args.steps, args.threads)
    if not args.json:
        print(f"{args.threads} thread(s), medians of {args.rounds} process(es) of {args.steps} steps or 2 s\n"
              f"{'net':<18}{'batch':>6}{'mode':>9}{'ours ms':>11}{'torch ms':>11}{'ratio':>8}{'ours MiB':>10}{'torch MiB':>10}")
    for case in CASES:
        if case[0] not in args.nets or args.batches and case[1] not in args.batches:
            continue
        for mode in args.modes:
            line = compare(case, mode, args)
            if args.json:
                print(json.dumps(line), flush=True)
                continue
            show = lambda key, digits: "-" if line[key] is None else f"{line[key]:.{digits}f}"
            print(f"{line['net']:<18}{line['batch']:>6}{mode:>9}{show('ours_ms', 2):>11}{show('torch_ms', 2):>11}"
                  f"{show('ratio', 2):>8}{show('ours_mib', 0):>10}{show('torch_mib', 0):>10}", flush=True)


if __name__ == "__main__":
    main()
