"""What became of a run: the words of ``state`` in ``run.json``, and what they are worth later."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

PREPARED, RECORDING, FINISHED, CUT_OFF, FOREIGN = "prepared", "recording", "finished", "cut off", "foreign"
"""Nothing yet; it goes on; ended by whoever directed it; ended by anything else; a log from elsewhere, no run."""

DIRECTOR_GONE = "the process that recorded is gone"
TIME_LIMIT = "the time limit"
_NOT_IN_ORDER = (DIRECTOR_GONE, TIME_LIMIT, "SIGTERM", "SIGINT", "SIGHUP")
"""Why a recorder ends by itself. A run that gives one of these is not finished, whatever word its recorder wrote."""


def state_of(run: Path, facts: Mapping[str, Any]) -> str:
    """What became of a run, from its ``run.json``, and from whether somebody still writes to it."""
    state = str(facts.get("state", CUT_OFF))
    if state == RECORDING and not is_recording(run):
        return CUT_OFF
    if state == FINISHED and str(facts.get("ended_because") or "").startswith(_NOT_IN_ORDER):
        return CUT_OFF
    return state


def is_recording(run: Path) -> bool:
    """Whether a recorder of this machine writes to that run right now."""
    try:
        descriptor = os.open(run, os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return False
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    except OSError:
        return False  # a file system without locks
    else:
        return False
    finally:
        os.close(descriptor)
