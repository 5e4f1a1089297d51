from __future__ import annotations

import getpass
import json
import subprocess
import sys
from pathlib import Path

import pytest

from pytest_thermal.experiment import BenchBusyError, BenchLock, ExperimentBrokenError, lock_folder

HOLDER = """
import sys
from pathlib import Path
from pytest_thermal.experiment.lock import BenchLock
BenchLock(Path(sys.argv[1]), what="bench of another").acquire()
print("held", flush=True)
sys.stdin.read()
"""


def test_a_second_load_of_one_session_is_told_as_such(tmp_path: Path) -> None:
    with (
        BenchLock(tmp_path, what="bench a"),
        pytest.raises(BenchBusyError, match=r"loaded by this very session \(bench a, since "),
        BenchLock(tmp_path, what="bench b"),
    ):
        pass


def test_it_is_free_again_afterwards(tmp_path: Path) -> None:
    with BenchLock(tmp_path, what="a"):
        pass
    with BenchLock(tmp_path, what="b"):
        pass


def test_a_killed_holder_leaves_nothing_locked(tmp_path: Path) -> None:
    other = subprocess.Popen(
        [sys.executable, "-c", HOLDER, str(tmp_path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    with other:
        assert other.stdout is not None
        assert other.stdout.readline() == "held\n"
        with pytest.raises(
            BenchBusyError, match=rf"process {other.pid} of {getpass.getuser()} since .* \(bench of another\)"
        ):
            BenchLock(tmp_path, what="mine").acquire()
        other.kill()
        other.wait()
    with BenchLock(tmp_path, what="mine"):
        pass


def test_other_users_can_open_it(tmp_path: Path) -> None:
    with BenchLock(tmp_path, what="a"):
        assert (tmp_path / "pytest-thermal.lock").stat().st_mode & 0o777 == 0o666


def test_a_link_in_its_place_is_not_followed(tmp_path: Path) -> None:
    victim = tmp_path / "victim"
    victim.write_text("precious")
    (tmp_path / "pytest-thermal.lock").symlink_to(victim)
    with pytest.raises(ExperimentBrokenError, match="cannot be opened"):
        BenchLock(tmp_path, what="a").acquire()
    assert victim.read_text() == "precious"


def test_the_lock_of_another_user_is_opened_as_it_is(tmp_path: Path) -> None:
    lock = tmp_path / "pytest-thermal.lock"
    lock.write_text("")
    lock.chmod(0o666)
    with BenchLock(tmp_path, what="a"):
        assert json.loads(lock.read_text())["what"] == "a"
    assert lock.read_text() == ""


def test_the_variable_overrides_the_place(tmp_path: Path) -> None:
    assert lock_folder({"PYTEST_THERMAL_LOCK_DIR": str(tmp_path)}) == tmp_path
    assert lock_folder({}).is_dir()


def test_virtual_nodes_of_a_machine_have_a_lock_each_where_the_variable_says_so(tmp_path: Path) -> None:
    told = {"PYTEST_THERMAL_LOCK_DIR": f"{tmp_path}/lock.${{THERMAL_NODE}}"}
    folders = [lock_folder({**told, "THERMAL_NODE": node}) for node in ("n1", "n2")]
    assert [folder.name for folder in folders] == ["lock.n1", "lock.n2"]
    with BenchLock(folders[0], what="a"), BenchLock(folders[1], what="b"), pytest.raises(BenchBusyError):
        BenchLock(folders[0], what="c").acquire()
    assert folders[0].stat().st_mode & 0o1777 == 0o1777
    with pytest.raises(ExperimentBrokenError, match=r"PYTEST_THERMAL_LOCK_DIR.*NODE"):
        lock_folder(told)
