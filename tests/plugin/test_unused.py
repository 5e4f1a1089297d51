"""A project that does not use the plugin pays nothing and sees nothing."""

from __future__ import annotations

import pytest

from tests.plugin.plugin_runs import Run

HEAVY = ("httpx", "pydantic", "starlette", "uvicorn", "tenacity", "numpy", "certifi", "ssl", "asyncio")


def test_nothing_heavy_is_imported(run: Run, pytester: pytest.Pytester) -> None:
    pytester.makepyfile(
        f"import sys\ndef test_it():\n    assert [name for name in {HEAVY!r} if name in sys.modules] == []\n"
    )
    # Other plugins of this environment import some of these themselves.
    others = ["-p", "no:anyio", "-p", "no:respx", "-p", "no:allure_pytest", "-p", "no:xdist", "-p", "no:timeout"]
    others += ["-p", "no:llmock", "-p", "no:hypothesispytest"]
    run(*others).assert_outcomes(passed=1)


def test_nothing_is_said(run: Run, pytester: pytest.Pytester) -> None:
    pytester.makepyfile("def test_it():\n    pass\n")
    result = run()
    result.assert_outcomes(passed=1)
    assert "thermal:" not in result.stdout.str()
    assert "access" not in result.stdout.str()


def test_a_foreign_config_folder_is_none_of_our_business(run: Run, pytester: pytest.Pytester) -> None:
    (pytester.path / "config").mkdir()
    (pytester.path / "config" / "settings.json").write_text("not even JSON", encoding="utf-8")
    pytester.makepyfile("def test_it():\n    print('sk-0123456789abcdefghij')\n    assert 0\n")
    result = run(env={"THERMAL_BENCH": "/nonexistent"})
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["sk-0123456789abcdefghij"])


def test_the_plugin_can_be_blocked(run: Run, pytester: pytest.Pytester) -> None:
    pytester.makepyfile("def test_it():\n    pass\n")
    run("-p", "no:thermal").assert_outcomes(passed=1)
