#!/usr/bin/env python3
"""Write what Pillow makes of small pictures, for the test `views_golden` to compare with, byte by byte.

Usage (needs: pip install pillow numpy; the stored files were made with Pillow 13.0.0)
  python views.py                       views.json and views.bin beside this script
  python views.py --many 300 --out DIR  as many random values per operation and picture, for a test run with
                                        NEGSCALE_GOLDEN_VIEWS=DIR

views.json: {"pillow": version, "pictures": {name: [width, height, channels]}, "cases": [...]}. views.bin: the pictures in
that order, then the result of each case, row by row, channels side by side. A case is [picture, operation, values, edge],
values being text so that no reader of JSON can round them; edge is "strong" (black, nearest) or "autoaugment" (grey 128,
bicubic shear). For "stretch" and "cover" the values are width and height; "cover" takes the largest middle part
of those proportions.

Pillow defines every operation but Cutout, which is computed with numpy; its rectangle is also drawn with Pillow's ImageDraw and
both must agree. AutoAugment's rotation over grey is done as its users write it: through an alpha channel.
"""
import argparse
import json
import math
import random
from pathlib import Path

import numpy as np
import PIL
from PIL import Image, ImageDraw, ImageEnhance, ImageOps

CUTOUT = (125, 123, 114)


def pictures():
    """Noise holds every level; the smooth one has ties, empty levels and edges; the grey one is not square."""
    rng = np.random.default_rng(20)
    y, x = np.mgrid[0:32, 0:32]
    smooth = np.stack([
        60 + 3 * x + y,
        128 + 90 * np.sin(x / 5) * np.cos(y / 7),
        np.where((x - 12) ** 2 + (y - 18) ** 2 < 70, 220, 35),
    ], -1)
    y, x = np.mgrid[0:20, 0:28]
    grey = 30 + 4 * x + 3 * y + rng.integers(0, 20, (20, 28))
    return {
        "noise": Image.fromarray(rng.integers(0, 256, (32, 32, 3), dtype=np.uint8)),
        "smooth": Image.fromarray(smooth.clip(0, 255).astype(np.uint8)),
        "grey": Image.fromarray(grey.clip(0, 255).astype(np.uint8)),
    }


def cutout(image, side, cx, cy):
    pixels = np.array(image)
    height, width = pixels.shape[:2]
    x0, y0 = math.trunc(max(0, cx - side / 2)), math.trunc(max(0, cy - side / 2))
    x1, y1 = min(width, x0 + side), min(height, y0 + side)
    pixels[y0:math.floor(y1) + 1, x0:math.floor(x1) + 1] = CUTOUT if image.mode == "RGB" else 123
    drawn = image.copy()
    ImageDraw.Draw(drawn).rectangle((x0, y0, x1, y1), CUTOUT if image.mode == "RGB" else 123)
    assert (np.array(drawn) == pixels).all(), ("Pillow's rectangle differs", side, cx, cy)
    return Image.fromarray(pixels)


def affine(image, matrix, edge, smooth=False):
    grey = edge == "autoaugment"
    fill = ((128,) * 3 if image.mode == "RGB" else 128) if grey else None
    how = Image.Resampling.BICUBIC if smooth and grey else Image.Resampling.NEAREST
    return image.transform(image.size, Image.Transform.AFFINE, matrix, how, fillcolor=fill)


def rotate(image, degrees, edge):
    if edge == "strong":
        return image.rotate(degrees)
    if image.mode == "L":
        return image.rotate(degrees, fillcolor=128)
    turned = image.convert("RGBA").rotate(degrees)
    return Image.composite(turned, Image.new("RGBA", turned.size, (128,) * 4), turned).convert("RGB")


def perform(image, operation, v, edge):
    width, height = image.size
    if operation == "cutout":
        return cutout(image, *v)
    if operation == "stretch":
        return image.resize((int(v[0]), int(v[1])), Image.Resampling.BILINEAR)
    if operation == "cover":
        size = int(v[0]), int(v[1])
        scale = min(width / size[0], height / size[1])
        spare = [max(0, (old - new * scale) / 2) for old, new in zip(image.size, size)]
        kept = [min(old, (old + new * scale) / 2) for old, new in zip(image.size, size)]
        return image.resize(size, Image.Resampling.BILINEAR, box=(*spare, *kept))
    if operation == "to-grey":
        return image.convert("L")
    v = v[0] if v else None
    return {
        "identity": lambda: image,
        "autocontrast": lambda: ImageOps.autocontrast(image),
        "equalize": lambda: ImageOps.equalize(image),
        "invert": lambda: ImageOps.invert(image),
        "brightness": lambda: ImageEnhance.Brightness(image).enhance(v),
        "colour": lambda: ImageEnhance.Color(image).enhance(v),
        "contrast": lambda: ImageEnhance.Contrast(image).enhance(v),
        "sharpness": lambda: ImageEnhance.Sharpness(image).enhance(v),
        "posterize": lambda: ImageOps.posterize(image, int(v)),
        "solarize": lambda: ImageOps.solarize(image, v),
        "rotate": lambda: rotate(image, v, edge),
        "shear-x": lambda: affine(image, (1, v, 0, 0, 1, 0), edge, smooth=True),
        "shear-y": lambda: affine(image, (1, 0, 0, v, 1, 0), edge, smooth=True),
        "translate-x": lambda: affine(image, (1, 0, v * width, 0, 1, 0), edge),
        "translate-y": lambda: affine(image, (1, 0, 0, 0, 1, v * height), edge),
    }[operation]()


def chosen(image):
    """A few values of every operation: ends, the middle and one between."""
    width, height = image.size
    for operation in ("autocontrast", "equalize", "invert"):
        yield operation, [], "strong"
    for operation in ("brightness", "colour", "contrast", "sharpness"):
        for v in (0.05, 0.637, 1.6):
            yield operation, [v], "strong" if v < 1 else "autoaugment"
    for v in (4, 6):
        yield "posterize", [v], "strong"
    for v in (0.0, 101.5, 200.0):
        yield "solarize", [v], "strong"
    for v in (-30.0, 7.3, 22.9):
        yield "rotate", [v], "strong"
    yield "rotate", [20 / 3], "autoaugment"
    for operation in ("shear-x", "shear-y"):
        for v in (-0.3, 0.111):
            yield operation, [v], "strong"
        yield operation, [0.3 / 9 * 8], "autoaugment"
        yield operation, [-0.3 / 9 * 7], "autoaugment"
    for operation in ("translate-x", "translate-y"):
        yield operation, [-0.3], "strong"
        yield operation, [0.2031], "strong"
        yield operation, [150 / 331], "autoaugment"
    for v in ((0.4 * width, 0.1, 0.95 * height), (7.3, width / 2, 3.2), (0.2, width - 0.1, height - 0.1)):
        yield "cutout", list(v), "strong"
    yield "cover", [11, 9], "strong"
    yield "cover", [23, 37], "strong"
    yield "stretch", [20, 9], "strong"
    if image.mode == "RGB":
        yield "to-grey", [], "strong"


def at_random(image, many):
    width, height = image.size
    draw = random.Random(31)
    ranges = {
        "brightness": (0.05, 1.95), "colour": (0.05, 1.95), "contrast": (0.05, 1.95), "sharpness": (0.05, 1.95),
        "posterize": (4, 8.99), "solarize": (0, 256), "rotate": (-30, 30), "shear-x": (-0.3, 0.3),
        "shear-y": (-0.3, 0.3), "translate-x": (-0.46, 0.46), "translate-y": (-0.46, 0.46),
    }
    for _ in range(many):
        for operation, (low, high) in ranges.items():
            yield operation, [draw.uniform(low, high)], draw.choice(("strong", "autoaugment"))
        yield "cutout", [width * draw.uniform(0, 0.5), draw.uniform(0, width), draw.uniform(0, height)], "strong"
        yield "cover", [draw.randint(1, 60), draw.randint(1, 60)], "strong"
        yield "stretch", [draw.randint(1, 60), draw.randint(1, 60)], "strong"


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--many", type=int, default=0)
    parser.add_argument("--out", type=Path, default=Path(__file__).parent)
    options = parser.parse_args()
    images = pictures()
    if options.many:
        # Pictures that are not noise have few levels, which autocontrast and equalize must see many kinds of.
        rng = np.random.default_rng(3)
        for i in range(options.many):
            low, high = sorted(rng.integers(0, 256, 2))
            values = rng.integers(low, high + 1, (rng.integers(1, 40), rng.integers(1, 40), 3), dtype=np.uint8)
            images[f"few-{i}"] = Image.fromarray(values)
    cases, results = [], []
    for name, image in images.items():
        if name.startswith("few-"):
            values = [(o, [], "strong") for o in ("autocontrast", "equalize")]
            values += [(o, [rng.uniform(0.05, 1.95)], "strong") for o in ("contrast", "sharpness")]
            values += [("rotate", [rng.uniform(-30, 30)], "strong"), ("shear-y", [0.21], "autoaugment")]
        else:
            values = at_random(image, options.many) if options.many else chosen(image)
        for operation, v, edge in values:
            # The noise picture cannot be compressed and shows nothing new in most operations: fewer values.
            if not options.many and name == "noise" and operation in ("brightness", "posterize", "solarize", "cover", "stretch"):
                continue
            cases.append([name, operation, [repr(float(x)) for x in v], edge])
            results.append(perform(image, operation, v, edge))
    head = {
        "pillow": PIL.__version__,
        "pictures": {n: [*i.size, len(i.getbands())] for n, i in images.items()},
        "cases": cases,
    }
    data = b"".join(np.array(i).tobytes() for i in [*images.values(), *results])
    options.out.mkdir(parents=True, exist_ok=True)
    lines = ",\n".join(json.dumps(case) for case in head.pop("cases"))
    (options.out / "views.json").write_text(json.dumps(head)[:-1] + ', "cases": [\n' + lines + "\n]}\n")
    (options.out / "views.bin").write_bytes(data)
    print(f"{len(cases)} cases, {len(data)} bytes, Pillow {PIL.__version__}")


if __name__ == "__main__":
    main()
