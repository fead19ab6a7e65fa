"""NegScale: training with wrong labels, and finding them.

===================  ===========================================================================
`negscale.torch`     the plug-in loss for PyTorch
`negscale.sklearn`   a classifier that learns from labels of which some are wrong
===================  ===========================================================================

The command `negscale` comes with the package.
"""

from negscale._negscale import __version__

__all__ = ["__version__"]
