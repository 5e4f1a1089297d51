"""Allure's results without keys: allure-pytest writes parameters, steps and attachments as it gets them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import allure_commons

from pytest_thermal.bench import Redactor

_ATTACHING = ("attach_data", "attach_file", "global_attach_data", "global_attach_file")


def protect_allure(listener: Any, redactor: Redactor) -> Callable[[], None]:
    """Redact what ``listener`` reports and attaches; returns the call that ends it."""
    cleaner = ResultRedaction(redactor)
    allure_commons.plugin_manager.register(cleaner, "thermal-redaction")
    logger = listener.allure_logger
    for name in _ATTACHING:
        inner = getattr(logger, name, None)
        if inner is not None:
            setattr(logger, name, _redacting(inner, redactor, is_file="file" in name))

    def end() -> None:
        allure_commons.plugin_manager.unregister(plugin=cleaner)
        for name in _ATTACHING:
            logger.__dict__.pop(name, None)

    return end


class ResultRedaction:
    """Redacts Allure's result objects just before they are written."""

    def __init__(self, redactor: Redactor) -> None:
        self._redactor = redactor

    @allure_commons.hookimpl(tryfirst=True)
    def report_result(self, result: Any) -> None:
        """A test's result."""
        _clean(result, self._redactor)

    @allure_commons.hookimpl(tryfirst=True)
    def report_container(self, container: Any) -> None:
        """Set-up and tear-down steps."""
        _clean(container, self._redactor)

    @allure_commons.hookimpl(tryfirst=True)
    def report_globals(self, globals_item: Any) -> None:
        """Attachments and errors of the whole run."""
        _clean(globals_item, self._redactor)


def _clean(found: Any, redactor: Redactor) -> Any:
    """Redact every text below a result. Allure's classes are plain attrs classes from one package."""
    if isinstance(found, str):
        return redactor.text(found)
    if isinstance(found, list):
        found[:] = [_clean(item, redactor) for item in found]
    elif isinstance(found, dict):
        return redactor.data(found)
    elif type(found).__module__.startswith("allure_commons"):
        for name, inner in list(vars(found).items()):
            setattr(found, name, _clean(inner, redactor))
    return found


def _redacting(inner: Callable[..., Any], redactor: Redactor, *, is_file: bool) -> Callable[..., Any]:
    def attach(uuid: Any, content: Any, *args: Any, **kwargs: Any) -> Any:
        if is_file:
            content = _clean_file(content, redactor)
        elif isinstance(content, str | bytes):
            content = redactor.data(content)
        return inner(uuid, content, *args, **kwargs)

    return attach


def _clean_file(source: Any, redactor: Redactor) -> Any:
    """The file itself, or beside Allure's own a redacted copy of a text file that holds a key."""
    path = Path(source)
    try:
        before = path.read_bytes()
    except OSError:
        return source
    after = redactor.data(before)
    if after == before or not isinstance(after, bytes):
        return source
    import tempfile

    with tempfile.NamedTemporaryFile(suffix=path.suffix, delete=False) as copy:
        copy.write(after)
    return copy.name
