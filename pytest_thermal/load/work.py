"""What one guarded process is to do: a description that can be shown, and that starts nothing."""

from __future__ import annotations

import os
import site
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from pydantic import SecretStr

import pytest_thermal

WorkKind = Literal["cpu", "accelerator", "inference"]


@dataclass(frozen=True, kw_only=True)
class Work:
    """One load, as one process under its guard."""

    kind: WorkKind
    tool: str
    """What the report says makes it: ``stress-ng 0.18 matrixprod``, ``built-in burner (numpy)``."""
    command: tuple[str, ...]
    environ: Mapping[str, str] = field(default_factory=dict)
    """Added to this process's environment; never a key."""
    orders: str = field(default="", repr=False)
    """One line for its standard input. It may hold a key, which arguments and environment must not."""
    folder: Path | None = None
    """Where it runs; None for the folder of this process."""
    limit_seconds: float
    """When it ends by itself, whoever forgot it."""
    grace_seconds: float = 0.3
    """Between being asked to end and being killed."""
    nice: int = 0
    """Added to the niceness: what burns all cores gives way to what measures and asks, and heats no less for it."""
    workers: int | None = None
    """How many cores it is to keep busy; None where it does not say."""
    notes: tuple[str, ...] = ()
    """What a person should know: ``stress-ng is not installed: …``."""
    secrets: tuple[SecretStr, ...] = field(default=(), repr=False)
    """Taken out of all that it says, and out of the environment that it gets."""


def own_program(module: str, *arguments: str) -> tuple[str, ...]:
    """The command line of a program of this package."""
    flags = ("-P",) if sys.version_info >= (3, 11) else ()  # not what lies in the working folder
    return (sys.executable, *flags, "-m", module, *arguments)


def own_environ(environ: Mapping[str, str]) -> dict[str, str]:
    """``environ`` so that `own_program` finds this very package, wherever it was imported from."""
    home = str(Path(pytest_thermal.__file__).resolve().parents[1])
    if home in (*site.getsitepackages(), site.getusersitepackages()):
        return dict(environ)
    paths = environ.get("PYTHONPATH", os.environ.get("PYTHONPATH", ""))
    return {**environ, "PYTHONPATH": os.pathsep.join(dict.fromkeys([home, *filter(None, paths.split(os.pathsep))]))}
