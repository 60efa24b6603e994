"""The race's order of laps, its end, and its figures."""

from __future__ import annotations

import random

import pytest

from engine import race


def lap(lane: int, number: int, total: float, calls: int = 4) -> race.Lap:
    return race.Lap(lane, number, 64 if calls == 4 else 256, total, tuple([total / calls] * calls))


def run(
    rounds: race.Rounds, total: dict[int, float], noise: float = 0.0, seed: int = 0
) -> list[tuple[int, int]]:
    rng = random.Random(seed)
    order = []
    now = 0.0
    while (turn := rounds.next_lane(now)) is not None:
        order.append(turn)
        took = total[turn[0]] * (1 + noise * rng.uniform(-1, 1))
        now += took / 1000
        rounds.tell(lap(turn[0], turn[1], took))
    return order


def test_lanes_take_turns_in_beginning() -> None:
    order = run(race.Rounds(least=4, budget_s=0.0), {0: 100.0, 1: 20.0})
    assert [lane for lane, _ in order] == [0, 1, 1, 0, 0, 1, 1, 0]
    assert [number for _, number in order] == [0, 0, 1, 1, 2, 2, 3, 3]


def test_a_begun_round_is_ended_when_the_budget_is_used_up() -> None:
    assert len(run(race.Rounds(least=2, budget_s=0.15), {0: 100.0, 1: 20.0})) == 4


def test_a_quiet_race_stops_after_six_rounds_and_a_noisy_one_goes_on() -> None:
    quiet = run(race.Rounds(), {0: 100.0, 1: 20.0}, noise=0.002)
    noisy = run(race.Rounds(budget_s=100.0), {0: 100.0, 1: 20.0}, noise=0.3)
    assert len(quiet) == 12
    assert len(noisy) == 2 * race.ENOUGH_ROUNDS


def test_slow_drift_cancels_in_the_speed_up() -> None:
    laps = []
    for number in range(8):
        pace = 1.0 + 0.2 * number
        laps += [lap(0, number, 100.0 * pace), lap(1, number, 20.0 * pace)]
    fastest, low, high = race.speedup(laps)
    assert fastest == pytest.approx(5.0)
    assert low == pytest.approx(5.0)
    assert high == pytest.approx(5.0)


def test_below_six_rounds_no_interval_is_invented() -> None:
    laps = [lap(lane, number, 100.0 if lane == 0 else 25.0) for number in range(5) for lane in (0, 1)]
    assert race.speedup(laps) == (pytest.approx(4.0), None, None)
    with pytest.raises(ValueError, match="whole round"):
        race.speedup(laps[:1])


def test_interval_holds_the_true_speed_up_in_most_races() -> None:
    held = 0
    for seed in range(400):
        rounds = race.Rounds(least=8, budget_s=0.0)
        run(rounds, {0: 100.0, 1: 20.0}, noise=0.05, seed=seed)
        _, low, high = race.speedup(rounds.laps)
        assert low is not None
        assert high is not None
        held += low <= 5.0 <= high
    assert held >= 0.95 * 400


def test_interval_holds_the_true_speed_up_where_the_race_stops_at_it() -> None:
    held = stopped_early = 0
    for seed in range(400):
        rounds = race.Rounds(budget_s=1e9)
        run(rounds, {0: 100.0, 1: 20.0}, noise=0.03, seed=seed)
        stopped_early += len(rounds.laps) < 2 * race.ENOUGH_ROUNDS
        _, low, high = race.speedup(rounds.laps)
        assert low is not None
        assert high is not None
        held += low <= 5.0 <= high
    assert stopped_early > 200
    assert held >= 0.95 * 400


def test_one_interrupted_lap_does_not_move_the_speed_up() -> None:
    laps = [lap(lane, number, 100.0 if lane == 0 else 25.0) for number in range(8) for lane in (0, 1)]
    laps[4] = lap(0, 2, 900.0)
    assert race.speedup(laps)[0] == pytest.approx(4.0)


def test_a_lane_is_told_by_its_median_lap() -> None:
    laps = [lap(0, number, total) for number, total in enumerate((90.0, 500.0, 100.0))]
    lane = race.lane_of(laps, 0, "4 calls of 64", 256)
    assert lane.total_ms == 100.0
    assert lane.first_answer_ms == 25.0
    assert lane.ms_per_item == pytest.approx(100.0 / 256)


@pytest.mark.parametrize(
    ("images", "batch_size", "name"),
    [
        (256, 1, "256 calls of 1"),
        (256, 256, "1 call of 256"),
        (100, 32, "4 calls of 32"),
        (5, 8, "1 call of 5"),
    ],
)
def test_lane_names(images: int, batch_size: int, name: str) -> None:
    assert race.lane_name(images, batch_size) == name
