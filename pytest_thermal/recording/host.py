"""What machine this is, for ``run.json``: facts that make two runs comparable or not."""

from __future__ import annotations

import contextlib
import hashlib
import importlib.metadata
import os
import platform
import socket
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

DRIVERS = ("nvidia", "amdgpu", "i915", "xe", "drv_davinci_intf", "cambricon_drv", "musa", "hl_thunk", "habanalabs")
"""Kernel modules of accelerators, which say their versions; those that are not loaded are not told of."""
_PACKAGES = ("pytest-thermal", "pytest", "numpy", "scipy", "psutil", "nvidia-ml-py")


NODE_VARIABLES = ("THERMAL_NODE", "SLURMD_NODENAME")
"""What a site calls this node, where that is not its host's name: a pod, one of several virtual nodes of a machine."""


def node_name(environ: Mapping[str, str]) -> str:
    """What this node is called: by the environment, else by its host's name."""
    told = (environ.get(variable, "").strip() for variable in NODE_VARIABLES)
    return next((name for name in told if name), "") or socket.gethostname() or "localhost"


def host_facts(root: Path = Path("/"), *, node: str | None = None) -> dict[str, Any]:
    """Name, processor, memory and system of the machine whose file system is at ``root``; None for what is not told.

    ``name`` is what the node is called (``node``, else its host's name), ``hostname`` what the system calls itself.
    """
    release = _assignments(root / "etc/os-release")
    memory = _colons(root / "proc/meminfo").get("MemTotal", "").partition(" ")[0]
    cpu = _colons(root / "proc/cpuinfo")
    return {
        "name": node or socket.gethostname(),
        "hostname": socket.gethostname(),
        "system": release.get("PRETTY_NAME"),
        "kernel": platform.release(),
        "machine": platform.machine(),
        "cpu": cpu.get("model name") or cpu.get("Model") or cpu.get("Hardware"),
        "cpus": os.cpu_count(),
        "memory_bytes": int(memory) * 1024 if memory.isdigit() else None,
        "product": _line(root / "sys/class/dmi/id/product_name"),
        "board": _line(root / "sys/class/dmi/id/board_name"),
        "bios": _line(root / "sys/class/dmi/id/bios_version"),
        "machine_id": _machine_id(root),
        "boot_id": _line(root / "proc/sys/kernel/random/boot_id"),
        "container": _container(root),
    }


def drivers(root: Path = Path("/")) -> dict[str, str]:
    """Versions of the accelerators' kernel modules that are loaded and have one, by module."""
    told = {name: _line(root / "sys/module" / name / "version") for name in DRIVERS}
    return {name: version for name, version in told.items() if version}


def accelerators(root: Path = Path("/")) -> list[dict[str, str | None]]:
    """Model and firmware of each card that its driver lists below ``/proc``; NVIDIA's does.

    ``identity`` is the card's UUID, as sensors have it.
    """
    found = []
    for file in sorted((root / "proc/driver/nvidia/gpus").glob("*/information")):
        told = _colons(file)
        found.append({"identity": told.get("GPU UUID"), "model": told.get("Model"), "firmware": told.get("Video BIOS")})
    return found


def versions(packages: Iterable[str] = _PACKAGES) -> dict[str, str]:
    """Versions of Python and of those packages that are installed."""
    found = {"python": platform.python_version()}
    for package in packages:
        with contextlib.suppress(importlib.metadata.PackageNotFoundError):
            found[package] = importlib.metadata.version(package)
    return found


def _machine_id(root: Path) -> str | None:
    """What stays with this system over reboots, as a digest: the id itself is not to be handed on (machine-id(5))."""
    told = _line(root / "etc/machine-id")
    return hashlib.sha256(f"pytest-thermal {told}".encode()).hexdigest()[:16] if told else None


def _container(root: Path) -> str | None:
    if (root / "run/.containerenv").exists():
        return "podman"
    return "docker" if (root / ".dockerenv").exists() else None


def _read(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""


def _line(path: Path) -> str | None:
    return _read(path).strip() or None


def _colons(path: Path) -> dict[str, str]:
    """``name : value`` lines; of a name that comes again, as each processor's, the first."""
    found: dict[str, str] = {}
    for line in _read(path).splitlines():
        name, colon, value = line.partition(":")
        if colon:
            found.setdefault(name.strip(), value.strip())
    return found


def _assignments(path: Path) -> dict[str, str]:
    pairs = (line.partition("=") for line in _read(path).splitlines())
    return {name: value.strip().strip("\"'") for name, equals, value in pairs if equals}
