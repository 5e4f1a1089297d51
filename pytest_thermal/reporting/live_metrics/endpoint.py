"""Where Prometheus asks: an HTTP server of this process, gone with it."""

from __future__ import annotations

import errno
import ipaddress
import socket
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pytest_thermal.model.told_error import ToldError
from pytest_thermal.reporting.live_metrics.families import Named, families
from pytest_thermal.reporting.live_metrics.followed_run import FollowedRun, Snapshot

if TYPE_CHECKING:
    from prometheus_client import Metric

LOOK_SECONDS = 1.0
LOOPBACK = "127.0.0.1"
_MOST_PORT = 65535


class LiveMetricsError(ToldError):
    """Prometheus cannot be served."""


@dataclass(frozen=True, kw_only=True)
class Address:
    """Where to listen."""

    host: str
    port: int
    """0: any that is free."""

    @property
    def url(self) -> str:
        """What to scrape."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"http://{host}:{self.port}/metrics"


def read_address(text: str) -> Address:
    """``9105``, ``0.0.0.0:9105``, ``[::]:9105``; without an address this machine alone can ask.

    Raises:
        ValueError: It is none.
    """
    host, _, port = text.strip().rpartition(":")
    if not port.isascii() or not port.isdigit() or int(port) > _MOST_PORT:
        raise ValueError(f"{text!r} is no port from 0 to {_MOST_PORT}, and no address with one: 9105, 0.0.0.0:9105")
    if host.startswith("[") and host.endswith("]"):
        host = host[1:-1]
    try:
        known = str(ipaddress.ip_address(host)) if host else LOOPBACK
    except ValueError:
        raise ValueError(f"{text!r}: {host!r} is no IP address of this machine: 127.0.0.1, 0.0.0.0, [::]") from None
    return Address(host=known, port=int(port))


def check_free(address: Address) -> None:
    """That one could listen there now.

    Raises:
        LiveMetricsError: The library is not installed, or it cannot be listened there.
    """
    _library()
    family = socket.AF_INET6 if ":" in address.host else socket.AF_INET
    with socket.socket(family, socket.SOCK_STREAM) as tried:
        tried.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)  # as the server does: what is being closed is free
        try:
            tried.bind((address.host, address.port))
            tried.listen(1)
        except OSError as error:
            raise _told(address, error) from error


class Endpoint:
    """Serves a run from its beginning to ``close``.

    A thread looks at the run directory once a second, whether or not anybody asks: a scrape after hours would else
    have hours to read. An answer costs no more than what is true now.

    Args:
        address: Where to listen.
        named: Whose run it is.
        run: Its directory; None while there is none.

    Raises:
        LiveMetricsError: It cannot be listened there.
    """

    def __init__(self, address: Address, *, named: Named, run: Callable[[], Path | None]) -> None:
        library = _library()
        self._named = named
        self._where = run
        self._followed: FollowedRun | None = None
        self._now = Snapshot()
        self._closed = threading.Event()
        registry = library.CollectorRegistry(auto_describe=False)
        registry.register(self)
        try:
            self._server, self._thread = library.start_http_server(address.port, address.host, registry)
        except OSError as error:
            raise _told(address, error) from error
        self.address = Address(host=address.host, port=self._server.server_port)
        self._looking = threading.Thread(target=self._look, name="thermal-metrics", daemon=True)
        self._looking.start()

    def collect(self) -> Iterator[Metric]:
        """For the library: all metrics, as of the last look."""
        yield from families(self._now, self._named)

    def close(self) -> None:
        """Listen no more. May be called twice."""
        if self._closed.is_set():
            return
        self._closed.set()
        self._server.shutdown()
        self._server.server_close()
        self._thread.join(2.0)
        self._looking.join(2.0)

    def _look(self) -> None:
        while not self._closed.wait(LOOK_SECONDS):
            if self._followed is None:
                run = self._where()
                self._followed = FollowedRun(run) if run is not None else None
            if self._followed is not None:
                try:
                    self._now = self._followed.look()
                except Exception:  # noqa: BLE001 - a run is not lost because it cannot be watched
                    self._now = Snapshot(run=self._now.run, simulated=self._now.simulated)  # and nothing old is served


def _library() -> Any:
    try:
        import prometheus_client  # noqa: PLC0415 - an extra
    except ModuleNotFoundError as error:
        raise LiveMetricsError(
            "serving Prometheus needs prometheus_client, which is not installed",
            remedy="pip install 'pytest-thermal[prometheus]', or leave out --prometheus-port",
        ) from error
    return prometheus_client


def _told(address: Address, error: OSError) -> LiveMetricsError:
    likely, remedy = {
        errno.EADDRINUSE: (
            "another run serves there, or an exporter",
            f"--prometheus-port with another port; ss -ltnp 'sport = :{address.port}' says whose this one is",
        ),
        errno.EACCES: ("ports below 1024 are the system's", "--prometheus-port with a port above 1023"),
        errno.EADDRNOTAVAIL: ("no interface of this machine has that address", "ip address lists those that it has"),
    }.get(error.errno or 0, ("", "--prometheus-port with another address or port"))
    where = address.url.removeprefix("http://").removesuffix("/metrics")
    return LiveMetricsError(
        f"--prometheus-port: cannot listen on {where}: {error.strerror or error}", likely=likely, remedy=remedy
    )
