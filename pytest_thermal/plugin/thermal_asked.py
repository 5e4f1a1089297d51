"""Whether a thermal run was asked for: a plain `pytest` in a checkout never starts an hour of burn."""

from __future__ import annotations

from pathlib import Path

import pytest

from pytest_thermal.plugin import options

ASKING = ("duration", "baseline", "ramp", "cooldown", "limit-phase", "replay", "demo", "demo-fault", "find-concurrency")
NOT_ASKED = "not asked for: a thermal run loads the machine; pytest -m thermal, or name the file or its folder"


def is_asked(config: pytest.Config, path: Path) -> bool:
    """Whether the thermal tests in that file are wanted: by ``-m``, by an option of theirs, or named by path."""
    if "thermal" in (config.option.markexpr or ""):
        return True
    if any(options.value(config, name) for name in ASKING):
        return True
    return any(_names(argument, config.invocation_params.dir, path) for argument in config.args)


def _names(argument: str, start: Path, path: Path) -> bool:
    """Whether a command line's argument names the file or the folder it lies in, and no folder above that."""
    name = argument.split("::", 1)[0]
    if name.replace(".", "/").endswith(("thermal/" + path.stem, "suites/thermal")):
        return path.parent.name == "thermal"
    given = (start / name).resolve()
    return given in (path.resolve(), path.parent.resolve())
