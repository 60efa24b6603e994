"""The other side of the benches, a process of its own: torch's Timer, and the plain loop, on the built-in model.

Reads one JSON object a line on stdin, answers one a line on stdout.
  {"do": "timer", "seconds": 1.0}                 -> {"throughput": images/s at batch size 1 by the median of
                                                         the Timer's blocks, "mean_throughput": by their mean}
  {"do": "loop", "batch_sizes": [1, 8], "calls": 50} -> {"throughput": {"1": ..., ...}, "seconds": wall time of all}
"""

from __future__ import annotations

import json
import subprocess
import sys
import time
from typing import Any

Answer = dict[str, Any]


class PlainProcess:
    """Starts this file as a child and asks it."""

    def __init__(self, *, threads: int) -> None:
        self._child = subprocess.Popen(
            [sys.executable, "-m", "tests.bench.plain_loop", str(threads)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            bufsize=1,
        )

    def ask(self, **question: object) -> Answer:
        assert self._child.stdin is not None
        assert self._child.stdout is not None
        self._child.stdin.write(json.dumps(question) + "\n")
        answer: Answer = json.loads(self._child.stdout.readline())
        return answer

    def close(self) -> None:
        assert self._child.stdin is not None
        self._child.stdin.close()
        self._child.wait()


def main() -> None:
    import torch
    from torch.utils.benchmark import Timer

    from engine.models import fashion_cnn

    threads = int(sys.argv[1])
    torch.set_num_threads(threads)
    model = fashion_cnn.load()
    with torch.inference_mode():
        for line in sys.stdin:
            question = json.loads(line)
            if question["do"] == "timer":
                timer = Timer(
                    "model(x)",
                    globals={"model": model, "x": fashion_cnn.sample_batch(1)},
                    num_threads=threads,
                )
                measured = timer.blocked_autorange(min_run_time=question["seconds"])
                answer: Answer = {
                    "throughput": 1.0 / measured.median,
                    "mean_throughput": 1.0 / measured.mean,
                }
            else:
                begun = time.perf_counter()
                answer = {"throughput": {}}
                for size in question["batch_sizes"]:
                    images = fashion_cnn.sample_batch(size)
                    model(images)
                    before = time.perf_counter()
                    for _ in range(question["calls"]):
                        model(images)
                    answer["throughput"][str(size)] = (
                        size * question["calls"] / (time.perf_counter() - before)
                    )
                answer["seconds"] = time.perf_counter() - begun
            print(json.dumps(answer), flush=True)


if __name__ == "__main__":
    main()
