"""Options, ini keys and markers: each is read, documented, and survives other plugins."""

from __future__ import annotations

import pytest

from pytest_thermal.plugin.options import MARKERS, OPTIONS
from tests.plugin.plugin_runs import Run


def test_every_option_has_its_long_spelling_in_the_help(run: Run) -> None:
    text = run("--help").stdout.str()
    for option in OPTIONS:
        assert f"--thermal-{option.name}" in text
        assert f"--{option.name}" in text


def test_every_marker_is_registered(run: Run) -> None:
    text = run("--markers").stdout.str()
    for name, _ in MARKERS:
        assert f"@pytest.mark.{name}:" in text


@pytest.mark.parametrize("value", ["0", "-3", "many", "1.5"])
def test_a_count_that_is_none_is_a_usage_error(gate: Run, value: str) -> None:
    result = gate("--probe-requests", value)
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines([f"*--probe-requests*'{value}' is no whole number of at least 1"])


def test_ini_gives_a_default_that_the_command_line_overrules(run: Run, pytester: pytest.Pytester) -> None:
    pytester.makeini("[pytest]\nthermal_probe_requests = 3\n")
    pytester.makepyfile(
        "def test_it(access):\n    found = access.require('concurrency')\n    assert found.evidence['requests'] == 3\n"
    )
    assert run("--demo").ret == 0
    overruled = run("--demo", "--probe-requests", "4")
    overruled.stdout.fnmatch_lines(["*assert 4 == 3*"])


def test_unreadable_ini_value_is_said(run: Run, pytester: pytest.Pytester) -> None:
    pytester.makeini("[pytest]\nthermal_token_budget = lots\n")
    pytester.makepyfile("def test_it(access):\n    access.require('http')\n")
    result = run("--demo")
    assert result.ret != 0
    assert "thermal_token_budget: 'lots' is no whole number" in result.stdout.str() + result.stderr.str()


def test_short_name_of_another_plugin_is_left_to_it(run: Run, pytester: pytest.Pytester) -> None:
    pytester.makepyfile(
        owner="def pytest_addoption(parser):\n    parser.addoption('--bench', action='store', dest='owners_bench')\n",
        test_it="def test_it(pytestconfig):\n    assert pytestconfig.getoption('owners_bench') == 'theirs'\n",
    )
    result = run("-p", "owner", "--bench", "theirs", "--thermal-demo", env={"PYTHONPATH": str(pytester.path)})
    assert result.ret == 0, result.stdout.str() + result.stderr.str()
    result.stdout.fnmatch_lines(["thermal: --bench belongs to another plugin here; use --thermal-bench"])


def test_third_party_metadata_is_asked_for(run: Run, pytester: pytest.Pytester) -> None:
    pytester.makeconftest(
        "import pytest\n"
        "@pytest.hookimpl(optionalhook=True)\n"
        "def pytest_thermal_metadata(metadata):\n"
        "    metadata['Rack'] = 'B7'\n"
    )
    pytester.makepyfile("def test_it(access):\n    access.require('http')\n")
    assert run("--demo", "--alluredir", "results").ret == 0
    assert "Rack=B7" in (pytester.path / "results" / "environment.properties").read_text(encoding="utf-8")
    assert run("-p", "no:thermal", "--collect-only").ret == 0
