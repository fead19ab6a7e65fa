#!/usr/bin/env python3
"""Writes optim.json beside this file: what PyTorch's optimisers and schedulers do, as reference for the tests.

Problem: softmax regression, 12 samples, 5 features, 3 classes, weight and bias, float32, 20 steps. Needs: pip install torch
"""
import json
from pathlib import Path

import torch
from torch.nn import functional as F

STEPS = 20
torch.manual_seed(7)
torch.set_num_threads(1)
X, Y = torch.randn(12, 5), torch.randint(0, 3, (12,))
W, B = torch.randn(3, 5) * 0.5, torch.randn(3) * 0.5

SGD = {"kind": "sgd", "lr": 0.1, "momentum": 0.0, "nesterov": False, "weight_decay": 0.0, "decay_norms": True}
ADAM = {"kind": "adam", "lr": 0.01, "beta1": 0.9, "beta2": 0.999, "epsilon": 1e-8, "weight_decay": 0.0, "decay_norms": True}
CASES = {
    "plain": SGD,
    "plain with weight decay": SGD | {"weight_decay": 0.05},
    "momentum": SGD | {"momentum": 0.9},
    "nesterov": SGD | {"momentum": 0.9, "nesterov": True},
    "momentum with weight decay": SGD | {"momentum": 0.9, "weight_decay": 0.05},
    "nesterov with weight decay, not of the bias": SGD | {
        "momentum": 0.9, "nesterov": True, "weight_decay": 0.05, "decay_norms": False},
    "adam": ADAM,
    "adam with weight decay": ADAM | {"weight_decay": 0.1},
    "adam, beta1 drops to 0.1": ADAM | {"switch": 8},
    "adam with other betas": ADAM | {"beta1": 0.5, "beta2": 0.99, "epsilon": 1e-4, "weight_decay": 3e-4},
    "adamw": ADAM | {"kind": "adam-w", "weight_decay": 0.5},
    "adamw, not of the bias": ADAM | {"kind": "adam-w", "weight_decay": 0.5, "decay_norms": False},
}


def short(tensor):
    """The numbers of a tensor with the nine digits that tell every float32 apart."""
    return [float(f"{value:.9g}") for value in tensor.detach().flatten().tolist()]


def optimiser(rule, w, b):
    groups = [{"params": [w]}, {"params": [b], **({} if rule["decay_norms"] else {"weight_decay": 0.0})}]
    if rule["kind"] == "sgd":
        return torch.optim.SGD(groups, lr=rule["lr"], momentum=rule["momentum"], nesterov=rule["nesterov"],
                               weight_decay=rule["weight_decay"])
    kind = torch.optim.Adam if rule["kind"] == "adam" else torch.optim.AdamW
    return kind(groups, lr=rule["lr"], betas=(rule["beta1"], rule["beta2"]), eps=rule["epsilon"],
                weight_decay=rule["weight_decay"])


def trajectory(rule):
    """Weight and bias, flat, after every step."""
    w, b = W.clone().requires_grad_(), B.clone().requires_grad_()
    steps, optim = [], optimiser(rule, w, b)
    for step in range(STEPS):
        if step == rule.get("switch"):
            for group in optim.param_groups:
                group["betas"] = (0.1, group["betas"][1])
        optim.zero_grad(set_to_none=True)
        F.cross_entropy(X @ w.T + b, Y).backward()
        optim.step()
        steps.append(short(w) + short(b))
    return steps


def rates(make, count, lr=1.0):
    """Learning rate and momentum at every step of a scheduler."""
    optim = torch.optim.SGD([torch.zeros(1, requires_grad=True)], lr=lr, momentum=0.9)
    scheduler, values = make(optim), []
    for step in range(count):
        values.append([optim.param_groups[0]["lr"], optim.param_groups[0]["momentum"]])
        optim.step()
        if step + 1 < count:
            scheduler.step()
    return values


lr = torch.optim.lr_scheduler
result = {
    "x": short(X), "y": Y.tolist(), "w": short(W), "b": short(B),
    "cases": [{"name": name, "rule": {k: v for k, v in rule.items() if k != "switch"}, "switch": rule.get("switch"),
               "steps": trajectory(rule)} for name, rule in CASES.items()],
    "cosine": rates(lambda o: lr.CosineAnnealingLR(o, T_max=30, eta_min=0.02 / 50), 31, 0.02),
    "one_cycle": rates(lambda o: lr.OneCycleLR(o, max_lr=0.1, total_steps=60), 60),
    "one_cycle_other": rates(lambda o: lr.OneCycleLR(
        o, max_lr=0.4, total_steps=45, pct_start=0.2, div_factor=10, final_div_factor=100, cycle_momentum=False), 45),
    "steps": rates(lambda o: lr.MultiStepLR(o, milestones=[5, 8], gamma=0.2), 12, 0.1),
}
text = json.dumps(result).replace('{"name"', '\n{"name"').replace('"cosine"', '\n"cosine"')
(Path(__file__).parent / "optim.json").write_text(text.replace('"one_', '\n"one_').replace('"steps": [[0.1, ', '\n"steps": [[0.1, ') + "\n")
