"""Warnings: told when a figure is in doubt, silent when it is not, with a remedy that fits what was found."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from engine.checks import other_load, point_warnings, run_warnings
from engine.events import Warned
from engine.plan import Plan
from engine.results import Block, Measurement, Prepared
from engine.schedule import Sweep
from tests.unit.scripted import Noise, ScriptedRunner, drive

HOST: dict[str, Any] = {"usable_cores": 2, "cores_by_affinity": 8, "cores_by_quota": 2.0}


def block(
    call_ms: Sequence[float] = (10.0,) * 5, *, load: float | None = None, round_: int = 0, group: int = 1
) -> Block:
    calls = len(call_ms) * group
    return Block(
        32,
        calls,
        sum(call_ms) * group / 1e3,
        tuple(call_ms),
        32 * calls,
        group=group,
        other_load=load,
        round=round_,
    )


def measured(blocks: Sequence[Block], **fields: Any) -> Measurement:
    return Measurement(32, **{"state": "stable", "blocks": tuple(blocks), **fields})


def kinds(warned: Sequence[Warned]) -> list[str]:
    return [w.kind for w in warned]


def only(warned: Sequence[Warned]) -> Warned:
    (one,) = warned
    return one


class TestOneSize:
    def test_a_clean_size_has_no_warning(self) -> None:
        prepared = Prepared(32, 1.0, 5, effective_batch_size=32)
        assert point_warnings(measured([block(load=0.1)] * 8, prepared=prepared)) == ()
        assert point_warnings(Measurement(32)) == ()

    def test_interruptions_in_one_block_are_told_with_share_size_and_distance(self) -> None:
        blocks = [block(round_=i) for i in range(9)] + [block((10.0, 10.0, 150.0, 10.0, 10.0), round_=9)]
        warned = only(point_warnings(measured(blocks)))
        assert warned.kind == "outliers"
        assert "1 of 50 calls (2.00 %) took up to 150 ms, the typical one 10 ms" in warned.text
        assert "21.9 % below the figure" in warned.text
        assert warned.numbers["mean_to_figure"] == pytest.approx(500 / 640 - 1)
        assert warned.numbers["time_share"] == pytest.approx(140 / 640)

    def test_the_remedy_for_outliers_depends_on_what_was_counted(self) -> None:
        calls = (10.0,) * 9 + (40.0,)
        remedies = []
        for load in (None, 0.1, 3.0):
            found = point_warnings(measured([block(calls, load=load)] * 6))
            remedies.append(next(w.remedy for w in found if w.kind == "outliers"))
        assert "idle machine" in remedies[0]
        assert "No other load" in remedies[1]
        assert "3.0 cores" in remedies[2]

    def test_a_rare_small_outlier_is_not_worth_a_warning(self) -> None:
        assert point_warnings(measured([block((1.0,) * 999 + (3.0,))] * 6)) == ()

    def test_other_load_during_the_blocks_is_told_in_cores(self) -> None:
        warned = only(point_warnings(measured([block(load=1.0), block(load=2.0)] * 4)))
        assert warned.kind == "other-load"
        assert "1.5 cores" in warned.text

    def test_a_noisy_size_says_how_long_the_precision_would_take(self) -> None:
        blocks = [block((10.0 + 0.5 * ((7 * i) % 5),) * 5, round_=i) for i in range(20)]
        warned = only(point_warnings(measured(blocks, state="noisy"), precision=0.02))
        half = warned.numbers["half_width"]
        assert warned.kind == "noisy"
        assert half > 0.02
        assert warned.numbers["seconds_needed"] == pytest.approx(
            warned.numbers["seconds"] * (half / 0.02) ** 2
        )
        assert "more at this noise" in warned.remedy

    def test_a_hopelessly_noisy_size_is_not_told_to_wait(self) -> None:
        blocks = [block((50.0 if i % 2 else 5.0,), round_=i) for i in range(200)]
        warned = point_warnings(measured(blocks, state="noisy"), precision=0.001)
        assert "out of reach" in next(w.remedy for w in warned if w.kind == "noisy")

    def test_grouped_calls_are_told(self) -> None:
        warned = only(point_warnings(measured([block((0.02,) * 50, group=40)] * 6)))
        assert warned.kind == "clock-groups"
        assert "40" in warned.text

    def test_a_coarse_clock_is_told(self) -> None:
        blocks = [block((1.0,) * 50)] * 6
        assert kinds(point_warnings(measured(blocks), timer_resolution_s=0.0156)) == ["timer"]
        assert point_warnings(measured(blocks), timer_resolution_s=1e-7) == ()

    def test_a_model_that_processed_another_batch_is_told(self) -> None:
        warned = only(
            point_warnings(measured([block()] * 6, prepared=Prepared(32, 1.0, 5, effective_batch_size=1)))
        )
        assert warned.kind == "batch-size"
        assert warned.numbers == {"batch_size": 32, "effective_batch_size": 1}

    def test_outputs_without_a_batch_leave_the_number_of_items_unknown(self) -> None:
        (warned,) = point_warnings(measured([block()] * 6, prepared=Prepared(32, 1.0, 5)))
        assert warned.kind == "batch-size-unknown"
        assert "is unknown; 32 are counted" in warned.text

    def test_outputs_of_nan_or_zero_are_told(self) -> None:
        broken = Prepared(32, 1.0, 5, effective_batch_size=32, finite=False, all_zero=True)
        assert kinds(point_warnings(measured([block()] * 6, prepared=broken))) == ["not-finite", "all-zero"]


class TestRun:
    def test_a_clean_run_has_no_warning(self) -> None:
        assert run_warnings([measured([block(load=0.0)] * 8)], host=HOST, plan=Plan()) == ()
        assert run_warnings([], host={}, plan=Plan(threads=64)) == ()

    def test_more_threads_than_usable_cores_are_told_with_the_bounds(self) -> None:
        warned = only(run_warnings([], host=HOST, plan=Plan(threads=8)))
        assert warned.kind == "threads"
        assert warned.text == "8 threads share 2 usable cores (affinity allows 8, the container's quota is 2)"
        assert "--threads 2" in warned.remedy
        assert run_warnings([], host=HOST, plan=Plan(threads=2)) == ()

    @pytest.mark.parametrize(
        ("usable", "threads", "load", "said"),
        [(8, None, 2.5, "--threads 5"), (8, 4, 2.5, "left to them by --threads 4"), (2, None, 1.8, "idle")],
    )
    def test_the_remedy_for_other_load_counts_the_cores(
        self, usable: int, threads: int | None, load: float, said: str
    ) -> None:
        host = {"usable_cores": usable}
        warned = only(run_warnings([measured([block(load=load)] * 8)], host=host, plan=Plan(threads=threads)))
        assert warned.kind == "other-load"
        assert f"{load:.1f} of {usable} cores" in warned.text
        assert said in warned.remedy

    def test_other_load_is_weighted_by_time_and_none_when_not_counted(self) -> None:
        assert other_load(
            [block((10.0,), load=4.0), block((30.0,), load=0.0), block((90.0,))]
        ) == pytest.approx(1.0)
        assert other_load([block()]) is None

    def test_a_slowing_run_is_told_and_a_steady_one_is_not(self) -> None:
        def swept(drift: float) -> Sequence[Measurement]:
            runner = ScriptedRunner(noise=Noise(call=0.01, block=0.005, drift_per_s=drift))
            sweep = Sweep((8, 32, 128), precision=0.003, size_budget_s=2.0)
            drive(sweep, runner, runner.clock)
            return sweep.measurements()

        warned = only(run_warnings(swept(0.01), host=HOST, plan=Plan()))
        assert warned.kind == "drift"
        assert warned.text.startswith("throughput fell by ")
        assert warned.numbers["total"] < -0.03
        assert run_warnings(swept(0.0), host=HOST, plan=Plan()) == ()

    def test_a_compile_that_fell_back_names_its_sizes(self) -> None:
        sizes = [
            Measurement(size, prepared=Prepared(size, 1.0, 5, compiled=compiled))
            for size, compiled in ((8, True), (32, False), (64, False), (128, None))
        ]
        warned = only(run_warnings(sizes, host=HOST, plan=Plan(compile="default")))
        assert warned.kind == "compile"
        assert "--compile default fell back to eager at batch size 32, 64" in warned.text
