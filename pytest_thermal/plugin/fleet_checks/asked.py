"""Whether a fleet was asked for: an archive at hand must not make every `pytest suites` a judgement of a fleet."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from pytest_thermal.plugin import options
from pytest_thermal.plugin.thermal_checks.asked import is_named

_MARK = re.compile(r"\bfleet\b")
_NEGATED = re.compile(r"\bnot\s*\(*\s*fleet\b")
NOT_ASKED = "not asked for: pytest suites/fleet --runs DIR judges what the nodes brought back"


def is_fleet_asked(config: pytest.Config, path: Path) -> bool:
    """Whether the fleet tests in that file are wanted: by ``-m``, by ``--fleet``, or named by path."""
    if _MARK.search(_NEGATED.sub("", config.option.markexpr or "")):
        return True
    return bool(options.value(config, "fleet")) or is_named(config, path, "fleet")
