"""The load's requests over time: how many ended in each stretch, how long they took, how many failed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from pytest_thermal.model.series import BoolArray, FloatArray
from pytest_thermal.recording import Requests

MOST_STRETCHES = 480
CANCELLED = "cancelled"
"""How the error of a request begins that was under way when the load was taken off: it did not fail."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Traffic:
    """One value for each stretch of ``step_seconds`` from ``first_seconds`` on, NaN where none ended in it."""

    first_seconds: float
    """Middle of the first stretch, after the recording's start."""
    step_seconds: float
    answered_per_second: FloatArray
    failed_per_second: FloatArray
    latency_p50_seconds: FloatArray
    latency_p99_seconds: FloatArray
    ttft_p50_seconds: FloatArray
    ttft_p99_seconds: FloatArray
    tokens_per_second: FloatArray


@dataclass(frozen=True, kw_only=True)
class Tally:
    """The requests of one phase, or of the run."""

    total: int
    failed: int
    cut_off: int
    latency_p50_seconds: float | None
    latency_p99_seconds: float | None
    ttft_p50_seconds: float | None
    ttft_p99_seconds: float | None
    tokens: float


def traffic(
    requests: Requests, *, start_seconds: float, duration_seconds: float, step_seconds: float, time_scale: float
) -> Traffic:
    """Requests by the stretch in which they ended; times of requests and rates as they really were, not stretched."""
    ended = requests.start_seconds + np.nan_to_num(requests.latency_seconds) - start_seconds
    count = max(1, int(np.ceil(duration_seconds / step_seconds)))
    stretch = np.floor(ended / step_seconds).astype(np.int64)
    good, bad = _good_and_bad(requests)
    inside = (stretch >= 0) & (stretch < count)
    wall_seconds = step_seconds / time_scale
    latency, ttft = requests.latency_seconds / time_scale, requests.ttft_seconds / time_scale
    p50, p99 = _percentiles(stretch, latency, good & inside, count)
    first50, first99 = _percentiles(stretch, ttft, good & inside, count)
    tokens = np.nan_to_num(requests.completion_tokens)
    return Traffic(
        first_seconds=step_seconds / 2,
        step_seconds=step_seconds,
        answered_per_second=np.bincount(stretch[good & inside], minlength=count) / wall_seconds,
        failed_per_second=np.bincount(stretch[bad & inside], minlength=count) / wall_seconds,
        latency_p50_seconds=p50,
        latency_p99_seconds=p99,
        ttft_p50_seconds=first50,
        ttft_p99_seconds=first99,
        tokens_per_second=np.bincount(stretch[good & inside], weights=tokens[good & inside], minlength=count)
        / wall_seconds,
    )


def tally(requests: Requests, *, time_scale: float, phase: str | None = None) -> Tally:
    """Of one phase as the load generator noted it, or of all."""
    good, bad = _good_and_bad(requests)
    here = requests.phase.where(lambda name: phase in (None, name))
    good, bad = good & here, bad & here
    return Tally(
        total=int(good.sum() + bad.sum()),
        failed=int(bad.sum()),
        cut_off=int(here.sum() - good.sum() - bad.sum()),
        latency_p50_seconds=_percentile(requests.latency_seconds[good] / time_scale, 50),
        latency_p99_seconds=_percentile(requests.latency_seconds[good] / time_scale, 99),
        ttft_p50_seconds=_percentile(requests.ttft_seconds[good] / time_scale, 50),
        ttft_p99_seconds=_percentile(requests.ttft_seconds[good] / time_scale, 99),
        tokens=float(np.nan_to_num(requests.completion_tokens[good]).sum()),
    )


def errors(requests: Requests) -> Mapping[str, tuple[int, float]]:
    """Each error with how often it came and when first (the recording's seconds), the most frequent first."""
    _, bad = _good_and_bad(requests)
    first = np.full(len(requests.error.different), np.inf)
    np.minimum.at(first, requests.error.codes[bad], requests.start_seconds[bad])
    place = {text: code for code, text in enumerate(requests.error.different)}
    found = {text: (count, float(first[place[text]])) for text, count in requests.error.counts(bad).items() if text}
    wordless = bad & ~requests.error.where(bool)
    for status in np.unique(requests.status[wordless]).tolist():
        those = wordless & (requests.status == status)
        found[f"HTTP {status}"] = int(those.sum()), float(requests.start_seconds[those].min())
    return dict(sorted(found.items(), key=lambda item: -item[1][0]))


def _good_and_bad(requests: Requests) -> tuple[BoolArray, BoolArray]:
    good = (requests.status == 200) & ~requests.error.where(bool)
    return good, ~good & ~requests.error.where(lambda error: error.startswith(CANCELLED))


def _percentiles(
    stretch: np.ndarray[tuple[int, ...], np.dtype[np.int64]], values: FloatArray, wanted: BoolArray, count: int
) -> tuple[FloatArray, FloatArray]:
    p50, p99 = np.full(count, np.nan), np.full(count, np.nan)
    wanted = wanted & ~np.isnan(values)
    where, what = stretch[wanted], values[wanted]
    order = np.argsort(where, kind="stable")
    where, what = where[order], what[order]
    starts = np.flatnonzero(np.diff(where, prepend=-1))
    for start, end in zip(starts, np.append(starts[1:], where.size), strict=True):
        p50[where[start]], p99[where[start]] = np.percentile(what[start:end], (50, 99))
    return p50, p99


def _percentile(values: FloatArray, percent: float) -> float | None:
    there = values[~np.isnan(values)]
    return float(np.percentile(there, percent)) if there.size else None
