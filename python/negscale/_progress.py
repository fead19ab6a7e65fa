"""How far a long call is: a line in a terminal, a bar in a notebook, a line now and then elsewhere."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

#: What is done sooner needs no bar.
_PATIENCE = 0.5
#: Least time between two drawings.
_PAUSE = 0.1
_WIDTH = 30


def listener(progress: bool | Callable[[float], object] | None, what: str) -> Callable[[float], object] | None:
    """What hears of progress: a function that was given, a bar (`True`), nobody (`False`), or a bar where somebody watches (`None`)."""
    if callable(progress):
        return progress
    if progress is not None and not isinstance(progress, bool):
        raise TypeError(f"progress is {progress!r}: give True, False, or a function of the share that is done")
    if _in_notebook():
        return _Notebook(what) if progress is not False else None
    is_terminal = sys.stderr is not None and sys.stderr.isatty()
    if is_terminal and progress is not False:
        return _Terminal(what)
    return _Lines(what) if progress else None


def finish(heard: Callable[[float], object] | None) -> None:
    """Takes a bar away; a function that was given is told that all is done."""
    if isinstance(heard, _Bar):
        heard.close()
    elif heard is not None:
        heard(1.0)


@contextmanager
def told(progress: bool | Callable[[float], object] | None, what: str) -> Iterator[Callable[[float], object] | None]:
    """What hears of progress. In the end, a bar is taken away, also after an error."""
    heard = listener(progress, what)
    try:
        yield heard
    except BaseException:
        if isinstance(heard, _Bar):
            heard.close()
        raise
    finish(heard)


def _in_notebook() -> bool:
    ipython = sys.modules.get("IPython")
    shell = ipython.get_ipython() if ipython else None
    return shell is not None and hasattr(shell, "kernel")


class _Bar:
    """Draws not too soon and not too often."""

    def __init__(self, what: str) -> None:
        self.what, self.begun, self.drawn = what, time.monotonic(), 0.0

    def __call__(self, done: float) -> None:
        now = time.monotonic()
        if now - self.begun >= _PATIENCE and now - self.drawn >= _PAUSE:
            self.drawn = now
            self.draw(min(max(done, 0.0), 1.0))

    def close(self) -> None:
        if self.drawn:
            self.clear()

    def draw(self, done: float) -> None:
        raise NotImplementedError

    def clear(self) -> None:
        """Nothing is left where nothing was drawn over."""


class _Terminal(_Bar):
    def draw(self, done: float) -> None:
        full = round(done * _WIDTH)
        print(f"\r{self.what} [{'#' * full}{'.' * (_WIDTH - full)}] {done:4.0%}", end="", file=sys.stderr, flush=True)

    def clear(self) -> None:
        print("\r" + " " * (len(self.what) + _WIDTH + 9) + "\r", end="", file=sys.stderr, flush=True)


class _Lines(_Bar):
    def __init__(self, what: str) -> None:
        super().__init__(what)
        self.tenth = 0

    def draw(self, done: float) -> None:
        if (tenth := int(done * 10)) > self.tenth:
            self.tenth = tenth
            print(f"{self.what}: {tenth * 10} %", file=sys.stderr, flush=True)


class _Notebook(_Bar):
    """One output that is drawn over, and empty in the end."""

    def __init__(self, what: str) -> None:
        super().__init__(what)
        self.shown: Any = None

    def draw(self, done: float) -> None:
        html = f"<progress value='{done:.3f}' max='1'></progress> {self.what} {done:.0%}"
        self.show({"text/html": html, "text/plain": f"{self.what} {done:.0%}"})

    def clear(self) -> None:
        self.show({"text/html": "", "text/plain": ""})

    def show(self, bundle: dict[str, str]) -> None:
        from IPython import display

        if self.shown is None:
            # Not every version says what types it takes.
            draw: Any = display.display
            self.shown = draw(bundle, raw=True, display_id=True)
        else:
            self.shown.update(bundle, raw=True)
