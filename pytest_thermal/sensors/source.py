"""What a source of readings is, and how to describe one so that another process can make it again."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol, runtime_checkable

from pytest_thermal.model import Reading, Sensor

Scalar = str | int | float | bool | None


@dataclass(frozen=True, kw_only=True)
class Availability:
    """Whether a source can be used here, and what a person should know about that."""

    ok: bool
    reason: str = ""
    """Why not; or, of one that is ok, a remark."""


@runtime_checkable
class Source(Protocol):
    """Where sensors come from: a driver's files, a library, a tool.

    Made and used by one thread. Nothing a device or tool does raises: a failure is a missing reading.
    """

    name: str

    def probe(self) -> Availability:
        """Whether it works here. Cheap, and before anything else."""
        ...

    def sensors(self) -> Sequence[Sensor]:
        """What it measures: found at the first call, the same ever after, sorted by stable identity."""
        ...

    def read(self) -> Sequence[Reading]:
        """One reading of each sensor, in their order; one that cannot be had is missing with its reason."""
        ...

    def close(self) -> None:
        """Give files, handles and children back. The source is of no use afterwards."""
        ...


@dataclass(frozen=True, kw_only=True)
class Absent:
    """A sensor one would look for here, and why it is not among :meth:`Source.sensors`."""

    sensor: Sensor
    reading: Reading
    """Missing, with its reason."""


@runtime_checkable
class TellsAbsent(Protocol):
    """A source that also says what it does not offer, for the list a person reads. Optional."""

    def absent(self) -> Sequence[Absent]:
        """What was looked for and is not offered, in the order of its ids."""
        ...


@dataclass(frozen=True, kw_only=True)
class SourceSpec:
    """How to make a source, in this process or another (:func:`pytest_thermal.sensors.open_source`).

    Nothing but names and numbers, and never a secret: it may be written to a file.
    """

    name: str
    """As in :attr:`Source.name`, ``samples/<name>.csv`` and messages; letters, digits, ``-`` and ``_``."""
    factory: str
    """``package.module:callable``; called with the options as keyword arguments."""
    options: Mapping[str, Scalar] = field(default_factory=dict, hash=False)
    fallback_for: str = ""
    """Name of the source it stands in for: used only where that one is not available."""
    maker: str = ""
    """Whose devices it is about, where it is one maker's: another maker's ``gpu0`` is another device."""
    apart: str = ""
    """A word that its devices' names take on, where another maker's devices have these names: ``gpu_amd0``."""
    without: tuple[str, ...] = ()
    """Sensors of it that another source gives already."""
    from_outside: bool = False
    """Whether its numbers of processors and cards are its own, as those of a controller are.

    Where another source gives the same of them, its are left out: which of them is which cannot be told.
    """
    needed: Mapping[str, str] = field(default_factory=dict, hash=False)
    """Devices that the bench says are there, and what it says their sensor is called: without one there is no run."""
    secrets: tuple[str, ...] = ()
    """Environment variables with what it needs and nobody else is to have."""
    least_period_seconds: float = 0.0
    """Asking more often costs more than it tells, or heats what is measured."""
