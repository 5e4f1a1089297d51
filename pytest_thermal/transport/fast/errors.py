"""What goes wrong on a connection, by name."""

from __future__ import annotations

import os
import socket
import ssl

from pytest_thermal.transport.exchange import Fault, read_fault


class LineError(Exception):
    """No answer, or none that is whole. Its text holds nothing of the request, so no key."""

    def __init__(self, fault: Fault, text: str, *, is_stale: bool = False, is_timeout: bool = False) -> None:
        super().__init__(text)
        self.fault = fault
        self.is_timeout = is_timeout
        """Whether it was we who waited no longer."""
        self.is_stale = is_stale
        """Whether the connection ended before a byte of an answer: a kept one may have been closed long since."""


def line_error(error: BaseException, *, began: bool = False, is_stale: bool = False) -> LineError:
    """`LineError` of what the operating system or TLS said; ``began``: the head of an answer had come."""
    fault, text = read_fault(error, began=began)
    if isinstance(error, OSError) and not isinstance(error, ssl.SSLError | socket.gaierror) and error.errno:
        text = os.strerror(error.errno)
    told = LineError(fault, text, is_stale=is_stale)
    told.__cause__ = error
    return told
