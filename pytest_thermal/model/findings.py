"""What a check concluded, and the words it is told in."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum

from pytest_thermal.model.said import joined, say

LAYERS = (
    "name",
    "connection",
    "tls",
    "http",
    "key",
    "models",
    "chat",
    "stream",
    "concurrency",
    "quota",
    "scheduler",
    "interconnect",
)
"""The access layers, from outside in."""


def is_outside(layer: str, other: str) -> bool:
    """Whether ``layer`` stands outside ``other``: a fault in it hides everything in ``other``."""
    return LAYERS.index(layer) < LAYERS.index(other)


class Outcome(str, Enum):
    """How a check ended. Only ``PASSED`` says that something was measured and found good."""

    PASSED = "passed"
    FAILED = "failed"
    INCONCLUSIVE = "inconclusive"
    """It could not be measured: never a pass."""
    BLOCKED = "blocked"
    """An outer layer failed, so this one was not tried."""
    SKIPPED = "skipped"
    """It does not apply to this bench (no TLS in the address, no RDMA device …); the reason is in ``seen``."""

    def __str__(self) -> str:
        return self.value


Scalar = str | int | float | bool | None


@dataclass(frozen=True, kw_only=True)
class Finding:
    """What one check concluded about one part of the bench, with its evidence and the next thing to try."""

    check: str
    """Id of the check, as in the test's name: ``chat_usage`` for ``test_chat_usage``."""
    layer: str
    """The layer at fault; for any other outcome the layer the check belongs to."""
    subject: str
    """What was checked: the domain, or a sensor."""
    outcome: Outcome
    seen: str
    """What was seen, with numbers and units."""
    likely: str = ""
    advice: str = ""
    evidence: Mapping[str, Scalar] = field(default_factory=dict)
    warnings: tuple[str, ...] = ()
    """Things a reader should know although they decide nothing."""
    transcript: str = ""
    """The exchange that proves it, as text, secrets replaced."""
    duration_seconds: float = 0.0

    @property
    def first_line(self) -> str:
        """The layer and what was seen; one that is not decided says so first."""
        if self.outcome is Outcome.INCONCLUSIVE:
            return say("inconclusive: {layer}: {seen}", layer=self.layer, seen=self.seen)
        if self.outcome is Outcome.BLOCKED:
            return say("blocked: {layer}: {seen}", layer=self.layer, seen=self.seen)
        return say("{layer}: {seen}", layer=self.layer, seen=self.seen)

    @property
    def message(self) -> str:
        """The text a person reads: what was seen, then ``likely:`` and ``try:`` lines if there is something to say."""
        return told_lines(self.first_line, likely=self.likely, remedy=self.advice)


def told_lines(seen: str, *, likely: str, remedy: str) -> str:
    """What was seen, and below it ``likely:`` and ``try:`` lines if there is something to say."""
    lines = [seen]
    if likely:
        lines.append(say("likely: {likely}", likely=likely))
    if remedy:
        lines.append(say("try: {remedy}", remedy=remedy))
    return joined("\n", lines)
