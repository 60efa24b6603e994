"""What all tests need of the process that runs them."""

from __future__ import annotations

import signal


def pytest_configure() -> None:
    """Signals that the shell told its background jobs to ignore would be ignored by every program that a test starts, too."""
    for name, action in (
        ("SIGINT", signal.default_int_handler),
        ("SIGHUP", signal.SIG_DFL),
        ("SIGTERM", signal.SIG_DFL),
        ("SIGTSTP", signal.SIG_DFL),
    ):
        number = getattr(signal, name, None)
        if number is not None and signal.getsignal(number) == signal.SIG_IGN:
            signal.signal(number, action)
