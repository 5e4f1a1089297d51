"""What a recorder process is told to do: plain data without secrets, one line of JSON."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from pytest_thermal.recording.clock import RunClock
from pytest_thermal.recording.errors import RecorderError
from pytest_thermal.sensors.source import SourceSpec

SHORTEST_PERIOD_SECONDS = 0.05
LONGEST_PERIOD_SECONDS = 3600.0
SYNC_RANGE_SECONDS = (1.0, 60.0)


def source_from_json(data: Mapping[str, Any]) -> SourceSpec:
    """A source's description as it comes out of JSON.

    Raises:
        TypeError: It lacks something or has something unknown.
    """
    return SourceSpec(**{**data, **{name: tuple(data.get(name, ())) for name in ("without", "secrets")}})


@dataclass(frozen=True, kw_only=True)
class SourceOrder:
    """One source to be sampled, and how patient to be with it."""

    source: SourceSpec
    period_seconds: float | None = None
    """Its own period, where it is not to be the recording's."""
    deadline_seconds: float | None = None
    """How long a reading may take before its slot counts as missing. Default: two periods, at least 10 s."""
    kill_seconds: float | None = None
    """How long it may hang before its process is killed and started anew. Default: two deadlines, at least 30 s."""

    @property
    def name(self) -> str:
        """The source's name."""
        return self.source.name


@dataclass(frozen=True, kw_only=True)
class RecordingSpec:
    """What to record, where and how often."""

    run: Path
    """The run directory, which must exist and hold a ``run.json``."""
    sources: tuple[SourceOrder, ...]
    period_seconds: float
    clock: RunClock = field(default_factory=RunClock.start)
    sync_seconds: float = 15.0
    """How often what was written is forced onto the disk, so that a power cut costs no more than that."""
    startup_seconds: float = 20.0
    """How long a source may take until it knows its sensors."""
    rediscover_seconds: float = 60.0
    """How often a source is asked for its sensors again while one of them is absent."""
    limit_seconds: float | None = None
    """When to end in any case, counted from the start."""
    parent: int | None = None
    """The process whose end is the end of the recording. Besides, the end of standard input is."""
    import_paths: tuple[str, ...] = ()
    """Folders that sources are imported from, after those that Python knows."""
    raise_priority: bool = True

    def problems(self) -> list[str]:
        """What is wrong with it, in words."""
        found = []
        names = [order.name for order in self.sources]
        found += [f"two sources are called {name!r}" for name in sorted({n for n in names if names.count(n) > 1})]
        for order in self.sources:
            module, colon, call = order.source.factory.partition(":")
            if not (module and colon and call):
                found.append(f"source {order.name!r}: {order.source.factory!r} is not package.module:callable")
        periods = {"the recording": self.period_seconds}
        periods |= {
            f"source {order.name!r}": order.period_seconds for order in self.sources if order.period_seconds is not None
        }
        for what, seconds in periods.items():
            if not SHORTEST_PERIOD_SECONDS <= seconds <= LONGEST_PERIOD_SECONDS:
                found.append(
                    f"{what}: a period of {seconds} s; it must be between {SHORTEST_PERIOD_SECONDS:g} "
                    f"and {LONGEST_PERIOD_SECONDS:g} s"
                )
        low, high = SYNC_RANGE_SECONDS
        if not low <= self.sync_seconds <= high:
            found.append(f"sync_seconds is {self.sync_seconds}; it must be between {low:g} and {high:g} s")
        return found

    def to_json(self) -> str:
        """One line of JSON."""
        return json.dumps({**asdict(self), "run": str(self.run)}, allow_nan=False)

    @classmethod
    def from_json(cls, text: str) -> RecordingSpec:
        """Read it back.

        Raises:
            RecorderError: It is no JSON, lacks something or asks for something impossible.
        """
        try:
            data: dict[str, Any] = json.loads(text)
            spec = cls(
                **{
                    **data,
                    "run": Path(data["run"]),
                    "sources": tuple(
                        SourceOrder(**{**order, "source": source_from_json(order["source"])})
                        for order in data["sources"]
                    ),
                    "import_paths": tuple(data.get("import_paths", ())),
                    "clock": RunClock(**data["clock"]),
                }
            )
            problems = spec.problems()
        except (ValueError, TypeError, KeyError) as error:
            raise RecorderError(
                f"the recording's specification cannot be read: {error}",
                likely="it was written by hand or by another version",
                remedy="pytest_thermal.recording.start_recorder writes it",
            ) from error
        if problems:
            raise RecorderError("the recording cannot be made: " + "; ".join(problems))
        return spec
