"""When a search for the right concurrency ends, and with which number: pure, from what each step measured."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from pytest_thermal.model.phases import FULL_UTILIZATION_PERCENT
from pytest_thermal.model.said import say

FIRST = 8
STEP = 4
MOST = 256
STEADY_KELVIN = 1.0
"""Between the two halves of a step: what still moves by more has not settled, and may need more load."""
SLOWER = 2.0
"""Times the first step's latency: with no more throughput in return, requests only wait."""
MORE_THROUGHPUT = 1.1
MOST_FAILED = 0.05


@dataclass(frozen=True, kw_only=True)
class Step:
    """What one concurrency gave."""

    concurrency: int
    utilization_percent: float | None
    """Of the least used accelerator, else of the processor; None where nobody tells."""
    drift_kelvin: float | None
    """Of the hottest temperature, second half of the step against the first."""
    hottest_celsius: float | None
    latency_p50_seconds: float | None
    requests_per_second: float
    failed_share: float


@dataclass(frozen=True, kw_only=True)
class Decision:
    """The number to use, and why no more."""

    concurrency: int
    because: str
    full: bool
    """Whether the machine was loaded in full."""


def decide(steps: Sequence[Step]) -> Decision | None:
    """Whether the search is over after these steps; None while it should go on with ``STEP`` more."""
    now, first = steps[-1], steps[0]
    before = steps[-2] if len(steps) > 1 else None
    if now.failed_share > MOST_FAILED:
        return Decision(
            concurrency=before.concurrency if before else now.concurrency,
            because=say(
                "{failed_share:.0%} of the requests failed at {concurrency}",
                failed_share=now.failed_share,
                concurrency=now.concurrency,
            ),
            full=False,
        )
    used = now.utilization_percent
    if used is not None and used >= FULL_UTILIZATION_PERCENT and _is_steady(now):
        return Decision(
            concurrency=now.concurrency,
            because=say("utilisation is {used:.0f} % and the temperature is steady", used=used),
            full=True,
        )
    slower = _times(now.latency_p50_seconds, first.latency_p50_seconds)
    if before is not None and slower is not None and slower >= SLOWER:
        gained = now.requests_per_second / before.requests_per_second if before.requests_per_second else MORE_THROUGHPUT
        if gained < MORE_THROUGHPUT:
            said = say("not known") if used is None else f"{used:.0f} %"
            return Decision(
                concurrency=before.concurrency,
                because=say(
                    "latency is {slower:.1f} times that at {concurrency}, for {gained:+.0%} requests a "
                    "second; utilisation is {said}",
                    slower=slower,
                    concurrency=first.concurrency,
                    gained=gained - 1,
                    said=said,
                ),
                full=False,
            )
    if now.concurrency + STEP > MOST:
        return Decision(
            concurrency=now.concurrency, because=say("no more than {most} are tried", most=MOST), full=False
        )
    return None


def _is_steady(step: Step) -> bool:
    return step.drift_kelvin is None or abs(step.drift_kelvin) <= STEADY_KELVIN


def _times(value: float | None, of: float | None) -> float | None:
    return value / of if value is not None and of else None
