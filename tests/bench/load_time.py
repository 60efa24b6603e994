"""Time from nothing to a loaded ResNet-18: the measuring process, over a bare Python that imports and builds it, in turn."""

from __future__ import annotations

import argparse
import statistics
import subprocess
import sys
import time
from pathlib import Path

from engine import wire
from engine.plan import Plan
from engine.process import WorkerProcess
from tests.bench.ratios import judged, summary

MODEL = Path(__file__).with_name("resnet18.py")


def ours() -> float:
    """Seconds from the start of a measuring process to its word that the model is ready."""
    begun = time.perf_counter()
    worker = WorkerProcess({})
    try:
        reply = worker.request(wire.Load(Plan(model=f"{MODEL}:resnet18", input="3x224x224")))
        elapsed = time.perf_counter() - begun
    finally:
        worker.close()
    if not isinstance(reply, wire.ReadyReply):
        raise SystemExit(f"it was not loaded: {reply}")
    return elapsed


def theirs() -> float:
    """Seconds of `python -c "import ...; build()"`, from its start to the line it prints when the model is built."""
    code = f"import sys; sys.path.insert(0, {str(MODEL.parent)!r}); import resnet18; "
    code += "model = resnet18.resnet18().eval(); print('ready', flush=True); import os; os._exit(0)"
    begun = time.perf_counter()
    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE) as child:
        assert child.stdout is not None
        child.stdout.readline()
        return time.perf_counter() - begun


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--repeats", type=int, default=10)
    ratios = []
    ours(), theirs()  # the first import reads the files from the disk
    for repeat in range(arguments.parse_args().repeats):
        pair = (ours(), theirs()) if repeat % 2 else tuple(reversed((theirs(), ours())))
        ratios.append(pair[0] / pair[1])
        print(f"ours {pair[0]:.3f} s, plain {pair[1]:.3f} s, ratio {ratios[-1]:.4f}", flush=True)
    print("ratio:", summary(ratios))
    print(judged("median ratio", statistics.median(ratios), None, 1.05))


if __name__ == "__main__":
    main()
