"""When the times of a load are its own, and how it feels its own pulse."""

from __future__ import annotations

import asyncio
import time
from dataclasses import replace

import pytest

from pytest_thermal.load.engine_health import Vitals, client_limit
from pytest_thermal.load.pulse import BEAT_SECONDS, Pulse
from pytest_thermal.load.spread import TURN_SECONDS, Spread
from pytest_thermal.load.tally import Tally

WELL = Vitals(
    observed_seconds=10.0,
    loop_lag_p99_seconds=0.0019,
    cpu_share=0.65,
    measured_seconds=0.05,
    due=1000,
    not_issued=10,
    late_p99_seconds=0.001,
)


def test_one_that_is_well() -> None:
    assert client_limit(WELL) == ""
    assert client_limit(Vitals(observed_seconds=10.0, loop_lag_p99_seconds=None, cpu_share=None)) == ""


@pytest.mark.parametrize(
    "change, why",
    [
        ({"cpu_share": 0.66}, "the load engine used 66% of its core, more than 65%"),
        ({"not_issued": 11}, "11 of 1,000 requests were due and could not be issued"),
        (
            {"loop_lag_p99_seconds": 0.0021},
            "the load engine's event loop came 2.1 ms late (99th percentile), more than 2.0 ms",
        ),
        (
            {"loop_lag_p99_seconds": 0.021, "measured_seconds": 1.0},
            "the load engine's event loop came 21.0 ms late (99th percentile), more than 20.0 ms",
        ),
        ({"late_p99_seconds": 0.0031}, "requests left 3.1 ms late (99th percentile), more than 2.0 ms"),
    ],
)
def test_what_makes_its_times_its_own(change: dict[str, float], why: str) -> None:
    assert client_limit(replace(WELL, **change)) == why  # type: ignore[arg-type]  # numbers of both kinds


@pytest.mark.parametrize(
    "change",
    [
        {"loop_lag_p99_seconds": 0.019, "measured_seconds": 1.0},
        {"due": 0, "not_issued": 500},
        {"observed_seconds": 4.0, "cpu_share": 1.0},
    ],
    ids=["little of what is measured", "no open loop", "only just begun"],
)
def test_what_does_not(change: dict[str, float]) -> None:
    assert client_limit(replace(WELL, **change)) == ""  # type: ignore[arg-type]  # numbers of both kinds


def test_beats_that_never_came_count_too() -> None:
    pulse = Pulse()
    for _ in range(140):
        pulse._late(0.0)
    pulse._late(3.0)  # as one that was stopped for three seconds of the last ten
    assert pulse.lag_p99_seconds is not None
    assert pulse.lag_p99_seconds > 2.5
    for _ in range(200):
        pulse._late(0.0)
    assert pulse.lag_p99_seconds == 0.0
    pulse._late(1e9)
    assert pulse.lag_p99_seconds is not None
    assert pulse.lag_p99_seconds > 1e8


def test_a_loop_that_is_held_up_is_felt() -> None:
    async def held_up() -> Pulse:
        pulse = Pulse()
        beating = asyncio.create_task(pulse.beat())
        for _ in range(3):
            await asyncio.sleep(1.5 * BEAT_SECONDS)
            until = time.thread_time() + 4 * BEAT_SECONDS
            while time.thread_time() < until:
                pass
        await asyncio.sleep(2 * BEAT_SECONDS)
        beating.cancel()
        return pulse

    pulse = asyncio.run(held_up())
    assert pulse.lag_p99_seconds is not None
    assert pulse.lag_p99_seconds >= 2 * BEAT_SECONDS
    assert pulse.cpu_share is not None
    assert 0 < pulse.cpu_share <= 1.05
    assert pulse.observed_seconds >= 12 * BEAT_SECONDS
    assert (Pulse().lag_p99_seconds, Pulse().cpu_share, Pulse().observed_seconds) == (None, None, 0.0)


def test_vitals_are_of_the_open_loop_only_where_there_is_one() -> None:
    tally = Tally()
    tally.issued.items_inference, tally.issued.not_issued = 90, 10
    assert (tally.vitals(Pulse()).due, tally.vitals(Pulse()).late_p99_seconds) == (0, None)
    tally.left_late(0.005)
    vitals = tally.vitals(Pulse())
    assert (vitals.due, vitals.not_issued) == (100, 10)
    assert vitals.late_p99_seconds == pytest.approx(0.005)


def test_a_spread_tells_quantiles_within_two_percent() -> None:
    spread = Spread()
    values = [0.0001 * 1.01**number for number in range(1000)]
    spread.add(reversed(values))
    for share in (0.01, 0.5, 0.9, 0.99):
        assert spread.quantile(share) == pytest.approx(values[round(share * 1000) - 1], rel=0.03)
    assert spread.quantile(1.0) == pytest.approx(values[-1], rel=0.03)
    assert spread.most == values[-1]
    assert (Spread().quantile(0.5), Spread().most) == (None, None)


@pytest.mark.parametrize("value", [0.0, 1e-9, 1e9])
def test_a_spread_holds_whatever_comes(value: float) -> None:
    spread = Spread()
    spread.add([value])
    assert spread.most == value
    assert spread.quantile(0.5) is not None


def test_a_spread_forgets() -> None:
    now = [0.0]
    spread = Spread(clock=lambda: now[0])
    spread.add([5.0])
    now[0] = 1.1 * TURN_SECONDS
    spread.add([1.0])
    assert spread.most == 5.0
    now[0] = 2.2 * TURN_SECONDS
    assert spread.most == 1.0
    now[0] = 9 * TURN_SECONDS
    assert spread.most is None
