from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from pytest_thermal.experiment.idle import IdleCheck, busiest_processes
from pytest_thermal.model import Sensor
from pytest_thermal.model.readings import Unit
from tests.support.patience import until

CPU, GPU = "cpu0.utilization_percent", "gpu0.utilization_percent"


def check(*names: str, time_scale: float = 1.0) -> IdleCheck:
    sensors = [
        Sensor(id=name, unit=Unit.PERCENT, device=name.split(".", maxsplit=1)[0], identity=name, source="invented")
        for name in names
    ]
    return IdleCheck(sensors, time_scale=time_scale)


def fed(idle: IdleCheck, rows: Sequence[Mapping[str, float | None]]) -> IdleCheck:
    for second, row in enumerate(rows):
        idle.add(1_800_000_000.0 + second, row)
    return idle


def test_an_idle_bench_is_idle() -> None:
    idle = fed(check(CPU, GPU), [{CPU: 3.0, GPU: 0.0}] * 8)
    assert idle.answered()
    assert idle.busy() == {}


def test_a_moment_of_work_is_no_load() -> None:
    idle = fed(check(CPU), [{CPU: 2.0}, {CPU: 30.0}, *({CPU: 2.0} for _ in range(5))])
    assert idle.busy() == {}


def test_busy_devices_are_named_the_busiest_first() -> None:
    idle = fed(check(CPU, GPU), [{CPU: 40.0, GPU: 97.0}] * 8)
    assert list(idle.busy().items()) == [("gpu0", 97.0), ("cpu0", 40.0)]


def test_a_load_that_ends_is_forgotten() -> None:
    idle = fed(check(CPU), [{CPU: 100.0}] * 8 + [{CPU: 1.0}] * 6)
    assert idle.busy() == {}


def test_a_device_that_says_nothing_is_not_called_idle() -> None:
    idle = fed(check(CPU, GPU), [{CPU: 1.0, GPU: None}] * 8)
    assert not idle.answered()


def test_a_fast_bench_needs_less_time() -> None:
    idle = check(CPU, time_scale=20.0)
    for tick in range(2):
        idle.add(1_800_000_000.0 + tick * 0.25, {CPU: 1.0})
    assert idle.answered()


def test_parts_of_a_device_and_other_percentages_do_not_count() -> None:
    assert not check("gpu0.memory.utilization_percent", "fan0.speed_percent").possible


def test_whoever_keeps_a_core_busy_is_named() -> None:
    burner = subprocess.Popen([sys.executable, "-c", "while True: pass"])
    try:
        # On a machine that is busy with other tests it may get less than the others that are named.
        until(lambda: burner.pid in {process.pid for process in busiest_processes(0.2)})
    finally:
        burner.kill()
        burner.wait()


def test_a_name_with_brackets_and_spaces_is_read(tmp_path: Path) -> None:
    folder = tmp_path / "42"
    folder.mkdir()
    (folder / "stat").write_text("42 (a (b) c) R 1 1 1 0 -1 0 0 0 0 0 100 50 0 0 20 0 1 0 5 0 0\n")
    assert busiest_processes(0.01, proc=tmp_path) == []
    assert os.getpid() != 42
