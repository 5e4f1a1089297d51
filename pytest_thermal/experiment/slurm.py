"""What Slurm tells a task of the nodes that it runs on beside others."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from pytest_thermal.bench.host_list import expand_nodes


@dataclass(frozen=True, kw_only=True)
class SlurmStep:
    """The job step of this task."""

    name: str
    """Of the step, and of nothing else ever run on this cluster."""
    nodes: tuple[str, ...]


def slurm_step(environ: Mapping[str, str]) -> SlurmStep | None:
    """The step of several nodes that this process is a task of; None outside of one.

    A batch script is none: it runs on the first node alone, whatever its job has allocated.
    """
    count, job, step = (environ.get(f"SLURM_{name}", "") for name in ("STEP_NUM_NODES", "JOB_ID", "STEP_ID"))
    if not (count.isdigit() and int(count) > 1 and job and step):
        return None
    nodes = expand_nodes(environ.get("SLURM_STEP_NODELIST", ""))
    restart = environ.get("SLURM_RESTART_COUNT", "0")
    cluster = environ.get("SLURM_CLUSTER_NAME", "slurm")
    return SlurmStep(name=f"{cluster}-{job}.{step}" + (f"-{restart}" if restart != "0" else ""), nodes=nodes)
