"""What the package raises. The words are those of the command."""


class NegScaleError(Exception):
    """Everything that the package raises, but for ``KeyboardInterrupt`` and errors of Python's own such as ``TypeError``."""

    __module__ = "negscale"


class InputError(NegScaleError, ValueError):
    """Input that does not fit: what is wrong, where, and what to do."""

    __module__ = "negscale"


class FileError(NegScaleError, OSError):
    """A file that cannot be read or written."""

    __module__ = "negscale"
