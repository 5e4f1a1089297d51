"""How old a sample is, and how old one may be: a server goes on showing what it was told last."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from statistics import median

from pytest_thermal.sensors.prometheus.answer import Answered, Sample

PUSHED = "push_time_seconds"
"""When a push gateway was told; its samples are as new as its scrapes, for ever."""
OLDEST_SECONDS = 300.0
"""Prometheus' own limit for showing a sample."""
UNKNOWN_SECONDS = 90.0
"""Where nothing tells how often a target is asked: the default is once a minute."""
_LEAST_SECONDS = 15.0
_INTERVALS = 2.5
_GROUP = ("job", "instance", "exported_job", "exported_instance")

Target = tuple[str, str]


def target(labels: Mapping[str, str]) -> Target:
    """The scraped target that a series comes from: job and instance."""
    return labels.get("job", ""), labels.get("instance", "")


def intervals_of(ups: Answered) -> dict[Target, float]:
    """Seconds between two scrapes of each target, from the moments of its ``up``."""
    found = {}
    for labels, moments in ups.moments:
        gaps = [later - earlier for earlier, later in itertools.pairwise(moments) if later > earlier]
        if gaps:
            found[target(labels)] = median(gaps)
    return found


def longest_seconds(of: Target, intervals: Mapping[Target, float]) -> float:
    """How old a sample of that target may be and still be a value: a scrape may fail, and not a second."""
    interval = intervals.get(of)
    if interval is None:
        return UNKNOWN_SECONDS
    return min(OLDEST_SECONDS, max(_LEAST_SECONDS, _INTERVALS * interval + 5.0))


def pushed_seconds(labels: Mapping[str, str], pushes: Sequence[Sample]) -> float | None:
    """When the series was pushed, by its gateway; None for one that was scraped."""
    for push in pushes:
        rest = {name: value for name, value in push.labels.items() if name != "__name__"}
        same_group = all(labels.get(name, "") == rest.get(name, "") for name in _GROUP)
        if same_group and rest.items() <= labels.items():
            return push.value
    return None
