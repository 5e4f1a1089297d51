"""The bytes of a request."""

from __future__ import annotations

import re
from collections.abc import Iterable

from pytest_thermal.transport.exchange import Fault
from pytest_thermal.transport.fast.errors import LineError

_TOKEN = re.compile(rb"[!#$%&'*+\-.^_`|~0-9A-Za-z]+")
_VALUE = re.compile(rb"(?:[\x21-\x7e\x80-\xff]+(?:[ \t]+[\x21-\x7e\x80-\xff]+)*)?")
_TARGET = re.compile(rb"[\x21-\x7e]+")


def head_of(method: str | bytes, target: bytes, headers: Iterable[tuple[str | bytes, str | bytes]]) -> bytes:
    """Request line and headers, without the blank line at their end.

    Raises:
        LineError: Something in it would end the line that it stands in, or is no ASCII.
    """
    try:
        fields = [(_ascii(name), _ascii(value)) for name, value in headers]
        verb = _ascii(method)
    except UnicodeError:
        raise _unsendable() from None
    good = (
        _TOKEN.fullmatch(verb)
        and _TARGET.fullmatch(target)
        and all(_TOKEN.fullmatch(name) and _VALUE.fullmatch(value) for name, value in fields)
    )
    if not good:
        raise _unsendable()
    lines = [b"%b %b HTTP/1.1" % (verb, target), *(b"%b: %b" % field for field in fields)]
    return b"\r\n".join(lines) + b"\r\n"


def with_body(head: bytes, body: bytes) -> bytes:
    """A whole request of `head_of` and a body, whose length it tells."""
    return b"%bContent-Length: %d\r\n\r\n%b" % (head, len(body), body)


def _ascii(text: str | bytes) -> bytes:
    return text if isinstance(text, bytes) else text.encode("ascii")


def _unsendable() -> LineError:
    # What it is may be the key: it is not quoted.
    return LineError(Fault.UNSENDABLE, "it cannot be written as HTTP")
