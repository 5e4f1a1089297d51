"""SIGTERM and SIGHUP end a thermal run in order: pytest itself would be gone at once."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable
from types import FrameType
from typing import NoReturn

import pytest

from pytest_thermal.model.said import say

_SIGNALS = (signal.SIGTERM, signal.SIGHUP)


def end_on_signals() -> Callable[[], None]:
    """Handle both until the function that is returned is called; does nothing where somebody else handles them."""
    if threading.current_thread() is not threading.main_thread():
        return _nothing
    taken = [number for number in _SIGNALS if signal.getsignal(number) is signal.SIG_DFL]
    for number in taken:
        signal.signal(number, _end)

    def restore() -> None:
        for number in taken:
            if signal.getsignal(number) is _end:
                signal.signal(number, signal.SIG_DFL)

    return restore


def _end(number: int, _frame: FrameType | None) -> NoReturn:
    name = signal.Signals(number).name
    pytest.exit(say("{name}: the load is taken off, what was recorded is kept", name=name), returncode=128 + number)


def _nothing() -> None:
    """Nothing was taken, so nothing is given back."""
