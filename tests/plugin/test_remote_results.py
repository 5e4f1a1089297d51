"""What comes from a node over execnet's channel: two queues stand for it here, tests/real has the real one."""

from __future__ import annotations

import os
import queue
import threading
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from pytest_thermal.plugin import remote_results
from pytest_thermal.plugin.remote_results import PIECE_BYTES, fetch, on_offer, send


class RemoteError(Exception):
    """As execnet's."""


class Channel:
    """One end."""

    RemoteError = RemoteError

    def __init__(self, out: queue.Queue[Any], back: queue.Queue[Any], seen: list[int]) -> None:
        self._out, self._back, self._seen = out, back, seen

    def send(self, item: Any) -> None:
        if isinstance(item, bytes):
            self._seen.append(len(item))
        self._out.put(item)
        # Each piece waits until the last was taken: no side ever holds many.
        assert self._out.qsize() <= 2

    def receive(self, timeout: float) -> Any:
        item = self._back.get(timeout=timeout)
        if isinstance(item, Exception):
            raise item
        return item


class Gateway:
    """To a node that is a thread. Before it serves, it refuses some times, as one whose session still ends."""

    def __init__(self, serve: Callable[[Any], None] = send, *, refuses: int = 0) -> None:
        self._serve = serve
        self._refuses = refuses
        self.pieces: list[int] = []

    def remote_exec(self, _source: str) -> Channel:
        out: queue.Queue[Any] = queue.Queue()
        back: queue.Queue[Any] = queue.Queue()
        if self._refuses:
            self._refuses -= 1
            back.put(RemoteError("concurrent remote_exec would cause deadlock for main_thread_only execmodel"))
            return Channel(out, back, self.pieces)
        there = Channel(back, out, self.pieces)

        def run() -> None:
            try:
                self._serve(there)
            except OSError as error:
                back.put(RemoteError(f"Traceback …\n{type(error).__name__}: {error}"))

        threading.Thread(target=run, daemon=True).start()
        return Channel(out, back, self.pieces)


@pytest.fixture
def run_there(tmp_path: Path) -> Path:
    """A run of three megabytes that nothing makes smaller."""
    run = tmp_path / "there" / "20261130T093529Z_node1"
    (run / "samples").mkdir(parents=True)
    (run / "run.json").write_text('{"format": 1}')
    (run / "samples" / "gpu.csv").write_bytes(os.urandom(3_000_000))
    os.utime(run / "run.json", (1_000_000, 1_000_000))
    return run


def contents(folder: Path) -> Mapping[str, bytes]:
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_a_run_comes_whole_in_bounded_pieces(run_there: Path, tmp_path: Path) -> None:
    gateway = Gateway(refuses=2)
    got = fetch(gateway, on_offer(run_there, None), archive=tmp_path / "here", allure=None)
    assert got.run == tmp_path / "here" / run_there.name
    assert got.run is not None
    assert contents(got.run) == contents(run_there)
    assert (got.run / "run.json").stat().st_mtime == 1_000_000
    assert max(gateway.pieces) <= PIECE_BYTES
    assert len(gateway.pieces) > 3_000_000 / PIECE_BYTES
    assert [path.name for path in (tmp_path / "here").iterdir()] == [run_there.name]  # nothing half beside it


def test_of_allures_folder_only_what_this_session_wrote_comes(tmp_path: Path) -> None:
    there, here = tmp_path / "there", tmp_path / "here"
    there.mkdir()
    (there / "old-result.json").write_text("{}")
    before = remote_results.names_in(there)
    (there / "new-result.json").write_text('{"new": 1}')
    got = fetch(Gateway(), on_offer(None, there, allure_before=before), archive=tmp_path / "runs", allure=here)
    assert (got.run, got.allure_files) == (None, 1)
    assert contents(here) == {"new-result.json": b'{"new": 1}'}


def test_a_run_that_both_see_is_left_where_it_is(run_there: Path) -> None:
    gateway = Gateway()
    got = fetch(gateway, on_offer(run_there, None), archive=run_there.parent, allure=None)
    assert (got.run, got.was_here, gateway.pieces) == (run_there, True, [])


def test_another_run_of_that_name_is_not_overwritten(run_there: Path, tmp_path: Path) -> None:
    (tmp_path / "here" / run_there.name).mkdir(parents=True)
    got = fetch(Gateway(), on_offer(run_there, None), archive=tmp_path / "here", allure=None)
    assert got.run == tmp_path / "here" / f"{run_there.name}_2"


def test_what_ends_halfway_leaves_nothing_half(run_there: Path, tmp_path: Path) -> None:
    def dies(channel: Any) -> None:
        real = channel.send
        sent: list[int] = []

        def limited(item: Any) -> None:
            if len(sent) == 2:
                raise OSError("the disk of the node is gone")
            sent.append(1)
            real(item)

        channel.send = limited
        send(channel)

    with pytest.raises(OSError, match="the disk of the node is gone"):
        fetch(Gateway(dies), on_offer(run_there, None), archive=tmp_path / "here", allure=None)
    assert list((tmp_path / "here").iterdir()) == []


def test_what_would_lie_elsewhere_is_refused(run_there: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(remote_results, "_files", lambda _: [("run/../../x", run_there / "run.json")])
    with pytest.raises(ValueError, match="none of what was asked for"):
        fetch(Gateway(), on_offer(run_there, None), archive=tmp_path / "a" / "here", allure=None)
    assert not (tmp_path / "x").exists()
    assert not (tmp_path / "a" / "x").exists()
