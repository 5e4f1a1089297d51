"""A streamed answer: server-sent events with their times of arrival, and how the stream ended."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import httpx

from pytest_thermal.model.said import say
from pytest_thermal.transport.deadline import Patience
from pytest_thermal.transport.exchange import BODY_LIMIT_BYTES, Exchange, Fault, read_fault, read_json, send

DONE = "[DONE]"
AFTER_DONE_SECONDS = 0.2


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
        return read_json(self.data)


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
    """POST ``json_body`` and collect events until the stream's end.

    A stream that is silent for ``stall_seconds`` is given up, and so is one that takes longer than ``total_seconds`` in
    all. After ``[DONE]`` only a moment is waited for the end: some gateways then leave the connection open. Raises
    nothing for what the peer does.
    """
    patience = Patience(stall_seconds, total_seconds=total_seconds)
    begin = time.perf_counter()
    known: dict[str, Any] = {
        "method": "POST",
        "url": url,
        "sent": json_body,
        "started_unix_seconds": time.time(),
    }
    response: httpx.Response | None = None
    raw = bytearray()
    done = False
    events: list[StreamEvent] = []
    decoder = EventDecoder()
    extensions = {"timeout": {**client.timeout.as_dict(), "read": patience}}
    try:
        request = client.build_request("POST", url, json=json_body, extensions=extensions)
        known["url"] = str(request.url)
        response = send(client, request)
        known |= {"status": response.status_code, "reason": response.reason_phrase, "headers": response.headers}
        for chunk in response.iter_bytes():
            now = time.perf_counter() - begin
            raw += chunk
            new = [StreamEvent(data=data, kind=kind, at_seconds=now) for kind, data in decoder.feed(chunk)]
            events += new
            if any(event.is_done for event in new):
                done = True
                patience.end_within(AFTER_DONE_SECONDS)
            if len(raw) > BODY_LIMIT_BYTES:
                known |= {
                    "fault": Fault.OVERSIZE,
                    "fault_text": say("longer than {body_limit_bytes:,} bytes", body_limit_bytes=BODY_LIMIT_BYTES),
                }
                break
    except httpx.ReadTimeout:
        if done:
            pass
        elif patience.ran_out:
            text = say(
                "still not at its end after {perf_counter:.1f} s, though bytes kept coming",
                perf_counter=time.perf_counter() - begin,
            )
            known |= {"fault": Fault.SLOW, "fault_text": text}
        else:
            known |= {
                "fault": Fault.SILENCE,
                "fault_text": say("no byte for {stall_seconds:g} s", stall_seconds=stall_seconds),
            }
    except Exception as error:  # noqa: BLE001 - whatever it is, it is a finding, not a crash
        fault, text = read_fault(error, began=response is not None)
        known |= {"fault": fault, "fault_text": text}
    finally:
        if response is not None:
            response.close()
    now = time.perf_counter() - begin
    events += [StreamEvent(data=data, kind=kind, at_seconds=now) for kind, data in decoder.end()]
    return StreamExchange(exchange=Exchange(**known, body=bytes(raw), latency_seconds=now), events=tuple(events))


def told_as_error(kind: str, data: str) -> str:
    """The data of an event; of one whose kind says that it is an error, as ``{"error": …}``, if it does not say so.

    Some gateways name the error in the event's kind alone, and its data look like any other.
    """
    if "error" not in kind.lower():
        return data
    told = read_json(data)
    return data if isinstance(told, dict) and told.get("error") else json.dumps({"error": told or data or kind})


_LINE_END = re.compile(rb"\r\n?|\n")


class EventDecoder:
    """Bytes in, ``(event kind, data)`` out, by the WHATWG event-stream rules.

    LF, CR and CRLF end a line, lines of data are joined by LF, comments are dropped. Bytes are split at line ends
    before they are decoded, so a character torn between two chunks comes out whole.
    """

    def __init__(self) -> None:
        self._unfinished: list[bytes] = []
        self._after_cr = False
        self._data: list[str] = []
        self._kind = ""

    def feed(self, chunk: bytes) -> Iterator[tuple[str, str]]:
        """The events that ``chunk`` completes."""
        # A CR ended its line at once; the LF that belongs to it may only come now.
        start = 1 if self._after_cr and chunk.startswith(b"\n") else 0
        if chunk:
            self._after_cr = chunk.endswith(b"\r")
        for end in _LINE_END.finditer(chunk, start):
            self._unfinished.append(chunk[start : end.start()])
            start = end.end()
            yield from self._line()
        if start < len(chunk):
            self._unfinished.append(chunk[start:])

    def end(self) -> Iterator[tuple[str, str]]:
        """What a stream that ended without its last blank line still held; readers in the field accept it."""
        if self._unfinished:
            yield from self._line()
        yield from self._line()

    def _line(self) -> Iterator[tuple[str, str]]:
        raw = b"".join(self._unfinished)
        self._unfinished.clear()
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
