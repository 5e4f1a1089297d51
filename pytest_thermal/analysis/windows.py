"""Which stretch of a phase a figure is taken from."""

from __future__ import annotations

from pytest_thermal.model.series import Phase, Series

BASELINE_SHARE, BASELINE_LEAST_SECONDS = 1 / 5, 60.0
STEADY_SHARE, STEADY_LEAST_SECONDS = 1 / 10, 300.0


def last_part(phase: Phase, share: float, least_seconds: float) -> tuple[float, float]:
    """Start and end (unix seconds) of the last ``share`` of a phase: at least so long, or all of it if shorter."""
    length = min(max(phase.duration_seconds * share, least_seconds), phase.duration_seconds)
    return phase.end_seconds - length, phase.end_seconds


def level_window(phase: Phase) -> tuple[float, float]:
    """Start and end (unix seconds) of the stretch whose mean stands for a phase.

    The last fifth of a baseline (at least 60 s), the last tenth of any other phase (at least 300 s), the whole phase
    where it is shorter: own definitions, long enough for a mean to be worth something with a reading every 5 s.
    """
    if phase.name == "baseline":
        return last_part(phase, BASELINE_SHARE, BASELINE_LEAST_SECONDS)
    return last_part(phase, STEADY_SHARE, STEADY_LEAST_SECONDS)


def window_of(series: Series, phase: Phase) -> Series:
    """The readings in ``level_window``."""
    return series.between(*level_window(phase))
