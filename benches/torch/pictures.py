#!/usr/bin/env python3
"""EfficientNet-Lite0 in plain PyTorch: the reference for `negscale embed`, its golden features, and pictures per second.

The square in a picture's middle is resized to 128 x 128 (bicubic, with `antialias` where it shrinks: torch's `interpolate`) and clamped to
0...255, its values v become (v - 127) / 128, and its embedding is the mean of the last feature map over all places: 1,280 numbers. Padding
is that of TensorFlow: zeros, the odd one behind.

Usage (needs: pip install torch numpy; weights: negscale data get efficientnet-lite0)
  python pictures.py WEIGHTS.pth --golden FILE               features of pictures made by a formula, by float64, as rows of float32
                                                             (crates/encoders/tests/golden/efficientnet_lite0.f32)
  python pictures.py WEIGHTS.pth --embed CIFAR10 OUT.npy     features of the pictures of CIFAR-10 (folder of data_batch_*.bin), float32
  python pictures.py WEIGHTS.pth                             pictures per second of every form: float32 and bf16 autocast, channels-last,
                                                             as written, with norms folded, and frozen; --compile: compiled as well
  python pictures.py WEIGHTS.pth --against "COMMAND"         the same in turns with COMMAND, which prints {"images_per_second": N}
                                                             ("negscale bench encoder --json")
Timed is the way from --pictures of 32 x 32 bytes in memory (1,000) to their features on all threads; one round is not counted. A machine that does
other work as well: take several --rounds; the figure is the median, and ratios are taken within a round.
"""
import argparse
import json
import os
import shlex
import statistics
import subprocess
import sys
import time

try:
    import numpy as np
    import torch
    from torch import nn
    from torch.nn import functional as F
except ImportError as error:
    sys.exit(f"pictures.py: {error.name or error} is missing: pip install torch numpy")

SIDE = 128
# window, stride, expansion, channels out, repeated
STAGES = [(3, 1, 1, 16, 1), (3, 2, 6, 24, 2), (5, 2, 6, 40, 2), (3, 2, 6, 80, 3), (5, 1, 6, 112, 3), (5, 2, 6, 192, 4), (3, 1, 6, 320, 1)]


class Unit(nn.Module):
    """Convolution, batch norm, and ReLU6 or nothing."""

    def __init__(self, inputs, outputs, window, stride=1, groups=1, clips=True):
        super().__init__()
        self.conv = nn.Conv2d(inputs, outputs, window, stride, groups=groups, bias=False)
        self.norm = nn.BatchNorm2d(outputs, eps=1e-3)
        self.clips = clips

    def forward(self, x):
        window, stride = self.conv.kernel_size[0], self.conv.stride[0]
        if window > 1:
            lack = [max((-(-n // stride) - 1) * stride + window - n, 0) for n in x.shape[2:]]
            x = F.pad(x, [lack[1] // 2, lack[1] - lack[1] // 2, lack[0] // 2, lack[0] - lack[0] // 2])
        x = self.norm(self.conv(x))
        return F.relu6(x) if self.clips else x


class Block(nn.Module):
    def __init__(self, inputs, outputs, window, stride, expansion):
        super().__init__()
        wide = inputs * expansion
        self.expand = Unit(inputs, wide, 1) if expansion > 1 else None
        self.depthwise = Unit(wide, wide, window, stride, groups=wide)
        self.project = Unit(wide, outputs, 1, clips=False)
        self.skips = stride == 1 and inputs == outputs

    def forward(self, x):
        y = self.project(self.depthwise(self.expand(x) if self.expand else x))
        return x + y if self.skips else y


class Network(nn.Module):
    def __init__(self):
        super().__init__()
        self.stem, blocks, inputs = Unit(3, 32, 3, 2), [], 32
        for window, stride, expansion, outputs, repeated in STAGES:
            for n in range(repeated):
                blocks.append(Block(inputs, outputs, window, stride if n == 0 else 1, expansion))
                inputs = outputs
        self.blocks = nn.ModuleList(blocks)
        self.head = Unit(320, 1280, 1)

    def forward(self, x):
        x = self.stem(x)
        for block in self.blocks:
            x = block(x)
        return self.head(x).mean((2, 3))

    @staticmethod
    def load(path):
        saved = torch.load(path, weights_only=True)
        network, names = Network(), []

        def take(unit, conv, norm):
            unit.conv.load_state_dict({"weight": saved[f"{conv}.weight"]})
            unit.norm.load_state_dict({k: saved[f"{norm}.{k}"] for k in unit.norm.state_dict()})

        take(network.stem, "_conv_stem", "_bn0")
        take(network.head, "_conv_head", "_bn1")
        for n, block in enumerate(network.blocks):
            if block.expand:
                take(block.expand, f"_blocks.{n}._expand_conv", f"_blocks.{n}._bn0")
            take(block.depthwise, f"_blocks.{n}._depthwise_conv", f"_blocks.{n}._bn1")
            take(block.project, f"_blocks.{n}._project_conv", f"_blocks.{n}._bn2")
        return network.eval()


def prepare(pixels, dtype=torch.float32):
    """N x H x W x 3 bytes to what the network sees."""
    x = torch.tensor(pixels).permute(0, 3, 1, 2).to(dtype)
    side = min(x.shape[2:])
    top, left = ((n - side) // 2 for n in x.shape[2:])
    x = x[:, :, top:top + side, left:left + side]
    x = F.interpolate(x, size=(SIDE, SIDE), mode="bicubic", align_corners=False, antialias=side > SIDE)
    return (x.clamp(0, 255) - 127) / 128


def fold(network):
    """Norms folded into convolutions, frozen: what PyTorch does best with a network that is only used."""
    with torch.no_grad():
        for unit in [m for m in network.modules() if isinstance(m, Unit)]:
            unit.conv = torch.nn.utils.fusion.fuse_conv_bn_eval(unit.conv, unit.norm)
            unit.norm = nn.Identity()
    return network


def cifar(folder):
    rows = [np.fromfile(os.path.join(folder, f"data_batch_{n}.bin"), np.uint8).reshape(-1, 3073) for n in range(1, 6)]
    return np.ascontiguousarray(np.concatenate(rows)[:, 1:].reshape(-1, 3, 32, 32).transpose(0, 2, 3, 1))


def made_up(count, height, width):
    """Pictures by a formula, so that a test can make the same ones: smooth waves with sharp edges."""
    n, y, x, c = np.meshgrid(np.arange(count), np.arange(height), np.arange(width), np.arange(3), indexing="ij")
    return ((n * 37 + x * (3 + c) + y * (5 - c) + (x * y * (n + 1)) // 16 + 90 * ((x // 8 + y // 8 + c) % 2)) % 256).astype(np.uint8)


@torch.no_grad()
def golden(path, network):
    sizes = [(32, 32), (28, 28), (128, 128), (150, 211)]
    rows = [network.double()(prepare(made_up(2, *size), torch.float64)).float().numpy() for size in sizes]
    np.concatenate(rows).astype("<f4").tofile(path)


@torch.no_grad()
def embed(folder, out, network):
    pictures = cifar(folder)
    network = network.to(memory_format=torch.channels_last)
    rows = [network(prepare(part).contiguous(memory_format=torch.channels_last)).numpy() for part in np.array_split(pictures, 500)]
    np.save(out, np.concatenate(rows))


def forms(path, compiles):
    """Every way of running the network, as functions of prepared pictures."""
    plain, folded = (Network.load(path).to(memory_format=torch.channels_last), fold(Network.load(path)).to(memory_format=torch.channels_last))
    example = torch.zeros(50, 3, SIDE, SIDE).contiguous(memory_format=torch.channels_last)

    def autocast(network):
        def run(x):
            with torch.autocast("cpu", torch.bfloat16):
                return network(x)
        return run

    with torch.no_grad():
        frozen = torch.jit.freeze(torch.jit.trace(folded, example))
        yield "f32", plain
        yield "f32, folded, frozen", frozen
        yield "bf16 autocast", autocast(plain)
        yield "bf16 autocast, folded", autocast(folded)
        half = fold(Network.load(path)).to(torch.bfloat16, memory_format=torch.channels_last)
        yield "bf16, folded, frozen", (lambda frozen: lambda x: frozen(x.bfloat16()))(torch.jit.freeze(torch.jit.trace(half, example.bfloat16())))
        if not compiles:
            return
        try:
            compiled = torch.compile(folded)
            compiled(example)
            yield "f32, folded, compiled", compiled
            half = torch.compile(half)
            half(example.bfloat16())
            yield "bf16, folded, compiled", lambda x: half(x.bfloat16())
        except Exception as error:  # no C++ compiler, for instance
            print(f"torch.compile left out: {str(error).splitlines()[0]}", file=sys.stderr)


@torch.no_grad()
def speed(arguments):
    pictures, sizes = made_up(arguments.pictures, 32, 32), [int(size) for size in arguments.batches.split(",")]
    if arguments.threads:
        torch.set_num_threads(arguments.threads)
    print(f"torch {torch.__version__}, {torch.get_num_threads()} threads", file=sys.stderr)
    ways = dict(forms(arguments.weights, arguments.compile))

    def run(way, size):
        begun = time.perf_counter()
        for part in np.split(pictures, range(size, len(pictures), size)):
            ways[way](prepare(part).contiguous(memory_format=torch.channels_last)).float().numpy()
        return len(pictures) / (time.perf_counter() - begun)

    cases = [(way, size) for way in ways for size in sizes if "compiled" not in way or size == 50]
    for case in cases:
        run(*case)
    if len(cases) > 3 and arguments.against:  # the best three stay
        cases = sorted(cases, key=lambda case: -max(run(*case) for _ in range(2)))[:3]
    found, ours = {case: [] for case in cases}, []
    for _ in range(arguments.rounds):
        for case in cases:
            found[case].append(run(*case))
        if arguments.against:
            said = subprocess.run(shlex.split(arguments.against), check=True, capture_output=True, text=True).stdout
            ours.append(json.loads(said.splitlines()[-1])["images_per_second"])
    for (way, size), rates in found.items():
        ratio = f"   ours to it {statistics.median(a / b for a, b in zip(ours, rates)):.2f}" if ours else ""
        print(f"{way:24} batch {size:4}: {statistics.median(rates):7.0f} pictures/s{ratio}")
    if ours:
        print(f"{'ours':35}: {statistics.median(ours):7.0f} pictures/s")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("weights")
    parser.add_argument("--golden", metavar="FILE")
    parser.add_argument("--embed", nargs=2, metavar=("CIFAR10", "OUT"))
    parser.add_argument("--against", metavar="COMMAND")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--pictures", type=int, default=1000, help="of a round of PyTorch")
    parser.add_argument("--batches", default="10,50,250")
    parser.add_argument("--threads", type=int)
    parser.add_argument("--compile", action="store_true", help="torch.compile as well, which takes minutes to begin")
    arguments = parser.parse_args()
    if arguments.golden:
        golden(arguments.golden, Network.load(arguments.weights))
    elif arguments.embed:
        embed(*arguments.embed, Network.load(arguments.weights))
    else:
        speed(arguments)


if __name__ == "__main__":
    main()
