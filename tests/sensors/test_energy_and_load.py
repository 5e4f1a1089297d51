"""Power from counters that wrap, utilisation from counters that run: right or missing."""

from __future__ import annotations

from pathlib import Path

import pytest

from pytest_thermal.model import Missing, Reading
from pytest_thermal.sensors.sysfs.cpu_load import CpuLoad
from pytest_thermal.sensors.sysfs.rapl import LEAST_SECONDS, Rapl
from tests.sensors.trees import build

RANGE = 262_143_328_850


class Time:
    """A clock that only sleeping moves, and the test."""

    def __init__(self) -> None:
        self.now = 1000.0
        self.slept: list[float] = []

    def clock(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        self.now += seconds


class Counter:
    """An energy counter that gains a power while time goes by."""

    def __init__(
        self, root: Path, time: Time, *, watts: float, start: int, named: str = "package-0", at: str = "0"
    ) -> None:
        self.folder = root / "class" / "powercap" / f"intel-rapl:{at}"
        self.folder.mkdir(parents=True)
        (self.folder / "name").write_text(f"{named}\n")
        (self.folder / "max_energy_range_uj").write_text(f"{RANGE}\n")
        self.watts, self.time, self.count, self.at = watts, time, start, time.now
        self.write(start)

    def write(self, count: int) -> None:
        (self.folder / "energy_uj").write_text(f"{count}\n")

    def tick(self, seconds: float) -> None:
        self.time.now += seconds
        self.count = (self.count + int(self.watts * 1e6 * (self.time.now - self.at))) % RANGE
        self.at = self.time.now
        self.write(self.count)


def make_rapl(root: Path, time: Time, counter: Counter | None = None) -> Rapl:
    def sleep(seconds: float) -> None:
        time.slept.append(seconds)
        if counter is None:
            time.now += seconds
        else:
            counter.tick(seconds)

    return Rapl(sysfs=root, clock=time.clock, sleep=sleep)


def one(source: Rapl) -> Reading:
    readings = source.read()
    assert len(readings) == 1
    return readings[0]


def test_power_is_energy_over_time(tmp_path: Path) -> None:
    time = Time()
    counter = Counter(tmp_path, time, watts=145.0, start=1_000_000)
    source = make_rapl(tmp_path, time, counter)
    assert [sensor.id for sensor in source.sensors()] == ["cpu0.package.power_watts"]
    for seconds in (1.0, 5.0, 2.5):
        counter.tick(seconds)
        assert one(source).value == pytest.approx(145.0, rel=1e-6)
    source.close()


def test_a_counter_that_turned_gives_the_right_power(tmp_path: Path) -> None:
    time = Time()
    counter = Counter(tmp_path, time, watts=240.0, start=RANGE - 60_000_000)
    source = make_rapl(tmp_path, time, counter)
    assert source.probe().ok
    before = counter.count
    counter.tick(1.0)
    assert counter.count < before
    assert one(source).value == pytest.approx(240.0, rel=1e-3)
    source.close()


def test_a_gap_that_could_hide_a_turn_is_missing(tmp_path: Path) -> None:
    time = Time()
    counter = Counter(tmp_path, time, watts=240.0, start=0)
    source = make_rapl(tmp_path, time, counter)
    assert source.probe().ok
    counter.tick(600.0)
    assert one(source).missing is Missing.UNREADABLE
    counter.tick(1.0)
    assert one(source).value == pytest.approx(240.0, rel=1e-6)
    source.close()


def test_a_counter_that_stands_still_is_no_zero(tmp_path: Path) -> None:
    time = Time()
    counter = Counter(tmp_path, time, watts=50.0, start=5_000_000)
    source = make_rapl(tmp_path, time, counter)
    assert source.probe().ok
    time.now += 1.0
    assert one(source).missing is Missing.STUCK
    source.close()


@pytest.mark.parametrize("text, missing", [("", Missing.NOT_UNDERSTOOD), ("-5", Missing.NOT_UNDERSTOOD)])
def test_after_a_reading_that_failed_the_next_starts_afresh(text: str, missing: Missing, tmp_path: Path) -> None:
    time = Time()
    counter = Counter(tmp_path, time, watts=80.0, start=7_000_000)
    source = make_rapl(tmp_path, time, counter)
    assert source.probe().ok
    time.now += 1.0
    (counter.folder / "energy_uj").write_text(text)
    assert one(source).missing is missing
    counter.tick(3.0)
    assert one(source).value == pytest.approx(80.0, rel=1e-6)
    source.close()


def test_readings_close_together_wait_for_the_counter(tmp_path: Path) -> None:
    time = Time()
    counter = Counter(tmp_path, time, watts=80.0, start=7_000_000)
    source = make_rapl(tmp_path, time, counter)
    assert source.probe().ok
    begun = time.now
    assert one(source).value == pytest.approx(80.0, rel=1e-6)
    assert time.now - begun == pytest.approx(LEAST_SECONDS)
    source.close()


def test_zones_are_told_apart_by_their_place(tmp_path: Path) -> None:
    time = Time()
    for at, named in (
        ("0", "package-0"), ("0:0", "core"), ("0:1", "dram"), ("1", "package-1"), ("1:0", "core"),
        ("2", "psys"), ("3", "package-2-die-1"),
    ):  # fmt: skip
        Counter(tmp_path, time, watts=10.0, start=1, named=named, at=at)
    (tmp_path / "class" / "powercap" / "intel-rapl").mkdir()
    source = Rapl(sysfs=tmp_path, clock=time.clock, sleep=time.sleep)
    assert {sensor.id: sensor.identity for sensor in source.sensors()} == {
        "cpu0.package.power_watts": "powercap/intel-rapl:0",
        "cpu0.core.power_watts": "powercap/intel-rapl:0:0",
        "cpu0.dram.power_watts": "powercap/intel-rapl:0:1",
        "cpu1.package.power_watts": "powercap/intel-rapl:1",
        "cpu1.core.power_watts": "powercap/intel-rapl:1:0",
        "platform.power_watts": "powercap/intel-rapl:2",
        "cpu2.die_1.power_watts": "powercap/intel-rapl:3",
    }
    source.close()


# ------------------------------------------------------------------------------------------------------- load


class Processors:
    """/proc/stat of four CPUs in two packages, whose shares of work the test sets."""

    def __init__(self, proc: Path) -> None:
        proc.mkdir(parents=True, exist_ok=True)
        self.file = proc / "stat"
        self.busy = [0.0] * 4
        self.ticks = [[1000, 1000, 50] for _ in range(4)]
        self.write()

    def run(self, ticks: int) -> None:
        for number, share in enumerate(self.busy):
            self.ticks[number][0] += int(ticks * share)
            self.ticks[number][1] += ticks - int(ticks * share)
        self.write()

    def write(self) -> None:
        lines = [f"cpu{n} {user} 0 0 {idle} {wait} 0 0 0 500 0" for n, (user, idle, wait) in enumerate(self.ticks)]
        total = [sum(column) for column in zip(*self.ticks, strict=True)]
        self.file.write_text(
            "\n".join([f"cpu  {total[0]} 0 0 {total[1]} {total[2]} 0 0 0 2000 0", *lines, "intr 1 2 3", ""])
        )


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[CpuLoad, Processors, Path]:
    root = build("intel_two_sockets", tmp_path, monkeypatch)
    processors = Processors(tmp_path / "proc")
    time = Time()

    def sleep(seconds: float) -> None:
        time.sleep(seconds)
        processors.run(100)

    return CpuLoad(sysfs=root, proc=tmp_path / "proc", clock=time.clock, sleep=sleep), processors, root


def by_id(source: CpuLoad) -> dict[str, Reading]:
    return {reading.sensor_id: reading for reading in source.read()}


def test_utilisation_of_each_package_and_of_all(machine: tuple[CpuLoad, Processors, Path]) -> None:
    source, processors, _ = machine
    processors.busy = [1.0, 0.5, 0.0, 0.0]
    assert source.probe().ok
    readings = by_id(source)
    assert readings["cpu0.utilization_percent"].value == 75
    assert readings["cpu1.utilization_percent"].value == 0
    assert readings["cpu.utilization_percent"].value == 37.5
    source.close()


def test_clocks_and_throttled_time(machine: tuple[CpuLoad, Processors, Path]) -> None:
    source, _, root = machine
    readings = by_id(source)
    assert readings["cpu0.clock_megahertz"].value == 2050
    assert readings["cpu1.clock_megahertz"].value == 2250
    assert readings["cpu.clock_megahertz"].value == 2150
    assert readings["cpu1.throttle.thermal_milliseconds"].value == 70
    limits = {sensor.id: dict(sensor.limits) for sensor in source.sensors()}
    assert limits["cpu0.clock_megahertz"] == {"max": 3900.0}
    # A CPU that goes offline has no clock, and the mean is of the others.
    (root / "devices" / "system" / "cpu" / "cpu3" / "cpufreq" / "scaling_cur_freq").write_text("0\n")
    assert by_id(source)["cpu1.clock_megahertz"].value == 2200
    source.close()


def test_a_counter_that_falls_is_left_out(machine: tuple[CpuLoad, Processors, Path]) -> None:
    source, processors, _ = machine
    processors.busy = [1.0, 1.0, 1.0, 1.0]
    assert source.probe().ok
    processors.ticks[3][1] = 10
    readings = by_id(source)
    assert readings["cpu1.utilization_percent"].value == 100
    source.close()


def test_without_progress_there_is_no_zero(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    root = build("intel_two_sockets", tmp_path, monkeypatch)
    Processors(tmp_path / "proc")
    time = Time()
    source = CpuLoad(sysfs=root, proc=tmp_path / "proc", clock=time.clock, sleep=time.sleep)
    assert by_id(source)["cpu.utilization_percent"].missing is Missing.STUCK
    (tmp_path / "proc" / "stat").write_text("cpu what is this\n")
    assert by_id(source)["cpu.utilization_percent"].missing is Missing.ABSENT
    source.close()


def test_without_packages_all_cpus_are_one(tmp_path: Path) -> None:
    processors = Processors(tmp_path)
    processors.busy = [1.0, 0.0, 0.0, 0.0]
    time = Time()

    def sleep(seconds: float) -> None:
        time.sleep(seconds)
        processors.run(100)

    readings = by_id(CpuLoad(sysfs=tmp_path, proc=tmp_path, clock=time.clock, sleep=sleep))
    assert {name: reading.value for name, reading in readings.items()} == {
        "cpu.utilization_percent": 25,
        "cpu0.utilization_percent": 25,
    }


def test_this_very_machine_has_a_utilisation() -> None:
    source = CpuLoad(sysfs=Path("/sys"), proc=Path("/proc"))
    value = by_id(source)["cpu.utilization_percent"].value
    assert value is not None
    assert 0 <= value <= 100
    source.close()
