#!/usr/bin/env python3
"""Writes semi.json beside this file: the objectives of UNICON, CrossSplit and CCL with their gradients, as reference for the tests.

Each is written out from the method's definition on small fixed tensors, in float64, with gradients by autograd. The inputs
are float32 numbers, so that both sides start from the same. A network is x -> A x = f -> W f, with the projection P f.
Needs: pip install torch
"""
import json
import math
from pathlib import Path

import torch

torch.manual_seed(1)
torch.set_num_threads(1)
LABELLED, UNLABELLED, WIDTH, FEATURES, CLASSES, PROJECTED = 5, 4, 6, 5, 3, 4


def normal(*shape, scale=1.0):
    """Random numbers that a float32 holds exactly, in float64."""
    return (torch.randn(*shape) * scale).double()


def single(value):
    """A number as a float32 has it."""
    return float(torch.tensor(value))


def flat(tensor):
    return [float(f"{value:.12g}") for value in tensor.detach().flatten().tolist()]


def onehot(labels):
    return torch.nn.functional.one_hot(labels, CLASSES).double()


def soft_ce(logits, targets):
    return -(targets * logits.log_softmax(1)).sum(1).mean()


def prior(logits):
    mean = logits.softmax(1).mean(0)
    return (1 / CLASSES * (1 / CLASSES / mean).log()).sum()


def sharp(p, temperature):
    p = p ** (1 / temperature)
    return p / p.sum(1, keepdim=True)


def jsd(p, q):
    """Sums over all classes, natural logarithms."""
    m = (p + q) / 2

    def kl(a):
        return torch.where(a > 0, a * (a / m).clamp_min(1e-300).log(), torch.zeros_like(a)).sum(1)

    return (kl(p) + kl(q)) / 2


def nt_xent(a, b, temperature):
    z = torch.nn.functional.normalize(torch.cat([a, b]), dim=1)
    s = z @ z.T / temperature
    total = 0
    for i in range(len(z)):
        others = [s[i, j] for j in range(len(z)) if j != i]
        total = total - s[i, (i + len(a)) % len(z)] + torch.logsumexp(torch.stack(others), 0)
    return total / len(z)


class Net:
    def __init__(self):
        self.a, self.w, self.p = normal(FEATURES, WIDTH), normal(CLASSES, FEATURES), normal(PROJECTED, FEATURES)

    def learn(self):
        for parameter in (self.a, self.w, self.p):
            parameter.requires_grad_()

    def says(self, x):
        return (x @ self.a.T @ self.w.T).softmax(1)

    def logits(self, x):
        return x @ self.a.T @ self.w.T

    def project(self, x):
        return x @ self.a.T @ self.p.T

    def numbers(self):
        return {"a": flat(self.a), "w": flat(self.w), "p": flat(self.p)}

    def gradients(self):
        zero = lambda x: torch.zeros_like(x) if x.grad is None else x.grad
        return {"a": flat(zero(self.a)), "w": flat(zero(self.w)), "p": flat(zero(self.p))}


def views():
    return [normal(LABELLED, WIDTH) for _ in range(4)], [normal(UNLABELLED, WIDTH) for _ in range(4)]


def contrasted(own, x, u, t_x, t_u, weight, partner, lambda_u, lambda_c, contrast_temperature):
    """What both methods learn on strong views."""
    inputs, targets = torch.cat([x[2], x[3], u[2], u[3]]), torch.cat([t_x, t_x, t_u, t_u])
    inputs = weight * inputs + (1 - weight) * inputs[partner]
    targets = weight * targets + (1 - weight) * targets[partner]
    logits = own.logits(inputs)
    first = 2 * LABELLED
    l_x = soft_ce(logits[:first], targets[:first])
    l_u = ((logits[first:].softmax(1) - targets[first:]) ** 2).mean()
    l_c = nt_xent(own.project(u[2]), own.project(u[3]), contrast_temperature)
    return targets, l_x + lambda_u * l_u + lambda_c * l_c + prior(logits)


def case(method):
    own, peer, (x, u) = Net(), Net(), views()
    y, plain = torch.randint(0, CLASSES, (LABELLED,)), normal(LABELLED, WIDTH)
    partner, weight = torch.randperm(2 * (LABELLED + UNLABELLED)), single(0.66)
    own.learn()
    given = {"own": own.numbers(), "peer": peer.numbers(), "x": [flat(v) for v in x], "u": [flat(v) for v in u],
             "y": y.tolist(), "plain": flat(plain), "partner": partner.tolist(), "weight": weight,
             "lambda_u": 12.0, "lambda_c": 0.025, "contrast_temperature": 0.05, "temperature": 0.5}
    with torch.no_grad():
        weights, t_x, t_u, more = method(own, peer, x, u, y, plain)
    targets, value = contrasted(own, x, u, t_x, t_u, weight, partner, 12.0, 0.025, 0.05)
    value.backward()
    return {**given, **more, "label_weights": flat(weights), "targets": flat(targets), "value": value.item(),
            "gradients": own.gradients()}


def unicon(own, peer, x, u, y, plain):
    d = jsd((own.says(plain) + peer.says(plain)) / 2, onehot(y)) / math.log(2)
    w = torch.where(d < 0.5, torch.ones_like(d), 1 - d)
    assert (d < 0.5).any() and (d > 0.5).any()
    said = (own.says(x[0]) + own.says(x[1])) / 2
    t_x = sharp(w[:, None] * onehot(y) + (1 - w[:, None]) * said, 0.5)
    t_u = sharp(sum(net.says(v) for net in (own, peer) for v in u[:2]) / 4, 0.5)
    return w, t_x, t_u, {}


def crosssplit(own, peer, x, u, y, plain, gamma=0.8):
    j = jsd(peer.says(plain), onehot(y))
    q = (peer.says(x[0]) + peer.says(x[1])) / 2
    d, beta = jsd(onehot(y), q), torch.zeros(LABELLED).double()
    for i in range(LABELLED):
        same = j[y == y[i]]
        low, high = same.min(), same.max()
        place = ((d[i] - low) / (high - low)).clamp(0, 1) if high > low else 0.0
        beta[i] = gamma * (place - 0.5) + 0.5
    assert len({round(b, 6) for b in beta.tolist()}) > 2
    t_x = sharp(beta[:, None] * q + (1 - beta[:, None]) * onehot(y), 0.5)
    t_u = sharp((own.says(u[0]) + own.says(u[1])) / 2, 0.5)
    return 1 - beta, t_x, t_u, {"gamma": gamma}


def ccl(rows=9, concepts=4, lambda_p=2.0, beta=(0.7, 1.3)):
    own, peer = Net(), Net()
    m, weak, strong = normal(concepts, PROJECTED), normal(rows, WIDTH), normal(rows, WIDTH)
    y, w = torch.randint(0, CLASSES, (rows,)), torch.rand(rows).double()
    own.learn()
    m.requires_grad_()
    with torch.no_grad():
        q = (own.says(weak) + peer.says(weak)) / 2
        t = w[:, None] * onehot(y) + (1 - w[:, None]) * q
        trusted, believed = w > 0.5, t.argmax(1)
        sure = trusted & (q.max(1).values > 0.5)
        keys = torch.nn.functional.normalize(peer.project(weak), dim=1)
    assert sure.sum() >= concepts and not sure.all() and not trusted.all()
    logits = own.logits(strong)
    base = soft_ce(logits, t) + lambda_p * prior(logits)
    g_w, g_s = (torch.nn.functional.normalize(own.project(v), dim=1) for v in (weak, strong))
    bank = torch.nn.functional.normalize(m, dim=1)
    r_w, r_s = ((g[sure] @ bank.T / 0.1).softmax(1) for g in (g_w, g_s))
    columns = [torch.nn.functional.normalize(r, dim=0) for r in (r_w, r_s)]
    views = 0
    for k in range(concepts):
        alike = torch.stack([columns[0][:, k] @ columns[1][:, l] for l in range(concepts)])
        views = views - (alike[k] - torch.logsumexp(alike, 0)) / concepts
    mean = r_w.mean(0)
    views = views + (mean * mean.log()).sum()
    models = 0
    for i in range(rows):
        s = g_s[i] @ keys.T / 0.3
        positive = [j for j in range(rows) if j == i or (trusted[i] and trusted[j] and believed[i] == believed[j])]
        models = models - sum(s[j] - torch.logsumexp(s, 0) for j in positive) / len(positive) / rows
    value = base + beta[0] * views + beta[1] * models
    value.backward()
    return {"own": own.numbers(), "peer": peer.numbers(), "concepts": flat(m), "weak": flat(weak), "strong": flat(strong),
            "y": y.tolist(), "clean": flat(w), "lambda_p": lambda_p, "beta": beta, "sure": sure.sum().item(),
            "views": views.item(), "models": models.item(), "value": value.item(), "gradients": own.gradients(),
            "concept_gradient": flat(m.grad)}


result = {"sizes": [LABELLED, UNLABELLED, WIDTH, FEATURES, CLASSES, PROJECTED], "unicon": case(unicon),
          "crosssplit": case(crosssplit), "ccl": ccl()}
text = json.dumps(result)
for name in ("unicon", "crosssplit", "ccl"):
    text = text.replace(f'"{name}"', f'\n"{name}"')
(Path(__file__).parent / "semi.json").write_text(text + "\n")
