"""What goes wrong with loads, told to the person at the bench."""

from __future__ import annotations

from pytest_thermal.model.told_error import ToldError


class LoadError(ToldError):
    """A load that cannot be made."""
