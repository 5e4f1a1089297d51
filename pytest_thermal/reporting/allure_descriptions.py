"""What stands on a test's page in Allure, in Markdown: the verdict, figures against their limits, and a picture."""

from __future__ import annotations

import base64
import math
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

from pytest_thermal.model import Finding, Outcome
from pytest_thermal.model.findings import Scalar
from pytest_thermal.model.said import say

if TYPE_CHECKING:
    from pytest_thermal.reporting.pictures import Picture

SIMULATED = say("*Simulated: the embedded demo bench, no real machine.*")
PENDING = say(
    "*Its picture is drawn when the run has ended. It is not here, so the run was ended before: `--replay` draws it.*"
)
"""Stands where a picture will be: a run that is killed then says what became of it."""
_VERDICTS = {
    Outcome.PASSED: say("Passed"),
    Outcome.FAILED: say("Failed"),
    Outcome.INCONCLUSIVE: say("Inconclusive: not measured, so not passed"),
    Outcome.BLOCKED: say("Blocked: an outer layer failed"),
    Outcome.SKIPPED: say("Does not apply"),
}
_UNITS: tuple[tuple[str, str, int], ...] = (
    ("_celsius_per_minute", "K/min", 3),
    ("_celsius", "°C", 1),
    ("_kelvin", "K", 1),
    ("_watts", "W", 0),
    ("_rpm", "rpm", 0),
    ("_percent", "%", 0),
    ("_milliseconds", "ms", 0),
    ("_microseconds", "µs", 1),
    ("_seconds", "s", 2),
    ("_bytes", "bytes", 0),
)
"""Last words of a name of evidence, longest first: unit and decimals."""
_SHARES = frozenset({"held", "on_plateau", "throughput_held", "coverage"})
"""Shares of 1, written in percent."""
_AT_LEAST = frozenset({"held"})
"""What a limit holds from below; any other from above."""


def finding_text(
    finding: Finding,
    *,
    simulated: bool,
    table: Sequence[str] | None = None,
    told: Callable[[str], str] = str,
) -> str:
    """Verdict, likely cause and next step, figures and limits; ``table`` stands for the latter where it is given."""
    seen = say("{layer}: {seen}", layer=finding.layer, seen=finding.seen)
    lines = [f"**{told(_VERDICTS[finding.outcome])}** — {markdown(told(seen))}", ""]
    for line in (
        say("likely: {likely}", likely=finding.likely) if finding.likely else "",
        say("try: {remedy}", remedy=finding.advice) if finding.advice else "",
        *(say("note: {text}", text=text) for text in finding.warnings),
    ):
        lines += [f"- {markdown(told(line))}"] if line else []
    lines += ["", *(evidence_table(finding.evidence, told) if table is None else table)]
    if simulated:
        lines += ["", told(SIMULATED)]
    return "\n".join(lines)


def evidence_table(evidence: Mapping[str, Scalar], told_in: Callable[[str], str] = str) -> list[str]:
    """What was measured, each figure beside its limit and what is left to it; empty where nothing was."""
    told = {name: value for name, value in evidence.items() if value is not None and name != "simulated"}
    origin = told.pop("limit_origin", None)
    origin = told_in(origin) if isinstance(origin, str) else origin
    limits = {name: value for name, value in told.items() if name == "limit" or name.startswith("limit_")}
    figures = {name: value for name, value in told.items() if name not in limits}
    uncertain = {name: figures.pop(name) for name in list(figures) if name.startswith("uncertainty")}
    of = {figure: name for name in limits for figure in _alike(_belongs_to(name, "limit", figures), figures)}
    spread = {_belongs_to(name, "uncertainty", figures): value for name, value in uncertain.items()}
    if not figures and not limits:
        return []
    lines = (
        [told_in(say("| measured | value | limit | left |")), "|---|--:|---|--:|"]
        if limits
        else [told_in(say("| measured | value |")), "|---|--:|"]
    )
    for name, value in figures.items():
        row = f"| {_plain(name)} | {_written(name, value, spread.get(name))} |"
        if limits:
            limit = of.get(name)
            row += (
                f" {_limit(name, limits[limit], origin)} | {_left(name, value, limits[limit])} |" if limit else " | |"
            )
        lines.append(row)
    lines += [
        f"| {_plain(name)} | | {_limit(name, limits[name], None, sign='')} | |"
        for place, name in of.items()
        if not place
    ]
    return lines


def picture_text(picture: Picture) -> str:
    """A picture that is seen without a click, and its caption.

    Allure 3 shows a PNG in Markdown, and neither an SVG there nor anything that is an attachment until it is opened.
    """
    caption = markdown(picture.caption)
    data = base64.b64encode(picture.png).decode("ascii")
    return f"![{caption.replace('[', '(').replace(']', ')')}](data:image/png;base64,{data})\n\n*{caption}*"


def markdown(text: str) -> str:
    """Text that Markdown leaves as it is."""
    text = text.replace("\\", "\\\\").replace("&", "&amp;").replace("<", "&lt;").replace("\n", " ")
    for sign in "|*_`[]~":
        text = text.replace(sign, f"\\{sign}")
    return text


def _belongs_to(name: str, word: str, figures: Mapping[str, Scalar]) -> str:
    """The figure that ``limit_…`` or ``uncertainty_…`` is of: of that very name, else the first of its unit."""
    rest = name.removeprefix(word).removeprefix("_")
    if rest in figures:
        return rest
    unit = f"_{rest}" if rest else ""
    own = _unit(name)[0]
    for figure, value in figures.items():
        number = isinstance(value, (int, float)) and not isinstance(value, bool)
        if number and figure.endswith(unit) and (_unit(figure)[0] == own or not rest):
            return figure
    return ""


def _alike(figure: str, figures: Mapping[str, Scalar]) -> list[str]:
    """One limit may hold for the same figure of several phases: ``ramp_thermal_…`` and ``steady_thermal_…``."""
    what = figure.partition("_")[2]
    own = next((end for end, _, _ in _UNITS if f"_{what}" == end), "")
    return [figure] if own or not what else [name for name in figures if name.partition("_")[2] == what]


def _unit(name: str) -> tuple[str, int]:
    return next(((unit, decimals) for end, unit, decimals in _UNITS if name.endswith(end)), ("", 2))


def _plain(name: str) -> str:
    """``baseline_celsius`` is ``baseline``."""
    end = next((end for end, _, _ in _UNITS if name.endswith(end)), "")
    return name.removesuffix(end).replace("_", " ") or name


def _written(name: str, value: Scalar, uncertainty: Scalar = None) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if not isinstance(value, (int, float)):
        return markdown(str(value))
    if not math.isfinite(value):
        return "–"
    unit, decimals = _unit(name)
    if name in _SHARES or name == "limit":
        unit, decimals, value = "%", 0, 100 * value
        uncertainty = 100 * uncertainty if isinstance(uncertainty, (int, float)) else None
    if isinstance(value, int) and not unit:
        return f"{value:,}"
    text = f"{value:,.{decimals}f}" if unit != "s" else f"{value:,.3g}" if abs(value) < 1000 else f"{value:,.0f}"
    if isinstance(uncertainty, (int, float)):
        text += f" ± {max(float(uncertainty), 0.5 * 10**-decimals):.{decimals}f}"
    return f"{text} {unit}".rstrip()


def _limit(figure: str, limit: Scalar, origin: Scalar, *, sign: str | None = None) -> str:
    if isinstance(limit, bool) or not isinstance(limit, (int, float)):
        return markdown(str(limit))
    unit, _ = _unit(figure)
    value = f"{100 * limit:g} %" if figure in _SHARES else f"{limit:.4g} {unit}".rstrip()
    if sign is None:
        sign = "≥ " if figure in _AT_LEAST else "≤ "
    return f"{sign}{value}" + (f" ({markdown(str(origin))})" if origin else "")


def _left(figure: str, value: Scalar, limit: Scalar) -> str:
    if not isinstance(value, (int, float)) or not isinstance(limit, (int, float)):
        return ""
    left = value - limit if figure in _AT_LEAST else limit - value
    return _written(figure, left) if left >= 0 else f"**{_written(figure, left)}**"
