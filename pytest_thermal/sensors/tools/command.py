"""Running a tool: without a shell, with a deadline, and never a second time beside a call that hangs."""

from __future__ import annotations

import contextlib
import math
import os
import re
import selectors
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from pytest_thermal.sensors.tools.loop import Loop
from pytest_thermal.sensors.tools.printed import Printed, printed

OUTPUT_LIMIT_BYTES = 4_000_000
"""More than any tool says of any rack; an endless one must not fill the bench's memory."""
LOOP_SECONDS = 1.0
"""Between two answers of a tool that goes on by itself."""

_SECRET_NAME = re.compile(r"KEY|TOKEN|SECRET|PASSW|CREDENTIAL|AUTHORIZATION", re.IGNORECASE)
_KEPT = frozenset({"SSH_AUTH_SOCK"})
_PLAIN = {"LC_ALL": "C", "LANG": "C", "LANGUAGE": "", "TERM": "dumb", "NO_COLOR": "1"}
"""Tools speak English, in plain text."""

_LEFT_SECONDS = 0.05
"""After the tool ended, for what is still in its pipe; a child it left behind may hold that open for ever."""
_KILL_SECONDS = 0.2
"""For the kernel to take a killed tool away. One that waits for its driver stays, and is not waited for."""
_BACKSTOP_SECONDS = 5
"""After its deadline, a tool of ours that was killed ourselves and so did not end it is ended by timeout(1)."""
_TICK_SECONDS = 0.02


@dataclass(frozen=True, kw_only=True)
class Ran:
    """What became of one call."""

    out: Printed
    err: Printed
    status: int | None = None
    """As a shell tells it; None when it did not end by itself."""
    problem: str = ""
    """Why it gave no complete answer: it did not start, hung, was ended by a signal, or printed without end."""
    hung: bool = False
    not_found: bool = False


class Caller(Protocol):
    """What calls a program, or answers in its place."""

    program: str

    @property
    def path(self) -> str | None:
        """Where the program is; None where it is not installed."""
        ...

    def run(self, arguments: Sequence[str], *, seconds: float) -> Ran:
        """Call it, for at most ``seconds``."""
        ...

    def follow(self, arguments: Sequence[str]) -> Loop | None:
        """Start it with arguments by which it goes on and on; None where that cannot be."""
        ...

    def end_loop(self) -> None:
        """End what `follow` started."""
        ...

    def close(self) -> None:
        """End what still runs."""
        ...


class Command:
    """One program. Each call has its deadline; while one that cannot be killed is still there, no other is made."""

    def __init__(self, program: str, *, environ: Mapping[str, str], extra: Mapping[str, str] | None = None) -> None:
        self._environ = _extended(child_environment(environ), extra or {})
        self.program = program
        self._folder: tempfile.TemporaryDirectory[str] | None = None
        self._stuck: tuple[subprocess.Popen[bytes], float] | None = None
        self._loop: Loop | None = None

    @property
    def path(self) -> str | None:
        """Where the program is; None where it is not installed."""
        return shutil.which(self.program, path=self._environ.get("PATH", os.defpath))

    def run(self, arguments: Sequence[str], *, seconds: float) -> Ran:
        """Call it, for at most ``seconds``. What a program does never raises."""
        begun = time.monotonic()
        if self._still_stuck():
            since = begun - self._stuck[1] if self._stuck else 0.0
            return _failed(
                f"the call made {since:.0f} s ago hangs and cannot be ended; no second one is made", hung=True
            )
        path = self.path
        if path is None:
            return _failed(f"{self.program} is not installed (not found in PATH)", not_found=True)
        argv = [path, *arguments]
        backstop = shutil.which("timeout")
        if backstop:
            argv = [backstop, "-s", "KILL", str(math.ceil(seconds) + _BACKSTOP_SECONDS), *argv]
        try:
            process = subprocess.Popen(
                argv,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                cwd=self._private_folder(),
                env=self._environ,
                start_new_session=True,
            )
        except OSError as error:
            return _failed(f"{path} cannot be started: {error.strerror or error}")
        return self._attend(process, begun, seconds)

    def follow(self, arguments: Sequence[str]) -> Loop | None:
        """Start it with arguments by which it prints once a second; ends the one before. None where it cannot be.

        Unlike single calls it stays in this process's group, and so ends with it whoever kills the two.
        """
        self.end_loop()
        path = self.path
        if path is None or self._still_stuck():
            return None
        unbuffered = shutil.which("stdbuf")
        try:
            process = subprocess.Popen(
                [*([unbuffered, "-oL"] if unbuffered else []), path, *arguments],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                cwd=self._private_folder(),
                env=self._environ,
                bufsize=0,
            )
        except OSError:
            return None
        self._loop = Loop(process, period_seconds=LOOP_SECONDS)
        return self._loop

    def end_loop(self) -> None:
        """End what `follow` started. One that cannot be killed counts as a call that hangs."""
        loop, self._loop = self._loop, None
        if loop is not None and not loop.close():
            self._stuck = (loop.process, time.monotonic())

    def close(self) -> None:
        """End what still runs, as far as it can be, and take its folder away."""
        self.end_loop()
        if self._stuck:
            _kill(self._stuck[0])
        if self._folder:
            self._folder.cleanup()
            self._folder = None

    def _private_folder(self) -> str:
        """Some tools write files into the folder they run in."""
        if self._folder is None or not Path(self._folder.name).is_dir():
            self._folder = tempfile.TemporaryDirectory(prefix="sensors-", ignore_cleanup_errors=True)
        return self._folder.name

    def _attend(self, process: subprocess.Popen[bytes], begun: float, seconds: float) -> Ran:
        kept = {"out": bytearray(), "err": bytearray()}
        ended = _drain(process, kept, begun + seconds)
        overflowed = any(len(data) > OUTPUT_LIMIT_BYTES for data in kept.values())
        if not ended or process.poll() is None or _members(process.pid):
            _kill(process)
        for stream in (process.stdout, process.stderr):
            if stream is not None:
                stream.close()
        if process.poll() is None or _members(process.pid):
            self._stuck = (process, begun)
        out, err = printed(bytes(kept["out"])), printed(bytes(kept["err"]))
        if overflowed:
            return Ran(out=printed(b""), err=err, problem=f"printed more than {OUTPUT_LIMIT_BYTES:,} bytes")
        if not ended:
            return Ran(out=out, err=err, problem=f"gave no complete answer in {seconds:g} s", hung=True)
        number = -process.returncode if process.returncode < 0 else process.returncode - 128
        killed = signal.strsignal(number) if 0 < number <= signal.NSIG else None
        return Ran(
            out=out,
            err=err,
            status=process.returncode,
            problem=f"was ended by a signal ({killed})" if killed else "",
        )

    def _still_stuck(self) -> bool:
        if self._stuck is None:
            return False
        process, _ = self._stuck
        if process.poll() is None or _members(process.pid):
            return True
        self._stuck = None
        return False


def child_environment(environ: Mapping[str, str]) -> dict[str, str]:
    """``environ`` in plain English, without what is named like a secret: no tool needs one."""
    kept = {name: value for name, value in environ.items() if name in _KEPT or not _SECRET_NAME.search(name)}
    return {**kept, **_PLAIN}


def _extended(environ: Mapping[str, str], extra: Mapping[str, str]) -> dict[str, str]:
    """``environ`` with ``extra``; to a list of folders that is there, more are added at its end."""
    joined = {
        name: f"{environ[name]}{os.pathsep}{value}" if name.endswith("PATH") and environ.get(name) else value
        for name, value in extra.items()
    }
    return {**environ, **joined}


def _failed(problem: str, *, hung: bool = False, not_found: bool = False) -> Ran:
    nothing = printed(b"")
    return Ran(out=nothing, err=nothing, problem=problem, hung=hung, not_found=not_found)


def _drain(process: subprocess.Popen[bytes], kept: Mapping[str, bytearray], deadline: float) -> bool:
    """Keep what it writes until it ends; False where the deadline or the limit of its output came first."""
    with selectors.DefaultSelector() as selector:
        for stream, name in ((process.stdout, "out"), (process.stderr, "err")):
            if stream is not None:
                selector.register(stream, selectors.EVENT_READ, kept[name])
        grace_until: float | None = None
        while selector.get_map():
            now = time.monotonic()
            if process.poll() is not None:
                grace_until = grace_until or now + _LEFT_SECONDS
                if now >= grace_until:
                    return True
            if now >= deadline:
                return False
            until = deadline if grace_until is None else grace_until
            for entry, _ in selector.select(max(0.0, min(until - now, _TICK_SECONDS * 5))):
                data = os.read(entry.fd, 65536)
                if not data:
                    selector.unregister(entry.fileobj)
                entry.data.extend(data)
                if len(entry.data) > OUTPUT_LIMIT_BYTES:
                    return False
    with contextlib.suppress(subprocess.TimeoutExpired):
        process.wait(max(0.0, deadline - time.monotonic()))
    return process.poll() is not None


def _kill(process: subprocess.Popen[bytes]) -> None:
    with contextlib.suppress(OSError):
        os.killpg(process.pid, signal.SIGKILL)
    until = time.monotonic() + _KILL_SECONDS
    while time.monotonic() < until and (process.poll() is None or _members(process.pid)):
        time.sleep(_TICK_SECONDS)


def _members(group: int) -> list[int]:
    """Live processes of a group. Looked for in /proc only where the kernel says that there is one."""
    try:
        os.killpg(group, 0)
    except ProcessLookupError:
        return []
    except OSError:
        pass
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            # After the command's name in brackets: state, parent, group.
            state, _, its_group = (folder / "stat").read_bytes().rpartition(b")")[2].split()[:3]
            if state not in (b"Z", b"X") and int(its_group) == group:
                found.append(int(folder.name))
        except (OSError, ValueError):
            continue
    return found
