"""Real programs that hang, die, print garbage or without end: one answer, in time, and nothing left behind."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import textwrap
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from pytest_thermal.model import Missing, Reading
from pytest_thermal.sensors.plausibility import Checked
from pytest_thermal.sensors.tools import command as commands
from pytest_thermal.sensors.tools import known
from pytest_thermal.sensors.tools.command import Command, child_environment
from tests.sensors.canned import OUTPUTS
from tests.support.patience import PATIENCE_SECONDS, until

MakeProgram = Callable[[str], str]


@pytest.fixture
def program(tmp_path: Path) -> MakeProgram:
    """Writes a shell script and gives its path."""

    def make(script: str) -> str:
        path = tmp_path / "tool"
        path.write_text(f"#!/bin/sh\n{textwrap.dedent(script)}\n")
        path.chmod(0o755)
        return f"{path}"

    return make


@pytest.fixture
def run(program: MakeProgram) -> Iterator[Callable[..., commands.Ran]]:
    """Runs a script once as a tool."""
    made: list[Command] = []

    def call(script: str, *arguments: str, seconds: float = PATIENCE_SECONDS) -> commands.Ran:
        made.append(Command(program(script), environ=os.environ))
        return made[-1].run(arguments, seconds=seconds)

    yield call
    for one in made:
        one.close()


def alive(marker: str) -> bool:
    found = subprocess.run(["ps", "-eo", "args"], capture_output=True, text=True, check=True).stdout
    return any(marker in line and "ps -eo" not in line for line in found.splitlines())


def gone(marker: str) -> bool:
    until(lambda: not alive(marker))
    return True


def test_what_it_prints_and_how_it_ends(run: Callable[..., commands.Ran]) -> None:
    ran = run('printf "one\\ntwo\\nthr"; echo problem >&2; exit 3')
    assert ran.out.lines == ("one", "two")
    assert ran.out.torn == "thr"
    assert ran.err.lines == ("problem",)
    assert (ran.status, ran.problem, ran.hung) == (3, "", False)


def test_it_gets_its_arguments_and_no_shell(run: Callable[..., commands.Ran]) -> None:
    ran = run('for word in "$@"; do echo "<$word>"; done', "a b", "$HOME", "*", ";ls")
    assert ran.out.lines == ("<a b>", "<$HOME>", "<*>", "<;ls>")


def test_it_speaks_english_and_knows_no_secret(
    run: Callable[..., commands.Ran], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TAOTOKEN_API_KEY", "sk-not-for-tools")
    monkeypatch.setenv("LC_ALL", "de_DE.UTF-8")
    monkeypatch.setenv("LANG", "zh_CN.UTF-8")
    monkeypatch.setenv("LD_LIBRARY_PATH", "/opt/vendor/lib")
    ran = run("env; read line; echo read:$line; pwd")
    assert "LC_ALL=C" in ran.out.lines
    assert "LANG=C" in ran.out.lines
    assert "LD_LIBRARY_PATH=/opt/vendor/lib" in ran.out.lines
    assert "sk-not-for-tools" not in ran.out.text
    assert "read:" in ran.out.lines
    assert ran.out.lines[-1] != f"{Path.cwd()}"


def test_which_variables_are_kept() -> None:
    environ = {"PATH": "/bin", "MY_SECRET": "x", "GITHUB_TOKEN": "x", "DB_PASSWORD": "x", "SSH_AUTH_SOCK": "/s"}
    kept = child_environment(environ)
    assert {name for name in environ if name in kept} == {"PATH", "SSH_AUTH_SOCK"}


def test_a_tool_that_hangs_is_ended_with_its_children(run: Callable[..., commands.Ran]) -> None:
    ran = run("trap '' TERM INT HUP; echo title; sleep 987.1 & sleep 987.1", seconds=0.5)
    assert ran.hung
    assert "0.5 s" in ran.problem
    assert gone("sleep 987.1")


def test_a_child_that_holds_the_pipe_delays_nothing(run: Callable[..., commands.Ran]) -> None:
    ran = run("sleep 987.2 & echo done")
    assert ran.out.lines == ("done",)
    assert not ran.problem, "it was waited for until the deadline"
    assert gone("sleep 987.2")


def test_a_tool_that_is_killed_says_by_what(run: Callable[..., commands.Ran]) -> None:
    ran = run("echo half; kill -SEGV $$")
    assert ran.out.lines == ("half",)
    assert "signal" in ran.problem


def test_an_endless_output_is_cut_off(run: Callable[..., commands.Ran], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(commands, "OUTPUT_LIMIT_BYTES", 100_000)
    ran = run("while :; do echo 45; done")
    assert "100,000 bytes" in ran.problem
    assert ran.out.lines == ()


def test_output_that_is_no_text_is_one_answer_too(run: Callable[..., commands.Ran]) -> None:
    ran = run("head -c 200000 /dev/urandom; head -c 50000 /dev/zero; printf '\\n45\\n'")
    assert ran.out.lines[-1] == "45"


def test_a_program_that_is_not_there() -> None:
    ran = Command("no-such-tool", environ=os.environ).run([], seconds=1.0)
    assert ran.not_found
    assert "no-such-tool is not installed" in ran.problem


def test_a_program_that_cannot_be_run(tmp_path: Path) -> None:
    path = tmp_path / "tool"
    path.write_bytes(b"\x7fELF is no program")
    path.chmod(0o755)
    one = Command(f"{path}", environ=os.environ)
    ran = one.run([], seconds=PATIENCE_SECONDS)
    assert ran.status or ran.problem
    assert ran.out.lines == ()
    one.close()


def test_beside_a_call_that_cannot_be_ended_no_second_is_made(
    program: MakeProgram, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    one = Command(program(f"echo x >> {tmp_path}/calls; exec sleep 987.3"), environ=os.environ)
    monkeypatch.setattr(commands, "_kill", lambda _process: None)
    assert one.run([], seconds=0.5).hung
    until(lambda: (tmp_path / "calls").exists() and (tmp_path / "calls").read_text())
    for _ in range(2):
        second = one.run([], seconds=0.5)
        assert second.hung
        assert "no second one is made" in second.problem
    assert (tmp_path / "calls").read_text() == "x\n"
    monkeypatch.undo()
    one.close()
    assert gone("sleep 987.3")
    assert one.run([], seconds=0.5).problem.startswith("gave no complete answer")
    one.close()


def test_a_tool_is_ended_even_if_we_are_not_there_to_do_it(program: MakeProgram, tmp_path: Path) -> None:
    script = f"""
        import os
        from pytest_thermal.sensors.tools import command
        command._BACKSTOP_SECONDS = 0
        tool = {program(f"touch {tmp_path}/begun; exec sleep 987.4")!r}
        command.Command(tool, environ=os.environ).run([], seconds=3.0)
    """
    parent = subprocess.Popen([sys.executable, "-c", textwrap.dedent(script)])
    until((tmp_path / "begun").exists)
    parent.send_signal(signal.SIGKILL)
    parent.wait()
    assert gone("sleep 987.4")


# -------------------------------------------------------------------------------------------- a whole source


def by_id(source: Checked) -> dict[str, Reading]:
    return {reading.sensor_id: reading for reading in source.read()}


def test_a_tool_that_hangs_now_and_then(program: MakeProgram, tmp_path: Path) -> None:
    path = program(f"[ -e {tmp_path}/hang ] && sleep 987.5; cat {OUTPUTS}/npu-smi_info_910b.txt")
    tool = known.make_command(command=path, deadline_seconds=PATIENCE_SECONDS)
    source = Checked(tool)
    assert source.probe().ok
    assert by_id(source)["npu1.temperature_celsius"].value == 57
    (tmp_path / "hang").touch()
    tool._asker._deadline_seconds = 0.5  # of the reading that hangs alone
    assert {reading.missing for reading in source.read()} == {Missing.TIMEOUT}
    tool._asker._deadline_seconds = PATIENCE_SECONDS
    (tmp_path / "hang").unlink()
    until(lambda: by_id(source)["npu1.temperature_celsius"].value == 57)  # once the one that hung is gone
    source.close()
    assert gone("sleep 987.5")


def test_a_tool_that_dies_half_way(program: MakeProgram, tmp_path: Path) -> None:
    whole = OUTPUTS / "npu-smi_info_910b.txt"
    path = program(f"""
        if [ -e {tmp_path}/die ]; then
            head -n 9 {whole}
            kill -KILL $$
        fi
        cat {whole}
    """)
    source = Checked(known.make_command(command=path, deadline_seconds=PATIENCE_SECONDS))
    assert source.probe().ok
    (tmp_path / "die").touch()
    readings = by_id(source)
    assert readings["npu0.temperature_celsius"].value == 41
    assert readings["npu2.temperature_celsius"].missing is Missing.UNREADABLE
    assert "signal" in readings["npu2.temperature_celsius"].detail
    source.close()


@pytest.mark.parametrize("command", ["nvidia-smi | tail -1", "a && b", "a > file", "echo `b`", "a; b", "x $(y)"])
def test_a_command_that_needs_a_shell_is_told_so(command: str) -> None:
    source = known.make_command(command=command)
    assert "shell" in source.probe().reason
    assert source.read() == []
    source.close()


@pytest.mark.parametrize("command", ["", "  ", "echo 'unfinished"])
def test_a_command_that_is_none(command: str) -> None:
    assert not known.make_command(command=command).probe().ok


def test_a_tool_that_is_not_installed(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", f"{tmp_path}")
    for name in ("nvidia-smi", "npu-smi", "npu-smi-details", "cnmon"):
        source = known.make(tool=name)
        assert "is not installed" in source.probe().reason
        source.close()
