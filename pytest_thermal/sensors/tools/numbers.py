"""A command that prints nothing but temperatures.

The rule: a number with a unit is what its unit says. Without one, 1000 and more are millidegrees, up to 150 degrees,
and an answer that has both, or anything between, is refused. Numbers with labels are known by their labels; numbers
alone by their place, so that an answer with more or fewer of them than the first is refused as a whole.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from pytest_thermal.model import Missing, Unit
from pytest_thermal.sensors.sysfs.files import slug
from pytest_thermal.sensors.tools.answer import Answer, Problem, Raw, Row
from pytest_thermal.sensors.tools.printed import Printed
from pytest_thermal.sensors.tools.tool import Field, Tool

_NUMBER = r"[-+]?\d+(?:\.\d+)?"
_VALUE = re.compile(
    rf"({_NUMBER})\s?(m?(?:°\s?C|℃|C|c))?|\[?(?:n/?a|not supported|unknown error|err!?)\]?|-{{1,2}}", re.IGNORECASE
)
_LIST = re.compile(rf"(?:{_VALUE.pattern})(?:[\s,;]+(?:{_VALUE.pattern}))*", re.IGNORECASE)
_LABELLED = re.compile(r"([A-Za-z][^:=]{0,60}?)\s*(?::\s|=)\s*(\S.*)")
_NUMBERED = re.compile(r"(?:gpu|npu|mlu|dcu|xpu|card|device)?\s*#?(\d+)", re.IGNORECASE)
_SOMETHING_ELSE = re.compile(
    r"(?<![a-z])(?:id|ids|index|count|number|capacity|usage|used|free|total|mem\w*|hbm|ddr|power|pwr|watts?|volt\w*"
    r"|current|clock|clk|freq\w*|util\w*|rate|fan|rpm|version|ver|pid|port|width|error\w*|limit|threshold|max\w*|min\w*"
    r"|slowdown|shutdown|critical|target|margin|t\.?limit|health|serial)(?![a-z])"
    r"|[(\[](?!\s*m?°?\s*c\s*[)\]])[^)\]]*[)\]]",
    re.IGNORECASE,
)
"""In a label: of something else than a temperature that is now. A piece of another tool's answer has such."""
_MOST_DEGREES = 150.0
_LEAST_MILLIDEGREES = 1000.0

DEGREES, MILLIDEGREES = "number, as degrees", "number, as millidegrees"

TOOL = Tool(
    name="numbers",
    program="",
    maker="",
    device="gpu",
    queries=(),
    layouts=(),
    fields=(Field(quantity="temperature_celsius", unit=Unit.CELSIUS, names=(DEGREES, MILLIDEGREES)),),
)


def numbers(out: Printed, _arguments: Sequence[str]) -> Answer | None:
    """Lines of numbers, with or without labels and units; None where a line is anything else."""
    lines = [line.strip() for line in out.lines if line.strip()]
    # A single number often comes without a line end; anything more without one was cut off.
    if out.torn and not lines and _VALUE.fullmatch(out.torn.strip()):
        lines = [out.torn.strip()]
    elif out.torn:
        return None
    if not lines:
        return None
    labelled = [_LABELLED.fullmatch(line) for line in lines]
    if any(re.search(r"\d,\d", line) for line in lines):
        said = f"printed {lines[0][:80]!r}: a comma between digits may be a decimal comma; print one number a line"
        return Answer(problem=Problem(missing=Missing.NOT_UNDERSTOOD, said=said))
    if all(match and _VALUE.fullmatch(match[2]) for match in labelled):
        other = next((match[1] for match in labelled if match and _SOMETHING_ELSE.search(_words(match[1]))), None)
        if other is not None:
            said = f"printed {other[:60]!r} among its labels, which is no temperature"
            return Answer(problem=Problem(missing=Missing.NOT_UNDERSTOOD, said=said))
        found = [(match[1], match[2]) for match in labelled if match]
    elif all(_LIST.fullmatch(line) for line in lines):
        values = [match[0] for line in lines for match in _VALUE.finditer(line)]
        found = [(str(order), value) for order, value in enumerate(values)]
    else:
        return None
    # Words alone, such as an error with a colon in it, are no answer of this kind.
    return _answer(found) if any(re.search(r"\d", value) for _, value in found) else None


def _words(label: str) -> str:
    return label.replace("_", " ")


def _answer(found: Sequence[tuple[str, str]]) -> Answer:
    parsed = [(label, value, _VALUE.fullmatch(value)) for label, value in found]
    bare = [float(match[1]) for _, _, match in parsed if match and match[1] and not match[2]]
    milli = [number for number in bare if abs(number) >= _LEAST_MILLIDEGREES]
    small = [number for number in bare if 0 < abs(number) <= _MOST_DEGREES]
    if len(milli) + len(small) + bare.count(0.0) != len(bare) or (milli and small):
        said = f"printed {bare[:8]}: neither all degrees (up to 150) nor all millidegrees (from 1000)"
        return Answer(problem=Problem(missing=Missing.NOT_UNDERSTOOD, said=said))
    labels = [label for label, _, _ in parsed]
    if len(set(labels)) != len(labels):
        return Answer(problem=Problem(missing=Missing.NOT_UNDERSTOOD, said="printed one label twice"))
    return Answer(rows=tuple(_row(label, value, match, bool(milli)) for label, value, match in parsed))


def _row(label: str, value: str, match: re.Match[str] | None, milli: bool) -> Row:
    unit = (match[2] or "") if match else ""
    is_milli = unit.lower().startswith("m") or (not unit and milli)
    number = match[1] if match and match[1] else value
    numbered = _NUMBERED.fullmatch(label)
    return Row(
        key=numbered[1] if numbered else slug(label),
        cells={MILLIDEGREES if is_milli else DEGREES: Raw(number, "mC" if is_milli else "C")},
        identities=() if numbered else (label,),
    )
