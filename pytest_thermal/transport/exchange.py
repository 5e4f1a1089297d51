"""One request and what came of it: an answer or a named fault, never an exception."""

from __future__ import annotations

import errno
import json
import socket
import ssl
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import Any

import httpx

from pytest_thermal.model.said import say
from pytest_thermal.transport.deadline import Patience

BODY_LIMIT_BYTES = 2_000_000
"""More than any model list; an endless body must not fill the bench's memory."""

MOST_STALE_CONNECTIONS = 2

UNLIMITED_SECONDS = 3600.0
"""In place of a client's "no timeout"."""

TOTAL_FACTOR = 2.0
"""A whole answer may take so many times as long as the next bytes of it. A gateway that queues a request sends blanks
meanwhile, and something on the way may let through a byte a second: neither ever runs into a read timeout."""


class Fault(str, Enum):
    """Why there is no (whole) answer."""

    RESOLVE = "resolve"
    REFUSED = "refused"
    UNREACHABLE = "unreachable"
    CONNECT_TIMEOUT = "connect timeout"
    TLS = "tls"
    RESET = "reset"
    CLOSED = "closed"
    """The peer closed the connection before an answer began."""
    CUT = "cut"
    """The answer began and broke off."""
    SILENCE = "silence"
    """Connected and sent; no byte came back in time."""
    SLOW = "slow"
    """Bytes kept coming, and the answer was not whole at the deadline for all of it."""
    OVERSIZE = "oversize"
    """The answer is longer than anything that a gateway says, and was not read to its end."""
    NOT_HTTP = "not http"
    PROXY = "proxy"
    UNSENDABLE = "unsendable"
    """Our side could not form the request."""
    OTHER = "other"


@dataclass(frozen=True, kw_only=True)
class Exchange:
    """A request and its answer. ``status`` is None when none came, and ``fault`` says why."""

    method: str
    url: str
    sent: Mapping[str, Any] | None = None
    """The JSON body that was sent."""
    status: int | None = None
    reason: str = ""
    headers: httpx.Headers = field(default_factory=httpx.Headers)
    body: bytes = b""
    fault: Fault | None = None
    fault_text: str = ""
    started_unix_seconds: float = 0.0
    latency_seconds: float = 0.0

    @property
    def ok(self) -> bool:
        """Whether a whole 2xx answer came."""
        return self.fault is None and self.status is not None and 200 <= self.status < 300

    @property
    def content_type(self) -> str:
        """Media type without parameters, in lower case; empty where none was sent."""
        labelled: str = self.headers.get("content-type", "")
        return labelled.split(";", 1)[0].strip().lower()

    @property
    def text(self) -> str:
        """The body as text; bytes that are no UTF-8 are replaced."""
        return self.body.decode("utf-8", errors="replace")

    @property
    def is_html(self) -> bool:
        """Whether a page for people came, whatever its label says."""
        start = self.text.lstrip("\ufeff \t\r\n")[:512].lower()
        return start.startswith(("<!doctype html", "<html", "<head", "<body")) or (
            self.content_type in ("text/html", "application/xhtml+xml") and "<" in start and self.json is None
        )

    @property
    def json(self) -> Any:
        """The body read as JSON whatever its label says (gateways send it as text/plain too); None if it is none.

        A character that the engine tore in half does not spoil the rest.
        """
        return read_json(self.body.decode(json.detect_encoding(self.body), errors="replace"))

    @property
    def line(self) -> str:
        """``GET /v1/models``: method and path."""
        return f"{self.method} {httpx.URL(self.url).path}"

    @property
    def status_line(self) -> str:
        """``401 Unauthorized``, or the fault in words."""
        if self.fault is not None:
            return self.fault_text or str(self.fault.value)
        return f"{self.status} {self.reason}".strip()


def read_json(text: str) -> Any:
    """``text`` read as JSON; None if it is none, or nested without end."""
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None


def exchange(
    client: httpx.Client,
    method: str,
    url: str,
    *,
    json_body: Mapping[str, Any] | None = None,
    form: Mapping[str, str] | None = None,
    query: Mapping[str, str] | None = None,
    auth: httpx.Auth | httpx._client.UseClientDefault | None = httpx.USE_CLIENT_DEFAULT,
    read_seconds: float | None = None,
    total_seconds: float | None = None,
    headers: Mapping[str, str] | None = None,
) -> Exchange:
    """Send one request and read its whole answer. Raises nothing for anything the network or the peer does.

    What is sent is ``json_body``, or the fields ``form``; ``query`` becomes part of the address.
    ``read_seconds`` (default: the client's) is for the next bytes; ``total_seconds`` is for the whole answer, by
    default twice as long, and the time for a connection.
    """
    limits = client.timeout.as_dict()
    read_seconds = read_seconds or limits["read"] or UNLIMITED_SECONDS
    patience = Patience(
        read_seconds, total_seconds=total_seconds or TOTAL_FACTOR * read_seconds + (limits["connect"] or 0.0)
    )
    extensions = {"timeout": {**limits, "read": patience}}
    started = time.time()
    begin = time.perf_counter()
    known: dict[str, Any] = {"method": method, "url": str(url), "sent": json_body, "started_unix_seconds": started}
    response: httpx.Response | None = None
    body = bytearray()
    try:
        request = client.build_request(
            method, url, json=json_body, data=form, params=query, headers=headers, extensions=extensions
        )
        known["url"] = str(request.url)
        response = send(client, request, auth=auth)
        known |= {"status": response.status_code, "reason": response.reason_phrase, "headers": response.headers}
        for chunk in response.iter_bytes():
            body += chunk
            if len(body) > BODY_LIMIT_BYTES:
                known |= {
                    "fault": Fault.OVERSIZE,
                    "fault_text": say("longer than {body_limit_bytes:,} bytes", body_limit_bytes=BODY_LIMIT_BYTES),
                }
                break
    except Exception as error:  # noqa: BLE001 - whatever it is, it is a finding, not a crash
        fault, text = read_fault(error, began=response is not None)
        if isinstance(error, httpx.ReadTimeout) and patience.ran_out:
            fault, text = (
                Fault.SLOW,
                say(
                    "not whole after {perf_counter:.1f} s, though bytes kept coming",
                    perf_counter=time.perf_counter() - begin,
                ),
            )
        known |= {"fault": fault, "fault_text": text}
    finally:
        if response is not None:
            response.close()
    return Exchange(**known, body=bytes(body), latency_seconds=time.perf_counter() - begin)


def send(
    client: httpx.Client,
    request: httpx.Request,
    *,
    auth: httpx.Auth | httpx._client.UseClientDefault | None = httpx.USE_CLIENT_DEFAULT,
) -> httpx.Response:
    """The head of the answer to ``request``; its body is still to be read.

    A kept connection may have been closed by the peer just when the request left: that says nothing of the gateway, so
    the request goes once more, over the next connection. What a new connection does is not repeated.
    """
    fresh = False

    def trace(event: str, _: object) -> None:
        nonlocal fresh
        fresh = fresh or "connect_tcp" in event

    request.extensions["trace"] = trace
    for _ in range(MOST_STALE_CONNECTIONS):
        try:
            return client.send(request, auth=auth, stream=True)
        except (httpx.ReadError, httpx.WriteError, httpx.RemoteProtocolError) as error:
            if fresh or read_fault(error, began=False)[0] not in (Fault.CLOSED, Fault.RESET):
                raise
    return client.send(request, auth=auth, stream=True)


def read_fault(error: BaseException, *, began: bool) -> tuple[Fault, str]:
    """Name what went wrong in ``error``; ``began`` says that the answer's head had come.

    httpx flattens the causes into few classes, so the operating system's error further down the chain decides.
    """
    return _system_fault(error, began=began) or _http_fault(error, began=began)


def _system_fault(error: BaseException, *, began: bool) -> tuple[Fault, str] | None:
    for cause in _chain(error):
        if isinstance(cause, ssl.SSLError):
            if isinstance(error, httpx.ReadError | httpx.WriteError) and isinstance(cause, _TLS_ENDS):
                return (Fault.CUT if began else Fault.CLOSED), say("the TLS connection ended")
            return Fault.TLS, getattr(cause, "reason", None) or str(cause)
    for cause in _chain(error):
        if isinstance(cause, socket.gaierror):
            return Fault.RESOLVE, cause.strerror or str(cause)
        fault = _BY_ERRNO.get(cause.errno or 0) if isinstance(cause, OSError) else None
        if fault is not None and isinstance(cause, OSError):
            return (Fault.CUT if fault is Fault.RESET and began else fault), cause.strerror or str(cause)
    return None


def _http_fault(error: BaseException, *, began: bool) -> tuple[Fault, str]:
    text = str(error) or type(error).__name__
    if isinstance(error, httpx.ReadTimeout | httpx.WriteTimeout):
        return (Fault.CUT, say("the answer stopped half-way")) if began else (Fault.SILENCE, say("no answer in time"))
    for kinds, fault, fault_begun, words in _BY_CLASS:
        if isinstance(error, kinds):
            return (fault_begun if began else fault), words or text
    if isinstance(error, httpx.RemoteProtocolError):
        return _protocol_fault(text, began=began)
    return Fault.OTHER, say("{name}: {text}", name=type(error).__name__, text=text)


def _protocol_fault(text: str, *, began: bool) -> tuple[Fault, str]:
    if began:
        return Fault.CUT, text
    if "disconnected" in text.lower():
        return Fault.CLOSED, text
    if "location header" in text.lower():
        return Fault.OTHER, say("a redirect to something that is no address ({text})", text=text)
    return Fault.NOT_HTTP, text


_TLS_ENDS = (ssl.SSLEOFError, ssl.SSLZeroReturnError)

_BY_CLASS: tuple[tuple[type[Exception] | tuple[type[Exception], ...], Fault, Fault, str], ...] = (
    (
        (httpx.ConnectTimeout, httpx.PoolTimeout),
        Fault.CONNECT_TIMEOUT,
        Fault.CONNECT_TIMEOUT,
        say("no connection in time"),
    ),
    (httpx.ProxyError, Fault.PROXY, Fault.PROXY, ""),
    (httpx.DecodingError, Fault.CUT, Fault.CUT, say("it is not in the encoding that its head names")),
    # The text of these may quote the header, and with it the key.
    (
        (httpx.LocalProtocolError, httpx.InvalidURL, httpx.UnsupportedProtocol, UnicodeError),
        Fault.UNSENDABLE,
        Fault.UNSENDABLE,
        say("it cannot be written as HTTP"),
    ),
    ((httpx.ReadError, httpx.WriteError), Fault.CLOSED, Fault.CUT, ""),
)
"""By class of the error: the fault before the answer began, the one after, and words in place of httpx's own."""

_BY_ERRNO = {
    errno.ECONNREFUSED: Fault.REFUSED,
    errno.ECONNRESET: Fault.RESET,
    errno.EPIPE: Fault.RESET,
    errno.ECONNABORTED: Fault.RESET,
    errno.EHOSTUNREACH: Fault.UNREACHABLE,
    errno.ENETUNREACH: Fault.UNREACHABLE,
    errno.EHOSTDOWN: Fault.UNREACHABLE,
    errno.ENETDOWN: Fault.UNREACHABLE,
    errno.EACCES: Fault.UNREACHABLE,
    errno.EPERM: Fault.UNREACHABLE,
    errno.EINVAL: Fault.UNREACHABLE,
}


def _chain(error: BaseException) -> list[BaseException]:
    found: list[BaseException] = []
    current: BaseException | None = error
    while current is not None and current not in found:
        found.append(current)
        current = current.__cause__ or current.__context__
    return found
