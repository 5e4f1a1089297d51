"""Settings that make a communication library use TCP although RDMA is there."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path

from pytest_thermal.model.said import say

_RDMA_TRANSPORTS = {
    *("rc", "rc_v", "rc_verbs", "rc_x", "rc_mlx5"),
    *("ud", "ud_v", "ud_verbs", "ud_x", "ud_mlx5"),
    *("dc", "dc_x", "dc_mlx5", "ib", "gga"),
}
_TCP_PROVIDERS = ("tcp", "sockets", "net")
_DISABLING = ("NCCL_IB_DISABLE", "MCCL_IB_DISABLE", "CNCL_IB_DISABLE")
"""NCCL and RCCL; MetaX and Moore Threads; Cambricon."""


def forced_fallbacks(environ: Mapping[str, str], *, etc: Path) -> tuple[str, ...]:
    """Each setting that forces TCP, as ``NAME=value (place)``; none where RDMA may be used.

    Looks into ``environ``, and where NCCL looks besides: its own file, then ``nccl.conf`` below ``etc``.
    """
    settings = {**_nccl_files(environ, etc), **{name: (value, "environment") for name, value in environ.items()}}
    return tuple(
        say("{name}={value} ({place})", name=name, value=value, place=place)
        for name, (value, place) in sorted(settings.items())
        if _forces(name, value.strip())
    )


def _forces(name: str, value: str) -> bool:
    if name in _DISABLING:
        return _number(value) != 0
    if name == "NCCL_NET":
        return value.lower() == "socket"
    if name == "HCCL_NPU_NET_PROTOCOL":
        return value.upper() == "TCP"
    if name == "HCCL_OVER_TCP":
        return value.lower() in ("1", "true")
    if name == "UCX_TLS":
        return _ucx_without_rdma(value.lower())
    if name == "FI_PROVIDER":
        providers = [part.partition(";")[0] for part in value.lower().split(",")]
        return all(provider in _TCP_PROVIDERS for provider in providers)
    return False


def _ucx_without_rdma(value: str) -> bool:
    names = {part.strip().lstrip("\\").partition(":")[0] for part in value.lstrip("^").split(",")}
    if value.startswith("^"):
        return "ib" in names or {"rc", "ud", "dc"} <= names
    return "tcp" in names and "all" not in names and not names & _RDMA_TRANSPORTS


def _number(text: str) -> int:
    """What is no number counts as not set, as it does for the library."""
    for base in (10, 0):
        try:
            return int(text, base)
        except ValueError:
            continue
    return 0


def _nccl_files(environ: Mapping[str, str], etc: Path) -> dict[str, tuple[str, str]]:
    files = [etc / "nccl.conf"]
    if environ.get("NCCL_CONF_FILE"):
        files.append(Path(environ["NCCL_CONF_FILE"]))
    elif environ.get("HOME"):
        files.append(Path(environ["HOME"]) / ".nccl.conf")
    found: dict[str, tuple[str, str]] = {}
    for path in files:
        try:
            text = path.read_text("utf-8", "replace")
        except OSError:
            continue
        for match in re.finditer(r"^\s*([A-Z0-9_]+)\s*=\s*([^#\n]*)", text, re.MULTILINE):
            found[match[1]] = (match[2].strip(), str(path))
    return found
