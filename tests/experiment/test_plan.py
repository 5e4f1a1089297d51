from __future__ import annotations

from pathlib import Path

import pytest

from pytest_thermal.bench import Bench, find_template, load_bench
from pytest_thermal.experiment import Plan, PlanError, plan_for

ENVIRON = {
    "THERMAL_DEMO_URL": "http://127.0.0.1:1/v1",
    "THERMAL_DEMO_KEY": "sk-nothing-at-all",
    "TAOTOKEN_API_KEY": "k",
}


def bench(tmp_path: Path, config: str = "", **overrides: tuple[object, str]) -> Bench:
    (tmp_path / "config.toml").write_text('[api]\nbase_url = "http://127.0.0.1:1/v1"\n' + config)
    return load_bench(
        tmp_path, environ=ENVIRON, overrides={name.replace("__", "."): v for name, v in overrides.items()}
    )


def test_defaults_are_said_to_be_defaults(tmp_path: Path) -> None:
    plan = plan_for(bench(tmp_path), {})
    assert plan.seconds == {"baseline": 300, "ramp": 120, "steady": 3600, "cooldown": 600}
    assert set(plan.origins.values()) == {"default"}
    assert (plan.period_seconds, plan.time_scale) == (5.0, 1.0)


def test_a_file_gives_steady_and_the_command_line_overrules_it(tmp_path: Path) -> None:
    toml = '[stress]\nduration = "20m"\n'
    assert plan_for(bench(tmp_path, toml), {}).seconds["steady"] == 1200
    given = bench(tmp_path, toml, stress__duration_seconds=(90.0, "--duration"))
    plan = plan_for(given, {"baseline": (60.0, "command line --baseline")})
    assert (plan.seconds["steady"], plan.seconds["baseline"]) == (90, 60)
    assert plan.origins["steady"] == "command line --duration"
    assert plan.origins["baseline"] == "command line --baseline"


def test_the_limit_phase_is_run_only_where_it_is_asked_for(tmp_path: Path) -> None:
    assert plan_for(bench(tmp_path), {}).names == ("baseline", "ramp", "steady", "cooldown")
    asked = plan_for(bench(tmp_path), {}, with_limit=True)
    assert asked.names == ("baseline", "ramp", "steady", "limit", "cooldown")
    assert asked.loaded_seconds == 120 + 3600 + 300


def test_the_demo_bench_takes_about_a_minute() -> None:
    folder = find_template("demo")
    assert folder is not None
    plan = plan_for(load_bench(folder, environ=ENVIRON, demo=True), {})
    assert 45 <= plan.total_seconds <= 75
    assert plan.time_scale > 1


@pytest.mark.parametrize("seconds", [1.0, 0.0, float("nan")])
def test_a_phase_too_short_to_measure_is_refused_with_what_to_change(seconds: float) -> None:
    with pytest.raises(PlanError, match=r"steady: .*--duration.*\nlikely: .*\ntry: command line --duration"):
        Plan(seconds={"steady": seconds}, period_seconds=5.0, origins={"steady": "command line --duration"})


def test_until_names_the_way_to_a_phase() -> None:
    plan = Plan(seconds={"cooldown": 60, "baseline": 60, "ramp": 60, "steady": 60}, period_seconds=5.0)
    assert plan.until("steady") == ("baseline", "ramp", "steady")
    with pytest.raises(PlanError, match="no limit phase; it has: baseline, ramp, steady, cooldown"):
        plan.until("limit")


def test_a_hanging_run_is_told_from_a_long_one() -> None:
    plan = Plan(seconds={"steady": 3600.0}, period_seconds=5.0)
    assert plan.timeout_seconds > plan.total_seconds == 3600
