from __future__ import annotations

import errno
import json
import os
import re
from pathlib import Path

import pytest

from pytest_thermal.recording import (
    RequestRow,
    RequestsFile,
    RunClock,
    RunDirectoryError,
    create_run,
    run_clock,
    seal,
    write_summary,
)
from pytest_thermal.recording.host import host_facts
from pytest_thermal.recording.layout import safe_name, sha256, unwritable, write_atomically
from pytest_thermal.recording.run_reader import read_run

CLOCK = RunClock(unix_seconds=1_796_032_511.5, monotonic_seconds=100.0)


def test_a_run_is_named_by_start_and_host_and_never_overwrites_one(tmp_path: Path) -> None:
    runs = [create_run(tmp_path / "archive", facts={}, clock=CLOCK, node="host 1/x") for _ in range(3)]
    assert [run.name for run in runs] == [
        "20261130T095511Z_host_1_x",
        "20261130T095511Z_host_1_x_2",
        "20261130T095511Z_host_1_x_3",
    ]


def test_a_new_run_says_what_ran_where(tmp_path: Path) -> None:
    run = create_run(tmp_path, facts={"bench": {"name": "b"}}, settings={"settings.json": b"{}"}, clock=CLOCK)
    told = json.loads((run / "run.json").read_bytes())
    assert told["format"] == 1
    assert told["bench"] == {"name": "b"}
    assert told["host"]["cpus"] == os.cpu_count()
    assert re.fullmatch(r"3\.\d+\.\d+.*", told["versions"]["python"])
    assert (run / "settings.json").read_bytes() == b"{}"
    assert run_clock(run) == CLOCK


def test_a_clock_of_another_boot_is_not_carried_on(tmp_path: Path) -> None:
    run = create_run(tmp_path, facts={}, clock=CLOCK)
    told = json.loads((run / "run.json").read_bytes())
    told["clock"]["boot_id"] = "another"
    (run / "run.json").write_text(json.dumps(told), encoding="utf-8")
    assert run_clock(run) != CLOCK


def test_host_facts_of_a_machine_that_tells_little_are_none(tmp_path: Path) -> None:
    facts = host_facts(tmp_path)
    assert {facts[name] for name in ("cpu", "memory_bytes", "system", "product", "boot_id", "container")} == {None}


def test_host_facts_are_read_from_where_the_machine_is_seen(tmp_path: Path) -> None:
    for name, text in {
        "proc/cpuinfo": "processor\t: 0\nmodel name\t: First CPU\n\nprocessor\t: 1\nmodel name\t: Second CPU\n",
        "proc/meminfo": "MemTotal:       1024 kB\nMemFree:  1 kB\n",
        "etc/os-release": 'NAME="X"\nPRETTY_NAME="X 12"\n',
        "sys/class/dmi/id/product_name": "Server 9000\n",
    }.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text, encoding="utf-8")
    facts = host_facts(tmp_path)
    assert (facts["cpu"], facts["memory_bytes"], facts["system"], facts["product"]) == (
        "First CPU",
        1_048_576,
        "X 12",
        "Server 9000",
    )


def test_requests_are_whole_lines_of_the_designed_columns(tmp_path: Path) -> None:
    run = create_run(tmp_path, facts={})
    requests = RequestsFile(run)
    requests.append(
        RequestRow(
            start_seconds=1.25,
            ttft_seconds=0.05,
            latency_seconds=0.67,
            status=200,
            prompt_tokens=12,
            completion_tokens=32,
            phase="steady",
            domain="rack-1",
        ),
        RequestRow(
            start_seconds=2.0, error='timed out,\n "read"', phase="steady", latency_seconds=30.0, limit="tokens"
        ),
    )
    requests.close()
    RequestsFile(run).close()
    lines = (run / "requests.csv").read_text(encoding="utf-8").splitlines()
    assert lines[:2] == [
        "start,ttft,latency,status,error,prompt_tokens,completion_tokens,phase,domain,limit",
        "1.250000,0.050000,0.670000,200,,12,32,steady,rack-1,",
    ]
    assert len(lines) == 3
    read = read_run(run).requests
    assert read is not None
    assert list(read.error) == ["", 'timed out, "read"']
    assert read.status.tolist() == [200, 0]
    assert read.latency_seconds.tolist() == [0.67, 30.0]
    assert str(read.ttft_seconds.tolist()) == "[0.05, nan]"
    assert list(read.phase) == ["steady", "steady"]
    assert (list(read.domain), list(read.limit)) == (["rack-1", ""], ["", "tokens"])


def test_a_summary_is_sealed_with_the_rest(tmp_path: Path) -> None:
    run = create_run(tmp_path, facts={})
    write_summary(run, {"figures": [1, 2]})
    told = json.loads((run / "run.json").read_bytes())
    assert told["sha256"] == {"summary.json": sha256(run / "summary.json")}
    assert read_run(run).summary == {"figures": [1, 2]}


@pytest.mark.parametrize("facts", [{"x": float("nan")}, {"x": object()}])
def test_what_json_cannot_hold_is_the_callers_mistake(tmp_path: Path, facts: dict[str, object]) -> None:
    with pytest.raises((ValueError, TypeError)):
        create_run(tmp_path, facts=facts)


def test_an_archive_that_is_a_file_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("", encoding="utf-8")
    with pytest.raises(RunDirectoryError) as refused:
        create_run(tmp_path / "file" / "runs", facts={})
    assert str(refused.value).splitlines() == [
        f"{tmp_path}/file/runs: cannot be written: Not a directory",
        "likely: a file stands where a folder is needed",
        "try: --runs DIR with a folder of your own and room on its disk",
    ]


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write anywhere")
def test_an_archive_of_somebody_else_is_refused(tmp_path: Path) -> None:
    tmp_path.chmod(0o500)
    with pytest.raises(RunDirectoryError, match="belongs to another user"):
        create_run(tmp_path, facts={})


@pytest.mark.parametrize(
    "number, likely",
    [(errno.ENOSPC, "the disk is full"), (errno.EROFS, "mounted read-only"), (errno.EIO, "has a fault")],
)
def test_why_something_cannot_be_written(number: int, likely: str) -> None:
    assert likely in str(unwritable(Path("/place"), OSError(number, os.strerror(number))))


def test_a_file_is_replaced_whole_or_not_at_all(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "run.json"
    write_atomically(path, b"old")

    def full(_descriptor: int) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="No space left"):
        write_atomically(path, b"new")
    assert path.read_bytes() == b"old"
    assert list(tmp_path.iterdir()) == [path]


def test_seal_refuses_what_is_no_run(tmp_path: Path) -> None:
    with pytest.raises(RunDirectoryError, match=r"no run\.json in it"):
        seal(tmp_path)


@pytest.mark.parametrize(
    "text, name", [("a b", "a_b"), ("..", "unnamed"), ("", "unnamed"), ("npu-smi", "npu-smi"), ("温度", "unnamed")]
)
def test_names_of_files(text: str, name: str) -> None:
    assert safe_name(text) == name
