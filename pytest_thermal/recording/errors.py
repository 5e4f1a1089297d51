"""What goes wrong with recordings, told to the person at the bench.

- ``RecordingError``

  - ``RunDirectoryError``: a folder that is no run, a damaged file, a newer format, a place that cannot be written
  - ``ForeignLogError``: a CSV from elsewhere that cannot be read right
  - ``RecorderError``: the recorder process did not start, or is gone
"""

from __future__ import annotations


class RecordingError(Exception):
    """What was seen, what is likely behind it, and what to try; ``str()`` is the whole message."""

    def __init__(self, seen: str, *, likely: str = "", remedy: str = "") -> None:
        lines = [seen]
        if likely:
            lines.append(f"likely: {likely}")
        if remedy:
            lines.append(f"try: {remedy}")
        super().__init__("\n".join(lines))
        self.seen = seen
        self.likely = likely
        self.remedy = remedy


class RunDirectoryError(RecordingError):
    """A run directory that cannot be made, written or read."""


class ForeignLogError(RecordingError):
    """A log from elsewhere that cannot be read right."""


class RecorderError(RecordingError):
    """The recorder process did not come up, or is gone."""
