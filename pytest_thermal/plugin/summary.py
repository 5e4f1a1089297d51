"""The end of the terminal's output: the access run at a glance, good at 80 columns and without colour."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from typing import Any

from pytest_thermal.plugin.session import Ending

_WIDTH = 80
_MARKS = {
    "passed": ("ok", {"green": True}),
    "failed": ("FAILED", {"red": True, "bold": True}),
    "inconclusive": ("INCONCLUSIVE", {"yellow": True, "bold": True}),
    "blocked": ("blocked", {"yellow": True}),
    "skipped": ("n/a", {}),
}


def write_summary(terminal: Any, endings: Sequence[Ending]) -> None:
    """Write one section for each process that ran access checks."""
    quiet = terminal.config.get_verbosity() < 0
    for ending in endings:
        title = "access" + (f" ({ending.node})" if ending.node and len(endings) > 1 else "")
        terminal.section(title, sep="=", blue=True)
        if not quiet:
            for line in ending.bench:
                terminal.write_line(line)
            for subject in dict.fromkeys(finding["subject"] for finding in ending.findings):
                _write_subject(terminal, subject, [f for f in ending.findings if f["subject"] == subject])
        if ending.spending:
            terminal.write_line(f"tokens: {ending.spending}")
        for line in ending.health:
            terminal.write_line(f"health: {line}")


def _write_subject(terminal: Any, subject: str, findings: Sequence[dict[str, Any]]) -> None:
    terminal.write_line("")
    terminal.write_line(subject, bold=True)
    blocked: list[str] = []
    for finding in findings:
        if finding["outcome"] == "blocked":
            blocked.append(finding["check"])
            continue
        _write_finding(terminal, finding)
    if blocked:
        _write_row(terminal, "blocked", f"{len(blocked)} checks", ", ".join(blocked))


def _write_finding(terminal: Any, finding: dict[str, Any]) -> None:
    outcome = finding["outcome"]
    seen = finding["seen"] if finding["layer"] in finding["check"] else f"{finding['layer']}: {finding['seen']}"
    bad = outcome in ("failed", "inconclusive")
    _write_row(terminal, outcome, finding["check"], seen, advisory=finding.get("advisory", False) and bad)
    if bad:
        for word, text in (("likely", finding["likely"]), ("try", finding["advice"])):
            if text:
                _write_wrapped(terminal, f"  {word + ':':<9}", text)
    for text in finding["warnings"]:
        _write_wrapped(terminal, "  note:    ", text)


def _write_row(terminal: Any, outcome: str, name: str, text: str, *, advisory: bool = False) -> None:
    mark, markup = _MARKS[outcome]
    if advisory:
        mark, markup = "advice", {"yellow": True}
    head = f"  {mark:<12} "
    terminal.write(head, **markup)
    lines = textwrap.wrap(text, _WIDTH - 38) or [""]
    terminal.write_line(f"{name:<22} {lines[0]}".rstrip())
    for line in lines[1:]:
        terminal.write_line(" " * 38 + line)


def _write_wrapped(terminal: Any, head: str, text: str) -> None:
    indent = " " * 15
    for number, line in enumerate(textwrap.wrap(text, _WIDTH - len(indent) - len(head))):
        terminal.write_line(indent + (head if number == 0 else " " * len(head)) + line)
