"""Imports go strictly downward, and only the plugin knows pytest."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

PACKAGE = "pytest_thermal"
SOURCES = Path(__file__).parents[1] / PACKAGE

TOP_DOWN = (
    "plugin",
    "reporting",
    "findings",
    "experiment",
    "load",
    "access",
    "recording",
    "analysis",
    "demo",
    "sensors",
    "transport",
    "bench",
    "model",
)

NARROWER = {
    "reporting": {"findings", "recording", "analysis", "bench", "model"},
    "access": {"transport", "bench", "model"},
    "demo": set(),
}
"""Rooms that may import less than all rooms beneath them."""

WIDER = {
    "pytest_thermal.demo.simulated": {"model"},
    "pytest_thermal.demo.thermal_source": {"model", "sensors"},
}
"""Modules that may import more than the rest of their room: the demo bench's source speaks the words of sources."""

PYTEST_AND_ITS_PLUGINS = {"pytest", "_pytest", "pluggy", "xdist", "allure", "allure_pytest", "allure_commons"}


def allowed_rooms(module: str) -> set[str]:
    room = module.split(".")[1]
    below = set(TOP_DOWN[TOP_DOWN.index(room) + 1 :])
    return WIDER.get(module, NARROWER.get(room, below))


def imported_modules(source: str, module: str) -> Iterator[str]:
    """Absolute dotted names of everything a module imports, wherever in it, for types only or not."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = node.module or ""
            if node.level:
                base = ".".join([*module.split(".")[: -node.level], *filter(None, [node.module])])
            yield from (f"{base}.{alias.name}" for alias in node.names)


def violations(source: str, module: str) -> list[str]:
    """What the source of ``module`` (a dotted name, ``….__init__`` for a package) imports and may not."""
    room = module.split(".")[1]
    found = []
    for name in imported_modules(source, module):
        parts = name.split(".")
        if parts[0] == PACKAGE:
            target = parts[1] if len(parts) > 1 and parts[1] in TOP_DOWN else None
            if target is None:
                if room == "demo":
                    found.append(f"{module} imports {name}: demo imports nothing of ours")
            elif target != room and target not in allowed_rooms(module):
                found.append(f"{module} imports {name}: {room} may not import {target}")
        elif parts[0] == "_pytest" or (parts[0] in PYTEST_AND_ITS_PLUGINS and room != "plugin"):
            found.append(f"{module} imports {name}: {room} may not know it")
    return found


def module_name(file: Path) -> str:
    return ".".join([PACKAGE, *file.relative_to(SOURCES).with_suffix("").parts])


def modules_in_rooms() -> list[Path]:
    return [file for file in sorted(SOURCES.rglob("*.py")) if file.parent != SOURCES]


def test_every_room_has_its_place_in_the_order() -> None:
    rooms = {file.relative_to(SOURCES).parts[0] for file in modules_in_rooms()}
    assert rooms
    assert rooms <= set(TOP_DOWN)


def test_no_module_imports_upward_or_sideways() -> None:
    found = [
        violation
        for file in modules_in_rooms()
        for violation in violations(file.read_text(encoding="utf-8"), module_name(file))
    ]
    assert not found, "\n".join(found)


def test_the_package_itself_imports_nothing() -> None:
    names = [
        name
        for file in SOURCES.glob("*.py")
        for name in imported_modules(file.read_text(encoding="utf-8"), module_name(file))
        if not name.startswith("__future__")
    ]
    assert names == []


@pytest.mark.parametrize(
    "module, source",
    [
        ("pytest_thermal.bench.load", "from pytest_thermal.access import Gateway"),
        ("pytest_thermal.bench.load", "import pytest_thermal.plugin.keys"),
        ("pytest_thermal.bench.load", "from pytest_thermal import transport"),
        ("pytest_thermal.bench.load", "from ..transport import clients"),
        ("pytest_thermal.bench.__init__", "from ..transport import clients"),
        ("pytest_thermal.bench.load", "def later():\n    import pytest_thermal.access"),
        ("pytest_thermal.bench.load", "if TYPE_CHECKING:\n    from pytest_thermal.access import Gateway"),
        ("pytest_thermal.access.probes.front", "from pytest_thermal.sensors import nvml"),
        ("pytest_thermal.demo.server", "from pytest_thermal.model import LAYERS"),
        ("pytest_thermal.demo.server", "from pytest_thermal import __version__"),
        ("pytest_thermal.demo.simulated", "from pytest_thermal.sensors.source import SourceSpec"),
        ("pytest_thermal.demo.thermal_source", "from pytest_thermal.bench import Bench"),
        ("pytest_thermal.sensors.specs", "from pytest_thermal.demo.thermal_source import spec"),
        ("pytest_thermal.reporting.tables", "import pytest"),
        ("pytest_thermal.findings.heat", "from pytest_thermal.reporting.pictures import View"),
        ("pytest_thermal.reporting.tables", "from allure_commons import plugin_manager"),
        ("pytest_thermal.plugin.hooks", "from _pytest.config import Config"),
    ],
)
def test_a_forbidden_import_is_seen(module: str, source: str) -> None:
    assert violations(source, module)


@pytest.mark.parametrize(
    "module, source",
    [
        ("pytest_thermal.plugin.hooks", "import pytest, allure\nfrom pytest_thermal.demo import DemoGateway"),
        ("pytest_thermal.access.gateway", "import pytest_thermal.transport\nfrom . import checks"),
        ("pytest_thermal.access.probes.front", "from ..checks import CHECKS"),
        ("pytest_thermal.demo.server", "from pytest_thermal.demo import faults\nimport uvicorn"),
        ("pytest_thermal.demo.thermal_source", "from pytest_thermal.sensors.source import SourceSpec"),
        ("pytest_thermal.transport.clients", "from pytest_thermal import __version__"),
    ],
)
def test_an_allowed_import_is_not(module: str, source: str) -> None:
    assert violations(source, module) == []
