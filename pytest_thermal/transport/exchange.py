"""One request and what came of it: an answer or a named fault, never an exception."""

from __future__ import annotations

import errno
import json
import ssl
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import Any

import httpx

BODY_LIMIT_BYTES = 2_000_000
"""More than any model list; an endless body must not fill the bench's memory."""


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
        return self.headers.get("content-type", "").split(";", 1)[0].strip().lower()

    @property
    def text(self) -> str:
        """The body as text; bytes that are no UTF-8 are replaced."""
        return self.body.decode("utf-8", errors="replace")

    @property
    def is_html(self) -> bool:
        """Whether a page for people came, whatever its label says."""
        start = self.text[:512].lstrip("\ufeff \t\r\n").lower()
        return start.startswith(("<!doctype html", "<html", "<head", "<body")) or (
            self.content_type == "text/html" and "<" in start
        )

    @property
    def json(self) -> Any:
        """The body read as JSON whatever its label says (gateways send it as text/plain too); None if it is none."""
        try:
            return json.loads(self.body)
        except ValueError:
            return None

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


def exchange(
    client: httpx.Client,
    method: str,
    url: str,
    *,
    json_body: Mapping[str, Any] | None = None,
    auth: httpx.Auth | None | httpx._client.UseClientDefault = httpx.USE_CLIENT_DEFAULT,
    read_seconds: float | None = None,
    headers: Mapping[str, str] | None = None,
) -> Exchange:
    """Send one request and read its whole answer. Raises nothing for anything the network or the peer does."""
    extensions = {} if read_seconds is None else {"timeout": _timeout(client, read_seconds)}
    started = time.time()
    begin = time.perf_counter()
    known: dict[str, Any] = {"method": method, "url": str(url), "sent": json_body, "started_unix_seconds": started}
    response: httpx.Response | None = None
    body = bytearray()
    try:
        request = client.build_request(method, url, json=json_body, headers=headers, extensions=extensions)
        known["url"] = str(request.url)
        response = client.send(request, auth=auth, stream=True)
        known |= {"status": response.status_code, "reason": response.reason_phrase, "headers": response.headers}
        for chunk in response.iter_bytes():
            body += chunk
            if len(body) > BODY_LIMIT_BYTES:
                break
    except Exception as error:  # noqa: BLE001 - whatever it is, it is a finding, not a crash
        fault, text = read_fault(error, began=response is not None)
        known |= {"fault": fault, "fault_text": text}
    finally:
        if response is not None:
            response.close()
    return Exchange(**known, body=bytes(body), latency_seconds=time.perf_counter() - begin)


def read_fault(error: BaseException, *, began: bool) -> tuple[Fault, str]:
    """Name what went wrong in ``error``; ``began`` says that the answer's head had come.

    httpx flattens the causes into few classes, so the operating system's error further down the chain decides.
    """
    chain = _chain(error)
    for cause in chain:
        if isinstance(cause, ssl.SSLError):
            return Fault.TLS, cause.reason or str(cause)
    for cause in chain:
        if isinstance(cause, OSError) and not isinstance(cause, TimeoutError):
            fault = _BY_ERRNO.get(cause.errno or 0)
            if type(cause).__name__ == "gaierror":
                return Fault.RESOLVE, cause.strerror or str(cause)
            if fault is not None:
                if fault is Fault.RESET and began:
                    fault = Fault.CUT
                return fault, cause.strerror or str(cause)
    text = str(error) or type(error).__name__
    if isinstance(error, httpx.ConnectTimeout | httpx.PoolTimeout):
        return Fault.CONNECT_TIMEOUT, "no connection in time"
    if isinstance(error, httpx.TimeoutException):
        return (Fault.CUT, "the answer stopped half-way") if began else (Fault.SILENCE, "no answer in time")
    if isinstance(error, httpx.ProxyError):
        return Fault.PROXY, text
    if isinstance(error, httpx.RemoteProtocolError):
        if began:
            return Fault.CUT, text
        if "disconnected" in text.lower():
            return Fault.CLOSED, text
        return Fault.NOT_HTTP, text
    if isinstance(error, httpx.DecodingError):
        return Fault.CUT, text
    if isinstance(error, httpx.LocalProtocolError | httpx.InvalidURL | httpx.UnsupportedProtocol | UnicodeError):
        # The text may quote the header, and with it the key.
        return Fault.UNSENDABLE, type(error).__name__
    if isinstance(error, httpx.ReadError | httpx.WriteError):
        return (Fault.CUT if began else Fault.CLOSED), text
    return Fault.OTHER, f"{type(error).__name__}: {text}"


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
    errno.ETIMEDOUT: Fault.CONNECT_TIMEOUT,
}


def _chain(error: BaseException) -> list[BaseException]:
    found: list[BaseException] = []
    current: BaseException | None = error
    while current is not None and current not in found:
        found.append(current)
        current = current.__cause__ or current.__context__
    return found


def _timeout(client: httpx.Client, read_seconds: float) -> dict[str, float | None]:
    return {**client.timeout.as_dict(), "read": read_seconds}
