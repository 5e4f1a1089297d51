"""Several processes that share an inference load, from the one that counts and writes what they do."""

from __future__ import annotations

import asyncio
import contextlib
import signal
import time
from collections.abc import Callable, Coroutine, Iterable, Sequence
from typing import Any

from pytest_thermal.load.generator import Burn
from pytest_thermal.load.ledger import Issued, Ledger
from pytest_thermal.load.orders import InferenceOrders
from pytest_thermal.load.own_process import LONGEST_LINE_BYTES, to_command
from pytest_thermal.load.tally import Tally
from pytest_thermal.load.wire import Beat, Burst, News, from_line
from pytest_thermal.load.work import own_program

START_SECONDS = 60.0
"""For all of them to be there, on a machine whose cores all burn."""
BEGIN_SECONDS = 0.05
"""Between being told to begin and beginning: a schedule that is shared has one beginning."""
END_SECONDS = 0.8
"""For all of them to give up what they have in flight and to tell it."""
WITHOUT_BEING_ASKED_SECONDS = 0.3
"""A signal that goes to all processes of a load reaches some of them sooner: what it ends is not lost."""
LOOK_SECONDS = 1.0
QUIET_LOOKS = 3
"""After so many looks without a word, how long it is quiet counts as the lag of its event loop."""
MOST_QUIET_LOOKS = 30
"""After so many, it is lost."""
_MEMBER = "pytest_thermal.load.engine_process"


class Crew:
    """Starts them, deals out the load, takes in what they tell.

    If one of them is lost, the load is, and ``lost`` hears why: what it had in flight nobody knows. Its figures
    (`pulse.Beats`) are those of the worst of them.
    """

    def __init__(
        self,
        orders: InferenceOrders,
        *,
        models: Sequence[str],
        tally: Tally,
        ledger: Ledger,
        burn: Burn | None,
        lost: Callable[[str], None],
    ) -> None:
        self.concurrency = orders.concurrency
        self._tally = tally
        self._ledger = ledger
        self._burn = burn
        self._lost = lost
        self._phase = ""
        self._ending = False
        self._members = [
            _Member(orders.of_process(index, models=models), heard=self._heard, gone=self._gone)
            for index in range(orders.processes)
        ]
        self._beside: set[asyncio.Task[None]] = set()

    @property
    def pulse(self) -> Crew:
        """Itself."""
        return self

    @property
    def phase(self) -> str:
        """Requests that start from now on belong to it."""
        return self._phase

    @phase.setter
    def phase(self, name: str) -> None:
        self._phase = name
        self._tell(do="phase", name=name)

    @property
    def observed_seconds(self) -> float:
        """`Beats.observed_seconds`: of the one that is known for the shortest time."""
        return min((beat.observed_seconds for beat in self._beats()), default=0.0)

    @property
    def lag_p99_seconds(self) -> float | None:
        """`Beats.lag_p99_seconds` of the latest of them; one that says nothing is late by that time."""
        lags = [beat.lag_p99_seconds for beat in self._beats()]
        quiet = [member.quiet_seconds for member in self._members if member.quiet_seconds]
        return max([*(lag for lag in lags if lag is not None), *quiet], default=None)

    @property
    def cpu_share(self) -> float | None:
        """`Beats.cpu_share` of the busiest of them."""
        return max((beat.cpu_share for beat in self._beats() if beat.cpu_share is not None), default=None)

    async def come(self) -> None:
        """Until all are there, or one is lost.

        Raises:
            OSError: One cannot be started.
            TimeoutError: Not all came in time.
        """
        for member in self._members:
            await member.start()
        self._run(self._watch())
        coming = asyncio.gather(*(member.ready.wait() for member in self._members))
        try:
            await asyncio.wait_for(coming, START_SECONDS)
        except asyncio.TimeoutError:
            missing = sum(not member.ready.is_set() for member in self._members)
            raise TimeoutError(
                f"{missing} of {len(self._members)} processes did not come up within {START_SECONDS:g} s"
            ) from None

    def start(self) -> None:
        """All begin, together."""
        self._tell(do="phase", name=self._phase)
        self._tell(do="concurrency", slots=self.concurrency)
        self._tell(do="start", at=time.monotonic() + BEGIN_SECONDS)

    def set_concurrency(self, slots: int) -> None:
        """How many slots there are from now on, of all of them together."""
        self.concurrency = slots
        self._tell(do="concurrency", slots=slots)

    async def end(self) -> None:
        """All give up what is in flight, and tell it; those that do not are killed."""
        self._ending = True
        for task in self._beside:
            task.cancel()
        for member in self._members:
            member.ask_to_end()
        late = await _ended(self._members)
        for member in late:
            self._ledger.trouble(f"{member.name} did not end in time")
        self._ledger.close()

    # ---------------------------------------------------------------------------------------------------------------

    def _run(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.create_task(work)
        self._beside.add(task)
        task.add_done_callback(self._beside.discard)

    def _tell(self, **command: object) -> None:
        line = to_command(**command)
        for member in self._members:
            member.tell(line)

    def _beats(self) -> Iterable[Beat]:
        return [member.beat for member in self._members if member.beat is not None]

    def _heard(self, member: _Member, news: News) -> None:
        self._tally.issued = Issued.total(one.issued for one in self._members)
        for one in news.finished:
            self._ledger.enter(one.answer, phase=one.phase, due_seconds=one.due_seconds)
        if news.gap_steps:
            self._tally.took_gaps(news.gaps)
        for kind in news.troubles:
            self._ledger.trouble(kind)
        if news.burst is not None:
            self._run(self._burst(member, news.burst))

    def _gone(self, member: _Member, why: str) -> None:
        """It ended, or says what it cannot mean."""
        self._tally.issued = Issued.total(one.issued for one in self._members)
        if self._ending:
            if why:
                self._ledger.trouble(f"{member.name} {why}")
        elif why:
            self._lost(f"{member.name} {why}")
        else:
            self._run(self._left(member))

    async def _left(self, member: _Member) -> None:
        await asyncio.sleep(WITHOUT_BEING_ASKED_SECONDS)
        self._lost(f"{member.name} ended, and nobody had asked for it")

    async def _burst(self, member: _Member, burst: Burst) -> None:
        trouble = await self._burn(burst.seconds) if self._burn is not None else "nothing burns"
        member.tell(to_command(do="burnt", number=burst.number, trouble=trouble))

    async def _watch(self) -> None:
        # Looks are counted, and no time: where this process stood still, all that the others said waits to be read.
        while True:
            await asyncio.sleep(LOOK_SECONDS)
            for member in self._members:
                member.quiet_looks += 1
                if member.quiet_looks == MOST_QUIET_LOOKS:
                    self._lost(f"{member.name} says nothing for {MOST_QUIET_LOOKS * LOOK_SECONDS:g} s")


class _Member:
    """One of them."""

    def __init__(
        self,
        orders: InferenceOrders,
        *,
        heard: Callable[[_Member, News], None],
        gone: Callable[[_Member, str], None],
    ) -> None:
        self.name = f"load process {orders.share.index + 1} of {orders.share.of}"
        self.issued = Issued()
        self.beat: Beat | None = None
        self.ready = asyncio.Event()
        self.quiet_looks = 0
        self.hearing: asyncio.Task[None] | None = None
        self._orders = orders
        self._heard = heard
        self._gone = gone
        self._killed = False
        self._told = 0
        self._all_told: int | None = None
        self._process: asyncio.subprocess.Process | None = None

    @property
    def quiet_seconds(self) -> float:
        """How long it says nothing; 0 where that is not long."""
        return self.quiet_looks * LOOK_SECONDS if self.ready.is_set() and self.quiet_looks >= QUIET_LOOKS else 0.0

    async def start(self) -> None:
        """Start it, with its orders."""
        self._process = await asyncio.create_subprocess_exec(
            *own_program(_MEMBER),
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            limit=LONGEST_LINE_BYTES,
        )
        self.name += f" (process id {self._process.pid})"
        self.tell(self._orders.to_line().encode() + b"\n")
        self.hearing = asyncio.create_task(self._hear(self._process))

    def tell(self, line: bytes) -> None:
        """A line for its standard input; nothing where it is gone."""
        process = self._process
        if process is not None and process.stdin is not None and not process.stdin.is_closing():
            process.stdin.write(line)

    def ask_to_end(self) -> None:
        """Its input ends."""
        if self._process is not None and self._process.stdin is not None:
            self._process.stdin.close()

    def kill(self) -> None:
        """At once."""
        self._killed = True
        if self._process is not None:
            with contextlib.suppress(ProcessLookupError):
                self._process.kill()

    async def _hear(self, process: asyncio.subprocess.Process) -> None:
        why = ""
        try:
            while process.stdout is not None and (line := await process.stdout.readline()):
                self._take(from_line(line))
        except ValueError as error:  # no line, or none that means anything
            why = f"says what cannot be understood ({error})"
            self.kill()
        code = await process.wait()
        self.issued.in_flight = 0
        self._gone(self, why or self._how(code))

    def _take(self, news: News) -> None:
        self.quiet_looks = 0
        self.issued = news.sent
        self._told += len(news.finished)
        self.beat = news.beat or self.beat
        if news.ready:
            self.ready.set()
        if news.all_told is not None:
            self._all_told = news.all_told
        self._heard(self, news)

    def _how(self, code: int) -> str:
        """What is wrong with how it ended; empty where nothing is, or where it was this process that ended it."""
        if self._killed:
            return ""
        if code < 0:
            return f"was ended by {_signal_name(-code)}"
        if code:
            return f"ended with exit code {code}"
        if self._all_told is None:
            return "ended without its last words"
        if self._all_told != self._told:
            return f"ended, and {self._told} requests of {self._all_told} are known"
        return ""


async def _ended(members: Sequence[_Member]) -> list[_Member]:
    """Until all have ended, or were killed; returns those that had to be."""
    hearing = {member.hearing: member for member in members if member.hearing is not None}
    if not hearing:
        return []
    _, late = await asyncio.wait(hearing, timeout=END_SECONDS)
    for task in late:
        hearing[task].kill()
    if late:
        await asyncio.wait(late, timeout=0.1)
    return [hearing[task] for task in late]


def _signal_name(number: int) -> str:
    with contextlib.suppress(ValueError):
        return signal.Signals(number).name
    return f"signal {number}"
