"""What ends an experiment, told to the person at the bench."""

from __future__ import annotations


class ExperimentBrokenError(Exception):
    """The bench could not be brought into the wanted state; nothing that needs it can be judged.

    ``str()`` is the whole message: what was seen, ``likely:`` and ``try:``.
    """

    def __init__(self, seen: str, *, likely: str = "", remedy: str = "", phase: str = "") -> None:
        lines = [f"{phase}: {seen}" if phase else seen]
        if likely:
            lines.append(f"likely: {likely}")
        if remedy:
            lines.append(f"try: {remedy}")
        super().__init__("\n".join(lines))
        self.seen = seen
        self.likely = likely
        self.remedy = remedy
        self.phase = phase


class BenchBusyError(ExperimentBrokenError):
    """Somebody else loads this machine."""
