from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from pytest_thermal.model import Missing, Sensor, Unit
from pytest_thermal.recording.append_file import AppendFile
from pytest_thermal.recording.samples import SampleWriter, cell


def sensor(number: int) -> Sensor:
    return Sensor(
        id=f"gpu{number}.temperature_celsius",
        unit=Unit.CELSIUS,
        device=f"gpu{number}",
        identity=f"uuid-{number}",
        source="nvml",
    )


OWN = "recorder.nvml.lateness_milliseconds,recorder.nvml.read_milliseconds"


class Writing:
    def __init__(self, folder: Path) -> None:
        (folder / "samples").mkdir()
        self.folder = folder
        self.missing = AppendFile(folder / "missing.jsonl")
        self.writer = SampleWriter(folder, "nvml", self.missing)

    def row(self, time: float, *values: float | None, reason: Missing = Missing.ABSENT, detail: str = "") -> None:
        reasons = {index: (reason, detail) for index, value in enumerate(values) if value is None}
        self.writer.row(time, values, reasons, lateness_seconds=0.0001, read_seconds=0.002)

    def lines(self, name: str = "nvml.csv") -> list[str]:
        return (self.folder / "samples" / name).read_text(encoding="utf-8").splitlines()

    def reasons(self) -> list[dict[str, Any]]:
        path = self.folder / "missing.jsonl"
        return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()] if path.exists() else []


@pytest.fixture
def writing(tmp_path: Path) -> Writing:
    return Writing(tmp_path)


def test_header_and_rows_are_as_designed(writing: Writing) -> None:
    writing.writer.begin([sensor(0), sensor(1)])
    writing.row(1_800_000_000.25, 61.0, 58.5)
    writing.row(1_800_000_001.25, 62.0, None)
    assert writing.lines() == [
        f"time,gpu0.temperature_celsius,gpu1.temperature_celsius,{OWN}",
        "1800000000.250,61,58.5,0.100,2.000",
        "1800000001.250,62,,0.100,2.000",
    ]


def test_a_reason_is_told_when_it_begins_or_changes_and_not_for_every_cell(writing: Writing) -> None:
    writing.writer.begin([sensor(0)])
    for time in range(100):
        writing.row(time, None, reason=Missing.DEVICE_ERROR, detail="GPU is lost")
    writing.row(100, None, reason=Missing.TIMEOUT)
    writing.row(101, 50.0)
    writing.row(102, None, reason=Missing.TIMEOUT)
    assert [(told["time"], told["reason"], told["detail"]) for told in writing.reasons()] == [
        (0, "device error", "GPU is lost"),
        (100, "timeout", ""),
        (102, "timeout", ""),
    ]
    assert {told["sensor"] for told in writing.reasons()} == {"gpu0.temperature_celsius"}


def test_ticks_without_any_answer_are_empty_rows_with_one_reason_for_each_sensor(writing: Writing) -> None:
    writing.writer.begin([sensor(0), sensor(1)])
    writing.row(0, 50.0, 51.0)
    writing.writer.gap([1.0, 2.0, 3.0], Missing.TIMEOUT, "no answer")
    assert writing.lines()[-3:] == ["1.000,,,,", "2.000,,,,", "3.000,,,,"]
    assert [(told["time"], told["sensor"]) for told in writing.reasons()] == [
        (1.0, "gpu0.temperature_celsius"),
        (1.0, "gpu1.temperature_celsius"),
    ]


def test_other_sensors_are_another_file_and_the_same_ones_are_not(writing: Writing) -> None:
    assert writing.writer.begin([sensor(0)])
    writing.row(0, 50.0)
    assert not writing.writer.begin([sensor(0)])
    writing.row(1, 51.0)
    assert writing.writer.begin([sensor(0), sensor(1)])
    writing.row(2, 52.0, 40.0)
    assert [segment.file for segment in writing.writer.segments] == ["samples/nvml.csv", "samples/nvml.2.csv"]
    assert len(writing.lines()) == 3
    assert writing.lines("nvml.2.csv")[1].startswith("2.000,52,40,")


def test_what_an_earlier_recorder_wrote_is_not_touched(writing: Writing) -> None:
    (writing.folder / "samples" / "nvml.csv").write_text("earlier", encoding="utf-8")
    writing.writer.begin([sensor(0)])
    writing.row(0, 50.0)
    assert writing.lines() == ["earlier"]
    assert writing.writer.segments[0].file == "samples/nvml.2.csv"


def test_time_never_stands_still_or_goes_back(writing: Writing) -> None:
    writing.writer.begin([sensor(0)])
    for time in (10.0, 10.0, 9.0, 11.0):
        writing.row(time, 50.0)
    assert [line.split(",")[0] for line in writing.lines()[1:]] == ["10.000", "11.000"]


@pytest.mark.parametrize("name", ["../../etc/passwd", "a b/c", ".hidden", "npu-smi"])
def test_a_source_of_any_name_writes_into_samples_only(tmp_path: Path, name: str) -> None:
    (tmp_path / "samples").mkdir()
    writer = SampleWriter(tmp_path, name, AppendFile(tmp_path / "missing.jsonl"))
    writer.begin([sensor(0)])
    writer.close()
    files = [path for path in tmp_path.rglob("*") if path.is_file()]
    assert [path.parent for path in files] == [tmp_path / "samples"]
    assert not files[0].name.startswith(".")


@pytest.mark.parametrize(
    "value, text",
    [
        (61.0, "61"),
        (61.5, "61.5"),
        (642.31, "642.31"),
        (0.1 + 0.2, "0.3"),
        (0.0, "0"),
        (-0.00001, "-1e-05"),
        (-3.25, "-3.25"),
        (1755.0, "1755"),
        (151397597184.0, "151397597184"),
        (0.0123456789, "0.0123457"),
        (None, ""),
    ],
)
def test_cells(value: float | None, text: str) -> None:
    assert cell(value) == text
