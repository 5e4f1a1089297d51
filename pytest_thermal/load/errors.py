"""What goes wrong with loads, told to the person at the bench."""

from __future__ import annotations


class LoadError(Exception):
    """A load that cannot be made: what was seen, what is likely behind it, what to try; ``str()`` is all of it."""

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
