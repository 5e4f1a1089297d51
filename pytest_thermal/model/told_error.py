"""An error that is told to the person at the bench."""

from __future__ import annotations

from pytest_thermal.model.findings import told_lines
from pytest_thermal.model.said import joined


class ToldError(Exception):
    """What was seen, what is likely behind it, and what to try; ``str()`` is the whole message."""

    def __init__(self, seen: str, *, likely: str = "", remedy: str = "", lead: str = "") -> None:
        message = told_lines(joined(": ", (lead, seen)) if lead else seen, likely=likely, remedy=remedy)
        super().__init__(str(message))
        self.message = message
        """The same, to be told in another language."""
        self.seen = seen
        self.likely = likely
        self.remedy = remedy
