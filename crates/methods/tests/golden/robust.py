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


def elr(rows=5, classes=4, beta=0.7, updates=3):
    """Running targets that begin at nothing, updated some times; the last prediction has the gradient, the targets have none."""
    logits = [normal(rows, classes, 2.0) for _ in range(updates)]
    logits[-1][0] = [12.0, -3.0, 0.5, 1.0]  # surer than it is let be

    def predict(z):
        return [1e-4 if p.real < 1e-4 else 1 - 1e-4 if p.real > 1 - 1e-4 else p for p in softmax(z)]

    t = [[0.0] * classes for _ in range(rows)]
    for z in logits:
        for i in range(rows):
            p = [x.real for x in predict(z[i])]
            t[i] = [beta * t[i][c] + (1 - beta) * p[c] / sum(p) for c in range(classes)]

    def loss(z):
        total = 0
        for i in range(rows):
            p = predict(z[i])
            total += cmath.log(1 - sum(p[c] * t[i][c] for c in range(classes)))
        return total / rows

    return {"classes": classes, "beta": beta, "logits": [flat(z) for z in logits], "targets": flat(t),
            "value": loss(logits[-1]).real, "gradient": gradient(loss, logits[-1])}


result = {"gce": gce(), "elr": elr()}
lines = ",\n".join(f"{json.dumps(name)}: {json.dumps(value)}" for name, value in result.items())
(Path(__file__).parent / "robust.json").write_text("{" + lines + "}\n")
