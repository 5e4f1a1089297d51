"""The key leaves this process nowhere: reports, logs, warnings and Allure results pass through here first.

Active from the moment that a bench is in use; other projects' runs are left as they are.
"""

from __future__ import annotations

import logging
import traceback
import warnings
from collections.abc import Callable, Generator
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from pytest_thermal.bench import Redactor

_PLAIN = (str, int, float, bool, type(None))
_DEEPEST = 40


def protect(config: pytest.Config, redactor: Redactor) -> None:
    """Take ``redactor``'s keys out of all that pytest, logging and Allure write from now on."""
    config.pluginmanager.register(ReportRedaction(redactor), "thermal-redaction")
    config.add_cleanup(_redact_logs(redactor))
    listener = config.pluginmanager.get_plugin("allure_listener")
    if listener is not None:
        from pytest_thermal.plugin.allure.redaction import protect_allure

        config.add_cleanup(protect_allure(listener, redactor))


class ReportRedaction:
    """Redacts reports before any reporter, local or beyond xdist's wire, sees them."""

    def __init__(self, redactor: Redactor) -> None:
        self._redactor = redactor

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_makereport(self) -> Generator[None, pytest.TestReport, pytest.TestReport]:
        """Test reports: failure text, locals, captured output and logs, properties."""
        report = yield
        redact_object(report, self._redactor)
        return report

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_make_collect_report(self) -> Generator[None, pytest.CollectReport, pytest.CollectReport]:
        """Collection reports."""
        report = yield
        redact_object(report, self._redactor)
        return report

    @pytest.hookimpl(tryfirst=True)
    def pytest_warning_recorded(self, warning_message: warnings.WarningMessage) -> None:
        """Warnings of the summary."""
        text = str(warning_message.message)
        clean = self._redactor.text(text)
        if clean is not text and not isinstance(warning_message.message, str):
            warning_message.message = type(warning_message.message)(clean)


def redact_object(found: Any, redactor: Redactor) -> None:
    """Redact every text below ``found``: attributes, items of dicts, lists and tuples. Changes it in place."""
    _Walk(redactor).clean(found, depth=0)


class _Walk:
    def __init__(self, redactor: Redactor) -> None:
        self._redactor = redactor
        self._seen: set[int] = set()

    def clean(self, found: Any, *, depth: int) -> Any:
        if isinstance(found, str):
            return self._redactor.text(found)
        if isinstance(found, _PLAIN) or depth > _DEEPEST or id(found) in self._seen:
            return found
        self._seen.add(id(found))
        if type(found) is tuple:
            return tuple(self.clean(item, depth=depth + 1) for item in found)
        if isinstance(found, list):
            found[:] = [self.clean(item, depth=depth + 1) for item in found]
        elif isinstance(found, dict):
            cleaned = {self.clean(n, depth=depth + 1): self.clean(v, depth=depth + 1) for n, v in found.items()}
            found.clear()
            found.update(cleaned)
        elif _is_report_part(found):
            for name, inner in list(vars(found).items()):
                clean = self.clean(inner, depth=depth + 1)
                if clean is not inner:
                    # Some parts are frozen dataclasses.
                    object.__setattr__(found, name, clean)
        return found


def _is_report_part(found: Any) -> bool:
    """Whether ``found`` is one of pytest's report objects, and not, say, the item or the config it points to."""
    if isinstance(found, pytest.TestReport | pytest.CollectReport):
        return True
    return hasattr(found, "__dict__") and type(found).__name__.startswith(("Repr", "ExceptionRepr", "ExceptionChain"))


def _redact_logs(redactor: Redactor) -> Callable[[], None]:
    """Redact log records where they are made, so that every handler, ours or not, gets them clean."""
    before = logging.getLogRecordFactory()

    def make(*args: Any, **kwargs: Any) -> logging.LogRecord:
        record = before(*args, **kwargs)
        try:
            text = record.getMessage()
        except Exception:  # noqa: BLE001 - a faulty log call is for logging's own handleError to report
            return record
        clean = redactor.text(text)
        if clean is not text:
            record.msg, record.args = clean, None
        if record.exc_info and record.exc_info[1] is not None:
            story = "".join(traceback.format_exception(*record.exc_info)).rstrip("\n")
            record.exc_text = redactor.text(story)
        return record

    logging.setLogRecordFactory(make)

    def restore() -> None:
        if logging.getLogRecordFactory() is make:
            logging.setLogRecordFactory(before)

    return restore
