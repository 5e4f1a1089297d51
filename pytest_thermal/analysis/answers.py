"""Yes, no, or not known: what a criterion on uncertain figures can say."""

from __future__ import annotations

from enum import Enum


class Answer(str, Enum):
    """What the figures say to a question, at their confidence."""

    YES = "yes"
    NO = "no"
    UNKNOWN = "unknown"
    """The figures allow both, or there are none: never to be read as a yes."""

    def __str__(self) -> str:
        return self.value
