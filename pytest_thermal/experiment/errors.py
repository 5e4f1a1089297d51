"""What ends an experiment, told to the person at the bench."""

from __future__ import annotations

from pytest_thermal.model.told_error import ToldError


class ExperimentBrokenError(ToldError):
    """The bench could not be brought into the wanted state; nothing that needs it can be judged."""

    def __init__(self, seen: str, *, likely: str = "", remedy: str = "", phase: str = "") -> None:
        super().__init__(seen, likely=likely, remedy=remedy, lead=phase)
        self.phase = phase


class BenchBusyError(ExperimentBrokenError):
    """Somebody else loads this machine."""
