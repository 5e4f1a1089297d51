"""The pipelines in deploy/ci are YAML, and every command in them is one that there is."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from pytest_thermal.plugin.options import OPTIONS

ROOT = Path(__file__).parents[2]
CI = ROOT / "deploy" / "ci"
OF_OTHERS = {"--junitxml", "--alluredir"}


def read(name: str) -> dict[str, Any]:
    found = yaml.safe_load((CI / name).read_text(encoding="utf-8"))
    assert isinstance(found, dict)
    return found


def github_commands() -> Iterator[str]:
    for job in read("github-actions.yml")["jobs"].values():
        for step in job["steps"]:
            yield from step.get("run", "").replace("\\\n", " ").splitlines()


def gitlab_commands() -> Iterator[str]:
    for job in read("gitlab-ci.yml").values():
        if isinstance(job, dict):
            yield from (*job.get("script", ()), *job.get("after_script", ()))


PIPELINES = {"github": github_commands, "gitlab": gitlab_commands}


@pytest.mark.parametrize("pipeline", PIPELINES)
def test_every_command_is_one_that_there_is(pipeline: str) -> None:
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    ours = {f"--{option.name}" for option in OPTIONS}
    seen = set()
    for command in PIPELINES[pipeline]():
        program, *arguments = shlex.split(command)
        seen.add(Path(program).name)
        if program == "make":
            targets = {argument for argument in arguments if "=" not in argument} - {".venv/.installed"}
            assert all(re.search(rf"^{target}:", makefile, re.MULTILINE) for target in targets)
        elif Path(program).name == "pytest":
            options = {argument for argument in arguments if argument.startswith("--")}
            assert options - ours - OF_OTHERS == set()
            assert all(option in readme for option in options)
            assert all((ROOT / path).is_dir() for path in arguments if path.startswith("suites"))
        else:
            assert program == "rm"
    assert seen >= {"make", "pytest"}


@pytest.mark.parametrize("pipeline", PIPELINES)
def test_the_gate_runs_behind_the_access_gate_and_nothing_hides_its_exit_code(pipeline: str) -> None:
    commands = list(PIPELINES[pipeline]())
    gates = [command for command in commands if "pytest" in command]
    assert ["--gate" in command for command in gates] == [False, True]
    assert not [command for command in gates if "||" in command or "; true" in command]
    text = (CI / {"github": "github-actions.yml", "gitlab": "gitlab-ci.yml"}[pipeline]).read_text(encoding="utf-8")
    assert "continue-on-error" not in text
    assert "allow_failure" not in text
    kept = ("reports/gate.json", "reports/production.xml", "reports/access.xml", "reports/allure/index.html")
    assert all(file in text for file in kept)
    forgotten = next(command for command in commands if command.startswith("rm "))
    assert "reports/gate.json" in forgotten
    assert commands.index(forgotten) < commands.index(gates[1])
