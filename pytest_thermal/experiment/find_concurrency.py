"""The search for how many concurrent requests load a bench in full."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean, median
from typing import TYPE_CHECKING

from pytest_thermal.experiment.concurrency_steps import FIRST, STEP, Decision, Step, decide
from pytest_thermal.experiment.errors import ExperimentBrokenError
from pytest_thermal.experiment.lock import BenchLock
from pytest_thermal.load import Loads, LoadStatus
from pytest_thermal.load.inference_work import inference_work
from pytest_thermal.model.kinds import Kind, kind_of
from pytest_thermal.model.readings import Unit
from pytest_thermal.model.said import say
from pytest_thermal.recording import Follower, RunClock, SourceOrder, create_run, start_recorder

if TYPE_CHECKING:
    from pytest_thermal.bench import Bench
    from pytest_thermal.load import RunningLoad
    from pytest_thermal.model import Sensor
    from pytest_thermal.sensors import SourceSpec

STEP_SECONDS = 60.0
"""For each concurrency; in bench seconds. Its first third is for the change to take effect."""
_SETTLING_SHARE = 1 / 3
_LEAST_ROWS = 4
_FIRST_ANSWER_SECONDS = 120.0
_MOST_SECONDS = 4 * 3600.0


@dataclass(frozen=True, kw_only=True)
class Search:
    """What a search found."""

    steps: tuple[Step, ...]
    decision: Decision


def find_concurrency(
    *,
    bench: Bench,
    sources: Sequence[SourceSpec],
    folder: Path,
    environ: Mapping[str, str],
    load_environ: Mapping[str, str],
    locks: Path,
    period_seconds: float,
    time_scale: float = 1.0,
    profile: str = "chat",
    tell: Callable[[Step], None],
) -> Search:
    """Load a bench with more and more concurrent requests until it is full, or only gets slower.

    The recording of the search lies in ``folder``; it is no run of the archive.

    Raises:
        ExperimentBrokenError: Another run loads this machine, or nothing here tells utilisation or temperature.
        RecordingError: The recorder could not be started.
        LoadError: The load could not be started.
    """
    clock = RunClock.start()
    with BenchLock(locks, what=f"bench {bench.name}, a search for its concurrency"):
        run = create_run(folder, facts={"bench": bench.name, "simulated": bench.demo}, clock=clock)
        orders = [SourceOrder(source=source) for source in sources]
        with (
            start_recorder(
                run, sources=orders, period_seconds=period_seconds, secrets=bench.secrets(), environ=environ
            ) as recorder,
            Loads() as loads,
        ):
            offers = recorder.wait_ready()
            gauge = _Gauge(run, [sensor for offer in offers.values() for sensor in offer.sensors])
            stress = bench.stress.model_copy(update={"concurrent_requests": FIRST, "request_interval_seconds": 0.0})
            load = loads.add(
                inference_work(
                    domains=bench.domains,
                    inference=bench.inference,
                    stress=stress,
                    timeouts=bench.timeouts,
                    run=run,
                    clock=clock,
                    profile=profile,
                    limit_seconds=_MOST_SECONDS,
                    environ=load_environ,
                    secrets=bench.secrets(),
                )
            )
            recorder.event("load", what="started", load="inference", tool=load.work.tool)
            _wait_for_answers(load)
            steps: list[Step] = []
            concurrency = FIRST
            while True:
                load.concurrency(concurrency)
                steps.append(_step(load, gauge, concurrency, STEP_SECONDS / time_scale))
                tell(steps[-1])
                decision = decide(steps)
                if decision is not None:
                    return Search(steps=tuple(steps), decision=decision)
                concurrency += STEP


def _step(load: RunningLoad, gauge: _Gauge, concurrency: int, seconds: float) -> Step:
    _wait(load, seconds * _SETTLING_SHARE)
    gauge.forget()
    before, began = load.status(), time.monotonic()
    _wait(load, seconds * (1 - _SETTLING_SHARE))
    after, took_seconds = load.status(), time.monotonic() - began
    gauge.read()
    done = after.requests - before.requests
    return Step(
        concurrency=concurrency,
        utilization_percent=gauge.utilization_percent(),
        drift_kelvin=gauge.drift_kelvin(),
        hottest_celsius=gauge.hottest_celsius(),
        latency_p50_seconds=after.latency_p50_seconds,
        requests_per_second=done / took_seconds,
        failed_share=(after.failed - before.failed) / done if done else _all_fail(after),
    )


def _all_fail(status: LoadStatus) -> float:
    """Where not one request ended in a step: slow answers are no failures."""
    return 1.0 if status.requests and not status.ok else 0.0


def _wait_for_answers(load: RunningLoad) -> None:
    """The first step begins with the first answer, not with the start of a process on a busy machine."""
    deadline = time.monotonic() + _FIRST_ANSWER_SECONDS
    while load.status().requests == 0 and time.monotonic() < deadline:
        _wait(load, 0.2)


def _wait(load: RunningLoad, seconds: float) -> None:
    deadline = time.monotonic() + seconds
    while (left_seconds := deadline - time.monotonic()) > 0:
        ended = load.ended
        if ended is not None:
            raise ExperimentBrokenError(
                say("the inference load was lost: {because}", because=ended.because), likely=ended.tail
            )
        time.sleep(min(0.2, left_seconds))


class _Gauge:
    """Utilisation and temperature of what inference heats: the accelerators, else the processor."""

    def __init__(self, run: Path, sensors: Sequence[Sensor]) -> None:
        kinds = {kind_of(sensor.device) for sensor in sensors}
        kind = Kind.ACCELERATOR if Kind.ACCELERATOR in kinds else Kind.CPU
        ours = [sensor for sensor in sensors if kind_of(sensor.device) is kind]
        self._used = {sensor.id for sensor in ours if sensor.id == f"{sensor.device}.utilization_percent"}
        self._hot = {sensor.id for sensor in ours if sensor.unit is Unit.CELSIUS}
        if not self._used and not self._hot:
            raise ExperimentBrokenError(
                say("no accelerator or processor of this bench tells its utilisation or temperature"),
                remedy=say("pytest --sensors says why for each source"),
            )
        self._follower = Follower(run)
        self._rows: dict[str, list[float]] = {}

    def forget(self) -> None:
        """What was read until now is of the step before."""
        self._follower.read()
        self._rows = {}

    def read(self) -> None:
        """Take in what was recorded since."""
        for tick in self._follower.read():
            for sensor, value in tick.values.items():
                if value is not None and sensor in self._used | self._hot:
                    self._rows.setdefault(sensor, []).append(value)

    def utilization_percent(self) -> float | None:
        """Mean of the least used device."""
        means = [fmean(rows) for sensor, rows in self._rows.items() if sensor in self._used]
        return min(means, default=None)

    def hottest_celsius(self) -> float | None:
        """Median of the hottest sensor."""
        return max((median(rows) for sensor, rows in self._rows.items() if sensor in self._hot), default=None)

    def drift_kelvin(self) -> float | None:
        """The greatest change of a temperature, second half against first."""
        found = [
            fmean(rows[len(rows) // 2 :]) - fmean(rows[: len(rows) // 2])
            for sensor, rows in self._rows.items()
            if sensor in self._hot and len(rows) >= _LEAST_ROWS
        ]
        return max(found, key=abs, default=None)
