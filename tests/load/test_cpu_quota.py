"""The quota of a control group, in the files of both versions."""

from __future__ import annotations

from pathlib import Path

import pytest

from pytest_thermal.load.cpu_quota import quota_cores


def machine(root: Path, membership: str, files: dict[str, str]) -> dict[str, Path]:
    proc, cgroups = root / "proc", root / "cgroup"
    (proc / "self").mkdir(parents=True)
    (proc / "self" / "cgroup").write_text(membership, encoding="utf-8")
    cgroups.mkdir()
    for path, text in files.items():
        (cgroups / path).parent.mkdir(parents=True, exist_ok=True)
        (cgroups / path).write_text(text, encoding="utf-8")
    return {"proc": proc, "cgroups": cgroups}


@pytest.mark.parametrize(
    "membership, files, cores",
    [
        ("0::/\n", {"cpu.max": "400000 100000\n"}, 4.0),
        ("0::/a/b.scope\n", {"a/b.scope/cpu.max": "max 100000\n", "a/cpu.max": "150000 100000\n"}, 1.5),
        ("0::/a/b\n", {"a/cpu.max": "300000 100000\n", "a/b/cpu.max": "800000 100000\n"}, 3.0),
        ("0::/a\n", {"a/cpu.max": "max 100000\n"}, None),
        ("0::/a\n", {"a/cpu.max": "a puzzle\n"}, None),
        ("0::/gone\n", {}, None),
        (
            "5:cpu,cpuacct:/docker/1\n4:memory:/docker/1\n",
            {"cpu,cpuacct/docker/1/cpu.cfs_quota_us": "250000\n", "cpu,cpuacct/docker/1/cpu.cfs_period_us": "100000\n"},
            2.5,
        ),
        (
            "5:cpu:/x\n",
            {"cpu/x/cpu.cfs_quota_us": "-1\n", "cpu/x/cpu.cfs_period_us": "100000\n"},
            None,
        ),
    ],
)  # fmt: skip
def test_the_tightest_of_those_around_counts(
    membership: str, files: dict[str, str], cores: float | None, tmp_path: Path
) -> None:
    assert quota_cores(**machine(tmp_path, membership, files)) == cores


def test_a_machine_without_control_groups_has_none(tmp_path: Path) -> None:
    assert quota_cores(proc=tmp_path, cgroups=tmp_path) is None
