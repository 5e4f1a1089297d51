"""Lists of hosts as batch systems write them."""

from __future__ import annotations

import re
from collections.abc import Iterator

from pytest_thermal.model.said import say

_PART = re.compile(r"[^,\[]+(?:\[[^\]]*\][^,\[]*)*")
_RANGES = re.compile(r"\[([^\]]*)\]")
_MOST_NODES = 100_000


def expand_nodes(text: str) -> tuple[str, ...]:
    """``n[1-3,08],m1`` as names: Slurm's hostlist expression, or plain names with commas between them.

    Raises:
        ValueError: A range in it is none.
    """
    found: dict[str, None] = {}
    for part in _PART.findall(text.replace(" ", "")):
        for name in _expanded(part):
            found[name] = None
            if len(found) > _MOST_NODES:
                raise ValueError(say("{text}: more than {count} nodes", text=text[:60], count=_MOST_NODES))
    return tuple(found)


def _expanded(text: str) -> Iterator[str]:
    match = _RANGES.search(text)
    if match is None:
        yield text
        return
    head, tail = text[: match.start()], text[match.end() :]
    for piece in match[1].split(","):
        first, dash, last = piece.partition("-")
        last = last if dash else first
        if not (first.isdigit() and last.isdigit() and int(first) <= int(last)):
            raise ValueError(say("{text}: {piece!r} is no range of numbers", text=text, piece=piece))
        for number in range(int(first), int(last) + 1):
            yield from (f"{head}{number:0{len(first)}d}{rest}" for rest in _expanded(tail))
