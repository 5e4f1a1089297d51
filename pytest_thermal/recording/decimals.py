"""Plain decimal numbers from CSV bytes to an array, all at once: a day of 72 sensors in about a second."""

from __future__ import annotations

import numpy as np

from pytest_thermal.model.series import FloatArray

_CHUNK_BYTES = 4 << 20
_LONGEST = 17
"""Digits that surely fit 64 bits; whatever is longer goes the slow way."""
_POWERS = np.array([10.0**power for power in range(_LONGEST + 1)])
_ZERO, _DOT, _MINUS, _COMMA, _END, _RETURN = b"0.-,\n\r"


def parse_decimals(content: bytes) -> tuple[FloatArray, list[int]]:
    """Cells between commas and line ends, in order: their numbers, NaN where one is empty or no number.

    The second result are the positions of cells that are neither empty nor a number. ``content`` ends with a line end.
    Numbers of up to 17 signs without an exponent are exact: an integer divided by a power of ten, as ``float`` rounds.
    """
    parts, wrong = [], []
    count = position = 0
    while position < len(content):
        end = content.rfind(b"\n", position, position + _CHUNK_BYTES) + 1 or content.find(b"\n", position) + 1
        numbers, bad = _parse(content[position:end])
        parts.append(numbers)
        wrong += [count + index for index in bad]
        count += numbers.size
        position = end
    return (np.concatenate(parts) if parts else np.empty(0)), wrong


def _parse(content: bytes) -> tuple[FloatArray, list[int]]:
    signs = np.frombuffer(content, dtype=np.uint8)
    ends = np.flatnonzero((signs == _COMMA) | (signs == _END))
    starts = np.empty_like(ends)
    starts[0] = 0
    starts[1:] = ends[:-1] + 1
    length = ends - starts
    # A line end of two signs is one.
    length -= (length > 0) & (signs[ends] == _END) & (signs[ends - 1] == _RETURN)

    whole = np.zeros(ends.size, dtype=np.int64)
    dot = np.full(ends.size, -1, dtype=np.int64)
    negative = np.zeros(ends.size, dtype=np.bool_)
    other = length > _LONGEST
    left = np.flatnonzero((length > 0) & ~other)
    place = 0
    while left.size:
        sign = signs[starts[left] + place]
        digit = sign - _ZERO  # what is below wraps round and is no digit either
        is_digit = digit < 10
        cells = left[is_digit]
        whole[cells] = whole[cells] * 10 + digit[is_digit]
        if not is_digit.all():
            cells, sign = left[~is_digit], sign[~is_digit]
            is_dot = (sign == _DOT) & (dot[cells] < 0)
            dot[cells[is_dot]] = place
            is_minus = (sign == _MINUS) & (place == 0)
            negative[cells[is_minus]] = True
            other[cells[~is_dot & ~is_minus]] = True
        place += 1
        left = left[length[left] > place]
    # A sign or a dot alone is no number; both together with a digit are.
    other |= (length > 0) & (length <= negative.astype(np.int64) + (dot >= 0))

    numbers = whole / _POWERS[np.where(dot >= 0, np.clip(length - 1 - dot, 0, _LONGEST), 0)]
    numbers[negative] = -numbers[negative]
    numbers[length == 0] = np.nan
    wrong = []
    for index in np.flatnonzero(other):
        text = content[starts[index] : starts[index] + length[index]]
        numbers[index] = np.nan
        try:
            numbers[index] = float(text)
        except ValueError:
            wrong.append(int(index))
    return numbers, wrong
