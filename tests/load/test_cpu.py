"""The CPU load: by stress-ng where it is, by ourselves where it is not, and the report says which."""

from __future__ import annotations

import importlib.util
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from pytest_thermal.load import cpu_work, start
from pytest_thermal.load.work import own_environ, own_program
from tests.load.fakes import script
from tests.load.helpers import MARK, arguments, marked, new_mark, nothing_is_left, until


def absent(name: str) -> None:
    assert name == "stress-ng"


def always(tool: str) -> Callable[[str], str]:
    return lambda _: tool


def stress_ng(tmp_path: Path, text: str) -> str:
    return str(script(tmp_path / "stress-ng", text))


def test_stress_ng_makes_it_where_it_is_installed(tmp_path: Path) -> None:
    tool = stress_ng(tmp_path, "echo 'stress-ng, version 0.18.02 (gcc 13, x86_64 Linux)'")
    work = cpu_work(workers=3, limit_seconds=12.5, environ={"A": "b"}, which=always(tool))
    assert work.tool == "stress-ng 0.18.02 matrixprod"
    assert work.command[:5] == (tool, "--cpu", "3", "--cpu-method", "matrixprod")
    assert work.command[work.command.index("--timeout") + 1] == "14s"
    assert work.environ == {"A": "b"}
    assert work.limit_seconds == 12.5
    assert work.notes == ()


def test_a_stress_ng_that_does_not_say_its_version_is_used(tmp_path: Path) -> None:
    tool = stress_ng(tmp_path, "echo hello")
    work = cpu_work(workers=1, limit_seconds=1, environ={}, which=always(tool))
    assert work.tool == "stress-ng matrixprod"


def test_a_stress_ng_that_does_not_run_is_told(tmp_path: Path) -> None:
    tool = stress_ng(tmp_path, "exit 1")
    work = cpu_work(workers=1, limit_seconds=1, environ={}, which=always(tool))
    assert work.tool.startswith("built-in burner")
    assert work.notes == (f"{tool} does not run: the built-in burner is used",)


def test_without_stress_ng_the_built_in_burner_makes_it_and_says_so() -> None:
    work = cpu_work(workers=None, limit_seconds=10, environ={"A": "b"}, which=absent)
    assert work.tool == "built-in burner (numpy)"
    assert work.environ["A"] == "b"
    assert "stress-ng is not installed" in work.notes[0]
    assert work.command[work.command.index("--workers") + 1] == str(len(os.sched_getaffinity(0)))


def test_without_numpy_it_is_plain_python(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda _: None)
    work = cpu_work(workers=1, limit_seconds=1, environ={}, which=absent)
    assert work.tool == "built-in burner (pure Python)"
    (note,) = work.notes
    assert note.startswith("stress-ng is not installed: the built-in burner is used, which without numpy heats less (")


def test_the_built_in_burner_burns_one_core_a_worker_and_is_taken_off() -> None:
    mark = new_mark()
    threads = {"OPENBLAS_NUM_THREADS": "4", "OMP_NUM_THREADS": "4", MARK: mark}
    work = cpu_work(workers=1, limit_seconds=60, environ=threads, which=absent)
    with start(work) as load:
        until(lambda: load.status().text == "1 workers, numpy")
        (worker,) = [process for process in marked(mark) if parent_of(process) == load.process_id]
        assert "pytest_thermal.load.cpu_burner" in arguments(worker)
        # Whatever the environment says of BLAS's threads: one a worker, or they would wait for each other.
        assert len(list(Path(f"/proc/{worker}/task").iterdir())) == 1
        before = ticks(worker)
        until(lambda: ticks(worker) > before + 10)
        load.stop()
    assert nothing_is_left(mark)


def test_a_worker_that_is_lost_ends_the_load_with_words() -> None:
    mark = new_mark()
    with start(cpu_work(workers=1, limit_seconds=60, environ={MARK: mark}, which=absent)) as load:
        until(lambda: "workers" in load.status().text)
        (worker,) = [process for process in marked(mark) if parent_of(process) == load.process_id]
        os.kill(worker, 9)
        until(lambda: not load.alive)
        assert load.ended is not None
        assert load.ended.exit_code == 1
        assert f"a worker (process {worker}) was lost: SIGKILL" in load.ended.tail


def test_the_built_in_burner_ends_at_its_own_limit() -> None:
    done = subprocess.run(
        own_program("pytest_thermal.load.cpu_burner", "--workers", "1", "--limit", "0.2"),
        env={**os.environ, **own_environ({})},
        check=False,
    )
    assert done.returncode == 0


@pytest.mark.parametrize("numpy", [True, False], ids=["numpy", "pure Python"])
def test_bursts_come_on_command(numpy: bool, tmp_path: Path) -> None:
    if not numpy:
        (tmp_path / "numpy.py").write_text("raise ImportError", encoding="utf-8")
        (tmp_path / "sitecustomize.py").write_text(
            "import importlib.util as u\nfind = u.find_spec\n"
            "u.find_spec = lambda name, *more: None if name == 'numpy' else find(name, *more)\n",
            encoding="utf-8",
        )
    done = subprocess.run(
        [sys.executable, "-m", "pytest_thermal.load.cpu_burner", "--bursts", "--limit", "60"],
        input=b"0.05\n0.01\n",
        capture_output=True,
        env={**os.environ, **own_environ({"PYTHONPATH": str(tmp_path)})},
        check=False,
    )
    assert done.stdout.split() == [b"ready", b"done", b"done"]
    assert done.returncode == 0


@pytest.mark.skipif(shutil.which("stress-ng") is None, reason="stress-ng is not installed here")
def test_the_real_stress_ng_takes_these_options() -> None:
    mark = new_mark()
    with start(cpu_work(workers=1, limit_seconds=60, environ={MARK: mark})) as load:
        until(lambda: "dispatching hogs" in load.status().text)
        # Its workers write their titles over what stands in their environment.
        until(lambda: children(load.process_id))
        workers = children(load.process_id)
        load.stop()
    assert not any(Path(f"/proc/{worker}").exists() for worker in workers)
    assert nothing_is_left(mark)


def test_works_can_be_written_down() -> None:
    work = cpu_work(workers=1, limit_seconds=1, environ={}, which=absent)
    assert json.dumps({"tool": work.tool, "command": work.command, "notes": work.notes})


def parent_of(process: int) -> int:
    try:
        return int(Path(f"/proc/{process}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()[1])
    except OSError:
        return 0


def ticks(process: int) -> int:
    """Clock ticks that it has computed for."""
    return int(Path(f"/proc/{process}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()[11])


def children(process: int) -> list[int]:
    return [
        int(entry.name)
        for entry in Path("/proc").iterdir()
        if entry.name.isdigit() and parent_of(int(entry.name)) == process
    ]
