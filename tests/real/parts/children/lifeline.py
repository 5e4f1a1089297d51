"""Run a command for as long as whoever started us lives: `python lifeline.py SECONDS COMMAND…`.

The command is killed, with all it started, when our standard input closes, when our parent changes, when
SECONDS are over, or when we are told to stop. Standard library only: it runs under any interpreter.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import select
import signal
import subprocess
import sys
import time

_PR_SET_PDEATHSIG = 1
_LOOK_EVERY_SECONDS = 0.5
_GRACE_SECONDS = 2.0


def _die_with_parent() -> None:
    with contextlib.suppress(OSError, AttributeError):  # Linux only; elsewhere the pipe alone must do
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)


def _stop(child: subprocess.Popen[bytes]) -> int:
    for number, patience_seconds in ((signal.SIGTERM, _GRACE_SECONDS), (signal.SIGKILL, None)):
        with contextlib.suppress(ProcessLookupError):
            os.killpg(child.pid, number)
        with contextlib.suppress(subprocess.TimeoutExpired):
            child.wait(patience_seconds)
    return child.returncode


def _told_to_stop(number: int, _frame: object) -> None:
    raise SystemExit(128 + number)


def main(seconds: float, command: list[str]) -> int:
    """Exit status of the command, or that of its end by signal."""
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, _told_to_stop)
    parent = os.getppid()
    deadline = time.monotonic() + seconds
    child = subprocess.Popen(
        command,
        stdin=subprocess.DEVNULL,
        start_new_session=True,
        preexec_fn=_die_with_parent,  # noqa: PLW1509 - we have no threads
    )
    try:
        while child.poll() is None and time.monotonic() < deadline and os.getppid() == parent:
            readable, _, _ = select.select([0], [], [], _LOOK_EVERY_SECONDS)
            if readable and not os.read(0, 4096):
                break
    finally:
        status = _stop(child)
    return status


if __name__ == "__main__":
    sys.exit(main(float(sys.argv[1]), sys.argv[2:]))
