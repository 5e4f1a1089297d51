"""A streamed answer: server-sent events with their times of arrival, and how the stream ended."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import httpx

from pytest_thermal.transport.exchange import BODY_LIMIT_BYTES, Exchange, Fault, read_fault

DONE = "[DONE]"


@dataclass(frozen=True, kw_only=True)
class StreamEvent:
    """One event: its data, and the seconds from sending the request to its arrival."""

    data: str
    at_seconds: float
    kind: str = "message"

    @property
    def is_done(self) -> bool:
        """Whether this is the closing ``[DONE]``."""
        return self.data.strip() == DONE

    @property
    def json(self) -> Any:
        """The data read as JSON; None if it is none."""
        try:
            return json.loads(self.data)
        except ValueError:
            return None


@dataclass(frozen=True, kw_only=True)
class StreamExchange:
    """A streamed request: the exchange (its body is what came as it came), and the events in it."""

    exchange: Exchange
    events: tuple[StreamEvent, ...] = ()

    @property
    def is_event_stream(self) -> bool:
        """Whether anything that looks like server-sent events came."""
        return bool(self.events) or self.exchange.content_type == "text/event-stream"


def stream_exchange(
    client: httpx.Client,
    url: str,
    *,
    json_body: Mapping[str, Any],
    stall_seconds: float,
    total_seconds: float,
) -> StreamExchange:
    """POST ``json_body`` and collect events until the stream ends, is silent for ``stall_seconds``, or takes
    longer than ``total_seconds`` in all (reported as a stall too). Raises nothing for what the peer does."""
    begin = time.perf_counter()
    known: dict[str, Any] = {
        "method": "POST",
        "url": url,
        "sent": json_body,
        "started_unix_seconds": time.time(),
    }
    response: httpx.Response | None = None
    raw = bytearray()
    events: list[StreamEvent] = []
    decoder = EventDecoder()
    timeout = {**client.timeout.as_dict(), "read": stall_seconds}
    try:
        request = client.build_request("POST", url, json=json_body, extensions={"timeout": timeout})
        known["url"] = str(request.url)
        response = client.send(request, stream=True)
        known |= {"status": response.status_code, "reason": response.reason_phrase, "headers": response.headers}
        for chunk in response.iter_bytes():
            now = time.perf_counter() - begin
            raw += chunk
            events += [StreamEvent(data=data, kind=kind, at_seconds=now) for kind, data in decoder.feed(chunk)]
            if now > total_seconds:
                known |= {"fault": Fault.SILENCE, "fault_text": f"still not at its end after {now:.1f} s"}
                break
            if len(raw) > BODY_LIMIT_BYTES:
                break
    except httpx.ReadTimeout:
        known |= {"fault": Fault.SILENCE, "fault_text": f"no byte for {stall_seconds:g} s"}
    except Exception as error:  # noqa: BLE001 - whatever it is, it is a finding, not a crash
        fault, text = read_fault(error, began=response is not None)
        known |= {"fault": fault, "fault_text": text}
    finally:
        if response is not None:
            response.close()
    now = time.perf_counter() - begin
    events += [StreamEvent(data=data, kind=kind, at_seconds=now) for kind, data in decoder.end()]
    return StreamExchange(
        exchange=Exchange(**known, body=bytes(raw), latency_seconds=now), events=tuple(events)
    )


class EventDecoder:
    """Bytes in, ``(event kind, data)`` out, by the WHATWG event-stream rules: LF, CR and CRLF end a line, lines of
    data are joined by LF, comments are dropped. Bytes are split at line ends before they are decoded, so a
    character torn between two chunks comes out whole."""

    def __init__(self) -> None:
        self._pending = b""
        self._data: list[str] = []
        self._kind = ""

    def feed(self, chunk: bytes) -> Iterator[tuple[str, str]]:
        """The events that ``chunk`` completes."""
        self._pending += chunk
        while True:
            end = _line_end(self._pending)
            if end is None:
                return
            line, self._pending = self._pending[: end[0]], self._pending[end[1] :]
            yield from self._line(line)

    def end(self) -> Iterator[tuple[str, str]]:
        """What a stream that ended without its last blank line still held; readers in the field accept it."""
        if self._pending:
            line, self._pending = self._pending.rstrip(b"\r"), b""
            yield from self._line(line)
        yield from self._line(b"")

    def _line(self, raw: bytes) -> Iterator[tuple[str, str]]:
        line = raw.decode("utf-8", errors="replace").removeprefix("\ufeff")
        if not line:
            if self._data:
                yield self._kind or "message", "\n".join(self._data)
            self._data, self._kind = [], ""
            return
        name, _, value = line.partition(":")
        value = value.removeprefix(" ")
        if name == "data":
            self._data.append(value)
        elif name == "event":
            self._kind = value


def _line_end(buffer: bytes) -> tuple[int, int] | None:
    """Where the first line ends and the next begins; None when no whole line is there yet."""
    for index, byte in enumerate(buffer):
        if byte == 0x0A:
            return index, index + 1
        if byte == 0x0D:
            if index + 1 == len(buffer):
                return None  # a LF may follow in the next chunk
            return index, index + (2 if buffer[index + 1] == 0x0A else 1)
    return None
