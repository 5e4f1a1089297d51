"""What a tool printed, made fit for reading: one encoding, no colours, and the line it did not finish set apart."""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass

_ESCAPES = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)|[@-Z\\-_])")
_CONTROLS = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f\ufeff]")

_LINE_CHARACTERS = 4_000
"""No device's line is longer: a longer one is taken out, not cut, so that none of it passes for a figure."""


@dataclass(frozen=True, kw_only=True)
class Printed:
    """A tool's output."""

    lines: tuple[str, ...]
    """Whole lines, without blanks at their ends."""
    torn: str = ""
    """The last line where no line end followed: it may be cut anywhere, so that its figures are none."""
    text: str = ""
    """All of it, for forms such as JSON that know their own end."""

    @property
    def head(self) -> str:
        """Its first words, to show to a person."""
        first = [line.strip() for line in (*self.lines, self.torn) if line.strip()][:2]
        return " / ".join(line if len(line) <= 120 else f"{line[:120]}…" for line in first)


def printed(data: bytes | str) -> Printed:
    """The output ``data``; bytes that are no UTF-8 stay visible as such."""
    text = data.decode("utf-8", "replace") if isinstance(data, bytes) else data
    # Digits of other scripts are digits to Python's \d too, and would be other cards' numbers.
    text = text if text.isascii() else re.sub(r"\d", lambda digit: f"{unicodedata.digit(digit[0])}", text)
    text = _CONTROLS.sub("", _ESCAPES.sub("", text).replace("\r\n", "\n").replace("\r", "\n"))
    *lines, torn = text.split("\n")
    whole = tuple("" if len(line) > _LINE_CHARACTERS else line.rstrip() for line in lines)
    return Printed(lines=whole, torn=torn[:_LINE_CHARACTERS].rstrip(), text=text)
