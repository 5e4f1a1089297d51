"""CSV logs from elsewhere: read right, or refused with what was seen."""

from __future__ import annotations

from pytest_thermal.recording.foreign.reader import read_foreign_log

__all__ = ["read_foreign_log"]
