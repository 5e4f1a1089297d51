"""Nodes that meet in a folder: each is a thread here, and the folder a real one."""

from __future__ import annotations

import os
import re
import threading
import time
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path

import pytest

from pytest_thermal.experiment import ExperimentBrokenError, Together
from pytest_thermal.experiment import together as module
from pytest_thermal.experiment.together import Meeting
from tests.load.helpers import until

NAMES = ("n1", "n2", "n3")
LONG_SECONDS = 60.0
"""Never waited for in full: what must not hold up a test that passes."""
SHORT_SECONDS = 1.0
"""Of a node that nobody is to come to."""


class Nodes:
    """Some nodes of one run."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._pool = ThreadPoolExecutor(8)
        self._made: list[Together] = []

    def make(
        self, node: str, *, wait_seconds: float = LONG_SECONDS, names: tuple[str, ...] = NAMES, count: int = 3
    ) -> Together:
        made = Together(self.folder, node=node, count=count, names=names, wait_seconds=wait_seconds)
        self._made.append(made)
        made.begin()
        return made

    def meets(self, node: Together, phase: str = "ramp") -> Future[Meeting]:
        """It enters the phase, on a thread of its own."""
        return self._pool.submit(lambda: _entered(node, phase))

    def until_seen(self, *waiting: Together, phase: str = "ramp") -> None:
        """Until each has seen that all of these are here: who gives up afterwards leaves no slow one behind."""
        names = {node.node for node in waiting}
        until(lambda: all(names <= set(node._board.seen(phase)["here"]) for node in waiting))

    def close(self) -> None:
        for node in self._made:
            node.leave()
        self._pool.shutdown()


def _entered(node: Together, phase: str) -> Meeting:
    meeting = node.meet(phase, pause=time.sleep)
    node.entered(phase)
    return meeting


@pytest.fixture
def nodes(tmp_path: Path) -> Iterator[Nodes]:
    made = Nodes(tmp_path / "meeting")
    yield made
    made.close()


def test_all_wait_for_the_last_and_go_on_together(nodes: Nodes) -> None:
    n1, n2, n3 = (nodes.make(name) for name in NAMES)
    early = [nodes.meets(n1), nodes.meets(n2)]
    until(lambda: (nodes.folder / "ramp.n2.here").exists() and (nodes.folder / "ramp.n1.here").exists())
    time.sleep(3 * module.LOOK_SECONDS)
    assert not any(one.done() for one in early)
    for one in (*early, nodes.meets(n3)):
        meeting = one.result(LONG_SECONDS)
        assert (meeting.here, meeting.missing, meeting.text) == (NAMES, (), "")
    until(lambda: len(n1.starts("ramp").seconds) == 3)
    assert n1.starts("ramp").differ_seconds == max(n1.starts("ramp").seconds.values())
    assert (n1.starts("ramp").differ_seconds or 0.0) < 30.0


def test_a_node_that_never_comes_is_named_and_waited_for_once(nodes: Nodes) -> None:
    n1, n2 = nodes.make("n1"), nodes.make("n2")
    waiting = [nodes.meets(n1), nodes.meets(n2)]
    nodes.until_seen(n1, n2)
    n1.wait_seconds = n2.wait_seconds = 0.0
    for one in waiting:
        meeting = one.result(LONG_SECONDS)
        assert meeting.missing == ("n3",)
        assert "without n3" in meeting.text
    # Given up: the next phase does not cost its deadline again, which would be a minute now.
    n1.wait_seconds = n2.wait_seconds = LONG_SECONDS
    for one in [nodes.meets(n1, "steady"), nodes.meets(n2, "steady")]:
        meeting = one.result(LONG_SECONDS / 2)
        assert (meeting.here, meeting.missing) == (("n1", "n2"), ("n3",))


def test_a_late_node_goes_on_at_once_and_says_so(nodes: Nodes) -> None:
    n1 = nodes.make("n1", names=("n1", "n2"), count=2, wait_seconds=SHORT_SECONDS)
    nodes.meets(n1).result(LONG_SECONDS)
    n2 = nodes.make("n2", names=("n1", "n2"), count=2)
    assert nodes.meets(n2).result(LONG_SECONDS / 2).here == ("n1", "n2")
    until(lambda: len(n2.starts("ramp").seconds) == 2)
    assert n2.starts("ramp").seconds["n1"] == 0.0
    assert n2.starts("ramp").seconds["n2"] > 0.0


def test_whoever_waits_goes_on_with_those_that_have_waited_enough(nodes: Nodes) -> None:
    n1, n2 = nodes.make("n1"), nodes.make("n2")
    first, second = nodes.meets(n1), nodes.meets(n2)
    nodes.until_seen(n1, n2)
    n1.wait_seconds = 0.0
    assert first.result(LONG_SECONDS).missing == ("n3",)
    meeting = second.result(LONG_SECONDS / 2)
    assert meeting.went_on
    assert meeting.missing == ("n3",)


def test_a_node_that_leaves_is_not_waited_for_and_its_reason_is_told(nodes: Nodes) -> None:
    n1, n2, n3 = (nodes.make(name) for name in NAMES)
    waiting = [nodes.meets(n1), nodes.meets(n2)]
    n3.leave("broken: the way in is not good")
    for one in waiting:
        meeting = one.result(LONG_SECONDS / 2)
        assert dict(meeting.left) == {"n3": "broken: the way in is not good"}
        assert "n3" in meeting.text
        assert "the way in is not good" in meeting.text


def test_nodes_whose_names_are_not_known_are_counted(nodes: Nodes) -> None:
    n1 = nodes.make("n1", names=(), wait_seconds=SHORT_SECONDS)
    assert nodes.meets(n1).result(LONG_SECONDS).missing == ("2 nodes never heard of",)
    n2, n3 = (nodes.make(name, names=()) for name in ("n2", "n3"))
    n1.wait_seconds = LONG_SECONDS
    met = [one.result(LONG_SECONDS / 2) for one in [nodes.meets(one, "steady") for one in (n1, n2, n3)]]
    assert {one.here for one in met} == {NAMES}
    assert not any(one.missing for one in met)


def test_the_wait_is_told_and_can_be_broken_off(nodes: Nodes, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_QUIET_SECONDS", 0.1)
    n1 = nodes.make("n1")
    told: list[str] = []

    def pause(seconds: float) -> None:
        time.sleep(seconds)
        if told:
            raise ExperimentBrokenError("stopped")

    with pytest.raises(ExperimentBrokenError, match="stopped"):
        n1.meet("ramp", pause=pause, tell=told.append)
    assert told == ["waiting for n2, n3 to enter ramp, at most 60 s"]


def test_traces_of_an_earlier_run_are_refused(nodes: Nodes) -> None:
    n1 = nodes.make("n1", names=("n1", "n2"), count=2, wait_seconds=SHORT_SECONDS)
    nodes.meets(n1).result(LONG_SECONDS)
    until(lambda: list(nodes.folder.glob("*.n1.here")))
    with pytest.raises(ExperimentBrokenError, match="n1 was here before") as told:
        nodes.make("n1")
    assert "--together DIR" in str(told.value)


def test_a_disk_that_hangs_holds_nobody_up_beyond_the_deadline(nodes: Nodes, monkeypatch: pytest.MonkeyPatch) -> None:
    n1 = nodes.make("n1", wait_seconds=SHORT_SECONDS)
    released = threading.Event()
    monkeypatch.setattr(module, "_touch", lambda *_: released.wait(LONG_SECONDS) and 0.0)
    meeting = nodes.meets(n1).result(LONG_SECONDS / 2)
    assert meeting.missing == ("n2", "n3")
    released.set()


def test_a_folder_that_cannot_be_written_is_told(nodes: Nodes) -> None:
    n1 = nodes.make("n1", wait_seconds=SHORT_SECONDS)
    nodes.folder.rename(nodes.folder.with_name("gone"))
    meeting = nodes.meets(n1).result(LONG_SECONDS)
    assert "No such file or directory" in meeting.text
    assert meeting.missing == ("n2", "n3")


def test_times_that_are_the_writers_own_are_no_difference_of_starts(nodes: Nodes) -> None:
    """As on file systems that let each client stamp its files: presence still counts."""
    n1 = nodes.make("n1", names=("n1", "n2"), count=2)
    waiting = nodes.meets(n1)
    until((nodes.folder / "ramp.n1.here").exists)
    until(lambda: n1._board._last_look is not None)
    beside = nodes.folder / ".new"
    beside.touch()
    os.utime(beside, (time.time() - 9000.0, time.time() - 9000.0))
    beside.rename(nodes.folder / "ramp.n2.here")
    meeting = waiting.result(LONG_SECONDS / 2)
    assert meeting.here == ("n1", "n2")
    assert meeting.text == ""
    starts = n1.starts("ramp")
    assert starts.differ_seconds is None
    assert re.search(r"-90\d\d s", starts.why_not)


def test_the_clock_is_told_against_the_disks(nodes: Nodes, monkeypatch: pytest.MonkeyPatch) -> None:
    real = time.time
    monkeypatch.setattr(time, "time", lambda: real() + 90.0)
    n1 = nodes.make("n1")
    assert n1.clock is not None
    assert 0.0 < n1.clock.within_seconds < 30.0
    assert n1.clock.offset_seconds == pytest.approx(90.0, abs=n1.clock.within_seconds + 0.01)


def test_names_with_dots_stay_whole(nodes: Nodes) -> None:
    names = ("gpu-1.rack.example", "gpu-2.rack.example")
    made = [nodes.make(name, names=names, count=2) for name in names]
    for one in [nodes.meets(node) for node in made]:
        assert one.result(LONG_SECONDS).here == names
