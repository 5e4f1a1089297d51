"""Small sources that do what devices and tools do: answer, be slow, hang, raise, die, come and go.

Made in the recorder's lanes through ``tests.recording.fakes:make``, so all they know is in their options.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from pytest_thermal.model import Missing, Reading, Sensor, Unit
from pytest_thermal.recording import SourceOrder
from pytest_thermal.sensors.source import Availability, SourceSpec

FACTORY = "tests.recording.fakes:make"
PATIENT_SECONDS = 90.0
"""For a reading of those that answer: on a busy machine their process may stand still for long."""
TRIALS = 3
"""Readings before the first that counts: one, and more where it took long."""


def order(
    name: str = "fake",
    *,
    period_seconds: float | None = None,
    deadline_seconds: float = PATIENT_SECONDS,
    kill_seconds: float | None = None,
    fallback_for: str = "",
    **options: str | float | bool | None,
) -> SourceOrder:
    return SourceOrder(
        source=SourceSpec(name=name, factory=FACTORY, options={"name": name, **options}, fallback_for=fallback_for),
        period_seconds=period_seconds,
        deadline_seconds=deadline_seconds,
        kill_seconds=kill_seconds,
    )


class Fake:
    """Counts its readings: the n-th gives 30 + n % 10 °C for its first device, 1 °C more for each further one."""

    def __init__(
        self,
        *,
        name: str,
        devices: int = 1,
        first: int = 0,
        behaviour: str = "",
        after: int = TRIALS,
        seconds: float = 0.0,
        file: str = "",
        unavailable: str = "",
    ) -> None:
        self.name = name
        self._identities = [f"uuid-{number}" for number in range(first, first + devices)]
        self._behaviour = behaviour
        self._after = after
        self._seconds = seconds
        self._file = Path(file) if file else None
        self._unavailable = unavailable
        self._count = 0

    def probe(self) -> Availability:
        if self._behaviour == "hang at start":
            _hang()
        if self._behaviour == "come and go" and self._file is not None:
            self._identities = self._file.read_text(encoding="utf-8").split()
        return Availability(ok=not self._unavailable, reason=self._unavailable)

    def sensors(self) -> Sequence[Sensor]:
        if self._behaviour == "raise at start":
            raise RuntimeError("no such device")
        return [
            Sensor(
                id=f"{self.name}{number}.temperature_celsius",
                unit=Unit.CELSIUS,
                device=f"{self.name}{number}",
                identity=identity,
                source=self.name,
                limits={"max": 90.0},
            )
            for number, identity in enumerate(self._identities)
        ]

    def read(self) -> Sequence[Reading]:
        self._count += 1
        if self._seconds:
            time.sleep(self._seconds)
        if self._count > self._after:
            self._misbehave()
        value = 30.0 + self._count % 10
        present = self._identities
        if self._behaviour == "come and go" and self._file is not None:
            present = self._file.read_text(encoding="utf-8").split()
        readings = []
        for number, identity in enumerate(self._identities):
            sensor = f"{self.name}{number}.temperature_celsius"
            if identity not in present:
                readings.append(Reading(sensor_id=sensor, missing=Missing.ABSENT, detail="not in the answer"))
            elif self._behaviour == "not offered" and number == 1:
                readings.append(Reading(sensor_id=sensor, missing=Missing.NOT_OFFERED, detail="[N/A]"))
            else:
                readings.append(Reading(sensor_id=sensor, value=value + number))
        return readings

    def close(self) -> None:
        if self._behaviour == "hang at the end":
            _hang()
        if self._behaviour == "slow at the end" and self._file is not None:
            time.sleep(1.5)
            self._file.touch()

    def _misbehave(self) -> None:
        if self._behaviour == "hang":
            _hang()
        elif self._behaviour == "hang once" and self._file is not None and not self._file.exists():
            self._file.touch()
            _hang()
        elif self._behaviour == "pause once" and self._file is not None and not self._file.exists():
            self._file.touch()
            time.sleep(1.0)
        elif self._behaviour == "raise":
            raise RuntimeError("the driver is confused")
        elif self._behaviour == "die":
            os.kill(os.getpid(), signal.SIGSEGV)
        elif self._behaviour == "tool" and self._file is not None and not self._file.exists():
            tool = subprocess.Popen(["sleep", "600"])
            self._file.write_text(str(tool.pid), encoding="utf-8")
            tool.wait()
        elif self._behaviour == "chatter":
            sys.stdout.write("values: 1 2 3\n{}\n")
            sys.stdout.flush()
            sys.stderr.write("a library's warning\n")
            sys.stderr.flush()
            subprocess.run(["cat"], check=True)  # would wait for ever on the lane's own standard input


def _hang() -> None:
    while True:
        time.sleep(600)


def make(**options: str | float | bool) -> Fake:
    return Fake(**options)  # type: ignore[arg-type]  # the options come as JSON
