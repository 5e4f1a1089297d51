"""What the code imports is what pyproject.toml declares."""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import pytest

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib  # type: ignore[import-not-found,unused-ignore]

ROOT = Path(__file__).parents[2]

DISTRIBUTION_OF = {
    "allure": "allure-pytest",
    "allure_commons": "allure-pytest",
    "allure_pytest": "allure-pytest",
    "xdist": "pytest-xdist",
    "pytest_timeout": "pytest-timeout",
    "pydantic_core": "pydantic",
    "anyio": "httpx",
    "httpcore": "httpx",
    "PIL": "matplotlib",
    "prometheus_client": "prometheus-client",
}
"""Where the name differs, or comes with a declared one."""

ASKED_FOR_BY_NAME = {"trustme"}
"""Optional parts without an extra: the code says what to install when they are missing."""


@pytest.fixture(scope="module")
def project() -> dict[str, Any]:
    text = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    return dict(tomllib.loads(text)["project"])


def names(requirements: list[str]) -> set[str]:
    return {re.split(r"[\s<>=~!;\[]", requirement)[0] for requirement in requirements}


def at_run_time(node: ast.AST) -> Iterator[ast.AST]:
    """All nodes but those that only a type checker sees."""
    if isinstance(node, ast.If) and isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING":
        children: Iterable[ast.AST] = node.orelse
    else:
        children = ast.iter_child_nodes(node)
    yield node
    for child in children:
        yield from at_run_time(child)


def imported_distributions() -> set[str]:
    found = set()
    for file in (ROOT / "pytest_thermal").rglob("*.py"):
        for node in at_run_time(ast.parse(file.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Import):
                found |= {alias.name.split(".")[0] for alias in node.names}
            elif isinstance(node, ast.ImportFrom) and not node.level and node.module:
                found.add(node.module.split(".")[0])
    ours = {"pytest_thermal", *sys.stdlib_module_names, "tomllib"}
    return {DISTRIBUTION_OF.get(name, name) for name in found - ours}


def test_every_import_is_declared(project: dict[str, Any]) -> None:
    extras = project["optional-dependencies"]
    declared = names(project["dependencies"]).union(*(names(extras[extra]) for extra in extras if extra != "dev"))
    assert imported_distributions() - declared - ASKED_FOR_BY_NAME == set()


def test_every_core_dependency_is_imported(project: dict[str, Any]) -> None:
    assert names(project["dependencies"]) - imported_distributions() == set()


def test_a_user_gets_no_optional_part_unasked(project: dict[str, Any]) -> None:
    optional = set().union(*(names(entries) for entries in project["optional-dependencies"].values()))
    assert names(project["dependencies"]) & optional == set()


def test_every_dependency_has_a_lower_bound(project: dict[str, Any]) -> None:
    entries = [*project["dependencies"], *(e for group in project["optional-dependencies"].values() for e in group)]
    assert [entry for entry in entries if ">=" not in entry and not entry.startswith("pytest-thermal[")] == []


def test_constraints_are_names_and_versions_only() -> None:
    lines = (ROOT / "constraints.txt").read_text(encoding="utf-8").splitlines()
    pin = re.compile(r'[A-Za-z0-9_.-]+==[A-Za-z0-9.]+( ; python_version (<|>=) "3\.\d+")?')
    assert [line for line in lines if line and not line.startswith("# ") and not pin.fullmatch(line)] == []


def test_constraints_pin_every_declared_name(project: dict[str, Any]) -> None:
    def plain(name: str) -> str:
        return re.sub(r"[-_.]+", "-", name).lower()

    pinned = {
        plain(line.split("==")[0])
        for line in (ROOT / "constraints.txt").read_text(encoding="utf-8").splitlines()
        if "==" in line
    }
    declared = names(project["dependencies"]).union(*map(names, project["optional-dependencies"].values()))
    assert {plain(name) for name in declared} - pinned - {"pytest-thermal"} == set()
