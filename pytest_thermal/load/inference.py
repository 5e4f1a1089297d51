"""The process of the inference load: ``python -m pytest_thermal.load.inference``, told everything on standard input.

The first line are its orders, with the key. Further lines are commands: ``{"do": "phase", "name": …}`` and
``{"do": "concurrency", "slots": …}``. It says one status line a second, and ends with its input, with SIGTERM, or at
its limit.
"""

from __future__ import annotations

import asyncio
import contextlib
import gc
import json
import os
import signal
import sys
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from pytest_thermal.bench import Redactor
from pytest_thermal.load.answers import Target
from pytest_thermal.load.calibration import Calibration, calibrate
from pytest_thermal.load.engine import Engine
from pytest_thermal.load.engine_health import client_limit
from pytest_thermal.load.generator import Generator, Way
from pytest_thermal.load.orders import DomainOrders, InferenceOrders
from pytest_thermal.load.pulse import Pulse
from pytest_thermal.recording import RequestRow, RequestsFile
from pytest_thermal.transport.fast import loops

STATUS_SECONDS = 1.0
LIMITED_TIMES = 3
"""So many status lines in a row before it counts that the engine is the limit."""
_TOLD_SECONDS = 0.02
"""For the phase, which comes right after the orders: the first requests belong to it."""
_LONGEST_LINE_BYTES = 1024 * 1024
_COLLECTED_OBJECTS = 100_000
"""New ones before the collector looks. A thousand requests in flight are ten thousand, made and gone all the time: with
Python's own 700 a sixth of the time went to looking for garbage that there was not."""
_ORDERLY = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)
CANNOT = 2


def main() -> int:
    """Run until told to end; 2 where the load cannot be made, with the reason on standard output."""
    os.set_blocking(1, False)  # a starter that is held up must not hold up the load
    return loops.run(_load())


async def _load() -> int:
    loop = asyncio.get_running_loop()
    end = asyncio.Event()
    for number in _ORDERLY:
        loop.add_signal_handler(number, end.set)
    commands = asyncio.StreamReader(limit=_LONGEST_LINE_BYTES)
    await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(commands), sys.stdin)
    line = await commands.readline()
    if not line:
        return 0
    orders = InferenceOrders.from_line(line.decode())
    redactor = Redactor([domain.key for domain in orders.domains if domain.key is not None])
    try:
        ways = [await _way(domain, orders) for domain in orders.domains]
    except (OSError, ValueError, ImportError, LookupError) as error:
        _say(redactor.text(f"no request can be sent: {error}"))
        return CANNOT
    _say_if_slow(ways)
    rows = RequestsFile(orders.run) if orders.run is not None else None

    def record(some: Sequence[RequestRow]) -> None:
        if rows is not None:
            # There are gateways that quote the key in their refusals.
            rows.append(*(replace(row, error=redactor.text(row.error)) if row.error else row for row in some))

    generator = Generator(orders, ways=ways, record=record)
    gc.freeze()  # what is loaded stays: the collector need not look at it again while latencies are measured
    gc.set_threshold(_COLLECTED_OBJECTS)
    loop.call_later(orders.limit_seconds, end.set)
    report = Report(generator, redactor)
    beside = [asyncio.create_task(work) for work in (_listen(commands, generator, end), report.tell())]
    if orders.calibration_seconds:
        await _calibrate(orders, report, end)
    else:
        await asyncio.sleep(_TOLD_SECONDS)
    if not end.is_set():
        generator.start()
        beside.append(asyncio.create_task(report.pulse.beat()))
    await end.wait()
    for task in beside:
        task.cancel()
    await generator.end()
    if rows is not None:
        rows.close()
    report.say()
    for number in _ORDERLY:  # asked once more on the way out, it still ends in order
        loop.remove_signal_handler(number)
        signal.signal(number, signal.SIG_IGN)
    return 0


async def _way(domain: DomainOrders, orders: InferenceOrders) -> Way:
    engine = Engine(
        Target(
            base_url=domain.base_url,
            key=domain.key,
            connect_seconds=orders.connect_seconds,
            read_seconds=orders.read_seconds,
        ),
        os.environ,
    )
    model = domain.model or await engine.first_listed_model()
    if model is None:
        raise ValueError(f"the bench names no model, and the gateway at {domain.base_url} lists none")
    return Way(engine, model=model)


def _say_if_slow(ways: Sequence[Way]) -> None:
    for why in dict.fromkeys(way.engine.slow_because for way in ways if way.engine.slow_because):
        _say(f"requests go through httpx, which costs more than they need: {why}")


async def _listen(commands: asyncio.StreamReader, generator: Generator, end: asyncio.Event) -> None:
    while line := await commands.readline():
        with contextlib.suppress(ValueError, LookupError, TypeError):
            command: dict[str, Any] = json.loads(line)
            if command["do"] == "phase":
                generator.phase = str(command["name"])
            elif command["do"] == "concurrency":
                generator.set_concurrency(int(command["slots"]))
    end.set()


async def _calibrate(orders: InferenceOrders, report: Report, end: asyncio.Event) -> None:
    """Measure the engine, unless the load is to end meanwhile."""
    measuring = asyncio.create_task(
        calibrate(parallel=orders.parallel, stream=orders.stream, seconds=orders.calibration_seconds)
    )
    ending = asyncio.create_task(end.wait())
    report.doing = "calibrating"
    await asyncio.wait({measuring, ending}, return_when=asyncio.FIRST_COMPLETED)
    report.doing = ""
    ending.cancel()
    if measuring.done():
        report.calibration = measuring.result()
    else:
        measuring.cancel()
        await asyncio.wait({measuring})


class Report:
    """What the process says of itself, once a second."""

    def __init__(self, generator: Generator, redactor: Redactor) -> None:
        self.pulse = Pulse()
        self.doing = ""
        """In place of what the requests do, before there are any."""
        self.calibration: Calibration | None = None
        self._generator = generator
        self._redactor = redactor
        self._limited_for = 0

    async def tell(self) -> None:
        """Until cancelled."""
        while True:
            self.say()
            await asyncio.sleep(STATUS_SECONDS)

    def say(self) -> None:
        """One line."""
        tally, pulse = self._generator.tally, self.pulse
        status = tally.status(concurrency=self._generator.concurrency)
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
