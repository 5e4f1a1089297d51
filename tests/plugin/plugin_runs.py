"""What the tests of the plugin share: where things lie, and reading what a run wrote."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest

REPO = Path(__file__).parents[2]
SUITE = REPO / "suites" / "supernode"
CANARY = "sk-canary-7Qm4Zx9Lw2Rt8Vb6Nk3Jp5Hd1Gs0Fy"

AS_INSTALLED = ("-p", "no:cacheprovider", "-p", "no:respx", "-p", "no:anyio")
"""Without what only our own tests use: a bench has neither, and both cost every start a third of a second."""

Run = Callable[..., pytest.RunResult]


def write_bench(folder: Path, **settings: object) -> Path:
    """A bench folder whose settings.json holds ``settings``."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "settings.json").write_text(json.dumps(settings), encoding="utf-8")
    return folder


def cases(junit: Path) -> dict[str, tuple[str, str]]:
    """Outcome and message of each test in a JUnit file, by the test's name without its parameters' domain."""
    found = {}
    for case in ET.parse(junit).getroot().iter("testcase"):
        outcome, message = "passed", ""
        for kind in ("failure", "error", "skipped"):
            part = case.find(kind)
            if part is not None:
                told = [line[4:] for line in (part.text or "").splitlines() if line.startswith("E   ")]
                outcome, message = kind, "\n".join(told) or part.get("message", "")
        found[case.get("name", "")] = (outcome, message)
    return found


def everything_below(folder: Path) -> str:
    """All that lies in files below ``folder``, as text."""
    return "\n".join(path.read_text(encoding="utf-8", errors="replace") for path in folder.rglob("*") if path.is_file())
