"""What a load left behind when both of its watchers were killed, or stand still: found by a mark in its environment.

``pkill -9 -f guard.py`` takes guard and warden in one go, and so may an operator or a freezer that stops them; then the
kernel ends the command itself, and nobody what it had started.
"""

from __future__ import annotations

import contextlib
import os
import signal
import time
import uuid
from collections.abc import Iterator

MARK = "PYTEST_THERMAL_LOAD"
"""In the environment of guard, warden and command, and of all that they start."""
_LOOK_SECONDS = 0.01


def new_mark() -> str:
    """For one load, as no other has it."""
    return uuid.uuid4().hex


def clear_up(mark: str, *, seconds: float) -> int:
    """Kill all that bears ``mark`` and all that descends from it; returns how many were still there after so long.

    Nothing where there is no /proc. What cannot be killed (another user's, or in an uninterruptible call) is left.
    """
    deadline = time.monotonic() + seconds
    while True:
        left = list(_of(mark))
        if not left or time.monotonic() >= deadline:
            return len(left)
        for process in left:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.kill(process, signal.SIGKILL)
        time.sleep(_LOOK_SECONDS)


def _of(mark: str) -> Iterator[int]:
    wanted = f"{MARK}={mark}".encode()
    children: dict[int, list[int]] = {}
    waiting: list[int] = []
    if not _is_own_proc():
        return
    for name in os.listdir("/proc"):  # noqa: PTH208 - names do
        if not name.isdigit() or int(name) == os.getpid():
            continue
        state, parent = _state_and_parent(name)
        if state in "ZX":
            continue
        children.setdefault(parent, []).append(int(name))
        # A tool may write its title over its environment: then it is found as a child of one that did not.
        if wanted in _read(name, "environ").split(b"\0"):
            waiting.append(int(name))
    found = set[int]()
    while waiting:
        process = waiting.pop()
        if process not in found:
            found.add(process)
            waiting += children.get(process, [])
            yield process


def _is_own_proc() -> bool:
    """Whether /proc has the numbers that this process knows; in a namespace they may be others'."""
    try:
        return os.readlink("/proc/self") == str(os.getpid())  # noqa: PTH115 - once a load
    except OSError:
        return False


def _state_and_parent(name: str) -> tuple[str, int]:
    fields = _read(name, "stat").decode("utf-8", "replace").rpartition(")")[2].split()
    return (fields[0], int(fields[1])) if len(fields) > 1 else ("X", 0)


def _read(name: str, what: str) -> bytes:
    try:
        with open(f"/proc/{name}/{what}", "rb") as file:  # noqa: PTH123 - for each process of the machine
            return file.read()
    except OSError:
        return b""  # gone, or another user's
