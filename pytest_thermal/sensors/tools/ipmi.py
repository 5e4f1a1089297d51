"""A baseboard controller (BMC) by ``ipmitool``: fans, pumps, coolant and inlet temperatures, power supplies.

``sdr elist full`` tells each sensor by number and entity; the other forms (``sdr list``, ``sensor``, ``-c``) by its
name alone. Rows are known by the shape of their fields, never by columns. Fahrenheit and Kelvin become Celsius; volts,
amperes, ``liters`` (per which time is not printed) and discrete states are left out.
"""

from __future__ import annotations

import csv
import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from pytest_thermal.model import Missing, Unit
from pytest_thermal.sensors.bmc_names import MARGIN, POWER, SHARE, SPEED, TEMPERATURE, called, left_out, measures
from pytest_thermal.sensors.tools.answer import Answer, Raw, Row
from pytest_thermal.sensors.tools.figures import absent
from pytest_thermal.sensors.tools.printed import Printed
from pytest_thermal.sensors.tools.tool import COMMON_SYMPTOMS, Field, Layout, Query, Tool, symptom

UNREAD = "unread"
"""The cell of a sensor that gives no figure now: its unit is not printed then."""
NAME, NUMBER = "name", "number"
STATE = "state"
"""The cell of a leak detector, which the bench names: which of all discrete sensors is one is told by nothing else."""
_NO_FIGURES = frozenset({NAME, NUMBER, UNREAD})

FIELDS = tuple(
    Field(quantity=quantity, unit=unit, names=(cell,), instead=(UNREAD,))
    for cell, quantity, unit in (
        (TEMPERATURE, "temperature_celsius", Unit.CELSIUS),
        (MARGIN, "temperature_kelvin_margin", Unit.KELVIN_MARGIN),
        (SPEED, "speed_rpm", Unit.RPM),
        (SHARE, "speed_percent", Unit.PERCENT),
        (POWER, "power_watts", Unit.WATTS),
        (STATE, "detector_state", Unit.STATE),
    )
)

_STATUS = r"ok|ns|na|nc|cr|nr|[ul](?:nc|cr|nr)"
_ELIST = re.compile(rf"(.*?)\s*\|\s*([0-9A-Fa-f]{{2}}h)\s*\|\s*({_STATUS})\s*\|\s*(\d+\.\s*\d+)\s*\|\s*(.*)")
_LIST = re.compile(rf"(.*?)\s*\|\s*([^|]*?)\s*\|\s*({_STATUS})")
_SENSOR = re.compile(
    rf"(.*?)\s*\|\s*([^|]*?)\s*\|\s*([^|]*?)\s*\|\s*({_STATUS}|0x[0-9a-f]+)\s*((?:\|\s*(?:na|-?\d+\.\d+)\s*){{6}})"
)
_CSV_FIELDS = (4, 10)
_FIGURE = re.compile(r"([-+]?\d+(?:\.\d+)?)\s*([A-Za-z%][A-Za-z /%]*)")
_LEAK = re.compile(r"leak(?:\d*|_.*)")
_STATES = (
    (re.compile(r"non-recoverable|state asserted|(?<!not )limit exceeded|performance lags", re.IGNORECASE), "2"),
    (re.compile(r"non-critical|predictive failure asserted", re.IGNORECASE), "1"),
    (re.compile(r"to critical|\bcritical from", re.IGNORECASE), "2"),
    (re.compile(r"deasserted|not exceeded|transition to ok|performance met", re.IGNORECASE), "0"),
)
"""What discrete sensors say (IPMI 2.0, table 42-2, in ipmitool's words): the first that fits is what it means."""
_NO_WORD = "(no state that ipmitool has a word for)"
"""An empty cell: nothing is asserted, or a state of the maker's own, for which ipmitool prints nothing either."""
_OF_WELL_BEING = re.compile(
    r"(?<![a-z])(?:ok|good|normal|healthy|dry|present|presence|no leak)(?![a-z])", re.IGNORECASE
)
"""In the name of a detector: asserted may be the good news then."""
_EITHER_WAY = re.compile(r"(?:de)?asserted|performance", re.IGNORECASE)
_ALL = ("sdr", "elist", "all")
"""Discrete sensors too, which takes longer."""
_NO_READING = frozenset({"ns", "na"})
"""The status of a sensor whose figure is none, whatever stands beside it."""


@dataclass(frozen=True, kw_only=True)
class _Said:
    """What one row says."""

    name: str
    text: str
    """The figure with its unit, or the word for none."""
    status: str
    number: str = ""
    entity: str = ""


def elist(out: Printed, _arguments: Sequence[str]) -> Answer | None:
    """``sdr elist``: ``name | number | status | entity | reading``."""
    return _piped(out, _ELIST, lambda one: _Said(
        name=one[0], number=one[1].lower(), status=one[2], entity=re.sub(r"\s", "", one[3]), text=one[4]
    ))  # fmt: skip


def short_list(out: Printed, _arguments: Sequence[str]) -> Answer | None:
    """``sdr list``: ``name | reading | status``."""
    return _piped(out, _LIST, lambda one: _Said(name=one[0], text=one[1], status=one[2]))


def sensor_table(out: Printed, _arguments: Sequence[str]) -> Answer | None:
    """``sensor``: ``name | figure | unit | status``, and six thresholds."""
    return _piped(out, _SENSOR, lambda one: _Said(name=one[0], text=f"{one[1]} {one[2]}".strip(), status=one[3]))


def comma_separated(out: Printed, _arguments: Sequence[str]) -> Answer | None:
    """``-c`` with any of these: ``name,figure,unit,status``; a sensor without a reading has two empty fields."""
    said: list[_Said] = []
    refused: list[str] = []
    for line in filter(None, out.lines):
        fields = next(csv.reader([line], quoting=csv.QUOTE_NONE), [])
        if len(fields) in _CSV_FIELDS and re.fullmatch(rf"{_STATUS}|0x[0-9a-f]+", fields[3].strip()):
            said.append(_Said(name=fields[0], text=f"{fields[1]} {fields[2]}".strip(), status=fields[3].strip()))
        elif "," in line:
            refused.append(line)
    # Many things have four fields: one row has to have a unit of these.
    return _answer(said, refused) if any(_figure(one) for one in said) else None


def _piped(out: Printed, shape: re.Pattern[str], said: Callable[[tuple[str, ...]], _Said]) -> Answer | None:
    matches = [(line, shape.fullmatch(line.strip())) for line in out.lines if "|" in line]
    found = [said(match.groups()) for _, match in matches if match]
    return _answer(found, [line for line, match in matches if not match]) if found else None


def _answer(said: Sequence[_Said], refused: Sequence[str]) -> Answer:
    """Rows with identities: two sensors of one name are told apart by their numbers, or not at all."""
    said = [replace(one, name=" ".join(one.name.split())) for one in said]
    # The whole list again is no second set of sensors.
    half = len(said) // 2
    said = said[:half] if half and said[:half] == said[half:] else said
    # Nor is a line again, where it tells the sensor's number.
    said = [one for order, one in enumerate(said) if not (one.number and one in said[:order])]
    marks = [" ".join(filter(None, (one.name, one.number, one.entity))) for one in said]
    times = Counter(marks)
    seen: Counter[str] = Counter()
    rows = []
    for one, mark in zip(said, marks, strict=True):
        seen[mark] += 1
        alone = times[mark] == 1
        key = (mark if alone else f"{mark} #{seen[mark]}").replace("/", "∕")
        rows.append(Row(key=key, cells=_cells(one), identities=(mark,) if alone and mark else ()))
    return Answer(rows=_apart([row for row in rows if set(row.cells) - {NAME, NUMBER}]), refused=tuple(refused))


def _cells(one: _Said) -> dict[str, Raw]:
    names = {NAME: Raw(one.name), NUMBER: Raw(one.number)}
    figure = _figure(one)
    if figure is not None and one.status not in _NO_READING:
        value, unit = figure
        kind = measures(one.name, unit)
        return {**names, kind: Raw(f"{value} {unit}")} if kind else names
    if not (absent(one.text) or one.status in _NO_READING):
        # A state in words; or what should be a figure, and is then not understood.
        return {**names, UNREAD: Raw(one.text)}
    word = Raw(one.text if one.text and absent(one.text) else one.status if one.status in _NO_READING else one.text)
    kind = measures(one.name, "")
    return {**names, UNREAD: word, **({kind: word} if kind else {})}


def _figure(one: _Said) -> tuple[str, str] | None:
    """The number and its unit in ours; None where the text is no number with a unit."""
    match = _FIGURE.fullmatch(one.text)
    if match is None:
        return None
    unit = match[2].strip().casefold()
    if unit in ("degrees f", "degrees k"):
        value = float(match[1])
        return f"{(value - 32.0) / 1.8 if unit.endswith('f') else value - 273.15:.2f}", "degrees C"
    return match[1], match[2].strip()


def _apart(rows: Sequence[Row]) -> tuple[Row, ...]:
    """Rows with what ids call their device: by the sensor's name, and where that is another's too, by its number."""
    kinds = [next((cell for cell in row.cells if cell not in _NO_FIGURES), "") for row in rows]
    names = [called(row.text(NAME)) for row in rows]
    taken = Counter(zip(names, kinds, strict=True))
    return tuple(
        replace(
            row,
            device=called(row.key, whole=True) if kind and taken[name, kind] > 1 else name,
            left_out=left_out(row.text(NAME), kind),
        )
        for row, name, kind in zip(rows, names, kinds, strict=True)
    )


def with_roles(roles: Mapping[str, str]) -> Tool:
    """The tool, where the bench knows better what some sensors are: by device, a sensor's name or number (``4ch``)."""
    if not roles:
        return TOOL
    layouts = {layout: _cast(layout, roles) for layout in TOOL.layouts}
    queries = tuple(replace(query, layout=layouts[query.layout]) for query in TOOL.queries)
    if any(_LEAK.fullmatch(device) for device in roles):
        queries = tuple(replace(query, arguments=_ALL) for query in queries)
    return replace(TOOL, queries=queries, layouts=tuple(layouts.values()))


def over_network(tool: Tool, *, host: str, user: str | None, cipher_suite: int | None) -> Tool:
    """The tool, asking the BMC at ``host`` (``host:port``). The password comes from the environment alone (``-E``)."""
    address = re.fullmatch(r"([^:]+|\[.+\])(?::(\d+))?", host)
    name, port = (address[1].strip("[]"), address[2]) if address else (host, None)
    options = [
        *("-I", "lanplus", "-H", name),
        *(("-p", port) if port else ()),
        *(("-U", user) if user else ()),
        *(("-C", str(cipher_suite)) if cipher_suite is not None else ()),
        "-E",
    ]
    return replace(
        tool, queries=tuple(replace(query, arguments=(*options, *query.arguments)) for query in tool.queries)
    )


def _cast(layout: Layout, roles: Mapping[str, str]) -> Layout:
    def cast(out: Printed, arguments: Sequence[str]) -> Answer | None:
        answer = layout(out, arguments)
        return replace(answer, rows=tuple(_in_roles(answer.rows, roles))) if answer else None

    return cast


def _in_roles(rows: Sequence[Row], roles: Mapping[str, str]) -> list[Row]:
    """The rows, those with a role called by it. One that two rows could have is nobody's."""
    owners: dict[int, str] = {}
    for device, name in roles.items():
        called_so = [
            order for order, row in enumerate(rows)
            if name.casefold() in (row.text(NAME).casefold(), row.text(NUMBER), row.key.casefold())
        ]  # fmt: skip
        if len(called_so) == 1:
            owners[called_so[0]] = device
    return [
        _as_device(row, owners[order]) if order in owners
        else replace(row, device=called(row.key, whole=True)) if row.device in roles
        else row
        for order, row in enumerate(rows)
    ]  # fmt: skip


def _as_device(row: Row, device: str) -> Row:
    cells = dict(row.cells)
    if _LEAK.fullmatch(device) and set(cells) <= _NO_FIGURES:
        cells[STATE] = Raw(_state(row.text(UNREAD), row.text(NAME)))
        return replace(row, cells=cells, device=device, expected=True, left_out="")
    kind = measures(device.replace("_", " "), "")
    if set(cells) <= _NO_FIGURES and absent(row.text(UNREAD)) and kind:
        # Silent when it was looked for: what it would measure is told by the role.
        cells[kind] = cells[UNREAD]
    return replace(row, cells=cells, device=device, expected=True, left_out="")


def _state(text: str, name: str) -> str:
    """A detector's words as 0, 1 or 2, the worst of several; as they stand where one is none of a detector's.

    What is not understood is never dry; a leak that is told beside it is one all the same.
    """
    if text in _NO_READING or (text and absent(text)):
        return text
    if not text:
        return _NO_WORD
    if _OF_WELL_BEING.search(name.replace("_", " ")) and _EITHER_WAY.search(text):
        return f"{text} of {name}"
    words = [one.strip() for one in text.split(",")]
    states = [next((state for meant, state in _STATES if meant.search(one)), "") for one in words]
    worst = max(states)
    return worst if worst == "2" or all(states) else text


TOOL = Tool(
    name="ipmi",
    program="ipmitool",
    maker="",
    device="bmc",
    queries=(Query(arguments=("sdr", "elist", "full"), layout=elist),),
    layouts=(elist, sensor_table, short_list, comma_separated),
    fields=FIELDS,
    symptoms=(
        symptom(
            "could not open device at /dev/ipmi",
            Missing.UNREADABLE,
            "no way to the BMC from here: it takes root, ipmi_si and ipmi_devintf, and in a container its /dev/ipmi0",
        ),
        symptom(
            "unable to establish",
            Missing.UNREADABLE,
            "the BMC does not answer there, or user or password are wrong, or IPMI over LAN is off",
        ),
        symptom(
            r"(get|unable to open).* SDR|sdr repository", Missing.UNREADABLE, "the BMC does not list its sensors now"
        ),
        symptom("insufficient privilege", Missing.UNREADABLE, "the user may not read sensors"),
        *COMMON_SYMPTOMS,
    ),
    # A controller of a hundred sensors takes seconds; what is asked more often is answered from its memory anyway.
    least_period_seconds=10.0,
    deadline_seconds=18.0,
    start_seconds=60.0,
)
