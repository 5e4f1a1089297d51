"""What stands on a test's page in Allure, in Markdown: the verdict, figures against their limits, and a picture."""

from __future__ import annotations

import base64
import math
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

from pytest_thermal.model import Finding, Outcome
from pytest_thermal.model.findings import Scalar
from pytest_thermal.model.said import say
from pytest_thermal.reporting.measured import SHARES, Measured, measured, unit_at_end

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
    lines += ["", *(evidence_table(finding.evidence, check=finding.check, told_in=told) if table is None else table)]
    if simulated:
        lines += ["", told(SIMULATED)]
    return "\n".join(lines)


def evidence_table(
    evidence: Mapping[str, Scalar], *, check: str = "", told_in: Callable[[str], str] = str
) -> list[str]:
    """What was measured, each figure beside its limit and what is left to it; empty where nothing was."""
    told = measured(evidence, check=check)
    if not told.figures and not told.loose_limits:
        return []
    with_limits = bool(told.loose_limits) or any(one.limit_name for one in told.figures)
    lines = (
        [told_in(say("| measured | value | limit | left |")), "|---|--:|---|--:|"]
        if with_limits
        else [told_in(say("| measured | value |")), "|---|--:|"]
    )
    for one in told.figures:
        row = f"| {_plain(one.name)} | {_written(one.name, one.value, one.uncertainty)} |"
        if with_limits:
            row += f" {_limit_of(one)} | {_left(one)} |" if one.limit_name else " | |"
        lines.append(row)
    lines += [f"| {_plain(name)} | | {_limit(name, value)} | |" for name, value in told.loose_limits.items()]
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


def _plain(name: str) -> str:
    """``baseline_celsius`` is ``baseline``."""
    unit = unit_at_end(name)
    return name.removesuffix(unit.end if unit is not None else "").replace("_", " ") or name


def _written(name: str, value: Scalar, uncertainty: Scalar = None) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if not isinstance(value, (int, float)):
        return markdown(str(value))
    if not math.isfinite(value):
        return "–"
    found = unit_at_end(name)
    unit, decimals = (found.sign, found.decimals) if found is not None else ("", 2)
    if name in SHARES or name == "limit":
        unit, decimals, value = "%", 0, 100 * value
        uncertainty = 100 * uncertainty if isinstance(uncertainty, (int, float)) else None
    if isinstance(value, int) and not unit:
        return f"{value:,}"
    text = f"{value:,.{decimals}f}" if unit != "s" else f"{value:,.3g}" if abs(value) < 1000 else f"{value:,.0f}"
    if isinstance(uncertainty, (int, float)):
        text += f" ± {max(float(uncertainty), 0.5 * 10**-decimals):.{decimals}f}"
    return f"{text} {unit}".rstrip()


def _limit_of(one: Measured) -> str:
    sign = "≥ " if one.at_least else "≤ "
    return f"{sign if _is_number(one.limit) else ''}{_limit(one.name, one.limit)}" + (
        f" ({markdown(one.limit_origin)})" if one.limit_origin and _is_number(one.limit) else ""
    )


def _limit(name: str, limit: Scalar) -> str:
    if not isinstance(limit, (int, float)) or isinstance(limit, bool):
        return markdown(str(limit))
    unit = unit_at_end(name)
    return f"{100 * limit:g} %" if name in SHARES else f"{limit:.4g} {unit.sign if unit is not None else ''}".rstrip()


def _left(one: Measured) -> str:
    if not isinstance(one.value, (int, float)) or not isinstance(one.limit, (int, float)):
        return ""
    left = one.value - one.limit if one.at_least else one.limit - one.value
    return _written(one.name, left) if left >= 0 else f"**{_written(one.name, left)}**"


def _is_number(value: Scalar) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)
