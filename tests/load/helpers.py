"""Loads under test: found by a mark in their environment, whatever they did to hide."""

from __future__ import annotations

import os
import uuid
from pathlib import Path

from pytest_thermal.load import Work
from tests.support.patience import PATIENCE_SECONDS, until

__all__ = ["MARK", "PATIENCE_SECONDS", "arguments", "marked", "new_mark", "nothing_is_left", "shell", "until", "work"]

MARK = "PYTEST_THERMAL_TEST_MARK"


def new_mark() -> str:
    return uuid.uuid4().hex


def work(*command: str, mark: str = "", limit_seconds: float = 60.0, **more: object) -> Work:
    """A load that is any command."""
    return Work(
        kind="cpu",
        tool="a test",
        command=command,
        environ={MARK: mark or new_mark()},
        limit_seconds=limit_seconds,
        **more,  # type: ignore[arg-type]  # whatever a Work has
    )


def shell(script: str, *, mark: str = "", limit_seconds: float = 60.0, **more: object) -> Work:
    return work("sh", "-c", script, mark=mark, limit_seconds=limit_seconds, **more)


def marked(mark: str) -> list[int]:
    """Processes of that mark that are there still, corpses aside: guard, warden, command, and all it left."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit() and int(entry.name) != os.getpid():
            try:
                environ = (entry / "environ").read_bytes()
                state = (entry / "stat").read_text(encoding="utf-8").rpartition(")")[2].split()[0]
            except OSError:
                continue
            if f"{MARK}={mark}".encode() in environ and state not in "ZX":
                found.append(int(entry.name))
    return found


def nothing_is_left(mark: str) -> bool:
    """Once whoever ends it has had a processor to do so."""
    until(lambda: not marked(mark))
    return True


def arguments(process: int) -> str:
    """A process's command line; empty where it is gone meanwhile."""
    try:
        return Path(f"/proc/{process}/cmdline").read_bytes().replace(b"\0", b" ").decode()
    except OSError:
        return ""
