"""The plug-in loss for PyTorch.

`NegScaleLoss` is a loss to add to your own; `attach` adds it to a model whose loss you would rather not touch.

>>> import torch
>>> from negscale.torch import NegScaleLoss
>>> negscale = NegScaleLoss("cifar10")
>>> features = torch.randn(64, 128, requires_grad=True)
>>> labels = torch.arange(64) % 10
>>> logits = torch.randn(64, 10, requires_grad=True)
>>> loss = torch.nn.functional.cross_entropy(logits, labels) + negscale(features, labels, logits=logits)
>>> loss.backward()
>>> negscale.terms.unrelated_pairs, negscale.terms.related_pairs
(988, 318)
"""

from ._attach import Handle, attach
from ._loss import NegScaleLoss, Terms

__all__ = ["Handle", "NegScaleLoss", "Terms", "attach"]
