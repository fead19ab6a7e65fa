#!/usr/bin/env python3
"""Writes losses.json beside this file: the objectives of three methods with their gradients, as reference for the tests.

Each is written out from the method's definition on small fixed tensors, in float64, with gradients by autograd. The inputs
are float32 numbers, so that both sides start from the same. Needs: pip install torch
"""
import json
from pathlib import Path

import torch

torch.manual_seed(11)
torch.set_num_threads(1)


def normal(*shape, scale=1.0):
    """Random numbers that a float32 holds exactly, in float64."""
    return (torch.randn(*shape) * scale).double()


def unit(count):
    return torch.rand(count).double()


def flat(tensor):
    return [float(f"{value:.12g}") for value in tensor.detach().flatten().tolist()]


def onehot(labels, classes):
    return torch.nn.functional.one_hot(labels, classes).double()


def soft_ce(logits, targets):
    return -(targets * logits.log_softmax(1)).sum(1).mean()


def prior(logits):
    mean = logits.softmax(1).mean(0)
    uniform = torch.full_like(mean, 1 / len(mean))
    return (uniform * (uniform / mean).log()).sum()


def rolr(rows=6, classes=4, exponent=2.0, lambda_p=2.0):
    """Soft targets from the mean of two weak predictions, cross-entropy of the strong view, uniform prior."""
    weak_a, weak_b, strong = (normal(rows, classes, scale=2.0) for _ in range(3))
    y, w = torch.randint(0, classes, (rows,)), unit(rows)
    strong.requires_grad_()
    q = (weak_a.softmax(1) + weak_b.softmax(1)) / 2
    q = q ** exponent
    q = q / q.sum(1, keepdim=True)
    target = w[:, None] * onehot(y, classes) + (1 - w[:, None]) * q
    value = soft_ce(strong, target) + lambda_p * prior(strong)
    value.backward()
    return {"rows": rows, "classes": classes, "exponent": exponent, "lambda_p": lambda_p, "weak_a": flat(weak_a),
            "weak_b": flat(weak_b), "strong": flat(strong), "y": y.tolist(), "w": flat(w), "target": flat(target),
            "value": value.item(), "gradient": flat(strong.grad)}


def dividemix(labelled=4, unlabelled=3, width=5, classes=4, temperature=0.5, weight=0.71, lambda_u=25.0, epoch=13.25, warm_up=10):
    """Guess, refine, sharpen, mix, then cross-entropy, squared error and prior; the networks are x -> W x."""
    own, peer = (normal(classes, width) for _ in range(2))
    x1, x2 = normal(labelled, width), normal(labelled, width)
    u1, u2 = normal(unlabelled, width), normal(unlabelled, width)
    y, w = torch.randint(0, classes, (labelled,)), unit(labelled)
    partner = torch.randperm(2 * (labelled + unlabelled))
    weight = float(torch.tensor(weight))  # as a float32 has it
    own.requires_grad_()

    def sharp(p):
        p = p ** (1 / temperature)
        return p / p.sum(1, keepdim=True)

    with torch.no_grad():
        q = sharp(sum((u @ net.T).softmax(1) for net in (own, peer) for u in (u1, u2)) / 4)
        r = w[:, None] * onehot(y, classes) + (1 - w[:, None]) * ((x1 @ own.T).softmax(1) + (x2 @ own.T).softmax(1)) / 2
        r = sharp(r)
        inputs, targets = torch.cat([x1, x2, u1, u2]), torch.cat([r, r, q, q])
        inputs = weight * inputs + (1 - weight) * inputs[partner]
        targets = weight * targets + (1 - weight) * targets[partner]
    logits = inputs @ own.T
    first = 2 * labelled
    l_x = soft_ce(logits[:first], targets[:first])
    l_u = ((logits[first:].softmax(1) - targets[first:]) ** 2).mean()
    value = l_x + lambda_u * min(max((epoch - warm_up) / 16, 0), 1) * l_u + prior(logits)
    value.backward()
    return {"labelled": labelled, "unlabelled": unlabelled, "width": width, "classes": classes, "temperature": temperature,
            "weight": weight, "lambda_u": lambda_u, "epoch": epoch, "warm_up": warm_up, "own": flat(own), "peer": flat(peer),
            "x1": flat(x1), "x2": flat(x2), "u1": flat(u1), "u2": flat(u2), "y": y.tolist(), "w": flat(w),
            "partner": partner.tolist(), "targets": flat(targets), "value": value.item(), "gradient": flat(own.grad)}


def anne(rows=8, width=5, classes=4, all_rows=6, size=3, weight=0.63, lambda_fc=1.5):
    """Cross-entropy on mixed rows plus the negative cosine of predictions to projections that are held fixed."""
    net, x, y = normal(classes, width), normal(rows, width), torch.randint(0, classes, (rows,))
    projected, predicted = normal(all_rows, size), normal(all_rows, size)
    partner, weight = torch.randperm(rows), float(torch.tensor(weight))
    net.requires_grad_()
    projected.requires_grad_()
    predicted.requires_grad_()
    target = onehot(y, classes)
    mixed = weight * x + (1 - weight) * x[partner]
    target = weight * target + (1 - weight) * target[partner]
    cosine = torch.nn.functional.cosine_similarity(predicted, projected.detach(), dim=1)
    value = soft_ce(mixed @ net.T, target) - lambda_fc * cosine.mean()
    value.backward()
    assert projected.grad is None
    return {"rows": rows, "width": width, "classes": classes, "all_rows": all_rows, "size": size, "weight": weight,
            "lambda_fc": lambda_fc, "net": flat(net), "x": flat(x), "y": y.tolist(), "partner": partner.tolist(),
            "projected": flat(projected), "predicted": flat(predicted), "value": value.item(),
            "net_gradient": flat(net.grad), "predicted_gradient": flat(predicted.grad)}


result = {"rolr": rolr(), "dividemix": dividemix(), "anne": anne()}
text = json.dumps(result).replace('"dividemix"', '\n"dividemix"').replace('"anne"', '\n"anne"')
(Path(__file__).parent / "losses.json").write_text(text + "\n")
