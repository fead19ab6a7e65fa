"""`NegScaleLoss`, an `nn.Module`."""

from __future__ import annotations

import dataclasses
from typing import Any, Literal

import torch
from torch import Tensor, nn

from negscale._errors import InputError

from ._closed import Parts, closed_form
from ._inputs import is_looked_at, prepared, tree_of, without_autocast
from ._native import Evaluation, Kernel, operator
from ._settings import Settings

Route = Literal["auto", "native", "torch"]


@dataclasses.dataclass(frozen=True)
class Terms:
    """What a value is made of: terms as reduced, without their weights, and what they were made from."""

    value: float
    snop_global: float
    snop_local: float
    dcsa: float
    #: Pairs of classes further apart than `eta_max`, and of different classes no further than `eta_min`.
    unrelated_pairs: int
    related_pairs: int
    #: Related pairs above their cap.
    capped_pairs: int
    #: Unrelated pairs of equal features, which have no direction.
    identical_pairs: int
    #: Samples whose features are all 0: they have no direction and get no gradient.
    zero_features: int
    #: "active", "off" (switched off, or weight 0), or "no-pairs" (the batch has none that the term is about).
    snop_state: str
    dcsa_state: str

    def to_dict(self) -> dict[str, float | int | str]:
        """For a logger."""
        return dataclasses.asdict(self)


class NegScaleLoss(nn.Module):
    """lambda SNOP + mu DCSA of a batch of features: a scalar to add to the loss that you train with.

    It pushes features of unrelated classes apart, in as many directions as there are, and keeps those of related classes no more
    similar than unrelated ones allow. Features are those before the last layer, best before a final ReLU; they are normalised
    inside.

    Parameters
    ----------
    taxonomy
        Which classes are related: the name of a built-in class tree ("cifar10", "cifar100", ...), a `negscale.Taxonomy`, or a
        C x C table of class distances (tensor or array).
    lam, mu
        Weights of SNOP and DCSA.
    eta_min, eta_max
        Different classes at most `eta_min` apart are related; classes more than `eta_max` apart are unrelated.
    route
        "auto" takes the compiled kernel for tensors on the CPU and torch operations for all other devices; "native" and "torch"
        insist on one of them.
    check
        Whether the torch route looks for NaN, labels that are no class, and the like. On a graphics card that waits for the device
        once per call. The compiled kernel always looks; a compiled torch route never does.
    settings
        `reduction` ("mean" or "sum"), `snop`, `dcsa` (False switches a term off), `global_weight`, `local_weight` (inside SNOP),
        `similarity` ("cosine" or "half"), `local_shape` ("square" or "one-sided"), `local_divisor` ("pairs" or "entries"),
        `self_anchor`, `delta_gradient`, `delta_quantile`, `rectify`: see "Readings and forms" in the book.

    >>> import torch
    >>> from negscale.torch import NegScaleLoss
    >>> loss = NegScaleLoss("cifar10", mu=0.5)
    >>> features = torch.eye(4, requires_grad=True)
    >>> value = loss(features, torch.tensor([0, 1, 3, 5]))
    >>> value.backward()
    >>> loss.terms.related_pairs, round(loss.terms.snop_global, 4)
    (1, 0.125)
    """

    unrelated: Tensor
    related: Tensor

    def __init__(
        self,
        taxonomy: Any,
        lam: float = 1.0,
        mu: float = 1.0,
        eta_min: int = 3,
        eta_max: int = 5,
        *,
        route: Route = "auto",
        check: bool = True,
        **settings: Any,
    ) -> None:
        super().__init__()
        if route not in ("auto", "native", "torch"):
            raise InputError(f'route = {route!r}: it must be "auto", "native" or "torch"')
        self.settings = Settings.of({"lam": lam, "mu": mu, "eta_min": eta_min, "eta_max": eta_max, **settings})
        self.route, self.check = route, check
        self._kernel = Kernel.of(tree_of(taxonomy), self.settings)
        distances = torch.from_numpy(self._kernel.tree.distances)
        # Not part of checkpoints: whoever adds the loss can load those that were made without it.
        self.register_buffer("unrelated", distances > eta_max, persistent=False)
        self.register_buffer("related", (distances > 0) & (distances <= eta_min), persistent=False)
        self._latest: Any = None

    def forward(
        self,
        embeddings: Tensor,
        labels: Tensor,
        confidence: Tensor | None = None,
        *,
        logits: Tensor | None = None,
        indices_tuple: Any = None,
        ref_emb: Any = None,
        ref_labels: Any = None,
    ) -> Tensor:
        """The loss of a batch.

        Parameters
        ----------
        embeddings
            B x d. Half precision is computed in float32, float64 in float64.
        labels
            B class indices.
        confidence
            How sure the network is of each sample, from 0 to 1: confident pairs weigh less in SNOP's local term. It gets no gradient.
            Without it, and without logits, every pair weighs 1.
        logits
            B x C instead of a confidence, which is then the softmax probability of the predicted class.
        indices_tuple, ref_emb, ref_labels
            Only for calls in the style of pytorch-metric-learning: they must be None.
        """
        if indices_tuple is not None or isinstance(confidence, tuple):
            raise InputError("indices_tuple: NegScaleLoss finds its pairs by the class tree; leave the miner out")
        if ref_emb is not None or ref_labels is not None:
            raise InputError("ref_emb, ref_labels: NegScaleLoss is about pairs within one batch; leave the reference out")
        features, labels, confidence = prepared(embeddings, labels, confidence, logits)
        if not self._takes_kernel(features):
            return self._by_torch(features, labels, confidence)
        if is_looked_at(features):
            value: Tensor
            value, _, parts = operator(features, labels, confidence, self._kernel.key)
            self._latest = (value.detach(), parts)
            return value
        if torch.is_grad_enabled() and features.requires_grad:
            value, self._latest = Evaluation.apply(features, labels, confidence, self._kernel)
        else:
            number, parts, _ = self._kernel.evaluate(features, labels, confidence, want_gradient=False)
            value, self._latest = torch.tensor(number, dtype=features.dtype), (number, parts)
        return value

    @property
    def terms(self) -> Terms | None:
        """What the latest value is made of; None before the first call. On a graphics card, reading it waits for the device."""
        if self._latest is None:
            return None
        value, parts = self._latest
        if isinstance(parts, Tensor):
            numbers = parts.tolist()
        elif isinstance(parts, Parts):
            numbers = torch.stack([part.to(value.dtype) for part in parts]).tolist()
        else:
            numbers = [getattr(parts, name) for name in Parts._fields]
        s, counts = self.settings, [round(number) for number in numbers[3:]]
        states = [
            "off" if not on else "active" if pairs else "no-pairs"
            for on, pairs in ((s.snop and s.lam > 0, counts[0]), (s.dcsa and s.mu > 0, counts[0] and counts[1]))
        ]
        return Terms(float(value), *numbers[:3], *counts, *states)

    def extra_repr(self) -> str:
        """Tree and changed settings, for `print`."""
        defaults = dataclasses.asdict(Settings())
        changed = {k: v for k, v in dataclasses.asdict(self.settings).items() if v != defaults[k]}
        return ", ".join([repr(self._kernel.tree.name)] + [f"{name}={value!r}" for name, value in changed.items()])

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_latest": None}

    def _takes_kernel(self, features: Tensor) -> bool:
        on_cpu = features.device.type == "cpu"
        if self.route == "native" and not on_cpu:
            raise InputError(
                f'route = "native", but the features are on {features.device}: the compiled kernel reads the memory of the CPU only'
            )
        return on_cpu and self.route != "torch"

    def _by_torch(self, features: Tensor, labels: Tensor, confidence: Tensor | None) -> Tensor:
        device = features.device
        compiling = torch.compiler.is_compiling()
        if self.unrelated.device != device and not compiling:
            self.to(device)
        if self.check and not compiling and device.type != "meta" and not self._is_sound(features, labels, confidence):
            # Found on the device; the kernel has the words for it.
            self._kernel.evaluate(features.cpu(), labels.cpu(), None if confidence is None else confidence.cpu())
        if len(features) == 0:
            value = features.sum()
            self._latest = (value.detach(), Parts(*[value.detach()] * len(Parts._fields)))
            return value
        unrelated, related = self.unrelated.to(device, features.dtype), self.related.to(device, features.dtype)
        with without_autocast(device.type):
            value, parts = closed_form(features, labels, confidence, unrelated, related, self.settings)
        self._latest = (value.detach(), parts)
        return value

    def _is_sound(self, features: Tensor, labels: Tensor, confidence: Tensor | None) -> bool:
        """Whether every number is in its range; asks the device once."""
        sound = features.isfinite().all() & ((labels >= 0) & (labels < len(self.unrelated))).all()
        if confidence is not None:
            sound = sound & ((confidence >= 0) & (confidence <= 1)).all()
        return bool(sound)
