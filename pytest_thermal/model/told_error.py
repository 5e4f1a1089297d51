"""An error that is told to the person at the bench."""

from __future__ import annotations


class ToldError(Exception):
    """What was seen, what is likely behind it, and what to try; ``str()`` is the whole message."""

    def __init__(self, seen: str, *, likely: str = "", remedy: str = "", lead: str = "") -> None:
        lines = [f"{lead}: {seen}" if lead else seen]
        if likely:
            lines.append(f"likely: {likely}")
        if remedy:
            lines.append(f"try: {remedy}")
        super().__init__("\n".join(lines))
        self.seen = seen
        self.likely = likely
        self.remedy = remedy
