"""Server-sent events in a hurry."""

from __future__ import annotations

from collections.abc import Sequence

from pytest_thermal.transport.sse import EventDecoder, told_as_error

_BEGIN, _END = b"data: ", b"\n\n"


class DataDecoder(EventDecoder):
    """The data of events alone, by the same rules, as bytes; an error is told in them (`told_as_error`).

    Quick where a chunk holds whole events of one line of data.
    """

    @property
    def is_clean(self) -> bool:
        """Whether nothing of what came is still to be made an event: the next bytes are read as the first were."""
        return not (self._unfinished or self._after_cr or self._data or self._kind)

    def data(self, chunk: bytes) -> Sequence[bytes]:
        """The data of the events that ``chunk`` completes."""
        if chunk.startswith(_BEGIN) and chunk.endswith(_END) and b"\r" not in chunk and self.is_clean:
            inner = chunk[len(_BEGIN) : -len(_END)]
            if b"\n" not in inner:
                return (inner,)
            parts = chunk[: -len(_END)].split(_END)
            if all(part.startswith(_BEGIN) and b"\n" not in part for part in parts):
                return [part[len(_BEGIN) :] for part in parts]
        return [told_as_error(kind, data).encode() for kind, data in self.feed(chunk)]

    def rest(self) -> Sequence[bytes]:
        """What a stream that ended without its last blank line still held."""
        return [told_as_error(kind, data).encode() for kind, data in self.end()]
