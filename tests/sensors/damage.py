"""Ways in which an output arrives damaged, as strategies: each example is one to three of them on top of each other."""

from __future__ import annotations

import os
import re
from collections.abc import Callable

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st

Damage = tuple[str, Callable[[bytes], bytes]]

EXAMPLES = int(os.environ.get("THERMAL_FUZZ_EXAMPLES", "0"))
"""More of them than CI takes time for, and others each time: ``THERMAL_FUZZ_EXAMPLES=3000 pytest tests/sensors``."""


def cheaply(examples: int) -> settings:
    """The same few examples at each run; with ``$THERMAL_FUZZ_EXAMPLES`` that many, new ones each time."""
    return settings(
        max_examples=EXAMPLES or examples,
        derandomize=not EXAMPLES,
        deadline=None,
        database=None,
        suppress_health_check=list(HealthCheck),
    )


WARNINGS = (
    b"WARNING: 3 of 4 cards at 42 C, 17 W\n",
    b"[WARNING] {json} [0] [] {}\n",
    b'{"card0": {}}\n',
    b"|  |\n",
    b"GPU  Temp\n0, 1, 2\n",
    b"[WARNING] the package of 42 C is old, 99 % of 300 W\n",
    b"<html><body>502 Bad Gateway</body></html>\n",
)
_WIDE = str.maketrans("0123456789", "０１２３４５６７８９")
_EASTERN = str.maketrans("0123456789", "٠١٢٣٤٥٦٧٨٩")


def _text(change: Callable[[str], str]) -> Callable[[bytes], bytes]:
    return lambda data: change(data.decode("utf-8", "surrogateescape")).encode("utf-8", "surrogateescape")


def _lines(change: Callable[[list[bytes]], list[bytes]]) -> Callable[[bytes], bytes]:
    return lambda data: b"".join(change(data.splitlines(keepends=True)))


def _wider(data: bytes, more: int) -> bytes:
    """The same table with more room in each column."""
    found = []
    for line in data.split(b"\n"):
        fill = line[1:2] if set(line) <= set(b"|+-=") else b" "
        framed = line.startswith((b"|", b"+"))
        found.append(re.sub(rb"([|+])(?=.)", rb"\g<1>" + fill * more, line) if framed else line)
    return b"\n".join(found)


WHOLE: tuple[Damage, ...] = (
    ("printed twice", lambda data: data + data),
    ("with CRLF", lambda data: data.replace(b"\n", b"\r\n")),
    ("with CR alone", lambda data: data.replace(b"\n", b"\r")),
    ("with a BOM", lambda data: b"\xef\xbb\xbf" + data),
    ("as UTF-16", lambda data: data.decode("utf-8", "replace").encode("utf-16")),
    ("with decimal commas", lambda data: re.sub(rb"(\d)\.(\d)", rb"\1,\2", data)),
    ("with full-width digits", _text(lambda text: text.translate(_WIDE))),
    ("with eastern digits", _text(lambda text: text.translate(_EASTERN))),
    ("with spaces that do not break", _text(lambda text: text.replace(" ", "\u00a0"))),
    ("with tabs", lambda data: re.sub(rb" {4,}", b"\t", data)),
    ("indented", _lines(lambda lines: [b"  " + line for line in lines])),
    ("coloured", lambda data: b"\x1b[32m" + data.replace(b" ", b"\x1b[0m ") + b"\x1b[0m\n"),
    ("with coloured digits", lambda data: re.sub(rb"(\d+)", b"\x1b[1;31m\\1\x1b[0m", data)),
    ("with a title set", lambda data: b"\x1b]0;monitor\x07" + data),
    ("without its last line end", lambda data: data.rstrip(b"\n")),
)


def damages(lines: int, size: int, *, by_place: bool = False) -> st.SearchStrategy[list[Damage]]:
    """One to three damages to an output of that many lines and bytes.

    ``by_place``: one, and none that changes the order, where devices are known by nothing but their places.
    """
    line = st.integers(0, max(0, lines - 1))
    place = st.integers(0, max(0, size - 1))
    more = st.integers(1, 12)
    return st.lists(
        st.one_of(
            st.sampled_from(WHOLE),
            st.builds(_cut, place),
            st.builds(_without_line, line),
            st.builds(_twice_line, line),
            st.builds(_torn_line, line),
            *([] if by_place else [st.builds(_swapped_lines, line)]),
            st.builds(_warning, line, st.sampled_from(WARNINGS)),
            st.builds(_noise, place, st.binary(min_size=1, max_size=12)),
            st.builds(_wider_columns, more),
            st.builds(_wider_gaps, more),
            st.builds(_translated, line),
        ),
        min_size=1,
        max_size=1 if by_place else 3,
    )


def _cut(end: int) -> Damage:
    return f"cut after {end} bytes", lambda data: data[:end]


def _without_line(number: int) -> Damage:
    return f"without line {number}", _lines(lambda lines: lines[:number] + lines[number + 1 :])


def _twice_line(number: int) -> Damage:
    return f"line {number} twice", _lines(lambda lines: lines[: number + 1] + lines[number:])


def _torn_line(number: int) -> Damage:
    def torn(lines: list[bytes]) -> list[bytes]:
        half = [lines[number][: len(lines[number]) // 2] + b"\n"] if number < len(lines) else []
        return lines[:number] + half + lines[number + 1 :]

    return f"line {number} torn", _lines(torn)


def _swapped_lines(number: int) -> Damage:
    return (
        f"line {number} after the next",
        _lines(lambda lines: [*lines[:number], *reversed(lines[number : number + 2]), *lines[number + 2 :]]),
    )


def _warning(number: int, warning: bytes) -> Damage:
    return f"{warning!r} before line {number}", _lines(lambda lines: [*lines[:number], warning, *lines[number:]])


def _noise(place: int, noise: bytes) -> Damage:
    # Of what could be a figure nobody can tell that it is none.
    loud = bytes(byte | 0x80 for byte in noise)
    return f"noise {loud!r} at {place}", lambda data: data[:place] + loud + data[place:]


def _wider_columns(more: int) -> Damage:
    return f"in columns wider by {more}", lambda data: _wider(data, more)


def _wider_gaps(more: int) -> Damage:
    return f"with gaps wider by {more}", lambda data: re.sub(rb"  +", lambda match: match[0] + b" " * more, data)


def _translated(number: int) -> Damage:
    def translated(lines: list[bytes]) -> list[bytes]:
        chinese = "温度".encode()
        changed = [re.sub(rb"[A-Za-z][A-Za-z ._-]{2,}", chinese, line) for line in lines[number : number + 1]]
        return [*lines[:number], *changed, *lines[number + 1 :]]

    return f"line {number} in another language", _lines(translated)


def after(data: bytes, damage: list[Damage]) -> bytes:
    """The output after all of them, one after the other."""
    for _, change in damage:
        data = change(data)
    return data
