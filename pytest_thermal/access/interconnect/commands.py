"""Programs of others, run with a deadline, without a shell or a key, and never left behind."""

from __future__ import annotations

import contextlib
import os
import secrets
import selectors
import shlex
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING

from pydantic import SecretStr

from pytest_thermal.access.interconnect import leash
from pytest_thermal.bench import Redactor

if TYPE_CHECKING:
    from typing_extensions import Self

OUTPUT_LIMIT_BYTES = 4_000_000
"""More than a debug log of all ranks of a rack; an endless one must not fill the bench's memory."""

GRACE_SECONDS = 2.0
"""From the polite signal to the other one: time for an mpirun to call its ranks on other nodes back."""

GONE_SECONDS = 10.0
"""For what was killed to be gone: on a machine that is busy it waits for its turn to die."""
_TICK_SECONDS = 0.1
_MARK = "PYTEST_THERMAL_COMMAND"


@dataclass(frozen=True, kw_only=True)
class Ran:
    """What became of a program. ``status`` is as a shell tells it; None when it was stopped from outside."""

    command: str
    status: int | None
    output: str
    errors: str
    timed_out: bool = False
    overflowed: bool = False
    seconds: float = 0.0

    @property
    def ok(self) -> bool:
        """Whether it came to its own, good end."""
        return self.status == 0 and not self.timed_out and not self.overflowed

    @property
    def said(self) -> str:
        """Its first words, from standard error if there are any: one short line."""
        return first_lines(self.errors) or first_lines(self.output)


def first_lines(text: str, *, lines: int = 3, width: int = 120) -> str:
    """The first lines with something in them, each cut to ``width``, as one line."""
    found = [line.strip() for line in text.splitlines() if line.strip()]
    return " / ".join(line if len(line) <= width else f"{line[:width]}…" for line in found[:lines])


def find_program(name: str, environ: Mapping[str, str]) -> str | None:
    """The program's path, from the PATH of ``environ``; None where there is none."""
    return shutil.which(name, path=environ.get("PATH", os.defpath))


def child_environment(environ: Mapping[str, str], keys: Sequence[SecretStr]) -> dict[str, str]:
    """``environ`` without the variables that hold one of ``keys``, whole, wrapped or encoded."""
    redactor = Redactor(keys)
    exact = {key.get_secret_value() for key in keys}
    return {name: value for name, value in environ.items() if value not in exact and redactor.text(value) == value}


def run(
    argv: Sequence[str], *, environ: Mapping[str, str], seconds: float, limit_bytes: int = OUTPUT_LIMIT_BYTES
) -> Ran:
    """Run ``argv`` to its end, or for ``seconds``; nothing it started is alive afterwards.

    ``argv[0]`` must be a path. ``environ`` is the child's whole environment.
    """
    with Program(argv, environ=environ, limit_bytes=limit_bytes) as program:
        return program.wait(seconds)


class Program:
    """A started program, in a session of its own. Leaving the context ends it and everything it started."""

    def __init__(
        self, argv: Sequence[str], *, environ: Mapping[str, str], limit_bytes: int = OUTPUT_LIMIT_BYTES
    ) -> None:
        self._command = shlex.join(argv)
        self._limit_bytes = limit_bytes
        # Inherited by everything that the program starts, however it detaches itself.
        self._mark = secrets.token_hex(16)
        self._kept = {"output": bytearray(), "errors": bytearray()}
        self._begin = time.monotonic()
        self._process = subprocess.Popen(
            [sys.executable, "-I", "-S", leash.__file__, *argv],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env={**environ, _MARK: self._mark},
            start_new_session=True,
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    @property
    def alive(self) -> bool:
        """Whether it still runs."""
        return self._process.poll() is None

    def wait(self, seconds: float) -> Ran:
        """Let it run to its end, at most for ``seconds``, and take down what is left of it then."""
        deadline = time.monotonic() + seconds
        timed_out = overflowed = False
        try:
            overflowed = not self._drain(deadline)
            if not overflowed:
                self._process.wait(max(_TICK_SECONDS, deadline - time.monotonic()))
        except (TimeoutError, subprocess.TimeoutExpired):
            timed_out = True
        self.stop()
        return Ran(
            command=self._command,
            status=None if timed_out or overflowed else self._process.returncode,
            output=self._kept["output"].decode("utf-8", "replace"),
            errors=self._kept["errors"].decode("utf-8", "replace"),
            timed_out=timed_out,
            overflowed=overflowed,
            seconds=time.monotonic() - self._begin,
        )

    def stop(self) -> None:
        """End it and whatever it started: politely, then not. Does nothing the second time."""
        self._signal_all(signal.SIGTERM)
        self._gone_within(GRACE_SECONDS)
        # More than once, since a fork may slip through between looking and killing.
        give_up = time.monotonic() + GONE_SECONDS
        while not self._gone_within(0.0) and time.monotonic() < give_up:
            self._signal_all(signal.SIGKILL)
            self._gone_within(_TICK_SECONDS)
        self._process.wait()
        for stream in (self._process.stdin, self._process.stdout, self._process.stderr):
            if stream is not None:
                with contextlib.suppress(OSError):
                    stream.close()

    def _drain(self, deadline: float) -> bool:
        """Keep what it writes until it ends; False when that was too much. Raises TimeoutError."""
        with selectors.DefaultSelector() as selector:
            for stream, name in ((self._process.stdout, "output"), (self._process.stderr, "errors")):
                if stream is not None:
                    selector.register(stream, selectors.EVENT_READ, self._kept[name])
            while selector.get_map():
                left_seconds = deadline - time.monotonic()
                # In this order: one that ended in time is no late one because this process stood still.
                ended = not self.alive
                ready = selector.select(0.0 if ended else max(0.0, min(left_seconds, _TICK_SECONDS)))
                for entry, _ in ready:
                    data = os.read(entry.fd, 65536)
                    if not data:
                        selector.unregister(entry.fileobj)
                        continue
                    entry.data.extend(data)
                    if len(entry.data) > self._limit_bytes:
                        del entry.data[self._limit_bytes :]
                        return False
                if ended and not ready:
                    # A process it left behind holds the pipe open.
                    return True
                if left_seconds <= 0 and not ended:
                    raise TimeoutError
        return True

    def _gone_within(self, seconds: float) -> bool:
        deadline = time.monotonic() + seconds
        while self._process.poll() is None or any(self._members()):
            if time.monotonic() >= deadline:
                return False
            time.sleep(_TICK_SECONDS / 2)
        return True

    def _signal_all(self, number: signal.Signals) -> None:
        members = list(self._members())
        if self._process.poll() is None:
            members.append(self._process.pid)
        for member in members:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.kill(member, number)

    def _members(self) -> Iterator[int]:
        """Live processes of its session, or that carry its mark in their environment."""
        mark = f"{_MARK}={self._mark}".encode()
        for folder in Path("/proc").glob("[0-9]*"):
            try:
                # After the command's name in brackets: state, parent, group, session.
                fields = (folder / "stat").read_bytes().rpartition(b")")[2].split()
                if fields[0] in (b"Z", b"X"):
                    continue
                if int(fields[3]) == self._process.pid or mark in (folder / "environ").read_bytes():
                    yield int(folder.name)
            except (OSError, IndexError, ValueError):
                continue
