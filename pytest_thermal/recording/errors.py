"""What goes wrong with recordings, told to the person at the bench.

- ``RecordingError``

  - ``RunDirectoryError``: a folder that is no run, a damaged file, a newer format, a place that cannot be written
  - ``ForeignLogError``: a CSV from elsewhere that cannot be read right
  - ``RecorderError``: the recorder process did not start, or is gone
"""

from __future__ import annotations

from pytest_thermal.model.told_error import ToldError


class RecordingError(ToldError):
    """A recording that cannot be made or read."""


class RunDirectoryError(RecordingError):
    """A run directory that cannot be made, written or read."""


class ForeignLogError(RecordingError):
    """A log from elsewhere that cannot be read right."""


class RecorderError(RecordingError):
    """The recorder process did not come up, or is gone."""
