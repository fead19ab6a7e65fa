"""The loss by the compiled kernel: value and gradient of a batch from one call, on the CPU.

Two doors lead to it. Eager code takes `Evaluation`, an ordinary `torch.autograd.Function`, because it costs a fraction of what the
dispatcher asks for an operator written in Python. Everything that looks at the program instead of running it (`torch.compile`,
`torch.export`, fake tensors) sees the operator `negscale::loss`.
"""

from __future__ import annotations

import hashlib
import weakref
from typing import Any

import numpy as np
import torch
from torch import Tensor

from negscale._negscale import Plugin, Terms

from ._closed import Parts
from ._inputs import Tree
from ._settings import Settings

NO_SECOND = (
    "NegScaleLoss: the compiled kernel gives first derivatives only, and something here asks for the second "
    '(create_graph=True, gradient penalties): build the loss with route="torch"'
)

_kernels: weakref.WeakValueDictionary[str, Kernel] = weakref.WeakValueDictionary()


class Kernel:
    """A class tree and settings, as the compiled kernel holds them. Equal ones are one object, in every process under the same key."""

    def __init__(self, key: str, tree: Tree, settings: Settings) -> None:
        self.key, self.tree, self.settings = key, tree, settings
        self.plugin = Plugin(tree.source, **settings.of_crate())

    @classmethod
    def of(cls, tree: Tree, settings: Settings) -> Kernel:
        text = f"{tree.name}\n{settings}\n{tree.distances.shape}\n"
        key = hashlib.sha256(text.encode() + tree.distances.tobytes()).hexdigest()[:16]
        kernel = _kernels.get(key)
        if kernel is None:
            kernel = _kernels[key] = cls(key, tree, settings)
        return kernel

    def __reduce__(self) -> tuple[Any, ...]:
        return Kernel.of, (self.tree, self.settings)

    def evaluate(
        self, features: Tensor, labels: Tensor, confidence: Tensor | None, want_gradient: bool = True
    ) -> tuple[float, Terms, Tensor | None]:
        """Value, parts and gradient of tensors on the CPU."""
        sure = np.zeros(len(features), np.float32) if confidence is None else confidence.numpy()
        value, parts, gradient = self.plugin.evaluate(features.detach().numpy(), labels.numpy(), sure, want_gradient)
        return value, parts, None if gradient is None else torch.from_numpy(gradient)


class Evaluation(torch.autograd.Function):
    """The door for eager code."""

    @staticmethod
    def forward(
        ctx: Any, features: Tensor, labels: Tensor, confidence: Tensor | None, kernel: Kernel
    ) -> tuple[Tensor, tuple[float, Terms]]:
        value, parts, gradient = kernel.evaluate(features, labels, confidence)
        ctx.save_for_backward(features, labels, confidence)
        ctx.kernel, ctx.gradient = kernel, gradient
        return torch.tensor(value, dtype=features.dtype), (value, parts)

    @staticmethod
    def backward(ctx: Any, value: Tensor, _: None) -> tuple[Tensor, None, None, None]:
        # Handed over, so that nothing of its size is made anew; whoever goes through the graph again has it computed again.
        gradient, ctx.gradient = ctx.gradient, None
        if gradient is None:
            gradient = ctx.kernel.evaluate(*ctx.saved_tensors)[2]
        if torch.is_grad_enabled():
            return _scaled(value, ctx.saved_tensors[0], gradient), None, None, None
        factor = value.item()
        return gradient if factor == 1 else gradient.mul_(factor), None, None, None


def _scaled(value: Tensor, features: Tensor, gradient: Tensor) -> Tensor:
    """The gradient times that of the value."""
    # Gradients are recorded during a backward pass only if it is to be differentiated itself.
    return _Once.apply(value, gradient, features) if torch.is_grad_enabled() else value * gradient


class _Once(torch.autograd.Function):
    """A gradient whose own derivative is an error that says what to do."""

    @staticmethod
    def forward(ctx: Any, value: Tensor, gradient: Tensor, _features: Tensor) -> Tensor:
        return value * gradient

    @staticmethod
    def backward(ctx: Any, *_: Tensor) -> None:
        raise RuntimeError(NO_SECOND)


@torch.library.custom_op(
    "negscale::loss",
    mutates_args=(),
    device_types="cpu",
    schema="(Tensor features, Tensor labels, Tensor? confidence, str kernel) -> (Tensor value, Tensor gradient, Tensor parts)",
)
def operator(features, labels, confidence, kernel):  # type: ignore[no-untyped-def]
    """The door for programs that are looked at: the kernel by its key, parts as a tensor."""
    known = _kernels.get(kernel)
    if known is None:
        raise RuntimeError(f"no NegScaleLoss with the key {kernel} is alive in this process: build it before you run the program")
    value, parts, gradient = known.evaluate(features, labels, confidence)
    numbers = [getattr(parts, name) for name in Parts._fields]
    return torch.tensor(value, dtype=features.dtype), gradient, torch.tensor(numbers, dtype=torch.float64)


@operator.register_fake
def _(features, labels, confidence, kernel):  # type: ignore[no-untyped-def]
    return features.new_empty(()), features.new_empty(features.shape), features.new_empty(len(Parts._fields), dtype=torch.float64)


def _keep(ctx, inputs, output):  # type: ignore[no-untyped-def]
    ctx.set_materialize_grads(False)
    ctx.mark_non_differentiable(*output[1:])
    ctx.save_for_backward(inputs[0], output[1])


def _backward(ctx, value, _gradient, _parts):  # type: ignore[no-untyped-def]
    return None if value is None else _scaled(value, *ctx.saved_tensors), None, None, None


operator.register_autograd(_backward, setup_context=_keep)
