"""The loss on a layer of a model, for those who would rather not touch their own loss."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Mapping
from typing import Any

import torch
from torch import Tensor, nn

from negscale._errors import InputError

from ._loss import NegScaleLoss, Terms

NO_LABELS = (
    "negscale.torch.attach: no labels for this batch. Call handle.labels(labels) before each backward pass, or wrap the criterion "
    "once: criterion = handle.wrap(criterion). A forward pass that is no training belongs under torch.no_grad() or model.eval()"
)
CHANGED = (
    "negscale.torch.attach: what the layer gave was changed in place afterwards, as by ReLU(inplace=True): set inplace=False there, "
    "or keep a copy with attach(..., features=lambda output: output.clone())"
)


class _Batch:
    """Labels of a batch, and what its gradient is to be multiplied by."""

    def __init__(self, labels: Any, weight: float) -> None:
        self.labels, self.weight, self.spent = labels, weight, False


class _Pass:
    """One pass through the layer. It holds nothing that belongs to the graph of the model."""

    def __init__(self, output: Tensor, select: Callable[[Tensor], Tensor], batch: _Batch | None) -> None:
        self.source = output.detach().requires_grad_()
        self.features = select(self.source)
        self.version = self.features._version
        self.batch = batch
        self.logits: Tensor | None = None
        self.settled = False


class Handle:
    """What `attach` gives back: it takes the labels of each batch, shows the terms, and can be removed."""

    def __init__(self, model: nn.Module, layer: nn.Module, loss: NegScaleLoss, select: Callable[[Tensor], Tensor]) -> None:
        #: The loss itself.
        self.loss = loss
        self._layer, self._select = layer, select
        self._batch: _Batch | None = None
        self._open: tuple[_Pass, Tensor] | None = None
        self._hooks = [
            layer.register_forward_hook(self._after_layer),
            model.register_forward_hook(self._after_model, with_kwargs=True),
        ]

    def labels(self, labels: Any, weight: float = 1.0) -> None:
        """Hands over the labels of a batch, at any time before its backward pass.

        The gradient of the loss is multiplied by `weight`: what you multiply your own loss by, such as 1 / steps when you accumulate
        gradients, or `scaler.get_scale()` with a `GradScaler`.
        """
        self._batch = _Batch(labels, weight)

    def wrap(self, criterion: Callable[..., Tensor]) -> _Wrapped:
        """The criterion with the loss added to its value; called as before with the model's output and the labels.

        Nothing else is needed then: accumulation, scaling and logging see one loss. In evaluation it is the criterion alone.
        """
        return _Wrapped(self, criterion)

    @property
    def terms(self) -> Terms | None:
        """What the latest value is made of; None before the first."""
        return self.loss.terms

    def remove(self) -> None:
        """Takes the loss off the model."""
        for hook in self._hooks:
            hook.remove()
        self._hooks.clear()
        self._batch = self._open = None

    def __enter__(self) -> Handle:
        return self

    def __exit__(self, *_: object) -> None:
        self.remove()

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_batch": None, "_open": None}

    def _after_layer(self, layer: nn.Module, _inputs: Any, output: Any) -> None:
        self._open = None
        output = _tensor_of(output)
        if not (layer.training and torch.is_grad_enabled() and output.requires_grad):
            return
        seen = _Pass(output, self._select, self._fresh())
        # In the graph of the model, so that this may not be held on to: whoever settles the pass lets go of it.
        self._open = seen, self._select(output)
        # A hook of a tensor sees the sum of all gradients that reach it, once.
        output.register_hook(lambda gradient: self._add(seen, gradient))

    def _after_model(self, _model: nn.Module, _inputs: Any, keywords: dict[str, Any], output: Any) -> None:
        if self._open is None:
            return
        is_mapping = isinstance(output, Mapping)
        logits = output.get("logits") if is_mapping else output
        if isinstance(logits, Tensor) and logits.dim() == 2 and logits.is_floating_point():
            self._open[0].logits = logits.detach()
        # Models of Hugging Face compute their loss themselves when they are given labels.
        if is_mapping and isinstance(output.get("loss"), Tensor) and keywords.get("labels") is not None:
            output["loss"] = output["loss"] + self._value(keywords["labels"])

    def _fresh(self) -> _Batch | None:
        return self._batch if self._batch is not None and not self._batch.spent else None

    def _value(self, labels: Any) -> Tensor | None:
        """The loss of the pass that is open, in the graph of the model."""
        if self._open is None:
            return None
        (seen, features), self._open = self._open, None
        seen.settled = True
        _unchanged(seen)
        value: Tensor = self.loss(features, labels, logits=seen.logits)
        return value

    def _add(self, seen: _Pass, gradient: Tensor) -> Tensor | None:
        """The gradient at the layer's output with that of the loss, which has not been asked for its value."""
        if seen.settled:
            return None
        self._open = None
        batch = seen.batch or self._fresh()
        if batch is None:
            raise InputError(NO_LABELS)
        batch.spent = True
        seen.batch = batch
        _unchanged(seen)
        with torch.enable_grad():
            value = self.loss(seen.features, batch.labels, logits=seen.logits)
        (own,) = torch.autograd.grad(value, seen.source, retain_graph=True)
        return gradient + (own * batch.weight).to(gradient.dtype)


class _Wrapped(nn.Module):
    """A criterion with the loss of a handle."""

    def __init__(self, handle: Handle, criterion: Callable[..., Tensor]) -> None:
        super().__init__()
        self.handle, self.criterion = handle, criterion

    def forward(self, output: Any, labels: Any, *args: Any, **keywords: Any) -> Tensor:
        value = self.criterion(output, labels, *args, **keywords)
        extra = self.handle._value(labels)
        return value if extra is None else value + extra


def attach(
    model: nn.Module,
    layer: str | nn.Module,
    taxonomy: Any,
    *,
    features: Callable[[Tensor], Tensor] | None = None,
    **settings: Any,
) -> Handle:
    """Adds the loss to a layer of a model: in training, its gradient joins the host's at the output of that layer.

    There are three ways to tell it the labels, and one of them is enough. A model that computes its own loss when it is called with
    `labels=...`, as those of Hugging Face do, needs nothing: the loss is added to it. A criterion is wrapped once,
    `criterion = handle.wrap(criterion)`. Or `handle.labels(labels)` is called for each batch, and no loss is touched at all.

    Parameters
    ----------
    model
        The model that is trained.
    layer
        The layer whose output are the features, or its name as in `model.named_modules()`: what feeds the last layer, best before a
        final ReLU.
    taxonomy
        As for `NegScaleLoss`, or a `NegScaleLoss` of your own.
    features
        Makes features B x d of the layer's output, which is a tensor or the first of several. Without it, feature maps
        B x d x H x W are averaged over their places.
    settings
        As for `NegScaleLoss`. The confidence of a sample comes from the model's output, where that is logits B x C.

    >>> import torch
    >>> from negscale.torch import attach
    >>> model = torch.nn.Sequential(torch.nn.Linear(6, 8), torch.nn.Tanh(), torch.nn.Linear(8, 10))
    >>> handle = attach(model, "1", "cifar10")
    >>> x, y = torch.randn(20, 6), torch.arange(20) % 10
    >>> handle.labels(y)
    >>> torch.nn.functional.cross_entropy(model(x), y).backward()
    >>> handle.terms.snop_state
    'active'
    >>> handle.remove()
    """
    if isinstance(taxonomy, NegScaleLoss):
        if settings:
            raise InputError(f"{', '.join(settings)}: a NegScaleLoss has its settings already; leave them out")
        loss = taxonomy
    else:
        loss = NegScaleLoss(taxonomy, **settings)
    return Handle(model, _layer_of(model, layer), loss, features or _pooled)


def _layer_of(model: nn.Module, layer: str | nn.Module) -> nn.Module:
    named: dict[str, nn.Module] = dict(model.named_modules())
    if isinstance(layer, str):
        if layer not in named:
            near = difflib.get_close_matches(layer, named, 3) or [name for name in named if "." not in name][1:]
            raise InputError(f"the model has no layer `{layer}`; there are {', '.join(near)}, and more in model.named_modules()")
        return named[layer]
    if not any(layer is module for module in named.values()):
        raise InputError("layer: this module is not part of the model")
    return layer


def _tensor_of(output: Any) -> Tensor:
    """The layer's output, or the first tensor of several."""
    parts = output.values() if isinstance(output, Mapping) else output if isinstance(output, (tuple, list)) else (output,)
    for part in parts:
        if isinstance(part, Tensor):
            return part
    raise InputError(f"negscale.torch.attach: the layer gives {type(output).__name__}, without a tensor; attach to another layer")


def _pooled(output: Tensor) -> Tensor:
    """Features of an ordinary output."""
    if output.dim() == 4:
        return output.mean((2, 3))
    if output.dim() != 2:
        raise InputError(
            f"negscale.torch.attach: the layer gives a tensor of shape {tuple(output.shape)}. Say what its features are, such as "
            "attach(..., features=lambda output: output.mean(1))"
        )
    return output


def _unchanged(seen: _Pass) -> None:
    if seen.features._version != seen.version:
        raise InputError(CHANGED)
