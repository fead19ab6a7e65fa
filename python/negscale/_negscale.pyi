import os
from collections.abc import Sequence

__version__: str

def command(arguments: Sequence[str], program: str | os.PathLike[str], starts_with: Sequence[str]) -> int: ...
