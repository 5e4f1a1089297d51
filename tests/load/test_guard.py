"""No load outlives what it is for, whoever is killed, and however it resists."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from pytest_thermal.load import guard, remains, start
from tests.load.helpers import arguments, marked, new_mark, nothing_is_left, shell, until, work
from tests.support.clock import Standing


@pytest.fixture
def mark() -> Iterator[str]:
    """A mark of which no process is left after the test, however it ended."""
    mark = new_mark()
    yield mark
    for process in marked(mark):
        os.kill(process, signal.SIGKILL)


def guards(mark: str) -> list[int]:
    """The guard and its warden, in this order."""
    return sorted(process for process in marked(mark) if "guard.py" in arguments(process))


@pytest.mark.parametrize(
    "number, group",
    [
        (signal.SIGKILL, False),
        (signal.SIGTERM, False),
        (signal.SIGHUP, False),
        (signal.SIGINT, True),
        (signal.SIGSTOP, True),
    ],
    ids=["kill", "terminate", "hang up", "Ctrl-C", "Ctrl-Z"],
)
def test_nothing_is_left_when_the_parent_ends(number: signal.Signals, group: bool, mark: str) -> None:
    with subprocess.Popen(
        [sys.executable, str(Path(__file__).with_name("parent.py")), mark],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    ) as parent:
        assert parent.stdout is not None
        assert int(parent.stdout.readline()) in marked(mark)
        until(lambda: any("sleep 600" in arguments(process) for process in marked(mark)))
        (os.killpg if group else os.kill)(parent.pid, number)
        assert nothing_is_left(mark)
        os.killpg(parent.pid, signal.SIGKILL)  # the child that held the lifeline open


@pytest.mark.parametrize("which", [0, 1], ids=["guard", "warden"])
def test_nothing_is_left_when_a_watcher_is_killed(which: int, mark: str) -> None:
    load = start(shell("setsid sleep 600 & trap '' TERM; while :; do sleep 1; done", mark=mark))
    until(lambda: any("sleep 600" in arguments(process) for process in marked(mark)))
    os.kill(guards(mark)[which], signal.SIGKILL)
    assert nothing_is_left(mark)
    until(lambda: not load.alive)
    ended = load.ended
    assert ended is not None
    assert ended.because == "its guard was ended from outside"
    assert not ended.in_order


@pytest.mark.parametrize(
    "which, number",
    [(0, signal.SIGTERM), (0, signal.SIGINT), (0, signal.SIGHUP), (1, signal.SIGTERM)],
    ids=["guard terminate", "guard interrupt", "guard hang up", "warden terminate"],
)
def test_a_signal_to_a_watcher_takes_the_load_off(which: int, number: signal.Signals, mark: str) -> None:
    load = start(work("sleep", "600", mark=mark))
    os.kill(guards(mark)[which], number)
    assert nothing_is_left(mark)
    until(lambda: not load.alive)
    assert load.ended is not None
    assert not load.ended.in_order
    assert "its guard" in load.ended.because


RESISTING = {
    "ignores SIGTERM": "trap '' TERM; echo up; while :; do sleep 1; done",
    "leaves its session": "setsid sh -c 'trap \"\" TERM; sleep 600' & echo up; sleep 600",
    "puts itself into the background": "(setsid sh -c 'sleep 600' &); echo up",
    "closes its input": "exec 0<&-; echo up; exec sleep 600",
    "is stopped": "echo up; kill -STOP $$",
    "has many children": "for i in 1 2 3 4 5 6 7 8 9; do sleep 600 & done; echo up; wait",
}


@pytest.mark.parametrize("script", RESISTING.values(), ids=RESISTING.keys())
def test_a_load_that_resists_is_taken_off(script: str, mark: str) -> None:
    load = start(shell(script, mark=mark))
    until(lambda: load.status().text == "up")
    assert load.alive
    ended = load.stop()
    assert nothing_is_left(mark)
    assert ended.in_order
    assert ended.because == "it was stopped"
    assert not load.alive


def test_what_went_into_the_background_is_still_a_load(mark: str) -> None:
    load = start(shell("(setsid sh -c 'sleep 600' &); exit 0", mark=mark))
    until(lambda: not Path(f"/proc/{load.process_id}").exists())
    time.sleep(5 * guard.TICK_SECONDS)
    assert load.alive
    assert load.stop().because == "it was stopped"
    assert nothing_is_left(mark)


def test_nothing_is_left_when_both_watchers_are_killed_at_once(mark: str) -> None:
    load = start(work("sleep", "600", mark=mark))
    for process in guards(mark):
        os.kill(process, signal.SIGKILL)
    assert nothing_is_left(mark)
    until(lambda: not load.alive)
    assert load.stop().because == "its guard was ended from outside"


ORPHANS = "for i in 1 2 3; do setsid sleep 600 & done; trap '' TERM; while :; do sleep 1; done"


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGSTOP], ids=["killed", "stopped"])
@pytest.mark.parametrize("who", ["the warden", "both watchers", "all"])
def test_nothing_is_left_when_nobody_watches(who: str, number: signal.Signals, mark: str) -> None:
    load = start(shell(ORPHANS, mark=mark, grace_seconds=1.1))
    until(lambda: sum("sleep 600" in arguments(process) for process in marked(mark)) >= 3)
    guard_first = guards(mark)
    for process in guard_first[1:] if who == "the warden" else guard_first if who == "both watchers" else marked(mark):
        with contextlib.suppress(ProcessLookupError):
            os.kill(process, number)
    load.stop()
    assert marked(mark) == []
    assert not load.alive


def test_what_bears_another_mark_is_left_alone(mark: str) -> None:
    with start(work("sleep", "600", mark=mark)) as load:
        assert remains.clear_up(remains.new_mark(), seconds=1.0) == 0
        assert load.alive


def test_where_proc_is_anothers_nobody_is_killed(mark: str, monkeypatch: pytest.MonkeyPatch) -> None:
    with start(work("sleep", "600", mark=mark)) as load:
        monkeypatch.setattr(remains, "_is_own_proc", lambda: False)
        assert remains.clear_up(load._mark, seconds=1.0) == 0
        assert load.alive


def test_nothing_is_left_when_a_whole_group_is_killed(mark: str) -> None:
    load = start(shell("setsid sleep 600 & sleep 600", mark=mark))
    until(lambda: sum("sleep 600" in arguments(process) for process in marked(mark)) >= 3)
    os.killpg(load.guard_id, signal.SIGKILL)
    assert nothing_is_left(mark)
    assert not load.stop().in_order


def test_what_went_into_the_background_and_ends_there_ends_the_load(mark: str) -> None:
    load = start(shell("(setsid sh -c 'sleep 0.2' &); exit 0", mark=mark))
    until(lambda: not load.alive)
    assert load.ended is not None
    assert load.ended.exit_code == 0


def test_a_failure_ends_what_it_left_in_the_background(mark: str) -> None:
    load = start(shell("(setsid sh -c 'sleep 600' &); exit 5", mark=mark))
    assert nothing_is_left(mark)
    until(lambda: not load.alive)
    assert load.ended is not None
    assert load.ended.exit_code == 5


def test_the_limit_ends_it(mark: str) -> None:
    load = start(work("sleep", "600", mark=mark, limit_seconds=0.3))
    until(lambda: not load.alive)
    assert load.ended is not None
    assert load.ended.because == "its time limit of 0.3 s was reached"
    assert load.ended.in_order
    assert nothing_is_left(mark)


def test_the_command_is_the_first_that_memory_is_taken_from(mark: str) -> None:
    with start(work("sleep", "600", mark=mark)) as load:
        own = int(Path("/proc/self/oom_score_adj").read_text(encoding="ascii"))
        assert int(Path(f"/proc/{load.process_id}/oom_score_adj").read_text(encoding="ascii")) > own


def test_lines_are_handed_on_and_the_exit_code_is_the_commands() -> None:
    with subprocess.Popen(
        [
            *(sys.executable, "-I", "-S", guard.__file__, "--limit", "60", "--"),
            *("sh", "-c", "read a; read b; echo $b $a; exit 7"),
        ],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write(b"one\ntwo\n")
        process.stdin.flush()
        assert process.stdout.readline() == b"two one\n"
        assert process.wait() == 7


def test_a_sweep_that_stands_still_kills_before_it_gives_up(monkeypatch: pytest.MonkeyPatch) -> None:
    """As on a machine whose processors are all taken: its time is over when it first comes to look again."""
    clock = Standing()
    monkeypatch.setattr(clock, "sleep", lambda _: clock.at_least(clock.now_seconds + 60))
    sent: list[signal.Signals] = []
    monkeypatch.setattr(guard, "time", clock)
    monkeypatch.setattr(guard, "_descendants", lambda: [] if signal.SIGKILL in sent else [2**30])
    monkeypatch.setattr(guard, "_reaped", lambda: ())
    monkeypatch.setattr(os, "kill", lambda _, number: sent.append(number))
    guard._sweep(grace_seconds=guard.GRACE_SECONDS)
    assert sent == [signal.SIGTERM, signal.SIGKILL]


def test_a_warden_that_ended_in_time_is_seen_however_late_we_look(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = Standing()
    monkeypatch.setattr(guard, "time", clock)
    looks = iter([None, 7])

    def look(_: int) -> int | None:
        clock.at_least(clock.now_seconds + 60)
        return next(looks)

    monkeypatch.setattr(guard, "_exit_of", look)
    monkeypatch.setattr(guard, "_ending_signal", lambda _: 0)
    read, write = os.pipe()
    own = guard._Guard(2**30, -1, write, read, tell=None, parent=0, limit_seconds=1.0, grace_seconds=0.3)
    assert own._end_of_warden() == 7
    os.close(read)
    os.close(write)


def test_without_a_command_it_refuses() -> None:
    done = subprocess.run(
        [sys.executable, "-I", "-S", guard.__file__, "--limit", "60"], capture_output=True, check=False
    )
    assert done.returncode == 2
    assert b"no command" in done.stderr


def test_it_knows_only_the_standard_library(mark: str) -> None:
    source = Path(guard.__file__).read_text(encoding="utf-8")
    assert "pytest_thermal" not in source
    with start(work("sleep", "600", mark=mark)):
        assert all("-I -S" in arguments(process) for process in guards(mark))
