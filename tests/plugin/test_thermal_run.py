"""One thermal run of the demo bench, and everything that can be seen of it."""

from __future__ import annotations

import csv
import fcntl
import hashlib
import json
import platform
import re
import shutil
import urllib.request
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import numpy as np
import pytest

from pytest_thermal.model import Missing
from pytest_thermal.model.phases import FULL_UTILIZATION_PERCENT
from pytest_thermal.recording import read_run
from pytest_thermal.reporting.export import export
from pytest_thermal.reporting.history.__main__ import main as history
from pytest_thermal.reporting.run_page.__main__ import main as run_page
from tests.plugin.plugin_runs import CANARY, cases, everything_below
from tests.plugin.thermal_runs import (
    PATIENCE_SECONDS,
    SHORT,
    THERMAL,
    Ran,
    Started,
    as_measured,
    events,
    held_up,
    phases,
)


@pytest.fixture(scope="module")
def ran(tmp_path_factory: pytest.TempPathFactory, worker_id: str) -> Ran:
    """A short run, ended: all tests of this file look at it, on whatever worker they are."""
    base = tmp_path_factory.getbasetemp()
    folder = (base if worker_id == "master" else base.parent) / "thermal-run"
    with folder.with_suffix(".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (folder / "ended").exists():
            make_run(folder)
            (folder / "ended").touch()
    return Ran(folder)


LEAKY = """
import logging
import pytest
from pytest_thermal.model import Finding, Outcome
from pytest_thermal.plugin.active_bench import active_bench


def key(config):
    return active_bench(config).bench.domains[0].key.get_secret_value()


def pytest_collection_modifyitems(items):
    for item in items:
        if item.name == "test_phase[steady]":
            item.add_marker(pytest.mark.timeout(10))


def pytest_thermal_metadata(config, metadata):
    metadata["proxy"] = f"Authorization: Bearer {key(config)}"


def pytest_thermal_criteria(config, run):
    logging.getLogger("leaky").warning("judged with %s", key(config))
    seen = f"the rack answered to {key(config)}"
    evidence = {"value_celsius": 5.0, "limit_celsius": 6.0, "limit_origin": key(config), "asked": key(config)}
    return [Finding(check="rack", layer="rack", subject=key(config), outcome=Outcome.PASSED, seen=seen,
                    evidence=evidence, warnings=(f"by {key(config)}",))]


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_call(item):
    if "phase" in item.name:
        print("printed", key(item.config))
        logging.getLogger("leaky").info("logged %s", key(item.config))
        item.user_properties.append(("leak", key(item.config)))
"""
"""Plugins of a bench's owner, who has the key and no care."""


def make_run(folder: Path) -> None:
    """With everything on that writes anything; and every view of it that is made afterwards."""
    folder.mkdir()
    (folder / "leaky.py").write_text(LEAKY)
    out = folder / "out"
    out.mkdir()
    started = Started(
        folder,
        *(THERMAL, "--demo", *SHORT, "-v", "--junitxml", folder / "run.xml", "--alluredir", folder / "allure"),
        *("-p", "leaky", "--gate", "--ocp-diag", out / "ocp.jsonl", "--prometheus-port", "0"),
        *("--log-file", out / "log.txt", "--log-file-level", "DEBUG"),
        # And LEAKY has a limit for one: shorter than its phase, it must not end a run.
        *("--timeout", "90"),
        env={"THERMAL_CANARY": CANARY, "PYTHONPATH": f"{folder}"},
    )
    try:
        started.wait_for("thermal: steady")
        url = re.findall(r"Prometheus: (http://\S+)", started.output)[0]
        with urllib.request.urlopen(url, timeout=PATIENCE_SECONDS) as answer:
            (out / "prometheus.txt").write_bytes(answer.read())
        started.wait()
    finally:
        started.close()
    recording = read_run(started.run())
    for name in ("tidy.csv", "tidy.parquet", "wide.csv"):
        export(recording, out / name, as_wide=name == "wide.csv")
    for page, command in (("page.html", run_page), ("history.html", history)):
        assert command([str(started.runs if command is history else started.run()), "--out", str(out / page)]) == 0


def found(ran: Ran) -> dict[str, tuple[str, str]]:
    return cases(ran.folder / "run.xml")


def test_the_phases_are_gone_through_in_their_order(ran: Ran) -> None:
    assert phases(ran.facts()) == ["baseline", "ramp", "steady", "cooldown"]
    for phase in ("baseline", "ramp", "steady", "cooldown"):
        assert found(ran)[f"test_phase[{phase}]"] == ("passed", "")


def test_the_history_of_the_bench_is_written_with_it(ran: Ran) -> None:
    page = (ran.runs / "history.html").read_text()
    assert f"history: {ran.runs / 'history.html'}" in "".join(ran.output.split("\n  ")), ran.output
    assert f'href="{ran.run().name}/report.html"' in page
    assert "demo (simulated)" in page
    assert "SIMULATED" in page
    (attached,) = (path for path in (ran.folder / "allure").glob("*.html") if "Thermal history" in path.read_text())
    assert 'href="' + ran.run().name not in attached.read_text()


def test_nothing_of_it_is_left(ran: Ran) -> None:
    assert ran.left() == []


def test_the_run_directory_is_as_designed(ran: Ran) -> None:
    run = ran.run()
    assert {path.name for path in run.iterdir()} >= {
        *("run.json", "settings.json", "config.toml", "samples", "requests.csv", "events.jsonl", "summary.json"),
    }
    facts = ran.facts()
    assert facts["state"] == "finished"
    assert facts["simulated"] is True
    assert facts["time_scale"] > 1
    assert facts["plan"]["seconds"] == {"baseline": 4, "ramp": 5, "steady": 12, "cooldown": 6}
    assert facts["plan"]["origins"]["steady"] == "command line --duration"
    assert set(facts["sha256"]) >= {"samples/demo.csv", "requests.csv", "events.jsonl", "summary.json"}


def test_every_reading_is_there(ran: Ran) -> None:
    """Or a row that says that it is not, and why: this machine, which may stand still."""
    recording = read_run(ran.run())
    series = recording.series["gpu0.temperature_celsius"]
    assert len(series) >= 27 / 0.25 * 0.95 or held_up(ran.run())
    timing = recording.timing["demo"]
    due = timing.time_seconds - np.nan_to_num(timing.lateness_ms) / 1000
    assert set(np.round(np.diff(due) / timing.period_seconds)) == {1.0}, "a tick without a row"
    for time_seconds in series.time_seconds[~series.present]:
        why = recording.why_missing(series.sensor.id, float(time_seconds))
        assert why is not None
        assert why.reason is Missing.TIMEOUT


def test_the_load_was_on_in_its_phases_alone(ran: Ran) -> None:
    loads = events(ran.run(), "load")
    started = [event["load"] for event in loads if event["what"] == "started"]
    stopped = [event["load"] for event in loads if event["what"] == "stopped"]
    assert sorted(started) == sorted(stopped) == ["cpu", "inference"]
    ramp, cooldown = (phase for phase in ran.facts()["phases"] if phase["name"] in ("ramp", "cooldown"))
    assert all(ramp["start_seconds"] <= event["time"] < cooldown["end_seconds"] for event in loads)
    with (ran.run() / "requests.csv").open() as file:
        assert {row["phase"] for row in csv.DictReader(file)} <= {"ramp", "steady"}


def test_what_heats_is_said(ran: Ran) -> None:
    tools = [work["tool"] for work in ran.facts()["works"]]
    assert any("stress-ng" in tool or "burner" in tool for tool in tools)
    assert any(tool.startswith("closed loop of 16") for tool in tools)
    assert f"load: {', '.join(tools)}" in " ".join(ran.output.split())


def lowest(run: Path, device: str) -> float:
    """Of its utilisation in steady, percent."""
    recording = read_run(run)
    (steady,) = (phase for phase in recording.phases if phase.name == "steady")
    _, values = recording.series[f"{device}.utilization_percent"].during(steady).readings()
    return float(values.min())


def test_rise_and_load_are_found(ran: Ran) -> None:
    for sensor in ("cpu0.package.temperature_celsius", "gpu0.temperature_celsius", "gpu1.temperature_celsius"):
        assert as_measured(ran.run(), found(ran)[f"test_coverage[{sensor}]"]) == "passed"
    for device in ("cpu0", "gpu0"):
        case = found(ran)[f"test_load[{device}]"]
        # Whatever loads the card may stand still, too.
        assert as_measured(ran.run(), case) == "passed" or lowest(ran.run(), device) < FULL_UTILIZATION_PERCENT, case


def test_a_steady_too_short_to_settle_passes_no_sensor_as_settled(ran: Ran) -> None:
    settled = {name: case for name, case in found(ran).items() if name.startswith("test_settled")}
    assert settled
    assert any(outcome != "passed" for outcome, _ in settled.values())


def test_figures_travel_as_properties(ran: Ran) -> None:
    root = ET.parse(ran.folder / "run.xml").getroot()
    case = next(case for case in root.iter("testcase") if case.get("name") == "test_rise[gpu0.temperature_celsius]")
    told = {part.get("name"): part.get("value") for part in case.iter("property")}
    assert told["thermal_check"] == "rise"
    names = [part.get("name") for part in case.iter("property")]
    assert names.count("thermal_simulated") == 1
    assert told["thermal_outcome"] in ("passed", "inconclusive", "failed")
    assert told["thermal_run_directory"] == str(ran.run())
    assert told["thermal_node"] == platform.node()
    passed = [
        {part.get("name"): part.get("value") for part in case.iter("property")}
        for case in root.iter("testcase")
        if case.get("name", "").startswith("test_rebound[gpu") and case.find("failure") is None
    ]
    assert passed or held_up(ran.run())
    assert {(one["thermal_unit"], one["thermal_limit"], one["thermal_limit_is"]) for one in passed} <= {
        ("celsius", "2.0", "most")
    }
    assert {one["thermal_limit_origin"] for one in passed} <= {"default"}


def test_simulated_is_said_everywhere(ran: Ran) -> None:
    assert "DEMO bench, all simulated" in ran.output
    results = [json.loads(path.read_text()) for path in (ran.folder / "allure").glob("*-result.json")]
    rises = [result for result in results if result["name"].endswith("[gpu0.temperature_celsius]")]
    assert rises
    for result in rises:
        labels = {(label["name"], label["value"]) for label in result["labels"]}
        assert ("epic", "Thermal (simulated)") in labels
        assert "Simulated" in result["description"]
    assert json.loads((ran.run() / "summary.json").read_text())["simulated"] is True


def allure_of(ran: Ran) -> dict[str, dict[str, Any]]:
    """Results of the run, by check and subject as in a test's name."""
    loaded = [json.loads(path.read_text()) for path in (ran.folder / "allure").glob("*-result.json")]
    found = {}
    for result in loaded:
        told = {one["name"]: one["value"] for one in result["parameters"]}
        subject = next(told[name] for name in ("sensor", "device", "phase") if name in told)
        found[f"{result['fullName'].rsplit('#', 1)[-1]}[{subject}]"] = result
    return found


def test_each_phase_is_seen_in_allure_without_a_click(ran: Ran) -> None:
    results = allure_of(ran)
    for phase in ("baseline", "ramp", "steady", "cooldown"):
        result = results[f"test_phase[{phase}]"]
        text = result["description"]
        assert f"**Passed** — phase: {phase} lasted for" in text
        assert "| `gpu0` |" in text
        assert "](data:image/png;base64,iVBOR" in text
        assert f"Temperatures in {phase}" in text
        (svg,) = [one for one in result["attachments"] if one["type"] == "image/svg+xml"]
        assert "SIMULATED" in (ran.folder / "allure" / svg["source"]).read_text()
        labels = {label["name"]: label["value"] for label in result["labels"]}
        assert (labels["feature"], labels["story"]) == (phase, "phase")


def test_what_did_not_pass_carries_its_curve_and_what_passed_need_not(ran: Ran) -> None:
    outcomes = {name: found(ran)[name][0] for name in found(ran)}
    results = allure_of(ran)
    for name, result in results.items():
        check = name.partition("[")[0]
        pictured = "](data:image/png" in result["description"]
        if outcomes[name] == "failure":
            assert pictured, name
        elif check in ("test_coverage", "test_load") or outcomes[name] == "skipped":
            assert not pictured, name
        assert "It is not here" not in result["description"], name


def test_figures_are_metrics_and_the_page_is_the_runs(ran: Ran) -> None:
    folder = ran.folder / "allure"
    (metrics,) = [json.loads(path.read_text()) for path in folder.glob("*-perf.json")]
    rise = next(one for one in metrics if one["key"].endswith(".gpu0.rise"))
    assert rise["unit"] == "°C"
    assert 20 < rise["value"] < 45
    assert "(demo, simulated)" in rise["key"]
    told = [json.loads(path.read_text())["attachments"] for path in folder.glob("*-globals.json")]
    ((page,),) = [attached for attached in told if attached[0]["name"].startswith("the run's page")]
    assert (folder / page["source"]).read_bytes() == (ran.run() / "report.html").read_bytes()
    environment = (folder / "environment.properties").read_text()
    assert f"Run={ran.run().name} (finished)" in environment
    assert "Devices=cpu0: simulated-cpu0" in environment
    assert str(ran.runs) not in environment


def test_progress_is_told_in_plain_lines(ran: Ran) -> None:
    for phase, seconds in (("baseline", 4), ("ramp", 5), ("steady", 12), ("cooldown", 6)):
        assert f"thermal: {phase} for {seconds} s\n" in ran.output


def test_the_summary_has_the_figures_and_the_way_back(ran: Ran) -> None:
    assert f"run: {ran.run()} (finished)" in ran.output.replace("\n  ", " ")
    line = next(line for line in ran.output.splitlines() if line.startswith("  gpu0  "))
    baseline, _steady, rise = (float(word) for word in line.split()[1:4])
    assert 25 < baseline < 40
    assert 20 < rise < 45
    steady = next(line for line in ran.output.splitlines() if re.match(r"  steady +12 s ", line))
    assert steady.endswith("  ok")
    lasted, unit, cpu, gpu, watts, requests, failed_requests = steady.split()[1:8]
    assert (lasted, unit, failed_requests) == ("12", "s", "0")
    assert 40 < float(cpu) < 90
    assert 40 < float(gpu) < 90
    assert float(watts.replace(",", "")) > 500
    assert int(requests.replace(",", "")) > 0
    section = ran.output.split("= thermal")[-1].split("= short test summary")[0].splitlines()[1:]
    assert [line for line in section if len(line) > 80 and str(ran.runs) not in line] == []


def test_its_page_is_written_and_named_and_is_no_part_of_what_is_sealed(ran: Ran) -> None:
    page = ran.run() / "report.html"
    assert f"report: {page}" in " ".join(ran.output.split())
    text = page.read_text(encoding="utf-8")
    assert "SIMULATED" in text
    assert "rise[gpu0.temperature_celsius]" in text
    assert "phase[cooldown]" in text
    assert len(text) < 1_000_000
    facts = ran.facts()
    assert "report.html" not in facts["sha256"]
    assert hashlib.sha256((ran.run() / "run.json").read_bytes()).hexdigest() in text
    assert read_run(ran.run()).changed == ()


def test_the_key_is_nowhere(ran: Ran) -> None:
    output, files = ran.output, everything_below(ran.folder)
    assert "key sk-d…, 48 characters" in output
    assert re.findall(r"sk-d[\w-]{8,}", output + files) == []
    for place in (  # what of it was there to be searched
        *("out/prometheus.txt", "out/ocp.jsonl", "out/log.txt", "out/tidy.csv", "out/tidy.requests.csv"),
        *("out/wide.csv", "out/page.html", "out/history.html", "reports/gate.json", "run.xml", "runs/history.html"),
    ):
        assert (ran.folder / place).stat().st_size > 300, place
    run = ran.run()
    told = [run / "run.json", run / "summary.json", run / "report.html"]
    told += [ran.folder / "run.xml", ran.folder / "out/log.txt", ran.folder / "allure/environment.properties"]
    for path in told:  # the leak came through here, so it was taken out here
        assert "[key sk-d…]" in path.read_text(), path
    assert "${THERMAL_DEMO_KEY}" in (ran.run() / "settings.json").read_text()
    assert CANARY not in output + files


def outcomes(output: str) -> dict[str, str]:
    """Test id → outcome word of a verbose run."""
    words = (line.split() for line in output.splitlines() if "::test_" in line and "[" in line)
    return {parts[0].split("::")[-1]: parts[1] for parts in words if len(parts) > 1 and parts[1].isupper()}


def test_a_replay_judges_as_the_run_did(ran: Ran, tmp_path: Path) -> None:
    again = Started(
        tmp_path, THERMAL, "--replay", ran.run(), "--against", "none", "-v", "--junitxml", tmp_path / "again.xml"
    )
    again.wait()
    live = {name: case for name, case in found(ran).items() if not name.startswith("test_drift")}
    replayed = {name: case for name, case in cases(tmp_path / "again.xml").items() if not name.startswith("test_drift")}
    assert replayed == live
    assert not again.runs.exists()


def test_a_replay_leaves_the_run_as_it_is(ran: Ran, tmp_path: Path) -> None:
    before = {path: path.read_bytes() for path in ran.run().rglob("*") if path.is_file()}
    again = Started(tmp_path, THERMAL, "--replay", ran.run(), "-q", "-k", "rise")
    again.wait()
    assert {path: path.read_bytes() for path in ran.run().rglob("*") if path.is_file()} == before


def damaged(ran: Ran, tmp_path: Path) -> Path:
    return Path(shutil.copytree(ran.run(), tmp_path / "damaged"))


def judged_again(run: Path, tmp_path: Path, *more: str) -> dict[str, tuple[str, str]]:
    Started(tmp_path, THERMAL, "--replay", run, "--junitxml", tmp_path / "again.xml", *more).wait()
    return cases(tmp_path / "again.xml")


def test_a_sensor_that_the_run_declares_and_has_lost_does_not_pass(ran: Ran, tmp_path: Path) -> None:
    run = damaged(ran, tmp_path)
    samples = run / "samples" / "demo.csv"
    rows = list(csv.reader(samples.read_text().splitlines()))
    keep = [number for number, name in enumerate(rows[0]) if not name.startswith("gpu1.")]
    samples.write_text("".join(",".join(row[number] for number in keep) + "\n" for row in rows))
    found = judged_again(run, tmp_path)
    assert found["test_rise[gpu1.temperature_celsius]"][0] == "failure"
    assert found["test_coverage[gpu1.power_watts]"][0] == "failure"
    assert "samples/demo.csv: changed after the run was sealed" in found["test_phase[steady]"][1]


def test_requests_or_events_that_are_gone_do_not_pass(ran: Ran, tmp_path: Path) -> None:
    run = damaged(ran, tmp_path)
    (run / "requests.csv").unlink()
    (run / "events.jsonl").unlink()
    found = judged_again(run, tmp_path, "-k", "throughput or phase")
    assert found["test_throughput[inference]"][0] == "failure"
    outcome, message = found["test_phase[steady]"]
    assert outcome == "failure"
    assert "inconclusive: phase: steady" in message
    assert "events.jsonl: was there when the run was sealed and is gone" in message


def test_a_damaged_summary_is_left_out(ran: Ran, tmp_path: Path) -> None:
    run = damaged(ran, tmp_path)
    (run / "summary.json").write_text('{"figures": ')
    again = judged_again(run, tmp_path, "-k", "coverage")
    name = "test_coverage[gpu0.temperature_celsius]"
    assert again[name] == found(ran)[name]


def earlier(run: Path, archive: Path, *, warmer: float = 0.0) -> Path:
    """The same run as if it had been made a day before, so many °C cooler."""
    copy = archive / f"20260101T000000Z_{run.name.split('_', 1)[1]}"
    shutil.copytree(run, copy)
    facts = json.loads((copy / "run.json").read_text())
    facts["start_seconds"] -= 86400
    facts.pop("sha256")
    (copy / "run.json").write_text(json.dumps(facts))
    if warmer:
        samples = copy / "samples" / "demo.csv"
        with samples.open() as file:
            rows = list(csv.reader(file))
        column = rows[0].index("gpu0.temperature_celsius")
        for row in rows[1:]:
            if row[column] and float(row[column]) > 45:
                row[column] = f"{float(row[column]) - warmer:g}"
        with samples.open("w", newline="") as file:
            csv.writer(file, lineterminator="\n").writerows(rows)
    return copy


def drift(ran: Ran, tmp_path: Path, *more: str) -> tuple[str, str]:
    again = Started(
        tmp_path, THERMAL, "--replay", ran.run(), "-k", "drift", "--junitxml", tmp_path / "again.xml", *more
    )
    again.wait()
    return cases(tmp_path / "again.xml")["test_drift[gpu0.temperature_celsius]"]


def test_drift_is_judged_against_a_run_that_is_named(ran: Ran, tmp_path: Path) -> None:
    old = earlier(ran.run(), tmp_path / "runs", warmer=8.0)
    outcome, message = drift(ran, tmp_path, "--against", old.name)
    assert outcome == "failure"
    assert message.startswith("drift: gpu0.temperature_celsius")
    assert old.name in message


def test_drift_is_judged_against_the_latest_good_run(ran: Ran, tmp_path: Path) -> None:
    old = earlier(ran.run(), tmp_path / "runs", warmer=8.0)
    summary = json.loads((old / "summary.json").read_text())
    for found in summary["findings"]:  # in this short run some sensors had not settled
        found["outcome"] = "passed"
    (old / "summary.json").write_text(json.dumps(summary))
    outcome, message = drift(ran, tmp_path)
    assert outcome == "failure"
    assert old.name in message


def test_without_an_earlier_run_drift_is_skipped_and_says_why(ran: Ran, tmp_path: Path) -> None:
    outcome, message = drift(ran, tmp_path)
    assert outcome == "skipped"
    assert "no earlier run" in message
