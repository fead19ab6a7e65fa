"""Settings of the loss, as both routes know them."""

from __future__ import annotations

import dataclasses
import difflib
from typing import Any, Literal

from negscale._errors import InputError

_LATER = {
    "anchor": "it needs the means of classes in the features of an earlier network",
    "anchor_momentum": "it belongs to `anchor`",
    "balance": "it needs the length of the host's own gradient",
    "centre": "subtract a running mean of the features before you call the loss",
    "centre_momentum": "it belongs to `centre`",
    "confidence": "pass the probabilities that labels are right as `confidence` of the call",
    "delta_features": "it needs features of the epoch's start",
    "delta_pairs": "random pairs are drawn by the command alone",
    "during_warm_up": "do not add the loss while your training warms up",
    "exclusion": "it acts on logits, not on features",
    "pairs": "random pairs are drawn by the command alone",
    "posterior": "it weighs the labels that a training method guesses, and adds nothing to the loss",
    "seed": "it belongs to `pairs`",
    "targets": "pass the labels that you believe as `labels` of the call",
}
_KEYS = {"lam": "lambda", "global_weight": "global", "local_weight": "local"}


@dataclasses.dataclass(frozen=True)
class Settings:
    """Those of the crate's `Settings` that need nothing but features, labels and confidences; checked by the crate."""

    lam: float = 1.0
    mu: float = 1.0
    eta_min: int = 3
    eta_max: int = 5
    snop: bool = True
    dcsa: bool = True
    global_weight: float = 1.0
    local_weight: float = 1.0
    reduction: Literal["mean", "sum"] = "mean"
    similarity: Literal["cosine", "half"] = "cosine"
    local_shape: Literal["square", "one-sided"] = "square"
    local_divisor: Literal["pairs", "entries"] = "pairs"
    self_anchor: bool = True
    delta_gradient: bool = False
    delta_quantile: float = 1.0
    rectify: bool = False

    @classmethod
    def of(cls, given: dict[str, Any]) -> Settings:
        """The settings of these names, or an error that says what to do instead."""
        known = [field.name for field in dataclasses.fields(cls)]
        for name in given:
            if name in known:
                continue
            if name in _LATER:
                raise InputError(f"setting `{name}` is not available in negscale.torch: {_LATER[name]}")
            near = difflib.get_close_matches({"lambda": "lam", "lambda_": "lam"}.get(name, name), known, 1)
            hint = f"did you mean `{near[0]}`?" if near else f"known are {', '.join(known)}"
            raise TypeError(f"NegScaleLoss has no setting `{name}`: {hint}")
        return cls(**given)

    def of_crate(self) -> dict[str, Any]:
        """By the names that the crate has for them."""
        return {_KEYS.get(name, name): value for name, value in dataclasses.asdict(self).items()}

    def similarity_of_cosine(self) -> tuple[float, float]:
        """A similarity is a g + b of the cosine g: (a, b)."""
        return (0.5, 0.5) if self.similarity == "half" else (1.0, 0.0)
