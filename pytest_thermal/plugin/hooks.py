"""pytest's hooks, each a few lines that lead to the module that knows."""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Generator
from typing import Any

import pytest

from pytest_thermal.plugin import options
from pytest_thermal.plugin.active_bench import active_bench, is_explicit
from pytest_thermal.plugin.keys import (
    ACCESS,
    ACTIVE_BENCH,
    BENCH_ERROR,
    ENDINGS,
    FINDINGS,
    FLEET,
    FLEET_ENDINGS,
    GATE,
    OBSERVER,
    OCP_DIAG,
    TAKEN_OPTIONS,
    THERMAL,
    THERMAL_ENDINGS,
)
from pytest_thermal.plugin.language import catalogue, language
from pytest_thermal.plugin.terminal import keep_terminal


def pytest_addoption(parser: pytest.Parser, pluginmanager: pytest.PytestPluginManager) -> None:
    """Add the options of `options.OPTIONS`."""
    pluginmanager.register(UsageTelling(), "thermal-usage-telling")
    pluginmanager.register(LastWord())  # without a name, so that no -p no: reaches it
    config = pluginmanager.get_plugin("pytestconfig")
    if config is not None:
        _forget_earlier_answer(config)
    taken = options.add_options(parser)
    if taken:
        pluginmanager.register(TakenOptions(taken), "thermal-taken-options")


class UsageTelling:
    """A refusal is told in the language of the run, wherever it was raised."""

    @pytest.hookimpl(wrapper=True)
    def pytest_cmdline_main(self, config: pytest.Config) -> Generator[None, Any, Any]:
        """Around the whole run: pytest prints the refusal after this."""
        try:
            return (yield)
        except pytest.UsageError as error:
            if language(config) != "en":
                from pytest_thermal.plugin.columns import wrapped

                told = [catalogue(config)(part) for part in error.args if isinstance(part, str)]
                lines = [
                    line for text in told for part in text.splitlines() for line in wrapped(part, rest="  ") or [""]
                ]
                error.args = ("\n".join(lines),)
            raise


class LastWord:
    """The gate's answer and pytest's exit code say the same, whatever other plugins do at the end of a run."""

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_cmdline_main(self, config: pytest.Config) -> Generator[None, Any, Any]:
        """Around the whole run."""
        try:
            code = yield
        except BaseException:
            if GATE in config.stash:
                config.stash[GATE].settle(None)
            raise
        return code if GATE not in config.stash else config.stash[GATE].settle(code)


class TakenOptions:
    """Carries from option parsing to the header which short names another plugin owns."""

    def __init__(self, names: list[str]) -> None:
        self.names = names

    def pytest_configure(self, config: pytest.Config) -> None:
        """Hand the names on."""
        config.stash[TAKEN_OPTIONS] = self.names


def pytest_addhooks(pluginmanager: pytest.PytestPluginManager) -> None:
    """Add the hooks for third parties."""
    from pytest_thermal.plugin import hookspecs

    pluginmanager.add_hookspecs(hookspecs)


def _forget_earlier_answer(config: pytest.Config) -> None:
    """With `--gate`: an earlier answer must not outlive an option that is wrong, or a conftest that fails."""
    given = [*map(str, config.invocation_params.args), os.environ.get("PYTEST_ADDOPTS", "")]
    with contextlib.suppress(Exception):  # where no ini file was read yet
        given += config.getini("addopts")
    if any("gate" in text or text.startswith("@") for text in given):  # spares every other run an import
        from pytest_thermal.plugin.evidence.gate_file import forget_earlier_answer

        forget_earlier_answer(config)


@pytest.hookimpl(trylast=True)
def pytest_configure(config: pytest.Config) -> None:
    """Register markers and bridges; a bench that the command line names is read now, so that a mistake ends the run."""
    for name, text in options.MARKERS:
        config.addinivalue_line("markers", f"{name}: {text}")
    config.stash[ENDINGS] = []
    config.stash[THERMAL_ENDINGS] = []
    config.stash[FLEET_ENDINGS] = []
    keep_terminal(config)
    if config.getoption("dist", "no") != "no" or hasattr(config, "workerinput"):
        from pytest_thermal.plugin.xdist import XdistBridge

        config.pluginmanager.register(XdistBridge(config), "thermal-xdist")
        if (
            config.getoption("thermal_prometheus_port", None) is not None
        ):  # no session of a run sees it before workers do
            from pytest_thermal.plugin.thermal_checks.metrics import check_metrics

            check_metrics(config)
    if language(config) != "en" and not _is_worker(config):
        from pytest_thermal.plugin.outcomes import ReportTelling

        config.pluginmanager.register(ReportTelling(config), "thermal-telling")
    if config.pluginmanager.hasplugin("allure_listener"):
        from pytest_thermal.plugin.allure.bridge import AllureBridge

        config.pluginmanager.register(AllureBridge(config), "thermal-allure")
    if options.value(config, "gate") or options.value(config, "ocp-diag"):
        from pytest_thermal.plugin.evidence.observing import Observer

        config.stash[OBSERVER] = Observer(config)
        config.pluginmanager.register(config.stash[OBSERVER], "thermal-observer")
    if options.value(config, "ocp-diag") and not _is_worker(config) and not config.option.help:
        from pytest_thermal.plugin.evidence.ocp_diag_file import OcpDiagFile

        config.stash[OCP_DIAG] = OcpDiagFile(config)
    if is_explicit(config) and not config.option.help:
        _read_bench(config)


def _read_bench(config: pytest.Config) -> None:
    try:
        active_bench(config)
    except pytest.UsageError as error:
        if GATE in config.stash:
            config.stash[GATE].say(str(error))
        raise


def pytest_cmdline_main(config: pytest.Config) -> int | None:
    """`--sensors` lists and stops, `--find-concurrency` searches and stops; the gate begins undecided."""
    if options.value(config, "gate") and not (config.option.help or config.option.version or _is_worker(config)):
        from pytest_thermal.plugin.evidence.gate_run import GateRun

        config.stash[GATE] = GateRun(config)
    if config.getoption("dist", "no") == "each":
        from pytest_thermal.plugin.xdist import restart_no_node

        restart_no_node(config)
    if options.value(config, "find-concurrency"):
        from pytest_thermal.plugin.thermal_checks.concurrency_search import search

        return search(config)
    if options.value(config, "sensors") is None:
        return None
    from pytest_thermal.plugin.sensors_listing import list_sensors

    sys.stdout.write(list_sensors(config) + "\n")
    return 0


def pytest_report_header(config: pytest.Config) -> list[str]:
    """Which bench, when the command line names it; else `pytest_report_collectionfinish` says it."""
    taken = config.stash.get(TAKEN_OPTIONS, [])
    active = config.stash.get(ACTIVE_BENCH, None)
    if not taken and active is None:
        return []
    from pytest_thermal.model.said import say

    lines = [
        say(
            "thermal: {name} belongs to another plugin here; use --thermal-{ours}",
            name=name,
            ours=name.removeprefix("--"),
        )
        for name in taken
    ]
    return [catalogue(config)(line) for line in lines + (active.header() if active is not None else [])]


def pytest_report_collectionfinish(config: pytest.Config) -> list[str]:
    """Which bench, when it was found only because a collected test needs one."""
    fleet = config.stash.get(FLEET, None)
    if fleet is not None:
        return [catalogue(config)(line) for line in fleet.header()]
    thermal = config.stash.get(THERMAL, None)
    if thermal is not None and options.value(config, "replay") is not None:
        return [catalogue(config)(line) for line in thermal.header()]
    active = config.stash.get(ACTIVE_BENCH, None)
    if active is None or is_explicit(config):
        return []
    return [catalogue(config)(line) for line in active.header()]


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """End the run with one clear message where tests need a bench and none can be had; mark what uses the gateway."""
    error = config.stash.get(BENCH_ERROR, None)
    if error is not None and not hasattr(config, "workerinput"):
        raise pytest.UsageError(error)
    for item in items:
        if "access" in getattr(item, "fixturenames", ()) and item.get_closest_marker("access") is None:
            item.add_marker("access")
    if any("thermal_run" in getattr(item, "fixturenames", ()) for item in items):
        from pytest_thermal.plugin.thermal_checks.items import prepare

        prepare(config, items)
    if any("fleet" in getattr(item, "fixturenames", ()) for item in items):
        from pytest_thermal.plugin.fleet_checks.items import prepare as prepare_fleet

        prepare_fleet(config, items)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[Any]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Show findings as messages."""
    report = yield
    if call.excinfo is not None and (item.stash.get(FINDINGS, None) or _is_ours(item)):
        from pytest_thermal.plugin.outcomes import shape_report

        shape_report(item, call, report)
    return report


def _is_ours(item: pytest.Item) -> bool:
    return any(item.get_closest_marker(name) is not None for name in ("thermal", "fleet"))


@pytest.hookimpl(trylast=True)
def pytest_sessionfinish(session: pytest.Session, exitstatus: int) -> None:
    """Take the load off, and collect what this process has to tell; a worker sends it to the controller."""
    config = session.config
    worker = getattr(config, "workerinput", None)
    node = "" if worker is None else str(worker.get("workerid", ""))
    told: dict[str, Any] = {}
    if config.stash.get(THERMAL, None) is not None:
        from pytest_thermal.plugin.thermal_checks.items import conclude

        told |= conclude(session, node, interrupted=exitstatus == pytest.ExitCode.INTERRUPTED or exitstatus > 128)
    if config.stash.get(FLEET, None) is not None:
        from pytest_thermal.plugin.fleet_checks.items import conclude as conclude_fleet

        told |= conclude_fleet(session, node)
    access = config.stash.get(ACCESS, None)
    if access is not None:
        told["thermal"] = access.ending(node)
    if worker is None:
        config.stash[ENDINGS] += [told["thermal"]] if "thermal" in told else []
        config.stash[THERMAL_ENDINGS] += [told["thermal_run"]] if "thermal_run" in told else []
        config.stash[FLEET_ENDINGS] += [told["thermal_fleet"]] if "thermal_fleet" in told else []
    else:
        from dataclasses import asdict

        from pytest_thermal.model.said import packed

        config.workeroutput.update({name: packed(asdict(ending)) for name, ending in told.items()})  # type: ignore[attr-defined]
    if OBSERVER in config.stash:
        _conclude_observing(session, exitstatus)


def _conclude_observing(session: pytest.Session, exitstatus: int) -> None:
    config = session.config
    observer = config.stash[OBSERVER]
    if _is_worker(config):
        from pytest_thermal.model.said import packed

        config.workeroutput["thermal_observed"] = packed(observer.told())  # type: ignore[attr-defined]
        return
    observer.take(observer.told())
    if OCP_DIAG in config.stash:
        config.stash[OCP_DIAG].finish(session, observer, exitstatus)
    if GATE in config.stash:
        config.stash[GATE].finish(session, observer, exitstatus)


def _is_worker(config: pytest.Config) -> bool:
    return hasattr(config, "workerinput")


def pytest_terminal_summary(terminalreporter: Any, config: pytest.Config) -> None:
    """The access run and the thermal run at a glance."""
    endings = config.stash.get(ENDINGS, [])
    if any(ending.findings for ending in endings):
        from pytest_thermal.plugin.access_checks.summary import write_summary

        write_summary(terminalreporter, endings)
    thermal = config.stash.get(THERMAL_ENDINGS, [])
    if thermal:
        from pytest_thermal.plugin.thermal_checks.summary import write_thermal_summary

        write_thermal_summary(terminalreporter, thermal)
    fleets = config.stash.get(FLEET_ENDINGS, [])
    if fleets:
        from pytest_thermal.plugin.fleet_checks.summary import write_fleet_summary

        write_fleet_summary(terminalreporter, fleets)
    if OCP_DIAG in config.stash:
        config.stash[OCP_DIAG].write_summary(terminalreporter)
    if GATE in config.stash:
        config.stash[GATE].write_summary(terminalreporter)
