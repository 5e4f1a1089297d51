"""The simulated machine as a source of readings, heated by what really runs for it."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from pytest_thermal.model import Reading, Sensor
from pytest_thermal.sensors.source import Availability, SourceSpec

from .simulated import SOURCE, SimulatedMachine
from .state import Burning, Engines, Processes, Served
from .thermal_faults import thermal_fault
from .thermal_model import DEVICES, Load

TIME_SCALE = 20.0
"""Bench seconds in a second: a minute shows what takes a real loop twenty."""
CAPACITY = 2
"""Answers in the making at a time that keep the cards busy: they are as soon as anything runs on them, and eight slots,
some of which compute or wait at any moment, must be a steady load."""
_LONGEST_PAUSE_SECONDS = 1200.0
"""Bench seconds after which nothing changes any more under the same load."""


def spec(
    folder: Path,
    *,
    time_scale: float = TIME_SCALE,
    fault: str | None = None,
    seed: int = 0,
    cores: int | None = None,
    capacity: int = CAPACITY,
) -> SourceSpec:
    """How another process makes the source: see :func:`make`."""
    thermal_fault(fault)
    return SourceSpec(
        name=SOURCE,
        factory=f"{__name__}:make",
        options={
            "folder": str(folder),
            "time_scale": time_scale,
            "fault": fault or "",
            "seed": seed,
            "cores": cores,
            "capacity": capacity,
        },
    )


def make(
    *,
    folder: str,
    time_scale: float = TIME_SCALE,
    fault: str = "",
    seed: int = 0,
    cores: int | None = None,
    capacity: int = CAPACITY,
) -> DemoSource:
    """The source.

    Args:
        folder: Of the simulated machine (``state.make_folder``).
        time_scale: Bench seconds in a second.
        fault: Name of a thermal fault, empty for none.
        seed: Of noise and of whatever a fault leaves to chance.
        cores: How many running burners are a full load of the processor; None for the cores that this process may use.
        capacity: How many answers in the making at a time are a full load of the cards.

    Raises:
        ValueError: No thermal fault is called so, or a number is not above zero.
    """
    cores = len(os.sched_getaffinity(0)) if cores is None else cores
    for name, number in (("time_scale", time_scale), ("cores", cores), ("capacity", capacity)):
        if not number > 0:
            raise ValueError(f"{name}: {number} is not above zero")
    return DemoSource(
        folder=Path(folder),
        machine=SimulatedMachine(fault=fault or None, seed=seed),
        time_scale=time_scale,
        cores=cores,
        capacity=capacity,
    )


class DemoSource:
    """Bench time begins with the first reading, cold and settled, and passes ``time_scale`` times as fast as ours."""

    name = SOURCE

    def __init__(
        self,
        *,
        folder: Path,
        machine: SimulatedMachine,
        time_scale: float,
        cores: int,
        capacity: int,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._folder = folder
        self._machine = machine
        self._time_scale = time_scale
        self._cores = cores
        self._capacity = capacity
        self._clock = clock
        self._processes = Processes(folder)
        self._engines = Engines(folder)
        self._last: float | None = None

    def probe(self) -> Availability:
        """Whether its folder is there."""
        if not self._folder.is_dir():
            return Availability(ok=False, reason=f"the simulated machine's folder {self._folder} is gone")
        return Availability(ok=True, reason="simulated: driven by the load that runs for the demo bench")

    def sensors(self) -> Sequence[Sensor]:
        """Those of the simulated machine."""
        return self._machine.sensors

    def read(self) -> Sequence[Reading]:
        """One reading of each, after the time that has passed under what burns now."""
        now = self._clock()
        passed = 0.0 if self._last is None else (now - self._last) * self._time_scale
        self._last = now
        load = load_of(self._processes.look(), self._engines.look(), cores=self._cores, capacity=self._capacity)
        self._machine.advance(min(passed, _LONGEST_PAUSE_SECONDS), load)
        return self._machine.read()

    def close(self) -> None:
        """Nothing is held."""


def load_of(burning: Burning, served: Served, *, cores: int, capacity: int) -> Load:
    """Device → how busy it is, 0 to 1: burners on the processor, loads and answers in the making on the cards."""
    load = {"cpu0": min(burning.burners / cores, 1.0)}
    answering = min(served.in_flight / capacity, 1.0)
    for card, name in enumerate(device.name for device in DEVICES if device.is_card):
        burns = burning.every_card or card in burning.cards
        load[name] = 1.0 if burns else answering
    return load
