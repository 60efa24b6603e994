"""A project with its own `engine.py` in the real measuring process: it loads, is measured, and leaves nothing behind."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from engine import wire
from engine.plan import Plan
from engine.process import WorkerProcess

PROJECT = {
    "engine.py": "from utils import SIDE\nprint('their engine')\n",
    "utils.py": "import torch\ntorch.set_num_threads(1)\nSIDE = 4\n",
    "model.py": """
import engine
from torch import nn

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(engine.SIDE, 2)

    def forward(self, x):
        import engine
        print("called", flush=True)
        assert engine.SIDE == 4
        return self.layer(x)
""",
    "quits.py": "import sys\nsys.exit('no')\nclass Net: pass\n",
}


@pytest.fixture
def worker(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[WorkerProcess]:
    monkeypatch.chdir(tmp_path)
    for name, code in PROJECT.items():
        Path(name).write_text(code)
    process = WorkerProcess({})
    yield process
    process.close()


def test_a_project_with_its_own_engine_is_measured_and_the_next_model_too(worker: WorkerProcess) -> None:
    ready = worker.request(wire.Load(Plan(model="model.py:Net", input="4", threads=2)))
    assert isinstance(ready, wire.ReadyReply), ready
    assert (ready.name, ready.threads, ready.unit) == ("model.py:Net", 2, "items/s")
    prepared = worker.request(wire.Prepare(3))
    assert isinstance(prepared, wire.PreparedReply), prepared
    assert prepared.prepared.effective_batch_size == 3
    assert isinstance(worker.request(wire.Measure(3)), wire.BlockReply)
    refused = worker.request(wire.Load(Plan(model="quits.py:Net", input="4")))
    assert isinstance(refused, wire.FailedReply)
    assert refused.usage
    assert "sys.exit('no')" in refused.failure.message
    built_in = worker.request(wire.Load(Plan()))
    assert isinstance(built_in, wire.ReadyReply), built_in
    assert built_in.name == "fashion-cnn"
    assert isinstance(worker.request(wire.Prepare(2)), wire.PreparedReply)
