"""The names of a bench's domains without reading all of the bench: for a list of tests, which must cost little.

Imports the standard library only.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Mapping
from pathlib import Path

from pytest_thermal.bench.files import CONFIG, SETTINGS

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib  # type: ignore[import-not-found,unused-ignore]

_PLAIN = re.compile(r"[A-Za-z0-9_.-]*[A-Za-z0-9][A-Za-z0-9_.-]*")


def quick_domain_names(folder: Path) -> tuple[str, ...] | None:
    """As ``load_bench`` would name them; None where that takes more than a look, or where something may be wrong."""
    try:
        text = (folder / CONFIG).read_text(encoding="utf-8") if (folder / CONFIG).is_file() else ""
        config = tomllib.loads(text)
    except (OSError, ValueError):
        return None
    if not config and not (folder / SETTINGS).is_file():
        return None
    tables = config.get("scale_up", [])
    tables = [tables] if isinstance(tables, Mapping) else tables
    if not isinstance(tables, list) or not all(isinstance(table, Mapping) for table in tables):
        return None
    if len(tables) > 1:
        said = [table.get("name", f"domain{index}") for index, table in enumerate(tables)]
    else:
        said = [next((table["name"] for table in tables if "name" in table), _only_name(config, folder))]
    names = [name for name in said if isinstance(name, str) and _PLAIN.fullmatch(name)]
    return tuple(names) if len(set(names)) == len(said) else None


def _only_name(config: Mapping[str, object], folder: Path) -> object:
    cluster = config.get("cluster", {})
    if not isinstance(cluster, Mapping):
        return None
    domain = cluster.get("scale_up_domain")
    return (domain if isinstance(domain, str) else None) or cluster.get("name") or folder.resolve().name or "bench"
