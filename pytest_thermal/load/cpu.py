"""The CPU load: stress-ng, or the built-in burner where it is absent."""

from __future__ import annotations

import math
import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Mapping, Sequence

from pydantic import SecretStr

from pytest_thermal.load.cpu_burner import has_numpy
from pytest_thermal.load.work import Work, own_environ, own_program
from pytest_thermal.model.said import say

Which = Callable[[str], str | None]

NICE = 10
"""On an idle bench a burner gets every cycle that nobody else wants, and the load generator is not held up by it."""
_VERSION_SECONDS = 5.0


def cpu_work(
    *,
    workers: int | None,
    limit_seconds: float,
    environ: Mapping[str, str],
    secrets: Sequence[SecretStr] = (),
    which: Which = shutil.which,
) -> Work:
    """Load the CPU with so many workers; None for one on each core that this process may use.

    ``environ`` is added to the environment of what is started.
    """
    workers = workers or len(os.sched_getaffinity(0))
    tool = which("stress-ng")
    version = _version(tool) if tool else None
    if tool and version is not None:
        return Work(
            kind="cpu",
            tool=f"stress-ng {version} matrixprod".replace("  ", " "),
            command=(
                *(tool, "--cpu", str(workers), "--cpu-method", "matrixprod"),
                # A second more than the guard gives it: whose limit was reached is then never in doubt.
                *("--timeout", f"{math.ceil(limit_seconds) + 1}s"),
                # It refuses to run where its working folder cannot be written.
                *("--temp-path", tempfile.gettempdir()),
            ),
            environ=dict(environ),
            nice=NICE,
            workers=workers,
            limit_seconds=limit_seconds,
            secrets=tuple(secrets),
        )
    # With numpy it does ten times matrixprod's operations, on the widest units that a core has.
    heats = "" if has_numpy() else say(", which without numpy heats less")
    why, advice = (
        (say("{tool} does not run", tool=tool), "")
        if tool
        else (say("stress-ng is not installed"), say(" (apt install stress-ng)"))
    )
    broken = say("{why}: the built-in burner is used{heats}{advice}", why=why, heats=heats, advice=advice)
    return Work(
        kind="cpu",
        tool=f"built-in burner ({'numpy' if has_numpy() else 'pure Python'})",
        command=own_program(
            "pytest_thermal.load.cpu_burner", "--workers", str(workers), "--limit", f"{limit_seconds + 1:g}"
        ),
        environ=own_environ(environ),
        nice=NICE,
        workers=workers,
        limit_seconds=limit_seconds,
        notes=(broken,),
        secrets=tuple(secrets),
    )


def _version(tool: str) -> str | None:
    """``0.15.06``; empty where it does not say, None where it does not run."""
    try:
        said = subprocess.run([tool, "--version"], capture_output=True, timeout=_VERSION_SECONDS, check=True)
    except (OSError, subprocess.SubprocessError):
        return None
    found = re.search(rb"version\s+([0-9][0-9.]*)", said.stdout)
    return found[1].decode() if found else ""
