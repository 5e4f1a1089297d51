"""Arrays as short text: rounded to a small step, differences, DEFLATE, base64. The page's script undoes it."""

from __future__ import annotations

import base64
import math
import zlib
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from pytest_thermal.model.series import FloatArray

MISSING = 65535
"""What stands for a missing value."""
MOST_STEPS = 65534
_LEVEL = 6


@dataclass(frozen=True, kw_only=True)
class Packed:
    """An array as text. Value i is ``offset + code[i] * step``; a code of ``MISSING`` is no value."""

    text: str
    count: int
    offset: float
    step: float


def pack_values(values: FloatArray, *, finest: float) -> Packed:
    """Values of shape (n,), NaN where missing, each at most half a step from what it was.

    The step is ``finest``, or a multiple of it by 2, 5, 10 … where the values span more than 65,534 of them: then it is
    still less than a 10,000th of what they span.
    """
    there = values[~np.isnan(values)]
    offset = float(there.min()) if there.size else 0.0
    spanned = float(there.max()) - offset if there.size else 0.0
    step = coarser(finest, spanned / MOST_STEPS)
    offset = math.floor(offset / step) * step
    codes = np.full(values.size, MISSING, dtype=np.int64)
    codes[~np.isnan(values)] = np.clip(np.rint((there - offset) / step), 0, MOST_STEPS).astype(np.int64)
    changes = np.diff(codes, prepend=0).astype(np.uint16).view(np.int16).astype(np.int32)
    return Packed(
        text=_text((changes << 1) ^ (changes >> 31), planes=2), count=int(values.size), offset=offset, step=step
    )


def pack_times(seconds: FloatArray) -> str:
    """Times of shape (n,), rising, as milliseconds: how much each distance differs from the one before it."""
    distances = np.diff(np.rint(seconds * 1000).astype(np.int64), prepend=0)
    changes = np.diff(distances, prepend=0)
    return _text((changes << 1) ^ (changes >> 63), planes=5)


def coarser(finest: float, least: float) -> float:
    """The first of ``finest`` times 1, 2, 5, 10, 20 … that is not below ``least``."""
    step, factors = finest, (2.0, 2.5, 2.0)
    turn = 0
    while step < least:
        step *= factors[turn % 3]
        turn += 1
    return step


def _text(codes: NDArray[np.signedinteger], *, planes: int) -> str:
    """All lowest bytes first, then the next higher: most of those are zero, which DEFLATE likes."""
    raw = b"".join(((codes >> (8 * plane)) & 0xFF).astype(np.uint8).tobytes() for plane in range(planes))
    return base64.b64encode(zlib.compress(raw, _LEVEL)).decode("ascii")
