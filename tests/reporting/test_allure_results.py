from __future__ import annotations

import os
from pathlib import Path

import pytest

from pytest_thermal.reporting.allure_results import NoResultsError, newest_results, run_facts


def make_run(folder: Path, *, ended: int, name: str = "0a-result.json") -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    file = folder / name
    file.write_text("{}")
    os.utime(file, (ended, ended))
    return folder


def test_a_folder_of_results_is_taken_itself(tmp_path: Path) -> None:
    make_run(tmp_path, ended=100)
    assert newest_results(tmp_path) == tmp_path


def test_of_several_runs_the_one_that_ended_last(tmp_path: Path) -> None:
    make_run(tmp_path / "a", ended=100)
    last = make_run(tmp_path / "b", ended=300)
    make_run(tmp_path / "c", ended=200)
    assert newest_results(tmp_path) == last


def test_within_a_run_its_last_result_counts(tmp_path: Path) -> None:
    long_one = make_run(tmp_path / "a", ended=100)
    make_run(long_one, ended=400, name="1b-result.json")
    make_run(tmp_path / "b", ended=300)
    assert newest_results(tmp_path) == long_one


def test_at_the_same_second_the_later_name(tmp_path: Path) -> None:
    make_run(tmp_path / "20261130T080000Z", ended=100)
    later = make_run(tmp_path / "20261130T080001Z", ended=100)
    assert newest_results(tmp_path) == later


def test_a_newer_folder_without_results_is_no_run(tmp_path: Path) -> None:
    run = make_run(tmp_path / "a", ended=100)
    (tmp_path / "b").mkdir()
    (tmp_path / "b" / "environment.properties").write_text("Bench=x\n")
    assert newest_results(tmp_path) == run


def test_nothing_there_says_what_to_do(tmp_path: Path) -> None:
    with pytest.raises(NoResultsError, match=r"no result of any test in it\nlikely: .*\ntry: "):
        newest_results(tmp_path)
    with pytest.raises(NoResultsError, match=r"gone: no such folder\nlikely: .*\ntry: .*--alluredir"):
        newest_results(tmp_path / "gone")


def test_run_facts(tmp_path: Path) -> None:
    (tmp_path / "environment.properties").write_text(
        "# written by a run\n\nBench=demo (none configured)\nHost\\ OS = Debian 12\nGateway\\ a\\:b=http://127.0.0.1:1/v1\n"
        "Path=C:\\\\x=y\nColon: value\nBare\n",
        encoding="utf-8",
    )
    assert run_facts(tmp_path) == {
        "Bench": "demo (none configured)",
        "Host OS": "Debian 12",
        "Gateway a:b": "http://127.0.0.1:1/v1",
        "Path": "C:\\x=y",
        "Colon": "value",
        "Bare": "",
    }


def test_no_facts_without_the_file(tmp_path: Path) -> None:
    assert run_facts(tmp_path) == {}
