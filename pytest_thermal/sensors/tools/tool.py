"""The one shape of every vendor's tool: commands, deadline, layouts, and the table of fields."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from pytest_thermal.model import Missing, Unit
from pytest_thermal.sensors.tools.answer import Answer, Problem, Row, normal_bus_id
from pytest_thermal.sensors.tools.printed import Printed

Layout = Callable[[Printed, Sequence[str]], Answer | None]
"""Reads what was printed by the arguments given; None where it is not of this layout at all."""

Adapt = Callable[[Sequence[str], Printed, Sequence[str]], Sequence[str] | None]
"""Other arguments to try after an answer without rows, given the identities of devices that work; None: none are."""


@dataclass(frozen=True, kw_only=True)
class Symptom:
    """Something a tool says where it has nothing to show."""

    pattern: re.Pattern[str]
    """Looked for in each line. A group ``device`` is the one it is about."""
    missing: Missing
    meaning: str = ""
    """For the person who reads it."""


def symptom(pattern: str, missing: Missing, meaning: str = "") -> Symptom:
    """A symptom whose ``pattern`` fits in any case."""
    return Symptom(pattern=re.compile(pattern, re.IGNORECASE), missing=missing, meaning=meaning)


COMMON_SYMPTOMS = (
    symptom("error while loading shared libraries", Missing.DEVICE_ERROR, "the tool's own installation is broken"),
    symptom("permission denied|operation not permitted|not permitted|must be root", Missing.UNREADABLE),
    symptom(
        r"\bno (supported )?\w* ?(devices?|gpus?|cards?|accelerators?) (was |were )?(found|detected)"
        r"|(devices?|gpus?|cards?) not found|there is no \w+ (device|card)",
        Missing.ABSENT,
        "the driver sees no card",
    ),
    symptom(
        r"driver.*(not (loaded|initiali[sz]ed|running|found|installed)|fail|mismatch)"
        r"|fail(ed)? to (init|open|get|connect|load)|initiali[sz]ation failed|cannot open",
        Missing.DEVICE_ERROR,
        "the driver is out of reach",
    ),
)
"""What tools of many vendors say where they have nothing to show."""


@dataclass(frozen=True, kw_only=True)
class Field:
    """One quantity that a tool gives of each device."""

    quantity: str
    """What follows the device in the sensor's id: ``memory.temperature_celsius``."""
    unit: Unit
    names: tuple[str, ...]
    """What versions and layouts of the tool call it, in :func:`~pytest_thermal.sensors.tools.answer.header`'s spelling.

    The first that an answer has is taken.
    """
    instead: tuple[str, ...] = ()
    """Cells that say why there is no figure, where none of ``names`` is in a later answer."""
    scale: float = 1.0
    """What one is in ``unit`` where neither cell nor header names a unit."""
    limits: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """By the limit's name: the cells that tell it, in the unit of this field."""
    limits_of: Mapping[str, Mapping[str, tuple[str, ...]]] = field(default_factory=dict)
    """More limits, of one of ``names`` only: a hot spot has another than an edge."""
    of_card: bool = False
    """Whether a card of several chips has one figure for all: printed once, it is the card's and not that chip's."""
    zero_is_blank: bool = False
    """Whether a 0 means that there is no such sensor."""


@dataclass(frozen=True, kw_only=True)
class Query:
    """One way to ask."""

    arguments: tuple[str, ...]
    """``{card}`` and ``{chip}`` are put in for each device of the tool's roster.

    An option whose ``{chip}`` a device does not have is left out.
    """
    layout: Layout
    adapt: Adapt | None = None
    loop: tuple[str, ...] = ()
    """Added to the arguments, it prints its answer once a second until it is ended; empty where it cannot."""
    only_named: re.Pattern[str] | None = None
    """Of the roster, only devices of such a name are asked."""

    def calls(self, roster: Sequence[Row]) -> dict[tuple[str, ...], str]:
        """The arguments of each call that this query stands for, and the key of the device it is about."""
        found: dict[tuple[str, ...], str] = {}
        for row in roster:
            card, _, chip = row.key.partition("/")
            if self.only_named is not None and not self.only_named.search(row.text("name")):
                continue
            arguments = [one.replace("{card}", card).replace("{chip}", chip) for one in self.arguments]
            if not chip and "{chip}" in self.arguments:
                place = self.arguments.index("{chip}")
                del arguments[place - 1 : place + 1]
            found.setdefault(tuple(arguments), row.key)
        return found


@dataclass(frozen=True, kw_only=True)
class Tool:
    """A vendor's tool."""

    name: str
    """The source's name."""
    program: str
    maker: str
    """Whose devices these are; part of their names where another maker's have the same."""
    device: str
    """What ids call its devices: ``gpu``, ``npu``, ``mlu``."""
    queries: tuple[Query, ...]
    """Alternatives, best first: the first that gives rows is used. With a roster, all of them are."""
    layouts: tuple[Layout, ...]
    """Every layout its versions and sub-commands print; a user's own command may print any."""
    fields: tuple[Field, ...]
    symptoms: tuple[Symptom, ...] = ()
    """The first that fits a line is what it means."""
    census: Callable[[], Sequence[str]] | None = None
    """Identities of the devices that the kernel knows, for where the tool shows none because of one."""
    keys_stay: bool = True
    """Whether a device keeps its number when another one is lost."""
    roster: tuple[Query, ...] = ()
    """Alternatives that list the devices which ``{card}`` and ``{chip}`` stand for."""
    at_start: tuple[Query, ...] = ()
    """Asked once, for limits that the other queries do not tell."""
    register: tuple[Query, ...] = ()
    """Alternatives that tell which device each number is, and whether it is well, where the queries show numbers only.

    Asked at the start, and again whenever the numbers have changed.
    """
    amend: Callable[[Row], Row] | None = None
    """Takes out of a row what its figures are known not to be."""
    fallback_for: str = ""
    """Name of the source it stands in for, where that one is not available."""
    least_period_seconds: float = 2.0
    """Between two readings."""
    deadline_seconds: float = 10.0
    """For one reading, however many commands it takes."""
    start_seconds: float = 30.0
    """For the first one: a driver may have to wake its devices."""
    environ: Mapping[str, str] = field(default_factory=dict)
    """For the tool. A ``PATH`` of any kind is searched after the one that is set."""

    def problem(self, out: Printed) -> Problem | None:
        """What the tool says is wrong, where it does."""
        # Hardly any output says so, and some have thousands of lines.
        possible = [symptom for symptom in self.symptoms if symptom.pattern.search(out.text)]
        for line in (*out.lines, out.torn) if possible else ():
            # A box holds figures and their titles, and never a message.
            if line.lstrip().startswith(("|", "+")):
                continue
            for symptom in possible:
                match = symptom.pattern.search(line)
                if match:
                    device = match.groupdict().get("device") or ""
                    said = line.strip()[:200] + (f" ({symptom.meaning})" if symptom.meaning else "")
                    return Problem(missing=symptom.missing, said=said, identity=normal_bus_id(device))
        return None
