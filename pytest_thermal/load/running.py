"""A load from the outside: started under its guard, asked, told of phases, stopped."""

from __future__ import annotations

import contextlib
import json
import os
import select
import signal
import subprocess
import sys
import threading
import time
from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import TracebackType
from typing import IO, TYPE_CHECKING, Any

from pytest_thermal.bench import Redactor
from pytest_thermal.load import guard
from pytest_thermal.load.errors import LoadError
from pytest_thermal.load.remains import MARK, clear_up, new_mark
from pytest_thermal.load.work import Work
from pytest_thermal.model.said import say

if TYPE_CHECKING:
    from typing_extensions import Self

START_SECONDS = 20.0
STOP_SECONDS = 1.6
"""Together with what follows a guard that does not end, less than the 2 s within which no load is left."""
LAST_WORDS_SECONDS = 0.2
"""For the thread that hears what was said last; longer where the guard was quicker than it may be."""
REMAINS_SECONDS = 1.0
"""How long it is tried to kill what is left of a load whose watchers are gone."""
_TAIL_CHARACTERS = 2000
_TAIL_LINES = 30
_LOG_LIMIT_BYTES = 1024 * 1024
"""Of a tool that draws a progress bar all night."""
_LONGEST_LINE_BYTES = 65536
"""A longer one is cut where it stands; of half as much is read at once."""
_STATUS = b'{"is": "status"'


@dataclass(frozen=True, kw_only=True)
class LoadStatus:
    """What a load is doing. Figures of requests are of the inference load; of the last half minute where timed."""

    alive: bool
    text: str
    """For a person: ``8 in flight, 1,204 requests, 3 failed``; a tool's last words."""
    requests: int = 0
    """Finished ones, whatever became of them."""
    ok: int = 0
    failed: int = 0
    cancelled: int = 0
    """In flight when the load was taken off: neither good nor failed."""
    not_issued: int = 0
    """Due at the open loop's rate, while as many as allowed were in flight."""
    in_flight: int = 0
    concurrency: int = 0
    errors: Mapping[str, int] = field(default_factory=dict)
    """How often by what went wrong, in words."""
    prompt_tokens: int = 0
    completion_tokens: int = 0
    latency_p50_seconds: float | None = None
    latency_p95_seconds: float | None = None
    ttft_p50_seconds: float | None = None
    itl_p50_seconds: float | None = None
    """Between two tokens of a stream."""
    itl_p99_seconds: float | None = None
    itl_max_seconds: float | None = None
    loop_lag_p99_seconds: float | None = None
    """How late the load engine's own event loop came to what was due."""
    cpu_share: float | None = None
    """Of one core, by the load engine."""
    client_limited: str = ""
    """Why its times are the load engine's and not the gateway's; empty where they are the gateway's."""
    calibration: Mapping[str, Any] = field(default_factory=dict)
    """`Calibration` as plain data: what the engine adds to the times that it tells; empty until it is known."""
    items_inference: int = 0
    items_compute: int = 0
    """Compute bursts among the work items of a mixed load."""

    @property
    def inference_share(self) -> float | None:
        """Share of the issued work items that were requests; None before the first."""
        items = self.items_inference + self.items_compute
        return self.items_inference / items if items else None


@dataclass(frozen=True, kw_only=True)
class LoadEnded:
    """How a load ended."""

    because: str
    in_order: bool
    """Whether it ended because it was stopped or at its time limit; else it ended early."""
    exit_code: int | None
    """The command's; minus the number of a signal that ended it; None where nobody could tell."""
    tail: str
    """What it said last, without keys."""
    last_status: LoadStatus | None = None


@dataclass(frozen=True, kw_only=True)
class LoadUse:
    """What a load has had of the processors since its start: all its processes together, also those that ended."""

    at_seconds: float
    """Of the monotonic clock."""
    cpu_seconds: float
    stopped: int
    """How many of its processes stood still at that moment, as by SIGSTOP."""


def start(work: Work, *, log: Path | None = None, phase: str = "") -> RunningLoad:
    """Start ``work`` under a guard. ``log`` gets what it says, without keys, up to a MiB.

    Its first requests belong to ``phase``.

    Raises:
        LoadError: Its command, or the guard, cannot be started.
    """
    redactor = Redactor(work.secrets)
    mark = new_mark()
    tell_read, tell_write = os.pipe()
    try:
        process = subprocess.Popen(
            [
                sys.executable,
                *("-I", "-S", guard.__file__),
                *("--limit", f"{work.limit_seconds:.3f}", "--grace", f"{work.grace_seconds:g}"),
                *("--nice", str(work.nice)),
                *("--parent", str(os.getpid()), "--tell", str(tell_write)),
                *("--", *work.command),
            ],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            env={**_environment(work, redactor), MARK: mark},
            cwd=work.folder,
            start_new_session=True,
            pass_fds=(tell_write,),
            bufsize=0,
        )
    except (OSError, ValueError) as error:
        os.close(tell_read)
        raise LoadError(
            say("the guard of the load could not be started: {error}", error=error),
            remedy=say("look at `ulimit -u` and at free memory"),
        ) from error
    finally:
        os.close(tell_write)
    running = RunningLoad(work=work, process=process, tell=tell_read, redactor=redactor, log=log, mark=mark)
    running.wait_started(START_SECONDS)
    running.send_orders(phase)
    return running


class RunningLoad:
    """A guarded load. Leaving the context stops it."""

    def __init__(
        self,
        *,
        work: Work,
        process: subprocess.Popen[bytes],
        tell: int,
        redactor: Redactor,
        log: Path | None,
        mark: str,
    ) -> None:
        self.work = work
        self._process = process
        self._tell = tell
        self._mark = mark
        self._redactor = redactor
        self._begin = time.monotonic()
        self._lock = threading.Lock()
        self._stopping = threading.Lock()
        self._news = threading.Event()
        self._asked_to_stop = False
        self._told: dict[str, Any] = {}
        self._tail: deque[str] = deque(maxlen=_TAIL_LINES)
        self._status: LoadStatus | None = None
        self._ended: LoadEnded | None = None
        self._log = _Log(log)
        if process.stdin is not None:
            os.set_blocking(process.stdin.fileno(), False)
        self._reader = threading.Thread(target=self._read, name=f"load {work.kind}", daemon=True)
        self._reader.start()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    @property
    def guard_id(self) -> int:
        """The guard's process."""
        return self._process.pid

    @property
    def process_id(self) -> int:
        """The command's process: that which makes the load, or starts what does."""
        return int(self._told["started"])

    @property
    def alive(self) -> bool:
        """Whether the load is still there."""
        return self._ended is None and self._process.poll() is None

    @property
    def ended(self) -> LoadEnded | None:
        """How it ended; None while it runs."""
        if self._ended is None and not self.alive:
            self.stop()
        return self._ended

    def status(self) -> LoadStatus:
        """What it is doing, as of at most a second ago."""
        alive = self.alive
        with self._lock:
            status = self._status
            last_words = self._tail[-1] if self._tail else ""
        if status is not None:
            return status if alive else replace(status, alive=False, in_flight=0)
        waiting = "starting" if self.work.kind == "inference" else "running"
        return LoadStatus(alive=alive, text=last_words or (waiting if alive else "ended"))

    @property
    def used(self) -> LoadUse | None:
        """CPU time as of at most a second or two ago; None until its guard told it, and where there is no /proc."""
        told = dict(self._told)
        if "cpu_seconds" not in told:
            return None
        return LoadUse(at_seconds=told["at"], cpu_seconds=told["cpu_seconds"], stopped=told["stopped"])

    @property
    def calibration(self) -> Mapping[str, Any]:
        """What the load engine was found to add to the times that it tells; empty until that is known."""
        return self.status().calibration

    def phase(self, name: str) -> None:
        """Requests that start from now on belong to this phase. Nothing for what is no inference."""
        self._command(do="phase", name=name)

    def concurrency(self, slots: int) -> None:
        """How many requests are kept in flight from now on. Nothing for what is no inference."""
        self._command(do="concurrency", slots=slots)

    def ask_to_stop(self) -> None:
        """Let go of the lifeline: the guard takes the load off. `stop` waits for that."""
        with self._lock, contextlib.suppress(OSError):
            if self._process.stdin is not None and not self._process.stdin.closed:
                self._asked_to_stop = self._process.poll() is None
                self._process.stdin.close()

    def stop(self) -> LoadEnded:
        """Take the load off, within 2 s. Never raises; asked again, it answers again."""
        with self._stopping:
            if self._ended is None:
                self._ended = self._stop()
            return self._ended

    def wait_started(self, seconds: float) -> None:
        """Until the command runs.

        Raises:
            LoadError: It could not be started.
        """
        if self._news.wait(seconds) and "started" in self._told:
            return
        told = dict(self._told)
        self.stop()
        program = self.work.command[0]
        if "failed" in told:
            raise LoadError(
                say("{program}: could not be started: {failed}", program=program, failed=told["failed"]),
                likely=say("it is not installed, or not on the PATH") if told.get("errno") == 2 else "",
                remedy=say("run it by hand: {names}", names=" ".join(self.work.command)),
            )
        raise LoadError(
            say("{program}: its guard did not start it within {seconds:g} s", program=program, seconds=seconds),
            likely=self._words(),
            remedy=say("the machine may be out of memory or processes: look at `dmesg`"),
        )

    # ---------------------------------------------------------------------------------------------------------------

    def send_orders(self, phase: str) -> None:
        """Give the command its orders. The guard hands them on; a command that is gone gets none."""
        first = _command_line(do="phase", name=phase) if phase and self.work.kind == "inference" else b""
        if self.work.orders or first:
            self._send(self.work.orders.encode() + b"\n" + first)

    def _command(self, **command: object) -> None:
        if self.work.kind == "inference":
            self._send(_command_line(**command))

    def _send(self, data: bytes) -> None:
        with self._lock, contextlib.suppress(OSError, ValueError):
            if self._process.stdin is not None:
                os.write(self._process.stdin.fileno(), data)

    def _stop(self) -> LoadEnded:
        self.ask_to_stop()
        guard_until = time.monotonic() + STOP_SECONDS
        try:
            self._process.wait(STOP_SECONDS)
        except subprocess.TimeoutExpired:
            self._process.kill()  # its warden sees that, and clears up
            with contextlib.suppress(subprocess.TimeoutExpired):
                self._process.wait(0.2)
            clear_up(self._mark, seconds=REMAINS_SECONDS)  # a warden that stands still does not
        self._reader.join(LAST_WORDS_SECONDS + max(0.0, guard_until - time.monotonic()))
        if "exit" not in self._told:  # no warden said how it ended: it was killed, and what it watched may be there
            self._told["left"] = clear_up(self._mark, seconds=REMAINS_SECONDS)
        if self._process.stdout is not None and not self._reader.is_alive():
            self._process.stdout.close()
        self._log.close()
        with self._lock:
            status = replace(self._status, alive=False) if self._status is not None else None
        because, in_order = self._because()
        return LoadEnded(
            because=because,
            in_order=in_order,
            exit_code=self._told.get("exit"),
            tail=self._words(),
            last_status=status,
        )

    def _because(self) -> tuple[str, bool]:
        told = self._told
        why, code = told.get("why", ""), told.get("exit")
        left = say("; {left} of its processes cannot be killed", left=told["left"]) if told.get("left") else ""
        if self._asked_to_stop:
            return say("it was stopped{left}", left=left), True
        if why == "limit":
            return say(
                "its time limit of {limit_seconds:g} s was reached{left}",
                limit_seconds=self.work.limit_seconds,
                left=left,
            ), True
        if why.startswith("SIG"):
            return say("its guard got {why}{left}", why=why, left=left), False
        if why == "suspended":
            return say("the process that started it was suspended, as by Ctrl-Z{left}", left=left), False
        if why or not told.get("own_end") or code is None:
            return say("its guard was ended from outside{left}", left=left), False
        seconds = self.work.limit_seconds
        how = (
            say("was ended by {signal_name}", signal_name=_signal_name(-code))
            if code < 0
            else say("ended by itself with exit code {code}", code=code)
        )
        return say("it {how} before its {seconds:g} s were over{left}", how=how, seconds=seconds, left=left), False

    def _words(self) -> str:
        with self._lock:
            return "\n".join(self._tail)[-_TAIL_CHARACTERS:]

    def _read(self) -> None:
        """The thread that hears what the command says, so that it never waits for us, and what its guard tells."""
        stdout = self._process.stdout
        if stdout is None:
            return
        streams = {stdout.fileno(): b"", self._tell: b""}
        while streams:
            for descriptor in select.select(list(streams), [], [])[0]:
                data = os.read(descriptor, _LONGEST_LINE_BYTES // 2)
                text = streams[descriptor] + data
                is_tell = descriptor == self._tell
                lines = text.splitlines(keepends=True)
                is_open = (
                    bool(lines) and len(lines[-1]) < _LONGEST_LINE_BYTES // 2 and lines[-1][-1:] not in (b"\r", b"\n")
                )
                streams[descriptor] = lines.pop() if is_open else b""
                if not data:
                    lines.append(streams.pop(descriptor))
                for line in lines:
                    (self._hear_guard if is_tell else self._hear)(line.strip())
        os.close(self._tell)
        self._news.set()

    def _hear_guard(self, line: bytes) -> None:
        with contextlib.suppress(ValueError):
            self._told.update(json.loads(line))
            self._news.set()

    def _hear(self, line: bytes) -> None:
        if not line:
            return
        if line.startswith(_STATUS):
            with contextlib.suppress(ValueError, TypeError):
                told = json.loads(line)
                del told["is"]
                with self._lock:
                    self._status = LoadStatus(alive=True, **told)
                return
        text = self._redactor.text(line.decode("utf-8", "replace"))
        with self._lock:
            self._tail.append(text)
        self._log.write(text)


class _Log:
    """A file that what a tool says goes into, up to a limit; trouble with it never troubles the load."""

    def __init__(self, path: Path | None) -> None:
        self._file: IO[str] | None = None
        self._left = _LOG_LIMIT_BYTES
        if path is not None:
            with contextlib.suppress(OSError):
                self._file = path.open("a", encoding="utf-8", errors="replace", buffering=1)

    def write(self, line: str) -> None:
        if self._file is None or self._left <= 0:
            return
        self._left -= len(line)
        with contextlib.suppress(OSError, ValueError):
            self._file.write(line + "\n")
            if self._left <= 0:
                self._file.write("(it says more than is kept)\n")

    def close(self) -> None:
        if self._file is not None:
            with contextlib.suppress(OSError):
                self._file.close()


def _command_line(**command: object) -> bytes:
    return json.dumps(command).encode() + b"\n"


def _signal_name(number: int) -> str:
    with contextlib.suppress(ValueError):
        return signal.Signals(number).name
    return say("signal {number}", number=number)


def _environment(work: Work, redactor: Redactor) -> dict[str, str]:
    """This process's environment and what the work adds, without any variable that holds a key."""
    environ = {**os.environ, **work.environ}
    return {name: value for name, value in environ.items() if redactor.text(value) == value}
