"""The command `negscale`, which comes with the package."""

import os
import signal
import sys

from negscale._negscale import command


def main() -> int:
    """Runs the command with the arguments of this process, and returns its exit code."""
    # Python would only note the signal and wait for Rust to return; the command listens itself where it has something to save.
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    # Processes that the command starts shall not take a folder of the same name for this package.
    os.environ["PYTHONSAFEPATH"] = "1"
    return command(["negscale", *sys.argv[1:]], sys.executable, ["-m", "negscale"])
