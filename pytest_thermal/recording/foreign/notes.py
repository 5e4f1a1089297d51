"""What was corrected or left out while reading a log, said once with the lines it happened in."""

from __future__ import annotations

_SHOWN = 5


class Notes:
    """Collects remarks. The same remark on many lines is one note that names the first of them."""

    def __init__(self) -> None:
        self._lines: dict[str, list[int]] = {}

    def add(self, text: str, line: int | None = None) -> None:
        """Note something, on a line where it is about one."""
        lines = self._lines.setdefault(text, [])
        if line is not None and line not in lines[-1:]:
            lines.append(line)

    def told(self) -> tuple[str, ...]:
        """All notes in the order in which they first came up."""
        return tuple(_note(text, lines) for text, lines in self._lines.items())


def _note(text: str, lines: list[int]) -> str:
    if not lines:
        return text
    shown = ", ".join(map(str, lines[:_SHOWN]))
    if len(lines) > _SHOWN:
        return f"lines {shown} … ({len(lines)} in all): {text}"
    return f"line{'s' if len(lines) > 1 else ''} {shown}: {text}"
