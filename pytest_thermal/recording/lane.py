"""One lane as the recorder sees it: a process that is fed, heard, given up, killed and started anew.

Nothing here waits. A process that cannot be killed, because it hangs in the kernel, is left alone, and no second one
is started beside it; its slots go on being missing.
"""

from __future__ import annotations

import contextlib
import json
import math
import os
import signal
import subprocess
import sys
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from enum import Enum
from typing import Any, Protocol

from pytest_thermal.model import Missing, Sensor
from pytest_thermal.recording.naming import Naming
from pytest_thermal.recording.samples import SampleWriter
from pytest_thermal.recording.schedule import SLOW_SHARE, Grid
from pytest_thermal.recording.slot_book import SlotBook
from pytest_thermal.recording.spec import RecordingSpec, SourceOrder
from pytest_thermal.recording.words import sensor_from_json

_FIRST_PAUSE_SECONDS = 1.0
_LONGEST_PAUSE_SECONDS = 60.0
_HEALTHY_SECONDS = 60.0
_LOOK_SECONDS = 0.1
_STUCK_SECONDS = 2.0
_MOST_FIRST_STARTS = 5
_ERROR_LINES = 20


class State(str, Enum):
    """Where a lane is."""

    WAITING = "waiting"
    """For the source that it stands in for."""
    STARTING = "starting"
    SAMPLING = "sampling"
    HANGING = "hanging"
    """A slot was given up, and the process may still answer."""
    ENDING = "ending"
    """It was killed or died, and is not gone yet."""
    PAUSING = "pausing"
    """It is gone and will be started anew."""
    UNAVAILABLE = "unavailable"

    def __str__(self) -> str:
        return self.value


class Tell(Protocol):
    """Something for the events and for whoever watches."""

    def __call__(self, text: str, **detail: object) -> None:
        """Tell it."""


class Lane:
    """Samples one source through a process of its own."""

    def __init__(
        self,
        order: SourceOrder,
        spec: RecordingSpec,
        writer: SampleWriter,
        *,
        start_seconds: float,
        tell: Tell,
        known: Sequence[Sensor] = (),
    ) -> None:
        self.order = order
        self.writer = writer
        self.state = State.WAITING
        self.reason = ""
        """Why it is not sampling, in words."""
        self.priority = ""
        self.read_seconds: float | None = None
        """How long the trial reading took."""
        self.grid = Grid(start_seconds=start_seconds, period_seconds=_period_seconds(order, spec))
        self.book: SlotBook | None = None
        """The account of its slots; None until it was ready for the first time."""
        self.changed = True
        """Whether what ``facts`` says changed since somebody set this to False."""
        self._spec = spec
        self._tell = tell
        self._naming = Naming(known)
        self._process: subprocess.Popen[bytes] | None = None
        self._buffer = b""
        self._errors: deque[str] = deque(maxlen=_ERROR_LINES)
        self._starts = 0
        self._since_seconds = start_seconds
        self._due_seconds = start_seconds
        self._pause_seconds = _FIRST_PAUSE_SECONDS
        self._stuck = False
        self._down = ""  # why the process before this one is no more, until the first row of this one
        self._stopping = False

    # ------------------------------------------------------------------------------------------------ the process

    @property
    def process_id(self) -> int | None:
        """The process that reads, or that hangs."""
        return None if self._process is None else self._process.pid

    @property
    def settled(self) -> bool:
        """Whether it is known what this lane offers, as far as that can be known soon."""
        return self.state is not State.STARTING or self._starts > 1

    @property
    def deadline_seconds(self) -> float:
        """How long a reading may take."""
        return self.order.deadline_seconds or max(10.0, 2 * self.grid.period_seconds)

    @property
    def kill_seconds(self) -> float:
        """How long it may hang, from the slot it hangs in."""
        return self.order.kill_seconds or max(30.0, 2 * self.deadline_seconds)

    def streams(self) -> dict[int, Callable[[float], None]]:
        """Descriptors to wait for, and what to call when there is something to read."""
        process = self._process
        streams: dict[int, Callable[[float], None]] = {}
        if process is not None:
            for stream, hear in ((process.stdout, self._hear), (process.stderr, self._hear_errors)):
                if stream is not None and not stream.closed:
                    streams[stream.fileno()] = hear
        return streams

    def start(self, now_seconds: float) -> None:
        """Start the process."""
        self._buffer = b""
        self._errors.clear()
        self._stuck = False
        self._starts += 1
        # -P where there is one: a select.py in the current folder is not Python's.
        flags = ["-P"] if sys.version_info >= (3, 11) else []
        try:
            self._process = subprocess.Popen(
                [sys.executable, *flags, "-m", "pytest_thermal.recording.lane_process"],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                start_new_session=True,
                bufsize=0,
            )
        except OSError as error:
            self._pause(now_seconds, f"its process could not be started: {error.strerror}")
            return
        for stream in (self._process.stdout, self._process.stderr):
            if stream is not None:
                os.set_blocking(stream.fileno(), False)
        self._say(
            {
                "source": asdict(self.order.source),
                "import_paths": self._spec.import_paths,
                "period_seconds": self.grid.period_seconds,
                "startup_seconds": self._spec.startup_seconds,
                "rediscover_seconds": self._spec.rediscover_seconds,
                "raise_priority": self._spec.raise_priority,
            }
        )
        self.reason = ""
        self._enter(State.STARTING, now_seconds)

    def leave_out(self, reason: str, now_seconds: float) -> None:
        """Do not sample this source: it is not needed."""
        self.reason = reason
        self._enter(State.UNAVAILABLE, now_seconds)

    def tick(self, now_seconds: float) -> None:
        """Do what time asks for: give up slots, kill, reap, start anew. Call after hearing all there was to hear."""
        # Of one that just died it is told how, once that is known.
        if self.book is not None and not (self.state is State.ENDING and not self.reason):
            self._give_up_slots(now_seconds, self.book)
        in_state_seconds = now_seconds - self._since_seconds
        if self.state is State.STARTING and in_state_seconds > self._spec.startup_seconds:
            self._kill(now_seconds, f"no word of its sensors within {self._spec.startup_seconds:g} s")
        elif self.state is State.HANGING and in_state_seconds > self.kill_seconds:
            self._kill(now_seconds, f"no answer for {self.kill_seconds:g} s, so its process was killed")
        elif self.state is State.ENDING:
            self._reap(now_seconds)
        elif self.state is State.PAUSING and now_seconds >= self._due_seconds:
            self.start(now_seconds)
        elif self.state is State.UNAVAILABLE and self._process is not None and self._process.poll() is not None:
            self.collect()

    def wake_seconds(self, now_seconds: float) -> float:
        """When ``tick`` has something to do next, at the latest."""
        moments = [math.inf]
        if self.state is State.STARTING:
            moments.append(self._since_seconds + self._spec.startup_seconds)
        elif self.state is State.HANGING:
            moments.append(self._since_seconds + self.kill_seconds)
        elif self.state is State.PAUSING:
            moments.append(self._due_seconds)
        elif self._process is not None and self.state in {State.ENDING, State.UNAVAILABLE}:
            moments.append(now_seconds + _LOOK_SECONDS)
        if self.book is not None:
            moments.append(self.book.next_overdue(answering=self._answering))
        return min(moments)

    def stop(self) -> None:
        """Tell the process to end. It does so by itself, within seconds where its source is slow to give back."""
        self._stopping = True
        if self._process is not None and self._process.stdin is not None:
            with contextlib.suppress(OSError):
                self._process.stdin.close()

    def abandon(self) -> bool:
        """Kill what is left of its process and its tools; whether it is gone. Does not wait."""
        if self._process is None:
            return True
        if self._process.returncode is None:  # nobody collected it, so that its number is nobody else's yet
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(self._process.pid, signal.SIGKILL)
        return self._process.poll() is not None

    def close_account(self, now_seconds: float) -> None:
        """At the end: tell the slots of a lane that did not answer, which would otherwise just not be there."""
        if self.book is not None and self.state is not State.SAMPLING:
            slots = self.book.overdue(now_seconds, answering=False)
            self._gap(slots, Missing.TIMEOUT if self._answering else Missing.UNREADABLE, self.reason or self._down)

    def facts(self) -> dict[str, Any]:
        """What ``run.json`` says of this source."""
        told: dict[str, Any] = {
            "state": self.state.value,
            "reason": self.reason,
            "period_seconds": self.grid.period_seconds,
            "deadline_seconds": self.deadline_seconds,
            "priority": self.priority,
            "trial_read_seconds": self.read_seconds,
            "segments": [
                {"file": segment.file, "sensors": [sensor.id for sensor in segment.sensors]}
                for segment in self.writer.segments
            ],
        }
        if self.book is not None:
            told["rows"] = self.book.answered_count
            told["missed"] = self.book.missed_count
            told["late"] = self.book.late_count
        return told

    # ----------------------------------------------------------------------------------------------- what it says

    @property
    def _answering(self) -> bool:
        return self.state in {State.SAMPLING, State.HANGING}

    def _hear(self, now_seconds: float) -> None:
        process = self._process
        if process is None or process.stdout is None:
            return
        while True:
            try:
                data = os.read(process.stdout.fileno(), 1 << 16)
            except BlockingIOError:
                break
            if not data:
                process.stdout.close()
                break
            self._buffer += data
        *lines, self._buffer = self._buffer.split(b"\n")
        try:
            for line in lines:
                self._understand(json.loads(line), now_seconds)
        except (ValueError, KeyError, TypeError) as error:
            self._kill(now_seconds, f"its process sent what is not understood: {error!r}")
        if process is self._process and process.stdout.closed and not self._stopping:
            self._kill(now_seconds, "")

    def _hear_errors(self, _now_seconds: float) -> None:
        process = self._process
        if process is None or process.stderr is None:
            return
        try:
            data = os.read(process.stderr.fileno(), 1 << 16)
        except BlockingIOError:
            return
        if not data:
            process.stderr.close()
        self._errors.extend(line for line in data.decode("utf-8", "replace").splitlines() if line.strip())

    def _understand(self, message: Mapping[str, Any], now_seconds: float) -> None:
        kind = message["kind"]
        if kind == "row":
            self._row(message, now_seconds)
        elif kind == "sensors":
            self._begin(message)
        elif kind == "ready":
            self._ready(message, now_seconds)
        elif self.book is None:
            self.reason = str(message["reason"])
            self._enter(State.UNAVAILABLE, now_seconds)
            self.stop()
        else:
            # It was there before, so it may come back.
            self._kill(now_seconds, str(message["reason"]))

    def _ready(self, message: Mapping[str, Any], now_seconds: float) -> None:
        self.priority = str(message["priority"])
        self.read_seconds = round(float(message["read_seconds"]), 6)
        if self.book is None:
            self._choose_period(self.read_seconds)
            first = self.grid.last_due(now_seconds) + 1
            self.book = SlotBook(self.grid, first=first, deadline_seconds=self.deadline_seconds)
        else:
            self.book.begin_anew()
            self._tell(f"{self.order.name}: sampling again", source=self.order.name)
        self._begin(message)
        self._enter(State.SAMPLING, now_seconds)
        self._say(
            {
                "start_seconds": self.grid.start_seconds,
                "period_seconds": self.grid.period_seconds,
                "after": self.book.next - 1,
            }
        )

    def _choose_period(self, read_seconds: float) -> None:
        period_seconds = self.grid.period_seconds
        if read_seconds <= SLOW_SHARE * period_seconds:
            return
        longer_seconds = math.ceil(read_seconds / SLOW_SHARE / period_seconds) * period_seconds
        self.grid = Grid(start_seconds=self.grid.start_seconds, period_seconds=longer_seconds)
        self._tell(
            f"{self.order.name}: a reading takes {read_seconds:.2f} s, so it is sampled every {longer_seconds:g} s "
            f"instead of every {period_seconds:g} s",
            source=self.order.name,
            period_seconds=longer_seconds,
        )

    def _begin(self, message: Mapping[str, Any]) -> None:
        before = [sensor.id for sensor in self.writer.sensors]
        sensors = self._naming.assign([sensor_from_json(data) for data in message["sensors"]])
        if self.writer.begin(sensors) and before:
            now = [sensor.id for sensor in sensors]
            gone, come = sorted(set(before) - set(now)), sorted(set(now) - set(before))
            self._tell(
                f"{self.order.name}: other sensors than before; {len(gone)} gone, {len(come)} come",
                source=self.order.name,
                gone=gone,
                come=come,
                file=self.writer.segments[-1].file,
            )
        self.changed = True

    def _row(self, message: Mapping[str, Any], now_seconds: float) -> None:
        if self.book is None:
            return
        slot, begun, ended = int(message["slot"]), float(message["begun"]), float(message["ended"])
        answered = self.book.answered(slot, ended_seconds=ended)
        if self.state is State.HANGING:
            self._tell(f"{self.order.name}: answered again after {ended - begun:.1f} s", source=self.order.name)
            self.reason = ""
            self._enter(State.SAMPLING, now_seconds)
        if answered is None:
            return  # its slot has been told as missing; the next one will be in time
        if answered.missed:
            reason = Missing.TIMEOUT if answered.why else Missing.UNREADABLE
            self._gap(answered.missed, reason, answered.why or self._down)
        self._down = ""
        reasons = {int(index): (Missing(reason), str(detail)) for index, reason, detail in message["missing"]}
        self.writer.row(
            self._spec.clock.at(begun),
            message["values"],
            reasons,
            lateness_seconds=begun - self.grid.due(slot),
            read_seconds=ended - begun,
        )

    # -------------------------------------------------------------------------------------------- when it does not

    def _give_up_slots(self, now_seconds: float, book: SlotBook) -> None:
        hung = self._answering or self._stuck
        slots = book.overdue(now_seconds, answering=self._answering)
        if not slots:
            return
        if self.state is State.SAMPLING:
            self.reason = f"no answer within {self.deadline_seconds:g} s"
            self._tell(f"{self.order.name}: {self.reason}", source=self.order.name)
            self._enter(State.HANGING, self.grid.due(slots[0]))
        self._gap(slots, Missing.TIMEOUT if hung else Missing.UNREADABLE, self.reason or self._down)

    def _gap(self, slots: Sequence[int], reason: Missing, detail: str) -> None:
        self.writer.gap([self._spec.clock.at(self.grid.due(slot)) for slot in slots], reason, detail)

    def _kill(self, now_seconds: float, reason: str) -> None:
        """Take the process down; without a reason, its exit status will say why."""
        if self.state is State.ENDING:
            return
        self.abandon()
        self.reason = self._down = reason
        self._enter(State.ENDING, now_seconds)
        self._reap(now_seconds)

    def _reap(self, now_seconds: float) -> None:
        status = None if self._process is None else self._process.poll()
        if status is None and self._process is not None:
            if not self._stuck and now_seconds - self._since_seconds > _STUCK_SECONDS:
                self._stuck = True
                self.reason = f"process {self._process.pid} hangs in the kernel and cannot be killed"
                self._tell(f"{self.order.name}: {self.reason}; its driver is stuck", source=self.order.name)
                self.changed = True
            return
        last = f": {self._errors[-1]}" if self._errors else ""
        reason = self.reason or f"its process {_how_it_ended(status or 0)}{last}"
        self._tell(f"{self.order.name}: {reason}", source=self.order.name, said=list(self._errors))
        if self.book is None and self._starts >= _MOST_FIRST_STARTS:
            self.collect()
            self.reason = reason
            self._enter(State.UNAVAILABLE, now_seconds)
        else:
            self._pause(now_seconds, reason)

    def _pause(self, now_seconds: float, reason: str) -> None:
        self.collect()
        self.reason = self._down = reason
        self._due_seconds = now_seconds + self._pause_seconds
        self._pause_seconds = min(2 * self._pause_seconds, _LONGEST_PAUSE_SECONDS)
        self._enter(State.PAUSING, now_seconds)

    def collect(self) -> None:
        """Let go of a process that is gone."""
        if self._process is not None:
            for stream in (self._process.stdin, self._process.stdout, self._process.stderr):
                if stream is not None:
                    with contextlib.suppress(OSError):
                        stream.close()
            self._process = None

    def _say(self, message: Mapping[str, Any]) -> None:
        if self._process is not None and self._process.stdin is not None:
            with contextlib.suppress(OSError):  # it is gone: the end of its output will tell
                self._process.stdin.write(json.dumps(message).encode() + b"\n")

    def _enter(self, state: State, since_seconds: float) -> None:
        if self.state is State.SAMPLING and since_seconds - self._since_seconds > _HEALTHY_SECONDS:
            self._pause_seconds = _FIRST_PAUSE_SECONDS
        self.state = state
        self._since_seconds = since_seconds
        self.changed = True


def _period_seconds(order: SourceOrder, spec: RecordingSpec) -> float:
    if order.period_seconds is not None:
        return order.period_seconds
    # A multiple, so that its slots fall on those of the others.
    return max(1, math.ceil(order.source.least_period_seconds / spec.period_seconds)) * spec.period_seconds


def _how_it_ended(status: int) -> str:
    if status >= 0:
        return f"ended with exit code {status}"
    try:
        return f"was ended by {signal.Signals(-status).name}"
    except ValueError:
        return f"was ended by signal {-status}"
