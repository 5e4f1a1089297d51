"""The language of this run: chosen once, and the same in every process of it."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING, Any

from pytest_thermal.plugin import options
from pytest_thermal.plugin.keys import CATALOGUE

if TYPE_CHECKING:
    import pytest

    from pytest_thermal.model.catalogue import Catalogue

TOLD = "thermal_told"
"""Attribute of a report: its message as plain data, where the run is told in another language than files are."""


def language(config: pytest.Config) -> str:
    """``--lang``, else what the controller chose, else the locale, where the terminal can show it; ``en`` or ``zh``."""
    given: str | None = options.value(config, "lang") or getattr(config, "workerinput", {}).get("thermal_language")
    return given or _of_locale()


def catalogue(config: pytest.Config) -> Catalogue:
    """Tells texts in the language of this run."""
    found = config.stash.get(CATALOGUE, None)
    if found is None:
        from pytest_thermal.model import catalogue as words

        found = config.stash[CATALOGUE] = words.catalogue(language(config))
    return found


def keep_told(report: pytest.TestReport, message: str, config: pytest.Config) -> None:
    """Let a report carry what its English message is made of, also from one of xdist's workers."""
    if language(config) != "en":
        from pytest_thermal.model.said import packed

        setattr(report, TOLD, packed(message))


def told_of(report: Any, config: pytest.Config) -> str | None:
    """A report's message in the language of this run; None where the English one stands."""
    from pytest_thermal.model.said import unpacked

    data = vars(report).get(TOLD)
    return None if data is None else catalogue(config)(unpacked(data))


def _of_locale() -> str:
    if not any(os.environ.get(name, "").lower().startswith("zh") for name in ("LC_ALL", "LC_MESSAGES", "LANG")):
        return "en"  # spares every other run an import
    from pytest_thermal.model.catalogue import language_of_locale

    found = language_of_locale(os.environ)
    return found if found == "en" or _shows(sys.stdout) else "en"


def _shows(stream: Any) -> bool:
    """Whether a stream can write Chinese: a log of ASCII cannot, whatever the locale says."""
    try:
        "\u4e2d".encode(getattr(stream, "encoding", None) or "ascii")
    except (UnicodeEncodeError, LookupError):
        return False
    return True
