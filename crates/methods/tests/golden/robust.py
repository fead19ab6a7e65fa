#!/usr/bin/env python3
"""Writes robust.json beside this file: methods that are a loss, on small fixed numbers, as reference for the tests.

Each is written out from the method's definition, sample by sample, in double precision. Gradients are complex steps: the imaginary part
of f(z + ih) / h, exact to the last digits for a tiny h. Inputs are numbers that a float32 holds. Needs nothing but Python.
"""
import cmath
import json
import random
import struct
from pathlib import Path

draw = random.Random(29)


def single(x):
    """As a float32 has it."""
    return struct.unpack("f", struct.pack("f", x))[0]


def normal(rows, classes, scale):
    return [[single(draw.gauss(0, scale)) for _ in range(classes)] for _ in range(rows)]


def softmax(z):
    parts = [cmath.exp(x) for x in z]
    return [part / sum(parts) for part in parts]


def flat(rows):
    return [x for row in rows for x in row]


def gradient(loss, z, h=1e-30):
    """Of a loss of rows of logits."""
    found = []
    for i, row in enumerate(z):
        for c in range(len(row)):
            moved = [list(row) for row in z]
            moved[i][c] += 1j * h
            found.append((loss(moved) / h).imag)
    return found


def gce(rows=6, classes=4, q=0.7, k=0.5):
    """The network that judged who is kept is another than the one that learns."""
    y = [draw.randrange(classes) for _ in range(rows)]
    judged, z = normal(rows, classes, 2.0), normal(rows, classes, 2.0)
    kept = [float(softmax(judged[i])[y[i]].real > k) for i in range(rows)]
    assert 0 < sum(kept) < rows

    def loss(z):
        total = 0
        for i in range(rows):
            p = softmax(z[i])[y[i]] if kept[i] else k
            total += (1 - p ** q) / q
        return total / rows

    return {"classes": classes, "q": q, "k": k, "y": y, "kept": kept, "logits": flat(z), "value": loss(z).real,
            "gradient": gradient(loss, z)}


result = {"gce": gce()}
lines = ",\n".join(f"{json.dumps(name)}: {json.dumps(value)}" for name, value in result.items())
(Path(__file__).parent / "robust.json").write_text("{" + lines + "}\n")
