"""A recorder from the outside: started, asked, told of phases, stopped."""

from __future__ import annotations

import contextlib
import json
import os
import select
import signal
import site
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import IO, TYPE_CHECKING, Any

from pydantic import SecretStr

import pytest_thermal
from pytest_thermal.bench import Redactor
from pytest_thermal.model import Sensor
from pytest_thermal.model.said import Said, packed
from pytest_thermal.recording.clock import RunClock
from pytest_thermal.recording.errors import RecorderError, RecordingError
from pytest_thermal.recording.run_directory import add_event, run_clock, seal
from pytest_thermal.recording.spec import RecordingSpec, SourceOrder
from pytest_thermal.recording.words import sensor_from_json

if TYPE_CHECKING:
    from typing_extensions import Self

STOP_SECONDS = 30.0
"""More than the recorder takes itself for whatever hangs: lanes, and a disk that does not answer. One that is killed
before leaves a run that is cut off."""
_KILL_SECONDS = 2.0
_TAIL_CHARACTERS = 2000


@dataclass(frozen=True, kw_only=True)
class Offer:
    """What one source turned out to offer."""

    source: str
    available: bool
    reason: str
    """Why it is not sampled, in words; empty where it is."""
    period_seconds: float
    priority: str
    """``SCHED_FIFO 1``, or what it is instead and why."""
    sensors: tuple[Sensor, ...]


@dataclass(frozen=True, kw_only=True)
class Ended:
    """How a recording ended."""

    in_order: bool
    """Whether the recorder itself wrote the end; else the run was cut off and is as complete as its last tick."""
    because: str


def start_recorder(
    run: Path,
    *,
    sources: Sequence[SourceOrder],
    period_seconds: float,
    secrets: Sequence[SecretStr] = (),
    environ: Mapping[str, str] | None = None,
    import_paths: Sequence[str] | None = None,
    limit_seconds: float | None = None,
    sync_seconds: float = 15.0,
    startup_seconds: float = 20.0,
    rediscover_seconds: float = 60.0,
    raise_priority: bool = True,
) -> RunningRecorder:
    """Start recording into a run directory that ``create_run`` made, in a process and session of its own.

    Of the variables that hold one of ``secrets`` the process gets those that its sources need, and nothing it is told
    holds one. It ends by itself when this process does. A second recorder may continue a run whose first one died.

    Raises:
        RecorderError: What is asked for is impossible, or the process could not be started.
        RunDirectoryError: The folder is no run.
    """
    clock = run_clock(run)
    spec = RecordingSpec(
        run=run.absolute(),
        sources=tuple(sources),
        period_seconds=period_seconds,
        clock=clock,
        sync_seconds=sync_seconds,
        startup_seconds=startup_seconds,
        rediscover_seconds=rediscover_seconds,
        limit_seconds=limit_seconds,
        parent=os.getpid(),
        import_paths=tuple(path for path in sys.path if path) if import_paths is None else tuple(import_paths),
        raise_priority=raise_priority,
    )
    if problems := spec.problems():
        raise RecorderError("the recording cannot be made: " + "; ".join(problems))
    redactor = Redactor(secrets)
    needed = {name for order in sources for name in order.source.secrets}
    errors = tempfile.TemporaryFile()  # noqa: SIM115 - closed with the recorder
    flags = ["-P"] if sys.version_info >= (3, 11) else []
    try:
        process = subprocess.Popen(
            [sys.executable, *flags, "-m", "pytest_thermal.recording"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=errors,
            env=_environment(os.environ if environ is None else environ, redactor, needed),
            start_new_session=True,
            bufsize=0,
        )
    except OSError as error:
        errors.close()
        raise RecorderError(f"the recorder could not be started: {error.strerror}") from error
    recorder = RunningRecorder(run=run, clock=clock, process=process, errors=errors, redactor=redactor)
    recorder.send_line(spec.to_json())
    return recorder


class RunningRecorder:
    """A recorder process. Leaving the context stops it."""

    def __init__(
        self, *, run: Path, clock: RunClock, process: subprocess.Popen[bytes], errors: IO[bytes], redactor: Redactor
    ) -> None:
        self.run = run
        self.clock = clock
        """The clock of the run: whatever else is recorded should be stamped by it."""
        self._process = process
        self._errors = errors
        self._redactor = redactor
        self._buffer = b""
        self._notes: list[str] = []
        self.disk_trouble = ""
        """Why what is recorded waits in memory, as last told; empty while it is written."""
        self._offers: dict[str, Offer] | None = None
        self._failure = ""
        self._because = ""
        self._ended: Ended | None = None
        self._sending = threading.Lock()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop("asked to" if error is None else f"stopped by {type(error).__name__}")

    @property
    def process_id(self) -> int:
        """The recorder's process."""
        return self._process.pid

    @property
    def alive(self) -> bool:
        """Whether it still runs."""
        return self._process.poll() is None

    def wait_ready(self, seconds: float = 60.0) -> Mapping[str, Offer]:
        """What each source offers, by its name, once all of them have said so or had their time.

        Raises:
            RecorderError: The recorder refused, died, or said nothing for so long.
        """
        deadline = time.monotonic() + seconds
        while self._offers is None:
            left_seconds = deadline - time.monotonic()
            if left_seconds <= 0:
                raise RecorderError(f"the recorder was not ready within {seconds:g} s", likely=self._tail())
            if not self._listen(left_seconds):
                raise self._gone()
        return dict(self._offers)

    def notes(self) -> tuple[str, ...]:
        """What a person should be told that came up since the last call: hung tools, a full disk, a set clock."""
        while self._listen(0.0, only_if_there=True):
            pass
        notes, self._notes = tuple(self._notes), []
        return notes

    def phase(self, name: str | None) -> float:
        """A phase begins now, and the one before it ends; with None nothing begins. Returns the unix time of it.

        Raises:
            RecorderError: The recorder is gone.
        """
        time_seconds = round(self.clock.now(), 3)
        self._command(do="phase", name=name, time=time_seconds)
        return time_seconds

    def event(self, kind: str, **detail: object) -> None:
        """Add a line to ``events.jsonl``: loads started and stopped, warnings, faults.

        Raises:
            RecorderError: The recorder is gone.
        """
        told = {"said": packed(detail["text"])} if isinstance(detail.get("text"), Said) else {}
        detail = {**detail, **told}
        self._command(do="event", kind=kind, time=self.clock.now(), detail=self._redactor.data(detail))

    def add_facts(self, **facts: object) -> None:
        """Add to ``run.json``; what the recorder itself notes there cannot be overwritten.

        Raises:
            RecorderError: The recorder is gone.
        """
        self._command(do="facts", facts=self._redactor.data(facts))

    def stop(self, because: str = "asked to", *, seconds: float = STOP_SECONDS, orphaned: bool = False) -> Ended:
        """End the recording; one that died or does not end is sealed from here. Never raises for what they do.

        One that is ``orphaned``, since whoever wanted it is gone, is cut off and not finished.
        """
        if self._ended is not None:
            return self._ended
        with contextlib.suppress(RecorderError):
            self._command(do="stop", because=because, orphaned=orphaned)
        deadline = time.monotonic() + seconds
        # The end of its output is its end, or soon followed by it.
        while (left_seconds := deadline - time.monotonic()) > 0 and self._listen(left_seconds):
            pass
        in_order = self._exit_within(max(_KILL_SECONDS, deadline - time.monotonic())) and self._process.returncode == 0
        if not in_order:
            with contextlib.suppress(ProcessLookupError):
                self._process.kill()
            self._exit_within(_KILL_SECONDS)
            self._because = self._failure or f"the recorder {self._how_it_ended()}"
            with contextlib.suppress(RecordingError, OSError):
                add_event(self.run, "recorder", time_seconds=self.clock.now(), text=self._because)
                seal(self.run)
        self._ended = Ended(in_order=in_order, because=self._because or because)
        for stream in (self._process.stdin, self._process.stdout, self._errors):
            if stream is not None:
                with contextlib.suppress(OSError):
                    stream.close()
        return self._ended

    def send_line(self, text: str) -> None:
        """Give the recorder one line. For the specification; commands have methods of their own.

        Raises:
            RecorderError: The recorder is gone.
        """
        data = text.encode() + b"\n"
        try:
            with self._sending:
                while data and self._process.stdin is not None:
                    data = data[os.write(self._process.stdin.fileno(), data) :]
        except (OSError, ValueError) as error:
            raise self._gone() from error

    # ---------------------------------------------------------------------------------------------------------------

    def _command(self, **command: object) -> None:
        self.send_line(json.dumps(command, allow_nan=False))

    def _listen(self, seconds: float, *, only_if_there: bool = False) -> bool:
        """Hear what it says, at most for that long; False once there is nothing more to hear."""
        stream = self._process.stdout
        if stream is None or stream.closed:
            return False
        if not select.select([stream], [], [], seconds)[0]:
            return not only_if_there
        data = os.read(stream.fileno(), 65536)
        *lines, self._buffer = (self._buffer + data).split(b"\n")
        for line in lines:
            self._understand(json.loads(line))
        return bool(data)

    def _understand(self, message: Mapping[str, Any]) -> None:
        what = message["is"]
        if what == "ready":
            self._offers = {name: _offer(name, data) for name, data in message["sources"].items()}
        elif what == "note":
            self._notes.append(message["text"])
        elif what == "disk":
            self.disk_trouble = message["trouble"]
        elif what == "ended":
            self._because = message["because"]
        elif what == "failed":
            self._failure = message["text"]

    def _exit_within(self, seconds: float) -> bool:
        try:
            self._process.wait(seconds)
        except subprocess.TimeoutExpired:
            return False
        return True

    def _gone(self) -> RecorderError:
        while self._listen(0.0, only_if_there=True):
            pass
        self._exit_within(_KILL_SECONDS)
        if self._failure:
            seen, *rest = self._failure.split("\n")
            parts = dict(line.split(": ", 1) for line in rest if ": " in line)
            return RecorderError(seen, likely=parts.get("likely", ""), remedy=parts.get("try", ""))
        return RecorderError(
            f"the recorder {self._how_it_ended()}",
            likely=self._tail() or "it was killed, or the machine ran out of memory",
            remedy="the run directory is readable up to the last tick; look at `dmesg` for the reason",
        )

    def _how_it_ended(self) -> str:
        status = self._process.poll()
        if status is None:
            return "does not answer"
        if status < 0:
            with contextlib.suppress(ValueError):
                return f"was ended by {signal.Signals(-status).name}"
        return f"ended with exit code {status}"

    def _tail(self) -> str:
        with contextlib.suppress(OSError, ValueError):
            self._errors.seek(0)
            text = self._errors.read().decode("utf-8", "replace").strip()
            return self._redactor.text(text[-_TAIL_CHARACTERS:])
        return ""


def _offer(name: str, data: Mapping[str, Any]) -> Offer:
    sensors = tuple(sensor_from_json(sensor) for sensor in data["sensors"])
    return Offer(
        source=name,
        available=bool(sensors),
        reason=data["reason"],
        period_seconds=data["period_seconds"],
        priority=data["priority"],
        sensors=sensors,
    )


def _environment(environ: Mapping[str, str], redactor: Redactor, needed: Collection[str]) -> dict[str, str]:
    """The environment without keys but for those that sources need, and with this very package on the import path."""
    kept = {name: value for name, value in environ.items() if name in needed or redactor.text(value) == value}
    home = str(Path(pytest_thermal.__file__).resolve().parents[1])
    if home not in (*site.getsitepackages(), site.getusersitepackages()):
        kept["PYTHONPATH"] = os.pathsep.join(filter(None, [home, kept.get("PYTHONPATH", "")]))
    return kept
