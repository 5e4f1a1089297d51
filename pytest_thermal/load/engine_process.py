"""One of several processes that share an inference load: ``python -m pytest_thermal.load.engine_process``.

It is started by `crew.Crew`, gets its orders with the keys, and commands after them, on standard input, and tells what
it does on standard output (`wire`). It writes no file. It ends with its input, with its output, with SIGTERM, or at its
limit.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import sys
from typing import cast

from pytest_thermal.load.generator import Generator, Way
from pytest_thermal.load.orders import InferenceOrders
from pytest_thermal.load.own_process import end_by_signal, ends_already, obey, rarely_collect, standard_input
from pytest_thermal.load.pulse import Pulse
from pytest_thermal.load.shipping import Shipping
from pytest_thermal.transport.fast import loops

BEAT_SECONDS = 1.0
FLUSH_SECONDS = 0.3
MOST_WAITING_BYTES = 64 * 1024 * 1024
"""Of what nobody reads. Whoever should write it down does not: a load that goes on would be one without a record."""
NOT_HEARD = 4


def main() -> int:
    """Run until told to end; ``NOT_HEARD`` where nobody took what it had to tell."""
    said = os.dup(1)
    os.dup2(2, 1)  # whatever prints, prints to where people look, and not between the lines of JSON
    return loops.run(_serve(said))


async def _serve(said: int) -> int:
    loop = asyncio.get_running_loop()
    end = end_by_signal(loop)
    lines = await standard_input(loop)
    line = await lines.readline()
    if not line:
        return 0
    orders = InferenceOrders.from_line(line.decode())
    outlet = await Outlet.to(said, end)
    ledger = Shipping(outlet.write)
    ways = [Way.to(domain, orders) for domain in orders.domains]
    generator = Generator(orders, ways=ways, ledger=ledger, burn=ledger.burn if orders.burner else None)
    rarely_collect()
    loop.call_later(orders.limit_seconds, end.set)
    pulse = Pulse()
    beside = []

    def start(at_seconds: float) -> None:
        generator.start(at_seconds)
        beside.append(asyncio.create_task(pulse.beat()))

    commands = {
        "start": lambda told: start(float(told["at"])),
        "phase": lambda told: setattr(generator, "phase", str(told["name"])),
        "concurrency": lambda told: generator.set_concurrency(int(told["slots"])),
        "burnt": lambda told: ledger.burnt(int(told["number"]), str(told["trouble"])),
    }
    beside += [asyncio.create_task(obey(lines, commands, end)), asyncio.create_task(_beat(ledger, pulse))]
    ledger.ready()
    await end.wait()
    for task in beside:
        task.cancel()
    await generator.end()
    ledger.beat(pulse)
    ledger.last_words()
    await outlet.close()
    ends_already(loop)
    return NOT_HEARD if outlet.overflowed else 0


async def _beat(ledger: Shipping, pulse: Pulse) -> None:
    while True:
        ledger.beat(pulse)
        await asyncio.sleep(BEAT_SECONDS)


class Outlet(asyncio.BaseProtocol):
    """The pipe to the process that counts and writes; without a reader it ends this process."""

    def __init__(self, end: asyncio.Event) -> None:
        self.overflowed = False
        self._end = end
        self._gone = asyncio.Event()
        self._transport: asyncio.WriteTransport | None = None

    @classmethod
    async def to(cls, descriptor: int, end: asyncio.Event) -> Outlet:
        """Open; ``end`` is set when there is nobody who reads."""
        outlet = cls(end)
        pipe = os.fdopen(descriptor, "wb", 0)
        await asyncio.get_running_loop().connect_write_pipe(lambda: outlet, pipe)
        return outlet

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Ready."""
        self._transport = cast("asyncio.WriteTransport", transport)

    def connection_lost(self, error: Exception | None) -> None:  # noqa: ARG002 - asyncio's
        """Closed, by either side."""
        self._gone.set()
        self._end.set()

    def pause_writing(self) -> None:
        """It waits in memory, up to a limit."""

    def resume_writing(self) -> None:
        """It is read again."""

    def write(self, line: bytes) -> None:
        """Send a line. Never waits."""
        transport = self._transport
        if transport is None or transport.is_closing() or self.overflowed:
            return
        transport.write(line)
        if transport.get_write_buffer_size() > MOST_WAITING_BYTES:
            self.overflowed = True
            print("nobody reads what this process of the load has to tell: it ends", flush=True)  # noqa: T201 - to people
            self._end.set()

    async def close(self) -> None:
        """Close it, once all is read; not waiting long for that."""
        if self._transport is not None:
            self._transport.close()
        with contextlib.suppress(asyncio.TimeoutError):
            await asyncio.wait_for(self._gone.wait(), FLUSH_SECONDS)


if __name__ == "__main__":
    sys.exit(main())
