"""How many cores' worth of time this process may have: its cores, and what its control group allows (``--cpus``)."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path


def usable_cores() -> float:
    """Cores that this process may use, or the part of them that its control group allows."""
    cores = len(os.sched_getaffinity(0))
    quota = quota_cores()
    return cores if quota is None else min(cores, quota)


def quota_cores(*, proc: Path = Path("/proc"), cgroups: Path = Path("/sys/fs/cgroup")) -> float | None:
    """The tightest quota of this process's control group and of those around it, in cores; None without one.

    Sources: the kernel's ``cgroup-v2.rst`` (``cpu.max``: microseconds a period, or ``max``) and ``sched-bwc.rst``
    (v1: ``cpu.cfs_quota_us``, -1 for none).
    """
    found = []
    for folder in _folders(proc, cgroups):
        with contextlib.suppress(OSError, ValueError):
            found.append(_version_2(folder))
        with contextlib.suppress(OSError, ValueError):
            found.append(_version_1(folder))
    return min((cores for cores in found if cores > 0), default=None)


def _folders(proc: Path, cgroups: Path) -> Iterator[Path]:
    """Of the groups that this process is in, from the inside out, in both versions' places."""
    with contextlib.suppress(OSError):
        for line in (proc / "self" / "cgroup").read_text(encoding="utf-8", errors="replace").splitlines():
            _, _, rest = line.partition(":")
            controllers, _, path = rest.partition(":")
            homes = [cgroups] if not controllers else [cgroups / "cpu,cpuacct", cgroups / "cpu"]
            if controllers and "cpu" not in controllers.split(","):
                continue
            inner = Path(path.lstrip("/"))
            for home in homes:
                yield from (home / one for one in (inner, *inner.parents))


def _version_2(folder: Path) -> float:
    quota, period = (folder / "cpu.max").read_text(encoding="ascii").split()
    return float(quota) / float(period) if quota != "max" else 0.0


def _version_1(folder: Path) -> float:
    quota = int((folder / "cpu.cfs_quota_us").read_text(encoding="ascii"))
    return quota / int((folder / "cpu.cfs_period_us").read_text(encoding="ascii"))
