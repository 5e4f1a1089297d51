"""What the load engine itself adds to the times that it tells, measured on the spot before it is believed."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator, Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any

from pydantic_core import from_json

from pytest_thermal.load.answers import Answer, Target
from pytest_thermal.load.engine import Engine
from pytest_thermal.load.spread import Spread
from pytest_thermal.load.work import own_program
from pytest_thermal.transport.fast.loops import loop_name

START_SECONDS = 1.0
"""For the reference server to be there, or half of the calibration, which it counts as a part of."""
MOST_PARALLEL = 256
READ_SECONDS = 10.0
TOKENS = 16
"""So that streams are short enough for several of them."""
_ASKED = {"model": "reference", "max_tokens": 32, "temperature": 0.0}
_MESSAGES = [{"role": "user", "content": "word " * 128}]


@dataclass(frozen=True, kw_only=True)
class Calibration:
    """What the engine added to answers of a server of known speed, in milliseconds."""

    engine: str
    """``httptools on uvloop``."""
    parallel: int
    stream: bool
    requests: int = 0
    added_p50_ms: float | None = None
    """To whole answers; of a stream, to each of its tokens."""
    added_p99_ms: float | None = None
    gap_error_p50_ms: float | None = None
    """Of the time between two tokens, whichever way it is wrong."""
    gap_error_p99_ms: float | None = None
    first_token_p50_ms: float | None = None
    """Added to the first token alone."""
    first_token_p99_ms: float | None = None
    processes: int = 1
    """That share the load, each with an engine like the one that was measured."""
    trouble: str = ""
    """Why there are no figures; empty where there are."""

    @property
    def text(self) -> str:
        """For a person."""
        where = f"{self.engine}, {self.parallel} in parallel"
        if self.processes > 1:
            where += f", in one process as in each of {self.processes}"
        if self.trouble or self.added_p50_ms is None:
            return f"not calibrated ({where}): {self.trouble}"
        what = "a token" if self.stream else "an answer"
        return f"the load engine adds {self.added_p50_ms:.2f} ms to {what}, p99 {self.added_p99_ms:.2f} ms ({where})"

    def facts(self) -> dict[str, Any]:
        """As plain data."""
        return asdict(self)

    @classmethod
    def of_facts(cls, facts: Mapping[str, Any]) -> Calibration:
        """`facts` read back."""
        return cls(**facts)


async def calibrate(*, parallel: int, stream: bool, seconds: float, processes: int = 1) -> Calibration:
    """Ask a reference server for so long, as many in parallel as the load will, or as each of its ``processes``.

    Never raises for what goes wrong.

    Takes ``seconds`` in all, and a moment to end.
    """
    parallel = max(1, min(parallel, MOST_PARALLEL))
    begin = time.monotonic()
    try:
        async with _server(max(START_SECONDS, seconds / 2)) as url:
            engine = Engine(Target(base_url=url, key=None, connect_seconds=READ_SECONDS, read_seconds=READ_SECONDS), {})
            meter = _Meter(stream=stream)
            slots = [asyncio.create_task(_slot(engine, meter, stream=stream)) for _ in range(parallel)]
            try:
                await asyncio.sleep(max(0.0, begin + seconds - time.monotonic()))
            finally:
                meter.ended = True
                for slot in slots:
                    slot.cancel()
                await asyncio.gather(*slots, return_exceptions=True)
    except (OSError, ValueError, asyncio.TimeoutError) as error:
        said = str(error) or "the reference server was not there in time"
        return Calibration(engine=loop_name(), parallel=parallel, stream=stream, processes=processes, trouble=said)
    return replace(meter.told(engine.name, parallel), processes=processes)


class _Meter:
    def __init__(self, *, stream: bool) -> None:
        self._stream = stream
        self._added, self._first, self._gaps = Spread(), Spread(), Spread()
        self._requests = 0
        self._trouble = ""
        self.ended = False
        """Nothing more is asked. A cancelled request may answer all the same: it was whole, or cancelling got lost."""

    def took(self, answer: Answer) -> None:
        """An answer whose text are the times at which it was sent."""
        if not answer.ok:
            self._trouble = answer.error
            return
        stamps = [float(word) for word in answer.text.split()]
        self._requests += 1
        if not self._stream or answer.ttft_seconds is None:
            had, sent = stamps
            self._added.add([max(0.0, answer.latency_seconds - (sent - had))])
            return
        at = answer.started_seconds + answer.ttft_seconds
        late = [max(0.0, at - stamps[0])]
        self._first.add(late)
        for gap, sent, before in zip(answer.gaps_seconds, stamps[1:], stamps, strict=False):
            at += gap
            late.append(max(0.0, at - sent))
            self._gaps.add([abs(gap - (sent - before))])
        self._added.add(late)

    def told(self, engine: str, parallel: int) -> Calibration:
        """What it came to."""
        return Calibration(
            engine=engine,
            parallel=parallel,
            stream=self._stream,
            requests=self._requests,
            added_p50_ms=_ms(self._added, 0.5),
            added_p99_ms=_ms(self._added, 0.99),
            gap_error_p50_ms=_ms(self._gaps, 0.5),
            gap_error_p99_ms=_ms(self._gaps, 0.99),
            first_token_p50_ms=_ms(self._first, 0.5),
            first_token_p99_ms=_ms(self._first, 0.99),
            trouble="" if self._requests else self._trouble or "no answer came in time",
        )


async def _slot(engine: Engine, meter: _Meter, *, stream: bool) -> None:
    connection = engine.connection()
    body = {**_ASKED, "messages": _MESSAGES, "stream": stream}
    warm = False
    try:
        while not meter.ended:
            answer = await connection.send(body)
            if answer.cancelled:
                return
            if warm:  # the first one opened the connection
                meter.took(answer)
            warm = True
            if not answer.ok:
                await asyncio.sleep(0.1)
    finally:
        await connection.close()


@contextlib.asynccontextmanager
async def _server(start_seconds: float) -> AsyncIterator[str]:
    process = await asyncio.create_subprocess_exec(
        *own_program("pytest_thermal.load.reference_server", *("--tokens", str(TOKENS))),
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.DEVNULL,
    )
    try:
        line = await asyncio.wait_for(process.stdout.readline(), start_seconds) if process.stdout else b""
        yield f"http://127.0.0.1:{int(from_json(line))}/v1"
    finally:
        with contextlib.suppress(ProcessLookupError):
            process.kill()
        await process.wait()


def _ms(spread: Spread, share: float) -> float | None:
    value = spread.quantile(share)
    return None if value is None else round(value * 1000, 3)
