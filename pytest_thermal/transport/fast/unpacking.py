"""Bodies that are packed although nobody asked for it."""

from __future__ import annotations

import zlib
from typing import Any

from pytest_thermal.transport.exchange import BODY_LIMIT_BYTES, Fault
from pytest_thermal.transport.fast.errors import LineError

_GZIP, _ZLIB, _BARE = 31, 15, -15
"""What zlib calls them."""
_FORMATS = {"gzip": _GZIP, "x-gzip": _GZIP, "deflate": _ZLIB}
_MEMBER = b"\x1f"
"""With which another gzip member begins; anything else after the first is padding."""


class Unpacker:
    """Bytes of one ``Content-Encoding`` in, what they say out, as soon as they say it.

    ``deflate`` is read with and without zlib's header: RFC 9110 §8.4.1.2 wants it, and servers leave it out. Of gzip,
    all members are read. Raises LineError for an encoding that is not known.
    """

    def __init__(self, encoding: str) -> None:
        if encoding not in _FORMATS:
            raise LineError(Fault.CUT, f"it is in an encoding that was not asked for: {encoding[:20]}")
        self._format = _FORMATS[encoding]
        self._begin = b""
        self._unzip: Any = zlib.decompressobj(self._format) if self._format == _GZIP else None

    def feed(self, chunk: bytes) -> bytes:
        """What ``chunk`` adds.

        Raises:
            LineError: It is in another encoding, or a few bytes unpack to more than anyone wants to read.
        """
        parts, left = [], BODY_LIMIT_BYTES
        if self._unzip is None:
            self._begin += chunk
            if len(self._begin) < 2:
                return b""
            chunk = self._begin
            self._unzip = zlib.decompressobj(_ZLIB if _has_head(chunk) else _BARE)
        while chunk:
            if self._unzip.eof:
                if self._format != _GZIP or not chunk.startswith(_MEMBER):
                    break
                self._unzip = zlib.decompressobj(_GZIP)
            parts.append(self._some(chunk, left))
            left -= len(parts[-1])
            if self._unzip.unconsumed_tail and left <= 0:
                raise LineError(Fault.OVERSIZE, f"it unpacks to more than {BODY_LIMIT_BYTES:,} bytes at once")
            chunk = self._unzip.unused_data if self._unzip.eof else self._unzip.unconsumed_tail
        return b"".join(parts)

    def _some(self, chunk: bytes, most: int) -> bytes:
        try:
            found: bytes = self._unzip.decompress(chunk, most)
        except zlib.error:
            raise LineError(Fault.CUT, "it is not in the encoding that its head names") from None
        return found


def _has_head(begin: bytes) -> bool:
    """Whether it begins as RFC 1950 §2.2 has it: method 8, and two bytes that 31 divides."""
    return begin[0] & 0x0F == 8 and int.from_bytes(begin[:2], "big") % 31 == 0
