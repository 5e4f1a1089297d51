"""Logs from elsewhere: their phases, and what they lack for a verdict."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from pytest_thermal.findings import with_phases
from pytest_thermal.model import Outcome
from pytest_thermal.recording import RecordingError, open_recording
from tests.findings.recordings import CPU, GPU, PLAN, USE, WATTS, changed, healthy, judged, loaded, without

PASSED, FAILED, OPEN = Outcome.PASSED, Outcome.FAILED, Outcome.INCONCLUSIVE
LOGS = Path(__file__).parents[3] / "shared" / "real_logs"


def test_phases_are_found_from_the_device_that_was_loaded() -> None:
    run = replace(healthy(), state="foreign", phases=(), facts={})
    found = with_phases(run)
    assert [phase.name for phase in found.phases] == ["baseline", "ramp", "steady", "cooldown"]
    assert found.phases[0].end_seconds == pytest.approx(PLAN.load_on, abs=5)
    assert found.notes == ("phases: found from utilization of gpu0",)
    judgement = judged(run)
    assert judgement.warnings() == ("the log names no phases: they were found from utilization of gpu0",)
    for check in ("coverage", "baseline", "threshold", "rise", "settled", "rebound"):
        assert judgement.finding(check, GPU).outcome is PASSED, judgement.finding(check, GPU).message


def test_phases_that_a_recording_has_are_kept() -> None:
    run = healthy()
    assert with_phases(run) is run


def test_where_phases_cannot_be_told_every_finding_is_open_and_says_why() -> None:
    run = replace(healthy(), state="foreign", phases=(), facts={})
    run = changed(changed(run, USE, lambda values, _: values * 0), WATTS, lambda values, _: np.full(values.size, 60.0))
    run = without(run, CPU, *(name for name in run.series if name.startswith("cpu0")))
    judgement = judged(run)
    findings = judgement.findings()
    assert findings
    assert {found.outcome for found in findings} <= {OPEN, Outcome.SKIPPED}
    for found in findings:
        if found.outcome is OPEN and found.check != "throttling":
            assert "no clear step between idle (0) and load (0)" in found.message, found.message
    assert with_phases(run).phases == ()
    assert with_phases(run).notes[0].startswith("phases: none: gpu0: utilization: no clear step")


def test_a_log_of_nothing_but_temperatures_has_no_proof_of_load() -> None:
    run = replace(healthy(), state="foreign", phases=(), facts={}, requests=None)
    run = without(run, *(name for name in run.series if name not in {GPU, CPU}))
    judgement = judged(run)
    assert judgement.recording.phases
    for check in ("threshold", "rise", "settled", "baseline"):
        found = judgement.finding(check, GPU)
        assert found.outcome is OPEN, found.message
        assert "try: log gpu0.utilization_percent" in found.message
    assert judgement.finding("rebound", GPU).outcome is PASSED  # its own fall shows that it was hot
    hot = judged(changed(run, GPU, lambda values, _: np.where(loaded(), values + 25.0, values)))
    assert hot.finding("rise", GPU).outcome is FAILED


def test_a_log_without_temperatures_of_devices_says_how_to_call_its_columns() -> None:
    run = replace(healthy(), state="foreign", phases=(), facts={}, requests=None)
    one = run.series[GPU]
    sensor = replace(one.sensor, id="device0.temperature_celsius", device="device0")
    judgement = judged(replace(run, series={sensor.id: replace(one, sensor=sensor)}))
    assert any("columns are called as in cpu0.temperature_celsius" in text for text in judgement.warnings())
    checks = {found.check for found in judgement.findings()}
    assert checks == {"coverage", "baseline", "settled", "load", "rebound", "drift"}  # nobody knows how hot it may get


@pytest.mark.skipif(not LOGS.is_dir(), reason="no real recordings beside the checkout")
@pytest.mark.parametrize("path", sorted(LOGS.rglob("*.csv")) + sorted(LOGS.rglob("*.txt")), ids=lambda path: path.name)
def test_real_logs_are_judged_or_refused(path: Path) -> None:
    try:
        run = open_recording(path)
    except RecordingError:
        return
    sensor = next(iter(run.series.values())).sensor
    named = replace(sensor, id="cpu0.temperature_celsius", device="cpu0")
    as_processor = replace(run, series={named.id: replace(run.series[sensor.id], sensor=named)})
    for recording in (run, as_processor):
        judgement = judged(recording)
        findings = judgement.findings()
        assert findings
        assert all(found.seen for found in findings)
        assert not any(found.outcome is PASSED and found.check in {"rise", "settled", "load"} for found in findings)
        assert judgement.summary()["findings"]
