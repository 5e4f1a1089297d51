"""Just enough PromQL: the selectors in an expression, the unit that its metrics' names tell, and selectors of ours."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from pytest_thermal.model import Unit

_TOKEN = re.compile(
    r"""(?P<space>\s+|\#[^\n]*)|(?P<text>"(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*'|`[^`]*`)"""
    r"""|(?P<word>[A-Za-z_:][\w:]*)|(?P<number>[\d.][\w.]*)|(?P<sign>.)""",
    re.DOTALL,
)
_LISTS = frozenset({"by", "without", "on", "ignoring", "group_left", "group_right"})
"""What a list of labels follows."""
_WORDS = frozenset({"and", "or", "unless", "atan2", "offset", "bool", "start", "end", "inf", "nan", *_LISTS})
_AGGREGATES = frozenset({
    "sum", "avg", "min", "max", "count", "group", "stddev", "stdvar", "topk", "bottomk", "quantile", "count_values",
})  # fmt: skip
_RATES = re.compile(r"\b(?:rate|irate|deriv)\s*\(")
_NAME_IN_BRACES = re.compile(r"""__name__\s*=\s*["']([^"']*)["']""")

UNITS: Mapping[str, tuple[Unit, float]] = {
    "celsius": (Unit.CELSIUS, 1.0),
    "rpm": (Unit.RPM, 1.0),
    **dict.fromkeys(("watts", "watt"), (Unit.WATTS, 1.0)),
    "percent": (Unit.PERCENT, 1.0),
    "ratio": (Unit.PERCENT, 100.0),
    **dict.fromkeys(("volts", "volt"), (Unit.VOLTS, 1.0)),
    **dict.fromkeys(("amperes", "ampere", "amps"), (Unit.AMPERES, 1.0)),
    "pascals": (Unit.PASCALS, 1.0),
    "hertz": (Unit.MEGAHERTZ, 1e-6),
    "bytes": (Unit.BYTES, 1.0),
    "liters_per_minute": (Unit.LITERS_PER_MINUTE, 1.0),
}
"""By the end of a metric's name: its unit, and what one is in ours (https://prometheus.io/docs/practices/naming/)."""


@dataclass(frozen=True, kw_only=True)
class Selector:
    """A selection of series within an expression."""

    name: str
    """The metric's; empty where the braces do not name one."""
    text: str


def selectors(expression: str) -> tuple[Selector, ...]:
    """Every selection of series in ``expression``, in their order; ranges and offsets off. None where it is no PromQL.

    Prometheus itself says whether the expression is one: this only looks for what is not a function or a keyword.
    """
    return tuple(dict.fromkeys(_selectors([match for match in _TOKEN.finditer(expression) if not match["space"]])))


def _selectors(tokens: Sequence[re.Match[str]]) -> Iterator[Selector]:
    place = 0
    while place < len(tokens):
        token, after = tokens[place], tokens[place + 1 : place + 2]
        next_sign = after[0][0] if after else ""
        word = token["word"]
        place += 1
        if token[0] == "[":
            place = _end(tokens, place, "]")
        elif word and word.casefold() in _LISTS and next_sign == "(":
            place = _end(tokens, place, ")")
        elif word and (next_sign == "(" or word.casefold() in _WORDS | _AGGREGATES):
            continue
        elif word and next_sign == "{":
            end = _end(tokens, place, "}")
            yield Selector(name=word, text=_text(tokens[place - 1 : end]))
            place = end
        elif word:
            yield Selector(name=word, text=word)
        elif token[0] == "{":
            end = _end(tokens, place, "}")
            text = _text(tokens[place - 1 : end])
            named = _NAME_IN_BRACES.search(text)
            yield Selector(name=named[1] if named else "", text=text)
            place = end


def _end(tokens: Sequence[re.Match[str]], place: int, sign: str) -> int:
    """The place behind the next ``sign``."""
    found = next((number for number in range(place, len(tokens)) if tokens[number][0] == sign), len(tokens) - 1)
    return found + 1


def _text(tokens: Sequence[re.Match[str]]) -> str:
    return "".join(token[0] for token in tokens)


def unit_of(expression: str, known: Mapping[str, tuple[Unit, float]]) -> tuple[Unit, float] | None:
    """What ``expression`` measures, by its metrics' names: unit, and what one of its numbers is in ours.

    ``known`` has metrics whose names do not say it. None where they say nothing, or not all the same.
    """
    rated = bool(_RATES.search(expression))
    found = {_unit(one.name, known, rated=rated) for one in selectors(expression)} - {None}
    return found.pop() if len(found) == 1 else None


def _unit(name: str, known: Mapping[str, tuple[Unit, float]], *, rated: bool) -> tuple[Unit, float] | None:
    if name in known:
        return known[name]
    # A rule is called level:metric:operations.
    for part in name.split(":"):
        bare = part.removesuffix("_total")
        if rated and bare.endswith("_joules"):
            return Unit.WATTS, 1.0
        for end, unit in UNITS.items():
            if bare == end or bare.endswith(f"_{end}"):
                return unit
    return None


def selector(names: Sequence[str], labels: Mapping[str, Sequence[str]]) -> str:
    """A selector of the metrics ``names`` whose labels have one of these values; no name, any metric."""
    first = [f"__name__=~{_quoted('|'.join(re.escape(name) for name in names))}"] if names else []
    return "{" + ",".join([*first, *(_matcher(name, values) for name, values in labels.items())]) + "}"


def _matcher(name: str, values: Sequence[str]) -> str:
    # An exporter's port is no part of what a person calls the host.
    port = "(:[0-9]+)?" if name == "instance" else ""
    patterns = [
        re.escape(value) + (port if not re.search(r":\d+$", value) else "") for value in values
    ]  # fmt: skip
    return f"{name}=~{_quoted('|'.join(patterns))}"


def _quoted(pattern: str) -> str:
    # re.escape's backslashes are RE2's too; within quotes each is written twice.
    return '"' + pattern.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n") + '"'


def marked(expression: str, mark: str, value: str) -> str:
    """The expression's series, each with a label more."""
    return f'label_replace({expression},"{mark}","{value}","","")'
