"""The event loop of a load: uvloop's where it is installed."""

from __future__ import annotations

import asyncio
import importlib.util
from collections.abc import Coroutine
from typing import Any, TypeVar

T = TypeVar("T")


def loop_name() -> str:
    """The loop that runs, else the one that `run` would take: ``uvloop`` or ``asyncio``."""
    try:
        return type(asyncio.get_running_loop()).__module__.partition(".")[0]
    except RuntimeError:
        return "uvloop" if importlib.util.find_spec("uvloop") else "asyncio"


def run(main: Coroutine[Any, Any, T]) -> T:
    """`asyncio.run`, on the fastest loop that there is."""
    if loop_name() == "asyncio":
        return asyncio.run(main)
    import uvloop  # noqa: PLC0415 - an extra

    return uvloop.run(main)
