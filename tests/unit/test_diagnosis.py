"""Why the curve bends: page faults, threads, other load, drift or the working set, with the command that tries the remedy."""

from __future__ import annotations

import msgspec

from engine.diagnosis import sweep_command
from engine.peak import judge
from engine.plan import Plan
from engine.results import Measurement
from tests.unit.test_peak import CNN, measured

HOST = {"os": "Linux 6.1", "usable_cores": 2}


def bent(faults: dict[int, int] | None = None, load: dict[int, float] | None = None) -> list[Measurement]:
    known = []
    for size, ms in CNN.items():
        one = measured(size, ms, faults=(faults or {}).get(size, 0))
        if load is not None:
            blocks = tuple(msgspec.structs.replace(block, other_load=load[size]) for block in one.blocks)
            one = msgspec.structs.replace(one, blocks=blocks)
        known.append(one)
    return known


def test_faults_that_jump_where_the_throughput_drops_are_named_with_the_command() -> None:
    plan = Plan(threads=1, seed=7)
    diagnosis = judge(bent({128: 12, 512: 17216}), plan=plan, host=HOST).diagnosis
    assert diagnosis is not None
    assert diagnosis.kind == "page-faults"
    assert "the drop from 512 on goes with 17,216 page faults a call" in diagnosis.text
    assert (
        diagnosis.command
        == "batchpeak sweep --allocator keep --threads 1 --seed 7 --batch-sizes 1,8,32,128,512"
    )


def test_kept_memory_is_not_advised_to_who_keeps_it_already() -> None:
    diagnosis = judge(bent({512: 17216}), plan=Plan(allocator="keep"), host=HOST).diagnosis
    assert diagnosis is not None
    assert diagnosis.command == ""


def test_faults_that_cost_too_little_to_explain_the_drop_are_not_blamed() -> None:
    diagnosis = judge(bent({512: 150}), host=HOST).diagnosis
    assert diagnosis is not None
    assert diagnosis.kind == "working-set"


def test_faults_in_proportion_to_the_size_are_not_a_jump() -> None:
    diagnosis = judge(bent({size: 30 * size for size in CNN}), host=HOST).diagnosis
    assert diagnosis is not None
    assert diagnosis.kind == "working-set"


def test_more_threads_than_cores_come_before_the_working_set() -> None:
    diagnosis = judge(bent(), plan=Plan(threads=8), host=HOST).diagnosis
    assert diagnosis is not None
    assert diagnosis.kind == "threads"
    assert "--threads 2" in diagnosis.command


def test_other_work_beside_the_slow_sizes_is_named() -> None:
    busy = {size: 1.2 if size == 512 else 0.1 for size in CNN}
    diagnosis = judge(bent(load=busy), host=HOST).diagnosis
    assert diagnosis is not None
    assert diagnosis.kind == "other-load"
    even = judge(bent(load=dict.fromkeys(CNN, 1.2)), host=HOST).diagnosis
    assert even is not None
    assert even.kind == "working-set"


def test_a_curve_that_does_not_bend_needs_no_reason() -> None:
    assert judge([measured(size, 2.0 + 0.05 * size) for size in (1, 8, 32, 128)], host=HOST).diagnosis is None
    assert judge([], host=HOST).diagnosis is None


def test_the_command_carries_the_plan_s_other_options_quoted_for_a_shell() -> None:
    plan = Plan(
        kind="peak",
        model="my models/net.py:Net",
        batch_sizes=(1, 64),
        dtype="bfloat16",
        channels_last=True,
        budget_s=30.0,
        limit_ms=20.0,
        model_args={"width": "2"},
    )
    assert sweep_command(plan, allocator="keep") == (
        "batchpeak sweep --allocator keep --dtype bfloat16 --budget 30s --limit 20ms --channels-last "
        "--model-arg width=2 --batch-sizes 1,64 'my models/net.py:Net'"
    )
