"""What the built-in burners share: their time limit, bursts on command, and the way to speak."""

from __future__ import annotations

import contextlib
import ctypes
import os
import signal
import sys
import time
from collections.abc import Callable
from typing import TextIO

_PR_SET_PDEATHSIG = 1


def say(text: str) -> None:
    """One line for whoever watches; not being heard is no reason to stop."""
    with contextlib.suppress(OSError, ValueError):
        sys.stdout.write(text + "\n")
        sys.stdout.flush()


def burn_bursts(burn: Callable[[float], None], orders: TextIO, *, deadline: float) -> None:
    """Say ``ready``; for each line with a number of seconds: burn for so long, and say ``done``. Ends with the orders.

    ``burn`` gets the moment of the monotonic clock at which to return, and so does ``deadline`` end it all.
    """
    say("ready")
    for line in orders:
        now = time.monotonic()
        if now >= deadline:
            return
        burn(min(deadline, now + float(line)))
        say("done")


def die_with_parent() -> None:
    """Let the kernel end this process with the one that forked it (Linux; elsewhere the guard has to find it)."""
    parent = os.getppid()
    with contextlib.suppress(OSError, AttributeError):
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    if parent == 1 or os.getppid() != parent:
        os._exit(1)
