#!/usr/bin/env python3
"""Writes store.json beside this file: SELC, SELC+, DISC and DSOS on small fixed numbers, as reference for the tests.

Each is written out from the method's definition in float64, sample by sample where that is plainest, with gradients by autograd; beta
densities are SciPy's. Inputs are float32 numbers, so that both sides start from the same. Needs: pip install torch scipy
"""
import json
import math
from pathlib import Path

import numpy as np
import torch
from scipy.stats import beta

torch.manual_seed(23)
torch.set_num_threads(1)


def normal(*shape, scale=1.0):
    """Random numbers that a float32 holds exactly, in float64."""
    return (torch.randn(*shape) * scale).double()


def flat(values):
    values = values.detach() if isinstance(values, torch.Tensor) else torch.tensor(values, dtype=torch.float64)
    return [float(f"{value:.12g}") for value in values.double().flatten().tolist()]


def single(x):
    """As a float32 has it."""
    return float(torch.tensor(x))


def selc(rows=5, classes=4, alpha=0.9, updates=3):
    """A running mean that begins at the label, updated some times; the last prediction has the gradient."""
    y = torch.randint(0, classes, (rows,))
    logits = [normal(rows, classes, scale=2.0) for _ in range(updates)]
    last = logits[-1].requires_grad_()
    t = torch.zeros(rows, classes, dtype=torch.float64)
    for i in range(rows):
        t[i, y[i]] = 1
    for z in logits:
        t = alpha * t + (1 - alpha) * z.softmax(1).detach()
    value = torch.stack([-(t[i] * last[i].log_softmax(0)).sum() for i in range(rows)]).mean()
    value.backward()
    return {"rows": rows, "classes": classes, "alpha": alpha, "y": y.tolist(), "logits": [flat(z) for z in logits],
            "targets": flat(t), "value": value.item(), "gradient": flat(last.grad)}


def selc_plus(rows=6, width=5, classes=4, weight=0.31):
    """Two cross-entropies of one mixed batch, weighed; the network is x -> W x."""
    net, x, y = normal(classes, width).requires_grad_(), normal(rows, width), torch.randint(0, classes, (rows,))
    partner, weight = torch.randperm(rows), single(weight)
    z = (weight * x + (1 - weight) * x[partner]) @ net.T
    ce = torch.nn.functional.cross_entropy
    value = weight * ce(z, y) + (1 - weight) * ce(z, y[partner])
    value.backward()
    return {"rows": rows, "width": width, "classes": classes, "weight": weight, "net": flat(net), "x": flat(x),
            "y": y.tolist(), "partner": partner.tolist(), "value": value.item(), "gradient": flat(net.grad)}


def disc(rows=12, width=5, classes=4, q=0.7, lambda_h=0.6, margin=0.2, cap=0.99, keep=0.9):
    """A batch that is all there is: seen once, sorted, thresholds moved, then learnt; the network is x -> W x."""
    weak, strong = normal(rows, width), normal(rows, width)
    y = torch.randint(0, classes, (rows,))
    before = normal(classes, width, scale=0.8)
    thresholds = [(torch.rand(rows) * 0.4 + 0.1).double() for _ in range(2)]
    p = [(x @ before.T).softmax(1) for x in (weak, strong)]
    sets, labels = [], []
    for i in range(rows):
        trusted = [float(p[v][i, y[i]]) > float(thresholds[v][i]) for v in range(2)]
        mean, threshold = (p[0][i] + p[1][i]) / 2, float(thresholds[0][i] + thresholds[1][i]) / 2
        if all(trusted):
            kind, label = "clean", int(y[i])
        elif any(trusted):
            kind, label = "hard", int(y[i])
        elif float(mean.max()) > min(threshold + margin, cap):
            kind, label = "corrected", int(mean.argmax())
        else:
            kind, label = "left", None
        sets.append(kind)
        labels.append(label)
    assert {"clean", "hard", "corrected", "left"} == set(sets), sets
    moved = [keep * t + (1 - keep) * p[v].max(1).values for v, t in enumerate(thresholds)]
    chosen = [i for i in range(rows) if labels[i] is not None]
    wanted = torch.zeros(len(chosen), classes, dtype=torch.float64)
    for at, i in enumerate(chosen):
        wanted[at, labels[i]] = 1
    net = normal(classes, width).requires_grad_()
    value = 0
    mixes = []
    for x, weight in ((weak, single(0.8)), (strong, single(0.65))):
        logs = (x @ net.T).log_softmax(1)
        clean = [-logs[i, y[i]] for i in range(rows) if sets[i] == "clean"]
        hard = [(1 - logs[i, y[i]].exp() ** q) / q for i in range(rows) if sets[i] == "hard"]
        value = value + len(clean) / rows * torch.stack(clean).mean()
        value = value + lambda_h * len(hard) / rows * torch.stack(hard).mean()
        partner = torch.randperm(len(chosen))
        among = x[chosen]
        mixed = (weight * among + (1 - weight) * among[partner]) @ net.T
        target = weight * wanted + (1 - weight) * wanted[partner]
        value = value - (target * mixed.log_softmax(1)).sum(1).mean()
        mixes.append({"weight": weight, "partner": partner.tolist()})
    value.backward()
    return {"rows": rows, "width": width, "classes": classes, "q": q, "lambda_h": lambda_h, "margin": margin, "cap": cap,
            "keep": keep, "weak": flat(weak), "strong": flat(strong), "y": y.tolist(), "seen_weak": flat(p[0]),
            "seen_strong": flat(p[1]), "threshold_weak": flat(thresholds[0]), "threshold_strong": flat(thresholds[1]),
            "sets": sets, "labels": [labels[i] for i in chosen], "moved_weak": flat(moved[0]), "moved_strong": flat(moved[1]),
            "net": flat(net), "mixes": mixes, "value": value.item(), "gradient": flat(net.grad)}


def posteriors(x, weights, a, b):
    """Of both components, by their log densities."""
    logs = np.log(weights)[:, None] + np.stack([beta.logpdf(x, a[k], b[k]) for k in range(2)])
    parts = np.exp(logs - logs.max(0))
    return parts / parts.sum(0)


def beta_mixture(x, rounds=100):
    weights, a, b = np.array([0.5, 0.5]), np.array([1.0, 2.0]), np.array([3.0, 2.0])
    for _ in range(rounds):
        r = posteriors(x, weights, a, b)
        m = (r * x).sum(1) / r.sum(1)
        v = (r * (x - m[:, None]) ** 2).sum(1) / r.sum(1)
        a = m * (m * (1 - m) / v - 1)
        b = a * (1 - m) / m
        weights = r.sum(1) / r.sum()
    return weights, a, b


def mixtures():
    """Separate, overlapping and lopsided values; every one has its components in the order they began in."""
    draw = np.random.default_rng(5)
    found = []
    for first, second, share in (((2, 9), (9, 2), 0.5), ((2, 5), (4, 3), 0.7), ((1.5, 12), (6, 6), 0.25)):
        count = 160
        n = int(share * count)
        x = np.concatenate([draw.beta(*first, n), draw.beta(*second, count - n)])
        x = np.clip(x, 1e-4, 1 - 1e-4)
        weights, a, b = beta_mixture(x)
        assert a[0] / (a[0] + b[0]) < a[1] / (a[1] + b[1])
        at = np.array([0.02, 0.2, 0.4, 0.6, 0.9])
        found.append({"x": flat(x), "weights": flat(weights), "alphas": flat(a), "betas": flat(b), "at": flat(at),
                      "first": flat(posteriors(at, weights, a, b)[0])})
    return found


def dsos(rows=40, batch=6, width=5, classes=4, a=0.05, lambda_h=0.4, weight=0.72):
    """Entropies of all samples, groups, softened labels; then the loss of a mixed batch; the network is x -> W x."""
    x, y = normal(rows, width, scale=1.5), torch.randint(0, classes, (rows,))
    # Sure of something, at random, or of nothing.
    logits = normal(rows, classes, scale=1.0)
    logits[: rows // 2, :] *= 6
    logits[rows // 2:, :] *= 0.4
    p = logits.float().softmax(1).double()
    onehot = torch.nn.functional.one_hot(y, classes).double()
    e = -(((p + onehot) / 2) ** 2).sum(1).log()
    doubtful = (e >= math.log(2)).numpy()
    u = e.numpy()[doubtful]
    u = np.clip((u - u.min()) / (u.max() - u.min()), 1e-4, 1 - 1e-4)
    weights, shape_a, shape_b = beta_mixture(u)
    mean = shape_a / (shape_a + shape_b)
    order = np.argsort(mean)
    mode = (shape_a - 1) / (shape_a + shape_b - 2)
    r = posteriors(u, weights, shape_a, shape_b)
    known, unknown = np.zeros(rows), np.zeros(rows)
    speaks = [-0.1 < mode[k] < 1.1 for k in order]
    known[doubtful] = r[order[0]] if speaks[0] else u < 0.5
    unknown[doubtful] = r[order[1]] if speaks[1] else u
    assert (known > 0.9).any() and (unknown > 0.5).any() and not doubtful.all()
    targets = torch.zeros(rows, classes, dtype=torch.float64)
    for i in range(rows):
        label = int(p[i].argmax()) if known[i] > 0.9 else int(y[i])
        raised = torch.zeros(classes, dtype=torch.float64)
        raised[label] = (1 - unknown[i]) / a
        targets[i] = raised.softmax(0)
    some = torch.arange(batch) * 5
    net, partner, weight = normal(classes, width).requires_grad_(), torch.randperm(batch), single(weight)
    mixed = (weight * x[some] + (1 - weight) * x[some][partner]) @ net.T
    target = weight * targets[some] + (1 - weight) * targets[some][partner]
    logs = mixed.log_softmax(1)
    value = -(target * logs).sum(1).mean() - lambda_h * (logs.exp() * logs).sum(1).mean()
    value.backward()
    return {"rows": rows, "batch": batch, "width": width, "classes": classes, "a": a, "lambda_h": lambda_h, "weight": weight,
            "p": flat(p), "y": y.tolist(), "entropies": flat(e), "known": flat(known), "unknown": flat(unknown),
            "targets": flat(targets), "x": flat(x[some]), "some": some.tolist(), "net": flat(net), "partner": partner.tolist(),
            "speaks": [bool(s) for s in speaks], "value": value.item(), "gradient": flat(net.grad)}


result = {"selc": selc(), "selc_plus": selc_plus(), "disc": disc(), "mixtures": mixtures(), "dsos": dsos()}
lines = ",\n".join(f"{json.dumps(name)}: {json.dumps(value)}" for name, value in result.items())
(Path(__file__).parent / "store.json").write_text("{" + lines + "}\n")
