"""NegScale: training with wrong labels, and finding them.

===========================  ===========================================================================
``negscale.audit``           which labels are wrong, what they should be, and how many there are
``negscale.FrozenAudit``     models of an audit as a file, for rows that are elsewhere
``negscale.ray``             audits on many machines
``find_label_issues`` ...    the calls that users of cleanlab know
``negscale.Taxonomy``        class trees: which classes are related, which are not
``negscale.noise``           wrong labels made to order
``negscale.similarity``      similarity of all pairs of samples, by the relation of their classes
``negscale.train``           training runs from recipes, as by the command
``negscale.Model``           a trained model as a file
``negscale.torch``           the plug-in loss for PyTorch
``negscale.sklearn``         a classifier that learns from labels of which some are wrong
===========================  ===========================================================================

The command ``negscale`` comes with the package. What is wrong with input is said by ``InputError``, a ``ValueError``.
"""

from negscale._audit import Audit, audit
from negscale._cleanlab import (
    find_label_issues,
    get_confidence_weighted_entropy_for_each_label,
    get_label_quality_scores,
    get_normalized_margin_for_each_label,
    get_self_confidence_for_each_label,
    num_label_issues,
    order_label_issues,
)
from negscale._errors import FileError, InputError, NegScaleError
from negscale._frozen import FrozenAudit
from negscale._negscale import Model, Taxonomy, __version__
from negscale._noise import NoisyLabels, noise
from negscale._similarity import Similarity, similarity
from negscale._train import Run, train

__all__ = [
    "Audit",
    "FileError",
    "FrozenAudit",
    "InputError",
    "Model",
    "NegScaleError",
    "NoisyLabels",
    "Run",
    "Similarity",
    "Taxonomy",
    "__version__",
    "audit",
    "find_label_issues",
    "get_confidence_weighted_entropy_for_each_label",
    "get_label_quality_scores",
    "get_normalized_margin_for_each_label",
    "get_self_confidence_for_each_label",
    "noise",
    "num_label_issues",
    "order_label_issues",
    "similarity",
    "train",
]
