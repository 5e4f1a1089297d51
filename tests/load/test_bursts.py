"""The helper that burns between requests: side by side, started again, and told when it is not there."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

import pytest

from pytest_thermal.load import bursts as bursts_module
from pytest_thermal.load.bursts import Bursts
from tests.support.clock import Standing
from tests.support.patience import until

HELPER = """
import sys, time
open({log!r}, "a").write("up\\n")
print("ready", flush=True)
for line in sys.stdin:
    open({log!r}, "a").write(line)
    if {ends}:
        print("out of memory", flush=True)
        break
"""


def helper(log: Path, *, ends: bool = False) -> Bursts:
    return Bursts([sys.executable, "-c", HELPER.format(log=str(log), ends=ends)], {})


def test_bursts_at_the_same_time_are_one_fire(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    log = tmp_path / "log"
    monkeypatch.setattr(bursts_module, "time", Standing())

    async def burned() -> list[str]:
        bursts = helper(log)
        assert await bursts.burn(0.0) == ""
        troubles = await asyncio.gather(*(bursts.burn(seconds) for seconds in (0.4, 0.4, 0.2, 0.5)))
        await asyncio.to_thread(until, lambda: len(log.read_text(encoding="utf-8").splitlines()) == 3)
        await bursts.close()
        return list(troubles)

    assert asyncio.run(burned()) == [""] * 4
    up, *lines = log.read_text(encoding="utf-8").split()
    assert up == "up"
    # The first asks for all of its time, the others for what goes beyond it.
    assert list(map(float, lines)) == [0.4, 0.1]


def test_a_helper_that_is_not_there_is_told() -> None:
    async def burned() -> str:
        bursts = Bursts(["no-such-burner"], {})
        trouble = await bursts.burn(0.1)
        await bursts.close()
        return trouble

    assert asyncio.run(burned()) == "no compute burst: No such file or directory"


def test_a_helper_that_never_gets_ready_is_told_in_its_own_words() -> None:
    async def burned() -> str:
        bursts = Bursts([sys.executable, "-c", "print('torch sees no cuda device')"], {})
        trouble = await bursts.burn(0.1)
        await bursts.close()
        return trouble

    assert asyncio.run(burned()) == "no compute burst: torch sees no cuda device"


def test_a_helper_that_ends_is_told_and_not_started_without_pause(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = tmp_path / "log"
    monkeypatch.setattr(bursts_module, "_AGAIN_SECONDS", 3600.0)

    async def burned() -> list[str]:
        bursts = helper(log, ends=True)
        trouble = ""
        while not trouble:  # it ends with its first burst, as soon as it comes to that
            trouble = await bursts.burn(0.1)
        troubles = [trouble, await bursts.burn(0.1)]
        await bursts.close()
        return troubles

    assert asyncio.run(burned()) == ["no compute burst: out of memory"] * 2
    assert log.read_text(encoding="utf-8").split().count("up") == 1
