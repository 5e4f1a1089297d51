"""Whatever can be replayed: a run directory, or a log from elsewhere."""

from __future__ import annotations

import datetime as dt
from pathlib import Path

from pytest_thermal.recording.errors import RecordingError
from pytest_thermal.recording.foreign import read_foreign_log
from pytest_thermal.recording.layout import RUN
from pytest_thermal.recording.recording import Recording
from pytest_thermal.recording.run_reader import read_run


def open_recording(path: Path, *, zone: dt.tzinfo | None = None) -> Recording:
    """Read a run directory, or a CSV from elsewhere; ``zone`` is that of local times in the latter.

    Raises:
        RecordingError: It is neither, or cannot be read right.
    """
    if path.is_dir() or path.name == RUN:
        return read_run(path)
    if not path.exists():
        raise RecordingError(f"{path}: there is nothing of that name", remedy="check the spelling")
    return read_foreign_log(path, zone=zone)
