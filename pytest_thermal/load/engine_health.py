"""Whether the times that the load engine tells are the gateway's, or its own."""

from __future__ import annotations

from dataclasses import dataclass

MOST_CPU_SHARE = 0.65
"""Of one core. Beyond it, requests wait for the engine: what it adds leaves the milliseconds."""
MOST_LAG_SECONDS = 0.002
"""Of the event loop, 99 of 100 times …"""
MOST_LAG_SHARE = 0.02
"""… or this share of what is measured: 5 ms are nothing in a second."""
MOST_NOT_ISSUED = 0.01
"""Of what was due at the open loop's rate: those that never left would have been the slowest."""
LEAST_SECONDS = 5.0
"""Before that, connections are opened, and nothing is judged."""


@dataclass(frozen=True, kw_only=True)
class Vitals:
    """How the engine was in the last seconds."""

    observed_seconds: float
    loop_lag_p99_seconds: float | None
    """How late the event loop came to what was due."""
    cpu_share: float | None
    """Of one core."""
    measured_seconds: float | None = None
    """Median of what is told of the gateway: latency, or time to the first token."""
    due: int = 0
    """By the open loop's rate; 0 for the closed loop."""
    not_issued: int = 0
    late_p99_seconds: float | None = None
    """How long after its time a request left, in the open loop."""


def client_limit(vitals: Vitals) -> str:
    """What of the engine is in the figures; empty where they are the gateway's."""
    if vitals.observed_seconds < LEAST_SECONDS:
        return ""
    if vitals.cpu_share is not None and vitals.cpu_share > MOST_CPU_SHARE:
        return f"the load engine used {vitals.cpu_share:.0%} of its core, more than {MOST_CPU_SHARE:.0%}"
    if vitals.due and vitals.not_issued > MOST_NOT_ISSUED * vitals.due:
        return f"{vitals.not_issued:,} of {vitals.due:,} requests were due and could not be issued"
    least = max(MOST_LAG_SECONDS, MOST_LAG_SHARE * (vitals.measured_seconds or 0.0))
    for lag, what in (
        (vitals.loop_lag_p99_seconds, "the load engine's event loop came"),
        (vitals.late_p99_seconds, "requests left"),
    ):
        if lag is not None and lag > least:
            return f"{what} {lag * 1000:.1f} ms late (99th percentile), more than {least * 1000:.1f} ms"
    return ""
