"""Logs from elsewhere through the thermal suite: no load, no waiting, and nothing passes that was not measured."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.plugin.plugin_runs import REPO, Run, cases, write_bench
from tests.plugin.thermal_runs import THERMAL

LOGS = REPO / "fixtures" / "logs"


def judged(
    run: Run, tmp_path: Path, log: Path, *more: str | Path
) -> tuple[pytest.RunResult, dict[str, tuple[str, str]]]:
    junit = tmp_path / "replay.xml"
    result = run(THERMAL, "--replay", log, "--junitxml", junit, *more)
    return result, cases(junit)


def test_a_wide_log_is_judged_by_its_own_phases(run: Run, tmp_path: Path) -> None:
    result, found = judged(run, tmp_path, LOGS / "wide.csv")
    assert found["test_phase[steady]"][0] == "passed"
    assert found["test_load[gpu0]"][0] == "passed"
    assert found["test_rise[gpu0.temperature_celsius]"][0] == "passed"
    result.stdout.fnmatch_lines(["thermal: replay of *wide.csv", "thermal: by default limits"])
    assert "DEMO bench" not in result.stdout.str()


def test_what_a_log_does_not_hold_never_passes(run: Run, tmp_path: Path) -> None:
    _, found = judged(run, tmp_path, LOGS / "wide.csv")
    outcome, message = found["test_load[cpu0]"]
    assert outcome == "failure"
    assert message.startswith("inconclusive: load: whether cpu0 was loaded is not known: utilisation: not measured")
    assert found["test_threshold[cpu0.package.temperature_celsius]"][1].startswith("inconclusive: threshold: ")
    assert found["test_pump[none]"][0] == "skipped"


def test_the_naive_scripts_log_passes_nothing_that_needs_a_load(run: Run, tmp_path: Path) -> None:
    _, found = judged(run, tmp_path, LOGS / "naive.csv")
    assert not [
        name
        for name, (outcome, _) in found.items()
        if outcome == "passed" and name.split("[")[0] in ("test_rise", "test_threshold", "test_settled", "test_load")
    ]


def test_a_card_that_was_lost_is_told_by_its_own_words(run: Run, tmp_path: Path) -> None:
    _, found = judged(run, tmp_path, LOGS / "nvidia-smi-l.csv")
    outcome, message = found["test_rebound[gpu1.temperature_celsius]"]
    assert outcome == "failure"
    assert message.startswith("inconclusive: rebound: gpu1.temperature_celsius has holes in cooldown")
    assert "[GPU is lost]" in message
    assert found["test_rebound[gpu0.temperature_celsius]"][0] == "passed"


@pytest.mark.parametrize(
    "name, why", [("fewer-names.csv", "has 3 names, and line 2 has 4 cells"), ("comma-decimals.csv", "decimal commas")]
)
def test_a_log_that_cannot_be_read_right_is_refused(run: Run, name: str, why: str) -> None:
    result = run(THERMAL, "--replay", LOGS / name)
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    assert why in result.stderr.str()
    assert "try: " in result.stderr.str()
    assert "Traceback" not in result.stdout.str() + result.stderr.str()


def test_a_path_that_is_not_there_is_told(run: Run) -> None:
    result = run(THERMAL, "--replay", "nowhere.csv")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(["ERROR: --replay: *nowhere.csv: there is nothing of that name"])


def test_a_bench_that_is_named_gives_the_limits(run: Run, tmp_path: Path) -> None:
    bench = write_bench(tmp_path / "bench", api={"base_url": "http://127.0.0.1:9/v1", "api_key": "sk-none-at-all"})
    (bench / "config.toml").write_text("[thermal]\nalert_threshold_gpu = 60\n")
    _, found = judged(run, tmp_path, LOGS / "wide.csv", "--bench", bench, "-k", "threshold")
    outcome, message = found["test_threshold[gpu0.temperature_celsius]"]
    assert outcome == "failure"
    assert "60 °C (config.toml [thermal] alert_threshold_gpu)" in message


def test_limits_are_set_in_the_ini_file_and_say_so(run: Run, tmp_path: Path) -> None:
    ini = tmp_path / "pytest.ini"
    ini.write_text("[pytest]\nthermal_limits =\n    rise_gpu_most = 20\n    rise_gpu_least = 5\n")
    _, found = judged(run, tmp_path, LOGS / "wide.csv", "-c", ini, "-k", "rise")
    outcome, message = found["test_rise[gpu0.temperature_celsius]"]
    assert outcome == "failure"
    assert "more than 20 °C (ini key thermal_limits)" in message


@pytest.mark.parametrize(
    "lines, why",
    [
        ("rise_gpu_most", "try: name = value"),
        ("rise_gpu_most = nan", "try: name = value"),
        ("rise_gpu_most = inf", "try: name = value"),
        ("rise_gpu_most = -1", "try: name = value"),
        ("rise_most = 5", "no limit that can be set here; these can: rise_cpu_least"),
    ],
)
def test_a_wrong_limit_is_a_usage_error(run: Run, tmp_path: Path, lines: str, why: str) -> None:
    ini = tmp_path / "pytest.ini"
    ini.write_text(f"[pytest]\nthermal_limits =\n    {lines}\n")
    result = run(THERMAL, "--replay", LOGS / "wide.csv", "-c", ini)
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    assert why in result.stderr.str()


def test_a_standard_for_settling_can_be_named(run: Run, tmp_path: Path) -> None:
    _, found = judged(run, tmp_path, LOGS / "wide.csv", "--settling", "iec62368", "-k", "settled")
    assert "iec62368" in found["test_settled[cpu0.package.temperature_celsius]"][1].lower().replace(" ", "").replace(
        "-", ""
    )
    wrong = run(THERMAL, "--replay", LOGS / "wide.csv", "--settling", "mine")
    assert wrong.ret == pytest.ExitCode.USAGE_ERROR
    assert "no settling rate 'mine'; there are: default" in wrong.stderr.str()


def test_a_criterion_of_ones_own_is_told_beside_ours(run: Run, tmp_path: Path, pytester: pytest.Pytester) -> None:
    pytester.makeconftest(
        """
        import pytest
        from pytest_thermal.model import Finding, Outcome

        @pytest.hookimpl(optionalhook=True)
        def pytest_thermal_criteria(config, run):
            peak = run.figure("gpu0.temperature_celsius", "peak")
            return [
                Finding(check="house", layer="house", subject="gpu0", outcome=Outcome.FAILED,
                        seen=f"peak of {peak.value:.0f} degrees, more than our house allows")
            ]
        """
    )
    pytester.makepyfile(
        "def test_mine(thermal_run):\n    assert thermal_run.rise('gpu0.temperature_celsius').value > 20\n"
    )
    result = run("--replay", LOGS / "wide.csv")
    result.assert_outcomes(passed=1)
    assert result.ret == pytest.ExitCode.TESTS_FAILED  # it ended no test, and must not end in green
    result.stdout.fnmatch_lines(["*FAILED house?gpu0?", "*peak of 6? degrees, more than our house allows"])


def test_a_log_without_any_temperature_does_not_pass(run: Run, tmp_path: Path) -> None:
    log = tmp_path / "fans.csv"
    rows = [f"{1796032500 + 5 * tick},{2000 + tick % 3}" for tick in range(200)]
    log.write_text("time,fan0.speed_rpm\n" + "\n".join(rows) + "\n")
    result, found = judged(run, tmp_path, log)
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    for check in ("baseline", "threshold", "rise", "settled"):
        outcome, message = found[f"test_{check}[none]"]
        assert outcome == "failure"
        assert message.startswith(f"inconclusive: {check}: no temperature of a processor or an accelerator is measured")


def test_a_criterion_that_fails_itself_takes_nothing_along(run: Run, tmp_path: Path, pytester: pytest.Pytester) -> None:
    pytester.makeconftest(
        """
        import pytest

        @pytest.hookimpl(optionalhook=True)
        def pytest_thermal_criteria(config, run):
            raise LookupError("no such card")
        """
    )
    pytester.makepyfile("def test_mine(thermal_run):\n    pass\n")
    result = run("--replay", LOGS / "wide.csv")
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    result.stdout.fnmatch_lines(["*INCONCLUSIVE criteria?pytest_thermal_criteria?", "*LookupError: no such card"])
    assert "Traceback" not in result.stdout.str()
