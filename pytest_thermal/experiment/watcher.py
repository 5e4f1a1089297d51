"""Watches a run from its first reading to its last: thresholds, loads that die, what the recorder has to say."""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from pytest_thermal.experiment.cpu_account import CpuAccount
from pytest_thermal.experiment.idle import busiest_processes
from pytest_thermal.experiment.loop_watch import Alarm, LoopWatch
from pytest_thermal.experiment.progress import HottestSensor, Notice, Progress
from pytest_thermal.experiment.watch import Crossing, ThresholdWatch, thresholds_of
from pytest_thermal.load import Loads, LoadStatus, Work
from pytest_thermal.model.kinds import Kind, kind_of
from pytest_thermal.model.phases import LOADED_PHASES
from pytest_thermal.model.readings import Unit
from pytest_thermal.model.said import joined, say
from pytest_thermal.recording import Follower, RecorderError, RunningRecorder

if TYPE_CHECKING:
    from pytest_thermal.bench import Bench
    from pytest_thermal.experiment.plan import Plan
    from pytest_thermal.model import Sensor

_LOOK_SECONDS = 0.25
_HOTTEST = 3
BLIND_TICKS, BLIND_LEAST_SECONDS = 5, 10.0
"""Without a reading for so long, a critical threshold is blind."""
DISK_PATIENCE_SECONDS, DISK_LEAST_PATIENCE_SECONDS = 60.0, 5.0
"""In bench seconds, and at least in ours: a disk that takes nothing for longer ends the run, whose rows wait in memory
meanwhile. Short enough that the load does not go on for nothing."""
_LEAST_OWN_SHARE = 0.8
"""Of its cores' time: with less for the CPU load its findings will be inconclusive, so it is told at once."""

Listener = Callable[[float, Mapping[str, float | None]], None]


class Watcher:
    """A thread of its own, so that thresholds hold also while tests judge between two phases."""

    def __init__(
        self,
        *,
        run: Path,
        recorder: RunningRecorder,
        loads: Loads,
        sensors: Sequence[Sensor],
        bench: Bench,
        plan: Plan,
        tell: Callable[[Progress | Notice], None],
    ) -> None:
        self._follower = Follower(run)
        self._recorder = recorder
        self._loads = loads
        self._plan = plan
        self._tell = tell
        self._account = CpuAccount(loads, self._book, loaded_seconds=plan.loaded_seconds)
        self._is_demo = bench.demo
        self._said_starved: set[str] = set()
        self._thresholds = ThresholdWatch(thresholds_of(sensors, bench.monitor, bench.origins))
        self._loop = LoopWatch(sensors, named=_devices(bench.monitor.sensors), time_scale=plan.time_scale)
        self._hot = frozenset(
            sensor.id
            for sensor in sensors
            if sensor.unit is Unit.CELSIUS and kind_of(sensor.device) in (Kind.CPU, Kind.ACCELERATOR)
        )
        self._values: dict[str, float | None] = {}
        self._baseline: dict[str, tuple[float, int]] = {}
        self._phase: tuple[str, float] | None = None
        self._warnings = 0
        self._lost: list[tuple[str, str]] = []
        self._said_lost: list[Work] = []
        self._said_limited: set[tuple[str, str]] = set()
        self._said_calibration = False
        self._listeners: list[Listener] = []
        self._critical = ""
        self._failure = ""
        self._disk_failure = ""
        self._disk_bad_since: float | None = None
        self._looked_seconds = time.monotonic()
        self._seen: dict[str, float] = {}
        self._blind: set[str] = set()
        self._guard = threading.Lock()
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._watch, name="thermal-watch", daemon=True)

    def start(self) -> None:
        """Begin to watch."""
        self._thread.start()

    def stop(self) -> None:
        """End; does not wait for a listener that hangs."""
        self._ended.set()
        self._thread.join(2.0)

    def enter(self, phase: str | None, time_seconds: float) -> None:
        """A phase begins. Before loads are taken off, so that their CPU time is known up to here."""
        self._account.end_stretch()
        with self._guard:
            self._phase = None if phase is None else (phase, time_seconds)
        if phase is not None:
            seconds = self._plan.seconds[phase]
            self._tell(Notice(text=say("{phase} for {seconds:g} s", phase=phase, seconds=seconds), kind="phase"))

    def listen(self, listener: Listener) -> None:
        """Hand every row of readings to ``listener`` too."""
        with self._guard:
            self._listeners.append(listener)

    def unlisten(self, listener: Listener) -> None:
        """No longer."""
        with self._guard:
            self._listeners = [other for other in self._listeners if other != listener]

    @property
    def lost_loads(self) -> list[tuple[str, str]]:
        """Loads that ended by themselves: name, and how."""
        with self._guard:
            return list(self._lost)

    def critical(self) -> str:
        """Why the load was taken off before its time; empty where it was not."""
        with self._guard:
            return self._critical

    # ---------------------------------------------------------------------------------------------------------------

    @property
    def failure(self) -> str:
        """Why nothing is watched any more; empty while all is well."""
        with self._guard:
            return self._failure

    @property
    def disk_failure(self) -> str:
        """Why the load was taken off for want of a disk; empty while what is recorded can be kept."""
        with self._guard:
            return self._disk_failure

    @property
    def silent_seconds(self) -> float:
        """Since it last came round: it hangs where the disk that it reads from does."""
        return time.monotonic() - self._looked_seconds

    def _watch(self) -> None:
        try:
            while not self._ended.wait(_LOOK_SECONDS):
                self._looked_seconds = time.monotonic()
                for text in self._recorder.notes():
                    self._say(text, "recorder", write=False)
                self._look_at_the_disk()
                self._look_at_readings()
                self._look_for_blindness()
                self._look_at_loads()
                self._report()
        except Exception as error:  # noqa: BLE001 - whatever it is, a load that nobody watches must not go on
            with self._guard:
                self._failure = say("{name}: {error}", name=type(error).__name__, error=error)
            self._loads.stop()

    def _look_at_the_disk(self) -> None:
        """What cannot be kept is not worth the load."""
        trouble, now_seconds = self._recorder.disk_trouble, time.monotonic()
        if not trouble:
            self._disk_bad_since = None
            return
        self._disk_bad_since = since = now_seconds if self._disk_bad_since is None else self._disk_bad_since
        patience_seconds = max(DISK_PATIENCE_SECONDS / self._plan.time_scale, DISK_LEAST_PATIENCE_SECONDS)
        if now_seconds - since > patience_seconds and not self.disk_failure:
            with self._guard:
                self._disk_failure = say(
                    "nothing could be written for {seconds:.0f} s: {trouble}",
                    seconds=now_seconds - since,
                    trouble=trouble,
                )
            self._loads.stop()

    def _look_at_readings(self) -> None:
        try:
            ticks = self._follower.read()
        except OSError:
            return  # the disk; the recorder itself says what is wrong with it
        for tick in ticks:
            self._values.update(tick.values)
            self._seen.update({name: tick.time_seconds for name, value in tick.values.items() if value is not None})
            with self._guard:
                listeners, phase = list(self._listeners), self._phase
            for listener in listeners:
                listener(tick.time_seconds, tick.values)
            if phase is not None and phase[0] == "baseline":
                for sensor in self._hot & tick.values.keys():
                    value = tick.values[sensor]
                    if value is not None:
                        total, count = self._baseline.get(sensor, (0.0, 0))
                        self._baseline[sensor] = (total + value, count + 1)
            for crossing in self._thresholds.look(tick.values):
                self._crossed(crossing)
            loaded = phase is not None and phase[0] in LOADED_PHASES
            for alarm in self._loop.look(tick.time_seconds, tick.values, loaded=loaded):
                self._raised(alarm)

    def _look_for_blindness(self) -> None:
        """A critical threshold protects only while its sensor is read."""
        now_seconds = self._recorder.clock.now()
        patience_seconds = max(BLIND_TICKS * self._plan.period_seconds, BLIND_LEAST_SECONDS)
        for sensor in (*self._thresholds.critical_sensors, *self._loop.detectors):
            seen_seconds = self._seen.get(sensor)
            blind = seen_seconds is not None and now_seconds - seen_seconds > patience_seconds
            if blind and sensor not in self._blind:
                if sensor in self._loop.detectors:
                    lost = say("{sensor} gives no reading: a leak would not be seen", sensor=sensor)
                else:
                    lost = say("{sensor} gives no reading: its critical threshold protects nothing", sensor=sensor)
                self._say(lost, "warning")
            (self._blind.add if blind else self._blind.discard)(sensor)

    def _crossed(self, crossing: Crossing) -> None:
        self._say(crossing.text, "critical" if crossing.critical else "warning")
        if crossing.critical:
            self._take_off(crossing.text)

    def _raised(self, alarm: Alarm) -> None:
        self._say(alarm.text, "critical" if alarm.critical else "warning", what=alarm.what, sensor=alarm.sensor)
        if alarm.critical:
            self._take_off(alarm.text)

    def _take_off(self, why: str) -> None:
        with self._guard:
            self._critical = self._critical or why
        self._loads.stop()
        self._say(say("the load is taken off and stays off; recording goes on"), "critical")

    def _look_at_loads(self) -> None:
        self._look_at_their_share(self._account.look())
        for work, ended in self._loads.lost():
            if work not in self._said_lost:
                self._said_lost.append(work)
                said = (
                    say("{because}: {last}", because=ended.because, last=ended.tail.splitlines()[-1])
                    if ended.tail
                    else ended.because
                )
                with self._guard:
                    self._lost.append((work.kind, said))
                self._say(
                    say("the {kind} load ({tool}) was lost: {said}", kind=work.kind, tool=work.tool, said=said),
                    "load",
                    what="lost",
                    load=work.kind,
                )

    def _look_at_their_share(self, share: float | None) -> None:
        """Whether the CPU load has the processors: told once a phase, with who has them instead."""
        with self._guard:
            phase = self._phase[0] if self._phase is not None else ""
        # The demo bench gets as warm as its burner would make it on a machine of its own.
        if share is None or share >= _LEAST_OWN_SHARE or self._is_demo or phase in self._said_starved:
            return
        self._said_starved.add(phase)
        own = {load.process_id for load in self._loads.running}
        others = joined(", ", (process.text for process in busiest_processes(without_sessions=own)))
        beside = say("; beside it: {others}", others=others) if others else ""
        self._say(
            say("the loads had {share:.0%} of their cores' time{beside}", share=share, beside=beside),
            "load",
            what="starved",
            beside=others,
        )

    def _book(self, stretch: Mapping[str, object]) -> None:
        with contextlib.suppress(RecorderError):
            self._recorder.event("load", what="used", load="cpu", **stretch)

    def _look_at_clients(self, statuses: Sequence[tuple[Work, LoadStatus]]) -> None:
        """Whether the load engine itself stands in its figures: told once a phase."""
        with self._guard:
            phase = self._phase[0] if self._phase is not None else ""
        for work, status in statuses:
            if status.calibration and not self._said_calibration:
                self._said_calibration = True
                with contextlib.suppress(RecorderError):
                    self._recorder.add_facts(calibration=dict(status.calibration))
            if status.client_limited and phase and (work.tool, phase) not in self._said_limited:
                self._said_limited.add((work.tool, phase))
                text = say(
                    "client-limited: {client_limited}; times of requests are not the gateway's",
                    client_limited=status.client_limited,
                )
                self._say(text, "load", what="client-limited", load=work.kind, phase=phase)

    def _report(self) -> None:
        statuses = self._loads.statuses()
        self._look_at_clients(statuses)
        with self._guard:
            phase, warnings = self._phase, self._warnings
        if phase is None:
            return
        name, began_seconds = phase
        spent_seconds = self._recorder.clock.now() - began_seconds
        left_seconds = max(self._plan.seconds[name] - spent_seconds, 0.0)
        names = self._plan.names
        later_seconds = sum(self._plan.seconds[other] for other in names[names.index(name) + 1 :])
        self._tell(
            Progress(
                phase=name,
                phase_seconds=spent_seconds,
                phase_left_seconds=left_seconds,
                left_seconds=left_seconds + later_seconds,
                hottest=self._hottest(),
                requests=sum(status.requests for _, status in statuses),
                failed=sum(status.failed for _, status in statuses),
                in_flight=sum(status.in_flight for _, status in statuses),
                warnings=warnings,
                load=" + ".join(dict.fromkeys(work.kind for work, status in statuses if status.alive)),
            )
        )

    def _hottest(self) -> list[HottestSensor]:
        known = [(value, sensor) for sensor in self._hot if (value := self._values.get(sensor)) is not None]
        found = []
        for value, sensor in sorted(known, reverse=True)[:_HOTTEST]:
            total, count = self._baseline.get(sensor, (0.0, 0))
            since = value - total / count if count else None
            found.append(HottestSensor(sensor=sensor, celsius=value, since_baseline_celsius=since))
        return found

    def _say(self, text: str, kind: str, *, write: bool = True, **detail: str) -> None:
        with self._guard:
            self._warnings += 1
        if write:
            with contextlib.suppress(RecorderError):
                self._recorder.event(kind, text=text, **detail)
        self._tell(Notice(text=text, kind=kind))


def _devices(names: Iterable[str]) -> frozenset[str]:
    """Of what the bench names, which may be a device or one of its sensors."""
    return frozenset(name.partition(".")[0] for name in names)
