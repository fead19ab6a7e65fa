#!/usr/bin/env python3
"""Writes pairs.json beside this file: the two losses of Co-learning and the two of DMLP's purifier with their gradients.

Each is written out from the method's definition on small fixed tensors, in float64, with gradients by autograd. The inputs
are float32 numbers, so that both sides start from the same. Needs: pip install torch
"""
import json
from pathlib import Path

import torch

torch.manual_seed(23)
torch.set_num_threads(1)


def normal(*shape, scale=1.0):
    """Random numbers that a float32 holds exactly, in float64."""
    return (torch.randn(*shape) * scale).double()


def flat(tensor):
    return [float(f"{value:.12g}") for value in tensor.detach().flatten().tolist()]


def onehot(labels, classes):
    return torch.nn.functional.one_hot(labels, classes).double()


def prior(p):
    mean = p.mean(0)
    uniform = torch.full_like(mean, 1 / len(mean))
    return (uniform * (uniform / mean).log()).sum()


def structure(rows=6, size=4, classes=3):
    """Pairs close in the projection shall be close in the logits, by either kernel."""
    g, z = normal(rows, size, scale=0.5), normal(rows, classes, scale=0.7)
    away = ~torch.eye(rows, dtype=torch.bool)

    def value(kernel, z):
        near = lambda x: kernel(((x[:, None] - x[None]) ** 2).sum(2).where(away, torch.tensor(1e-12).double()))
        return -(near(g) * (near(z) + 1e-12).log()).mean()

    out = {"rows": rows, "size": size, "classes": classes, "g": flat(g), "z": flat(z), "kernels": []}
    for freedom in [0.0, 2.5]:
        kernel = (lambda d: (1 + d ** 2 / freedom) ** (-(freedom + 1) / 2)) if freedom else (lambda d: (-d).exp())
        leaf = z.clone().requires_grad_()
        loss = value(kernel, leaf)
        loss.backward()
        out["kernels"].append({"freedom": freedom, "value": loss.item(), "gradient": flat(leaf.grad)})
    return out


def co_learning(rows=5, width=4, size=3, classes=3, temperature=0.5, weight=0.37):
    """Cross-entropy of mixed samples under both labels, and NT-Xent of two views; classifier and projection are linear."""
    x, a, b = (normal(rows, width) for _ in range(3))
    classifier, projection = normal(classes, width).requires_grad_(), normal(size, width).requires_grad_()
    y, partner = torch.randint(0, classes, (rows,)), torch.randperm(rows)
    mixed = weight * x + (1 - weight) * x[partner]
    logs = (mixed @ classifier.T).log_softmax(1)
    fit = -(weight * logs[range(rows), y] + (1 - weight) * logs[range(rows), y[partner]]).mean()
    z = torch.nn.functional.normalize(torch.cat([a, b]) @ projection.T, dim=1)
    similar = (z @ z.T / temperature).exp()
    total = similar.sum(1) - similar.diagonal()
    mates = torch.cat([torch.arange(rows) + rows, torch.arange(rows)])
    contrast = -(similar[range(2 * rows), mates] / total).log().mean()
    value = fit + contrast
    value.backward()
    return {"rows": rows, "width": width, "size": size, "classes": classes, "temperature": temperature, "weight": weight,
            "x": flat(x), "a": flat(a), "b": flat(b), "classifier": flat(classifier), "projection": flat(projection),
            "y": y.tolist(), "partner": partner.tolist(), "value": value.item(),
            "classifier_gradient": flat(classifier.grad), "projection_gradient": flat(projection.grad)}


def labels(rows=9, judged=5, dim=4, classes=3, ridge=1e-2):
    """The closed-form classifier of a block's labels, judged by true ones; gradient for the labels, through the inverse."""
    x, v = normal(rows, dim), normal(judged, dim)
    y, truth = normal(rows, classes).requires_grad_(), torch.randint(0, classes, (judged,))
    moment = x.T @ x
    w = torch.linalg.inv(moment + ridge * moment.trace() / dim * torch.eye(dim).double()) @ x.T @ y
    s = v @ w
    value = torch.nn.functional.cross_entropy(s, truth) + ((s - onehot(truth, classes)) ** 2).sum() + prior((x @ w).softmax(1))
    value.backward()
    return {"rows": rows, "judged": judged, "dim": dim, "classes": classes, "ridge": ridge, "x": flat(x), "v": flat(v),
            "y": flat(y), "truth": truth.tolist(), "w": flat(w), "value": value.item(), "gradient": flat(y.grad)}


def reader(rows=6, classes=4, confidence=0.4, weight=2200.0):
    """The linear classifier's loss on its scores, with a softmax of the softmax and without."""
    scores, y = normal(rows, classes, scale=2.0), torch.randint(0, classes, (rows,))
    out = {"classes": classes, "scores": flat(scores), "y": y.tolist(), "forms": []}
    for double, weight in [(True, weight), (False, 1.5)]:
        leaf = scores.clone().requires_grad_()
        said = leaf.softmax(1)
        logits = said if double else leaf
        s = logits.softmax(1)
        last = s.softmax(1) if double else s
        value = (torch.nn.functional.cross_entropy(logits, y) + confidence * (s * s.log()).sum(1).mean()
                 + weight * prior(last))
        value.backward()
        out["forms"].append({"double": double, "confidence": confidence, "prior": weight, "value": value.item(),
                             "gradient": flat(leaf.grad)})
    return out


if __name__ == "__main__":
    golden = {"structure": structure(), "co_learning": co_learning(), "labels": labels(), "reader": reader()}
    Path(__file__).with_suffix(".json").write_text(json.dumps(golden) + "\n")
