"""A run as a table: every reading, why one is missing, and nothing made up."""

from __future__ import annotations

import csv
import gzip
import io
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from pytest_thermal.recording import read_run
from pytest_thermal.reporting.export import main
from tests.findings.archives import write_run
from tests.findings.recordings import GPU, PLAN, changed, healthy

REQUESTS = """start,ttft,latency,status,error,prompt_tokens,completion_tokens,phase
1800000500.125,0.5,2.0,200,,50,128,steady
1800000501.125,,,0,"refused, twice",,,steady
"""


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    def with_a_hole(values: Any, _plan: object) -> Any:
        values[3] = float("nan")
        return values

    made = write_run(tmp_path_factory.mktemp("archive"), changed(healthy(), GPU, with_a_hole), simulated=True)
    (made / "missing.jsonl").write_text(
        f'{{"time": {PLAN.times[3]}, "sensor": "{GPU}", "reason": "timeout", "detail": "no answer in 2 s"}}\n'
    )
    (made / "requests.csv").write_text(REQUESTS)
    return made


def rows(path: Path) -> list[dict[str, str]]:
    content = path.read_bytes()
    text = (gzip.decompress(content) if path.suffix == ".gz" else content).decode("utf-8")
    return list(csv.DictReader(io.StringIO(text, newline="")))


def test_one_row_a_reading(run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    target = tmp_path / "out.csv"
    assert main([str(run), "--to", str(target)]) == 0
    recording = read_run(run)
    found = rows(target)
    assert len(found) == sum(len(series) for series in recording.series.values())
    assert f"{target}: {len(found):,} rows" in capsys.readouterr().out
    of_card = [row for row in found if row["sensor"] == GPU]
    values = recording.series[GPU].values
    assert [row["value"] for row in of_card[:3]] == [str(value) for value in values[:3].tolist()]
    assert (of_card[3]["value"], of_card[3]["missing"]) == ("", "timeout")
    assert {row["missing"] for row in found if row["value"]} == {""}
    first = of_card[0]
    assert (first["device"], first["unit"], first["simulated"], first["run"]) == ("gpu0", "celsius", "True", run.name)
    assert first["time_utc"].endswith("Z")
    assert [row["phase"] for row in of_card] == [
        next((phase.name for phase in recording.phases if phase.start_seconds <= time < phase.end_seconds), "")
        for time in recording.series[GPU].time_seconds.tolist()
    ]


def test_requests_lie_beside(run: Path, tmp_path: Path) -> None:
    assert main([str(run), "--to", str(tmp_path / "out.csv.gz")]) == 0
    good, bad = rows(tmp_path / "out.requests.csv.gz")
    assert (good["start_seconds"], good["latency_seconds"], good["status"], good["completion_tokens"]) == (
        "1800000500.125",
        "2.0",
        "200",
        "128",
    )
    assert (bad["error"], bad["latency_seconds"], bad["completion_tokens"]) == ("refused, twice", "", "")


def test_wide_has_a_column_a_sensor(run: Path, tmp_path: Path) -> None:
    assert main([str(run), "--wide", "--to", str(tmp_path / "out.csv")]) == 0
    found = rows(tmp_path / "out.csv")
    assert len(found) == PLAN.times.size
    assert found[3][GPU] == ""
    assert set(read_run(run).series) < set(found[0])


def test_parquet_says_the_same(run: Path, tmp_path: Path) -> None:
    assert main([str(run), "--to", str(tmp_path / "out.parquet")]) == 0
    assert main([str(run), "--to", str(tmp_path / "out.csv")]) == 0
    table = pq.read_table(tmp_path / "out.parquet")
    told = rows(tmp_path / "out.csv")
    assert table.column_names == list(told[0])
    values = table.column("value").to_pylist()
    assert values == [float(row["value"]) if row["value"] else None for row in told]
    assert table.column("missing").to_pylist() == [row["missing"] for row in told]
    stamp = table.column("time_utc").to_pylist()[0]
    assert stamp.isoformat(timespec="milliseconds").replace("+00:00", "Z") == told[0]["time_utc"]
    requests = pq.read_table(tmp_path / "out.requests.parquet")
    assert requests.column("completion_tokens").to_pylist() == [128, None]


@pytest.mark.parametrize("name, why", [("out.xlsx", ".xlsx is no format"), ("out", "no ending is no format")])
def test_an_ending_that_is_not_known_is_refused(
    run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], name: str, why: str
) -> None:
    assert main([str(run), "--to", str(tmp_path / name)]) == 2
    told = capsys.readouterr().err
    assert why in told
    assert "try: --to FILE.csv" in told


def test_a_run_directory_stays_as_it_is(run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    before = sorted(run.rglob("*"))
    assert main([str(run), "--to", str(run / "out.csv")]) == 2
    assert "lies in the run directory" in capsys.readouterr().err
    assert sorted(run.rglob("*")) == before


@pytest.mark.parametrize("target", ["nowhere/out.csv", "nowhere/out.parquet"])
def test_a_folder_that_is_not_there_is_told(
    run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], target: str
) -> None:
    assert main([str(run), "--to", str(tmp_path / target)]) == 2
    assert "cannot be written" in capsys.readouterr().err


def test_what_is_no_run_is_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([str(tmp_path / "nothing"), "--to", str(tmp_path / "out.csv")]) == 2
    assert "there is nothing of that name" in capsys.readouterr().err
