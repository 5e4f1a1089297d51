"""How much of the processors' time was the run's own load's, and not somebody else's work."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from pytest_thermal.model.said import say
from pytest_thermal.model.series import Figure

LEAST_OWN_SHARE = 80.0
"""Percent: with less, what the processor warmed up by was to a good part not the load."""
LEAST_OWN_SHARE_SERVING = 50.0
"""Percent, where the machine also serves the requests: what serves them computes here too, and comes first."""
LEAST_ACCOUNTED = 0.5
"""Of a stretch of time must be accounted for before anything is said of it."""


@dataclass(frozen=True, kw_only=True)
class OwnTime:
    """CPU time of the run's loads in a stretch of time, unix seconds."""

    start_seconds: float
    end_seconds: float
    share: float
    """Of the time of the cores that they were to keep busy; 1 for all of it."""
    cores: float
    stopped: float = 0.0
    """Share of the looks at which one of their processes stood still, as by SIGSTOP."""
    quota_cores: float | None = None
    """What the control group allows, where that is less than the cores."""


def own_share(stretches: Sequence[OwnTime], start_seconds: float, end_seconds: float) -> Figure:
    """The loads' share of their cores' time from one unix time to another, percent.

    Stretches that reach over an end count in proportion. None where less than half of the time is accounted for.
    """
    name = "own_share"
    inside = [(min(one.end_seconds, end_seconds) - max(one.start_seconds, start_seconds), one) for one in stretches]
    inside = [(seconds, one) for seconds, one in inside if seconds > 0]
    accounted = sum(seconds for seconds, _ in inside)
    if not inside or accounted < LEAST_ACCOUNTED * (end_seconds - start_seconds):
        return Figure.missing(name, "percent", say("the load's own CPU time was not recorded"))
    quotas = [one.quota_cores for _, one in inside if one.quota_cores is not None]
    return Figure(
        name=name,
        value=100.0 * sum(seconds * one.share for seconds, one in inside) / accounted,
        unit="percent",
        detail={
            "cores": max(one.cores for _, one in inside),
            "stopped": sum(seconds * one.stopped for seconds, one in inside) / accounted,
            "quota_cores": min(quotas, default=None),
            "least": 100.0 * min(one.share for _, one in inside),
        },
    )
