"""A real Slurm with two virtual nodes on this machine, and a MUNGE of its own: nothing of the system's is touched."""

from __future__ import annotations

import contextlib
import os
import shutil
import socket
import subprocess
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from tests.real.parts.errors import PartFailedError, PartUnavailableError
from tests.real.parts.process import free_ports, retried_on_taken_address, served

NODES = ("n1", "n2")
_NEEDED = ("munged", "slurmctld", "slurmd", "srun", "sbatch", "scancel", "squeue", "sinfo")
_QUIET_SECONDS = 20.0


@dataclass(frozen=True, kw_only=True)
class Slurm:
    """How to talk to it."""

    environ: Mapping[str, str]
    """For every command."""

    def submit(self, *arguments: str | Path, environ: Mapping[str, str], folder: Path) -> str:
        """Give sbatch a script; the job's number."""
        done = subprocess.run(
            ["sbatch", "--parsable", *map(str, arguments)],
            env={**environ, **self.environ},
            cwd=folder,
            capture_output=True,
            text=True,
            check=False,
            timeout=120,
        )
        if done.returncode:
            raise PartFailedError(f"sbatch: {done.stdout}{done.stderr}")
        return done.stdout.strip().partition(";")[0]

    def ask(self, *command: str) -> str:
        """What a command of Slurm's answers."""
        return subprocess.run(
            command, env={**os.environ, **self.environ}, capture_output=True, text=True, check=False, timeout=120
        ).stdout


def slurm(folder: Path) -> contextlib.AbstractContextManager[Slurm]:
    """The cluster, until the block ends; jobs that go on then are cancelled.

    Raises:
        PartUnavailableError: It is not installed, or this is not root.
    """
    for program in _NEEDED:
        if shutil.which(program) is None:
            raise PartUnavailableError(f"{program} is not installed (Debian: slurm-wlm, munge)")
    if os.geteuid() != 0:
        raise PartUnavailableError("Slurm's daemons need root")
    return retried_on_taken_address(lambda: _cluster(folder / "slurm"))


@contextlib.contextmanager
def _cluster(home: Path) -> Iterator[Slurm]:
    shutil.rmtree(home, ignore_errors=True)
    for one in ("munge", "ctld", *(f"slurmd.{node}" for node in NODES)):
        (home / one).mkdir(parents=True)
    key = home / "munge" / "key"
    key.write_bytes(os.urandom(128))
    key.chmod(0o600)
    control, *ports = free_ports(1 + len(NODES))
    # By ranges only, and so each node by a line of its own.
    conf = home / "slurm.conf"
    conf.write_text(_configuration(home, control, ports))
    here = Slurm(environ={"SLURM_CONF": str(conf)})
    beside = {"SLURM_CONF": str(conf)}
    with contextlib.ExitStack() as stack:
        stack.enter_context(
            served(
                ["munged", "--foreground", "--force", f"--key-file={key}", f"--socket={home}/munge/socket",
                 f"--pid-file={home}/munge/pid", f"--log-file={home}/munge/log", f"--seed-file={home}/munge/seed"],
                log=home / "munged.out",
                ready=lambda: (home / "munge" / "socket").exists() or None,
            )
        )  # fmt: skip
        stack.enter_context(
            served(
                ["slurmctld", "-D", "-f", str(conf)],
                log=home / "slurmctld.out",
                ready=lambda: here.ask("sinfo", "-h") or None,
                environ=beside,
            )
        )
        for node in NODES:
            stack.enter_context(
                served(
                    ["slurmd", "-D", "-N", node, "-f", str(conf)],
                    log=home / f"{node}.out",
                    ready=lambda node=node: "idle" in here.ask("sinfo", "-h", "-n", node, "-o", "%t") or None,  # type: ignore[misc]
                    environ=beside,
                )
            )
        try:
            yield here
        finally:
            here.ask("scancel", "--user=root", "--signal=KILL", "--full")
            here.ask("scancel", "--user=root")
            deadline = time.monotonic() + _QUIET_SECONDS
            while here.ask("squeue", "-h") and time.monotonic() < deadline:
                time.sleep(0.2)


def _configuration(home: Path, control: int, ports: list[int]) -> str:
    host = socket.gethostname()
    nodes = "\n".join(
        f"NodeName={node} NodeHostname={host} NodeAddr=127.0.0.1 Port={port} CPUs=1 RealMemory=500"
        for node, port in zip(NODES, ports, strict=True)
    )
    return f"""\
ClusterName=lab
SlurmctldHost={host}(127.0.0.1)
SlurmctldPort={control}
SlurmUser=root
SlurmdUser=root
AuthType=auth/munge
AuthInfo=socket={home}/munge/socket
StateSaveLocation={home}/ctld
SlurmdSpoolDir={home}/slurmd.%n
SlurmdPidFile={home}/slurmd.%n.pid
SlurmctldPidFile={home}/slurmctld.pid
SlurmdLogFile={home}/slurmd.%n.log
SlurmctldLogFile={home}/slurmctld.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
ReturnToService=2
KillWait=5
SchedulerParameters=sched_interval=1,sched_min_interval=100000,bf_interval=1
{nodes}
PartitionName=main Nodes=ALL Default=YES MaxTime=INFINITE State=UP
"""
