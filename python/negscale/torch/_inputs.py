"""What users hand over, as both routes want it."""

from __future__ import annotations

import contextlib
import os
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from negscale._errors import InputError
from negscale._negscale import Taxonomy


class Tree(NamedTuple):
    """Which classes are related: a name, their distances, and what the compiled kernel makes its own table of."""

    name: str
    distances: np.ndarray
    source: Any


def tree_of(taxonomy: Any) -> Tree:
    """A tree by name or from a file, a `negscale.Taxonomy`, or a C x C table of distances."""
    if isinstance(taxonomy, (str, os.PathLike)):
        taxonomy = Taxonomy(taxonomy)
    if isinstance(taxonomy, Taxonomy):
        return Tree(taxonomy.name, np.asarray(taxonomy.distances()), taxonomy)
    table = taxonomy.detach().cpu().numpy() if isinstance(taxonomy, Tensor) else np.asarray(taxonomy)
    if table.ndim != 2 or table.shape[0] != table.shape[1] or table.dtype.kind not in "iuf":
        raise InputError(
            "taxonomy: give the name of a built-in class tree, a path, a negscale.Taxonomy, or a C x C table of class distances; "
            f"got {type(taxonomy).__name__} of shape {table.shape}"
        )
    wrong = np.argwhere(~(np.isfinite(table) & (table >= 0)))
    if len(wrong):
        a, b = wrong[0]
        raise InputError(f"taxonomy: the distance from class {a} to class {b} is {table[a, b]}; it must be a finite number, 0 or more")
    # Thresholds are whole numbers, so that rounding up leaves every pair of classes on its side of them.
    table = np.ascontiguousarray(np.ceil(table).clip(max=2**31), dtype=np.int64)
    return Tree("distances", table, table)


def prepared(
    features: Tensor, labels: Any, confidence: Any, logits: Tensor | None
) -> tuple[Tensor, Tensor, Tensor | None]:
    """Features in float32 or float64, labels as int64 and confidences like the features, on their device; shapes checked."""
    if not isinstance(features, Tensor) or features.dim() != 2:
        shape = tuple(features.shape) if isinstance(features, Tensor) else type(features).__name__
        raise InputError(f"features: expected B x d, got {shape}: pool or flatten them first")
    if not features.is_floating_point():
        raise InputError(f"features: expected floating-point numbers, got {features.dtype}")
    if features.dtype not in (torch.float32, torch.float64):
        features = features.float()
    batch, device = len(features), features.device
    # In every training step: what is right already is not touched.
    if type(labels) is not Tensor or labels.device != device:
        labels = torch.as_tensor(labels, device=device)
    if labels.dtype.is_floating_point or labels.dtype.is_complex or labels.dtype == torch.bool:
        raise InputError(f"labels: expected class indices, got {labels.dtype}: of one-hot or mixed labels take the argmax")
    if labels.shape != (batch,):
        raise InputError(f"labels: expected one for each of {batch} samples, got shape {tuple(labels.shape)}")
    if labels.dtype != torch.int64:
        labels = labels.to(torch.int64)
    if logits is not None:
        if confidence is not None:
            raise InputError("confidence and logits: pass one of them, since a confidence is made of the logits")
        if logits.dim() != 2 or len(logits) != batch or logits.shape[1] == 0:
            raise InputError(f"logits: expected a row for each of {batch} samples, got shape {tuple(logits.shape)}")
        confidence = logits.detach().to(features.dtype).softmax(1).amax(1)
    if confidence is None:
        return features, labels, None
    if type(confidence) is not Tensor or confidence.dtype != features.dtype or confidence.device != device:
        confidence = torch.as_tensor(confidence, dtype=features.dtype, device=device)
    if confidence.requires_grad:
        confidence = confidence.detach()
    if confidence.shape != (batch,):
        raise InputError(f"confidence: expected one for each of {batch} samples, got shape {tuple(confidence.shape)}")
    return features, labels, confidence


def is_looked_at(features: Tensor) -> bool:
    """Whether somebody traces this program, or calculates with something else than plain tensors."""
    if torch.compiler.is_compiling() or type(features) not in (Tensor, torch.nn.Parameter):
        return True
    # Modes such as those of make_fx see operators only. The question is not part of PyTorch's public interface.
    modes = getattr(torch._C, "_len_torch_dispatch_stack", None)
    return modes is not None and modes() > 0


def without_autocast(device: str) -> contextlib.AbstractContextManager[Any]:
    """Products in the precision of their factors."""
    if device == "meta" or not torch.is_autocast_enabled(device):
        return contextlib.nullcontext()
    return torch.autocast(device, enabled=False)
