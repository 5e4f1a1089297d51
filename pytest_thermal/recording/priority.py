"""Being run in time while the machine burns: real-time priority where it is allowed."""

from __future__ import annotations

import os

_PRIORITY = 1  # the lowest real-time priority: above everything ordinary, below whatever the kernel needs


def raise_priority() -> str:
    """Put the calling thread under ``SCHED_FIFO`` 1; says what is in force now, and if that is not it, why.

    A niceness does not help: it buys share of a core, not an early turn. What this thread starts is ordinary again,
    so no tool can take a core for itself.
    """
    policy = getattr(os, "SCHED_FIFO", None)
    if policy is None:
        return "default: this system has no SCHED_FIFO"
    try:
        os.sched_setscheduler(0, policy | os.SCHED_RESET_ON_FORK, os.sched_param(_PRIORITY))
    except OSError as error:
        return f"default: SCHED_FIFO is not allowed ({error.strerror}); it takes root or `ulimit -r {_PRIORITY}`"
    return f"SCHED_FIFO {_PRIORITY}"
