"""From a file's bytes to its lines, whatever system or program wrote it."""

from __future__ import annotations

import codecs
import re
from typing import NamedTuple

from pytest_thermal.recording.foreign.notes import Notes

_BOMS = (
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF32_LE, "utf-32-le"),  # before UTF-16, whose mark it begins with
    (codecs.BOM_UTF32_BE, "utf-32-be"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)
_END = re.compile(r"\r\n|\n|\r")
_ESCAPES = re.compile(r"\x1b\[[0-9;?]*[ -/]*[@-~]")
_WIDE_SHARE = 0.3
_LOOKED_AT_BYTES = 4096


class Line(NamedTuple):
    """One line of the file, counted from 1."""

    number: int
    text: str


def decode(content: bytes, notes: Notes) -> list[Line]:
    """The lines of a file. A last line without an end may be cut anywhere and is left out."""
    text = _ESCAPES.sub("", _text(content, notes))
    lines = [Line(number, line) for number, line in enumerate(_END.split(text), 1)]
    number, last = lines.pop()
    if last.strip("\0 \t"):
        notes.add("the last line has no end: it may be cut short and is left out", number)
    elif last:
        notes.add("nothing but zero bytes, as a power cut leaves them", number)
    return lines


def _text(content: bytes, notes: Notes) -> str:
    for mark, encoding in _BOMS:
        if content.startswith(mark):
            if encoding != "utf-8":
                notes.add(f"read as {encoding.upper()}, as its first bytes say")
            return content[len(mark) :].decode(encoding, "replace")
    head = content[:_LOOKED_AT_BYTES]
    for first, encoding in ((1, "utf-16-le"), (0, "utf-16-be")):
        # Figures and commas in UTF-16 have a zero in every second place.
        if head and head[first::2].count(0) > _WIDE_SHARE * len(head) and head.count(0) < 0.6 * len(head):
            notes.add(f"read as {encoding.upper()}, from the zeros between its signs")
            return content.decode(encoding, "replace")
    try:
        return content.decode("utf-8")
    except UnicodeDecodeError as error:
        if error.reason == "unexpected end of data" and error.start >= len(content) - 4:
            return content.decode("utf-8", "replace")  # cut within a sign; that line has no end either
    encoding = "gb18030" if b"\xa1\xe6" in content or re.search(rb"[\xb0-\xf7][\xa1-\xfe]{3,}", content) else "cp1252"
    notes.add(f"no UTF-8: read as {encoding.upper()}")
    return content.decode(encoding, "replace")
