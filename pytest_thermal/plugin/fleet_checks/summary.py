"""The fleet at a glance, at the end of the terminal's output: good at 80 columns and without colour."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from pytest_thermal.findings.telling import few
from pytest_thermal.model.said import joined, say
from pytest_thermal.plugin.columns import padded
from pytest_thermal.plugin.language import catalogue
from pytest_thermal.plugin.thermal_checks.summary import wrapped, write_findings

if TYPE_CHECKING:
    from pytest_thermal.model.catalogue import Catalogue
    from pytest_thermal.plugin.fleet_checks.session import FleetEnding

_MOST_ROWS = 24
_NAME = 16
_WORST_FIRST = ("failed", "inconclusive", "blocked", "skipped", "passed")
_WORDS = {
    "failed": say("failed"),
    "inconclusive": say("open"),
    "blocked": say("blocked"),
    "skipped": say("skipped"),
    "passed": say("passed"),
}


def write_fleet_summary(terminal: Any, endings: Sequence[FleetEnding]) -> None:
    """The nodes as a table, what was asked of gateways, then what did not pass with what to try."""
    verbosity = terminal.config.get_verbosity()
    told = catalogue(terminal.config)
    for ending in endings:
        title = told(say("fleet")) + (f" ({ending.node})" if ending.node and len(endings) > 1 else "")
        terminal.section(title, sep="=", blue=True)
        if verbosity >= 0:
            for line in ending.head:
                wrapped(terminal, "", line)
        if ending.evidence.startswith("SIMULATED"):
            wrapped(terminal, "", say("fleet: {evidence}: it says nothing of real hardware", evidence=ending.evidence))
        for line in ending.lines:
            wrapped(terminal, "", line)
        if verbosity >= 0:
            _nodes(terminal, ending.rows, told, all_rows=verbosity > 0)
            _domains(terminal, ending.domains, told)
            _uses(terminal, ending.uses, told, all_rows=verbosity > 0)
        write_findings(terminal, ending.findings)


def _nodes(terminal: Any, rows: Sequence[Mapping[str, Any]], told: Catalogue, *, all_rows: bool) -> None:
    if not rows:
        return
    counts = {outcome: sum(row["outcome"] == outcome for row in rows) for outcome in _WORST_FIRST}
    said = [say("{count} {outcome}", count=count, outcome=_WORDS[name]) for name, count in counts.items() if count]
    terminal.write_line("")
    terminal.write_line(told(say("  {count} nodes: {outcomes}", count=len(rows), outcomes=joined(", ", said))))
    unit = "tok/s" if any(row["tokens_per_second"] is not None for row in rows) else "ans/s"
    titles = (
        (say("rise °C"), 8), (say("furthest"), 15), (unit, 9), (say("requests"), 10), ("429", 7),
    )  # fmt: skip
    cells = "".join(padded(told(title), width, right=True) for title, width in titles)
    terminal.write_line(f"  {padded(told(say('node')), _NAME)}{cells}  {told(say('verdict'))}", bold=True)
    ordered = sorted(rows, key=lambda row: (_WORST_FIRST.index(row["outcome"]), not row["outliers"]))
    shown = ordered if all_rows else ordered[:_MOST_ROWS]
    for row in shown:
        terminal.write_line(f"  {_row(row)}{told(_verdict(row))}")
    if len(rows) > len(shown):
        terminal.write_line(told(say("  and {count} more: -v", count=len(rows) - len(shown))))


def _row(row: Mapping[str, Any]) -> str:
    rate = row["tokens_per_second"] if row["tokens_per_second"] is not None else row["answers_per_second"]
    worst = row["worst_celsius"]
    furthest = "–" if worst is None else f"{row['worst_device']} {worst:+.1f}"
    cells = (
        _cut(row["name"], _NAME),
        _number(row["rise_celsius"], 8, 1),
        f"{furthest:>15}",
        _number(rate, 9, 0 if rate is None or rate >= 100 else 1),
        _number(row["requests"], 10, 0),
        _number(row["limited"], 7, 0),
        "  ",
    )
    return "".join(cells)


def _verdict(row: Mapping[str, Any]) -> str:
    """The node's own, and which of its cards stand out: that is another check's finding."""
    off = row["outliers"]
    if not off:
        outcome = str(row["outcome"])
        return _WORDS.get(outcome, outcome)
    return say("{card} off", card=off[0]) if len(off) == 1 else say("{count} cards off", count=len(off))


def _domains(terminal: Any, rows: Sequence[Mapping[str, Any]], told: Catalogue) -> None:
    if not any(row["requests"] for row in rows):
        return
    terminal.write_line("")
    titles = (
        (say("nodes"), 6), (say("requests"), 11), ("429", 8), (say("failed"), 8), (say("tokens"), 12), ("tok/s", 9),
    )  # fmt: skip
    cells = "".join(padded(told(title), width, right=True) for title, width in titles)
    terminal.write_line(f"  {padded(told(say('domain')), _NAME)}{cells}", bold=True)
    for row in rows:
        rate = row["tokens_per_second"]
        terminal.write_line(
            f"  {_cut(row['name'], _NAME)}{row['nodes']:>6}{_number(row['requests'], 11, 0)}"
            f"{_number(row['limited'], 8, 0)}{_number(row['failed'], 8, 0)}{_number(row['tokens'], 12, 0)}"
            f"{_number(rate, 9, 0)}"
        )
        if row["limited_nodes"]:
            names, limits = few(row["limited_nodes"]), row["limits"]
            wrapped(terminal, "    ", say("limited by quota (429): {names}; met: {limits}", names=names, limits=limits))


def _uses(terminal: Any, rows: Sequence[Mapping[str, Any]], told: Catalogue, *, all_rows: bool) -> None:
    """Which node asked which domain for what: where there are several, or a quota refused somebody."""
    several = len({row["domain"] for row in rows}) > 1
    if not any(row["requests"] for row in rows) or not (all_rows or several or any(row["limited"] for row in rows)):
        return
    terminal.write_line("")
    titles = (
        (say("requests"), 10), ("429", 8), (say("failed"), 7), (say("tok in"), 10), (say("tok out"), 10),
    )  # fmt: skip
    cells = "".join(padded(told(title), width, right=True) for title, width in titles)
    terminal.write_line(f"  {padded(told(say('node')), _NAME)}{padded(told(say('domain')), _NAME)}{cells}", bold=True)
    ordered = sorted(rows, key=lambda row: (-row["limited"], -row["failed"]))
    shown = ordered if all_rows else ordered[:_MOST_ROWS]
    for row in shown:
        numbers = zip(("requests", "limited", "failed", "prompt_tokens", "completion_tokens"), titles, strict=True)
        cells = "".join(_number(row[name], width, 0) for name, (_, width) in numbers)
        terminal.write_line(f"  {_cut(row['node'], _NAME)}{_cut(row['domain'], _NAME)}{cells}")
        if row["limits"]:
            wrapped(terminal, "    ", say("limit met: {limits}", limits=row["limits"]))
    if len(rows) > len(shown):
        terminal.write_line(told(say("  and {count} more: -v", count=len(rows) - len(shown))))


def _number(value: float | None, width: int, decimals: int) -> str:
    return f"{'–':>{width}}" if value is None else f"{value:>{width},.{decimals}f}"


def _cut(text: str, width: int) -> str:
    return f"{text if len(text) < width else text[: width - 2] + '…':<{width}}"
