"""The end of the terminal's output: the access run at a glance, good at 80 columns and without colour."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pytest_thermal.model import LAYERS
from pytest_thermal.model.said import joined, say
from pytest_thermal.plugin.access_checks.session import Ending
from pytest_thermal.plugin.columns import WIDTH, columns, cut, padded, wrapped
from pytest_thermal.plugin.language import catalogue

_MARK_WIDTH = 13
_NAME_WIDTH = 22
_TEXT_WIDTH = WIDTH - 2 - _MARK_WIDTH - _NAME_WIDTH
_MARKS: dict[str, tuple[str, dict[str, bool]]] = {
    "passed": (say("ok"), {"green": True}),
    "failed": (say("FAILED"), {"red": True, "bold": True}),
    "inconclusive": (say("INCONCLUSIVE"), {"yellow": True, "bold": True}),
    "blocked": (say("blocked"), {"yellow": True}),
    "skipped": (say("n/a"), {}),
    "advice": (say("advice"), {"yellow": True}),
}


def write_summary(terminal: Any, endings: Sequence[Ending]) -> None:
    """Write one section for each process that ran access checks.

    A line a layer where all is well; each check that is not, with what to try. With ``-v`` a line for each check,
    with ``-q`` only what the run cost and whether the gateway stayed healthy.
    """
    verbosity = terminal.config.get_verbosity()
    page = _Page(terminal)
    for ending in endings:
        terminal.ensure_newline()
        title = page.told(say("access"))
        title += f" ({ending.node})" if ending.node and len(endings) > 1 else ""
        terminal.section(title, sep="=", blue=True)
        if verbosity >= 0:
            for line in ending.bench:
                terminal.write_line(page.told(line))
            for subject in dict.fromkeys(finding["subject"] for finding in ending.findings):
                found = [finding for finding in ending.findings if finding["subject"] == subject]
                page.subject(subject, found, every=verbosity > 0)
        if ending.spending:
            page.wrapped("", say("tokens: "), ending.spending)
        for line in ending.health:
            page.wrapped("", say("health: "), line)


class _Page:
    """Writes in the language of the run."""

    def __init__(self, terminal: Any) -> None:
        self._terminal = terminal
        self.told = catalogue(terminal.config)

    def subject(self, subject: str, findings: Sequence[dict[str, Any]], *, every: bool) -> None:
        self._terminal.write_line("")
        self._terminal.write_line(subject, bold=True)
        blocked = [finding["check"] for finding in findings if finding["outcome"] == "blocked"]
        tried = [finding for finding in findings if finding["outcome"] != "blocked"]
        for finding in tried:
            good = finding["outcome"] in ("passed", "skipped")
            if every or not good:
                self._finding(finding)
            elif finding["check"] in LAYERS:
                self._row(finding["outcome"], finding["check"], [cut(self.told(finding["seen"]), _TEXT_WIDTH)])
            for text in finding["warnings"]:
                self.wrapped(" " * 15, say("note:    "), say("{check}: {text}", check=finding["check"], text=text))
        if blocked:
            name = self.told(say("{count} checks", count=len(blocked)))
            self._row("blocked", name, self._lines(joined(", ", blocked)))

    def wrapped(self, indent: str, head: str, text: str) -> None:
        head = self.told(head)
        lines = wrapped(self.told(text), WIDTH - len(indent) - columns(head)) or [""]
        for number, line in enumerate(lines):
            self._terminal.write_line(indent + (head if number == 0 else " " * columns(head)) + line)

    def _finding(self, finding: dict[str, Any]) -> None:
        bad = finding["outcome"] in ("failed", "inconclusive")
        mark = "advice" if finding["advisory"] and bad else finding["outcome"]
        own = finding["check"] == finding["layer"] or finding["check"].startswith(f"{finding['layer']}_")
        seen = finding["seen"] if own else say("{layer}: {seen}", layer=finding["layer"], seen=finding["seen"])
        self._row(mark, finding["check"], self._lines(seen))
        if bad:
            for word, text in ((say("likely:  "), finding["likely"]), (say("try:     "), finding["advice"])):
                if text:
                    self.wrapped(" " * 15, word, text)

    def _row(self, outcome: str, name: str, lines: Sequence[str]) -> None:
        mark, markup = _MARKS[outcome]
        self._terminal.write("  " + padded(self.told(mark), _MARK_WIDTH), **markup)
        self._terminal.write_line(f"{padded(name, _NAME_WIDTH)}{lines[0]}".rstrip())
        for line in lines[1:]:
            self._terminal.write_line(" " * (2 + _MARK_WIDTH + _NAME_WIDTH) + line)

    def _lines(self, text: str) -> list[str]:
        return wrapped(self.told(text), _TEXT_WIDTH) or [""]
