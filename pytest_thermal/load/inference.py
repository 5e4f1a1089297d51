"""The process of the inference load: ``python -m pytest_thermal.load.inference``, told everything on standard input.

The first line are its orders, with the key. Further lines are commands: ``{"do": "phase", "name": …}`` and
``{"do": "concurrency", "slots": …}``. It says one status line a second, and ends with its input, with SIGTERM, or at
its limit.

It sends the requests itself, or has several processes that share them (`crew`); it alone counts them and writes them
down.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import math
import os
import sys
from collections.abc import Coroutine, Sequence
from dataclasses import replace
from typing import Any, Protocol

from pytest_thermal.bench import Redactor
from pytest_thermal.load.books import Books
from pytest_thermal.load.bursts import Bursts
from pytest_thermal.load.calibration import Calibration, calibrate
from pytest_thermal.load.crew import Crew
from pytest_thermal.load.engine_health import client_limit
from pytest_thermal.load.generator import Burn, Generator, Way
from pytest_thermal.load.ledger import Ledger
from pytest_thermal.load.orders import DomainOrders, InferenceOrders
from pytest_thermal.load.own_process import (
    Commands,
    end_by_signal,
    ends_already,
    obey,
    rarely_collect,
    standard_input,
)
from pytest_thermal.load.pulse import Beats, Pulse
from pytest_thermal.load.tally import Tally
from pytest_thermal.recording import RequestRow, RequestsFile
from pytest_thermal.transport.fast import loops

STATUS_SECONDS = 1.0
LIMITED_TIMES = 3
"""So many status lines in a row before it counts that the engine is the limit."""
_TOLD_SECONDS = 0.02
"""For the phase, which comes right after the orders: the first requests belong to it."""
CANNOT = 2
LOST = 3
"""One of those that share the load is gone, and with it what it had in flight."""


class Sender(Protocol):
    """What sends the requests: this process alone, or several."""

    phase: str
    concurrency: int

    @property
    def pulse(self) -> Beats:
        """How its event loop is."""

    async def come(self) -> None:
        """Until it can start. Raises OSError where it never will."""

    def start(self) -> None:
        """Begin."""

    def set_concurrency(self, slots: int) -> None:
        """How many slots there are from now on."""

    async def end(self) -> None:
        """Give up what is in flight."""


class Alone(Generator):
    """A generator in this process."""

    def __init__(self, orders: InferenceOrders, *, ways: Sequence[Way], ledger: Ledger, burn: Burn | None) -> None:
        super().__init__(orders, ways=ways, ledger=ledger, burn=burn)
        self.pulse = Pulse()
        self._beating: asyncio.Task[None] | None = None

    async def come(self) -> None:
        """`Sender.come`."""

    def start(self, begin_seconds: float | None = None) -> None:
        """`Sender.start`."""
        super().start(begin_seconds)
        self._beating = asyncio.create_task(self.pulse.beat())

    async def end(self) -> None:
        """`Sender.end`."""
        if self._beating is not None:
            self._beating.cancel()
        await super().end()


class Ending:
    """When the process is to end, and with which code."""

    def __init__(self, event: asyncio.Event, redactor: Redactor) -> None:
        self.event = event
        self.code = 0
        self._redactor = redactor

    def failed(self, words: str, code: int = LOST) -> None:
        """For a reason, which is said, unless it ends already."""
        if not self.event.is_set():
            self.code = code
            _say(self._redactor.text(words))
            self.event.set()


def main() -> int:
    """Run until told to end; 2 where the load cannot be made, 3 where a part of it was lost, with the reason said."""
    os.set_blocking(1, False)  # a starter that is held up must not hold up the load
    return loops.run(_load())


async def _load() -> int:
    loop = asyncio.get_running_loop()
    end = end_by_signal(loop)
    lines = await standard_input(loop)
    line = await lines.readline()
    if not line:
        return 0
    orders = InferenceOrders.from_line(line.decode())
    redactor = Redactor([domain.key for domain in orders.domains if domain.key is not None])
    ending = Ending(end, redactor)
    try:
        ways = [await _way(domain, orders) for domain in orders.domains]
    except (OSError, ValueError, ImportError, LookupError) as error:
        ending.failed(f"no request can be sent: {error}", CANNOT)
        return ending.code
    _say_if_slow(ways)
    rows = RequestsFile(orders.run) if orders.run is not None else None

    def record(some: Sequence[RequestRow]) -> None:
        if rows is not None:
            # There are gateways that quote the key in their refusals.
            rows.append(*(replace(row, error=redactor.text(row.error)) if row.error else row for row in some))

    tally = Tally()
    books = Books(tally, clock=orders.clock, record=record)
    bursts = Bursts(orders.burner, orders.environ) if orders.burner else None
    burn = bursts.burn if bursts is not None else None
    sender: Sender
    if orders.processes == 1:
        sender = Alone(orders, ways=ways, ledger=books, burn=burn)
    else:
        models = [way.model for way in ways]
        sender = Crew(orders, models=models, tally=tally, ledger=books, burn=burn, lost=ending.failed)
    rarely_collect()
    loop.call_later(orders.limit_seconds, end.set)
    await _run(orders, sender, Report(tally, sender, redactor), lines, ending)
    if bursts is not None:
        await bursts.close()
    if rows is not None:
        rows.close()
    ends_already(loop)
    return ending.code


async def _run(
    orders: InferenceOrders, sender: Sender, report: Report, lines: asyncio.StreamReader, ending: Ending
) -> None:
    """From the first command to the last row."""
    commands: Commands = {
        "phase": lambda told: setattr(sender, "phase", str(told["name"])),
        "concurrency": lambda told: sender.set_concurrency(int(told["slots"])),
    }
    beside = [asyncio.create_task(work) for work in (obey(lines, commands, ending.event), report.tell())]
    try:
        await _unless(ending.event, sender.come())
    except OSError as error:  # also that not all came in time
        ending.failed(f"the processes that send requests cannot be started: {error}", CANNOT)
    if orders.calibration_seconds:
        await _calibrate(orders, report, ending.event)
    else:
        await asyncio.sleep(_TOLD_SECONDS)
    if not ending.event.is_set():
        sender.start()
    await ending.event.wait()
    for task in beside:
        task.cancel()
    await sender.end()
    report.say()


async def _way(domain: DomainOrders, orders: InferenceOrders) -> Way:
    way = Way.to(domain, orders)
    way.model = way.model or await way.engine.first_listed_model() or ""
    if not way.model:
        raise ValueError(f"the bench names no model, and the gateway at {domain.base_url} lists none")
    return way


def _say_if_slow(ways: Sequence[Way]) -> None:
    for why in dict.fromkeys(way.engine.slow_because for way in ways if way.engine.slow_because):
        _say(f"requests go through httpx, which costs more than they need: {why}")


async def _unless(end: asyncio.Event, work: Coroutine[Any, Any, Any]) -> Any:
    """What ``work`` comes to; None if the load is to end meanwhile, and then it is cancelled."""
    working = asyncio.create_task(work)
    ending = asyncio.create_task(end.wait())
    await asyncio.wait({working, ending}, return_when=asyncio.FIRST_COMPLETED)
    ending.cancel()
    if working.done():
        return working.result()
    working.cancel()
    await asyncio.wait({working})
    return None


async def _calibrate(orders: InferenceOrders, report: Report, end: asyncio.Event) -> None:
    """Measure the engine, as one of the processes that share the load will use it."""
    report.doing = "calibrating"
    parallel = math.ceil(orders.parallel / orders.processes)
    found = await _unless(
        end,
        calibrate(
            parallel=parallel, stream=orders.stream, seconds=orders.calibration_seconds, processes=orders.processes
        ),
    )
    report.doing = ""
    report.calibration = found


class Report:
    """What the process says of itself, once a second."""

    def __init__(self, tally: Tally, sender: Sender, redactor: Redactor) -> None:
        self.doing = ""
        """In place of what the requests do, before there are any."""
        self.calibration: Calibration | None = None
        self._tally = tally
        self._sender = sender
        self._redactor = redactor
        self._limited_for = 0

    async def tell(self) -> None:
        """Until cancelled."""
        while True:
            self.say()
            await asyncio.sleep(STATUS_SECONDS)

    def say(self) -> None:
        """One line."""
        tally, pulse = self._tally, self._sender.pulse
        status = tally.status(concurrency=self._sender.concurrency)
        limit = client_limit(tally.vitals(pulse))
        self._limited_for = self._limited_for + 1 if limit else 0
        status |= {
            "loop_lag_p99_seconds": pulse.lag_p99_seconds,
            "cpu_share": pulse.cpu_share,
            "client_limited": limit if self._limited_for >= LIMITED_TIMES else "",
        }
        if self.calibration is not None:
            status["calibration"] = self.calibration.facts()
        if self.doing:
            status["text"] = self.doing
        told = self._redactor.data(status)
        _say(json.dumps({"is": "status", **(told if isinstance(told, dict) else {})}))


def _say(text: str) -> None:
    # A full pipe, or none: whoever should hear it does not listen, and the next line says more.
    with contextlib.suppress(OSError):
        os.write(1, text.encode() + b"\n")


if __name__ == "__main__":
    sys.exit(main())
