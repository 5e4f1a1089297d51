"""Bench templates that come with the package."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from pytest_thermal.bench.files import FILES

_PACKAGE = Path(__file__).resolve().parent.parent


def find_template(name: str) -> Path | None:
    """The folder of the bench template of that name (`demo`, `workstation`, `supernode`), or None."""
    return next((folder for folder in _folders() if folder.name == name), None)


def template_names() -> tuple[str, ...]:
    """Names of all templates, sorted."""
    return tuple(sorted({folder.name for folder in _folders()}))


def _folders() -> Iterator[Path]:
    # In a wheel they lie in the package; in a checkout, beside it.
    for home in (_PACKAGE / "benches", _PACKAGE.parent / "fixtures" / "benches"):
        if home.is_dir():
            yield from (folder for folder in sorted(home.iterdir()) if any((folder / file).is_file() for file in FILES))
