"""Findings that have one cause, together: it need not be read a dozen times."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, TypeVar

Told = TypeVar("Told", bound=Mapping[str, Any])
"""A finding as plain data (``finding_as_json``)."""


def of_one_cause(findings: Sequence[Told]) -> list[list[Told]]:
    """Findings of one outcome with one likely cause and one thing to try, in the order of the first of each."""
    groups: dict[tuple[str, ...], list[Told]] = {}
    for found in findings:
        cause = str(found["likely"]).split(":", 1)[0]
        groups.setdefault((found["outcome"], cause, found["advice"]), []).append(found)
    return list(groups.values())


def saying_the_same(findings: Sequence[Told]) -> list[list[Told]]:
    """Findings that were seen in the same words."""
    groups: dict[str, list[Told]] = {}
    for found in findings:
        groups.setdefault(found["seen"], []).append(found)
    return list(groups.values())
