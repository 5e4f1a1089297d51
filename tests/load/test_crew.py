"""A load that several processes share: one record, one count, one guard; what one of them loses is told."""

from __future__ import annotations

import asyncio
import http.server
import os
import signal
import sys
import threading
import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import pytest
from pydantic import SecretStr

from pytest_thermal.bench import Domain, Inference, ModelRoute, Stress, Timeouts
from pytest_thermal.demo import DemoGateway
from pytest_thermal.load import LoadEnded, LoadStatus, RunningLoad, Work, crew, engine_process, start
from pytest_thermal.load.answers import Answer
from pytest_thermal.load.crew import Crew
from pytest_thermal.load.inference_work import inference_work
from pytest_thermal.load.orders import DomainOrders, InferenceOrders
from pytest_thermal.load.tally import Tally
from pytest_thermal.load.work import own_program
from pytest_thermal.recording import RunClock
from tests.load.helpers import MARK, PATIENCE_SECONDS, arguments, marked, new_mark, nothing_is_left, until
from tests.load.test_inference import KEY, Echo, adds_up, rows


def shared_work(
    *urls: str,
    run: Path,
    mark: str,
    slots: int = 6,
    rate_per_second: float | None = None,
    burner: Sequence[str] = (),
) -> Work:
    work = inference_work(
        domains=[
            Domain(name=url, base_url=url, key=SecretStr(KEY), route=ModelRoute(default="demo-chat")) for url in urls
        ],
        inference=Inference(max_tokens=5),
        stress=Stress(concurrent_requests=slots, request_interval_seconds=0.01, inference_workers=2),
        timeouts=Timeouts(connect_seconds=PATIENCE_SECONDS, read_seconds=PATIENCE_SECONDS),
        run=run,
        clock=RunClock.start(),
        rate_per_second=rate_per_second,
        limit_seconds=120.0,
        environ={MARK: mark},
        inference_ratio=0.5 if burner else 1.0,
        burner=burner,
        calibration_seconds=0.0,
    )
    return replace(work, grace_seconds=PATIENCE_SECONDS)


def senders(mark: str) -> list[int]:
    return [process for process in marked(mark) if "pytest_thermal.load.engine_process" in arguments(process)]


def test_a_large_load_is_shared_by_itself_and_each_gets_what_it_needs_of_the_orders() -> None:
    def planned(slots: int, workers: int | None = None) -> InferenceOrders:
        work = inference_work(
            domains=[Domain(name="d", base_url="http://127.0.0.1:1/v1", key=SecretStr(KEY))],
            inference=Inference(),
            stress=Stress(concurrent_requests=slots, inference_workers=workers),
            timeouts=Timeouts(),
            run=Path("/a/run"),
            clock=RunClock.start(),
            limit_seconds=60.0,
            environ={},
            cores=64,
        )
        assert ("processes" in work.tool) == (InferenceOrders.from_line(work.orders).processes > 1)
        return InferenceOrders.from_line(work.orders)

    given = ((8, None), (600, None), (600, 1), (8, 4))
    assert [planned(slots, workers).processes for slots, workers in given] == [1, 3, 1, 4]
    whole = planned(600)
    own = InferenceOrders.from_line(whole.of_process(2, models=["m"]).to_line())
    assert (own.share.index, own.share.of, own.concurrency) == (2, 3, 600)
    assert (own.run, own.calibration_seconds, own.domains[0].model) == (None, 0.0, "m")
    assert own.domains[0].key == whole.domains[0].key
    assert KEY not in repr(own)


# --- one load, looked at from all sides ----------------------------------------------------------------------------


@dataclass
class Seen:
    """What there was of a load that was stopped in order, of whose two processes one met a gateway that refuses."""

    run: Path
    east: DemoGateway
    refused: int
    status: LoadStatus
    running: LoadStatus
    ended: LoadEnded
    processes: int
    surroundings: bytes
    mark: str
    said: str


class Counting(Echo):
    refused: list[None] = []  # noqa: RUF012 - of all, and each in a thread of its own

    def do_POST(self) -> None:  # noqa: N802 - as the base class has it
        super().do_POST()
        self.refused.append(None)


@pytest.fixture(scope="module")
def seen(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Seen]:
    run, mark = tmp_path_factory.mktemp("shared"), new_mark()
    with (
        DemoGateway(key=KEY) as east,
        http.server.ThreadingHTTPServer(("127.0.0.1", 0), Counting) as west,
    ):
        threading.Thread(target=west.serve_forever, daemon=True).start()
        work = shared_work(east.url, f"http://127.0.0.1:{west.server_address[1]}/v1", run=run, mark=mark)
        with start(work, log=run / "load.log", phase="ramp") as load:
            until(lambda: load.status().ok >= 10 and load.status().failed >= 3)
            load.phase("steady")
            load.concurrency(8)
            until(lambda: any(row["phase"] == "steady" and row["status"] == "401" for row in rows(run)))
            until(lambda: load.status().concurrency == 8 and east.max_parallel_seen == 4)
            until(lambda: load.status().cpu_share is not None)
            processes = senders(mark)
            surroundings = b"".join(
                Path(f"/proc/{process}/{file}").read_bytes()
                for process in marked(mark)
                for file in ("cmdline", "environ")
            )
            running = load.status()
            ended = load.stop()
        west.shutdown()
        assert ended.last_status is not None
        yield Seen(
            run=run,
            east=east,
            refused=len(Counting.refused),
            status=ended.last_status,
            running=running,
            ended=ended,
            processes=len(processes),
            surroundings=surroundings,
            mark=mark,
            said=work.tool,
        )


def test_each_request_is_one_row_and_counted_once(seen: Seen) -> None:
    found = rows(seen.run)
    good = [row for row in found if not row["error"]]
    cancelled = sum(row["error"].startswith("cancelled") for row in found)
    assert seen.processes == 2
    assert seen.said == "closed loop of 6, 2 processes"
    assert adds_up(found, seen.east, 200)
    assert {(row["status"], row["completion_tokens"]) for row in good} == {("200", "5")}
    assert all(row["ttft"] for row in good)
    status = seen.status
    assert (status.requests, status.ok, status.cancelled) == (len(found), len(good), cancelled)
    assert status.failed == len(found) - len(good) - cancelled
    assert (status.items_inference, status.in_flight) == (len(found), 0)
    assert status.completion_tokens >= 5 * len(good)
    assert (seen.ended.in_order, seen.ended.exit_code, seen.ended.tail) == (True, 0, "")


def test_what_one_of_them_meets_is_told_of_the_load(seen: Seen) -> None:
    found = [row for row in rows(seen.run) if row["error"].startswith("401 Unauthorized: “what is")]
    assert len(found) == seen.status.errors["401 Unauthorized"] == seen.status.failed > 0
    assert len(found) <= seen.refused <= len(found) + seen.status.cancelled


def test_phases_and_slots_reach_all_of_them(seen: Seen) -> None:
    found = rows(seen.run)
    for status in ("200", "401"):  # of one process each
        assert {row["phase"] for row in found if row["status"] == status} == {"ramp", "steady"}
        starts = {
            phase: [float(row["start"]) for row in found if row["status"] == status and row["phase"] == phase]
            for phase in ("ramp", "steady")
        }
        assert max(starts["ramp"]) <= min(starts["steady"])
    assert seen.running.concurrency == 8


def test_their_health_is_one(seen: Seen) -> None:
    assert seen.running.cpu_share is not None
    assert 0 < seen.running.cpu_share < 1.05
    assert seen.running.loop_lag_p99_seconds is not None
    assert seen.running.itl_p50_seconds is not None
    assert seen.running.ttft_p50_seconds is not None


def test_the_key_stands_nowhere_and_nothing_is_left(seen: Seen) -> None:
    assert KEY.encode() not in seen.surroundings
    assert KEY not in "".join(path.read_text(encoding="utf-8") for path in seen.run.iterdir()) + repr(seen.ended)
    assert nothing_is_left(seen.mark)


# --- and when one is killed ----------------------------------------------------------------------------------------


def in_time(load: RunningLoad, mark: str) -> LoadEnded:
    """How a load ended that nobody stopped, and of which nothing is left."""
    until(lambda: not load.alive)
    ended = load.ended
    assert ended is not None
    assert nothing_is_left(mark)
    return ended


def test_one_that_is_killed_takes_the_load_along_and_is_told(tmp_path: Path) -> None:
    mark = new_mark()
    burner = own_program("pytest_thermal.load.cpu_burner", "--bursts", "--limit", "100")
    with DemoGateway(key=KEY) as gateway:
        work = shared_work(gateway.url, run=tmp_path, mark=mark, burner=burner)
        with start(work, phase="steady") as load:
            until(lambda: load.status().items_compute >= 12 and load.status().ok >= 6)
            # However many ask for them, bursts are one fire.
            assert sum("--bursts" in arguments(process) for process in marked(mark)) == 1
            share = load.status().inference_share
            victim = senders(mark)[0]
            os.kill(victim, signal.SIGKILL)
            ended = in_time(load, mark)
    assert share == pytest.approx(0.5, abs=0.2)
    assert (ended.in_order, ended.exit_code) == (False, 3)
    assert f"(process id {victim}) was ended by SIGKILL" in ended.tail
    assert ended.last_status is not None
    # The other one told all that it had; what the killed one had in flight is nobody's.
    assert ended.last_status.requests == len(rows(tmp_path))
    assert ended.last_status.in_flight == 0


def test_when_the_one_that_writes_is_killed_none_goes_on(tmp_path: Path) -> None:
    mark = new_mark()
    with DemoGateway(key=KEY) as gateway:
        work = shared_work(gateway.url, run=tmp_path, mark=mark, rate_per_second=40.0)
        with start(work, phase="steady") as load:
            until(lambda: load.status().ok >= 12)
            assert len(senders(mark)) == 2
            os.kill(load.process_id, signal.SIGKILL)
            ended = in_time(load, mark)
    assert (ended.in_order, ended.exit_code) == (False, -signal.SIGKILL)
    assert ended.because == "it was ended by SIGKILL before its 120 s were over"
    found = rows(tmp_path)  # whole lines, whenever it was killed
    assert {row["phase"] for row in found} == {"steady"}
    # Two processes keep one schedule: all of it, and nothing twice.
    starts = sorted(float(row["start"]) for row in found)
    numbers = [(at - starts[0]) * 40 for at in starts]
    assert numbers == pytest.approx([round(number) for number in numbers], abs=0.01)
    assert len(set(map(round, numbers))) == len(found)
    assert {round(number) % 2 for number in numbers} == {0, 1}


# --- stand-ins for one of them, which do what none of ours should --------------------------------------------------

STAND_IN = """
import sys, time
kind = sys.argv[1]
orders = sys.stdin.readline()
told = '{"issued":[1,1,0,0]%s}'
if kind != "late":
    print(told % ',"ready":true', flush=True)
if kind == "talks":
    print("some library prints a warning", flush=True)
if kind == "invents":
    print('{"issued":[1,1,0,0],"finished":[[0.0,null,"soon",200,"","",null,null,"",null]]}', flush=True)
if kind == "forgets":
    print(told % ',"all_told":3', flush=True)
if kind == "fails":
    sys.exit(7)
if kind in ("quiet", "late", "stays"):
    time.sleep(600)
if kind in ("goes", "good"):
    print(told % ',"all_told":0', flush=True)
for line in sys.stdin if kind in ("good", "talks", "invents") else ():
    pass
"""


def crew_orders() -> InferenceOrders:
    return InferenceOrders(
        domains=(DomainOrders(base_url="http://127.0.0.1:1/v1", key=SecretStr(KEY), model="m"),),
        connect_seconds=1.0,
        read_seconds=1.0,
        max_tokens=5,
        temperature=0.0,
        stream=True,
        profile="chat",
        concurrency=4,
        interval_seconds=0.0,
        rate_per_second=None,
        most_in_flight=4,
        inference_ratio=1.0,
        burner=(),
        run=None,
        clock=RunClock.start(),
        limit_seconds=60.0,
        processes=2,
    )


class Kept:
    """A ledger that keeps what is entered."""

    def __init__(self) -> None:
        self.troubles: list[str] = []
        self.answers: list[Answer] = []

    def trouble(self, kind: str) -> None:
        self.troubles.append(kind)

    def enter(self, answer: Answer, **_: object) -> None:
        self.answers.append(answer)

    def close(self) -> None:
        pass


def crew_of(kinds: Sequence[str], monkeypatch: pytest.MonkeyPatch, lost: list[str]) -> tuple[Crew, Kept, Tally]:
    left = iter(kinds)
    monkeypatch.setattr(crew, "own_program", lambda _: (sys.executable, "-I", "-S", "-c", STAND_IN, next(left)))
    kept, tally = Kept(), Tally()
    return (
        Crew(crew_orders(), models=["m"], tally=tally, ledger=kept, burn=None, lost=lost.append),  # type: ignore[arg-type]
        kept,
        tally,
    )


@pytest.mark.parametrize(
    "kind, words",
    [
        ("talks", "says what cannot be understood (line: Invalid JSON"),
        ("invents", "says what cannot be understood (finished.0.2: Input should be a valid number"),
        ("forgets", "ended, and 0 requests of 3 are known"),
        ("leaves", "ended without its last words"),
        ("fails", "ended with exit code 7"),
        ("goes", "ended, and nobody had asked for it"),
        ("quiet", "says nothing for 0.6 s"),
    ],
)
def test_one_that_misbehaves_is_named(kind: str, words: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(crew, "LOOK_SECONDS", 0.02)
    if kind != "quiet":
        monkeypatch.setattr(crew, "MOST_QUIET_LOOKS", 10**6)
    lost: list[str] = []
    late: list[float | None] = []

    async def work() -> None:
        the_crew, _, _ = crew_of(["good", kind], monkeypatch, lost)
        await the_crew.come()
        the_crew.start()
        deadline = time.monotonic() + PATIENCE_SECONDS
        while not any("2 of 2" in text for text in lost) and time.monotonic() < deadline:  # noqa: ASYNC110 - a list
            await asyncio.sleep(0.005)
        late.append(the_crew.lag_p99_seconds)
        await the_crew.end()

    asyncio.run(work())
    named = [text for text in lost if text.startswith("load process 2 of 2 (process id ")]
    assert named
    assert words in named[0]
    if kind == "quiet":
        assert late[0] is not None
        assert late[0] >= 0.5  # it is not merely counted: long before it is lost, its times are not believed


def test_those_that_do_not_come_are_no_load(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(crew, "START_SECONDS", 0.5)

    async def work() -> None:
        the_crew, _, _ = crew_of(["late", "late"], monkeypatch, [])
        with pytest.raises(OSError, match=r"2 of 2 processes did not come up within 0\.5 s"):
            await the_crew.come()
        await the_crew.end()

    asyncio.run(work())


def test_one_that_does_not_end_is_killed_and_told(monkeypatch: pytest.MonkeyPatch) -> None:
    really = asyncio.wait

    async def one_ends(tasks: Iterable[asyncio.Task[None]], **_: object) -> object:
        """As if all that ever end had ended just in time."""
        return await really(tasks, timeout=PATIENCE_SECONDS, return_when=asyncio.FIRST_COMPLETED)

    monkeypatch.setattr(asyncio, "wait", one_ends)

    async def work() -> Kept:
        the_crew, kept, tally = crew_of(["good", "stays"], monkeypatch, [])
        await the_crew.come()
        await the_crew.end()
        assert tally.issued.in_flight == 0
        return kept

    troubles = asyncio.run(work()).troubles
    assert len(troubles) == 1
    assert troubles[0].startswith("load process 2 of 2 (process id ")
    assert troubles[0].endswith(") did not end in time")


# --- the pipe ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("reads", [True, False])
def test_without_a_reader_it_ends(reads: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(engine_process, "MOST_WAITING_BYTES", 1024 * 1024)

    async def work() -> bool:
        read, write = os.pipe()
        end = asyncio.Event()
        outlet = await engine_process.Outlet.to(write, end)
        if reads:
            os.close(read)  # it is killed
        else:
            for _ in range(200):  # it stands still
                outlet.write(b"x" * 65536)
        await asyncio.wait_for(end.wait(), PATIENCE_SECONDS)
        overflowed = outlet.overflowed
        if not reads:
            os.close(read)
        await outlet.close()
        return overflowed

    assert asyncio.run(work()) is not reads
