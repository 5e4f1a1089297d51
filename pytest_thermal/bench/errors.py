"""The one error of this room, written for the person at the bench."""

from __future__ import annotations

import textwrap
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from pytest_thermal.model.said import in_english, joined, mapped, say

WIDTH = 80  # columns of the narrowest terminal that people really use


@dataclass(frozen=True, kw_only=True)
class Problem:
    """One thing wrong with the bench files: where, what was seen, why it likely is, and what to try."""

    where: str
    """File and key: `settings.json: api.base_url`."""
    seen: str
    likely: str
    remedy: str


def one_line(text: str) -> str:
    """The text with line ends, control characters and what no terminal can print written as escapes."""
    return "".join(sign if sign.isprintable() else ascii(sign)[1:-1] for sign in text)


class BenchError(Exception):
    """The bench cannot be used. `str()` is the whole message for the user; it holds no key and needs no traceback."""

    def __init__(self, message: str) -> None:
        super().__init__(str(message))
        self.message = message
        """The same, to be told in another language."""

    @classmethod
    def of(cls, problems: Iterable[Problem], *, folder: Path, redact: Callable[[str], str]) -> BenchError:
        """All problems of one bench in one message; those with one cause share its `likely:` and `try:`."""
        groups: dict[tuple[str, str], list[Problem]] = {}
        for problem in problems:
            groups.setdefault((problem.likely, problem.remedy), []).append(problem)
        told = joined("\n\n", [_render(group, redact) for group in groups.values()])
        return cls(joined("\n", [told, say("in: {folder}", folder=one_line(redact(str(folder))))]))


def _render(group: Sequence[Problem], redact: Callable[[str], str]) -> str:
    lines = list(dict.fromkeys(say("{where}: {seen}", where=one.where, seen=one.seen) for one in group))
    lines += [say("likely: {likely}", likely=group[0].likely), say("try: {remedy}", remedy=group[0].remedy)]
    return joined("\n", [_filled(mapped(line, lambda text: one_line(redact(text)))) for line in lines])


def _filled(line: str) -> str:
    filled = textwrap.fill(line, WIDTH, subsequent_indent="  ", break_long_words=False, break_on_hyphens=False)
    return in_english(line, filled)
