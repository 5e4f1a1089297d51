from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

from pytest_thermal.reporting.allure_amendments import WrittenResults
from pytest_thermal.reporting.allure_metrics import allure_metrics
from pytest_thermal.reporting.run_environment import node_name, run_environment
from tests.findings.recordings import FACTS, GPU, healthy, judged


def written(folder: Path, file_name: str, **content: object) -> Path:
    file = folder / f"{file_name}-result.json"
    file.write_text(json.dumps(content), encoding="utf-8")
    return file


def test_a_result_is_found_by_its_id_and_told_more(tmp_path: Path) -> None:
    file = written(tmp_path, "0a", uuid="one", name="test", description="old", attachments=[{"name": "log"}])
    other = written(tmp_path, "0b", uuid="two", description="other")
    (tmp_path / "0c-result.json").write_text("{broken")
    before = other.read_bytes()
    results = WrittenResults(tmp_path, ["one"])
    picture = results.attach(b"<svg/>", name="curve", kind="image/svg+xml", suffix="svg")
    assert results.amend("one", description="new °C", attachments=[picture])
    assert not results.amend("two", description="not wanted")
    assert not results.amend("gone", description="x")
    told = json.loads(file.read_text(encoding="utf-8"))
    assert told["description"] == "new °C"
    assert told["name"] == "test"
    assert [one["name"] for one in told["attachments"]] == ["curve", "log"]
    assert (tmp_path / told["attachments"][0]["source"]).read_bytes() == b"<svg/>"
    assert other.read_bytes() == before
    assert list(tmp_path.glob("*.tmp")) == []


def test_an_attachment_of_the_run_stands_beside_its_results(tmp_path: Path) -> None:
    for _ in range(2):  # two workers
        WrittenResults(tmp_path, []).attach_to_run(b"<html>", name="page", kind="text/html", suffix="html")
    (told,) = [json.loads(file.read_text()) for file in tmp_path.glob("*-globals.json")]
    (one,) = told["attachments"]
    assert (one["name"], one["type"]) == ("page", "text/html")
    assert one["timestamp"] > 1_000_000_000_000
    assert (tmp_path / one["source"]).read_bytes() == b"<html>"


def test_figures_become_metrics_of_their_node_and_bench() -> None:
    judgement = judged(healthy())
    found = {one["key"]: one for one in allure_metrics(judgement, node="bench-07")}
    rise = found["bench-07 (lab-7).gpu0.rise"]
    assert rise["value"] == round(float(str(judgement.finding("rise", GPU).evidence["rise_celsius"])), 4)
    assert (rise["title"], rise["unit"], rise["better"]) == ("gpu0 rise", "°C", "lower")
    assert rise["group"] == rise["groupTitle"] == "bench-07 (lab-7)"
    assert "bench-07 (lab-7).gpu0.resistance" in found
    assert rise["stop"] > rise["start"] > 1_000_000_000_000
    assert len({one["id"] for one in found.values()}) == len(found)
    assert allure_metrics(judgement, node="bench-07") == allure_metrics(judgement, node="bench-07")


def test_a_demo_run_is_no_step_of_a_real_benchs_history() -> None:
    simulated = replace(healthy(), facts={**FACTS, "simulated": True})
    real = {one["key"] for one in allure_metrics(judged(healthy()), node="n")}
    assert real.isdisjoint(one["key"] for one in allure_metrics(judged(simulated), node="n"))


def test_the_environment_says_machine_devices_drivers_and_evidence() -> None:
    facts = {
        **FACTS,
        "host": {"name": "node-3", "system": "Debian 12", "kernel": "6.1", "cpu": "EPYC", "cpus": 128, "bios": "2.1"},
        "drivers": {"nvidia": "570.86.15"},
        "accelerators": [{"identity": "ID-gpu0", "model": "NVIDIA H100", "firmware": "96.00.61"}],
        "works": [{"kind": "cpu", "tool": "stress-ng 0.15"}],
    }
    told = run_environment(replace(healthy(), facts=facts))
    assert told["Node"] == "node-3"
    assert told["Host"] == "node-3 (Debian 12, 6.1)"
    assert told["Product"] == "BIOS 2.1"
    assert told["Processor"] == "EPYC, 128 logical"
    assert "gpu0: NVIDIA H100" in told["Devices"]
    assert "cpu0: ID-cpu0" in told["Devices"]
    assert told["Drivers and firmware"] == "nvidia 570.86.15; firmware 96.00.61"
    assert told["Evidence"] == "measured"
    assert told["Bench"] == "lab-7"
    assert "Memory" not in told
    simulated = run_environment(replace(healthy(), facts={**facts, "simulated": True}))
    assert simulated["Evidence"] == "SIMULATED (demo bench)"


def test_a_log_that_names_no_machine_is_a_node_by_its_own_name() -> None:
    assert node_name(replace(healthy(), facts={}, path=Path("/tmp/rack-4.csv"))) == "rack-4"
