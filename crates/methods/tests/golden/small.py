#!/usr/bin/env python3
"""Writes small.json beside this file: what Co-teaching, JoCoR and NCT minimise on a batch, as reference for the tests.

Each is written out from the method's definition on small fixed tensors, in float64, with gradients by autograd. The inputs
are float32 numbers, so that both sides start from the same. Networks are x -> W x. Needs: pip install numpy torch
"""
import json
import math
from pathlib import Path

import numpy as np
import torch

torch.manual_seed(5)
torch.set_num_threads(1)
CE = torch.nn.functional.cross_entropy


def normal(*shape, scale=1.0):
    """Random numbers that a float32 holds exactly, in float64."""
    return (torch.randn(*shape) * scale).double()


def flat(tensor):
    return [float(f"{value:.12g}") for value in tensor.detach().flatten().tolist()]


def ramp(rate=0.45, points=10, epochs=14):
    """Forget rates of the authors' code: a line of `points` numbers from 0 to the rate, then the rate."""
    schedule = np.ones(epochs) * rate
    schedule[:points] = np.linspace(0, rate, points)
    return {"rate": rate, "points": points, "rates": schedule.tolist()}


def batch(rows, width, classes):
    nets = [normal(classes, width).requires_grad_() for _ in range(2)]
    return nets, normal(rows, width, scale=1.5), torch.randint(0, classes, (rows,))


def told(nets, x, y, **more):
    return {"rows": len(y), "width": x.shape[1], "classes": len(nets[0]), "a": flat(nets[0]), "b": flat(nets[1]),
            "x": flat(x), "y": y.tolist(), **more}


def co_teaching(rows=13, width=5, classes=4, forget=0.3):
    """Each network learns from the samples of smallest loss of the other."""
    nets, x, y = batch(rows, width, classes)
    losses = [CE(x @ net.T, y, reduction="none") for net in nets]
    count = math.floor((1 - forget) * rows)
    small = [np.argsort(loss.detach().numpy())[:count] for loss in losses]
    assert set(small[0]) != set(small[1])
    values = [losses[0][small[1]].mean(), losses[1][small[0]].mean()]
    (values[0] + values[1]).backward()
    return told(nets, x, y, forget=forget, values=[value.item() for value in values],
                gradients=[flat(net.grad) for net in nets])


def jocor(rows=13, width=5, classes=4, forget=0.4, weight=0.85):
    """One loss for both networks: cross-entropies and the two divergences, on the samples where it is smallest."""
    nets, x, y = batch(rows, width, classes)
    logs = [(x @ net.T).log_softmax(1) for net in nets]
    kl = torch.nn.functional.kl_div
    apart = sum(kl(logs[i], logs[1 - i], reduction="none", log_target=True).sum(1) for i in range(2))
    fit = sum(-log[torch.arange(rows), y] for log in logs)
    losses = (1 - weight) * fit + weight * apart
    count = math.floor((1 - forget) * rows)
    small = np.argsort(losses.detach().numpy())[:count]
    value = losses[small].mean()
    value.backward()
    return told(nets, x, y, forget=forget, weight=weight, losses=flat(losses), value=value.item(),
                gradients=[flat(net.grad) for net in nets])


def nct(rows=12, width=6, classes=4, forget=0.35, judged=(4, 2), drawn=3):
    """Halves of a batch, chosen from by one network with its own first channels, learnt from by the other with those drawn."""
    nets, x, y = batch(rows, width, classes)

    def masked(features, kept):
        return features * (torch.arange(width) < kept)

    half = rows // 2
    count = math.floor((1 - forget) * half)
    chosen = []
    for net, kept, part in zip(nets, judged, (slice(0, half), slice(half, rows))):
        with torch.no_grad():
            losses = CE(masked(x[part], kept) @ net.T, y[part], reduction="none").numpy()
        chosen.append(np.arange(rows)[part][np.argsort(losses)[:count]])
    values = [CE(masked(x[rows_], drawn) @ net.T, y[rows_]) for net, rows_ in zip(nets, chosen[::-1])]
    (values[0] + values[1]).backward()
    assert all((net.grad[:, drawn:] == 0).all() for net in nets)
    # Which of the first channels tell the labels best, by one network, with a bias.
    bias = normal(classes)
    labels = (masked(x, 4) @ nets[0].T + bias).argmax(1)
    labels[:3] = (labels[:3] + 1) % classes
    right = [int(((masked(x, k) @ nets[0].T + bias).argmax(1) == labels).sum()) for k in range(1, width + 1)]
    worth = [n / rows - 1e-5 * k for k, n in enumerate(right, 1)]
    sigma = 2.5
    law = np.exp(-((np.arange(1, width + 1) / sigma) ** 2))
    return told(nets, x, y, forget=forget, judged=list(judged), drawn=drawn, chosen=[c.tolist() for c in chosen],
                values=[value.item() for value in values], gradients=[flat(net.grad) for net in nets],
                bias=flat(bias), labels=labels.tolist(), right=right, best=int(np.argmax(worth)) + 1, sigma=sigma, law=(law / law.sum()).tolist())


result = {"ramp": ramp(), "co_teaching": co_teaching(), "jocor": jocor(), "nct": nct()}
lines = ",\n".join(f"{json.dumps(name)}: {json.dumps(part)}" for name, part in result.items())
(Path(__file__).parent / "small.json").write_text("{" + lines + "}\n")
