from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from pytest_thermal.model import Missing
from pytest_thermal.recording import RunDirectoryError, seal
from pytest_thermal.recording.follower import Follower
from pytest_thermal.recording.run_reader import read_run

HEADER = "time,gpu0.temperature_celsius,gpu1.temperature_celsius"
OWN = ",recorder.nvml.lateness_milliseconds,recorder.nvml.read_milliseconds"


def sensor(device: str) -> dict[str, Any]:
    return {
        "id": f"{device}.temperature_celsius",
        "unit": "celsius",
        "device": device,
        "identity": f"uuid-{device}",
        "source": "nvml",
        "label": "",
        "limits": {"slowdown": 90.0},
    }


def write(run: Path, files: dict[str, str | bytes], **facts: object) -> Path:
    told = {
        "format": 1,
        "state": "finished",
        "sensors": [sensor("gpu0"), sensor("gpu1")],
        "sources": {"nvml": {"period_seconds": 1.0, "segments": [], "missed": 2}},
        "phases": [],
        **facts,
    }
    (run / "samples").mkdir(parents=True, exist_ok=True)
    (run / "run.json").write_text(json.dumps(told), encoding="utf-8")
    for name, content in files.items():
        (run / name).write_bytes(content if isinstance(content, bytes) else content.encode())
    return run


def csv(*rows: str, header: str = HEADER) -> str:
    return "".join(f"{line}\n" for line in (header, *rows))


def read(tmp_path: Path, *rows: str, **facts: object) -> tuple[dict[str, list[float]], tuple[str, ...]]:
    recording = read_run(write(tmp_path, {"samples/nvml.csv": csv(*rows)}, **facts), verify=False)
    series = {name: one.values.tolist() for name, one in recording.series.items()}
    return {"time": recording.timing["nvml"].time_seconds.tolist(), **series}, recording.notes


def test_series_carry_their_sensor_period_and_missing_values(tmp_path: Path) -> None:
    run = write(tmp_path, {"samples/nvml.csv": csv("1.000,50,40.5", "2.000,,41", "3.000,52,")})
    recording = read_run(run, verify=False)
    first = recording.series["gpu0.temperature_celsius"]
    assert first.sensor.identity == "uuid-gpu0"
    assert first.sensor.limits == {"slowdown": 90.0}
    assert first.period_seconds == 1.0
    assert first.time_seconds.tolist() == [1.0, 2.0, 3.0]
    assert np.array_equal(first.values, [50, np.nan, 52], equal_nan=True)
    assert np.shares_memory(first.time_seconds, recording.series["gpu1.temperature_celsius"].time_seconds)
    assert recording.timing["nvml"].missed == 2
    assert recording.notes == ()


def test_columns_of_the_recorder_are_no_sensors(tmp_path: Path) -> None:
    run = write(tmp_path, {"samples/nvml.csv": csv("1.000,50,40,0.1,2", "2.000,,,,", header=HEADER + OWN)})
    recording = read_run(run, verify=False)
    assert set(recording.series) == {"gpu0.temperature_celsius", "gpu1.temperature_celsius"}
    timing = recording.timing["nvml"]
    assert np.array_equal(timing.lateness_ms, [0.1, np.nan], equal_nan=True)
    assert np.array_equal(timing.read_ms, [2, np.nan], equal_nan=True)


@pytest.mark.parametrize("tail", ["3.000,52,4", "3.0", "3", "3.000,52,42"])
def test_a_last_line_without_an_end_is_left_out_even_if_it_looks_whole(tmp_path: Path, tail: str) -> None:
    run = write(tmp_path, {"samples/nvml.csv": csv("1.000,50,40", "2.000,51,41") + tail})
    recording = read_run(run, verify=False)
    assert recording.series["gpu1.temperature_celsius"].values.tolist() == [40, 41]
    assert recording.notes == ("samples/nvml.csv: line 4: the last line has no end and is left out",)


def test_zeros_that_a_power_cut_left_are_left_out(tmp_path: Path) -> None:
    run = write(tmp_path, {"samples/nvml.csv": csv("1.000,50,40").encode() + b"\0" * 4096})
    recording = read_run(run, verify=False)
    assert len(recording.series["gpu0.temperature_celsius"]) == 1
    assert "4096 zero bytes" in recording.notes[0]


@pytest.mark.parametrize(
    "bad",
    ["2.000,51", "2.000,51,41,99", "2.000,5x,41", ",51,41", "nan,51,41", "2.000,51,41\0", "2.000,4.1.1,41", "", "-"],
)
def test_a_damaged_row_is_left_out_whole_and_named(tmp_path: Path, bad: str) -> None:
    found, notes = read(tmp_path, "1.000,50,40", bad, "3.000,52,42")
    assert found["time"] == [1.0, 3.0]
    assert found["gpu0.temperature_celsius"] == [50, 52]
    assert notes == ("samples/nvml.csv: line 3: not a whole row, left out (1 in all)",)


def test_too_many_damaged_rows_are_a_damaged_file(tmp_path: Path) -> None:
    with pytest.raises(RunDirectoryError, match=r"nvml\.csv: damaged: 20 of 40 rows are no rows, the first in line 3"):
        read(tmp_path, *(line for second in range(20) for line in (f"{second}.000,50,40", "garbage")))


def test_a_file_without_a_header_is_damaged(tmp_path: Path) -> None:
    run = write(tmp_path, {"samples/nvml.csv": "1.000,50,40\n2.000,51,41\n"})
    with pytest.raises(RunDirectoryError, match="is no header"):
        read_run(run)


@pytest.mark.parametrize("content", [b"", b"time,gpu0.temp", csv().encode()])
def test_a_file_that_had_only_begun_holds_nothing(tmp_path: Path, content: bytes) -> None:
    recording = read_run(write(tmp_path, {"samples/nvml.csv": content}), verify=False)
    assert all(len(series) == 0 for series in recording.series.values())


def test_another_header_further_down_begins_other_columns(tmp_path: Path) -> None:
    found, _ = read(
        tmp_path,
        "1.000,50,40",
        "time,gpu1.temperature_celsius",
        "2.000,41",
        "time,gpu0.temperature_celsius",
        "3.000,52",
    )
    assert np.array_equal(found["gpu0.temperature_celsius"], [50, np.nan, 52], equal_nan=True)
    assert np.array_equal(found["gpu1.temperature_celsius"], [40, 41, np.nan], equal_nan=True)


def test_segments_are_joined_in_order_also_beyond_the_ninth(tmp_path: Path) -> None:
    files: dict[str, str | bytes] = {
        f"samples/nvml{'' if number == 1 else f'.{number}'}.csv": csv(
            f"{number}.000,{number}", header=f"time,gpu{number % 2}.temperature_celsius"
        )
        for number in range(1, 13)
    }
    recording = read_run(write(tmp_path, files), verify=False)
    even = recording.series["gpu0.temperature_celsius"]
    assert even.time_seconds.tolist() == [float(number) for number in range(1, 13)]
    assert even.values[even.present].tolist() == [2, 4, 6, 8, 10, 12]
    assert recording.notes == ()


def test_rows_that_go_back_in_time_or_repeat_one_are_left_out(tmp_path: Path) -> None:
    found, notes = read(tmp_path, "1.000,50,40", "2.000,51,41", "2.000,99,99", "1.500,99,99", "3.000,52,42")
    assert found["time"] == [1.0, 2.0, 3.0]
    assert found["gpu0.temperature_celsius"] == [50, 51, 52]
    assert notes == ("samples/nvml: 2 rows go back in time or repeat one (the first at 2.000) and are left out",)


def test_a_sensor_of_two_sources_is_taken_from_the_fuller_one(tmp_path: Path) -> None:
    run = write(
        tmp_path,
        {
            "samples/nvml.csv": csv("1.000,,40", "2.000,,41"),
            "samples/smi.csv": csv("1.000,70", "2.000,71", header="time,gpu0.temperature_celsius"),
        },
    )
    recording = read_run(run, verify=False)
    assert recording.series["gpu0.temperature_celsius"].values.tolist() == [70, 71]
    assert any("nvml measured it too" in note for note in recording.notes)


def test_sensors_that_run_json_had_no_time_to_name_are_taken_from_the_header(tmp_path: Path) -> None:
    run = write(tmp_path, {"samples/nvml.csv": csv("1.000,50,40", header="time,gpu0.memory.temperature_celsius,load")})
    recording = read_run(run, verify=False)
    assert recording.series["gpu0.memory.temperature_celsius"].sensor.device == "gpu0"
    assert "load" not in recording.series
    assert any("column 'load' is no sensor's id" in note for note in recording.notes)


def test_why_a_cell_is_empty_holds_until_the_next_word(tmp_path: Path) -> None:
    lines = [
        {"time": 2.0, "sensor": "gpu0.temperature_celsius", "reason": "timeout", "detail": "no answer"},
        {"time": 5.0, "sensor": "gpu0.temperature_celsius", "reason": "absent", "detail": ""},
        {"time": 1.0, "sensor": "gpu1.temperature_celsius", "reason": "not offered", "detail": "[N/A]"},
    ]
    text = "".join(json.dumps(line) + "\n" for line in lines) + 'garbage\n{"time": 1}\n{"time": 9, "sen'
    recording = read_run(write(tmp_path, {"missing.jsonl": text}), verify=False)

    def why(time: float) -> Missing | None:
        stretch = recording.why_missing("gpu0.temperature_celsius", time)
        return stretch.reason if stretch else None

    assert [why(time) for time in (1.0, 2.0, 4.9, 5.0)] == [None, Missing.TIMEOUT, Missing.TIMEOUT, Missing.ABSENT]
    assert recording.notes == (
        "missing.jsonl: line 4: not understood, left out",
        "missing.jsonl: line 5: not understood, left out",
    )


def test_requests_are_read_line_by_line_whatever_their_errors_hold(tmp_path: Path) -> None:
    header = "start,ttft,latency,status,error,prompt_tokens,completion_tokens,phase"
    rows = [
        "1800000000.123456,0.1,0.25,200,,3,4,ramp",
        '1800000001.5,,30.0,,"timed out, ""read""",,,steady',
        "",
        "1800000002,0.1,nan,200,,3,4,steady",
        "1800000003,0.1,0.2,200,,3,x,steady",
        "1800000004,,0.2,503,status 503,,,steady\r",
        "1800000005,,0.2,503,status 504,,,steady",
        '1800000006,,0.2,503,"an open quote,,,steady',
        "1800000007,1e-3,0.2,200,,3,4,cooldown",
    ]
    recording = read_run(write(tmp_path, {"requests.csv": csv(*rows, header=header)}), verify=False)
    requests = recording.requests
    assert requests is not None
    starts = [1800000000.123456, 1800000001.5, 1800000004, 1800000005, 1800000007]
    assert requests.start_seconds.tolist() == starts
    assert np.array_equal(requests.ttft_seconds, [0.1, np.nan, np.nan, np.nan, 0.001], equal_nan=True)
    assert requests.status.tolist() == [200, 0, 503, 503, 200]
    assert list(requests.error) == ["", 'timed out, "read"', "status 503", "status 504", ""]
    assert list(requests.phase) == ["ramp", "steady", "steady", "steady", "cooldown"]
    assert recording.notes == ("requests.csv: line 5: not a whole row, left out (3 in all)",)


def test_requests_of_many_chunks_are_those_of_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    header = "start,error,latency,status,phase"
    rows = [
        f"{number}.5,{'e' * (number % 13 == 0)},0.5,200,{'ramp' if number < 70 else 'steady'}" for number in range(200)
    ]
    rows[150] = '150.5,"a, b",0.5,0,steady'
    run = write(tmp_path, {"requests.csv": csv(*rows, header=header)})
    monkeypatch.setattr("pytest_thermal.recording.decimals._CHUNK_BYTES", 64)
    requests = read_run(run, verify=False).requests
    assert requests is not None
    assert requests.start_seconds.tolist() == [number + 0.5 for number in range(200)]
    assert list(requests.error) == ["a, b" if n == 150 else "e" if n % 13 == 0 else "" for n in range(200)]
    assert list(requests.phase) == ["ramp"] * 70 + ["steady"] * 130
    assert np.isnan(requests.ttft_seconds).all()
    assert requests.phase.counts(requests.error.where(bool)) == {"steady": 11, "ramp": 6}


def test_a_torn_request_is_left_out(tmp_path: Path) -> None:
    header = "start,ttft,latency,status,error,prompt_tokens,completion_tokens,phase"
    text = f"{header}\n1,0.1,0.2,200,,3,4,steady\n2,0.1\n3,0"
    recording = read_run(write(tmp_path, {"requests.csv": text}), verify=False)
    assert recording.requests is not None
    assert len(recording.requests) == 1
    assert recording.notes == ("requests.csv: line 3: not a whole row, left out (1 in all)",)


def test_an_open_phase_ends_with_the_last_sample_and_a_strange_one_is_left_out(tmp_path: Path) -> None:
    phases = [
        {"name": "baseline", "start_seconds": 1.0, "end_seconds": 2.0},
        {"name": "lunch", "start_seconds": 2.0, "end_seconds": 2.5},
        {"name": "ramp", "start_seconds": "soon", "end_seconds": 2.5},
        {"name": "steady", "start_seconds": 2.0, "end_seconds": None},
    ]
    run = write(tmp_path, {"samples/nvml.csv": csv("1.000,50,40", "3.000,51,41")}, phases=phases, state="recording")
    recording = read_run(run)
    ends = [(phase.name, round(phase.end_seconds, 6)) for phase in recording.phases]
    assert ends == [("baseline", 2.0), ("steady", 3.0)]
    series = recording.series["gpu0.temperature_celsius"]
    assert len(series.during(recording.phases[1])) == 1
    assert recording.state == "cut off"
    assert len(recording.notes) == 4


@pytest.mark.parametrize(
    "because, state",
    [
        ("done", "finished"),
        ("interrupted; phases gone through: baseline", "finished"),
        (None, "finished"),
        ("the process that recorded is gone", "cut off"),
        ("SIGTERM", "cut off"),
        ("the time limit of 900 s", "cut off"),
    ],
)
def test_a_run_that_nobody_ended_is_not_finished_whatever_its_recorder_wrote(
    tmp_path: Path, because: str | None, state: str
) -> None:
    assert read_run(write(tmp_path, {}, ended_because=because), verify=False).state == state


EDITED = ["run.json: changed after the run was sealed"]


@pytest.mark.parametrize(
    "edit, changed",
    [
        (lambda facts: facts, []),
        (lambda facts: dict(sorted(facts.items(), reverse=True)), []),  # the same, laid out otherwise
        (lambda facts: {**facts, "simulated": False}, EDITED),
        (lambda facts: {**facts, "host": {"name": "node-2"}}, EDITED),
        (
            lambda facts: {name: facts[name] for name in facts if name != "simulated"},
            ["run.json: changed after the run was sealed"],
        ),
    ],
)
def test_what_run_json_says_is_sealed_too(
    tmp_path: Path, edit: Callable[[dict[str, Any]], dict[str, Any]], changed: list[str]
) -> None:
    run = write(
        tmp_path, {"events.jsonl": ""}, simulated=True, host={"name": "n1"}, metadata={"Rack": "übung · 3"}, gain=0.1
    )
    seal(run)
    file = run / "run.json"
    file.write_text(json.dumps(edit(json.loads(file.read_text(encoding="utf-8"))), indent=4), encoding="utf-8")
    assert list(read_run(run).changed) == changed
    seal(run)
    assert not read_run(run).changed


def test_files_that_changed_after_the_seal_are_named(tmp_path: Path) -> None:
    run = write(tmp_path, {"events.jsonl": "", "new.txt": "x"}, sha256={"events.jsonl": "0" * 64, "gone.csv": "1" * 64})
    assert read_run(run).notes == (
        "gone.csv: was there when the run was sealed and is gone",
        "events.jsonl: changed after the run was sealed",
        "new.txt: came after the run was sealed",
    )


@pytest.mark.parametrize(
    "content, seen",
    [
        (b"", r"run\.json: damaged: empty"),
        (b"\0" * 100, r"run\.json: damaged: empty"),
        (b'{"format": 1, "sta', r"run\.json: damaged: Unterminated string"),
        (b"[]", r"run\.json: damaged: "),
        (b"{}", r"run\.json: damaged: no 'format' in it"),
        (b'{"format": "x"}', r"run\.json: damaged: "),
    ],
)
def test_a_damaged_run_json_is_told_without_a_traceback(tmp_path: Path, content: bytes, seen: str) -> None:
    run = write(tmp_path, {})
    (run / "run.json").write_bytes(content)
    with pytest.raises(RunDirectoryError, match=seen) as refused:
        read_run(run)
    assert "\ntry: " in str(refused.value)


@pytest.mark.parametrize(
    "facts",
    [
        {"sources": [1]},
        {"sources": {"nvml": True}},
        {"sources": {"nvml": {"segments": 0}}},
        {"phases": -1e18},
        {"phases": [None]},
        {"sensors": 7},
        {"sha256": ["samples/nvml.csv"]},
    ],
)
def test_a_run_json_of_another_shape_is_damaged(tmp_path: Path, facts: dict[str, Any]) -> None:
    run = write(tmp_path, {"samples/nvml.csv": csv("1.000,50,40")}, **facts)
    with pytest.raises(RunDirectoryError, match="damaged: ") as refused:
        read_run(run)
    assert "edited by hand" in str(refused.value)


@pytest.mark.parametrize("name", ["missing.jsonl", "events.jsonl", "requests.csv", "summary.json"])
def test_a_folder_in_the_place_of_a_file_is_told(tmp_path: Path, name: str) -> None:
    run = write(tmp_path, {"samples/nvml.csv": csv("1.000,50,40")})
    (run / name).mkdir()
    with pytest.raises(RunDirectoryError, match="cannot be read: Is a directory"):
        read_run(run)


def test_a_newer_format_is_refused(tmp_path: Path) -> None:
    run = write(tmp_path, {}, format=2, versions={"pytest-thermal": "9.0"})
    with pytest.raises(RunDirectoryError) as refused:
        read_run(run)
    assert str(refused.value).splitlines() == [
        f"{run}/run.json: format 2, and this version reads up to 1",
        "likely: it was recorded by a newer version (9.0)",
        "try: pip install --upgrade pytest-thermal",
    ]


def test_what_a_newer_version_of_this_format_added_does_not_hurt(tmp_path: Path) -> None:
    sensors = [{**sensor("gpu0"), "colour": "red"}, {"x": 1}]
    run = write(tmp_path, {"samples/nvml.csv": csv("1.000,50,40")}, sensors=sensors)
    recording = read_run(run, verify=False)
    assert recording.series["gpu0.temperature_celsius"].sensor.identity == "uuid-gpu0"


def test_folders_that_are_no_run_say_what_they_are(tmp_path: Path) -> None:
    with pytest.raises(RunDirectoryError, match="there is nothing of that name"):
        read_run(tmp_path / "nothing")
    (tmp_path / "empty").mkdir()
    with pytest.raises(RunDirectoryError, match="likely: this is no run directory"):
        read_run(tmp_path / "empty")
    (tmp_path / "file").write_text("x", encoding="utf-8")
    with pytest.raises(RunDirectoryError, match="this is a file"):
        read_run(tmp_path / "file")
    for name in ("1", "2"):
        write(tmp_path / "archive" / name, {})
    with pytest.raises(RunDirectoryError, match="an archive that holds 2 runs") as refused:
        read_run(tmp_path / "archive")
    assert f"try: name one of them: {tmp_path}/archive/2" in str(refused.value)


def test_a_damaged_summary_is_told_and_left_out(tmp_path: Path) -> None:
    recording = read_run(write(tmp_path, {"summary.json": "{"}))
    assert recording.summary is None
    assert any(note.startswith("summary.json: damaged and left out") for note in recording.notes)


def test_a_follower_hands_out_every_row_once_across_segments(tmp_path: Path) -> None:
    run = write(tmp_path, {"samples/nvml.csv": csv("1.000,50,", header=HEADER)})
    follower = Follower(run)
    assert [(tick.time_seconds, dict(tick.values)) for tick in follower.read()] == [
        (1.0, {"gpu0.temperature_celsius": 50.0, "gpu1.temperature_celsius": None})
    ]
    with (run / "samples" / "nvml.csv").open("a", encoding="utf-8") as file:
        file.write("2.000,51,41\n3.0")
        file.flush()
        assert [tick.time_seconds for tick in follower.read()] == [2.0]
        file.write("00,52,42\n")
        file.flush()
    further = csv("2.500,7", header="time,gpu1.temperature_celsius")
    (run / "samples" / "nvml.2.csv").write_text(further, encoding="utf-8")
    assert [tick.time_seconds for tick in follower.read()] == [2.5, 3.0]
    assert follower.read() == []


@pytest.mark.parametrize("blank", [255.0, 127.0, 128.0, -1.0, 0.0, -273.15, 65535.0, 6553.5, 1e9])
def test_readings_that_cannot_be_true_are_missing_whoever_wrote_them(tmp_path: Path, blank: float) -> None:
    rows = [
        f"{second}.000,{50 + second % 3},{blank if 4 <= second < 14 or second == 20 else 40}" for second in range(30)
    ]
    recording = read_run(write(tmp_path, {"samples/nvml.csv": csv(*rows)}), verify=False)
    values = recording.series["gpu1.temperature_celsius"].values
    assert np.flatnonzero(np.isnan(values)).tolist() == [*range(4, 14), 20]
    assert recording.series["gpu0.temperature_celsius"].present.all()
    assert [stretch.time_seconds for stretch in recording.missing] == [4.0, 20.0]
    assert {stretch.reason for stretch in recording.missing} == {Missing.IMPLAUSIBLE}
    assert len(recording.notes) == 1
    assert recording.notes[0].startswith("gpu1.temperature_celsius: raw ")


def test_limits_that_are_blanks_are_no_limits(tmp_path: Path) -> None:
    odd = {**sensor("gpu0"), "limits": {"slowdown": 0.0, "critical": 65261.8, "max": 83.0}}
    run = write(tmp_path, {"samples/nvml.csv": csv("1.000,50,40")}, sensors=[odd, sensor("gpu1")])
    assert read_run(run, verify=False).series["gpu0.temperature_celsius"].sensor.limits == {"max": 83.0}


def test_a_sensor_whose_readings_are_gone_is_still_asked_for(tmp_path: Path) -> None:
    run = write(tmp_path, {"samples/nvml.csv": csv("1.000,50", header="time,gpu0.temperature_celsius")})
    recording = read_run(run, verify=False)
    lost = recording.series["gpu1.temperature_celsius"]
    assert (len(lost), lost.sensor.identity, lost.period_seconds) == (0, "uuid-gpu1", 1.0)
