from __future__ import annotations

import os
import resource
import signal
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from pytest_thermal.recording.append_file import AppendFile

LINE = b"0123456789\n"


@pytest.fixture
def size_limit() -> Iterator[Callable[[int], None]]:
    """Sets how large files of this process may grow, until the test is over."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    handler = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)

    def limit(size: int) -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))

    yield limit
    resource.setrlimit(resource.RLIMIT_FSIZE, before)
    signal.signal(signal.SIGXFSZ, handler)


def test_a_line_is_one_write(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    writes: list[bytes] = []
    real = os.write

    def counted(descriptor: int, data: bytes) -> int:
        writes.append(data)
        return real(descriptor, data)

    monkeypatch.setattr(os, "write", counted)
    file = AppendFile(tmp_path / "file")
    for _ in range(3):
        file.append(LINE)
    file.close()
    assert writes == [LINE] * 3
    assert (tmp_path / "file").read_bytes() == LINE * 3


def test_a_full_disk_keeps_lines_waiting_and_says_why() -> None:
    file = AppendFile(Path("/dev/full"))
    file.append(LINE)
    file.append(LINE)
    assert file.waiting == 2
    assert file.trouble == "No space left on device"


def test_half_a_line_is_taken_out_again_and_all_follow_in_order(
    tmp_path: Path, size_limit: Callable[[int], None]
) -> None:
    path = tmp_path / "file"
    file = AppendFile(path)
    file.append(b"a" * 10 + b"\n")
    size_limit(15)
    for sign in (b"b", b"c"):
        file.append(sign * 10 + b"\n")
    assert path.read_bytes() == b"a" * 10 + b"\n"
    assert file.waiting == 2
    assert file.trouble
    size_limit(1000)
    file.append(b"d" * 10 + b"\n")
    file.close()
    assert path.read_bytes() == b"".join(sign * 10 + b"\n" for sign in (b"a", b"b", b"c", b"d"))
    assert (file.trouble, file.lost) == ("", 0)


def test_what_waits_for_too_long_is_given_up_from_the_oldest_and_counted() -> None:
    file = AppendFile(Path("/dev/full"), limit_bytes=5 * len(LINE))
    for _ in range(8):
        file.append(LINE)
    assert (file.waiting, file.lost) == (5, 3)


def test_a_place_that_is_not_there_yet_is_tried_again(tmp_path: Path) -> None:
    file = AppendFile(tmp_path / "folder" / "file")
    file.append(LINE)
    assert "No such file" in file.trouble
    (tmp_path / "folder").mkdir()
    file.flush()
    file.close()
    assert (tmp_path / "folder" / "file").read_bytes() == LINE


def test_a_line_torn_by_whoever_wrote_before_is_not_continued(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"whole\ntor")
    file = AppendFile(tmp_path / "file")
    file.append(LINE)
    file.append(LINE)
    file.close()
    assert (tmp_path / "file").read_bytes() == b"whole\ntor\n" + LINE * 2


def test_a_deleted_file_is_noticed(tmp_path: Path) -> None:
    file = AppendFile(tmp_path / "file")
    file.append(LINE)
    assert not file.vanished()
    (tmp_path / "file").unlink()
    assert file.vanished()
    file.close()
