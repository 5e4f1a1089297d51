"""The events of one stream differ in little but their words: those are found without reading each as JSON."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from pydantic_core import from_json

from pytest_thermal.transport.fast.events import DataDecoder

_PLAIN = re.compile(rb'[^"\\\x00-\x1f]+')
"""What stands in a JSON string as itself, and ends no string."""
_PROBE = "pytest-thermal"
_PLACES = ("content", "reasoning_content", "reasoning")


@dataclass(frozen=True, slots=True)
class Alike:
    """What stands before and after the words of an event.

    Exact, and no guess: between the same bytes, a stretch without quote, backslash or control character can be nothing
    but another value of the same string, which is why what the first one said of the rest holds for all.
    """

    before: bytes
    after: bytes

    def words(self, data: bytes) -> str:
        """Of an event that is like this; empty if it is not, or has none."""
        before, after = self.before, self.after
        if not (data.startswith(before) and data.endswith(after)):
            return ""
        inner = data[len(before) : len(data) - len(after)]
        if len(data) <= len(before) + len(after) or not _PLAIN.fullmatch(inner):
            return ""
        try:
            return inner.decode()
        except UnicodeDecodeError:
            return ""

    def in_chunk(self, chunk: bytes, data: bytes) -> Alike | None:
        """The same of the bytes as they came, for a ``chunk`` that held this one event, whose data are like this.

        None where the words' place in it is not sure: it is asked of the very decoder that reads the events. What it
        makes of bytes hangs on line ends, colons and where lines begin, none of which is in a word's stretch or moves
        with it; so a chunk between the same bytes, to a decoder that has nothing left over, is one event like this too.
        """
        quoted = b'"%b"' % data[len(self.before) : len(data) - len(self.after)]
        before, found, after = chunk.partition(quoted)
        if not found or quoted in after:
            return None
        alike = Alike(before + b'"', b'"' + after)
        decoder = DataDecoder()
        told = list(decoder.data(alike.before + _PROBE.encode() + alike.after))
        same = told == [self.before + _PROBE.encode() + self.after]
        return alike if same and decoder.is_clean else None

    @classmethod
    def to(cls, data: bytes, event: Mapping[str, Any], words: str) -> Alike | None:
        """Of an event, which was read, and its words; None where their place in it is not sure."""
        plain = words.encode("utf-8", "replace")
        quoted = b'"%b"' % plain
        if not _PLAIN.fullmatch(plain) or data.count(quoted) != 1:
            return None
        before, _, after = data.partition(quoted)
        alike = cls(before + b'"', b'"' + after)
        try:
            other = from_json(alike.before + _PROBE.encode() + alike.after)
            delta = other["choices"][0]["delta"]
            place = next(name for name in _PLACES if delta.get(name) == _PROBE)
        except (ValueError, LookupError, TypeError, AttributeError, StopIteration):
            return None
        delta[place] = words
        return alike if other == event else None
