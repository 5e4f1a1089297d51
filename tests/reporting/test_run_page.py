"""The page of a run as a reviewer without JavaScript, and as whoever reads its source, sees it."""

from __future__ import annotations

import ast
import base64
import hashlib
import json
import re
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from pytest_thermal.bench import Redactor
from pytest_thermal.model.series import Series
from pytest_thermal.recording import Event, Labels, create_run, read_run, write_summary
from pytest_thermal.reporting import run_page
from pytest_thermal.reporting.run_page import curves as curves_module
from pytest_thermal.reporting.run_page import judged_subject, page_html, subject_of, write_page
from pytest_thermal.reporting.run_page.__main__ import main
from pytest_thermal.reporting.run_page.words import ENGLISH
from tests.findings.recordings import CPU, GPU, PLAN, PUMP, healthy, limits, without, without_phase
from tests.plugin.plugin_runs import REPO
from tests.reporting.pages import (
    GAP,
    MARKUP,
    Page,
    faulty,
    faulty_page,
    good_page,
    page_of,
    subject_for,
)

ROOM = Path(run_page.__file__).parent
LOGS = REPO / "fixtures" / "logs"
CANARY = "sk-canary-PAGE0123456789abcdefPAGE"


# -------------------------------------------------------------------------------------------------------------- verdict


def test_the_verdict_comes_first_and_counts_what_was_found() -> None:
    said = Page(good_page()).said
    assert re.search(r"✓ Passed Every check that applies .* passed \d+", said[:600])
    said = Page(faulty_page()).said
    assert re.search(
        r"✗ Failed At least one check found a fault.* failed \d+ .*inconclusive \d+ .*passed \d+", said[:700]
    )


def test_findings_come_worst_first_each_cause_once_with_what_to_try() -> None:
    said = Page(faulty_page()).said
    failed = said.index("pump0.speed_rpm stood still")
    likely = said.index("the pump lost its power", failed)
    assert failed < likely < said.index("try: take the load off", likely) < said.index("has holes in steady")
    assert said.count("bleed the loop and top it up") == 1
    assert said.index("has holes in steady") < said.index("What passed (")


def test_what_was_not_measured_is_never_a_pass() -> None:
    said = Page(page_of(without(healthy(), "gpu0.utilization_percent", "gpu0.power_watts"))).said
    assert "? Inconclusive" in said[:400]
    assert "✓ Passed" not in said


def test_a_run_of_which_nothing_was_judged_says_nothing_of_the_machine() -> None:
    subject = judged_subject(replace(healthy(), phases=(), facts={}), {"findings": []})
    assert subject.verdict == "inconclusive"
    assert "No check was judged" in Page(page_html(subject)).said


def test_a_changed_run_does_not_pass_and_says_what_changed() -> None:
    said = Page(page_of(replace(healthy(), changed=("events.jsonl: changed after the run was sealed",)))).said
    assert "✓ Passed" not in said
    assert "events.jsonl: changed after the run was sealed" in said[:900]


def test_a_changed_run_without_phases_does_not_pass_either() -> None:
    run = replace(healthy(), phases=(), facts={})
    found = {"check": "leak", "subject": "tray", "outcome": "passed", "seen": "dry", "likely": "", "advice": ""}
    assert judged_subject(run, {"findings": [found]}).verdict == "passed"
    changed = replace(run, changed=("requests.csv: changed after the run was sealed",))
    assert judged_subject(changed, {"findings": [found]}).verdict == "inconclusive"


@pytest.mark.parametrize("simulated", [True, False])
def test_simulated_is_said_before_the_verdict_and_only_then(simulated: bool) -> None:
    run = replace(healthy(), facts={**healthy().facts, "simulated": simulated})
    said = Page(page_of(run, simulated=simulated)).said
    assert ("SIMULATED" in said) is simulated
    if simulated:
        assert said.index("SIMULATED") < said.index("Every check that applies")


# -------------------------------------------------------------------------------------------------------------- figures


def test_each_limit_stands_by_its_figure_with_its_origin() -> None:
    subject = subject_for(healthy(), limits=limits(rise_gpu_most=(44.0, "pyproject.toml thermal_limits")))
    said = Page(page_html(subject)).said
    assert re.search(r"\+\d\d\.\d ± \d\.\d °C 30 … 44 °C \(default, pyproject.toml thermal_limits\) ✓ passed", said)
    assert "≤ 83 °C (default)" in said
    assert re.search(r"rise_gpu_most 44 °C pyproject.toml thermal_limits", said)


def test_a_device_that_says_its_own_limit_is_its_origin() -> None:
    run = healthy()
    one = run.series[GPU]
    own = replace(one, sensor=replace(one.sensor, limits={"slowdown": 79.0}))
    page = Page(page_of(replace(run, series={**run.series, GPU: own})))
    assert "≤ 79 °C (device (slowdown))" in page.said
    (chart,) = [one for one in page.data["charts"] if one["id"] == "temperature"]
    assert {"value": 79.0, "text": "79 °C (device (slowdown))", "devices": ["gpu0"]} in chart["limits"]


def test_why_a_figure_could_not_be_had_is_there() -> None:
    page = Page(page_of(without(healthy(), "gpu0.power_watts")))
    assert {"title": "power is not measured", "class": "value"} in [attributes for _, attributes in page.tags]


# --------------------------------------------------------------------------------------------------------------- curves


def test_every_reading_is_in_the_page_where_there_is_room() -> None:
    page = Page(good_page())
    for sensor, series in healthy().series.items():
        if not sensor.endswith("_milliseconds"):
            times, values = page.curve(sensor)
            np.testing.assert_allclose(times, series.time_seconds - PLAN.times[0], atol=0.0006)
            np.testing.assert_allclose(values, series.values, atol=0.501 if sensor == PUMP else 0.051)


def test_a_missing_reading_is_missing_in_its_curve_and_told_with_its_reason() -> None:
    page = Page(faulty_page())
    times, values = page.curve(GPU)
    gone = times[np.isnan(values)] + PLAN.times[0] - PLAN.load_on
    assert gone.min() == pytest.approx(GAP[0] + PLAN.period, abs=0.01)
    assert gone.max() == pytest.approx(GAP[1] - PLAN.period, abs=0.01)
    assert [why for _, _, why in page.data["missing"][GPU]] == ["timeout"]
    assert "1 × timeout; <i>nvidia-smi</i> did not answer in 4 s" in page.said


def test_rows_that_are_not_there_break_the_curve() -> None:
    run, kept = healthy(), np.delete(np.arange(PLAN.times.size), slice(100, 104))
    one = run.series[GPU]
    short = replace(one, time_seconds=one.time_seconds[kept], values=one.values[kept])
    page = Page(page_of(replace(run, series={**run.series, GPU: short})))
    times, values = page.curve(GPU)
    (gap,) = times[np.isnan(values)]
    assert PLAN.times[99] < gap + PLAN.times[0] < PLAN.times[104]
    assert [[100 * PLAN.period, 104 * PLAN.period, ""]] == page.data["missing"][GPU]


def test_phases_limits_and_throttling_share_the_time_axis() -> None:
    data = Page(faulty_page()).data
    start = PLAN.times[0]
    assert [(one["name"], one["start"]) for one in data["phases"]] == [
        (name, pytest.approx(phase.start_seconds - start)) for name, phase in PLAN.phases.items()
    ]
    assert {(one["device"], one["kind"]) for one in data["throttling"]} == {("gpu0", "thermal"), ("gpu0", "power")}
    (span,) = next(one["spans"] for one in data["throttling"] if one["kind"] == "thermal")
    assert span[0] + start - PLAN.load_on == pytest.approx(700, abs=PLAN.period)
    assert [one["id"] for one in data["charts"]][:3] == ["temperature", "power", "utilisation"]
    assert {"requests", "latency"} <= {one["id"] for one in data["charts"]}


def test_errors_are_drawn_and_listed() -> None:
    page = Page(faulty_page())
    _, failed = page.curve("failed")
    assert np.nansum(failed) > 0
    assert re.search(r"Errors error count first 503 <b onclick=alert\(1\)>busy</b> .* [\d,]+ \d+:\d\d", page.said)


def test_a_long_run_keeps_its_peaks_and_stays_small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(curves_module, "MOST_POINTS", 3_000)
    values = healthy().series[GPU].values.copy()
    values[333] = 99.0
    run = healthy()
    run = replace(run, series={**run.series, GPU: replace(run.series[GPU], values=values)})
    page = Page(page_of(run))
    step = page.data["thinned"]
    assert step > PLAN.period
    assert f"least and most of each {step:g} s" in page.said
    times, drawn = page.curve(GPU)
    assert np.nanmax(drawn) == pytest.approx(99.0)
    assert abs(times[np.nanargmax(drawn)] - (run.series[GPU].time_seconds[333] - PLAN.times[0])) <= step
    assert np.nanmin(drawn) == pytest.approx(np.nanmin(values))


def test_what_will_not_pack_is_thinned_until_it_fits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(curves_module, "MOST_CHARACTERS", 3_000)
    page = Page(page_of(healthy()))
    packed = [page.scripts[one["packed"]] for chart in page.data["charts"] for one in chart["series"]]
    assert page.data["thinned"] >= 2 * PLAN.period
    assert sum(map(len, packed)) < 9_000


# ------------------------------------------------------------------------------------------------- nothing from outside


def test_nothing_is_loaded_and_nothing_else_may_run() -> None:
    page = Page(faulty_page())
    for tag, attributes in page.tags:
        for name in ("src", "href", "srcset", "action", "data"):
            assert (attributes.get(name) or "data:,").startswith("data:"), (tag, attributes)
        assert not [name for name in attributes if name.startswith("on")], (tag, attributes)
        assert "style" not in attributes, (tag, attributes)
    assert {tag for tag, _ in page.tags} & {"iframe", "object", "embed", "img", "form", "base"} == set()
    policy = next(one["content"] for _, one in page.tags if one.get("http-equiv") == "Content-Security-Policy")
    assert policy is not None
    assert policy.startswith("default-src 'none'")
    running = [page.scripts[name] for name in page.scripts if name.startswith("script")]
    for text in (*running, *page.styles):
        digest = base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
        assert f"'sha256-{digest}'" in policy
    assert len(running) == 2


def test_the_librarys_licence_goes_with_it() -> None:
    assert "Copyright (c) 2022 Leon Sorokin" in good_page()
    assert "uPlot" in good_page()


def test_text_from_anywhere_is_text() -> None:
    page = Page(faulty_page())
    assert "</script><script>document" not in faulty_page()
    assert "<b onclick" not in faulty_page()
    assert "<img" not in faulty_page()
    assert MARKUP.split("</script>")[0] in page.said
    assert any("gpu0 is at 91 °C <img src=x>" in mark["text"] for mark in page.data["marks"])


def test_names_that_are_markup_are_shown_as_they_are() -> None:
    bad = "</script><svg onload=1>\"'&\x00\x1b\ud800"
    run = healthy()
    one = run.series[GPU]
    sensor = replace(one.sensor, id=f"gpu0{bad}.temperature_celsius", device=f"gpu0{bad}", identity=bad, label=bad)
    run = replace(
        run,
        series={**run.series, sensor.id: replace(one, sensor=sensor)},
        facts={**run.facts, "bench": bad, "host": {"name": bad}, "metadata": {bad: bad}},
        events=(Event(time_seconds=PLAN.load_on, kind=bad, detail={"text": bad}),),
        path=Path("run<b>"),
        notes=(bad,),
    )
    text = page_of(run)
    assert "<svg onload" not in text
    assert "<b>" not in text.replace("<b>note", "").split("</h1>", maxsplit=1)[0]
    assert "</script><svg onload=1>\"'&" in Page(text).said
    text.encode("utf-8")


def test_a_key_that_slipped_into_the_run_is_taken_out() -> None:
    from pydantic import SecretStr  # noqa: PLC0415 - only here

    odd = 'odd-key-with-"quotes"&<signs>-0123456789'
    requests = faulty().requests
    assert requests is not None
    run = replace(
        faulty(),
        requests=replace(requests, error=Labels.of(f"401 for {CANARY} {odd}" if one else "" for one in requests.error)),
        facts={**faulty().facts, "metadata": {"note": CANARY}, "load": {"mode": CANARY, "accelerator_command": odd}},
        events=(Event(time_seconds=PLAN.load_on, kind="warning", detail={"text": f"Bearer {CANARY} {odd}"}),),
        notes=(f"line 3: {odd}",),
    )
    text = page_html(subject_for(run), redact=Redactor([SecretStr(CANARY), SecretStr(odd)]).text)
    assert CANARY not in text
    assert "odd-key" not in text
    assert "<signs>-0123456789" not in text
    assert CANARY[4:] not in text
    assert "401 for [key sk-c…]" in Page(text).said
    # What is packed is untouched.
    _, values = Page(text).curve(CPU)
    np.testing.assert_allclose(values, healthy().series[CPU].values, atol=0.0051)


def test_without_javascript_there_are_tables_and_a_still_overview() -> None:
    page = Page(faulty_page())
    assert [tag for tag, _ in page.tags].count("svg") == 3
    paths = [attributes["d"] or "" for tag, attributes in page.tags if tag == "path"]
    assert len(paths) >= 6
    # The one that is broken by the gap starts anew behind it.
    assert {path.count("M") for path in paths} == {1, 2}
    assert "With JavaScript they can be zoomed" in page.said
    assert [tag for tag, _ in page.tags].count("table") >= 8


# ------------------------------------------------------------------------------------------------- sparse material


@pytest.mark.parametrize(
    "run",
    [
        pytest.param(replace(healthy(), series={}, requests=None), id="no sensor"),
        pytest.param(replace(healthy(), requests=None), id="no requests"),
        pytest.param(without(healthy(), GPU, CPU), id="no temperature"),
        pytest.param(without_phase(healthy(), "steady", "cooldown"), id="broken off"),
        pytest.param(replace(healthy(), phases=(), facts={}), id="no phases"),
        pytest.param(replace(healthy(), facts={}, absolute_time=False, state="foreign"), id="a log"),
        pytest.param(
            replace(healthy(), facts={**healthy().facts, "plan": None, "works": None, "load": 3, "host": []}),
            id="odd facts",
        ),
    ],
)
def test_what_is_not_there_breaks_nothing(run: Any) -> None:
    page = Page(page_of(run))
    assert "Sign-off" in page.said
    assert (page.data["start"] is None) is not run.absolute_time


def test_one_reading_and_nothing_but_missing_readings_can_be_drawn() -> None:
    run = healthy()

    def shortened(series: Series, count: int) -> Series:
        return replace(series, time_seconds=series.time_seconds[:count], values=series.values[:count])

    nothing = replace(run.series[PUMP], values=np.full(PLAN.times.size, np.nan))
    page = Page(page_of(replace(run, series={GPU: shortened(run.series[GPU], 1), PUMP: nothing})))
    assert page.curve(GPU)[1].tolist() == pytest.approx([healthy().series[GPU].values[0]])
    assert np.isnan(page.curve(PUMP)[1]).all()
    assert "0.00 %" in page.said


# ------------------------------------------------------------------------------------------------------- files, command


@pytest.fixture(scope="module")
def sealed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run directory with samples and a summary, sealed."""
    run = create_run(tmp_path_factory.mktemp("runs"), facts={"bench": "lab-7", "simulated": False})
    series = healthy().series[GPU]
    rows = [f"{time:.3f},{value:g}" for time, value in zip(series.time_seconds, series.values, strict=True)]
    (run / "samples" / "own.csv").write_text("\n".join([f"time,{GPU}", *rows, ""]))
    facts = json.loads((run / "run.json").read_text())
    facts["state"] = "finished"
    facts["phases"] = [
        {"name": one.name, "start_seconds": one.start_seconds, "end_seconds": one.end_seconds}
        for one in PLAN.phases.values()
    ]
    (run / "run.json").write_text(json.dumps(facts))
    summary = subject_of(read_run(run)).summary
    write_summary(run, summary)
    return run


def files(run: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in run.rglob("*") if path.is_file()}


def test_the_command_writes_into_the_run_and_changes_nothing_of_it(
    sealed: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = tmp_path / "run"
    shutil.copytree(sealed, run)
    before = files(run)
    assert main([str(run)]) == 0
    assert capsys.readouterr().out.startswith(f"report: {run / 'report.html'} (")
    after = files(run)
    assert after.pop("report.html").startswith(b"<!DOCTYPE html>")
    assert after == before
    assert read_run(run).changed == ()
    assert main([str(run)]) == 0  # and again
    assert read_run(run).changed == ()


def test_the_page_names_the_checksum_that_ties_it_to_its_run(sealed: Path) -> None:
    fingerprint = hashlib.sha256((sealed / "run.json").read_bytes()).hexdigest()
    assert fingerprint in Page(page_html(subject_of(read_run(sealed)))).said


def test_the_summary_of_the_run_is_what_is_shown(sealed: Path, tmp_path: Path) -> None:
    run = tmp_path / "run"
    shutil.copytree(sealed, run)
    summary = json.loads((run / "summary.json").read_text())
    summary["findings"].append(
        {"check": "leak", "subject": "tray 3", "outcome": "failed", "seen": "12 ml in the tray", "likely": "a fitting",
         "advice": "dry it", "evidence": {}, "warnings": []}
    )  # fmt: skip
    write_summary(run, summary)
    said = Page(page_html(subject_of(read_run(run)))).said
    assert "✗ Failed" in said
    assert "leak[tray 3]" in said
    assert "12 ml in the tray" in said
    assert "was judged when this page was made" not in said


def test_a_run_without_a_summary_is_judged_and_says_so(sealed: Path, tmp_path: Path) -> None:
    run = tmp_path / "run"
    shutil.copytree(sealed, run)
    (run / "summary.json").unlink()
    said = Page(page_html(subject_of(read_run(run)))).said
    assert "it was judged when this page was made" in said
    assert "rise[gpu0.temperature_celsius]" in said


def test_a_log_from_elsewhere_wants_a_place(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([str(LOGS / "wide.csv")]) == 1
    assert "try: --out" in capsys.readouterr().err
    page = tmp_path / "page.html"
    assert main([str(LOGS / "wide.csv"), "--out", str(page)]) == 0
    assert "log wide.csv" in Page(page.read_text(encoding="utf-8")).said


@pytest.mark.parametrize(
    "arguments, said",
    [
        (["nowhere"], "nowhere"),
        (["{run}", "--out", "{run}/none/at/all.html"], "cannot be written"),
    ],
)
def test_what_cannot_be_done_is_told(
    sealed: Path, capsys: pytest.CaptureFixture[str], arguments: list[str], said: str
) -> None:
    assert main([word.format(run=sealed) for word in arguments]) == 1
    error = capsys.readouterr().err
    assert said in error
    assert "try: " in error
    assert "Traceback" not in error


def test_a_summary_that_was_edited_to_nonsense_is_told(
    sealed: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = tmp_path / "run"
    shutil.copytree(sealed, run)
    (run / "summary.json").write_text('{"findings": [{"outcome": "failed"}], "limits": [{}]}')
    assert main([str(run)]) == 1
    assert "try: restore it from a backup" in capsys.readouterr().err


def test_the_page_is_written_whole_or_not_at_all(sealed: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    page = tmp_path / "page.html"
    page.write_text("old")

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device", str(page))

    monkeypatch.setattr("os.fsync", full)
    with pytest.raises(OSError, match="No space"):
        write_page(subject_of(read_run(sealed)), page)
    assert page.read_text() == "old"
    assert list(tmp_path.iterdir()) == [page]


# ---------------------------------------------------------------------------------------------------------------- words


def test_every_word_of_the_page_is_in_the_catalogue_and_used() -> None:
    used = set()
    for file in ROOM.rglob("*.py"):
        if file.name != "words.py":
            strings = {
                node.value
                for node in ast.walk(ast.parse(file.read_text(encoding="utf-8")))
                if isinstance(node, ast.Constant) and isinstance(node.value, str)
            }
            used |= strings
    made = {key for key in ENGLISH if key.startswith(("phase_", "chart_", "row_", "requests_", "verdict_"))}
    assert set(ENGLISH) - used - made == set()
    script = (ROOM / "assets" / "page.js").read_text(encoding="utf-8")
    for key in re.findall(r"\bwords\.(\w+)", script):
        assert key in ENGLISH
