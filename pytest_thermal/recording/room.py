"""Whether a disk has room for a run, asked before anything is loaded."""

from __future__ import annotations

import os
from pathlib import Path

CELL_BYTES = 16
"""Of a reading in its CSV, generously: `1234.56789,` and its share of why others are missing."""
ROW_BYTES = 64
"""Of a row: its time, and how the sampling went."""
BESIDE_BYTES = 8 * 2**20
"""For what is beside the samples: requests, events, figures, the page."""


def needed_bytes(*, seconds: float, period_seconds: float, sensors: int) -> int:
    """What a run of that length may come to."""
    return int(seconds / period_seconds * (ROW_BYTES + CELL_BYTES * sensors)) + BESIDE_BYTES


def free_bytes(folder: Path) -> int | None:
    """What this user may still write there; None where the file system does not tell.

    A quota is not seen here: it shows when it is used up.
    """
    try:
        told = os.statvfs(folder)
    except OSError:
        return None
    # Some network file systems tell nothing, in zeros.
    return told.f_bavail * told.f_frsize if told.f_blocks else None
