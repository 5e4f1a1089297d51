"""Nodes × cards as a table that is a picture: the deviation of each card as a number and as a colour."""

from __future__ import annotations

from collections.abc import Sequence

from pytest_thermal.findings.fleet.judgement import FleetJudgement
from pytest_thermal.findings.fleet.overview import Cell, Matrix, matrices, place_words
from pytest_thermal.reporting.run_page.markup import Markup, joined, tag
from pytest_thermal.reporting.run_page.numbers import number
from pytest_thermal.reporting.run_page.words import Words

STEPS = (0.4, 0.7, 1.0)
"""Shares of the allowed deviation from which on a cell has the next colour."""


def matrix_section(fleet: FleetJudgement, words: Words) -> Markup:
    """One table for each kind of temperature that stands for its device."""
    shown = [_matrix(fleet, one, words) for one in matrices(fleet)]
    return tag(
        "section",
        tag("h2", words("matrix")),
        *(shown or [tag("p", words("no_matrix"))]),
        id="matrix",
    )


def step_of(cell: Cell, allowed_celsius: float) -> str:
    """CSS class of a cell's colour: ``w1`` … ``w3`` warmer, ``k1`` … ``k3`` colder, empty in between."""
    share = abs(cell.deviation_celsius) / allowed_celsius if allowed_celsius > 0 else 0.0
    step = sum(share >= one for one in STEPS)
    return f"{'w' if cell.deviation_celsius > 0 else 'k'}{step}" if step else ""


def _matrix(fleet: FleetJudgement, matrix: Matrix, words: Words) -> Markup:
    nodes = in_rows(fleet)
    short = matrix.family.removesuffix(".temperature_celsius")
    says = words(
        "matrix_says",
        family=short,
        median=number(matrix.median_celsius, 1, unit="°C"),
        allowed=number(matrix.allowed_celsius, 1, unit="°C"),
        origin=words.told(matrix.limit_origin),
    )
    head = tag("tr", tag("th", words("node"), scope="col"), *(tag("th", one, scope="col") for one in matrix.devices))
    body = [
        tag(
            "tr",
            tag("th", tag("span", name), scope="row", title=words.told(place_words(fleet, name)) or None),
            *(_cell(matrix.cells.get((name, device)), matrix, words) for device in matrix.devices),
        )
        for name in nodes
    ]
    whole = tag("table", tag("thead", head), tag("tbody", *body))
    return joined(
        tag("h3", short),
        tag("p", says, class_="hint"),
        _scale(matrix),
        tag("div", whole, class_="scroll", tabindex="0"),
    )


def in_rows(fleet: FleetJudgement) -> Sequence[str]:
    """Nodes so that those of one place stand together, else in the fleet's order."""
    return sorted(fleet.roster.nodes, key=lambda name: place_words(fleet, name))


def _cell(cell: Cell | None, matrix: Matrix, words: Words) -> Markup:
    if cell is None:
        return tag("td", "", class_="none")
    classes = " ".join(filter(None, [step_of(cell, matrix.allowed_celsius), "off" if cell.is_outlier else ""]))
    own = number(cell.own_celsius, 1, sign=True, unit="°C")
    said = words("of_its_own", rise=number(cell.rise_celsius, 1, unit="°C"), own=own)
    return tag("td", number(cell.deviation_celsius, 1, sign=True), class_=classes or None, title=said)


def _scale(matrix: Matrix) -> Markup:
    limits = [share * matrix.allowed_celsius for share in STEPS]
    keys = [tag("span", f"≤ −{one:.1f}", class_=f"key k{3 - index}") for index, one in enumerate(reversed(limits))]
    keys.append(tag("span", "±", class_="key"))
    keys += [tag("span", f"≥ +{one:.1f}", class_=f"key w{index + 1}") for index, one in enumerate(limits)]
    return tag("div", *keys, " °C", class_="scale", aria_hidden="true")
