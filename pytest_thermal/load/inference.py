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
from dataclasses import replace
from typing import Any

from pytest_thermal.bench import Redactor
from pytest_thermal.load.answers import Target
from pytest_thermal.load.engine import Engine
from pytest_thermal.load.generator import Generator, Way
from pytest_thermal.load.orders import DomainOrders, InferenceOrders
from pytest_thermal.recording import RequestRow, RequestsFile
from pytest_thermal.transport.fast import loops

STATUS_SECONDS = 1.0
_TOLD_SECONDS = 0.02
"""For the phase, which comes right after the orders: the first requests belong to it."""
_LONGEST_LINE_BYTES = 1024 * 1024
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
    for way in ways:
        if way.engine.slow_because:
            _say(f"requests go through httpx, which costs more than they need: {way.engine.slow_because}")
    rows = RequestsFile(orders.run) if orders.run is not None else None

    def record(row: RequestRow) -> None:
        if rows is not None:
            # There are gateways that quote the key in their refusals.
            rows.append(replace(row, error=redactor.text(row.error)))

    generator = Generator(orders, ways=ways, record=record)
    gc.freeze()  # what is loaded stays: the collector need not look at it again while latencies are measured
    listening = asyncio.create_task(_listen(commands, generator, end))
    await asyncio.sleep(_TOLD_SECONDS)
    generator.start()
    loop.call_later(orders.limit_seconds, end.set)
    telling = asyncio.create_task(_tell(generator, redactor))
    await end.wait()
    listening.cancel()
    telling.cancel()
    await generator.end()
    if rows is not None:
        rows.close()
    _say_status(generator, redactor)
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


async def _listen(commands: asyncio.StreamReader, generator: Generator, end: asyncio.Event) -> None:
    while line := await commands.readline():
        with contextlib.suppress(ValueError, LookupError, TypeError):
            command: dict[str, Any] = json.loads(line)
            if command["do"] == "phase":
                generator.phase = str(command["name"])
            elif command["do"] == "concurrency":
                generator.set_concurrency(int(command["slots"]))
    end.set()


async def _tell(generator: Generator, redactor: Redactor) -> None:
    while True:
        _say_status(generator, redactor)
        await asyncio.sleep(STATUS_SECONDS)


def _say_status(generator: Generator, redactor: Redactor) -> None:
    status = redactor.data(generator.tally.status(concurrency=generator.concurrency))
    _say(json.dumps({"is": "status", **(status if isinstance(status, dict) else {})}))


def _say(text: str) -> None:
    # A full pipe, or none: whoever should hear it does not listen, and the next line says more.
    with contextlib.suppress(OSError):
        os.write(1, text.encode() + b"\n")


if __name__ == "__main__":
    sys.exit(main())
