"""Questions to other programs (which devices has torch, which models has a library), asked in processes that can be ended at once."""

from __future__ import annotations

import subprocess
import threading
from collections.abc import Sequence


class Asking:
    """Runs short-lived processes. What it runs is gone when `stop` returns, so that it disturbs no measuring."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._children: set[subprocess.Popen[str]] = set()
        self._stopped = False

    def run(self, command: Sequence[str], *, timeout_s: float) -> subprocess.CompletedProcess[str]:
        """Run a command to its end. Raises OSError, or subprocess.SubprocessError when it takes too long or was stopped."""
        with self._lock:
            if self._stopped:
                raise subprocess.SubprocessError("nobody waits for the answer any longer")
            child = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                text=True,
                errors="replace",
            )
            self._children.add(child)
        try:
            output, errors = child.communicate(timeout=timeout_s)
        except subprocess.TimeoutExpired:
            child.kill()
            child.communicate()
            raise
        finally:
            with self._lock:
                self._children.discard(child)
        if self._stopped:
            raise subprocess.SubprocessError("nobody waits for the answer any longer")
        return subprocess.CompletedProcess(command, child.returncode, output, errors)

    def stop(self) -> None:
        """End what runs, and run nothing further. Safe to call twice, and from another thread than `run`."""
        with self._lock:
            self._stopped = True
            running = list(self._children)
        for child in running:
            child.kill()
        for child in running:
            child.wait()
