"""The verdict from measurements: peak, ties, knee, kind, limit and advice, with noise and without enough of anything."""

from __future__ import annotations

import math
import random

import msgspec
import pytest

from engine import events
from engine.peak import judge
from engine.plan import Plan
from engine.results import Block, Failure, Measurement, Prepared
from engine.standing import stand
from engine.stats import throughput_estimate

OOM = Failure("oom", "out of memory", "tried to allocate 2 GB")


def measured(
    size: int,
    ms: float,
    *,
    blocks: int = 8,
    calls: int = 50,
    noise: float = 0.005,
    seed: int = 0,
    slow_calls: int = 0,
    processed: int | None = None,
    confirmed_ms: float | None = None,
    faults: int | None = None,
) -> Measurement:
    """A size of `blocks` blocks of `calls` calls; the first `slow_calls` calls of each block take ten times as long."""
    rng = random.Random(seed * 1000 + size)

    def block(index: int, call_ms: float) -> Block:
        level = call_ms * math.exp(rng.gauss(0.0, noise))
        times = tuple(level * (10.0 if call < slow_calls else 1.0) for call in range(calls))
        return Block(
            size,
            calls,
            sum(times) / 1000.0,
            times,
            (processed or size) * calls,
            round=index,
            faults=None if faults is None else faults * calls,
        )

    return Measurement(
        size,
        state="stable",
        prepared=Prepared(size, 1.0, calls, effective_batch_size=processed or size),
        blocks=tuple(block(index, ms) for index in range(blocks)),
        confirmed=tuple(block(index, confirmed_ms) for index in range(8)) if confirmed_ms else (),
    )


CNN = {1: 0.163, 8: 0.55, 32: 1.54, 128: 5.99, 512: 29.2}


def cnn(**change: float) -> list[Measurement]:
    return [measured(size, ms) for size, ms in CNN.items()]


def test_the_advice_names_the_knee_its_peak_and_the_latency_it_saves() -> None:
    verdict = judge(cnn())
    assert (verdict.peak, verdict.knee, verdict.recommended, verdict.kind) == (128, 32, 32, "interior")
    assert verdict.ties == ()
    assert verdict.certain
    assert verdict.advice == "Deploy 32: surely 95 % of the peak (128) at a quarter of its latency."


def test_sizes_within_two_percent_are_ties_even_when_they_can_be_told_apart() -> None:
    verdict = judge([measured(64, 3.0, noise=0.0005), measured(128, 5.95, noise=0.0005)])
    assert verdict.peak == 128
    assert verdict.ties == (64,)
    assert verdict.certain
    assert "tied with" not in verdict.advice.replace("(128)", "")
    assert verdict.knee == 64


def test_noise_makes_it_cannot_tell_instead_of_naming_a_false_winner() -> None:
    verdict = judge([measured(size, size * 0.05 + 1.0, blocks=6, noise=0.1) for size in (64, 96, 128, 192)])
    assert not verdict.certain
    assert len(verdict.ties) >= 2
    assert verdict.advice.startswith("Cannot tell the peak")


def test_a_sure_knee_is_recommended_even_while_the_peak_cannot_be_told() -> None:
    small = measured(32, 1.54, blocks=30, noise=0.02)
    near = [measured(size, size * 0.0475, blocks=6, noise=0.02) for size in (64, 128)]
    verdict = judge([measured(1, 0.163), small, *near])
    assert not verdict.certain
    assert verdict.recommended == verdict.knee == 32
    assert verdict.advice.startswith("Deploy 32: surely 95 % of")
    assert (
        "Cannot tell the peak itself: 32, 64 and 128 tie" in verdict.advice or "tie within" in verdict.advice
    )


@pytest.mark.parametrize(
    ("measurements", "peak", "kind", "words"),
    [
        ([], None, "none", "Nothing was measured."),
        ([measured(8, 1.0)], 8, "none", "Only batch size 8 was measured"),
        ([Measurement(512, state="oom", failure=OOM)], None, "none", "Batch size 512: out of memory"),
        ([Measurement(8, state="cancelled")], None, "none", "Nothing was measured."),
        ([measured(8, 1.0, processed=1)], None, "none", "Nothing to recommend"),
        ([measured(s, 10.0) for s in (1, 8, 32)], 32, "rising", "still rises at 32"),
        ([measured(s, 0.2 * s**1.2) for s in (1, 8, 32)], 1, "falling", "Deploy 1: the peak"),
        ([measured(8, 1.0, blocks=1), measured(16, 1.9, blocks=1)], 16, "rising", "Cannot tell the peak"),
    ],
)
def test_few_or_no_figures_still_give_a_sentence(
    measurements: list[Measurement], peak: int | None, kind: str, words: str
) -> None:
    verdict = judge(measurements)
    assert (verdict.peak, verdict.kind) == (peak, kind)
    assert words in verdict.advice
    assert events.decode(events.encode(verdict.event(run="r", t=0.0))) is not None


def test_all_alike_is_a_plateau_that_names_them_all() -> None:
    verdict = judge([measured(size, size * 1.0) for size in (1, 2, 4, 8, 16)])
    assert verdict.kind == "plateau"
    assert sorted((verdict.peak, *verdict.ties)) == [1, 2, 4, 8, 16]  # type: ignore[type-var]
    assert verdict.knee == 1


def test_out_of_memory_cuts_the_peak_and_suggests_sizes_without_replacing_any() -> None:
    known = [
        measured(1, 0.16),
        measured(8, 0.55),
        measured(32, 1.54),
        Measurement(128, state="oom", failure=OOM),
        Measurement(512, state="skipped", failure=OOM),
    ]
    verdict = judge(known)
    assert (verdict.peak, verdict.kind) == (32, "memory")
    assert "Cut by memory: 128 does not fit." in verdict.advice
    assert [suggestion.batch_size for suggestion in verdict.suggestions][:2] == [64, 96]


def test_a_size_the_model_did_not_process_is_not_the_peak() -> None:
    verdict = judge([*cnn(), measured(2048, 1.0, processed=1)])
    assert verdict.peak == 128


def test_drift_over_the_run_does_not_decide_for_the_size_measured_early() -> None:
    """Both alike, but the second only in later rounds, when everything is 20 % slower; a third spans all rounds."""

    def at(size: int, rounds: range) -> Measurement:
        rng = random.Random(size)
        blocks = []
        for index in rounds:
            ms = size * (1.0 if index < 6 else 1.25) * math.exp(rng.gauss(0.0, 0.003))
            blocks.append(Block(size, 10, ms / 100.0, (ms,) * 10, size * 10, round=index))
        return Measurement(size, blocks=tuple(blocks))

    standing = stand([at(8, range(6)), at(16, range(12)), at(32, range(6, 12))])
    assert standing.field is not None
    assert abs(standing.field.difference(8, 32)) < 0.01


def test_a_limit_recommends_the_best_passing_size_without_measuring_again() -> None:
    known = cnn()
    generous, strict = judge(known, limit_ms=7.0), judge(known, limit_ms=2.0)
    assert generous.limit is not None
    assert strict.limit is not None
    assert (generous.limit.best, generous.recommended) == (128, 128)
    assert (strict.limit.best, strict.recommended, strict.kind) == (32, 32, "limit")
    assert [verdict.verdict for verdict in strict.limit.verdicts] == ["pass", "pass", "pass", "fail", "fail"]


def test_no_size_under_the_limit_names_the_nearest() -> None:
    known = [measured(size, 10.1 * size**0.5, noise=0.0001) for size in (1, 2, 4, 8, 16)]
    verdict = judge(known, limit_ms=1.0)
    assert verdict.recommended is None
    assert verdict.limit is not None
    assert (
        verdict.limit.text == "none of 5 sizes stays under 1 ms; nearest: batch size 1 with a p99 of 10.1 ms"
    )


def test_what_is_said_of_the_nearest_size_does_not_contradict_that_it_fails() -> None:
    # 40 calls at 0.8 ms, 8 more at 8 ms: far too few for a p99, but it is surely over 2 ms.
    verdict = judge([measured(1, 0.8, blocks=8, calls=6, slow_calls=1, noise=0.0001)], limit_ms=2.0)
    assert verdict.limit is not None
    assert [one.verdict for one in verdict.limit.verdicts] == ["fail"]
    assert (
        verdict.limit.text
        == "the one size does not stay under 2 ms; nearest: batch size 1 with a p99 of 8 ms or more"
    )


def test_forty_calls_are_not_a_p99_and_the_verdict_says_how_many_more() -> None:
    verdict = judge([measured(8, 5.0, blocks=4, calls=10)], limit_ms=20.0)
    assert verdict.limit is not None
    (size,) = verdict.limit.verdicts
    assert (size.verdict, size.calls, size.more_calls) == ("unknown", 40, 259)
    assert "8 needs 259 more calls to say" in verdict.limit.text


def test_a_latency_that_does_not_rise_with_the_size_is_said() -> None:
    known = [measured(1, 1.0), measured(8, 9.0), measured(16, 4.0)]
    verdict = judge(known, limit_ms=5.0)
    assert verdict.limit is not None
    assert [one.verdict for one in verdict.limit.verdicts] == ["pass", "fail", "pass"]
    assert verdict.limit.best == 16
    assert "8 misses the limit while 16 keeps it" in verdict.limit.text


def test_the_plan_s_limit_is_judged_like_a_given_one() -> None:
    known = cnn()
    assert (
        judge(known, plan=Plan(limit_ms=2.0, percentile=95)).limit
        == judge(known, limit_ms=2.0, percentile=95).limit
    )


def test_peak_and_recommended_size_are_asked_to_be_confirmed_until_they_are() -> None:
    assert judge(cnn()).to_confirm == (32, 128)
    confirmed = [
        measured(size, ms, confirmed_ms=ms if size in (32, 128) else None) for size, ms in CNN.items()
    ]
    verdict = judge(confirmed)
    assert verdict.to_confirm == ()
    assert verdict.standing.unconfirmed == ()


def test_a_confirmation_that_disagrees_counts_and_is_said() -> None:
    known = [measured(size, ms, confirmed_ms={32: 1.54, 128: 7.8}.get(size)) for size, ms in CNN.items()]
    verdict = judge(known)
    assert verdict.standing.unconfirmed == (128,)
    assert verdict.peak == 32
    assert verdict.knee == 32
    assert "In a fresh process 128 reaches 16,420 images/s, not 21,400." in verdict.advice


FAULTY = {1: 0.6, 8: 1.4, 16: 2.6, 32: 5.25, 48: 7.4, 64: 9.7, 128: 22.0}
"""Fastest at 64 among the other sizes."""


def faulty(**fresh_ms: float) -> list[Measurement]:
    return [
        measured(size, ms, noise=0.001, confirmed_ms=fresh_ms.get(f"at_{size}"))
        for size, ms in FAULTY.items()
    ]


def test_after_a_fall_the_largest_size_that_holds_is_looked_for_by_halving() -> None:
    assert judge(faulty()).to_confirm == (48, 64)
    assert judge(faulty(at_48=18.0, at_64=25.0)).to_confirm == (16,)
    assert judge(faulty(at_48=18.0, at_64=25.0, at_16=2.6)).to_confirm == (32,)
    assert judge(faulty(at_48=18.0, at_64=25.0, at_16=2.6, at_32=5.25)).to_confirm == ()


def test_a_size_that_only_the_run_s_own_figures_praise_is_not_recommended_after_a_fall() -> None:
    verdict = judge(faulty(at_48=18.0, at_64=25.0, at_16=2.6, at_32=13.0))
    assert (verdict.peak, verdict.recommended) == (16, 16)
    assert verdict.standing.fallen == (32, 48, 64)
    assert verdict.standing.undecided == ()
    assert verdict.ties == ()
    assert "In a fresh process 32, 48 and 64 are slower; the figures from there count." in verdict.advice


def test_sizes_beside_a_fallen_one_are_open_until_they_are_confirmed() -> None:
    verdict = judge(faulty(at_64=25.0, at_48=18.0, at_16=2.6))
    assert verdict.peak == 16
    assert verdict.standing.undecided == (32,)
    assert verdict.ties == (32,)
    assert not verdict.certain
    assert verdict.advice == (
        "Deploy 16: the fastest that a fresh process confirms, at 6,152 images/s. 48 and 64 are slower there, "
        "so what 32 reached among the other sizes proves nothing."
    )
    alone = judge(faulty(at_64=25.0, at_48=19.0))
    assert alone.advice.startswith(
        "Cannot tell the peak: in a fresh process 48 and 64 are slower, so what 8, 16"
    )
    assert not alone.certain


def test_a_peak_that_fell_and_still_leads_is_deployed_at_its_confirmed_figure() -> None:
    known = [
        measured(size, ms, noise=0.001, confirmed_ms={8: 2.3, 32: 8.3, 128: 25.8}.get(size))
        for size, ms in {1: 0.7, 8: 1.6, 32: 3.4, 128: 23.7, 512: 147.0}.items()
    ]
    verdict = judge(known)
    assert verdict.standing.fallen == (8, 32, 128)
    assert (verdict.peak, verdict.recommended, verdict.certain) == (128, 128, True)
    assert verdict.advice == (
        "Deploy 128: the peak, at 4,962 images/s. In a fresh process 8, 32 and 128 are slower; the figures from there count."
    )


def test_a_knee_that_fell_is_none_unless_fresh_processes_surely_give_it_its_share() -> None:
    known = [
        measured(size, ms, noise=0.04, confirmed_ms={32: 9.17, 128: 33.7}.get(size))
        for size, ms in {1: 0.7, 32: 3.7, 128: 16.0}.items()
    ]
    verdict = judge(known)
    assert 32 in verdict.standing.fallen
    assert verdict.knee == verdict.peak
    assert "surely 95 %" not in verdict.advice


def test_a_limit_is_answered_by_a_size_whose_figure_counts() -> None:
    known = faulty(at_64=25.0, at_48=18.0, at_16=2.6)
    assert judge(known, limit_ms=6.0).recommended == 16
    assert judge(known, limit_ms=2.0).recommended == 8


def test_a_size_that_is_faster_alone_brings_no_other_into_doubt() -> None:
    verdict = judge(faulty(at_48=7.4, at_64=7.0))
    assert verdict.peak == 64
    assert verdict.standing.unconfirmed == (64,)
    assert (verdict.standing.fallen, verdict.standing.undecided) == ((), ())
    assert verdict.to_confirm == ()


def test_no_more_than_six_sizes_are_measured_once_more() -> None:
    sizes = [measured(size, 0.1 * size, noise=0.001) for size in range(10, 400, 10)]
    fresh = {}
    while asked := judge(
        [
            measured(
                one.batch_size, 0.1 * one.batch_size, noise=0.001, confirmed_ms=fresh.get(one.batch_size)
            )
            for one in sizes
        ]
    ).to_confirm:
        fresh.update({size: 0.3 * size for size in asked})
    assert 2 <= len(fresh) <= 7


def test_items_are_named_by_the_unit() -> None:
    verdict = judge(cnn(), unit="items/s")
    assert verdict.cost is not None
    assert "each item costs" in verdict.cost.text


def test_a_verdict_survives_being_stored_and_read() -> None:
    event = judge(cnn(), limit_ms=2.0).event(run="r", t=1.5)
    assert events.decode(events.encode(event)) == event
    assert msgspec.to_builtins(event)["event"] == "verdict"


def shown(sizes: list[Measurement], size: int) -> float:
    found = stand(sizes).throughput(size)
    assert found is not None
    return found.value


def test_the_figure_in_the_advice_is_that_of_the_table() -> None:
    sizes = [measured(8, 4.0, noise=0.08), measured(32, 6.0, noise=0.08, seed=3)]
    (row,) = [one for one in sizes if one.batch_size == 32]
    assert shown(sizes, 32) == throughput_estimate(row.blocks)
    disagreeing = measured(32, 6.0, confirmed_ms=7.0)
    assert shown([sizes[0], disagreeing], 32) == throughput_estimate(disagreeing.confirmed)
    agreeing = measured(32, 6.0, confirmed_ms=6.01)
    assert shown([sizes[0], agreeing], 32) == throughput_estimate(agreeing.blocks)


def test_one_block_a_size_names_a_leader_and_explains_nothing() -> None:
    verdict = judge([measured(size, ms, blocks=1) for size, ms in CNN.items()])
    assert not verdict.certain
    assert "too few blocks" in verdict.advice
    assert "tie" not in verdict.advice
    assert (verdict.cost, verdict.diagnosis) == (None, None)


def test_a_confirmation_of_few_blocks_does_not_move_the_peak() -> None:
    slow = msgspec.structs.replace(measured(32, 6.0), confirmed=measured(32, 9.0, blocks=2).blocks)
    verdict = judge([measured(8, 4.0, confirmed_ms=4.0), slow])
    assert verdict.peak == 32
    assert verdict.certain


def test_a_size_beside_one_that_does_not_count_is_not_called_the_only_one_measured() -> None:
    verdict = judge([measured(8, 4.0), measured(32, 6.0, processed=1)])
    assert "figures that count" in verdict.advice


def test_too_few_blocks_recommend_nothing_however_far_the_sizes_are_apart() -> None:
    verdict = judge([measured(size, ms, blocks=3) for size, ms in CNN.items()])
    assert not verdict.certain
    assert verdict.advice.startswith("Cannot tell the peak yet")


def test_a_fallen_size_bends_the_curve_and_leaves_the_line_where_it_fell() -> None:
    known = faulty(at_48=18.0, at_64=25.0, at_16=2.6, at_32=5.25)
    verdict = judge(known)
    assert verdict.recommended == 16
    assert verdict.diagnosis is not None
    assert "128" not in verdict.diagnosis.text
    assert verdict.cost is not None
    assert verdict.cost.leaves_line_at == 48
    assert "from 48 on each image costs" in verdict.cost.text
    assert "more than the line in a fresh process" in verdict.cost.text


def test_what_a_limit_leaves_of_the_peak_is_told_of_the_figures_shown() -> None:
    known = [
        measured(8, 2.0, noise=0.001, confirmed_ms=2.0),
        measured(16, 3.9, noise=0.001),
        measured(64, 14.0, noise=0.001, confirmed_ms=15.0),
    ]
    verdict = judge(known, limit_ms=10.0)
    assert (verdict.peak, verdict.recommended) == (64, 16)
    assert "at 4,102 images/s among the other sizes, 96 % of the peak (64)." in verdict.advice
    assert verdict.advice.endswith("In a fresh process 64 reaches 4,266 images/s, not 4,572.")


def test_the_size_recommended_is_the_one_that_the_advice_deploys_after_a_fall() -> None:
    known = [
        measured(size, ms, noise=0.001, confirmed_ms=fresh)
        for size, ms, fresh in (
            (8, 1.40, 1.40),
            (16, 2.75, 2.75),
            (32, 5.3, None),
            (48, 7.4, 18.0),
            (64, 9.7, 25.0),
        )
    ]
    verdict = judge(known)
    assert (verdict.peak, verdict.knee, verdict.recommended) == (16, 8, 8)
    assert verdict.standing.undecided == (32,)
    assert verdict.advice.startswith(
        "Deploy 8: surely 95 % of 16, the fastest that a fresh process confirms, at half of its latency."
    )


def test_sizes_that_differ_both_ways_are_told_apart() -> None:
    verdict = judge(faulty(at_48=18.0, at_64=9.0, at_16=2.6, at_32=5.25))
    assert "In a fresh process 48 is slower and 64 is faster; the figures from there count." in verdict.advice
    assert verdict.peak == 64


def test_what_fell_is_told_though_the_peak_is_open() -> None:
    known = [
        measured(size, ms, noise=0.03, seed=7, confirmed_ms=fresh)
        for size, ms, fresh in ((1, 0.7, None), (32, 3.4, 3.4), (48, 5.1, 5.1), (128, 12.0, 16.0))
    ]
    verdict = judge(known)
    assert verdict.standing.fallen == (128,)
    assert verdict.advice.startswith("Cannot tell the peak: 32 and 48 tie within the noise.")
    assert "In a fresh process 128 reaches" in verdict.advice


def test_too_few_blocks_of_the_peak_are_named_however_many_another_size_has() -> None:
    known = [measured(1, 0.2, blocks=30), measured(8, 0.6, blocks=30), measured(512, 20.0, blocks=2)]
    verdict = judge(known)
    assert verdict.peak == 512
    assert not verdict.certain
    assert verdict.advice.startswith("Cannot tell the peak yet: too few blocks of 512. 512 leads")
    assert verdict.diagnosis is None


def test_a_rival_on_few_blocks_keeps_the_peak_open_and_a_loser_does_not() -> None:
    peak, rival = measured(64, 3.0, noise=0.001), measured(128, 5.99, noise=0.001, blocks=3)
    assert not judge([peak, rival]).certain
    assert "too few blocks of 128" in judge([peak, rival]).advice
    assert judge([peak, measured(128, 9.0, noise=0.001, blocks=3)]).certain


def test_a_limit_is_judged_and_told_by_the_process_that_counts() -> None:
    known = [
        measured(8, 2.0, noise=0.001, confirmed_ms=2.0),
        measured(16, 3.0, noise=0.001, confirmed_ms=5.0),
    ]
    verdict = judge(known, limit_ms=4.0)
    assert verdict.limit is not None
    assert [(one.verdict, one.fresh) for one in verdict.limit.verdicts] == [("pass", True), ("fail", True)]
    assert verdict.limit.text == "p99 stays under 4 ms at batch size 8; 16 misses it in a fresh process only"
    strict = judge(known, limit_ms=1.0).limit
    assert strict is not None
    assert strict.text.endswith("nearest: batch size 8 with a p99 of 2 ms in a fresh process")


def test_a_limit_is_quoted_as_it_was_set() -> None:
    advice = judge([measured(8, 1.0), measured(16, 1.9)], limit_ms=1234.5).advice
    assert "stays under 1,234.5 ms" in advice


def test_of_a_peak_that_fell_nothing_is_left_but_its_confirmed_figure() -> None:
    wild = measured(56, 9.0, noise=0.3, seed=5)
    known = [
        measured(32, 2.5, noise=0.05, confirmed_ms=8.8),
        msgspec.structs.replace(measured(56, 3.9, noise=0.05), confirmed=wild.blocks),
        measured(128, 16.4, noise=0.05, confirmed_ms=18.6),
    ]
    verdict = judge(known)
    assert verdict.standing.fallen == (32, 56)
    # 128 has the highest figure that counts, though that of 56 is too wide to be surely beaten.
    assert verdict.peak == 128
    assert 56 in verdict.ties
    assert not verdict.certain


def test_confirmations_that_agree_leave_what_the_run_told_apart() -> None:
    """Fresh processes share no rounds: on their own, wider intervals 32 and 128 would tie."""
    known = [
        measured(size, ms, noise=0.003, confirmed_ms=None)
        for size, ms in {1: 0.163, 32: 1.54, 128: 5.99}.items()
    ]
    alone = {
        32: measured(32, 1.545, noise=0.06, seed=2).blocks,
        128: measured(128, 6.0, noise=0.06, seed=3).blocks,
    }
    confirmed = [msgspec.structs.replace(one, confirmed=alone.get(one.batch_size, ())) for one in known]
    verdict = judge(confirmed)
    assert verdict.standing.unconfirmed == ()
    assert (verdict.peak, verdict.ties, verdict.certain) == (128, (), True)


def test_the_cost_of_a_single_call_is_not_told_from_sizes_that_fell() -> None:
    """Fresh processes are slower by a lot: a line through those would put a single call far above what its row shows."""
    known = [
        measured(size, ms, noise=0.02, confirmed_ms=fresh)
        for size, ms, fresh in (
            (1, 0.68, None),
            (8, 1.64, None),
            (32, 3.5, 8.8),
            (56, 5.4, 11.0),
            (128, 11.3, 20.5),
        )
    ]
    verdict = judge(known)
    assert verdict.standing.fallen == (32, 56, 128)
    assert verdict.cost is not None
    assert verdict.cost.fitted_on == (1, 8)
    assert 0.3 < verdict.cost.fixed_ms < 0.68
    assert verdict.cost.leaves_line_at == 32
    assert "more than the line in a fresh process" in verdict.cost.text
