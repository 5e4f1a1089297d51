"""Text in columns of a terminal, where a Chinese character takes two of them (East Asian width, Unicode's annex 11)."""

from __future__ import annotations

import textwrap
import unicodedata

WIDTH = 80
"""Columns of the narrowest terminal that people really use."""
_NOT_FIRST = "，。；：、！？）】》”"
_NOT_LAST = "（【《“"


def columns(text: str) -> int:
    """How many columns a text takes; what is ambiguous (°, ±, “) takes one, as terminals have it unless told else."""
    if text.isascii():
        return len(text)
    return sum(0 if unicodedata.combining(sign) else 1 + (unicodedata.east_asian_width(sign) in "WF") for sign in text)


def padded(text: str, width: int, *, right: bool = False) -> str:
    """The text, filled with blanks to ``width`` columns, to its right or to its left."""
    blanks = " " * (width - columns(text))
    return blanks + text if right else text + blanks


def wrapped(text: str, width: int = WIDTH, *, first: str = "", rest: str = "") -> list[str]:
    """Lines of at most ``width`` columns, the first indented by ``first`` and others by ``rest``; words stay whole.

    Lines also end between two Chinese characters, though not before a full stop or the like.
    """
    if columns(text) == len(text):
        return textwrap.wrap(
            text, width, initial_indent=first, subsequent_indent=rest, break_on_hyphens=False, break_long_words=False
        )
    lines: list[str] = []
    line = first
    for piece in _pieces(text):
        begun = line.strip() != ""
        if begun and columns(line) + columns(piece.rstrip()) > width:
            lines.append(line.rstrip())
            line = rest
            piece = piece.lstrip()  # noqa: PLW2901 - what is left of it
        line += piece if line.strip() else piece.lstrip()
    return [*lines, line.rstrip()] if line.strip() else lines


def cut(text: str, width: int) -> str:
    """The first line of a text that is wrapped, with an ellipsis where there are more."""
    if columns(text) == len(text):
        lines = textwrap.wrap(text, width, break_on_hyphens=False) or [""]
        return lines[0] if len(lines) == 1 else textwrap.shorten(text, width, placeholder="…")
    lines = wrapped(text, width) or [""]
    return lines[0] if len(lines) == 1 else f"{wrapped(text, width - 1)[0]}…"


def clipped(text: str, width: int) -> str:
    """The text cut after ``width`` columns, the last of them an ellipsis."""
    if columns(text) <= width:
        return text
    kept = ""
    for sign in text:
        if columns(kept + sign) >= width:
            break
        kept += sign
    return f"{kept}…"


def _pieces(text: str) -> list[str]:
    """What must not be cut: words with the blanks after them, and single wide characters."""
    pieces: list[str] = []
    for sign in " ".join(text.split()):
        wide = columns(sign) == 2
        last = pieces[-1] if pieces else ""
        glued = (
            sign in _NOT_FIRST
            or last[-1:] in _NOT_LAST
            or sign == " "
            or (not wide and last != "" and last[-1] != " " and columns(last[-1]) == 1)
        )
        if pieces and glued:
            pieces[-1] += sign
        else:
            pieces.append(sign)
    return pieces
