"""The recorder: keeps every lane going, writes what they say, and ends when it is told to or its parent is gone.

One thread, one ``select``: nothing in here waits for a device, a tool or the disk. Lanes stamp their own readings, so
what holds up this process costs no sample and no punctuality; rows wait in the lanes' pipes meanwhile.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import math
import os
import select
import signal
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from pytest_thermal.model import Sensor
from pytest_thermal.recording.append_file import AppendFile
from pytest_thermal.recording.clock import ClockWatch
from pytest_thermal.recording.errors import RunDirectoryError
from pytest_thermal.recording.keeper import Keeper
from pytest_thermal.recording.lane import Lane, State
from pytest_thermal.recording.layout import (
    EVENTS,
    MISSING,
    REQUESTS,
    RUN,
    SAMPLES,
    SEAL,
    json_line,
    json_text,
    read_run_json,
    sealed,
    unwritable,
    write_atomically,
)
from pytest_thermal.recording.priority import raise_priority
from pytest_thermal.recording.run_state import CUT_OFF, DIRECTOR_GONE, FINISHED, RECORDING, TIME_LIMIT
from pytest_thermal.recording.samples import SampleWriter
from pytest_thermal.recording.spec import RecordingSpec
from pytest_thermal.recording.words import sensor_from_json, sensor_to_json

_LOOK_SECONDS = 1.0
_LANES_END_SECONDS = 6.0
"""More than a lane takes itself to give back what its source holds; one that holds nothing is gone at once."""
_KILLED_SECONDS = 2.0
_SEAL_SECONDS = 20.0
_TURN_SECONDS = 0.1
_LOAD_ENDS_SECONDS, _QUIET_SECONDS = 10.0, 3.0
"""A load whose director is gone ends within two seconds; nothing is sealed while it writes."""
_LOCK_TRIES = 10
_OURS = {"format", "state", "start_seconds", "end_seconds", "ended_because", "clock", "recorder", "sources", "sensors"}
_OURS |= {"phases", "sha256", SEAL}


class Recorder:
    """Records into one run directory. ``control`` is lifeline and brings commands; ``status`` takes what is told."""

    def __init__(self, spec: RecordingSpec, *, control: int, status: int) -> None:
        self._spec = spec
        self._control = control
        self._status = status
        self._buffer = b""
        self._facts = read_run_json(spec.run)
        self._lock = _locked(spec.run)
        # A recorder may follow one that died in the same run.
        self._earlier: dict[str, Any] = self._facts.get("sources", {})
        self._earlier_sensors: list[dict[str, Any]] = self._facts.get("sensors", [])
        try:
            (spec.run / SAMPLES).mkdir(exist_ok=True)
            os.close(os.open(spec.run / EVENTS, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644))
            write_atomically(spec.run / RUN, json_text(self._facts))
        except OSError as error:
            raise unwritable(spec.run, error) from error
        self._missing = AppendFile(spec.run / MISSING)
        self._events = AppendFile(spec.run / EVENTS)
        self._lanes = [
            Lane(
                order,
                spec,
                SampleWriter(spec.run, order.name, self._missing),
                start_seconds=time.monotonic(),
                tell=self._tell,
                known=_known(self._facts, order.name),
            )
            for order in spec.sources
        ]
        self._lanes_by_name = {lane.order.name: lane for lane in self._lanes}
        self._keeper = Keeper(spec.run / RUN, sync_seconds=spec.sync_seconds)
        self._watch = ClockWatch(spec.clock)
        self._because = ""
        self._in_order = False
        self._ready = False
        self._changed = True
        self._disk_trouble = ""
        self._next_look_seconds = 0.0
        self._parent = os.getppid()

    def run(self) -> str:
        """Record until the end; says what brought it."""
        self._begin()
        while not self._because:
            self._wait()
            now_seconds = time.monotonic()
            self._start_fallbacks(now_seconds)
            for lane in self._lanes:
                lane.tick(now_seconds)
            if now_seconds >= self._next_look_seconds:
                self._next_look_seconds = now_seconds + _LOOK_SECONDS
                self._look(now_seconds)
            if not self._ready and all(lane.settled for lane in self._lanes):
                self._ready = True
                self._say("ready", sources={lane.order.name: self._offer(lane) for lane in self._lanes})
            if self._changed or any(lane.changed for lane in self._lanes):
                self._keep_facts()
        self._end()
        return self._because

    # -------------------------------------------------------------------------------------------------------- ways in

    def ask_to_end(self, because: str, *, in_order: bool = False) -> None:
        """End soon. The first reason stands; ``in_order`` where whoever directs the run said that it is over."""
        if not self._because:
            self._because, self._in_order = because, in_order

    def _wait(self) -> None:
        now_seconds = time.monotonic()
        wake_seconds = min([self._next_look_seconds, *(lane.wake_seconds(now_seconds) for lane in self._lanes)])
        hears = {self._control: self._hear, self._signals: self._hear_signal}
        for lane in self._lanes:
            hears.update(lane.streams())
        _listen(hears, wake_seconds - now_seconds)

    def _hear(self, _now_seconds: float) -> None:
        data = os.read(self._control, 65536)
        if not data:
            self.ask_to_end(DIRECTOR_GONE)
            return
        *lines, self._buffer = (self._buffer + data).split(b"\n")
        for line in lines:
            try:
                self._obey(json.loads(line, parse_constant=lambda _: None))
            except (ValueError, KeyError, TypeError) as error:
                self._tell(f"a command was not understood: {error!r}")

    def _hear_signal(self, _now_seconds: float) -> None:
        for number in os.read(self._signals, 64):
            self.ask_to_end(signal.Signals(number).name)

    def _obey(self, command: Mapping[str, Any]) -> None:
        what = command["do"]
        if what == "stop":
            self.ask_to_end(str(command.get("because") or "asked to"), in_order=not command.get("orphaned"))
        elif what == "phase":
            self._enter_phase(command["name"], float(command["time"]))
        elif what == "event":
            self._event(float(command["time"]), str(command["kind"]), dict(command["detail"]))
        elif what == "facts":
            self._facts.update({name: value for name, value in command["facts"].items() if name not in _OURS})
            self._changed = True
        else:
            self._tell(f"a command was not understood: {what!r}")

    def _enter_phase(self, name: str | None, time_seconds: float) -> None:
        phases = self._facts["phases"]
        if phases and phases[-1]["end_seconds"] is None:
            phases[-1]["end_seconds"] = max(time_seconds, phases[-1]["start_seconds"])
        if name is not None:
            phases.append({"name": name, "start_seconds": time_seconds, "end_seconds": None})
        self._event(time_seconds, "phase", {"name": name})
        self._changed = True

    # ------------------------------------------------------------------------------------------------------- ways out

    def _tell(self, text: str, **detail: object) -> None:
        self._event(self._spec.clock.now(), "recorder", {"text": text, **detail})
        self._say("note", text=text)

    def _event(self, time_seconds: float, kind: str, detail: Mapping[str, Any]) -> None:
        self._events.append(json_line({"time": round(time_seconds, 3), "kind": kind, **detail}))

    def _say(self, what: str, **detail: object) -> None:
        """Tell whoever watches, if anybody listens; a note that does not fit the pipe is in the events anyway."""
        line = json.dumps({"is": what, **detail}).encode() + b"\n"
        with contextlib.suppress(OSError):
            os.write(self._status, line)

    def _offer(self, lane: Lane) -> dict[str, Any]:
        return {
            "state": lane.state.value,
            "reason": lane.reason,
            "period_seconds": lane.grid.period_seconds,
            "priority": lane.priority,
            "sensors": [sensor_to_json(sensor) for sensor in lane.writer.sensors],
        }

    def _keep_facts(self) -> None:
        self._changed = False
        self._facts["sources"] = {
            **self._earlier,
            **{lane.order.name: _continued(self._earlier.get(lane.order.name), lane.facts()) for lane in self._lanes},
        }
        sensors = {data["id"]: data for data in self._earlier_sensors}
        sensors |= {
            sensor.id: sensor_to_json(sensor)
            for lane in self._lanes
            for segment in lane.writer.segments
            for sensor in segment.sensors
        }
        self._facts["sensors"] = list(sensors.values())
        for lane in self._lanes:
            lane.changed = False
        self._keeper.replace(json_text(self._facts))

    # --------------------------------------------------------------------------------------- begin, look around, end

    def _begin(self) -> None:
        self._signals, wake = os.pipe()
        os.set_blocking(self._signals, False)
        os.set_blocking(wake, False)
        os.set_blocking(self._status, False)
        signal.set_wakeup_fd(wake)
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            signal.signal(number, _noted)
        self._keeper.start()
        # After the keeper's thread, which is to be an ordinary one.
        priority = raise_priority() if self._spec.raise_priority else "default: not asked for"
        if not self._earlier:
            self._facts["start_seconds"] = round(self._spec.clock.now(), 3)
        self._facts.update(
            state=RECORDING,
            end_seconds=None,
            ended_because=None,
            recorder={"pid": os.getpid(), "period_seconds": self._spec.period_seconds, "priority": priority},
        )
        self._facts.setdefault("phases", [])
        self._facts.pop("sha256", None)
        self._facts.pop(SEAL, None)
        self._event(self._spec.clock.now(), "recorder", {"text": "recording", "priority": priority})
        now_seconds = time.monotonic()
        for lane in self._lanes:
            if lane.order.source.fallback_for not in self._lanes_by_name:
                lane.start(now_seconds)

    def _start_fallbacks(self, now_seconds: float) -> None:
        """Start what stands in for a source that turned out not to be there."""
        for lane in self._lanes:
            first = self._lanes_by_name.get(lane.order.source.fallback_for)
            if lane.state is not State.WAITING or first is None:
                continue
            if first.state is State.UNAVAILABLE:
                lane.start(now_seconds)
            elif first.book is not None:
                lane.leave_out(f"not needed: {first.order.name} is there", now_seconds)

    def _look(self, now_seconds: float) -> None:
        """Once a second: is the parent there, does the disk take what is written, was the clock set."""
        if os.getppid() != self._parent or (self._spec.parent is not None and os.getppid() != self._spec.parent):
            self.ask_to_end(DIRECTOR_GONE)
        limit_seconds = self._spec.limit_seconds or math.inf
        if now_seconds - self._spec.clock.monotonic_seconds > limit_seconds:
            self.ask_to_end(f"{TIME_LIMIT} of {limit_seconds:g} s")
        step_seconds = self._watch.step()
        if step_seconds is not None:
            self._facts.setdefault("clock", {}).setdefault("steps", []).append(
                {"time": round(self._spec.clock.now(), 3), "seconds": round(step_seconds, 3)}
            )
            self._tell(
                f"the system's clock was set by {step_seconds:+.1f} s; times of this run go on as before",
                offset_seconds=round(self._watch.offset_seconds, 3),
            )
            self._changed = True
        self._look_at_the_disk()

    def _look_at_the_disk(self) -> None:
        files = [self._missing, self._events, *(lane.writer.file for lane in self._lanes if lane.writer.file)]
        trouble = ""
        for file in files:
            if file is not None:
                file.flush()
                trouble = trouble or ("deleted while it was written" if file.vanished() else file.trouble)
        trouble = trouble or self._keeper.trouble
        if trouble == self._disk_trouble:
            return
        self._disk_trouble, before = trouble, self._disk_trouble
        self._say("disk", trouble=trouble)
        lost = sum(lane.writer.lost for lane in self._lanes)
        if trouble:
            self._tell(f"{self._spec.run}: {trouble}; samples wait in memory", kind_of_trouble=trouble)
        else:
            self._tell(f"{self._spec.run}: written again after: {before}; {lost} rows were lost", lost=lost)

    def _end(self) -> None:
        for lane in self._lanes:
            lane.stop()
        # What was read until now is in the pipes; what is still being read is not waited for. A turn counts for no more
        # than it was to take: a recorder that stood still meanwhile has heard nothing.
        left_seconds = _LANES_END_SECONDS
        while left_seconds > 0 and any(lane.streams() for lane in self._lanes):
            before_seconds = time.monotonic()
            self._listen_to_lanes(_TURN_SECONDS)
            left_seconds -= min(time.monotonic() - before_seconds, _TURN_SECONDS)
        last_seconds = time.monotonic() + _KILLED_SECONDS
        while sum(not lane.abandon() for lane in self._lanes) and time.monotonic() < last_seconds:
            time.sleep(0.01)
        self._listen_to_lanes(0.0)
        for lane in self._lanes:
            if not lane.abandon():
                self._tell(f"{lane.order.name}: process {lane.process_id} hangs in the kernel and is left behind")
            lane.close_account(time.monotonic())
        now = round(self._spec.clock.now(), 3)
        if self._facts["phases"] and self._facts["phases"][-1]["end_seconds"] is None:
            self._enter_phase(None, now)
        lost = sum(lane.writer.lost for lane in self._lanes)
        self._event(now, "recorder", {"text": f"ended: {self._because}", "lost_rows": lost})
        for lane in self._lanes:
            lane.writer.close()
        # Only whoever directs a run knows that it is whole: one that just stopped hearing of it was cut.
        state = FINISHED if self._in_order else CUT_OFF
        self._facts.update(state=state, end_seconds=now, ended_because=self._because)
        self._keep_facts()
        if not self._keeper.finish(self._seal, timeout_seconds=_SEAL_SECONDS):
            self._say("note", text=f"{self._spec.run}: the disk does not answer; left as it is")
        self._say("ended", because=self._because)

    def _listen_to_lanes(self, seconds: float) -> None:
        _listen({descriptor: hear for lane in self._lanes for descriptor, hear in lane.streams().items()}, seconds)

    def _seal(self) -> None:
        """In the keeper's thread: everything is on the disk, and what it is can be checked."""
        self._missing.close()
        self._events.close()
        if not self._in_order:
            self._let_load_end()
        with contextlib.suppress(OSError):
            self._facts = sealed(self._spec.run, self._facts)
            write_atomically(self._spec.run / RUN, json_text(self._facts))

    def _let_load_end(self) -> None:
        """Requests are written by the load, which sees for itself that its director is gone, and needs a moment."""
        path = self._spec.run / REQUESTS
        last_seconds = time.monotonic() + _LOAD_ENDS_SECONDS
        size, quiet_since = -1, time.monotonic()
        while path.exists() and time.monotonic() < last_seconds and time.monotonic() - quiet_since < _QUIET_SECONDS:
            if path.stat().st_size != size:
                size, quiet_since = path.stat().st_size, time.monotonic()
            time.sleep(0.1)


def _known(facts: Mapping[str, Any], source: str) -> list[Sensor]:
    return [sensor_from_json(data) for data in facts.get("sensors", []) if data.get("source") == source]


def _continued(earlier: Mapping[str, Any] | None, now: dict[str, Any]) -> dict[str, Any]:
    """What is to be said of a source that an earlier recorder of this run sampled too."""
    if earlier is None:
        return now
    counts = {name: earlier.get(name, 0) + now.get(name, 0) for name in ("rows", "missed", "late")}
    return {**now, **counts, "segments": [*earlier.get("segments", []), *now["segments"]]}


def _listen(hears: Mapping[int, Callable[[float], None]], seconds: float) -> None:
    """Wait for something to read and have it read.

    Made anew each time: a descriptor's number may belong to another process's pipe by the next.
    """
    poll = select.poll()
    for descriptor in hears:
        poll.register(descriptor, select.POLLIN)
    for descriptor, _ in poll.poll(max(0.0, seconds) * 1000):
        hears[descriptor](time.monotonic())


def _noted(_number: int, _frame: object) -> None:
    """The signal's number is in the wake-up pipe; without a handler it would have its default effect."""


def _locked(run: Path) -> int:
    """Hold the run directory for as long as this process lives.

    Raises:
        RunDirectoryError: Another recorder writes to it.
    """
    descriptor = os.open(run, os.O_RDONLY | os.O_CLOEXEC)
    for tries in range(_LOCK_TRIES):
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            if tries == _LOCK_TRIES - 1:
                os.close(descriptor)
                raise RunDirectoryError(
                    f"{run}: another recorder writes to it", remedy="give each recording a run directory of its own"
                ) from error
            time.sleep(0.1)  # a reader that looks whether the run goes on holds it for a moment
        except OSError:
            break  # a file system without locks
        else:
            break
    return descriptor
