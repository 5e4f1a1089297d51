"""A load from the outside: what it says, how it ended, and what it does not get to know."""

from __future__ import annotations

import fcntl
import gc
import json
import os
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import pytest
from pydantic import SecretStr

from pytest_thermal.load import LoadEnded, LoadError, Loads, LoadStatus, RunningLoad, Work, guard, running, start
from tests.load.helpers import PATIENCE_SECONDS, new_mark, nothing_is_left, shell, until, work

KEY = "sk-canary-5f0c2b7e9d1a4c6b8e3f"


def test_a_tool_that_ends_early_is_told_with_its_last_words() -> None:
    load = start(shell("echo one; echo 'CUDA error: no device' >&2; exit 3"))
    until(lambda: not load.alive)
    ended = load.ended
    assert ended is not None
    assert ended.because == "it ended by itself with exit code 3 before its 60 s were over"
    assert (ended.exit_code, ended.in_order) == (3, False)
    assert ended.tail == "one\nCUDA error: no device"
    assert load.status() == LoadStatus(alive=False, text="CUDA error: no device")


def test_a_tool_that_a_signal_ends_is_told() -> None:
    load = start(shell("kill -SEGV $$"))
    until(lambda: not load.alive)
    assert load.ended is not None
    assert load.ended.because == "it was ended by SIGSEGV before its 60 s were over"
    assert load.ended.exit_code == -11


def test_a_tool_that_is_missing_is_told() -> None:
    with pytest.raises(LoadError) as caught:
        start(work("no-such-burner", "--hot"))
    assert str(caught.value).splitlines() == [
        "no-such-burner: could not be started: No such file or directory",
        "likely: it is not installed, or not on the PATH",
        "try: run it by hand: no-such-burner --hot",
    ]


def test_a_file_that_is_no_program_is_told(tmp_path: Path) -> None:
    text = tmp_path / "notes.txt"
    text.write_text("hello", encoding="utf-8")
    with pytest.raises(LoadError, match="Permission denied"):
        start(work(str(text)))


def test_a_folder_that_is_missing_is_told(tmp_path: Path) -> None:
    with pytest.raises(LoadError, match="No such file or directory"):
        start(work("true", folder=tmp_path / "gone"))


def test_stopping_again_answers_again() -> None:
    load = start(work("sleep", "600"))
    assert load.stop() is load.stop()
    assert load.ended is load.stop()
    load.ask_to_stop()
    load.phase("steady")
    load.concurrency(3)


def test_one_that_ended_by_itself_was_not_stopped() -> None:
    load = start(shell("exit 0"))
    until(lambda: not load.alive)
    ended = load.stop()
    assert ended.because == "it ended by itself with exit code 0 before its 60 s were over"
    assert not ended.in_order


def test_much_that_it_says_does_not_hold_it_up(tmp_path: Path) -> None:
    log = tmp_path / "load.log"
    load = start(shell("head -c 4000000 /dev/zero | tr '\\0' 'x' | fold -w 99; printf '\\na\\rb\\rlast'"), log=log)
    until(lambda: not load.alive)
    assert load.ended is not None
    assert load.ended.exit_code == 0
    assert load.ended.tail.endswith("\na\nb\nlast")
    assert len(load.ended.tail) <= 2000
    assert 1_000_000 < log.stat().st_size < 1_100_000
    assert log.read_text(encoding="utf-8").endswith("(it says more than is kept)\n")


def test_a_line_without_end_is_not_kept_whole() -> None:
    with start(shell("head -c 300000 /dev/zero | tr '\\0' 'x'; sleep 600")) as load:
        until(lambda: load.status().text.startswith("xxx"))
        assert len(load.status().text) <= 65536


def test_a_log_that_cannot_be_written_is_no_trouble(tmp_path: Path) -> None:
    load = start(shell("echo hi"), log=tmp_path / "no" / "load.log")
    until(lambda: not load.alive)
    assert load.stop().tail == "hi"


def test_a_key_reaches_neither_environment_nor_words_nor_log(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SITE_KEY", KEY)
    monkeypatch.setenv("SITE_HEADER", f"Authorization: Bearer {KEY}")
    log = tmp_path / "load.log"
    script = "env | grep -c SITE_; read orders; echo told: $orders; sleep 600"
    with start(shell(script, secrets=(SecretStr(KEY),), orders=f"the key is {KEY}"), log=log) as load:
        until(lambda: "told" in load.status().text)
        environ = Path(f"/proc/{load.process_id}/environ").read_bytes()
        guard_environ = Path(f"/proc/{load.guard_id}/environ").read_bytes()
        guard_arguments = Path(f"/proc/{load.guard_id}/cmdline").read_bytes()
        ended = load.stop()
    assert KEY.encode() not in environ + guard_environ + guard_arguments
    assert ended.tail.splitlines()[0] == "0"
    assert "told: the key is [key sk-c" in ended.tail
    assert KEY not in ended.tail + log.read_text(encoding="utf-8") + repr(ended) + repr(load.work)


def test_status_lines_are_figures_and_not_words() -> None:
    line = '{"is": "status", "text": "2 in flight", "requests": 7, "items_inference": 3, "items_compute": 1}'
    with start(shell(f"echo '{line}'; sleep 600")) as load:
        until(lambda: load.status().requests == 7)
        assert load.status().inference_share == 0.75
        ended = load.stop()
    assert ended.tail == ""
    assert ended.last_status is not None
    assert (ended.last_status.requests, ended.last_status.alive) == (7, False)


def test_a_status_that_cannot_be_read_is_a_word() -> None:
    with start(shell("""echo '{"is": "status", "unknown": 1}'; sleep 600""")) as load:
        until(lambda: "unknown" in load.status().text)


def test_last_words_are_waited_for_where_there_is_time(monkeypatch: pytest.MonkeyPatch) -> None:
    really = RunningLoad._hear_guard

    def late(load: RunningLoad, line: bytes) -> None:
        if b'"exit"' in line:
            time.sleep(2 * running.LAST_WORDS_SECONDS)
        really(load, line)

    monkeypatch.setattr(RunningLoad, "_hear_guard", late)
    load = start(shell("exit 3"))
    until(lambda: not load.alive)
    assert load.ended is not None
    assert load.ended.exit_code == 3


def test_several_are_stopped_by_kind_and_in_reverse(tmp_path: Path) -> None:
    marks = [new_mark() for _ in range(3)]
    with Loads(log_folder=tmp_path) as loads:
        loads.start([shell("echo 1; sleep 600", mark=marks[0]), work("sleep", "600", mark=marks[1])])
        loads.add(replace(work("sleep", "600", mark=marks[2]), kind="accelerator"))
        assert [status.alive for _, status in loads.statuses()] == [True, True, True]
        until(lambda: (tmp_path / "load_a-test.log").read_text(encoding="utf-8") == "1\n")
        stopped = loads.stop({"accelerator"})
        assert [ended.because for _, ended in stopped] == ["it was stopped"]
        assert nothing_is_left(marks[2])
        assert len(loads.running) == 2
        stopped = loads.stop()
        assert [work.environ["PYTEST_THERMAL_TEST_MARK"] for work, _ in stopped] == [marks[1], marks[0]]
        assert loads.stop() == ()
    assert (tmp_path / "load_a-test.log").read_text(encoding="utf-8") == "1\n"


def test_all_are_asked_before_any_is_waited_for() -> None:
    class Slow:
        def __init__(self, work: Work) -> None:
            self.work = work

        def ask_to_stop(self) -> None:
            told.append(f"asked {self.work.tool}")

        def stop(self) -> LoadEnded:
            told.append(f"waited for {self.work.tool}")
            return LoadEnded(because="it was stopped", in_order=True, exit_code=0, tail="")

    told: list[str] = []
    loads = Loads(starter=lambda work, **_: Slow(work))  # type: ignore[arg-type]  # as much as is used
    loads.start([replace(work("true"), tool=name) for name in ("a", "b")])
    loads.stop()
    assert told == ["asked b", "asked a", "waited for b", "waited for a"]


def test_when_one_cannot_start_those_before_it_are_stopped() -> None:
    mark = new_mark()
    with Loads() as loads:
        with pytest.raises(LoadError):
            loads.start([work("sleep", "600", mark=mark), work("no-such-burner")])
        assert loads.running == ()
        assert nothing_is_left(mark)


def test_one_that_is_lost_is_told() -> None:
    with Loads() as loads:
        kept, lost = loads.start([work("sleep", "600"), shell("exit 4")])
        until(lambda: not lost.alive)
        assert [(work is lost.work, ended.exit_code) for work, ended in loads.lost()] == [(True, 4)]
        assert kept.alive


def test_leaving_the_context_stops_all() -> None:
    mark = new_mark()

    def interrupted() -> None:
        with Loads() as loads:
            loads.start([work("sleep", "600", mark=mark), work("sleep", "601", mark=mark)])
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    assert nothing_is_left(mark)


def test_descriptors_are_given_back() -> None:
    def count() -> int:
        return len(list(Path("/proc/self/fd").iterdir()))

    start(work("sleep", "600")).stop()
    gc.collect()  # what others left behind goes now, and not in between
    before = count()
    for _ in range(3):
        start(work("sleep", "600")).stop()
    assert count() == before


def test_the_working_folder_is_the_works(tmp_path: Path) -> None:
    with start(shell("pwd; sleep 600", folder=tmp_path)) as load:
        until(lambda: os.path.realpath(load.status().text) == os.path.realpath(tmp_path))


def test_a_load_that_is_to_give_way_does() -> None:
    with start(shell("sleep 60", nice=7)) as load:
        assert os.getpriority(os.PRIO_PROCESS, load.process_id) == os.getpriority(os.PRIO_PROCESS, 0) + 7


def test_the_cpu_time_of_all_its_processes_is_told_and_which_stand_still() -> None:
    # One that burns and ends, one that goes into the background, and the command itself.
    script = "python3 -c 'import time; e=time.process_time()+0.3\nwhile time.process_time()<e: pass'; "
    script += "setsid sh -c 'while :; do :; done' & "
    script += "kill -STOP $$"
    with start(shell(script)) as load:
        until(lambda: load.used is not None and load.used.cpu_seconds >= 0.3 and load.used.stopped)
        first = load.used
        assert first is not None
        assert first.stopped == 1
        until(lambda: load.used is not None and load.used.cpu_seconds > first.cpu_seconds + 0.1)
        ended = load.stop()
        assert ended.in_order
        last = load.used
    assert last is not None
    assert last.at_seconds > first.at_seconds
    assert last.cpu_seconds > first.cpu_seconds


def test_a_guard_that_nobody_listens_to_ends_its_load_all_the_same() -> None:
    told, tells = os.pipe()
    room = fcntl.fcntl(tells, fcntl.F_SETPIPE_SZ, 4096)
    os.write(tells, b"x" * (room - 190))  # what it must say still fits, and a CPU time each second does not
    with subprocess.Popen(
        [sys.executable, "-I", "-S", guard.__file__, "--limit", "3.5", "--tell", str(tells), "--", "sleep", "600"],
        stdin=subprocess.PIPE,
        pass_fds=(tells,),
    ) as process:
        os.close(tells)
        try:
            assert process.wait(PATIENCE_SECONDS) == 128 + 15
        finally:
            process.kill()
    with open(told, "rb") as pipe:  # noqa: PTH123 - a descriptor
        said = [json.loads(line) for line in pipe.read().lstrip(b"x").splitlines()]
    assert [next(iter(one)) for one in said] == ["started", "why", "exit"]
