"""A finding as properties of its test: for JUnit files, report logs, and whatever else reads `user_properties`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pytest_thermal.plugin.evidence.node import node_of

if TYPE_CHECKING:
    from pathlib import Path

    import pytest

    from pytest_thermal.model import Finding
    from pytest_thermal.model.findings import Scalar


def add_properties(
    item: pytest.Item, found: Finding, *, simulated: bool, run: Path | None = None, node: str = ""
) -> None:
    """Say of a test what it found: verdict, value, unit, limit and its origin, run directory, node.

    Plain values only: anything else takes an xdist run down. A test that asks for several findings has the properties
    of each, in order. ``node`` is whom it is about, where that is not the node of the whole run.
    """
    from pytest_thermal.reporting.headline import headline
    from pytest_thermal.reporting.observed import plain_scalar

    properties: dict[str, Scalar] = {
        "check": found.check,
        "layer": found.layer,
        "subject": found.subject,
        "outcome": str(found.outcome),
        "seen": found.seen,
    }
    for name, value in found.evidence.items():
        plain = plain_scalar(value)
        if name not in properties and name != "simulated" and plain is not None:
            properties[name] = plain
    number = headline(found)
    if number is not None:
        properties |= {"value": number.value, "unit": number.unit}
        if number.limit is not None:
            limit_is = "least" if number.at_least else "most"
            properties |= {"limit": number.limit, "limit_is": limit_is, "limit_origin": number.limit_origin}
    if run is not None:
        properties["run_directory"] = str(run.resolve())
    properties["node"] = node or node_of(item.config)
    item.user_properties += [(f"thermal_{name}", plain_scalar(value)) for name, value in properties.items()]
    mark = ("thermal_simulated", simulated)
    if mark not in item.user_properties:
        item.user_properties.append(mark)
