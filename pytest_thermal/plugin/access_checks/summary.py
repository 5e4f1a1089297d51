"""The end of the terminal's output: the access run at a glance, good at 80 columns and without colour."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from typing import Any

from pytest_thermal.model import LAYERS
from pytest_thermal.plugin.access_checks.session import Ending

_WIDTH = 80
_MARK_WIDTH = 13
_NAME_WIDTH = 22
_MARKS: dict[str, tuple[str, dict[str, bool]]] = {
    "passed": ("ok", {"green": True}),
    "failed": ("FAILED", {"red": True, "bold": True}),
    "inconclusive": ("INCONCLUSIVE", {"yellow": True, "bold": True}),
    "blocked": ("blocked", {"yellow": True}),
    "skipped": ("n/a", {}),
    "advice": ("advice", {"yellow": True}),
}


def write_summary(terminal: Any, endings: Sequence[Ending]) -> None:
    """Write one section for each process that ran access checks.

    A line a layer where all is well; each check that is not, with what to try. With ``-v`` a line for each check,
    with ``-q`` only what the run cost and whether the gateway stayed healthy.
    """
    verbosity = terminal.config.get_verbosity()
    for ending in endings:
        terminal.ensure_newline()
        title = "access" + (f" ({ending.node})" if ending.node and len(endings) > 1 else "")
        terminal.section(title, sep="=", blue=True)
        if verbosity >= 0:
            for line in ending.bench:
                terminal.write_line(line)
            for subject in dict.fromkeys(finding["subject"] for finding in ending.findings):
                found = [finding for finding in ending.findings if finding["subject"] == subject]
                _write_subject(terminal, subject, found, every=verbosity > 0)
        if ending.spending:
            _write_wrapped(terminal, "", "tokens: ", ending.spending)
        for line in ending.health:
            _write_wrapped(terminal, "", "health: ", line)


def _write_subject(terminal: Any, subject: str, findings: Sequence[dict[str, Any]], *, every: bool) -> None:
    terminal.write_line("")
    terminal.write_line(subject, bold=True)
    blocked = [finding["check"] for finding in findings if finding["outcome"] == "blocked"]
    tried = [finding for finding in findings if finding["outcome"] != "blocked"]
    for finding in tried:
        good = finding["outcome"] in ("passed", "skipped")
        if every or not good:
            _write_finding(terminal, finding)
        elif finding["check"] in LAYERS:
            _write_row(terminal, finding["outcome"], finding["check"], [_cut(finding["seen"])])
        for text in finding["warnings"]:
            _write_wrapped(terminal, " " * 15, "note:    ", f"{finding['check']}: {text}")
    if blocked:
        _write_row(terminal, "blocked", f"{len(blocked)} checks", _wrap(", ".join(blocked)))


def _write_finding(terminal: Any, finding: dict[str, Any]) -> None:
    bad = finding["outcome"] in ("failed", "inconclusive")
    mark = "advice" if finding["advisory"] and bad else finding["outcome"]
    own = finding["check"] == finding["layer"] or finding["check"].startswith(f"{finding['layer']}_")
    seen = finding["seen"] if own else f"{finding['layer']}: {finding['seen']}"
    _write_row(terminal, mark, finding["check"], _wrap(seen))
    if bad:
        for word, text in (("likely:  ", finding["likely"]), ("try:     ", finding["advice"])):
            if text:
                _write_wrapped(terminal, " " * 15, word, text)


def _write_row(terminal: Any, outcome: str, name: str, lines: Sequence[str]) -> None:
    mark, markup = _MARKS[outcome]
    terminal.write(f"  {mark:<{_MARK_WIDTH}}", **markup)
    terminal.write_line(f"{name:<{_NAME_WIDTH}}{lines[0]}".rstrip())
    for line in lines[1:]:
        terminal.write_line(" " * (2 + _MARK_WIDTH + _NAME_WIDTH) + line)


def _write_wrapped(terminal: Any, indent: str, head: str, text: str) -> None:
    lines = textwrap.wrap(text, _WIDTH - len(indent) - len(head), break_on_hyphens=False) or [""]
    for number, line in enumerate(lines):
        terminal.write_line(indent + (head if number == 0 else " " * len(head)) + line)


def _wrap(text: str) -> list[str]:
    return textwrap.wrap(text, _WIDTH - 2 - _MARK_WIDTH - _NAME_WIDTH, break_on_hyphens=False) or [""]


def _cut(text: str) -> str:
    first = _wrap(text)
    return (
        first[0] if len(first) == 1 else textwrap.shorten(text, _WIDTH - 2 - _MARK_WIDTH - _NAME_WIDTH, placeholder="…")
    )
