"""From a finding to a test's outcome, and reports that say what a person at the bench needs and no more."""

from __future__ import annotations

from typing import Any, NoReturn

import pytest

from pytest_thermal.model import Finding, Outcome
from pytest_thermal.model.said import Said
from pytest_thermal.plugin.keys import ACTIVE_BENCH, FINDINGS
from pytest_thermal.plugin.language import keep_told, told_of


class FindingFailed(AssertionError):  # noqa: N818 - the word of the design
    """A check was measured and found bad."""


class Inconclusive(Exception):  # noqa: N818 - the word of the design; Allure shows it as broken
    """A check could not be measured: never a pass."""


BROKEN = frozenset({"ExperimentBrokenError", "BenchBusyError"})
"""By name: their room is imported by whoever raises them."""


class FindingWarning(UserWarning):
    """Something a reader should know although it fails nothing."""


def conclude(finding: Finding, *, advisory: bool) -> None:
    """Let the running test end as ``finding`` did.

    Raises:
        FindingFailed: it failed, and is not ``advisory``.
        Inconclusive: it could not be measured, and is not ``advisory``.
    """
    __tracebackhide__ = True
    if finding.outcome is Outcome.FAILED:
        _give_up(finding, advisory=advisory, error=FindingFailed)
    if finding.outcome is Outcome.INCONCLUSIVE:
        _give_up(finding, advisory=advisory, error=Inconclusive)
    if finding.outcome in (Outcome.BLOCKED, Outcome.SKIPPED):
        raise _with_words(pytest.skip.Exception(str(finding.message)), finding.message)


def _give_up(finding: Finding, *, advisory: bool, error: type[Exception]) -> NoReturn:
    __tracebackhide__ = True
    if advisory:
        raise _with_words(pytest.xfail.Exception(str(finding.message)), finding.message)
    raise _with_words(error(str(finding.message)), finding.message)


def skip(message: str) -> NoReturn:
    """Skip the running test for a reason that can be told in another language."""
    __tracebackhide__ = True
    raise _with_words(pytest.skip.Exception(str(message)), message)


def _with_words(error: BaseException, message: str) -> BaseException:
    """An error as pytest and xdist know it, in plain text, that carries what its message is made of."""
    vars(error)["message"] = message
    return error


def shape_report(item: pytest.Item, call: pytest.CallInfo[Any], report: pytest.TestReport) -> None:
    """Show a finding as its message alone: the test's traceback would only lead into this plugin."""
    if call.excinfo is None:
        return
    error = call.excinfo.value
    longrepr = report.longrepr
    message = getattr(error, "message", None)
    if isinstance(message, Said):
        keep_told(report, message, item.config)
    if isinstance(error, FindingFailed | Inconclusive) or type(error).__name__ in BROKEN:
        _keep_message(longrepr, str(error), item)
    elif isinstance(error, pytest.skip.Exception) and isinstance(longrepr, tuple) and len(longrepr) == 3:
        path, line, _ = item.location
        if item.stash.get(FINDINGS, None):
            report.longrepr = (str(item.config.rootpath / path), (line or 0) + 1, longrepr[2])


class ReportTelling:
    """Tells findings in the language of this run at the end of the terminal's output; other reporters get English."""

    def __init__(self, config: pytest.Config) -> None:
        self._config = config

    @pytest.hookimpl(trylast=True)
    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Whoever writes a file has read the report by now; the terminal shows it at its end."""
        _tell_report(report, self._config)


def _tell_report(report: pytest.TestReport, config: pytest.Config) -> None:
    told = told_of(report, config)
    if told is None:
        return
    active = config.stash.get(ACTIVE_BENCH, None)
    told = told if active is None else active.redactor.text(told)
    longrepr: Any = report.longrepr
    if hasattr(report, "wasxfail"):
        report.wasxfail = told
    if isinstance(longrepr, tuple) and len(longrepr) == 3:
        report.longrepr = (longrepr[0], longrepr[1], told)
    elif getattr(longrepr, "reprcrash", None) is not None and longrepr.reprtraceback.reprentries:
        longrepr.reprcrash.message = told
        longrepr.reprtraceback.reprentries[-1].lines = [f"E   {line}" for line in told.splitlines()]


def _keep_message(longrepr: Any, message: str, item: pytest.Item) -> None:
    if item.config.getoption("tbstyle", "auto") in ("long", "native", "no"):
        return
    crash = getattr(longrepr, "reprcrash", None)
    traceback: Any = getattr(longrepr, "reprtraceback", None)
    entries = getattr(traceback, "reprentries", None)
    if crash is None or not entries:
        return
    crash.message = message
    entry = entries[-1]
    entry.lines = [f"E   {line}" for line in message.splitlines()]
    entry.reprfuncargs = entry.reprlocals = None
    location = getattr(entry, "reprfileloc", None)
    if location is not None:
        path, line, _ = item.location
        location.path, location.lineno, location.message = path, (line or 0) + 1, ""
    traceback.reprentries = [entry]
    traceback.extraline = None
    chain = getattr(longrepr, "chain", None)
    if chain:
        longrepr.chain = chain[-1:]  # what it was made of is said in its words
