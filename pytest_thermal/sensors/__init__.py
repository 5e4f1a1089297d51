"""What a machine can measure: sources of readings, each reading a value or missing with its reason.

``discover(bench_specs(bench.monitor))`` says what there is; ``SensorSet`` reads it; ``open_source`` makes one source
again, in another process if need be.
"""

from __future__ import annotations

from pytest_thermal.model.kinds import Kind, kind_of
from pytest_thermal.sensors.opening import SpecError, open_source
from pytest_thermal.sensors.registry import Discovery, Found, SensorSet, discover
from pytest_thermal.sensors.source import Absent, Availability, Source, SourceSpec, TellsAbsent

__all__ = [
    "Absent",
    "Availability",
    "Discovery",
    "Found",
    "Kind",
    "SensorSet",
    "Source",
    "SourceSpec",
    "SpecError",
    "TellsAbsent",
    "discover",
    "kind_of",
    "open_source",
]
