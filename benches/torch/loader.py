#!/usr/bin/env python3
"""Pictures per second of a PyTorch DataLoader with torchvision and Pillow, for the weak and the strong view.

Weak: zero border of 4, crop, mirror, to tensor, normalise. Strong: three of 14 operations with random values, Cutout, then
weak, each as published training code writes it with Pillow. Pictures are those of CIFAR-10 (--data, a folder with its
data_batch_*.bin) or random ones, 32 x 32 in colour, held in memory as bytes; batches of 128, shuffled, workers kept between epochs; one epoch is not counted. Printed is the median over the rounds.

Usage (needs: pip install torch torchvision pillow numpy)
  python loader.py                       both views, two workers
  python loader.py --json                one JSON object per line: view, images_per_second, ...
  python loader.py --against "COMMAND"   COMMAND prints such lines too ("negscale bench loader --json --data cifar10"); both run in
                                         turns, and the ratio of the medians follows for each view

On a machine that does other work as well, take several --rounds: both sides then suffer alike.
"""
import argparse
import json
import random
import shlex
import statistics
import subprocess
import sys
import time

try:
    import numpy as np
    import PIL
    import torch
    import torchvision
    from PIL import Image, ImageDraw, ImageEnhance, ImageOps
    from torchvision import transforms
except ImportError as error:
    sys.exit(f"loader.py: {error.name or error} is missing: pip install torch torchvision pillow numpy")

MEAN, STD = (0.4914, 0.4822, 0.4465), (0.2023, 0.1994, 0.2010)


def affine(image, *matrix):
    return image.transform(image.size, Image.Transform.AFFINE, matrix)


OPERATIONS = [
    (lambda i, v: i, 0, 1),
    (lambda i, v: ImageOps.autocontrast(i), 0, 1),
    (lambda i, v: ImageOps.equalize(i), 0, 1),
    (lambda i, v: ImageEnhance.Brightness(i).enhance(v), 0.05, 0.95),
    (lambda i, v: ImageEnhance.Color(i).enhance(v), 0.05, 0.95),
    (lambda i, v: ImageEnhance.Contrast(i).enhance(v), 0.05, 0.95),
    (lambda i, v: ImageEnhance.Sharpness(i).enhance(v), 0.05, 0.95),
    (lambda i, v: ImageOps.posterize(i, int(v)), 4, 8),
    (lambda i, v: ImageOps.solarize(i, v), 0, 256),
    (lambda i, v: i.rotate(v), -30, 30),
    (lambda i, v: affine(i, 1, v, 0, 0, 1, 0), -0.3, 0.3),
    (lambda i, v: affine(i, 1, 0, 0, v, 1, 0), -0.3, 0.3),
    (lambda i, v: affine(i, 1, 0, v * i.size[0], 0, 1, 0), -0.3, 0.3),
    (lambda i, v: affine(i, 1, 0, 0, 0, 1, v * i.size[1]), -0.3, 0.3),
]


class Strengthen:
    """Three operations and a Cutout."""

    def __call__(self, image):
        for operation, low, high in random.choices(OPERATIONS, k=3):
            image = operation(image, random.uniform(low, high))
        width, height = image.size
        side = width * random.uniform(0, 0.5)
        x = int(max(0, random.uniform(0, width) - side / 2))
        y = int(max(0, random.uniform(0, height) - side / 2))
        image = image.copy()
        corners = (x, y, min(width, x + side), min(height, y + side))
        ImageDraw.Draw(image).rectangle(corners, (125, 123, 114))
        return image


class Pictures(torch.utils.data.Dataset):
    def __init__(self, pixels, transform):
        self.pixels, self.transform = pixels, transform

    def __len__(self):
        return len(self.pixels)

    def __getitem__(self, index):
        return self.transform(Image.fromarray(self.pixels[index])), 0, index


def load(options):
    """Pictures as N x 32 x 32 x 3 bytes."""
    if not options.data:
        return np.random.default_rng(1).integers(0, 256, (options.pictures, 32, 32, 3), dtype=np.uint8)
    records = [np.fromfile(f"{options.data}/data_batch_{n}.bin", np.uint8).reshape(-1, 3073) for n in range(1, 6)]
    planes = np.concatenate(records)[: options.pictures, 1:].reshape(-1, 3, 32, 32)
    return np.ascontiguousarray(planes.transpose(0, 2, 3, 1))


def prepare(view, options):
    """A function that runs an epoch and gives pictures per second."""
    weak = [
        transforms.RandomCrop(32, padding=4), transforms.RandomHorizontalFlip(),
        transforms.ToTensor(), transforms.Normalize(MEAN, STD),
    ]
    pixels = load(options)
    steps = weak if view == "weak" else [Strengthen(), *weak]
    loader = torch.utils.data.DataLoader(
        Pictures(pixels, transforms.Compose(steps)), batch_size=128, shuffle=True, num_workers=options.workers,
        persistent_workers=options.workers > 0,
    )

    def run():
        start, seen = time.perf_counter(), 0
        for pictures, _, _ in loader:
            seen += len(pictures)
        return seen / (time.perf_counter() - start)

    run()
    return run


def ask(command):
    """What the other side measures, by view."""
    done = subprocess.run(shlex.split(command), capture_output=True, text=True)
    if done.returncode:
        sys.exit(f"{command} failed:\n{done.stderr}")
    lines = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
    return {line["view"]: line["images_per_second"] for line in lines}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", metavar="FOLDER")
    parser.add_argument("--pictures", type=int, default=50_000)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--views", nargs="+", default=["weak", "strong"], choices=["weak", "strong"])
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--against", metavar="COMMAND")
    options = parser.parse_args()
    torch.set_num_threads(1)
    runs = {view: prepare(view, options) for view in options.views}
    theirs, ours = {view: [] for view in runs}, {view: [] for view in runs}
    for _ in range(options.rounds):
        answer = ask(options.against) if options.against else {}
        for view, run in runs.items():
            theirs[view].append(run())
            if view in answer:
                ours[view].append(answer[view])
    versions = {"torch": torch.__version__, "torchvision": torchvision.__version__, "pillow": PIL.__version__}
    for view in runs:
        speed = statistics.median(theirs[view])
        line = {"view": view, "images_per_second": round(speed), "pictures": options.pictures,
                "workers": options.workers, "rounds": options.rounds, **versions}
        if ours[view]:
            other = statistics.median(ours[view])
            line |= {"against_images_per_second": round(other), "ratio": round(other / speed, 2)}
        if options.json:
            print(json.dumps(line))
        else:
            print(f"{view:<8} {speed:>8.0f} pictures/s with {options.workers} workers"
                  + (f", against {line['against_images_per_second']}: ratio {line['ratio']}" if ours[view] else ""))


if __name__ == "__main__":
    main()
