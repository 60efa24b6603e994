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


def fallen(among: int | None, alone: int | None) -> list[Measurement]:
    """32 holds alone; 56, the fastest among the others, does not; 128 is slower in the run as well."""
    known = []
    for size, ms, fresh_ms in (
        (1, 0.41, None),
        (4, 0.62, None),
        (8, 0.9, None),
        (32, 2.6, 2.6),
        (56, 4.4, 7.0),
        (128, 12.0, None),
    ):
        one = measured(size, ms, noise=0.001, faults=among)
        if fresh_ms is not None:
            alone_faults = alone if size == 56 else among
            fresh = measured(size, fresh_ms, noise=0.001, faults=alone_faults)
            one = msgspec.structs.replace(one, confirmed=fresh.blocks)
        known.append(one)
    return known


def test_faults_that_a_size_has_only_alone_explain_why_it_fell() -> None:
    verdict = judge(fallen(12, 3100), host=HOST)
    assert (verdict.recommended, verdict.standing.fallen) == (32, (56,))
    diagnosis = verdict.diagnosis
    assert diagnosis is not None
    assert diagnosis.kind == "page-faults"
    assert diagnosis.text == (
        "in a fresh process 56 has 3,100 page faults a call, 12 among the other sizes: alone, memory is given back to the "
        "system after a call and taken anew; what the run had allocated before kept it; `--allocator keep` tries without"
    )
    assert "--allocator keep" in diagnosis.command
    assert diagnosis.numbers["faults_per_call"] == 3100.0
    assert verdict.cost is not None
    assert verdict.cost.text.endswith("more than the line in a fresh process: page faults")


def test_a_fall_that_no_counter_explains_is_not_laid_to_the_run() -> None:
    for among, alone in ((None, None), (12, 12), (12, 150)):
        diagnosis = judge(
            fallen(among, alone), plan=Plan(batch_sizes=(1, 4, 8, 32, 56, 128)), host=HOST
        ).diagnosis
        assert diagnosis is not None
        assert diagnosis.kind == "process-history"
        assert diagnosis.text.startswith("56 is slower in a fresh process than among the other sizes")
        assert diagnosis.command == "batchpeak sweep --fresh --batch-sizes 1,4,8,32,56,128"


def test_a_peak_that_fell_is_explained_though_nothing_bends() -> None:
    one = measured(64, 5.0, noise=0.001, faults=0)
    slow = measured(64, 6.0, noise=0.001, faults=900)
    diagnosis = judge(
        [measured(8, 3.0, faults=0), msgspec.structs.replace(one, confirmed=slow.blocks)], host=HOST
    ).diagnosis
    assert diagnosis is not None
    assert diagnosis.text.startswith("in a fresh process 64 has 900 page faults a call")


def test_below_the_peak_there_is_no_drop_to_speak_of() -> None:
    # From 512 on each call costs 40 % more than the line, and the throughput rises all the same.
    line = {size: (20.0 + 0.01 * size) * (1.4 if size >= 512 else 1.0) for size in (64, 128, 256, 512, 1024)}
    known = [measured(size, ms, faults=17216 if size >= 512 else 0) for size, ms in line.items()]
    verdict = judge(known, host=HOST)
    assert verdict.peak == 1024
    assert verdict.diagnosis is not None
    assert verdict.diagnosis.text.startswith("the extra cost from 512 on goes with 17,216 page faults a call")
