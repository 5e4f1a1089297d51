"""What the processes of an inference load have in common: signals, commands on standard input, few interruptions."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import json
import signal
import sys
from collections.abc import Callable, Mapping
from typing import Any

LONGEST_LINE_BYTES = 1024 * 1024
_COLLECTED_OBJECTS = 100_000
"""New ones before the collector looks. A thousand requests in flight are ten thousand, made and gone all the time: with
Python's own 700 a sixth of the time went to looking for garbage that there was not."""
_ORDERLY = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)

Commands = Mapping[str, Callable[[Mapping[str, Any]], None]]
"""What to do, by the name under ``do``."""


def end_by_signal(loop: asyncio.AbstractEventLoop) -> asyncio.Event:
    """Set by the signals that end a process in order."""
    end = asyncio.Event()
    for number in _ORDERLY:
        loop.add_signal_handler(number, end.set)
    return end


def ends_already(loop: asyncio.AbstractEventLoop) -> None:
    """Asked once more on the way out, it still ends in order."""
    for number in _ORDERLY:
        loop.remove_signal_handler(number)
        signal.signal(number, signal.SIG_IGN)


async def standard_input(loop: asyncio.AbstractEventLoop) -> asyncio.StreamReader:
    """Lines as they come."""
    lines = asyncio.StreamReader(limit=LONGEST_LINE_BYTES)
    await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(lines), sys.stdin)
    return lines


async def obey(lines: asyncio.StreamReader, commands: Commands, end: asyncio.Event) -> None:
    """Do what is told until the input ends, which ends the process; what makes no sense is passed over."""
    while line := await lines.readline():
        with contextlib.suppress(ValueError, LookupError, TypeError):
            command = json.loads(line)
            commands[command["do"]](command)
    end.set()


def to_command(**command: object) -> bytes:
    """A line for `obey`."""
    return json.dumps(command).encode() + b"\n"


def rarely_collect() -> None:
    """What is loaded stays: the collector need not look at it again while latencies are measured, nor often at all."""
    gc.freeze()
    gc.set_threshold(_COLLECTED_OBJECTS)
