"""The thermal run at a glance, at the end of the terminal's output: good at 80 columns and without colour."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from pytest_thermal.model.said import joined, say
from pytest_thermal.plugin.columns import WIDTH, padded
from pytest_thermal.plugin.columns import wrapped as lines_of_text
from pytest_thermal.plugin.language import catalogue

if TYPE_CHECKING:
    from pytest_thermal.plugin.thermal_checks.session import ThermalEnding, ThermalSession
    from pytest_thermal.recording import Recording

_COLUMNS = (("baseline", 9), ("steady", 8), ("rise", 8), ("peak", 8), ("resistance", 8))
_TITLES = {
    "baseline": say("baseline"),
    "steady": say("steady"),
    "rise": say("rise"),
    "peak": say("peak"),
    "resistance": "°C/W",
}
_PHASE_COLUMNS = (
    ("seconds", say("lasted"), 9),
    ("cpu_celsius", "CPU °C", 9),
    ("accelerator_celsius", "GPU °C", 9),
    ("watts", say("power W"), 10),
    ("requests", say("requests"), 10),
    ("failed", say("failed"), 8),
)
"""Of the hottest device at the end of each phase; a column of which nothing was measured is left out."""
_ENDED = {"passed": say("ok"), "failed": say("FAILED"), "inconclusive": say("INCONCLUSIVE"), "skipped": say("n/a")}
_OUTCOMES = {
    "passed": say("passed"),
    "failed": say("failed"),
    "inconclusive": say("inconclusive"),
    "blocked": say("blocked"),
    "skipped": say("skipped"),
}
_MOST_ROWS = 24
_MARKS: dict[str, dict[str, bool]] = {
    "failed": {"red": True, "bold": True},
    "inconclusive": {"yellow": True, "bold": True},
}


def findings_of(session: ThermalSession) -> list[dict[str, Any]]:
    """What was asked of the run, as plain data."""
    return [
        {
            "check": found.check,
            "subject": found.subject,
            "outcome": str(found.outcome),
            "seen": found.seen,
            "likely": found.likely,
            "advice": found.advice,
            "warnings": list(found.warnings),
        }
        for found in session.noted
    ]


def rows_of(session: ThermalSession) -> list[dict[str, Any]]:
    """Key figures of each temperature that follows the load."""
    from pytest_thermal.findings import subjects

    judgement = session.judgement()
    all_figures = judgement.figures()
    rows = []
    for sensor in subjects("rise", session.sensors, inference=False):
        row: dict[str, Any] = {"sensor": sensor}
        known = {figure.name: figure.value for figure in reversed(all_figures.get(sensor, ()))}
        for name, _ in _COLUMNS:
            value = known.get(name)
            row[name] = None if value is None else float(value)
        row["settled"] = _settled(session, sensor)
        rows.append(row)
    return rows


def phases_of(session: ThermalSession) -> list[dict[str, Any]]:
    """Each phase in a line, as plain data."""
    from dataclasses import asdict

    from pytest_thermal.reporting.phase_figures import phase_figures

    return [asdict(one) for one in phase_figures(session.judgement(), session.phases)]


def lines_of(session: ThermalSession) -> list[str]:
    """Where the run lies, what loaded it, how the sampling went."""
    from pytest_thermal.findings.telling import STATES

    recording = session.recording()
    lines = [say("run: {path} ({state})", path=recording.path, state=STATES.get(recording.state, recording.state))]
    if session.report is not None:
        lines.append(say("report: {report}", report=session.report))
    if session.history is not None:
        lines.append(say("history: {history}", history=session.history))
    tools = dict.fromkeys(str(work.get("tool", "")) for work in recording.facts.get("works", []))
    if tools:
        lines.append(say("load: {names}", names=joined(", ", tools)))
    nodes = _nodes_line(recording)
    if nodes:
        lines.append(nodes)
    if recording.requests is not None and len(recording.requests):
        error = recording.requests.error
        failed = int(error.where(bool).sum())
        cut = int(error.where(lambda text: text.startswith("cancelled")).sum())
        ended = say("; {cut:,} more were under way when the load was taken off", cut=cut) if cut else ""
        lines.append(
            say(
                "requests: {count:,}, {failed:,} of them failed{ended}",
                count=len(recording.requests) - cut,
                failed=failed - cut,
                ended=ended,
            )
        )
    sampling = sampling_line(recording)
    if sampling:
        lines.append(sampling)
    return lines + [say("note: {text}", text=text) for text in session.judgement().warnings()]


def _nodes_line(recording: Recording) -> str:
    """With which other nodes the phases were entered; empty for a run of one node."""
    told = recording.facts.get("together")
    if not isinstance(told, Mapping):
        return ""
    met = [one for one in told.get("phases", {}).values() if isinstance(one, Mapping)]
    nodes = sorted({str(node) for one in met for node in one.get("nodes", ())})
    missing = sorted({str(node) for one in met for node in one.get("missing", ())})
    differ = [seconds for one in met if isinstance(seconds := one.get("starts_differ_seconds"), int | float)]
    parts = [
        say(
            "nodes: {names} of {count}",
            names=joined(", ", nodes or [str(told.get("node"))]),
            count=str(told.get("count")),
        )
    ]
    if missing:
        parts.append(say("missing: {names}", names=joined(", ", missing)))
    if differ:
        parts.append(say("starts differ by up to {seconds:.1f} s", seconds=max(differ)))
    return joined("; ", parts)


def sampling_line(recording: Recording) -> str:
    """How late readings began, over all sources, and how many slots had none; empty where nothing is known."""
    import numpy as np

    late = [timing.lateness_ms[~np.isnan(timing.lateness_ms)] for timing in recording.timing.values()]
    all_late = np.concatenate(late) if late else np.empty(0)
    if all_late.size == 0:
        return ""
    missed = sum(timing.missed or 0 for timing in recording.timing.values())
    p50, p99 = np.percentile(all_late, (50, 99))
    return say(
        "sampling: {readings:,} readings of {sources}, {missed} lost; "
        "lateness p50 {p50:.1f}, p99 {p99:.1f}, max {most:.1f} ms",
        readings=all_late.size,
        sources=say("1 source") if len(late) == 1 else say("{count} sources", count=len(late)),
        missed=missed,
        p50=p50,
        p99=p99,
        most=all_late.max(),
    )


def write_thermal_summary(terminal: Any, endings: Sequence[ThermalEnding]) -> None:
    """One section for each process that made or judged a run.

    The table of figures, then what did not pass with what to try; with ``-q`` only the latter and where the run lies.
    """
    verbosity = terminal.config.get_verbosity()
    page = _Page(terminal)
    for ending in endings:
        terminal.ensure_newline()  # else an empty line follows the title, where pytest stood in a line of its own
        title = page.told(say("thermal"))
        title += f" ({ending.node})" if ending.node and len(endings) > 1 else ""
        terminal.section(title, sep="=", blue=True)
        if verbosity >= 0:
            for line in ending.head:
                page.wrapped("", line)
        for line in ending.lines:
            page.wrapped("", line)
        if verbosity >= 0 and ending.phases:
            terminal.write_line("")
            page.phases(ending.phases)
        if verbosity >= 0 and ending.rows:
            terminal.write_line("")
            page.table(ending.rows, all_rows=verbosity > 0)
        page.findings(ending.findings)


def write_findings(terminal: Any, findings: Sequence[dict[str, Any]]) -> None:
    """How many of each outcome, then what did not pass, those of one cause together, and every note."""
    _Page(terminal).findings(findings)


def wrapped(terminal: Any, indent: str, text: str) -> None:
    """Write a text within the width, its further lines indented."""
    _Page(terminal).wrapped(indent, text)


def _phase_cell(name: str, value: float | None) -> str:
    from pytest_thermal.findings.telling import span

    if value is None:
        return "–"
    if name == "seconds":
        return str(span(round(value)))
    return f"{value:.1f}" if name.endswith("celsius") else f"{value:,.0f}"


class _Page:
    """Writes in the language of the run."""

    def __init__(self, terminal: Any) -> None:
        self._terminal = terminal
        self.told = catalogue(terminal.config)

    def table(self, rows: Sequence[dict[str, Any]], *, all_rows: bool) -> None:
        titles = "".join(padded(self.told(_TITLES[name]), width, right=True) for name, width in _COLUMNS)
        self._terminal.write_line(f"  {'°C':<26}{titles}  {self.told(say('settled'))}", bold=True)
        shown = rows if all_rows else rows[:_MOST_ROWS]
        for row in shown:
            name = str(row["sensor"]).removesuffix(".temperature_celsius")
            cells = "".join(_cell(name, row[name], width) for name, width in _COLUMNS)
            self._terminal.write_line(f"  {name:<26}{cells}  {self.told(row['settled'])}")
        if len(rows) > len(shown):
            self._terminal.write_line(self.told(say("  and {count} more: -v", count=len(rows) - len(shown))))

    def phases(self, phases: Sequence[dict[str, Any]]) -> None:
        shown = [column for column in _PHASE_COLUMNS if any(phase[column[0]] is not None for phase in phases)]
        titles = "".join(padded(self.told(title), width, right=True) for _, title, width in shown)
        self._terminal.write_line(f"  {'':<10}{titles}", bold=True)
        for phase in phases:
            cells = "".join(f"{_phase_cell(name, phase[name]):>{width}}" for name, _, width in shown)
            self._terminal.write(f"  {phase['name']:<10}{cells}  ")
            outcome = phase["outcome"]
            self._terminal.write_line(self.told(_ENDED.get(outcome, outcome)), **_MARKS.get(outcome, {}))

    def findings(self, findings: Sequence[dict[str, Any]]) -> None:
        from pytest_thermal.findings.alike import of_one_cause, saying_the_same

        counts: dict[str, int] = {}
        for found in findings:
            counts[found["outcome"]] = counts.get(found["outcome"], 0) + 1
        # What is known to be bad before what is not known.
        bad = [found for outcome in _MARKS for found in findings if found["outcome"] == outcome]
        if findings:
            self._terminal.write_line("")
            told = (
                say("{count} {outcome}", count=count, outcome=_OUTCOMES[outcome]) for outcome, count in counts.items()
            )
            self._terminal.write_line(f"  {self.told(joined(', ', told))}")
        for alike in of_one_cause(bad):
            self._terminal.write_line("")
            for same in saying_the_same(alike):
                self._same(same)
            for line in (
                say("likely: {likely}", likely=alike[0]["likely"]) if alike[0]["likely"] else "",
                say("try: {remedy}", remedy=alike[0]["advice"]) if alike[0]["advice"] else "",
            ):
                self.wrapped("    ", line)
        notes = [(found, text) for found in findings for text in found["warnings"]]
        for found, text in notes:
            note = say("note: {check}[{subject}]: {text}", check=found["check"], subject=found["subject"], text=text)
            self.wrapped("  ", note)

    def _same(self, same: Sequence[dict[str, Any]]) -> None:
        names = ", ".join(f"{found['check']}[{found['subject']}]" for found in same)
        outcome = same[0]["outcome"]
        lines = lines_of_text(names, WIDTH - 4, first=" " * (len(outcome) - 1))
        self._terminal.write(f"  {self.told(_OUTCOMES[outcome]).upper()} ", **_MARKS[outcome])
        self._terminal.write_line(lines[0].strip())
        for line in lines[1:]:
            self._terminal.write_line(f"    {line}")
        self.wrapped("    ", same[0]["seen"])

    def wrapped(self, indent: str, text: str) -> None:
        for part in self.told(text).splitlines():
            for line in lines_of_text(part, first=indent, rest=indent + "  "):
                self._terminal.write_line(line)


def _cell(name: str, value: float | None, width: int) -> str:
    if value is None:
        return f"{'–':>{width}}"
    text = f"{value:+.1f}" if name == "rise" else f"{value:.3f}" if name == "resistance" else f"{value:.1f}"
    return f"{text:>{width}}"


def _settled(session: ThermalSession, sensor: str) -> str:
    outcome = str(session.judgement().finding("settled", sensor).outcome)
    return {"passed": say("yes"), "failed": say("NO")}.get(outcome, say("not known"))
