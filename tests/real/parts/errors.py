"""What can keep a part from being had."""

from __future__ import annotations


class PartUnavailableError(Exception):
    """This machine cannot run the part (not root, a tool or a registry is missing); the text says why."""


class PartFailedError(Exception):
    """The part is installed, was started, and did not come up; the text holds the end of its log."""
