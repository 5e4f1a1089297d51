"""Under pytest-xdist: all checks of one bench stay on one worker, and what it has to tell reaches the controller.

xdist's own ``loadgroup`` cannot serve: it renames test ids, which pytest 9.2 no longer allows, and then spreads the
group silently.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import shutil
import tarfile
import tempfile
import zlib
from collections.abc import Generator
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

from pytest_thermal.model.said import say, unpacked, words_of
from pytest_thermal.plugin import options, remote_results
from pytest_thermal.plugin.access_checks.session import Ending
from pytest_thermal.plugin.keys import ACTIVE_BENCH, ENDINGS, FLEET_ENDINGS, THERMAL, THERMAL_ENDINGS
from pytest_thermal.plugin.language import catalogue, language
from pytest_thermal.plugin.thermal_checks.live_view import WorkerLines
from pytest_thermal.plugin.thermal_checks.session import STOP_FILE, archive

STOCK: dict[str, Any] = {
    "load": LoadScheduling,
    "loadscope": LoadScopeScheduling,
    "loadfile": LoadFileScheduling,
    "loadgroup": LoadGroupScheduling,
    "worksteal": WorkStealingScheduling,
}
ONE_BENCH = "thermal"
_OWN_ID = re.compile(r"gw\d+")
"""What xdist calls workers that nobody gave a name."""
RUN_PROPERTY = "thermal_run_directory"
KEPT_FIXTURES = frozenset(
    {"access", "api", "async_api", "domain", "thermal_run", "load", "recorder", "sensors", "fleet"}
)


class XdistBridge:
    """Controller and worker sides of a run over several processes."""

    def __init__(self, config: pytest.Config) -> None:
        self._config = config
        self._folder: Path | None = None
        self._failed = 0
        self._nodes: list[str] = []
        """What came of each node that is another machine, in words."""
        self._bad_nodes = False
        self._runs: dict[str, str] = {}
        """Where each worker's run lies, as its reports said: one that dies tells nothing more."""
        self._allure_before: tuple[str, ...] = ()
        worker = getattr(config, "workerinput", {})
        if worker.get("thermal_remote") and config.getoption("allure_report_dir", None):
            self._allure_before = remote_results.names_in(Path(config.getoption("allure_report_dir")))

    # --- controller ---

    @pytest.hookimpl(optionalhook=True)
    def pytest_xdist_make_scheduler(self, config: pytest.Config, log: Any) -> Any:
        """Our scheduler, which becomes xdist's own unless tests of a bench turn up."""
        mode = config.getoption("dist", "no")
        if mode not in STOCK:
            return None
        return BenchScheduling(config, log, mode=mode, folder=self._meeting_place())

    @pytest.hookimpl(optionalhook=True)
    def pytest_xdist_setupnodes(self, config: pytest.Config, specs: Any) -> None:
        """Say what to write instead where a path of the command line would end the run without a word that helps."""
        if all(spec.popen for spec in specs) or config.getoption("rsyncdir", None) or config.getini("rsyncdirs"):
            return
        for argument in map(str, config.invocation_params.args):
            path = argument.split("::")[0]
            if path and not path.startswith("-") and os.path.exists(path):  # noqa: PTH110 - a Path would raise
                raise pytest.UsageError(
                    say(
                        "{path}: paths of this machine mean nothing on other nodes\n"
                        "likely: an option and its path stand as two words, or the suites are named by their folder\n"
                        "try: --option=PATH in one word, and suites by --pyargs pytest_thermal.suites.thermal",
                        path=path,
                    )
                )

    @pytest.hookimpl(optionalhook=True)
    def pytest_configure_node(self, node: Any) -> None:
        """Tell a worker where to leave the ids of its bench tests; one on another machine, what it is called here."""
        spec = node.gateway.spec
        node.workerinput["thermal_language"] = language(self._config)
        if spec.popen:
            node.workerinput["thermal_folder"] = str(self._meeting_place())
            node.workerinput["thermal_controller"] = os.getpid()
            return
        node.workerinput["thermal_remote"] = True
        if not _OWN_ID.fullmatch(str(node.gateway.id)):
            node.workerinput["thermal_node"] = str(node.gateway.id)

    @pytest.hookimpl(optionalhook=True)
    def pytest_testnodedown(self, node: Any, error: object) -> None:
        """Take over what a worker had to tell; a crashed one tells nothing."""
        told = getattr(node, "workeroutput", None) or {}
        if not node.gateway.spec.popen:
            self._take_from(node, told, error)
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
        worker = getattr(report, "node", None)
        if worker is not None:
            run = next((str(text) for name, text in report.user_properties if name == RUN_PROPERTY), None)
            if run is not None:
                self._runs[str(worker.gateway.id)] = run
        limit = self._config.getoption("maxfail", 0)
        self._failed += report.failed
        if limit and self._failed >= limit and not hasattr(self._config, "workerinput"):
            (self._meeting_place() / STOP_FILE).touch()

    @pytest.hookimpl(wrapper=True, trylast=True)
    def pytest_sessionfinish(self, session: pytest.Session) -> Generator[None, None, None]:
        """A node of which nothing came is no pass, whatever the others say; a worker tells what it has.

        The innermost wrapper: after all that writes results, and before xdist sends what a worker tells.
        """
        yield
        worker = getattr(self._config, "workerinput", None)
        if worker is None:
            if self._bad_nodes and session.exitstatus == pytest.ExitCode.OK:
                session.exitstatus = pytest.ExitCode.TESTS_FAILED
            return
        if worker.get("thermal_remote") and ACTIVE_BENCH in self._config.stash:
            thermal = self._config.stash.get(THERMAL, None)
            allure = self._config.getoption("allure_report_dir", None)
            self._config.workeroutput["thermal_results"] = remote_results.on_offer(  # type: ignore[attr-defined]
                None if thermal is None else thermal.path,
                Path(allure) if allure else None,
                allure_before=self._allure_before,
            )

    @pytest.hookimpl(trylast=True)
    def pytest_terminal_summary(self, terminalreporter: Any) -> None:
        """What came from which node."""
        if self._nodes:
            told = catalogue(self._config)
            terminalreporter.section(told(say("nodes")), sep="=", blue=True)
            for line in self._nodes:
                terminalreporter.write_line(told(line))

    def _take_from(self, node: Any, told: dict[str, Any], error: object) -> None:
        """Have a node's results, or say where they are."""
        name = str(node.gateway.id)
        allure = self._config.getoption("allure_report_dir", None)
        where = self._runs.get(name)
        offer = told.get("thermal_results")
        if offer is None and (not error or not self._is_about_a_bench()):
            return  # a project of somebody else's, or a node that measured nothing and says so by its tests
        if offer is None:
            said = say(
                "{node}: LOST ({error}); {lies}",
                node=name,
                error=error or say("it told nothing"),
                lies=say("its run stays on it: {run}", run=where)
                if where
                else say("what it recorded, if anything, stays on it"),
            )
        else:
            where = where or offer["run"]
            try:
                got = remote_results.fetch(
                    node.gateway, offer, archive=archive(self._config), allure=Path(allure) if allure else None
                )
            except (OSError, ValueError, EOFError, tarfile.TarError, zlib.error) as trouble:
                said = say(
                    "{node}: its results could not be fetched ({trouble}); its run stays on it: {run}",
                    node=name,
                    trouble=words_of(trouble),
                    run=where,
                )
            else:
                how = (
                    say("seen on one disk")
                    if got.was_here
                    else say(
                        "{megabytes:.1f} MB in {seconds:.1f} s", megabytes=got.sent_bytes / 1e6, seconds=got.seconds
                    )
                )
                self._nodes.append(
                    say(
                        "{node}: {run}, {files} files of Allure's; {how}",
                        node=name,
                        run=say("no run") if got.run is None else say("run {run}", run=got.run),
                        files=got.allure_files,
                        how=how,
                    )
                )
                return
        self._bad_nodes = True
        self._nodes.append(said)
        if allure:
            with contextlib.suppress(OSError):
                remote_results.lost_result(Path(allure), name, said)

    def _is_about_a_bench(self) -> bool:
        given = any(self._config.getoption(option.dest, None) for option in options.OPTIONS)
        named = any("pytest_thermal" in str(argument) for argument in self._config.invocation_params.args)
        return given or named or bool(self._runs)

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


def restart_no_node(config: pytest.Config) -> None:
    """A node that died under load is not loaded once more from the beginning, unless that was asked for."""
    from xdist.workermanage import parse_tx_spec_config

    try:
        remote = any(not spec.startswith("popen") and "//popen" not in spec for spec in parse_tx_spec_config(config))
    except pytest.UsageError:
        return  # xdist says it
    if remote and config.option.maxworkerrestart is None:
        config.option.maxworkerrestart = "0"


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
