"""Start a server in a process of its own that cannot outlive the tests, and wait until it answers."""

from __future__ import annotations

import contextlib
import os
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TypeVar

from tests.real.parts.errors import PartFailedError

CHILDREN = Path(__file__).resolve().parent / "children"
LIFE_LIMIT_SECONDS = 1800.0
_LOOK_EVERY_SECONDS = 0.05
_LOG_TAIL_CHARACTERS = 3000
_STOP_SECONDS = 10.0
_ADDRESS_TAKEN = ("address already in use", "eaddrinuse", "[errno 98]")

Found = TypeVar("Found")


class AddressTakenError(PartFailedError):
    """Somebody else took the port between our looking and the server's binding; worth another try."""


@contextlib.contextmanager
def served(
    command: Sequence[str],
    *,
    log: Path,
    ready: Callable[[], Found | None],
    environ: Mapping[str, str] | None = None,
    folder: Path | None = None,
    start_seconds: float = 120.0,
) -> Iterator[Found]:
    """Run `command` until the block ends; yields what `ready` found once it is no longer None.

    The server gets a small environment (`PATH`, a `HOME` beside its log, `environ`) and none of our keys.
    """
    home = log.parent / "home"
    home.mkdir(parents=True, exist_ok=True)
    small = {
        "PATH": os.environ.get("PATH", os.defpath),
        "HOME": str(home),
        "LANG": "C.UTF-8",
        "PYTHONUNBUFFERED": "1",
        **(environ or {}),
    }
    lifeline = [sys.executable, "-I", str(CHILDREN / "lifeline.py"), str(LIFE_LIMIT_SECONDS)]
    with log.open("wb") as output:
        process = subprocess.Popen(
            [*lifeline, *command],
            stdin=subprocess.PIPE,
            stdout=output,
            stderr=subprocess.STDOUT,
            env=small,
            cwd=folder or log.parent,
        )
    try:
        yield _wait_until_ready(process, ready, log, start_seconds)
    finally:
        assert process.stdin is not None
        process.stdin.close()
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(_STOP_SECONDS)
        if process.poll() is None:
            process.kill()
            process.wait()


def _wait_until_ready(
    process: subprocess.Popen[bytes], ready: Callable[[], Found | None], log: Path, start_seconds: float
) -> Found:
    deadline = time.monotonic() + start_seconds
    while time.monotonic() < deadline:
        status = process.poll()
        # Asked only while the process lives: a stranger on the same port must not be taken for it.
        found = ready() if status is None else None
        if found is not None:
            return found
        if status is not None:
            text = log.read_text(errors="replace")
            error = AddressTakenError if any(word in text.lower() for word in _ADDRESS_TAKEN) else PartFailedError
            raise error(f"ended with exit code {status} before it answered:\n{text[-_LOG_TAIL_CHARACTERS:]}")
        time.sleep(_LOOK_EVERY_SECONDS)
    tail = log.read_text(errors="replace")[-_LOG_TAIL_CHARACTERS:]
    raise PartFailedError(f"no answer within {start_seconds:.0f} s:\n{tail}")


def free_ports(count: int) -> tuple[int, ...]:
    """That many different loopback ports, free a moment ago, from the operating system."""
    with contextlib.ExitStack() as held:
        sockets = [held.enter_context(socket.socket()) for _ in range(count)]
        for each in sockets:
            each.bind(("127.0.0.1", 0))
        return tuple(int(each.getsockname()[1]) for each in sockets)


def retried_on_taken_address(
    start: Callable[[], contextlib.AbstractContextManager[Found]], *, tries: int = 3
) -> contextlib.AbstractContextManager[Found]:
    """`start()`, entered; again with other ports when a port it chose was taken meanwhile."""

    @contextlib.contextmanager
    def entered() -> Iterator[Found]:
        with contextlib.ExitStack() as stack:
            for left in reversed(range(tries)):
                try:
                    part = stack.enter_context(start())
                    break
                except AddressTakenError:
                    if not left:
                        raise
            yield part

    return entered()


def accepts(port: int, host: str = "127.0.0.1") -> bool:
    """Whether something accepts connections there right now."""
    with socket.socket() as probe:
        probe.settimeout(1.0)
        return probe.connect_ex((host, port)) == 0


def line_after(log: Path, word: str) -> str | None:
    """What follows `word` on the first line of the log that has it; None while there is none."""
    if not log.exists():
        return None
    for line in log.read_text(errors="replace").splitlines(keepends=True):
        _, found, rest = line.partition(word)
        if found and line.endswith("\n"):
            return rest.strip()
    return None
