"""Which bench a run is about, and what a mistake in it looks like."""

from __future__ import annotations

import pytest

from pytest_thermal.demo import DemoGateway
from tests.plugin.plugin_runs import Run, write_bench

DEAD = "http://127.0.0.1:9/v1"  # the discard port: nothing listens


def test_bench_of_the_command_line(gate: Run, pytester: pytest.Pytester) -> None:
    folder = write_bench(pytester.path / "mine", api_endpoint=DEAD, api_key="${MY_KEY}")
    result = gate("--bench", folder, "-k", "test_connection", env={"MY_KEY": "sk-abcdefghijkl"})
    assert result.ret == 1
    result.stdout.fnmatch_lines(["thermal: bench *(--bench *mine)", "*127.0.0.1:9*sk-a…, 15 characters from $MY_KEY"])
    result.stdout.fnmatch_lines(["E   connection: *port 9: connection refused"])


def test_thermal_spelling_is_the_same_option(gate: Run, pytester: pytest.Pytester) -> None:
    folder = write_bench(pytester.path / "mine", api_endpoint=DEAD)
    result = gate("--thermal-bench", folder, "-k", "test_name")
    result.stdout.fnmatch_lines(["thermal: bench *(--bench *mine)"])


def test_bench_of_the_environment(gate: Run, pytester: pytest.Pytester) -> None:
    folder = write_bench(pytester.path / "mine", api_endpoint=DEAD)
    result = gate("-k", "test_connection", env={"THERMAL_BENCH": str(folder)})
    result.stdout.fnmatch_lines(["thermal: bench *($THERMAL_BENCH *mine)"])
    assert result.ret == 1


def test_config_folder_of_the_working_directory(gate: Run, pytester: pytest.Pytester) -> None:
    write_bench(pytester.path / "config", api_endpoint=DEAD)
    result = gate("-k", "test_connection")
    result.stdout.fnmatch_lines(["thermal: bench *(./config)"])
    assert result.ret == 1


def test_command_line_wins_over_environment(gate: Run, pytester: pytest.Pytester) -> None:
    one = write_bench(pytester.path / "one", api_endpoint=DEAD)
    result = gate("--bench", one, "-k", "test_name", env={"THERMAL_BENCH": "/nonexistent"})
    result.stdout.fnmatch_lines(["thermal: bench *(--bench *one)"])
    assert result.ret == 0


def test_one_command_line_names_the_bench_of_each_node(gate: Run, pytester: pytest.Pytester) -> None:
    write_bench(pytester.path / "benches" / "rack1-n7", api_endpoint=DEAD)
    arguments = ("--bench", "benches/${THERMAL_NODE}", "-k", "test_name", "--junitxml", "j.xml")
    result = gate(*arguments, env={"THERMAL_NODE": "rack1-n7"})
    result.stdout.fnmatch_lines(["thermal: bench *(--bench *rack1-n7)"])
    assert 'name="thermal_node" value="rack1-n7"' in (pytester.path / "j.xml").read_text()
    result = gate("--bench", "benches/${RACK}")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(["*--bench benches/${RACK}: *RACK*"])


@pytest.mark.parametrize("template", ["workstation", "supernode"])
def test_shipped_templates_are_benches(gate: Run, template: str) -> None:
    result = gate(
        "--bench",
        template,
        "--collect-only",
        "-q",
        env=dict.fromkeys(("TAOTOKEN_API_KEY", "TAOTOKEN_API_KEY_UB0", "TAOTOKEN_API_KEY_UB1"), "sk-abcdefghijkl")
        | {"TAOTOKEN_BASE_URL": DEAD},
    )
    assert result.ret == 0, result.stdout.str() + result.stderr.str()


@pytest.mark.parametrize(
    "settings,said",
    [
        ({"api_endpiont": DEAD}, "api_endpiont"),
        ({"api_endpoint": DEAD, "api_key": "${NO_SUCH_KEY_HERE}"}, "NO_SUCH_KEY_HERE"),
        ({"api_endpoint": DEAD, "rate_limit": {"requests_per_minute": "many"}}, "requests_per_minute"),
    ],
)
@pytest.mark.parametrize("way", ["option", "environment", "config"])
def test_a_mistake_in_the_bench_file_ends_the_run_with_one_message(
    gate: Run, pytester: pytest.Pytester, settings: dict[str, object], said: str, way: str
) -> None:
    folder = write_bench(pytester.path / ("config" if way == "config" else "mine"), **settings)
    arguments = ["--bench", str(folder)] if way == "option" else []
    result = gate(*arguments, env={"THERMAL_BENCH": str(folder)} if way == "environment" else {})
    text = result.stdout.str() + result.stderr.str()
    assert result.ret == pytest.ExitCode.USAGE_ERROR, text
    assert "settings.json" in text
    assert said in text
    assert "try: " in text
    assert "Traceback" not in text
    assert "INTERNALERROR" not in text


def test_missing_folder_is_said(gate: Run) -> None:
    result = gate("--bench", "no/such/folder")
    text = result.stdout.str() + result.stderr.str()
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    assert "no/such/folder" in text
    assert "Traceback" not in text


def test_bench_and_demo_contradict(gate: Run, pytester: pytest.Pytester) -> None:
    folder = write_bench(pytester.path / "mine", api_endpoint=DEAD)
    result = gate("--bench", folder, "--demo")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(["*--bench*--demo contradict*", "try: *"])


def test_unknown_fault_names_near_ones(gate: Run) -> None:
    result = gate("--demo-fault", "key-wrnog")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(["*key-wrong*"])


def test_every_check_runs_for_every_domain_with_its_own_key(gate: Run, pytester: pytest.Pytester) -> None:
    with DemoGateway(key="sk-east-0123456789") as east, DemoGateway(key="sk-west-0123456789") as west:
        folder = pytester.path / "mine"
        folder.mkdir()
        (folder / "config.toml").write_text(
            "[[scale_up]]\n"
            f'name = "east"\napi_base = "{east.url}"\napi_key_env = "EAST_KEY"\n'
            "[[scale_up]]\n"
            f'name = "west"\napi_base = "{west.url}"\napi_key_env = "WEST_KEY"\n',
            encoding="utf-8",
        )
        keys = {"EAST_KEY": "sk-east-0123456789", "WEST_KEY": "sk-wrong-000000000"}
        result = gate("--bench", folder, "-k", "test_key or test_models", "--tb=line", env=keys)
    outcomes = result.parseoutcomes()
    assert outcomes["failed"] == 1
    result.stdout.fnmatch_lines(["*FAILED*key*401*", "*$WEST_KEY*"])
    assert east.requests_served > 0
    assert west.requests_served > 0
