"""Results of many nodes, without what each node's own report has: one page of all of them must open in a browser.

Measured with 48 nodes of 65 tests, 8 of them failed: 80 MB become 40 MB. Left out are vector copies of pictures, runs'
own pages, and the pictures of what passed; every word, figure, finding, exchange, and each picture of what did not pass
stays.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

MOST_BYTES = 20_000_000
"""Of pictures and pages in the results of one report; with more they are left out. A page holds them a third larger."""
HEAVY = frozenset({"image/svg+xml", "text/html"})
LEFT_OUT = "vector pictures, runs' own pages, pictures of what passed: each node's own results have them"
_PICTURE = re.compile(r"!\[[^\]]*\]\(data:image/png;base64,[A-Za-z0-9+/=]*\)")
_NO_PICTURE = "*Its picture is in the node's own report.*"


def heavy_bytes(folders: Sequence[Path]) -> int:
    """How much of the results is pictures and pages."""
    found = 0
    for folder in folders:
        for file in folder.iterdir():
            if file.suffix in (".svg", ".html") or file.name.endswith("-result.json"):
                found += file.stat().st_size
    return found


def lean_copy(folder: Path, into: Path) -> Path:
    """The results of one folder without them; all else is linked to, and nothing of the folder is changed."""
    into.mkdir(parents=True)
    heavy: set[str] = set()
    linked: list[Path] = []
    for file in sorted(folder.iterdir()):
        if not file.is_file():
            continue
        if file.name.endswith(("-result.json", "-globals.json", "-container.json")):
            data = _read(file)
            if data is not None:
                heavy |= _taken_out(data)
                if file.name.endswith("-globals.json") and not data.get("attachments") and not data.get("errors"):
                    continue
                (into / file.name).write_text(json.dumps(data, ensure_ascii=False), encoding="utf-8", errors="replace")
                continue
        linked.append(file)
    for file in linked:
        if file.name not in heavy:
            (into / file.name).symlink_to(file.resolve())
    return into


def _taken_out(data: dict[str, Any]) -> set[str]:
    """Take heavy attachments out of a result, its steps and fixtures; the names of their files."""
    if data.get("status") == "passed" and isinstance(data.get("description"), str):
        data["description"] = _PICTURE.sub(_NO_PICTURE, data["description"])
    found: set[str] = set()
    attached = data.get("attachments")
    if isinstance(attached, list):
        heavy = [one for one in attached if isinstance(one, dict) and one.get("type") in HEAVY]
        found |= {str(one.get("source")) for one in heavy}
        data["attachments"] = [one for one in attached if one not in heavy]
    for part in ("steps", "befores", "afters"):
        for inner in data.get(part) or ():
            if isinstance(inner, dict):
                found |= _taken_out(inner)
    return found


def _read(file: Path) -> dict[str, Any] | None:
    try:
        data = json.loads(file.read_text(encoding="utf-8", errors="replace"))
    except (OSError, ValueError):
        return None  # damaged: Allure says so
    return data if isinstance(data, dict) else None
