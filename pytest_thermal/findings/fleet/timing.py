"""When the nodes of a fleet went through their phases: by phase, whatever each node's clock says."""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from pytest_thermal.findings.fleet.node_run import NodeRun

TOGETHER_SECONDS = 30.0
"""Nodes that enter steady within this began together: what a barrier between them leaves, and slow polls of a batch
system. Own criterion."""
TOLD_SECONDS = 5.0
"""A node that is further off than this is told of."""
ALL_ALIKE_SECONDS = 2.0
"""A node whose phases are all off by the same, within this, has another clock, or was started so much later."""


@dataclass(frozen=True, kw_only=True)
class Timing:
    """Starts of one phase over the fleet."""

    starts: Mapping[str, float] = field(default_factory=dict)
    """Node → when it entered steady, unix seconds by the clock of whoever started all, as far as it is known."""
    spread_seconds: float | None = None
    """Between the first and the last; None with fewer than two nodes."""
    first: str = ""
    last: str = ""
    shared_seconds: float = 0.0
    """For how long all of them were in steady at one time."""
    offsets: Mapping[str, float] = field(default_factory=dict)
    """Node → seconds by which it is later than the middle of the fleet in every phase."""
    corrected: Mapping[str, float] = field(default_factory=dict)
    """Node → seconds by which its clock is known to be ahead, which are taken off."""


def timing_of(runs: Iterable[NodeRun], *, phase: str = "steady") -> Timing:
    """Compare the starts of phases."""
    begun: dict[str, dict[str, float]] = {}
    ended: dict[str, float] = {}
    corrected: dict[str, float] = {}
    for run in runs:
        off = run.clock_offset_seconds or 0.0
        if off:
            corrected[run.node] = off
        for one in run.phases:
            begun.setdefault(str(one.name), {})[run.node] = one.start_seconds - off
            if one.name == phase:
                ended[run.node] = one.end_seconds - off
    starts = begun.get(phase, {})
    if len(starts) < 2:
        return Timing(starts=starts, corrected=corrected)
    first, last = min(starts, key=starts.__getitem__), max(starts, key=starts.__getitem__)
    return Timing(
        starts=starts,
        spread_seconds=starts[last] - starts[first],
        first=first,
        last=last,
        shared_seconds=max(min(ended.values()) - starts[last], 0.0),
        offsets=_offsets(begun),
        corrected=corrected,
    )


def _offsets(begun: Mapping[str, Mapping[str, float]]) -> dict[str, float]:
    """Of nodes whose phases are all off by the same."""
    late: dict[str, list[float]] = {}
    for starts in begun.values():
        middle = statistics.median(starts.values())
        for node, start in starts.items():
            late.setdefault(node, []).append(start - middle)
    return {
        node: statistics.median(found)
        for node, found in late.items()
        if abs(statistics.median(found)) > TOLD_SECONDS and max(found) - min(found) <= ALL_ALIKE_SECONDS
    }
