"""A finding on the wire between xdist's processes."""

from __future__ import annotations

from typing import Any

from pytest_thermal.model import Finding, Outcome
from pytest_thermal.model.said import Said, joined, say
from pytest_thermal.reporting.observed import finding_of, plain_finding


def kinds(data: Any) -> set[type]:
    """Of all values below it."""
    if isinstance(data, dict):
        return {type(data)}.union(*map(kinds, data.keys()), *map(kinds, data.values()))
    if isinstance(data, list):
        return {type(data)}.union(*map(kinds, data))
    return {type(data)}


def test_a_finding_crosses_as_builtin_data_and_keeps_its_words() -> None:
    found = Finding(
        check="phase",
        layer="phase",
        subject="steady",
        outcome=Outcome.FAILED,
        seen=say("{name} {seen}", name="steady", seen=say("is no phase of this run")),
        likely=joined("; ", [say("the disk is full"), "as it stands"]),
        advice="look",
        evidence={"origin": say("the disk is full"), "seconds": 1.5},
        warnings=(say("{phase} was entered without {names}", phase="steady", names="n2"),),
    )
    plain = plain_finding(found)
    # execnet takes these and no class of its own making.
    assert kinds(plain) <= {dict, list, str, float, bool, type(None)}
    told = finding_of(plain)
    assert (told.seen, told.likely, told.warnings) == (found.seen, found.likely, found.warnings)
    assert isinstance(told.seen, Said)
    assert told.seen.told({"{name} {seen}": "{seen}！", "is no phase of this run": "无此阶段"}) == "无此阶段！"
