"""The sweep's rounds, ends and failures, driven by the scripted model on its simulated clock."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
import pytest

from engine import stats
from engine.results import Block, Failure, Measurement, Prepared, State
from engine.schedule import Sweep
from tests.unit.scripted import Clock, CostCurve, Noise, ScriptedRunner, drive

SIZES = (1, 8, 32, 128, 512)
OOM = Failure("oom", "out of memory", "Tried to allocate 2.00 GiB.")
QUIET = Noise(call=0.01)
LOUD = Noise(call=0.01, block=0.3)


def run(sweep: Sweep, runner: ScriptedRunner) -> dict[int, Measurement]:
    drive(sweep, runner, runner.clock)
    return {m.batch_size: m for m in sweep.measurements()}


def states(measurements: dict[int, Measurement]) -> list[State]:
    return [measurements[size].state for size in sorted(measurements)]


def blocks_of(runner: ScriptedRunner) -> list[int]:
    return [int(line.split()[1]) for line in runner.log if line.startswith("block")]


def rounds_of(measurements: dict[int, Measurement]) -> list[list[int]]:
    """The sizes of each round in the order in which they were measured (blocks keep their round, not their place)."""
    rounds: dict[int, list[int]] = {}
    for m in measurements.values():
        for b in m.blocks:
            rounds.setdefault(b.round, []).append(b.batch_size)
    return [sorted(rounds[r]) for r in sorted(rounds)]


class TestRounds:
    def test_the_first_round_ascends_and_later_ones_are_shuffled(self) -> None:
        runner = ScriptedRunner(noise=QUIET)
        run(Sweep((512, 8, 1, 128, 32)), runner)
        order = blocks_of(runner)
        assert order[:5] == list(SIZES)
        later = [order[i : i + 5] for i in range(5, 30, 5)]
        assert all(sorted(r) == list(SIZES) for r in later)
        assert any(r != list(SIZES) for r in later)
        assert len({tuple(r) for r in later}) > 1

    def test_every_live_size_gets_one_block_a_round(self) -> None:
        measured = run(Sweep(SIZES), ScriptedRunner(noise=QUIET))
        rounds = rounds_of(measured)
        assert all(len(set(r)) == len(r) for r in rounds)
        assert all(r == list(SIZES) for r in rounds[:6])

    def test_the_same_seed_gives_the_same_order_and_another_seed_another(self) -> None:
        orders = []
        for seed in (3, 3, 4):
            runner = ScriptedRunner(noise=QUIET)
            run(Sweep(SIZES, seed=seed), runner)
            orders.append(blocks_of(runner)[:30])
        assert orders[0] == orders[1] != orders[2]

    def test_a_settled_size_leaves_the_rounds_and_the_noisy_one_goes_on(self) -> None:
        def cost(size: int) -> float:
            return 0.0005 if size == 8 else 0.05  # a hundred calls a block average out, one does not

        measured = run(Sweep((8, 32)), ScriptedRunner(cost=cost, noise=Noise(call=0.05)))
        assert states(measured) == ["stable", "stable"]
        assert len(measured[8].blocks) <= 9
        assert len(measured[32].blocks) > 20

    def test_asking_again_without_telling_asks_for_the_same(self) -> None:
        sweep = Sweep(SIZES)
        assert sweep.ask(0.0) == sweep.ask(1.0)

    def test_before_anything_is_measured_every_size_is_listed_ascending(self) -> None:
        listed = Sweep((8, 1)).measurements()
        assert [(m.batch_size, m.state, m.blocks) for m in listed] == [
            (1, "measuring", ()),
            (8, "measuring", ()),
        ]

    def test_an_empty_list_is_done_at_once(self) -> None:
        sweep = Sweep(())
        assert sweep.ask(0.0) is None
        assert list(sweep.measurements()) == []


class TestEnds:
    def test_quiet_sizes_are_stable_within_the_precision(self) -> None:
        for m in run(Sweep(SIZES), ScriptedRunner(noise=QUIET)).values():
            interval = stats.throughput_interval(m.blocks)
            assert m.state == "stable"
            assert interval is not None
            assert interval.relative_half_width <= 0.02

    def test_a_finer_precision_takes_more_blocks(self) -> None:
        coarse = run(Sweep((128,), precision=0.02), ScriptedRunner(noise=Noise(call=0.05)))
        fine = run(Sweep((128,), precision=0.01), ScriptedRunner(noise=Noise(call=0.05)))
        assert len(fine[128].blocks) > 2 * len(coarse[128].blocks)

    def test_a_size_at_its_ceiling_is_noisy_and_keeps_its_wide_interval(self) -> None:
        measured = run(Sweep((1, 8), size_budget_s=1.0), ScriptedRunner(noise=LOUD))
        assert states(measured) == ["noisy", "noisy"]
        for m in measured.values():
            interval = stats.throughput_interval(m.blocks)
            assert interval is not None
            assert interval.relative_half_width > 0.02
            assert 1.0 <= m.seconds < 1.2

    @pytest.mark.parametrize(("call_s", "blocks"), [(6.0, 2), (11.0, 1), (3.0, 4), (2.4, 5)])
    def test_too_few_blocks_within_the_ceiling_are_short_and_at_least_one_is_taken(
        self, call_s: float, blocks: int
    ) -> None:
        runner = ScriptedRunner(cost=lambda _: call_s, noise=Noise(call=0.0))
        measured = run(Sweep((32,), size_budget_s=10.0), runner)
        assert states(measured) == ["short"]
        assert len(measured[32].blocks) == blocks
        assert stats.throughput_interval(measured[32].blocks) is None

    def test_a_model_alternating_5_and_50_ms_has_a_noisy_row_with_its_wide_interval(self) -> None:
        sweep, clock = Sweep((8,)), 0.0
        while (ask := sweep.ask(clock)) is not None:
            seconds = 0.005 if ask.round % 2 else 0.05
            clock += seconds
            sweep.tell(
                Block(8, calls=1, seconds=seconds, call_ms=(seconds * 1e3,), items=8, round=ask.round), clock
            )
        (row,) = sweep.measurements()
        interval = stats.throughput_interval(row.blocks)
        assert row.state == "noisy"
        assert 10.0 <= row.seconds < 10.1
        assert interval is not None
        assert interval.relative_half_width > 0.05

    def test_the_runs_ceiling_ends_every_size_as_it_is(self) -> None:
        runner = ScriptedRunner(noise=LOUD)
        measured = run(Sweep(SIZES, budget_s=4.0), runner)
        assert states(measured) == ["noisy"] * 5
        assert runner.clock.now < 4.2

    def test_sizes_that_the_runs_ceiling_keeps_away_are_skipped_and_say_so(self) -> None:
        runner = ScriptedRunner(cost=lambda size: 0.3 * size, noise=QUIET)
        measured = run(Sweep(SIZES, budget_s=6.0), runner)
        assert states(measured) == ["short", "short", "short", "skipped", "skipped"]
        failure = measured[512].failure
        assert failure is not None
        assert failure.kind == "time"
        assert "6 s" in failure.message

    def test_the_first_size_gets_a_block_whatever_the_runs_ceiling(self) -> None:
        measured = run(Sweep((64,), budget_s=0.001), ScriptedRunner(noise=QUIET))
        assert len(measured[64].blocks) == 1
        assert states(measured) == ["short"]

    def test_cancelled_sizes_keep_their_blocks_and_settled_ones_their_state(self) -> None:
        sweep, clock = Sweep((8, 32)), Clock()
        runner = ScriptedRunner(
            clock, cost=lambda size: 0.0005 if size == 8 else 0.05, noise=Noise(call=0.06)
        )
        prepared = {size: runner.prepare(size) for size in (8, 32)}
        for ready in prepared.values():
            assert isinstance(ready, Prepared)
            sweep.tell_prepared(ready, clock.now)
        late: Block | Failure | None = None
        for _ in range(40):
            ask = sweep.ask(clock.now)
            assert ask is not None
            late = runner.block(ask.batch_size, ask.round)
            assert isinstance(late, Block)
            sweep.tell(late, clock.now)
        sweep.cancel()
        first, second = sweep.measurements()
        assert (first.state, second.state) == ("stable", "cancelled")
        assert len(second.blocks) > 20
        assert sweep.ask(clock.now) is None
        assert isinstance(late, Block)
        sweep.tell(late, clock.now)
        assert (sweep.measurements()[1].state, len(sweep.measurements()[1].blocks)) == (
            "cancelled",
            len(second.blocks) + 1,
        )


class TestFailures:
    def test_oom_at_128_keeps_the_smaller_rows_and_skips_512_naming_128(self) -> None:
        measured = run(Sweep(SIZES), ScriptedRunner(noise=QUIET, failures={128: OOM, 512: OOM}))
        assert states(measured) == ["stable", "stable", "stable", "oom", "skipped"]
        assert measured[128].failure == OOM
        assert measured[512].failure is not None
        assert "128" in measured[512].failure.title
        assert measured[512].failure.kind == "oom"

    def test_larger_sizes_are_not_tried_after_oom(self) -> None:
        runner = ScriptedRunner(noise=QUIET, failures={128: OOM})
        run(Sweep(SIZES), runner)
        assert "prepare 512" not in runner.log

    def test_oom_in_a_later_round_keeps_the_blocks_of_all(self) -> None:
        measured = run(Sweep(SIZES), ScriptedRunner(noise=QUIET, late_failures={128: (3, OOM)}))
        assert states(measured) == ["stable", "stable", "stable", "oom", "stable"]
        assert len(measured[128].blocks) == 3

    def test_an_error_at_one_size_does_not_stop_the_others(self) -> None:
        error = Failure("error", "RuntimeError", "shape '[8, 784]' is invalid for input of size 25088")
        measured = run(Sweep(SIZES), ScriptedRunner(noise=QUIET, failures={32: error}))
        assert states(measured) == ["stable", "stable", "error", "stable", "stable"]

    def test_the_same_error_at_the_first_two_sizes_ends_the_run(self) -> None:
        error = Failure("error", "RuntimeError", "expected 3 channels, got 1", "net.py:12")
        runner = ScriptedRunner(noise=QUIET, failures=dict.fromkeys(SIZES, error))
        measured = run(Sweep(SIZES), runner)
        assert runner.log == ["prepare 1", "prepare 8"]
        assert states(measured) == ["error", "error", "skipped", "skipped", "skipped"]
        assert measured[32].failure is not None
        assert error.message in measured[32].failure.message

    def test_an_error_that_differs_only_by_the_batch_size_is_the_same(self) -> None:
        failures = {
            size: Failure(
                "error", "RuntimeError", f"mat1 and mat2 shapes cannot be multiplied ({size}x784 and 100x10)"
            )
            for size in SIZES
        }
        runner = ScriptedRunner(noise=QUIET, failures=failures)
        assert states(run(Sweep(SIZES), runner)) == ["error", "error", "skipped", "skipped", "skipped"]

    def test_a_model_for_batch_size_8_only_is_measured_there(self) -> None:
        sizes = (1, 2, 8, 16)
        failures = {
            size: Failure(
                "error", "RuntimeError", f"shape '[8, 784]' is invalid for input of size {size * 784}"
            )
            for size in (1, 2, 16)
        }
        measured = run(Sweep(sizes), ScriptedRunner(noise=QUIET, failures=failures))
        assert states(measured) == ["error", "error", "stable", "error"]

    def test_a_killed_size_is_an_error_and_the_rest_goes_on(self) -> None:
        killed = Failure("killed", "killed by the system", "The process was ended by signal 9.")
        measured = run(Sweep(SIZES), ScriptedRunner(noise=QUIET, late_failures={32: (1, killed)}))
        assert states(measured) == ["stable", "stable", "error", "stable", "stable"]
        assert measured[32].failure == killed
        assert len(measured[32].blocks) == 1

    def test_a_forecast_skips_that_size(self) -> None:
        forecast = Failure("forecast", "needs about 48 GB, 16 GB free", "skipped; --force tries it.")
        measured = run(Sweep(SIZES), ScriptedRunner(noise=QUIET, failures={512: forecast}))
        assert states(measured) == ["stable", "stable", "stable", "stable", "skipped"]
        assert measured[512].failure == forecast

    def test_a_list_whose_only_size_fails_ends(self) -> None:
        assert states(run(Sweep((512,)), ScriptedRunner(failures={512: OOM}))) == ["oom"]


class TestPriorAndLonger:
    def test_settled_sizes_are_not_asked_for_again(self) -> None:
        before = run(Sweep((1, 8)), ScriptedRunner(noise=QUIET))
        runner = ScriptedRunner(noise=QUIET, seed=1)
        kept = [msgspec.structs.replace(m, kept_from="earlier") for m in before.values()]
        measured = run(Sweep((1, 8, 32), prior=kept), runner)
        assert set(blocks_of(runner)) == {32}
        assert measured[1] == kept[0]
        assert states(measured) == ["stable"] * 3
        assert measured[32].kept_from is None

    def test_an_unfinished_size_goes_on_from_its_blocks_in_later_rounds(self) -> None:
        first = ScriptedRunner(noise=QUIET)
        blocks = tuple(b for r in range(3) if isinstance(b := first.block(32, r), Block))
        prior = [Measurement(32, state="cancelled", blocks=blocks)]
        measured = run(Sweep((32,), prior=prior), ScriptedRunner(noise=QUIET, seed=1))
        assert measured[32].state == "stable"
        assert measured[32].blocks[:3] == blocks
        assert min(b.round for b in measured[32].blocks[3:]) > 2

    def test_an_out_of_memory_known_from_before_still_skips_larger_sizes(self) -> None:
        runner = ScriptedRunner(noise=QUIET)
        measured = run(Sweep((1, 128, 512), prior=[Measurement(128, state="oom", failure=OOM)]), runner)
        assert states(measured) == ["stable", "oom", "skipped"]
        assert "prepare 512" not in runner.log

    def test_sizes_not_listed_any_more_are_left_out(self) -> None:
        before = run(Sweep((1, 8)), ScriptedRunner(noise=QUIET))
        assert [m.batch_size for m in Sweep((8, 32), prior=before.values()).measurements()] == [8, 32]

    def test_a_noisy_size_measured_longer_gets_the_further_time(self) -> None:
        runner = ScriptedRunner(noise=LOUD)
        sweep = Sweep((1, 8), size_budget_s=1.0)
        before = run(sweep, runner)
        sweep.add([8], extra_s=3.0)
        after = run(sweep, runner)
        assert after[8].state == "noisy"
        assert 3.9 < after[8].seconds < 4.3
        assert after[1] == before[1]

    def test_a_stable_size_measured_longer_aims_at_half_its_width(self) -> None:
        runner = ScriptedRunner(noise=Noise(call=0.05))
        sweep = Sweep((128,))
        before = stats.throughput_interval(run(sweep, runner)[128].blocks)
        sweep.add([128], now=runner.clock.now)
        measured = run(sweep, runner)[128]
        after = stats.throughput_interval(measured.blocks)
        assert before is not None
        assert after is not None
        assert measured.state == "stable"
        assert after.relative_half_width <= before.relative_half_width / 2

    def test_a_stable_size_stays_stable_when_the_further_time_does_not_halve_its_width(self) -> None:
        runner = ScriptedRunner(noise=Noise(call=0.05))
        sweep = Sweep((128,))
        run(sweep, runner)
        sweep.add([128], extra_s=1.0)
        measured = run(sweep, runner)[128]
        interval = stats.throughput_interval(measured.blocks)
        assert interval is not None
        assert 0.01 < interval.relative_half_width <= 0.02
        assert measured.state == "stable"

    def test_sizes_can_be_measured_longer_after_the_runs_ceiling(self) -> None:
        runner = ScriptedRunner(noise=LOUD)
        sweep = Sweep((8,), budget_s=1.0)
        before = run(sweep, runner)[8]
        runner.clock.advance(100.0)
        sweep.add([8], extra_s=1.0, now=runner.clock.now)
        assert run(sweep, runner)[8].seconds > before.seconds + 0.5

    def test_suggested_sizes_are_added_but_not_beyond_what_memory_holds(self) -> None:
        runner = ScriptedRunner(noise=QUIET, failures={128: OOM})
        sweep = Sweep((32, 128))
        run(sweep, runner)
        sweep.add([64, 256])
        measured = run(sweep, runner)
        assert {size: m.state for size, m in measured.items()} == {
            32: "stable", 64: "stable", 128: "oom", 256: "skipped",
        }  # fmt: skip


@pytest.mark.parametrize("sizes", [(1,), (1, 2, 3), tuple(range(1, 40))])
def test_every_sweep_ends_with_every_size_settled(sizes: Sequence[int]) -> None:
    runner = ScriptedRunner(cost=CostCurve(cliff_at=3), noise=Noise(call=0.1, block=0.1, spike_rate=0.01))
    measured = run(Sweep(sizes, budget_s=20.0), runner)
    assert "measuring" not in states(measured)
    assert runner.clock.now < 21.0


def test_a_size_that_the_model_does_not_take_says_nothing_of_the_others() -> None:
    sweep = Sweep((1, 8, 32))
    refused = Failure("error", "takes batch size 32 only", "It was exported for 32.", of_size=True)
    sweep.tell_failure(1, refused, 0.0)
    sweep.tell_failure(8, refused, 0.0)
    states = {one.batch_size: one.state for one in sweep.measurements()}
    assert states == {1: "error", 8: "error", 32: "measuring"}
