"""Whether a thermal run was asked for: a plain `pytest` in a checkout never starts an hour of burn."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from pytest_thermal.plugin import options

ASKING = (
    *("duration", "baseline", "ramp", "cooldown", "limit-phase", "limit-duration"),
    *("replay", "demo", "demo-fault", "find-concurrency", "gate"),
)
_MARK = re.compile(r"\bthermal\b")
_NEGATED = re.compile(r"\bnot\s*\(*\s*thermal\b")
NOT_ASKED = "not asked for: a thermal run loads the machine; pytest -m thermal, or name the file or its folder"


def is_asked(config: pytest.Config, path: Path) -> bool:
    """Whether the thermal tests in that file are wanted: by ``-m``, by an option of theirs, or named by path."""
    if _MARK.search(_NEGATED.sub("", config.option.markexpr or "")):
        return True
    if any(options.value(config, name) for name in ASKING):
        return True
    return is_named(config, path, "thermal")


def is_named(config: pytest.Config, path: Path, kind: str) -> bool:
    """Whether the command line names a test file, or its folder, by path; ``kind`` is what the folder is called."""
    if config.args_source is not pytest.Config.ArgsSource.ARGS:
        return False  # nobody named a path: they are the working folder, or the ini file's
    return any(_names(argument, config.invocation_params.dir, path, kind) for argument in config.args)


def _names(argument: str, start: Path, path: Path, kind: str) -> bool:
    """Whether a command line's argument names the file, or a folder of such tests that it lies in."""
    name = argument.split("::", 1)[0]
    if name.replace(".", "/").endswith((f"{kind}/{path.stem}", f"suites/{kind}")):
        return path.parent.name == kind
    given = (start / name).resolve()
    return given == path.resolve() or (given == path.parent.resolve() and kind in given.name)
