"""Folders that look like /sys of some machine, including the reads that fail."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest

TREES = Path(__file__).parents[2] / "fixtures" / "devices" / "sysfs"


def build(name: str, root: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The tree of that name below ``root``, which then stands for /sys."""
    failing: dict[str, int] = {}
    for line in (TREES / f"{name}.txt").read_text("utf-8").splitlines():
        path, _, content = line.partition("\t")
        file = root / path
        file.parent.mkdir(parents=True, exist_ok=True)
        if content.startswith("@"):
            target = root / "devices" / content[1:]
            target.mkdir(parents=True, exist_ok=True)
            file.symlink_to(target)
            continue
        file.write_text("" if content.startswith("!") else f"{content}\n", "utf-8")
        if content.startswith("!"):
            failing[f"{file}"] = getattr(errno, content[1:])
    fail_reads(failing, monkeypatch)
    return root


def fail_reads(failing: dict[str, int], monkeypatch: pytest.MonkeyPatch) -> None:
    """Reading these files fails with these errors, as long as they are in the mapping."""
    pread = os.pread

    def reading(descriptor: int, size: int, offset: int) -> bytes:
        number = failing.get(f"{Path(f'/proc/self/fd/{descriptor}').readlink()}")
        if number is not None:
            raise OSError(number, os.strerror(number))
        return pread(descriptor, size, offset)

    monkeypatch.setattr("os.pread", reading)
