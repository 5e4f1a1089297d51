"""Plain decimal numbers from CSV bytes to an array, all at once: a day of 72 sensors in a fraction of a second."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from pytest_thermal.model.series import FloatArray, IndexArray

_CHUNK_BYTES = 1 << 19
"""What is worked out from so many bytes fits a processor's cache."""
WORD = 8
"""Signs that are worked on at once."""
_DIGITS = 2 * WORD
"""Of a number that is read here."""
_EXACT = np.uint64(2**53)
"""Up to here a float holds every integer."""
_POWERS = np.array([10.0**power for power in range(_DIGITS + 1)])
_DOT, _MINUS, _COMMA, _END, _RETURN = b".-,\n\r"

Words = NDArray[np.uint64]
"""Eight signs each, the first one in the lowest byte."""


def _every(byte: int) -> np.uint64:
    return np.uint64(int.from_bytes(bytes([byte]) * WORD, "little"))


_ZEROS, _DOTS, _LOW, _HIGH = _every(ord("0")), _every(_DOT ^ ord("0")), _every(0x7F), _every(0x80)
_ABOVE_NINE = _every(0x76)
"""Added to a byte below 128 it sets the highest bit where that is above nine."""
_BITS, _ONE, _BYTE = np.uint64(8), np.uint64(1), np.uint64(0xFF)
_LAST: Words = np.array([(1 << 64) - (1 << 8 * (WORD - count)) for count in range(WORD + 1)], dtype=np.uint64)
"""All bits of the last so many signs of a word."""
_FIRST_BIT: Words = np.array([1 << 8 * (WORD - 1 - behind) for behind in range(WORD)], dtype=np.uint64)
"""Of the sign with so many behind it."""
_PAIRS, _FOURS = np.uint64(0x00FF00FF00FF00FF), np.uint64(0x0000FFFF0000FFFF)


@dataclass(frozen=True, kw_only=True, eq=False)
class Cells:
    """The cells between commas and line ends of some whole lines; arrays have one entry each, in order."""

    content: bytes
    starts: IndexArray
    ends: IndexArray
    """Without the first of two signs that end a line."""
    line_ends: IndexArray
    """Of each line, the index after its last cell."""

    @property
    def per_line(self) -> IndexArray:
        """How many cells each line has: one, and that empty, where the line is."""
        return np.diff(self.line_ends, prepend=0)

    def numbers(self, chosen: IndexArray | slice) -> tuple[FloatArray, list[int]]:
        """What ``parse_cells`` says of some of the cells, in the order in which they are named."""
        return parse_cells(self.content, self.starts[chosen], self.ends[chosen])

    def words(self, chosen: IndexArray) -> Words:
        """The last eight signs of some of the cells, nothing in place of those that are not theirs."""
        length = self.ends[chosen] - self.starts[chosen]
        return _words(bytes(WORD) + self.content)[self.ends[chosen]] & np.take(_LAST, length, mode="clip")

    def text(self, index: int) -> str:
        """A cell as it stands."""
        return self.content[self.starts[index] : self.ends[index]].decode("utf-8", "replace")


def cells_of(content: bytes, start: int = 0) -> Iterator[Cells]:
    """The cells from ``start`` on, as many lines at a time as are worked on best; ``content`` ends with a line end."""
    while start < len(content):
        end = content.rfind(b"\n", start, start + _CHUNK_BYTES) + 1 or content.find(b"\n", start) + 1
        yield _cells(content[start:end])
        start = end


def _cells(content: bytes) -> Cells:
    signs = np.frombuffer(content, dtype=np.uint8)
    ends = np.flatnonzero((signs == _COMMA) | (signs == _END))
    starts = np.empty_like(ends)
    starts[0] = 0
    starts[1:] = ends[:-1] + 1
    last = signs[ends] == _END
    returned = last & (ends > starts) & (signs[ends - 1] == _RETURN)
    return Cells(content=content, starts=starts, ends=ends - returned, line_ends=np.flatnonzero(last) + 1)


def parse_cells(content: bytes, starts: IndexArray, ends: IndexArray) -> tuple[FloatArray, list[int]]:
    """The numbers in some cells, NaN where one is empty or no number, and which are neither empty nor a number.

    Eight signs are worked on at once, as digits of one word. Numbers of up to 16 digits without an exponent are exact:
    an integer that a float holds, divided by a power of ten, as ``float`` rounds; others are left to ``float``.
    """
    padded = bytes(_DIGITS) + content
    signs = np.frombuffer(padded, dtype=np.uint8)
    words = _words(padded)
    length = ends - starts
    negative = (signs[starts + _DIGITS] == _MINUS) & (length > 0)
    count = length - negative
    low = _digits(words[ends + WORD], np.take(_LAST, count, mode="clip"))
    decimals = _take_dot_out(low)
    other = _no_digits(low) | (count > _DIGITS + 1) | ((length > 0) & (count <= (decimals >= 0)))
    whole = _number(low)

    long = np.flatnonzero((count > WORD) & (count <= _DIGITS + 1))
    if long.size:
        upper = _digits(words[ends[long]], np.take(_LAST, count[long] - WORD, mode="clip"))
        lower = _digits(words[ends[long] + WORD], _LAST[WORD])
        dotted = decimals[long] >= 0
        # The dot is gone from the lower word: the last digit of the upper one moves there.
        lower = np.where(dotted, low[long] | (upper >> np.uint64(56)), lower)
        upper = np.where(dotted, upper << _BITS, upper)
        before = _take_dot_out(upper)
        decimals[long] = np.where(before >= 0, before + WORD, decimals[long])
        # A dot leaves room for one digit more.
        full = np.flatnonzero(count[long] > _DIGITS)
        upper[full] |= (signs[ends[long[full]] - 1] ^ ord("0")).astype(np.uint64)
        whole[long] = _number(upper) * np.uint64(10**WORD) + _number(lower)
        other[long] = _no_digits(lower) | _no_digits(upper) | (dotted & (before >= 0)) | (whole[long] > _EXACT)
        other[long[full]] |= decimals[long[full]] < 0

    numbers = whole / _POWERS[np.maximum(decimals, 0)]
    numbers[negative] = -numbers[negative]
    numbers[length == 0] = np.nan
    wrong = []
    for index in np.flatnonzero(other).tolist():
        text = content[starts[index] : ends[index]]
        numbers[index] = np.nan
        try:
            numbers[index] = float(text)
        except ValueError:
            wrong.append(index)
    return numbers, wrong


def _words(content: bytes) -> Words:
    """The eight signs from each sign on."""
    return np.ndarray((len(content) - WORD + 1,), dtype="<u8", buffer=content, strides=(1,))


def _digits(words: Words, keep: Words) -> Words:
    """The signs that are kept as digits, zeros in place of the others; what is no digit is above nine."""
    return (words ^ _ZEROS) & keep


def _take_dot_out(words: Words) -> IndexArray:
    """Take the last dot out from among the digits of each word; how many digits stood behind it, −1 without one."""
    apart = words ^ _DOTS
    dots = ~(((apart & _LOW) + _LOW) | apart | _LOW)  # the highest bit of each byte that is a dot
    decimals = np.full(words.size, -1, dtype=np.intp)
    some = np.flatnonzero(dots)
    if some.size:
        found, dot = words[some], dots[some]
        behind = (64 - np.frexp(dot.astype(np.float64))[1]) // 8
        first = _FIRST_BIT[behind]
        before = first - _ONE
        words[some] = (found & ~(before | (first * _BYTE))) | ((found & before) << _BITS)
        decimals[some] = behind
    return decimals


def _no_digits(words: Words) -> NDArray[np.bool_]:
    """Whether a byte of these words is above nine."""
    return np.asarray((((words & _LOW) + _ABOVE_NINE) | words) & _HIGH != 0)


def _number(words: Words) -> Words:
    """The number that eight digits make: neighbours are put together, then pairs, then fours."""
    words = (words * np.uint64(10) + (words >> _BITS)) & _PAIRS
    words = (words * np.uint64(100) + (words >> np.uint64(16))) & _FOURS
    return np.asarray((words * np.uint64(10_000) + (words >> np.uint64(32))) & np.uint64(0xFFFFFFFF))
