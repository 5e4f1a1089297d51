"""What a picture shows, as plain data: worked out from the recording without a drawing library, and tested as it is."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from pytest_thermal.model.series import FloatArray

BandKind = Literal["outside", "window", "missing"]
"""Not part of the phase; the stretch that a figure is taken from; no readings there."""
RibbonKind = Literal["heat", "power"]


@dataclass(frozen=True, kw_only=True, eq=False)
class Curve:
    """Readings of one sensor."""

    label: str
    time_seconds: FloatArray
    values: FloatArray
    """NaN breaks the line."""
    place: int = 0
    """Which colour and stroke: one a device, the same in every picture of a run."""
    thin: bool = False
    """A part of a device whose own curve is there as well."""


@dataclass(frozen=True, kw_only=True)
class Limit:
    """A line that must not be crossed, over the whole width."""

    value: float
    label: str


@dataclass(frozen=True, kw_only=True)
class Band:
    """A stretch of time that is set off from the rest."""

    start_seconds: float
    end_seconds: float
    kind: BandKind


@dataclass(frozen=True, kw_only=True)
class Level:
    """A straight line over a stretch of time: a mean, a slope."""

    start_seconds: float
    end_seconds: float
    start_value: float
    end_value: float
    label: str = ""
    dotted: bool = False


@dataclass(frozen=True, kw_only=True)
class Mark:
    """One reading that matters."""

    time_seconds: float
    value: float
    label: str


@dataclass(frozen=True, kw_only=True)
class Arrow:
    """From one level to another."""

    time_seconds: float
    start_value: float
    end_value: float
    label: str


@dataclass(frozen=True, kw_only=True)
class Ribbon:
    """When a device slowed itself down."""

    label: str
    kind: RibbonKind
    spans: tuple[tuple[float, float], ...]
    """Start and end in seconds."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Bars:
    """Requests that ended in each stretch of time."""

    edge_seconds: FloatArray
    """Shape (n + 1,)."""
    answered_per_second: FloatArray
    """Shape (n,)."""
    failed_per_second: FloatArray


@dataclass(frozen=True, kw_only=True, eq=False)
class Panel:
    """One quantity over time."""

    unit: str
    """As it is written at the axis."""
    height: float = 1.0
    """Against the picture's other panels."""
    from_zero: bool = False
    curves: tuple[Curve, ...] = ()
    limits: tuple[Limit, ...] = ()
    bands: tuple[Band, ...] = ()
    levels: tuple[Level, ...] = ()
    marks: tuple[Mark, ...] = ()
    arrows: tuple[Arrow, ...] = ()
    ribbons: tuple[Ribbon, ...] = ()
    bars: Bars | None = None
    over: Limit | None = None
    """The area between the curves and this limit is filled where they are above it."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Scene:
    """One picture: panels over the same stretch of time."""

    panels: tuple[Panel, ...]
    start_seconds: float
    end_seconds: float
    origin_seconds: float
    """Where its clock shows 0."""
    origin: str
    """What began then: ``steady began``."""
    caption: str
    """What it shows and which limit, with its origin, in a sentence or two."""
    simulated: bool = False
