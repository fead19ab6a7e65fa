#!/usr/bin/env python3
"""Time training steps and forward passes of small networks in PyTorch (CPU) in all its forms, alone or in turns with ours.

A training step is forward, cross-entropy, backward and SGD (lr 0.01, momentum 0.9, weight decay 5e-4; gradients set to
None); a forward pass is in evaluation mode without gradients. Inputs are random and the same for every step. ms is the median over
the steps after three uncounted ones, taken for at least two seconds; mib is the peak resident memory of the process (VmHWM). Every case runs in a
process of its own, so that the peak is the case's.

Forms of PyTorch: eager, channels-last, channels-last+bf16 (autocast); for vectors, which have no channels, eager and bf16; each
also compiled (torch.compile, which needs a C++ compiler). A form that fails, or takes longer than --limit seconds, is reported as failed and
takes no part. The ratio is to the fastest form.

Usage (needs: pip install torch)
  python step.py                                       PyTorch alone, all cases and forms
  python step.py --nets resnet-20 mlp --modes train    some of them
  python step.py --forms eager channels-last+bf16      some forms
  python step.py --against target/release/negscale     all in turns (ours, each form, ours, ...), medians and ratios
  python step.py --json ...                            one object per line

Columns: ours_ms, best_torch_ms, ratio (ours/PyTorch's best form in time: below 1 is faster), f32_ratio (ours in f32 to PyTorch in f32,
channels last; vectors: eager), ours_mib, torch_mib (of the best form), best_form. With --json also "ours" (ms by precision), "forms" (ms by form) and
"failed" (why, by form).
Our side is `negscale bench step --net N --batch B --mode M --precision P --steps K --json`, which prints {"ms", "mib", "precision", ...}; ours_ms
is the first of --precisions (auto: what a run takes by itself on this CPU).
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
# Forms of PyTorch for pictures and for vectors; each also with this at its end.
PICTURE_FORMS = ["eager", "channels-last", "channels-last+bf16"]
VECTOR_FORMS = ["eager", "bf16"]
COMPILED = "+compile"
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


def forms_of(shape):
    """All forms for samples of a shape, those without the compiler first."""
    plain = PICTURE_FORMS if len(shape) == 3 else VECTOR_FORMS
    return plain + [form + COMPILED for form in plain]


def measure(name, batch, mode, form, steps, threads):
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
    if form.startswith("channels-last"):
        net = net.to(memory_format=torch.channels_last)
        inputs = inputs.contiguous(memory_format=torch.channels_last)
    optimiser = torch.optim.SGD(net.parameters(), lr=0.01, momentum=0.9, weight_decay=5e-4)
    net.train(mode == "train")
    run = torch.compile(net) if form.endswith(COMPILED) else net
    half = "bf16" in form

    def train():
        optimiser.zero_grad(set_to_none=True)
        with torch.autocast("cpu", torch.bfloat16, enabled=half):
            loss = torch.nn.functional.cross_entropy(run(inputs), labels)
        loss.backward()
        optimiser.step()

    def forward():
        with torch.no_grad(), torch.autocast("cpu", torch.bfloat16, enabled=half):
            run(inputs)

    step, times = train if mode == "train" else forward, []
    for _ in range(WARM):                                     # compiles, in a compiled form
        step()
    begin = time.perf_counter()
    while len(times) < steps or time.perf_counter() - begin < AT_LEAST:
        start = time.perf_counter()
        step()
        times.append((time.perf_counter() - start) * 1e3)
    print(json.dumps({"net": name, "batch": batch, "mode": mode, "form": form, "ms": statistics.median(times), "mib": peak_mib(),
                      "steps": len(times), "threads": threads, "torch": torch.__version__}))


def run(command, threads, limit):
    """The JSON object that a case's process prints, or in a few words why there is none."""
    environment = {**os.environ, "RAYON_NUM_THREADS": str(threads), "OMP_NUM_THREADS": str(threads)}
    try:
        done = subprocess.run(command, capture_output=True, text=True, env=environment, timeout=limit)
    except subprocess.TimeoutExpired:
        return None, f"took more than {limit} s"
    lines = [line for line in done.stdout.splitlines() if line.startswith("{")]
    if done.returncode or not lines:
        said = (done.stderr or done.stdout).strip().splitlines()
        return None, said[-1] if said else f"ended with {done.returncode} and said nothing"
    return json.loads(lines[-1]), None


def compare(case, mode, args):
    """Medians over the rounds: ours in every precision, PyTorch in every form, all in turns."""
    name, batch, shape = case
    what = ["--net", name, "--batch", str(batch), "--mode", mode, "--steps", str(args.steps)]
    forms = [form for form in forms_of(shape) if not args.forms or form in args.forms]
    torch = [sys.executable, __file__, "--one", *what, "--threads", str(args.threads)]
    sides = {form: [*torch, "--form", form] for form in forms}
    ours = args.precisions if args.against else []
    for precision in reversed(ours):
        sides = {f"ours {precision}": [args.against, "bench", "step", *what, "--precision", precision, "--json"], **sides}
    found, failed = {side: [] for side in sides}, {}
    for _ in range(args.rounds):
        for side, command in sides.items():
            if side in failed:
                continue
            result, problem = run(command, args.threads, args.limit)
            if result:
                found[side].append(result)
            elif side.startswith("ours"):
                sys.exit(f"step.py: {' '.join(command)} failed: {problem}")
            else:
                failed[side] = problem

    def median(side, key):
        values = [result[key] for result in found.get(side, []) if result[key] is not None]
        return statistics.median(values) if values and side not in failed else None

    by_form = {form: median(form, "ms") for form in forms}
    done = [form for form in forms if by_form[form] is not None]
    best = min(done, key=by_form.get) if done else None
    first = f"ours {ours[0]}" if ours else ""
    by_precision = {precision: median(f"ours {precision}", "ms") for precision in ours}
    divided = lambda a, b: a / b if a and b else None
    f32 = by_form.get("channels-last" if len(shape) == 3 else "eager")
    return {
        "net": name, "batch": batch, "mode": mode,
        "ours_ms": median(first, "ms"), "best_torch_ms": by_form.get(best), "best_form": best,
        "ratio": divided(median(first, "ms"), by_form.get(best)),
        "precision": found[first][0].get("precision") if ours else None,
        "f32_ratio": divided(by_precision.get("f32"), f32),
        "ours_mib": median(first, "mib"), "torch_mib": median(best, "mib"),
        "ours": by_precision, "forms": by_form, "failed": failed,
    }


def show(line, head):
    """A line of the table, and what is not in its columns below it."""
    columns = [("ours_ms", 10, 2), ("best_torch_ms", 10, 2), ("ratio", 7, 2), ("f32_ratio", 7, 2), ("ours_mib", 9, 0), ("torch_mib", 9, 0)]
    if head:
        names = ["ours ms", "torch ms", "ratio", "f32", "ours MiB", "its MiB"]
        print(f"{'net':<18}{'batch':>6}{'mode':>9}" + "".join(f"{name:>{width}}" for name, (_, width, _) in zip(names, columns)) + "  best form")
    cell = lambda key, digits: "-" if line[key] is None else f"{line[key]:.{digits}f}"
    print(f"{line['net']:<18}{line['batch']:>6}{line['mode']:>9}"
          + "".join(f"{cell(key, digits):>{width}}" for key, width, digits in columns) + f"  {line['best_form'] or '-'}")
    times = {**{f"ours {precision}": ms for precision, ms in line["ours"].items()}, **line["forms"]}
    print("    " + ", ".join(f"{side} {ms:.2f}" for side, ms in times.items() if ms))
    for form, problem in line["failed"].items():
        print(f"    {form} failed: {problem}")
    sys.stdout.flush()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    add = parser.add_argument
    forms = sorted({form for _, _, shape in CASES for form in forms_of(shape)})
    add("--nets", nargs="+", choices=sorted(PARAMETERS), default=sorted(PARAMETERS))
    add("--modes", nargs="+", choices=MODES, default=MODES)
    add("--batches", nargs="+", type=int, help="only cases of these batch sizes")
    add("--forms", nargs="+", choices=forms, metavar="FORM", help=f"only these forms of PyTorch: {', '.join(forms)}")
    add("--precisions", nargs="+", choices=["auto", "f32", "bf16"], default=["auto", "f32"],
        help="of ours; the first is compared with PyTorch's best form (default: auto f32)")
    add("--steps", type=int, default=10, help="counted steps of a process, at least (default 10)")
    add("--rounds", type=int, default=3, help="processes per side and case (default 3)")
    add("--threads", type=int, default=2, help="of both sides (default 2)")
    add("--limit", type=float, default=900, help="seconds that a process may take, compiling included (default 900)")
    add("--against", metavar="NEGSCALE", help="our program, run in turns with PyTorch")
    add("--json", action="store_true", help="one object per line")
    for name in ("--one", "--net", "--batch", "--mode", "--form"):      # for the processes that measure
        add(name, help=argparse.SUPPRESS, **({"action": "store_true"} if name == "--one" else {}))
    args = parser.parse_args()
    if args.steps < 1 or args.rounds < 1:
        parser.error("--steps and --rounds must be at least 1")
    if args.one:
        return measure(args.net, int(args.batch), args.mode, args.form or "eager", args.steps, args.threads)
    if not args.json:
        print(f"{args.threads} thread(s), medians of {args.rounds} process(es) of {args.steps} steps or 2 s")
    chosen = [case for case in CASES if case[0] in args.nets and (not args.batches or case[1] in args.batches)]
    for number, (case, mode) in enumerate((case, mode) for case in chosen for mode in args.modes):
        line = compare(case, mode, args)
        if args.json:
            print(json.dumps(line), flush=True)
        else:
            show(line, number == 0)


if __name__ == "__main__":
    main()
