"""Recordings: the recorder process, the run directory it writes, and logs from elsewhere.

What needs numpy is imported when it is asked for: the recorder and its lanes are processes of their own that have
to be up in no time and take no room.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pytest_thermal.recording.clock import RunClock
    from pytest_thermal.recording.errors import ForeignLogError, RecorderError, RecordingError, RunDirectoryError
    from pytest_thermal.recording.follower import Follower, Tick
    from pytest_thermal.recording.foreign import read_foreign_log
    from pytest_thermal.recording.labels import Labels
    from pytest_thermal.recording.opening import open_recording
    from pytest_thermal.recording.recording import Event, MissingStretch, Recording, Requests, Timing
    from pytest_thermal.recording.run_directory import (
        RequestRow,
        RequestsFile,
        create_run,
        run_clock,
        seal,
        write_summary,
    )
    from pytest_thermal.recording.run_reader import read_run
    from pytest_thermal.recording.run_state import is_recording, state_of
    from pytest_thermal.recording.running import Ended, Offer, RunningRecorder, start_recorder
    from pytest_thermal.recording.settings_copy import copied_settings
    from pytest_thermal.recording.spec import SourceOrder

_HOMES = {
    "clock": ("RunClock",),
    "errors": ("ForeignLogError", "RecorderError", "RecordingError", "RunDirectoryError"),
    "follower": ("Follower", "Tick"),
    "foreign": ("read_foreign_log",),
    "labels": ("Labels",),
    "opening": ("open_recording",),
    "recording": ("Event", "MissingStretch", "Recording", "Requests", "Timing"),
    "run_directory": (
        "RequestRow",
        "RequestsFile",
        "create_run",
        "run_clock",
        "seal",
        "write_summary",
    ),
    "run_reader": ("read_run",),
    "run_state": ("is_recording", "state_of"),
    "running": ("Ended", "Offer", "RunningRecorder", "start_recorder"),
    "settings_copy": ("copied_settings",),
    "spec": ("SourceOrder",),
}
_HOME_OF = {name: module for module, names in _HOMES.items() for name in names}

__all__ = [
    "Ended",
    "Event",
    "Follower",
    "ForeignLogError",
    "Labels",
    "MissingStretch",
    "Offer",
    "RecorderError",
    "Recording",
    "RecordingError",
    "RequestRow",
    "Requests",
    "RequestsFile",
    "RunClock",
    "RunDirectoryError",
    "RunningRecorder",
    "SourceOrder",
    "Tick",
    "Timing",
    "copied_settings",
    "create_run",
    "is_recording",
    "open_recording",
    "read_foreign_log",
    "read_run",
    "run_clock",
    "seal",
    "start_recorder",
    "state_of",
    "write_summary",
]


def __getattr__(name: str) -> object:
    if name not in _HOME_OF:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(f"{__name__}.{_HOME_OF[name]}"), name)
