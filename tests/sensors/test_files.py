"""Drivers' files: opened once, read anew, each failure its own."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest

from pytest_thermal.model import Missing, Sensor, Unit
from pytest_thermal.sensors.sysfs import cpu_temperature, thermal_zones, user_file
from pytest_thermal.sensors.sysfs.files import DriverFile, celsius, file_entry, hottest
from tests.sensors.trees import build, fail_reads

SENSOR = Sensor(id="cpu0.package.temperature_celsius", unit=Unit.CELSIUS, device="cpu0", identity="x", source="s")


def test_a_file_is_opened_once_and_read_anew(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "temp1_input"
    path.write_text("41000\n")
    opened: list[str] = []
    real_open = os.open

    def opening(name: str, flags: int) -> int:
        opened.append(f"{name}")
        return real_open(name, flags)

    monkeypatch.setattr("os.open", opening)
    file = DriverFile(path)
    assert file.read() == "41000\n"
    path.write_text("42000\n")
    assert file.read() == "42000\n"
    assert opened == [f"{path}"]
    file.close()
    file.close()


def test_a_device_that_came_back_is_opened_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "temp1_input"
    path.write_text("41000\n")
    failing: dict[str, int] = {}
    fail_reads(failing, monkeypatch)
    file = DriverFile(path)
    assert file.read() == "41000\n"
    path.rename(tmp_path / "old")
    failing[f"{tmp_path / 'old'}"] = errno.ENODEV
    path.write_text("39000\n")
    assert file.read() == "39000\n"
    file.close()


def test_an_answer_that_says_try_again_is_not_asked_for_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "temp"
    path.write_text("41000\n")
    reads: list[int] = []

    def again(descriptor: int, _size: int, _offset: int) -> bytes:
        reads.append(descriptor)
        raise OSError(errno.EAGAIN, "try again")

    monkeypatch.setattr("os.pread", again)
    entry = file_entry(SENSOR, path, celsius)
    reading = entry.take()
    assert reading.missing is Missing.UNREADABLE
    assert reading.detail.startswith("EAGAIN")
    assert len(reads) == 1
    entry.files[0].close()


@pytest.mark.parametrize(
    "error, missing",
    [
        ("ENODATA", Missing.NOT_OFFERED),
        ("EINVAL", Missing.UNREADABLE),
        ("EIO", Missing.UNREADABLE),
        ("ETIMEDOUT", Missing.TIMEOUT),
        ("ENODEV", Missing.ABSENT),
        ("EACCES", Missing.UNREADABLE),
    ],
)
def test_an_error_belongs_to_its_file_alone(
    error: str, missing: Missing, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = build("loongson_mips", tmp_path, monkeypatch)
    failing: dict[str, int] = {}
    fail_reads(failing, monkeypatch)
    source = cpu_temperature.make(sysfs=f"{root}")
    assert len(source.sensors()) == 2
    failing[f"{root}/class/hwmon/hwmon0/temp2_input"] = getattr(errno, error)
    one, other = source.read()
    assert one.value == 54
    assert other.missing is missing
    assert error in other.detail
    assert "hwmon0/temp2_input" in other.detail
    source.close()


@pytest.mark.parametrize(
    "text, value, missing",
    [
        ("45250\n", 45.25, None),
        ("-5000", -5.0, None),
        ("45\n", None, Missing.IMPLAUSIBLE),
        ("200", None, Missing.IMPLAUSIBLE),
        ("-274000", None, Missing.NOT_OFFERED),
        ("-273150", None, Missing.NOT_OFFERED),
        ("", None, Missing.NOT_UNDERSTOOD),
        ("45.5", None, Missing.NOT_UNDERSTOOD),
        ("45250 46000", None, Missing.NOT_UNDERSTOOD),
        ("9" * 40, None, Missing.NOT_UNDERSTOOD),
        ("\0\0\0", None, Missing.NOT_UNDERSTOOD),
    ],
)
def test_what_a_temperature_file_may_hold(text: str, value: float | None, missing: Missing | None) -> None:
    reading = celsius(SENSOR, text)
    assert (reading.value, reading.missing) == (value, missing)


def test_vendor_kernels_that_give_degrees_are_known(tmp_path: Path) -> None:
    zone = tmp_path / "class" / "thermal" / "thermal_zone0"
    zone.mkdir(parents=True)
    (zone / "type").write_text("sunxi-therm\n")
    (zone / "temp").write_text("47\n")
    source = thermal_zones.make(sysfs=f"{tmp_path}")
    assert [reading.value for reading in source.read()] == [47]
    source.close()


def test_the_hottest_of_some_is_missing_when_one_of_them_is(tmp_path: Path) -> None:
    paths = [tmp_path / "a", tmp_path / "b"]
    for path, text in zip(paths, ("61000", "64000"), strict=True):
        path.write_text(text)
    entry = hottest(SENSOR, [file_entry(SENSOR, path, celsius) for path in paths])
    assert entry.take().value == 64
    paths[1].write_text("0")
    assert entry.take().missing is Missing.IMPLAUSIBLE
    paths[1].write_text("what")
    assert entry.take().missing is Missing.NOT_UNDERSTOOD
    for file in entry.files:
        file.close()


# --------------------------------------------------------------------------------------- the bench's own path


def test_a_path_of_the_kernel_gives_millidegrees(tmp_path: Path) -> None:
    (tmp_path / "type").write_text("cpu-thermal\n")
    path = tmp_path / "temp"
    path.write_text("51500\n")
    source = user_file.make(path=f"{path}")
    assert [reading.value for reading in source.read()] == [51.5]
    path.write_text("51\n")
    assert [reading.missing for reading in source.read()] == [Missing.IMPLAUSIBLE]
    source.close()


def test_a_path_of_a_firmware_zone_is_refused(tmp_path: Path) -> None:
    (tmp_path / "type").write_text("acpitz\n")
    (tmp_path / "temp").write_text("27800\n")
    source = user_file.make(path=f"{tmp_path / 'temp'}")
    assert source.sensors() == ()
    assert "acpitz" in source.probe().reason


@pytest.mark.parametrize(
    "text, value", [("51.5\n", 51.5), ("51500\n", 51.5), ("500\n", None), ("hot\n", None), ("51,5\n", None)]
)
def test_any_other_file_is_read_by_its_magnitude(text: str, value: float | None, tmp_path: Path) -> None:
    path = tmp_path / "cpu-temperature"
    path.write_text("40\n")
    source = user_file.make(path=f"{path}")
    assert "millidegrees" in source.sensors()[0].label
    path.write_text(text)
    assert [reading.value for reading in source.read()] == [value]
    source.close()


def test_a_path_that_is_not_there_says_so(tmp_path: Path) -> None:
    source = user_file.make(path=f"{tmp_path / 'nothing'}")
    assert "ENOENT" in source.probe().reason


def test_a_file_that_is_replaced_by_another_is_read_anew(tmp_path: Path) -> None:
    path = tmp_path / "cpu"
    path.write_text("40.0\n")
    source = user_file.make(path=f"{path}")
    source.sensors()
    assert source.read()[0].value == 40.0
    (tmp_path / "next").write_text("55.0\n")
    (tmp_path / "next").rename(path)
    assert source.read()[0].value == 55.0
    source.close()
