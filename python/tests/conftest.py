"""What all tests share."""

import signal


def pytest_configure() -> None:
    # Programs started in the background of a shell ignore Ctrl-C, and so would those that the tests start.
    signal.signal(signal.SIGINT, signal.default_int_handler)
