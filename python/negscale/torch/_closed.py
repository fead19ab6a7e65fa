"""The loss in torch operations, for devices that the compiled kernel cannot reach.

Everything is a function of the cosines G = X X^T of the batch, so no matrix is larger than B x B (and slices of B x B x classes for
the caps). With W_ij = 1 / |x_i - x_j|^2 over the unrelated pairs and L the Laplacian of these weights, the global term of SNOP is
tr(LGLG) = |X^T L X|^2; the cap of DCSA is a maximum over classes of the largest cosines with each class. The derivation is in the
module docs of the crate (`snop`, `dcsa`); constants and limits here are those of the kernel, so that both routes agree.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import torch
from torch import Tensor

from ._settings import Settings

FLOOR = 1e-6  # Smallest squared distance that a direction is divided by.
SLICE = 1 << 22  # Entries of the largest slice of a B x B x groups comparison.


class Parts(NamedTuple):
    """What the value is made of: tensors without a dimension, detached, in the order of `Terms`."""

    snop_global: Tensor
    snop_local: Tensor
    dcsa: Tensor
    unrelated_pairs: Tensor
    related_pairs: Tensor
    capped_pairs: Tensor
    identical_pairs: Tensor
    zero_features: Tensor


def closed_form(
    features: Tensor, labels: Tensor, confidence: Tensor | None, unrelated: Tensor, related: Tensor, settings: Settings
) -> tuple[Tensor, Parts]:
    """Value and parts; `unrelated` and `related` are C x C tables of 0 and 1 in the dtype of the features."""
    s = settings
    x, zero = unit_vectors(features.relu() if s.rectify else features)
    gram = x @ x.T
    pair = (labels.unsqueeze(1), labels.unsqueeze(0))
    apart, kin = unrelated[pair], related[pair]
    p, q = apart.sum() / 2, kin.sum() / 2
    # Without pairs every sum is 0, whatever it is divided by.
    some_p, some_q = p.clamp(min=1), q.clamp(min=1)
    mean = s.reduction == "mean"
    none = torch.zeros_like(p)
    glob = local = dcsa = capped = identical = none

    if s.snop and s.lam > 0 and s.global_weight > 0:
        spread, identical = anisotropy(x, gram, apart, p if mean else (p > 0) * x.shape[1])
        glob = spread / some_p.square() if mean else spread
    if s.snop and s.lam > 0 and s.local_weight > 0:
        similar = apart * squared(gram, s, unrelated.shape[0])
        doubt = torch.ones_like(gram[0]) if confidence is None else 1 - confidence
        local = doubt @ similar @ doubt / 2
        if mean:
            local = local / (some_p.square() if s.local_divisor == "entries" else some_p)
    if s.dcsa and s.mu > 0:
        a, offset = s.similarity_of_cosine()
        with torch.set_grad_enabled(s.delta_gradient and torch.is_grad_enabled()):
            delta = anchors(gram, labels, unrelated, s)
        gap = (a * (gram + delta) - (1 - 2 * offset)).relu() * kin
        dcsa = gap.square().sum() / 2
        if mean:
            dcsa = dcsa / some_q
        capped = (gap.detach() > 0).sum() / 2

    value = s.lam * (s.global_weight * glob + s.local_weight * local) + s.mu * dcsa
    parts = (glob, local, dcsa, p, q, capped, identical, zero.sum())
    return value, Parts(*(part.detach() for part in parts))


def unit_vectors(features: Tensor) -> tuple[Tensor, Tensor]:
    """Rows of length 1, and which rows are zero: these have no direction, stay zero, and get no gradient."""
    # Divided by their largest entry first, so that no square leaves the range of numbers. That changes no direction.
    largest = torch.linalg.vector_norm(features.detach(), float("inf"), dim=1, keepdim=True)
    zero = largest == 0
    scaled = features / largest.masked_fill(zero, 1)
    length = torch.linalg.vector_norm(scaled, dim=1, keepdim=True)
    return scaled / length.masked_fill(zero, float("inf")), zero


def anisotropy(x: Tensor, gram: Tensor, apart: Tensor, identity: Tensor) -> tuple[Tensor, Tensor]:
    """|S - I|^2, where S sums the outer products of the directions between unrelated features, and how many pairs have none."""
    square = gram.diagonal()
    scale = square.unsqueeze(1) + square
    distance = scale - 2 * gram
    with torch.no_grad():
        has_direction = apart * (distance > 4 * torch.finfo(x.dtype).eps * scale)
        identical = (apart - has_direction).sum() / 2
    weights = has_direction / distance.clamp(min=FLOOR)
    laplacian = weights.sum(1).diag() - weights
    batch, width = x.shape
    # Rows of L sum to 0, so that a common offset of the features adds nothing but rounding errors.
    if 2 * width * (batch + width) < 3 * batch * batch:
        x = x - x.detach().mean(0)
        total = (x.T @ (laplacian @ x)).square().sum()
    else:
        rows = gram.detach().mean(1, keepdim=True)
        lg = laplacian @ (gram - (rows + (rows.T - rows.mean())))
        total = (lg * lg.T).sum()
    trace = (weights * distance).sum() / 2
    return total - 2 * trace + identity, identical


def squared(gram: Tensor, settings: Settings, classes: int) -> Tensor:
    """What the local term sums: squares of similarities, or of what is above the similarity of an evenly spread network."""
    a, offset = settings.similarity_of_cosine()
    if settings.local_shape == "one-sided":
        return (a * (gram + 1 / (max(classes, 2) - 1))).relu().square()
    return (a * gram + offset).square()


def anchors(gram: Tensor, labels: Tensor, unrelated: Tensor, settings: Settings) -> Tensor:
    """delta_ij, half the largest G_ip + G_jq over unrelated (p, q), B x B; minus infinity where there is none."""
    batch, classes = len(labels), unrelated.shape[0]
    if classes <= batch:
        group, table = labels, unrelated
    else:
        # Fewer samples than classes: a class is named by its first sample.
        group = (labels.unsqueeze(1) == labels).to(torch.uint8).argmax(1)
        table = unrelated[labels.unsqueeze(1), labels]
    nearest = nearest_of_groups(gram, group, len(table), settings)
    barrier = torch.zeros_like(table).masked_fill(table == 0, float("-inf"))
    across = largest_sums(nearest, barrier)
    return largest_sums(nearest, across) / 2


def nearest_of_groups(gram: Tensor, group: Tensor, groups: int, settings: Settings) -> Tensor:
    """Per sample and group the largest cosine with a member (or that at the quantile), B x groups; minus infinity without members."""
    absent = gram.new_full((len(group), groups), float("-inf"))
    if settings.delta_quantile == 1:
        if not settings.self_anchor:
            gram = gram - torch.diag(torch.full_like(gram[0], float("inf")))
        return absent.scatter_reduce(1, group.expand_as(gram), gram, "amax")
    # Members of each group next to each other, in order of their cosines; a sample that may not count comes last in its own.
    member = group.unsqueeze(1) == torch.arange(groups, device=group.device)
    size = member.sum(0)
    start, count = size.cumsum(0) - size, size.expand_as(absent)
    if not settings.self_anchor:
        gram = gram + torch.diag(torch.full_like(gram[0], float("inf")))
        count = count - member.to(count.dtype)
    cosines, order = gram.sort(dim=1)
    cosines = cosines.gather(1, group[order].sort(dim=1, stable=True).indices)
    rounded_up = [math.ceil(settings.delta_quantile * n) for n in range(len(group) + 1)]
    place = torch.tensor(rounded_up, device=group.device)[count]
    return torch.where(place > 0, cosines.gather(1, (start + place - 1).clamp(min=0)), absent)


def largest_sums(a: Tensor, b: Tensor) -> Tensor:
    """max over c of a_ic + b_jc, without a B x B x groups matrix."""
    rows = max(1, SLICE // max(1, b.numel()))
    return torch.cat([(part.unsqueeze(1) + b).max(2).values for part in torch.split(a, rows)])
