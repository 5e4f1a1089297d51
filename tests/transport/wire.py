"""Servers that say exactly the bytes a test wants said: HTTP that is right, odd, broken, slow, or none at all."""

from __future__ import annotations

import contextlib
import json
import socket
import ssl
import struct
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tests.support.clock import Leaping
from tests.support.patience import PATIENCE_SECONDS

if TYPE_CHECKING:
    from types import TracebackType

    from typing_extensions import Self


@dataclass(frozen=True, kw_only=True)
class Asked:
    """A request as it came."""

    method: str
    target: str
    headers: Mapping[str, str]
    body: bytes


class Peer:
    """One connection, seen from the server."""

    def __init__(self, sock: socket.socket, stopping: threading.Event, asked: list[Asked]) -> None:
        self.sock = sock
        self._stopping = stopping
        self._asked = asked
        self._pending = b""

    def request(self) -> Asked | None:
        """The next request, whole; None when the client is gone."""
        while b"\r\n\r\n" not in self._pending:
            if not self._more():
                return None
        head, self._pending = self._pending.split(b"\r\n\r\n", 1)
        first, *lines = head.decode("latin-1").split("\r\n")
        method, target, _ = first.split(" ", 2)
        headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
        length = int(headers.get("content-length", "0"))
        while len(self._pending) < length:
            if not self._more():
                return None
        body, self._pending = self._pending[:length], self._pending[length:]
        found = Asked(method=method, target=target, headers=headers, body=body)
        self._asked.append(found)
        return found

    def send(self, content: bytes) -> None:
        self.sock.sendall(content)

    def drip(self, content: bytes, *, every_seconds: float, clock: Leaping | None = None) -> None:
        """A byte at a time, until the test is over. With a ``clock`` it is this one on which the seconds pass."""
        for byte in content:
            self.send(bytes([byte]))
            if clock is not None:
                clock.leap(every_seconds)
            if self.hold(0.01 if clock is not None else every_seconds):
                return

    def hold(self, seconds: float = PATIENCE_SECONDS) -> bool:
        """Keep still; True when the test is over."""
        return self._stopping.wait(seconds)

    def reset(self) -> None:
        """Close so that the client sees a reset."""
        self.sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.sock.close()

    def _more(self) -> bool:
        chunk = self.sock.recv(65536)
        self._pending += chunk
        return bool(chunk)


Script = Callable[[Peer], None]


class Wire:
    """A server on loopback that runs ``script`` for each connection, in a thread of its own."""

    def __init__(self, script: Script, *, tls: ssl.SSLContext | None = None, host: str = "127.0.0.1") -> None:
        self.asked: list[Asked] = []
        self.host = host
        self._script = script
        self._tls = tls
        self._stopping = threading.Event()
        self._threads: list[threading.Thread] = []
        self._open: set[socket.socket] = set()
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        self._listener = socket.socket(family, socket.SOCK_STREAM)
        self._listener.bind((host, 0))
        self._listener.listen(64)
        self.port: int = self._listener.getsockname()[1]

    @property
    def netloc(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"

    @property
    def url(self) -> str:
        """The base address, as a bench file would have it."""
        return f"{'https' if self._tls else 'http'}://{self.netloc}/v1"

    def __enter__(self) -> Self:
        self._start(self._accept)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._stopping.set()
        with contextlib.suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        for sock in list(self._open):
            with contextlib.suppress(OSError):
                sock.shutdown(socket.SHUT_RDWR)
        for thread in self._threads:
            thread.join(PATIENCE_SECONDS)

    def _start(self, work: Callable[[], None]) -> None:
        thread = threading.Thread(target=work, daemon=True)
        self._threads.append(thread)
        thread.start()

    def _accept(self) -> None:
        while not self._stopping.is_set():
            try:
                sock, _ = self._listener.accept()
            except OSError:
                return
            self._start(lambda sock=sock: self._serve(sock))  # type: ignore[misc]

    def _serve(self, sock: socket.socket) -> None:
        self._open.add(sock)
        spoken = sock
        try:
            if self._stopping.is_set():
                return  # accepted while those that were open were shut down
            if self._tls is not None:
                spoken = self._tls.wrap_socket(sock, server_side=True)
                self._open.add(spoken)
            self._script(Peer(spoken, self._stopping, self.asked))
        except OSError:
            pass  # the client went away, or refused our certificate
        finally:
            self._open -= {sock, spoken}
            spoken.close()
            sock.close()


def answer(
    body: object = None, *, status: str = "200 OK", kind: str = "application/json", close: bool = False, **headers: str
) -> bytes:
    """A whole answer; a body that is not bytes is sent as JSON."""
    content = body if isinstance(body, bytes) else b"" if body is None else json.dumps(body).encode()
    lines = [f"HTTP/1.1 {status}", f"content-length: {len(content)}"]
    lines += [f"content-type: {kind}"] if kind else []
    lines += ["connection: close"] if close else []
    lines += [f"{name.replace('_', '-')}: {value}" for name, value in headers.items()]
    return "\r\n".join(lines).encode("latin-1") + b"\r\n\r\n" + content


def always(content: bytes) -> Script:
    """Answers every request with the same bytes."""

    def script(peer: Peer) -> None:
        while (asked := peer.request()) is not None:
            peer.send(content)
            if asked.headers.get("connection") == "close":
                return

    return script


def once(content: bytes) -> Script:
    """Answers one request and closes the connection."""

    def script(peer: Peer) -> None:
        if peer.request() is not None:
            peer.send(content)

    return script


def proxy(*, refusal: bytes | None = None, login: str | None = None) -> Script:
    """A proxy, for CONNECT and for plain requests. With ``refusal`` it says that to everything; with ``login`` (the
    value of `Proxy-Authorization`) it says 407 to whoever does not bring it."""

    def script(peer: Peer) -> None:
        while (asked := peer.request()) is not None:
            if refusal is not None:
                peer.send(refusal)
                return
            if login is not None and asked.headers.get("proxy-authorization") != login:
                peer.send(answer(b"who are you?", status="407 Proxy Authentication Required", kind="text/plain"))
                return
            if asked.method == "CONNECT":
                _tunnel(peer, asked.target)
                return
            _forward(peer, asked)

    return script


def _tunnel(peer: Peer, target: str) -> None:
    host, _, port = target.rpartition(":")
    with socket.create_connection((host.strip("[]"), int(port)), timeout=PATIENCE_SECONDS) as far:
        peer.send(b"HTTP/1.1 200 Connection established\r\n\r\n")
        back = threading.Thread(target=_pour, args=(far, peer.sock), daemon=True)
        back.start()
        _pour(peer.sock, far)
        back.join(PATIENCE_SECONDS)


def _forward(peer: Peer, asked: Asked) -> None:
    _, _, rest = asked.target.partition("://")
    netloc, _, path = rest.partition("/")
    host, _, port = netloc.rpartition(":")
    headers = "".join(
        f"{name}: {value}\r\n" for name, value in asked.headers.items() if not name.startswith(("proxy-", "connection"))
    )
    with socket.create_connection((host.strip("[]"), int(port)), timeout=PATIENCE_SECONDS) as far:
        head = f"{asked.method} /{path} HTTP/1.1\r\n{headers}connection: close\r\n\r\n"
        far.sendall(head.encode("latin-1") + asked.body)
        _pour(far, peer.sock)


def _pour(source: socket.socket, sink: socket.socket) -> None:
    with contextlib.suppress(OSError):
        while chunk := source.recv(65536):
            sink.sendall(chunk)
    with contextlib.suppress(OSError):
        sink.shutdown(socket.SHUT_WR)
