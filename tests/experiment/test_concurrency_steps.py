"""When a search for a concurrency ends, and with which number: by steps that are made up."""

from __future__ import annotations

import pytest

from pytest_thermal.experiment.concurrency_steps import FIRST, MOST, STEP, Step, decide


def step(
    concurrency: int = FIRST,
    *,
    used: float | None = 60.0,
    drift: float | None = 0.2,
    latency: float | None = 1.0,
    rate: float = 8.0,
    failed: float = 0.0,
) -> Step:
    return Step(
        concurrency=concurrency,
        utilization_percent=used,
        drift_kelvin=drift,
        hottest_celsius=60.0,
        latency_p50_seconds=latency,
        requests_per_second=rate,
        failed_share=failed,
    )


def test_a_full_machine_whose_temperature_is_steady_ends_it() -> None:
    found = decide([step(used=97.0)])
    assert found is not None
    assert (found.concurrency, found.full) == (FIRST, True)
    assert found.because == "utilisation is 97 % and the temperature is steady"


@pytest.mark.parametrize("last", [step(used=97.0, drift=3.0), step(used=70.0), step(used=None)])
def test_what_is_not_full_or_still_moves_goes_on(last: Step) -> None:
    assert decide([last]) is None


def test_where_requests_only_wait_the_step_before_counts() -> None:
    first, second = step(), step(FIRST + STEP, latency=2.1, rate=8.2)
    found = decide([first, second])
    assert found is not None
    assert (found.concurrency, found.full) == (FIRST, False)
    assert found.because.startswith(f"latency is 2.1 times that at {FIRST}, for +2% requests a second; ")
    assert decide([first, step(FIRST + STEP, latency=2.1, rate=12.0)]) is None, "it gives more for it"


def test_failed_requests_and_the_most_that_is_tried_end_it() -> None:
    failing = decide([step(), step(FIRST + STEP, failed=0.2)])
    assert failing is not None
    assert (failing.concurrency, failing.because) == (FIRST, f"20% of the requests failed at {FIRST + STEP}")
    most = decide([step(), step(MOST)])
    assert most is not None
    assert (most.concurrency, most.because) == (MOST, f"no more than {MOST} are tried")
