"""The process of one lane: makes a source, reads it when a slot is due, and hands on what it said.

Started by the recorder, with the order on standard input and answers on standard output. It may hang in a tool or
in the kernel as it likes: nobody waits for it. When the recorder is gone it takes itself and its tools down.

Messages, one JSON object a line: ``unavailable``, ``ready``, ``sensors``, ``row``. Times are of the monotonic clock.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import select
import signal
import sys
import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from pytest_thermal.model import Missing, Sensor
from pytest_thermal.recording.priority import raise_priority
from pytest_thermal.recording.schedule import SLOW_SHARE, Grid
from pytest_thermal.recording.spec import source_from_json
from pytest_thermal.recording.words import sensor_to_json
from pytest_thermal.sensors.opening import open_source
from pytest_thermal.sensors.source import Source

_OWN_END_SECONDS = 0.1
_GRACE_SECONDS = 0.5
"""For a main thread that reacts at all: one that does not hangs in the kernel."""
_CLOSE_SECONDS = 4.0
"""For a source that gives back what it holds, such as a BMC's session, of which there are few: BMCs are slow."""
_TURN_SECONDS = 0.02
_LONGEST_REDISCOVERY_SECONDS = 600.0
_PIPE_BYTES = 1 << 20
_TRIALS = 3


class GoneError(Exception):
    """The recorder closed our standard input."""


class _Interrupted(BaseException):
    """The recorder closed our standard input while a source was reading; no source is to catch it."""


class Control:
    """What the recorder says: lines of JSON, and the end of them."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self._buffer = b""
        self.ending = False
        """Whether the main thread has seen the end, and gives back what the source holds."""

    def message(self) -> dict[str, Any]:
        """The next message, however long that takes.

        Raises:
            GoneError: There will be none.
        """
        while b"\n" not in self._buffer:
            self._fill()
        line, _, self._buffer = self._buffer.partition(b"\n")
        data: dict[str, Any] = json.loads(line)
        return data

    def wait_until(self, moment_seconds: float) -> None:
        """Sleep to a moment of the monotonic clock, unless the recorder goes first.

        Raises:
            GoneError: It did.
        """
        while (left_seconds := moment_seconds - time.monotonic()) > 0:
            if select.select([self._descriptor], [], [], left_seconds)[0]:
                self._fill()

    def end_with_the_recorder(self) -> None:
        """Kill this process and its tools once the recorder is gone, also while the main thread hangs in a call."""
        poll = select.poll()
        poll.register(self._descriptor, 0)  # nothing but the hang-up, which cannot be masked
        poll.poll()
        _pass(_OWN_END_SECONDS)
        # A source in the middle of a reading would not give back what it holds elsewhere, as a BMC's session.
        signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGUSR1)
        _pass(_GRACE_SECONDS)
        if self.ending:
            _pass(_CLOSE_SECONDS)
        if os.getpgrp() == os.getpid():
            os.killpg(0, signal.SIGKILL)
        os._exit(1)

    def interrupt(self, _number: int, _frame: object) -> None:
        """In the main thread, on SIGUSR1.

        Raises:
            _Interrupted: It has not seen the end by itself.
        """
        if not self.ending:
            self.ending = True
            raise _Interrupted

    def _fill(self) -> None:
        data = os.read(self._descriptor, 65536)
        if not data:
            raise GoneError
        self._buffer += data


class Answers:
    """The way to the recorder."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        # Room for minutes of rows: a recorder that is held up by its disk does not hold up the sampling.
        with contextlib.suppress(OSError):
            fcntl.fcntl(descriptor, fcntl.F_SETPIPE_SZ, _PIPE_BYTES)

    def send(self, kind: str, **data: object) -> None:
        """Send one message; waits while the recorder has no time to read.

        Raises:
            GoneError: Nobody will read it.
        """
        line = json.dumps({"kind": kind, **data}).encode() + b"\n"
        try:
            while line:
                line = line[os.write(self._descriptor, line) :]
        except BrokenPipeError as error:
            raise GoneError from error


@dataclass(frozen=True, kw_only=True)
class Found:
    """A source with its sensors."""

    source: Source
    sensors: tuple[Sensor, ...]

    @property
    def marks(self) -> list[tuple[str, str]]:
        """What makes two discoveries the same."""
        return [(sensor.id, sensor.identity) for sensor in self.sensors]


def discover(order: Mapping[str, Any]) -> Found | str:
    """Make the source and ask it for its sensors; or the reason why there are none."""
    spec = source_from_json(order["source"])
    try:
        source = open_source(spec)
        available = source.probe()
        if not available.ok:
            source.close()
            return available.reason or "the source says that it is not available, and not why"
        sensors = tuple(source.sensors())
    except Exception as error:  # noqa: BLE001 - a source is anybody's code, and the other sources must not suffer
        return f"{spec.factory} failed: {_told(error)}"
    if not sensors:
        return "it has no sensors here"
    return Found(source=source, sensors=sensors)


def read(found: Found) -> tuple[list[float | None], list[tuple[int, str, str]]]:
    """One reading of each sensor: values in their order; and position, reason and detail of each that is missing."""
    values: list[float | None] = []
    missing = []
    for index, reading in enumerate(found.source.read()):
        values.append(reading.value)
        if reading.missing is not None:
            missing.append((index, reading.missing.value, reading.detail))
    return values, missing


def trial(found: Found, order: Mapping[str, Any]) -> float:
    """Seconds that a reading takes, from a few that are thrown away.

    The first is often none: averages over idle time, counters without a difference. And it is slow: so one that took
    more than its share of the period is tried again.
    """
    begun = time.monotonic()
    shortest = float("inf")
    for _ in range(_TRIALS):
        before = time.monotonic()
        read(found)
        after = time.monotonic()
        shortest = min(shortest, after - before)
        if shortest <= SLOW_SHARE * order["period_seconds"] or after - begun > order["startup_seconds"] / 3:
            break
    return shortest


def sample(
    found: Found, order: Mapping[str, Any], start: Mapping[str, Any], *, control: Control, answers: Answers
) -> None:
    """Read at every slot of the grid until the recorder goes.

    Raises:
        GoneError: It went.
    """
    grid = Grid(start_seconds=start["start_seconds"], period_seconds=start["period_seconds"])
    pause_seconds = float(order["rediscover_seconds"])
    look_again_seconds = time.monotonic() + pause_seconds
    done = int(start["after"])
    while True:
        begun = time.monotonic()
        slot = grid.startable(begun, after=done)
        if slot is None:
            control.wait_until(grid.next_due(begun, after=done))
            continue
        values, missing = read(found)
        answers.send("row", slot=slot, begun=begun, ended=time.monotonic(), values=values, missing=missing)
        done = slot
        absent = any(reason == Missing.ABSENT.value for _, reason, _ in missing)
        if absent and time.monotonic() >= look_again_seconds:
            again = discover(order)
            if isinstance(again, Found) and again.marks != found.marks:
                found.source.close()
                found = again
                answers.send("sensors", sensors=[sensor_to_json(sensor) for sensor in found.sensors])
            elif isinstance(again, Found):
                again.source.close()
            pause_seconds = min(2 * pause_seconds, _LONGEST_REDISCOVERY_SECONDS)
            look_again_seconds = time.monotonic() + pause_seconds


def _pass(seconds: float) -> None:
    """Wait in turns: whoever stood still with this thread must not find its time over when both go on."""
    for _ in range(round(seconds / _TURN_SECONDS)):
        time.sleep(_TURN_SECONDS)


def main() -> int:
    """Run a lane on standard input and output."""
    control, answers = Control(_taken(0, os.O_RDONLY)), Answers(_taken(1, os.O_WRONLY))
    signal.signal(signal.SIGUSR1, control.interrupt)
    threading.Thread(target=control.end_with_the_recorder, daemon=True).start()
    found: Found | str = ""
    try:
        order = control.message()
        sys.path.extend(path for path in order["import_paths"] if path not in sys.path)
        found = discover(order)
        if isinstance(found, str):
            answers.send("unavailable", reason=found)
            return 0
        # Before the trial, which is to tell how long a reading will take, and not how busy the machine is.
        priority = raise_priority() if order["raise_priority"] else "default: not asked for"
        read_seconds = trial(found, order)
        sensors = [sensor_to_json(sensor) for sensor in found.sensors]
        answers.send("ready", sensors=sensors, read_seconds=read_seconds, priority=priority)
        sample(found, order, control.message(), control=control, answers=answers)
    except (GoneError, _Interrupted):
        control.ending = True
        if isinstance(found, Found):
            found.source.close()
    return 0


def _taken(descriptor: int, mode: int) -> int:
    """Move a standard stream out of reach of sources and their tools, which would read from or print into it."""
    moved = os.dup(descriptor)
    if descriptor == 1:
        os.dup2(2, 1)
    else:
        nothing = os.open(os.devnull, mode)
        os.dup2(nothing, descriptor)
        os.close(nothing)
    return moved


def _told(error: Exception) -> str:
    text = " ".join(str(error).split())
    return f"{type(error).__name__}: {text}"[:300] if text else type(error).__name__


if __name__ == "__main__":
    sys.exit(main())
