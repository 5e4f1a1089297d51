"""Under pytest-xdist: all checks of one bench stay on one worker, and what it has to tell reaches the controller.

xdist's own ``loadgroup`` cannot serve: it renames test ids, which pytest 9.2 no longer allows, and then spreads the
group silently.
"""

from __future__ import annotations

import json
import os
import shutil
import tempfile
from pathlib import Path
from typing import Any

import pytest
from xdist.scheduler import (
    LoadFileScheduling,
    LoadGroupScheduling,
    LoadScheduling,
    LoadScopeScheduling,
    WorkStealingScheduling,
)

from pytest_thermal.model.said import unpacked
from pytest_thermal.plugin.access_checks.session import Ending
from pytest_thermal.plugin.keys import ENDINGS, FLEET_ENDINGS, THERMAL_ENDINGS
from pytest_thermal.plugin.language import language
from pytest_thermal.plugin.thermal_checks.live_view import WorkerLines
from pytest_thermal.plugin.thermal_checks.session import STOP_FILE

STOCK: dict[str, Any] = {
    "load": LoadScheduling,
    "loadscope": LoadScopeScheduling,
    "loadfile": LoadFileScheduling,
    "loadgroup": LoadGroupScheduling,
    "worksteal": WorkStealingScheduling,
}
ONE_BENCH = "thermal"
KEPT_FIXTURES = frozenset(
    {"access", "api", "async_api", "domain", "thermal_run", "load", "recorder", "sensors", "fleet"}
)


class XdistBridge:
    """Controller and worker sides of a run over several processes."""

    def __init__(self, config: pytest.Config) -> None:
        self._config = config
        self._folder: Path | None = None
        self._failed = 0

    # --- controller ---

    @pytest.hookimpl(optionalhook=True)
    def pytest_xdist_make_scheduler(self, config: pytest.Config, log: Any) -> Any:
        """Our scheduler, which becomes xdist's own unless tests of a bench turn up."""
        mode = config.getoption("dist", "no")
        if mode not in STOCK:
            return None
        return BenchScheduling(config, log, mode=mode, folder=self._meeting_place())

    @pytest.hookimpl(optionalhook=True)
    def pytest_configure_node(self, node: Any) -> None:
        """Tell a worker where to leave the ids of its bench tests."""
        node.workerinput["thermal_folder"] = str(self._meeting_place())
        node.workerinput["thermal_controller"] = os.getpid()
        node.workerinput["thermal_language"] = language(self._config)

    @pytest.hookimpl(optionalhook=True)
    def pytest_testnodedown(self, node: Any) -> None:
        """Take over what a worker had to tell; a crashed one tells nothing."""
        told = getattr(node, "workeroutput", None) or {}
        if told.get("thermal"):
            self._config.stash[ENDINGS].append(Ending(**unpacked(told["thermal"])))
        if told.get("thermal_run"):
            from pytest_thermal.plugin.thermal_checks.session import ThermalEnding

            self._config.stash[THERMAL_ENDINGS].append(ThermalEnding(**unpacked(told["thermal_run"])))
        if told.get("thermal_fleet"):
            from pytest_thermal.plugin.fleet_checks.session import FleetEnding

            self._config.stash[FLEET_ENDINGS].append(FleetEnding(**unpacked(told["thermal_fleet"])))

    @pytest.hookimpl(trylast=True)
    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """With ``-x`` a thermal run on another worker must not go on for its hour."""
        limit = self._config.getoption("maxfail", 0)
        self._failed += report.failed
        if limit and self._failed >= limit and not hasattr(self._config, "workerinput"):
            (self._meeting_place() / STOP_FILE).touch()

    def _meeting_place(self) -> Path:
        """A folder where workers leave the ids of their bench tests; xdist offers no way to send them."""
        if self._folder is None:
            self._folder = folder = Path(tempfile.mkdtemp(prefix="pytest-thermal-"))
            self._config.add_cleanup(lambda: shutil.rmtree(folder, ignore_errors=True))
            lines = WorkerLines(self._config, folder)
            lines.start()
            self._config.add_cleanup(lines.stop)
        return self._folder

    # --- worker ---

    def pytest_collection_finish(self, session: pytest.Session) -> None:
        """Leave the ids of the tests that must stay together."""
        folder = getattr(session.config, "workerinput", {}).get("thermal_folder")
        if folder is None:
            return
        kept = [item.nodeid for item in session.items if _uses_bench(item)]
        try:
            path = Path(folder) / f"{session.config.workerinput['workerid']}.json"  # type: ignore[attr-defined]
            path.write_text(json.dumps(kept), encoding="utf-8")
        except OSError:
            # A worker on another machine: each of those is a bench of its own.
            return


def _uses_bench(item: pytest.Item) -> bool:
    return item.get_closest_marker("access") is not None or bool(KEPT_FIXTURES & set(getattr(item, "fixturenames", ())))


class BenchScheduling:
    """xdist's stock scheduler of the chosen mode, replaced at the last moment where tests of a bench were collected."""

    def __init__(self, config: pytest.Config, log: Any, *, mode: str, folder: Path) -> None:
        self._config = config
        self._log = log
        self._mode = mode
        self._folder = folder
        self._decided = False
        self._inner: Any = STOCK[mode](config, log)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)

    def schedule(self) -> None:
        """Distribute the tests; the first call decides how."""
        if not self._decided:
            self._decided = True
            kept = self._kept_ids()
            if kept:
                self._replace(KeepTogether(self._config, self._log, mode=self._mode, kept=kept))
        self._inner.schedule()

    def _kept_ids(self) -> frozenset[str]:
        found: set[str] = set()
        for path in self._folder.glob("*.json"):
            found.update(json.loads(path.read_text(encoding="utf-8")))
        return frozenset(found)

    def _replace(self, better: KeepTogether) -> None:
        collections = dict(getattr(self._inner, "registered_collections", None) or self._inner.node2collection)
        for node in self._inner.nodes:
            better.add_node(node)
        for node, collection in collections.items():
            better.add_node_collection(node, collection)
        self._inner = better


class KeepTogether(LoadScopeScheduling):
    """Scopes as the chosen mode would have them, but one scope for all tests of the bench."""

    def __init__(self, config: pytest.Config, log: Any, *, mode: str, kept: frozenset[str]) -> None:
        super().__init__(config, log)
        self._mode = mode
        self._kept = kept

    def remove_node(self, node: Any) -> str | None:
        """Take a worker out; the test that it crashed on, if any, is not tried again.

        The stock scheduler hands that test to the next worker, and to the next when that has crashed too.
        """
        workload = self.assigned_work.pop(node)
        crashed: str | None = next(
            (name for unit in workload.values() for name, done in unit.items() if not done), None
        )
        if crashed is None:
            return None
        for scope, unit in workload.items():
            if crashed in unit:
                unit[crashed] = True
            if not all(unit.values()):
                self.workqueue[scope] = unit
        for other in self.assigned_work:
            self._reschedule(other)
        return crashed

    def _split_scope(self, nodeid: str) -> str:
        if nodeid in self._kept:
            return ONE_BENCH
        if self._mode == "loadscope":
            return nodeid.rsplit("::", 1)[0]
        if self._mode == "loadfile":
            return nodeid.split("::", 1)[0]
        if self._mode == "loadgroup" and "@" in nodeid.rsplit("]", 1)[-1]:
            return nodeid.rsplit("@", 1)[-1]
        return nodeid
