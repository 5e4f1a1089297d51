"""Runs on several nodes at once, as sites start them: a real Slurm, a real sshd, a disk that is really full."""

from __future__ import annotations

import contextlib
import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from pytest_thermal.findings.phase import phase_finding
from pytest_thermal.model import Outcome
from pytest_thermal.recording import read_run
from pytest_thermal.recording.room import free_bytes, needed_bytes
from tests.plugin.plugin_runs import REPO, cases
from tests.plugin.thermal_runs import Started
from tests.real.parts.installs import python_environment
from tests.real.parts.slurm import NODES, Slurm
from tests.real.parts.sshd import Sshd
from tests.support.patience import until

pytestmark = pytest.mark.real

JOB_SECONDS = 300.0
"""When a test gives up on a whole run, all nodes of which share a core."""
SHORT = ("--baseline=2", "--ramp=2", "--cooldown=2", "-k", "test_phase")
"""Enough to go through all phases together; nothing that settles."""
KEY = "sk-canary-of-one-node-0123456789abcdef"
SBATCH = REPO / "deploy" / "slurm" / "thermal.sbatch"


@pytest.fixture(scope="module", autouse=True)
def one_core() -> Iterator[None]:
    """Daemons, nodes and their loads share one core: the other is for what runs beside these tests."""
    before = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {max(before)})
    yield
    os.sched_setaffinity(0, before)


def clean(**more: str) -> dict[str, str]:
    """What a person's shell has, without what this test run was given."""
    kept = {
        name: text
        for name, text in os.environ.items()
        if not name.startswith(("THERMAL_", "PYTEST_", "COV_", "SLURM")) and not name.lower().endswith("_proxy")
    }
    return {**kept, "COLUMNS": "200", **more}


def processes(accept: Callable[[bytes, Mapping[str, str], Path], bool]) -> list[int]:
    """Those whose command line, environment and working folder are such."""
    found = []
    for folder in Path("/proc").iterdir():
        if folder.name.isdigit():
            with contextlib.suppress(OSError):
                line = (folder / "cmdline").read_bytes()
                environ = (folder / "environ").read_bytes().decode("utf-8", "replace").split("\0")
                told = dict(pair.split("=", 1) for pair in environ if "=" in pair)
                if line and accept(line, told, (folder / "cwd").readlink()):
                    found.append(int(folder.name))
    return found


def events(run: Path) -> str:
    try:
        return (run / "events.jsonl").read_text()
    except OSError:
        return ""


def facts(run: Path) -> dict[str, Any]:
    told: dict[str, Any] = json.loads((run / "run.json").read_text())
    return told


# -------------------------------------------------------------------------------------------------------------- Slurm


class Job:
    """A job of `deploy/slurm/thermal.sbatch`."""

    def __init__(self, cluster: Slurm, folder: Path, *arguments: str, **environ: str) -> None:
        self.shared = folder / "shared"
        self.shared.mkdir()
        self._log = folder / "job.log"
        self._cluster = cluster
        environ = clean(
            SHARED=str(self.shared),
            PYTHON=sys.executable,
            SUITES="suites",
            # Two nodes on one machine: each has a lock of its own.
            PYTEST_THERMAL_LOCK_DIR=f"{folder}/lock.${{THERMAL_NODE}}",
            **environ,
        )
        self._id = cluster.submit(
            f"--output={self._log}", SBATCH, "--import-mode=importlib", *arguments, environ=environ, folder=folder
        )

    @property
    def status(self) -> int | None:
        """Its exit code; None while it goes on. Asked for, since `sbatch --wait` looks every half minute at last."""
        told = self._cluster.ask("scontrol", "--oneliner", "show", "job", self._id)
        if re.search(r"JobState=(PENDING|CONFIGURING|RUNNING|COMPLETING)", told):
            return None
        found = re.search(r"ExitCode=(\d+):(\d+)", told)
        assert found, told
        return int(found[1]) or int(found[2])

    def wait(self) -> int:
        until(lambda: self.status is not None, lambda: self.log, patience_seconds=JOB_SECONDS)
        return self.status or 0

    @property
    def log(self) -> str:
        return self._log.read_text("utf-8", "replace") if self._log.exists() else ""

    def of(self, node: str) -> str:
        """What the task on that node said."""
        lead = f"{NODES.index(node)}: "
        return "\n".join(line.removeprefix(lead) for line in self.log.splitlines() if line.startswith(lead))

    def run(self, node: str) -> Path:
        (found,) = (self.shared / "runs").glob(f"*_{node}")
        return found


def test_nodes_of_a_job_run_together_and_one_that_is_killed_holds_nobody_up(cluster: Slurm, tmp_path: Path) -> None:
    job = Job(cluster, tmp_path, "--duration=8", "--together-wait=10s", *SHORT, BENCH="demo")

    def all_in_steady() -> bool:
        return "thermal: steady" in job.of("n1") and "thermal: steady" in job.of("n2")

    until(lambda: all_in_steady() or job.status is not None, lambda: job.log, patience_seconds=JOB_SECONDS)
    assert all_in_steady(), job.log
    (killed,) = processes(lambda line, told, _: b"\0-m\0pytest\0" in line and told.get("SLURMD_NODENAME") == "n2")
    os.kill(killed, signal.SIGKILL)
    assert job.wait() != 0  # a node that died is no pass
    until(lambda: not processes(lambda _, told, __: told.get("SHARED") == str(job.shared)))  # no load outlives it

    n1 = facts(job.run("n1"))
    assert (n1["host"]["name"], n1["state"]) == ("n1", "finished")
    met = n1["together"]["phases"]
    assert [met[name]["nodes"] for name in ("baseline", "ramp", "steady")] == [["n1", "n2"]] * 3
    assert all(met[name]["starts_differ_seconds"] is not None for name in ("baseline", "ramp"))
    assert (met["cooldown"]["nodes"], met["cooldown"]["missing"]) == (["n1"], ["n2"])
    assert "shared_disk" in n1["clock"]["offsets"]
    assert "warning: cooldown is entered without n2" in job.of("n1")
    (results,) = (job.shared / "results").glob("*/n1")
    assert {outcome for outcome, _ in cases(results / "junit.xml").values()} == {"passed"}
    # The other's is kept as far as it got.
    n2 = read_run(job.run("n2"))
    assert n2.state == "cut off"
    assert "is gone" in n2.facts["ended_because"]
    assert [phase.name for phase in n2.phases] == ["baseline", "ramp", "steady"]
    assert phase_finding(n2, "steady").outcome is Outcome.INCONCLUSIVE
    # Two simulated machines on one: each saw its own load only.
    for run in (job.run("n1"), job.run("n2")):
        assert max(read_run(run).series["cpu0.utilization_percent"].values) > 90


def test_each_node_has_a_key_of_its_own_and_one_without_says_so(cluster: Slurm, tmp_path: Path) -> None:
    for node in NODES:
        (tmp_path / "benches" / node).mkdir(parents=True)
        (tmp_path / "benches" / node / "config.toml").write_text(
            f'[api]\nbase_url = "http://127.0.0.1:9/v1"\napi_key_env = "KEY_OF_{node.upper()}"\n'
        )
    # As /etc/pytest-thermal/key.env of each: here both nodes see one file.
    (tmp_path / "key.env").write_text(f"case $SLURMD_NODENAME in n1) KEY_OF_N1={KEY} ;; esac\n")
    job = Job(
        *(cluster, tmp_path, "--sensors"),
        BENCH=f"{tmp_path}/benches/${{THERMAL_NODE}}",
        KEY_FILE=str(tmp_path / "key.env"),
    )
    assert job.wait() != 0
    assert "cpu0.utilization_percent" in job.of("n1"), job.log
    assert "KEY_OF_N2" in job.of("n2")
    assert "cpu0.utilization_percent" not in job.of("n2")
    assert "Traceback" not in job.log
    assert KEY not in job.log + cluster.ask("scontrol", "show", "job")
    spool = Path(cluster.environ["SLURM_CONF"]).parent
    assert not [path for path in spool.rglob("*") if path.is_file() and KEY.encode() in path.read_bytes()]


# ---------------------------------------------------------------------------------------------------- xdist over ssh


def test_results_come_back_over_ssh_and_a_dead_node_is_told_with_where_its_run_lies(sshd: Sshd, tmp_path: Path) -> None:
    nodes = ("node1", "node2")
    for name in ("controller", *nodes):
        (tmp_path / name).mkdir()
    tx = [
        f"--tx=ssh=-F {sshd.config} {node}//python={sys.executable}//chdir={tmp_path / node}//id={node}"
        f"//env:PYTEST_THERMAL_LOCK_DIR={tmp_path / node}"
        for node in nodes
    ]
    output = tmp_path / "output.txt"
    with output.open("wb") as file:
        controller = subprocess.Popen(
            [
                *(sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "--import-mode=importlib", "--dist=each"),
                *(*tx, "--pyargs", "suites.thermal", "-m", "thermal", "--demo", "--duration=8", *SHORT),
                *("--alluredir=allure", "--junitxml=junit.xml"),
            ],
            cwd=tmp_path / "controller",
            env=clean(),
            stdin=subprocess.DEVNULL,
            stdout=file,
            stderr=subprocess.STDOUT,
        )
    try:
        until(
            lambda: (
                any('"steady"' in events(run) for run in (tmp_path / "node2").glob("reports/runs/*"))
                or controller.poll() is not None
            ),
            output.read_text,
            patience_seconds=JOB_SECONDS,
        )
        on_node2 = processes(lambda line, _, where: where == tmp_path / "node2" and b"sys.stdin.readline" in line)
        assert on_node2, output.read_text()
        for worker in on_node2:
            os.kill(worker, signal.SIGKILL)
        status = controller.wait(JOB_SECONDS)
    finally:
        controller.kill()
        controller.wait()
    said = output.read_text()
    assert status == pytest.ExitCode.TESTS_FAILED, said
    (here,) = (tmp_path / "controller" / "reports" / "runs").iterdir()
    assert f"node1: run {here}, " in said
    (there,) = (tmp_path / "node2" / "reports" / "runs").iterdir()
    assert f"its run stays on it: {there}" in said
    assert "node2: LOST" in said
    # Whole, sealed, and under the node's name, though both have one host name.
    run = read_run(here)
    assert (run.state, run.changed, run.facts["host"]["name"]) == ("finished", (), "node1")
    results = [json.loads(path.read_text()) for path in (tmp_path / "controller" / "allure").glob("*-result.json")]
    by_node: dict[str, set[str]] = {}
    for result in results:
        labels = {label["name"]: label["value"] for label in result["labels"]}
        by_node.setdefault(labels["node"], set()).add(result["status"])
    assert by_node["node1"] == {"passed"}
    assert "broken" in by_node["node2"]
    until(lambda: not processes(lambda _, __, where: where == tmp_path / "node2"))


# ------------------------------------------------------------------------------------------------------------- disks


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A disk of 24 MB, where a run's archive is looked for."""
    place = tmp_path / "run" / "runs"
    place.mkdir(parents=True)
    made = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=24m", "thermal-test", str(place)],
        capture_output=True,
        text=True,
        check=False,
    )
    if made.returncode:
        reason = f"no file system can be mounted here: {made.stderr.strip()}"
        if os.environ.get("REAL_PARTS") == "required" and os.geteuid() == 0:
            pytest.fail(reason)
        pytest.skip(reason)
    yield place
    subprocess.run(["umount", "--lazy", str(place)], check=True)


def test_a_shared_disk_that_fills_up_takes_the_load_off_and_the_run_is_kept(small_disk: Path) -> None:
    started = Started(
        small_disk.parent, REPO / "suites" / "thermal", "-m", "thermal", "--demo", "--duration=600", *SHORT
    )
    try:
        started.wait_for("thermal: steady")
        rows = started.rows()
        _fill(small_disk / "of-somebody-else")
        status = started.wait()
        said = started.output
        assert status == pytest.ExitCode.TESTS_FAILED, said
        assert "No space left on device" in said
        assert "nothing could be written for" in said
        assert "Traceback" not in said.split("short test summary")[-1]
        started.until(lambda: not started.loads())
        (small_disk / "of-somebody-else").unlink()
        run = read_run(started.run())
        assert run.state != "finished"
        assert started.rows() >= rows
        _fill(small_disk / "of-somebody-else", leave_bytes=4_000_000)
        free = free_bytes(small_disk)
        assert free is not None
        assert free < needed_bytes(seconds=1, period_seconds=1, sensors=1)  # and the next run would not begin
    finally:
        started.close()


def _fill(path: Path, *, leave_bytes: int = 0) -> None:
    with path.open("wb") as file:
        free = os.statvfs(path).f_bavail * os.statvfs(path).f_frsize
        left = max(free - leave_bytes, 0) if leave_bytes else free + 2**20
        with contextlib.suppress(OSError):
            while left > 0:
                left -= os.write(file.fileno(), b"\0" * min(left, 2**16))


# ------------------------------------------------------------------------------------------------------------ recipes


def test_the_recipes_are_what_their_tools_expect() -> None:
    deploy = REPO / "deploy"
    tools = python_environment("deploy").parent
    for command in (
        [str(tools / "shellcheck"), str(SBATCH)],
        [str(tools / "kubernetes-validate"), "--strict", str(deploy / "kubernetes" / "thermal-job.yaml")],
        [str(tools / "ansible-playbook"), "--syntax-check", "-i", str(deploy / "ansible" / "inventory.example.ini"),
         str(deploy / "ansible" / "thermal.yml")],
    ):  # fmt: skip
        environ = clean(PATH=f"{tools}:{os.environ['PATH']}")
        done = subprocess.run(command, capture_output=True, text=True, check=False, env=environ, timeout=120)
        assert done.returncode == 0, f"{command[0]}: {done.stdout}{done.stderr}"
