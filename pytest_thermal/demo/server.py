"""The embedded gateway as the rest of the world uses it: started and stopped, with an address and a key."""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from .behaviours.base import Behaviour, Settings
from .behaviours.key import fresh_key
from .call import Counters, ServedRequest
from .errors import DemoError
from .faults import Fault, find_fault

if TYPE_CHECKING:
    import asyncio
    from types import TracebackType

    from typing_extensions import Self

    from .certificates import Certificate
    from .state import EngineGauge

LOOPBACK = "127.0.0.1"

_FULL_AFTER_SECONDS = 0.25
"""A connection attempt on loopback that takes longer gets no answer."""
_MOST_FILLERS = 16
_PATIENCE_SECONDS = 60.0


class DemoGateway:
    """A simulated OpenAI-compatible gateway on loopback, served by one daemon thread.

    The socket is bound at once, so that the address is known; it is served between `start()` and `stop()`, or
    as a context manager. A gateway that was stopped cannot be started again.

    Args:
        fault: a name from `FAULTS`, or `None` for a healthy gateway.
        key: the key that the gateway accepts; `None` makes a random one.
        models: their names, as listed.
        service_seconds: from the request to the first token.
        token_seconds: from one token to the next.
        slots: requests served at a time; others wait in the order in which they came.
        requests_per_minute: limit per key over any minute, or `None` for none.
        tokens_per_minute: the same for prompt and completion tokens.
        parallel_limit: requests at a time and key beyond which there is a 429, or `None` for none.
        port: the port to bind; 0 lets the system choose.
        state_folder: of the simulated machine (`state.make_folder`), which gets warm by what is generated here;
            `None` for none.

    Raises:
        ValueError: no fault has this name (the message lists near ones), or a number is out of range.
        DemoError: the fault cannot be simulated here, or the port is taken; the text says what to try.
    """

    def __init__(
        self,
        *,
        fault: str | None = None,
        key: str | None = None,
        models: Sequence[str] = ("demo-chat", "demo-chat-mini"),
        service_seconds: float = 0.02,
        token_seconds: float = 0.004,
        slots: int = 32,
        requests_per_minute: int | None = None,
        tokens_per_minute: int | None = None,
        parallel_limit: int | None = None,
        port: int = 0,
        state_folder: Path | None = None,
    ) -> None:
        self.fault: Fault | None = find_fault(fault) if fault is not None else None
        self._behaviour = self.fault.behaviour() if self.fault else Behaviour()
        self._settings = self._behaviour.settings(
            _checked(
                Settings(
                    models=tuple(models),
                    service_seconds=service_seconds,
                    token_seconds=token_seconds,
                    slots=slots,
                    requests_per_minute=requests_per_minute,
                    tokens_per_minute=tokens_per_minute,
                    parallel_limit=parallel_limit,
                )
            )
        )
        self.gateway_key: str = fresh_key() if key is None else key
        self.key: str = self._behaviour.bench_key(self.gateway_key)
        self._counters = Counters()
        self._certificate = self._make_certificate()
        self._authority_file: Path | None = None
        self._fillers: list[socket.socket] = []
        self._thread: threading.Thread | None = None
        self._stop_serving: Callable[[], None] = lambda: None
        self._stopped = False
        self._state_folder = state_folder
        self._gauge: EngineGauge | None = None
        self._socket = _bind(port)
        self.port: int = self._socket.getsockname()[1]

    @property
    def url(self) -> str:
        """The address as a bench file would hold it; a fault may have changed it."""
        host = self._behaviour.host or LOOPBACK
        return f"{self._behaviour.scheme}://{host}:{self.port}{self._behaviour.url_path}"

    @property
    def ca_file(self) -> Path | None:
        """The authority to trust (`SSL_CERT_FILE`) under a fault of TLS, kept until `stop()`; else `None`."""
        if self._certificate is None or self._certificate.authority is None or self._stopped:
            return None
        if self._authority_file is None:
            self._authority_file = _write_temporary(self._certificate.authority)
        return self._authority_file

    @property
    def requests_served(self) -> int:
        """Requests of any kind that got an answer, good or bad."""
        return self._counters.requests_served

    @property
    def output_tokens_served(self) -> int:
        """Tokens generated, whether or not their client was still there."""
        return self._counters.output_tokens_served

    @property
    def max_parallel_seen(self) -> int:
        """The most chat requests that were in hand at a time, waiting ones included."""
        return self._counters.max_parallel_seen

    @property
    def served(self) -> list[ServedRequest]:
        """The last 10,000 requests in the order of their answers; those that got none have no status."""
        return list(self._counters.served)

    def start(self) -> None:
        """Serve, or put the fault in force. Returns when a client may come; a second call does nothing.

        Raises:
            DemoError: it was stopped before, this system cannot simulate the fault, or the folder cannot be written.
        """
        if self._stopped:
            raise DemoError("this demo gateway was stopped\ntry: make a new one")
        if self._behaviour.listening == "refuses" or self._thread or self._fillers:
            return
        if self._behaviour.listening == "full":
            self._fill_backlog()
            return
        if self._state_folder is not None:
            self._gauge = _make_gauge(self._state_folder)
        ready = threading.Event()
        failure: list[BaseException] = []
        self._thread = threading.Thread(
            target=self._run, args=(ready, failure), name="pytest-thermal-demo", daemon=True
        )
        self._thread.start()
        if not ready.wait(_PATIENCE_SECONDS):
            failure.append(TimeoutError(f"its thread was not ready within {_PATIENCE_SECONDS:.0f} s"))
        if failure:
            self.stop()
            raise DemoError(f"the demo gateway did not start: {failure[0]}") from failure[0]

    def stop(self) -> None:
        """Drop every client, end the thread and free the port. A second call does nothing."""
        self._stopped = True
        self._stop_serving()
        if self._thread is not None and self._thread is not threading.current_thread():
            self._thread.join(_PATIENCE_SECONDS)
        self._thread = None
        if self._gauge is not None:
            self._gauge.close()
        for filler in self._fillers:
            filler.close()
        self._fillers.clear()
        self._socket.close()
        if self._authority_file is not None:
            self._authority_file.unlink(missing_ok=True)
            self._authority_file = None

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.stop()

    def __repr__(self) -> str:
        return f"<DemoGateway {self.url} fault={self.fault.name if self.fault else None}>"

    def _make_certificate(self) -> Certificate | None:
        if self._behaviour.certificate is None or self.fault is None:
            return None
        from .certificates import make_certificate  # noqa: PLC0415 - only few faults need it

        return make_certificate(self._behaviour.certificate, fault=self.fault.name, host=LOOPBACK)

    def _run(self, ready: threading.Event, failure: list[BaseException]) -> None:
        try:
            import asyncio  # noqa: PLC0415 - importing the demo stays cheap

            from .gateway import Gateway  # noqa: PLC0415
            from .serving import serve  # noqa: PLC0415

            gateway = Gateway(
                key=self.gateway_key,
                settings=self._settings,
                behaviour=self._behaviour,
                counters=self._counters,
                gauge=self._gauge,
            )

            def on_ready(stop: asyncio.Event) -> None:
                loop = asyncio.get_running_loop()
                self._stop_serving = lambda: _call_soon(loop, stop.set)
                ready.set()

            asyncio.run(
                serve(
                    gateway,
                    self._socket,
                    tls=self._certificate.context if self._certificate else None,
                    banner=self._behaviour.banner,
                    on_ready=on_ready,
                )
            )
        except BaseException as error:  # noqa: BLE001 - start() raises it in the thread that waits
            failure.append(error)
        finally:
            ready.set()

    def _fill_backlog(self) -> None:
        """Take every place in the queue of connections, so that the kernel drops whoever comes later."""
        self._socket.listen(0)
        for _ in range(_MOST_FILLERS):
            filler = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
            self._fillers.append(filler)
            filler.settimeout(_FULL_AFTER_SECONDS)
            try:
                filler.connect((LOOPBACK, self.port))
            except TimeoutError:
                return
            except OSError:
                break
        self.stop()
        raise DemoError("this system answers connection attempts whatever their queue\ntry: another fault")


def _checked(settings: Settings) -> Settings:
    if not settings.models or not all(settings.models):
        raise ValueError("models: at least one name is needed, and none may be empty")
    for name in ("service_seconds", "token_seconds"):
        if getattr(settings, name) < 0:
            raise ValueError(f"{name}: {getattr(settings, name)} is less than 0")
    for name in ("slots", "requests_per_minute", "tokens_per_minute", "parallel_limit"):
        value = getattr(settings, name)
        if value is not None and value < 1:
            raise ValueError(f"{name}: {value} is less than 1")
    return settings


def _bind(port: int) -> socket.socket:
    # No SO_REUSEADDR: on some systems it would let two gateways share a port.
    sock = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    try:
        sock.bind((LOOPBACK, port))
    except (OSError, OverflowError) as error:
        sock.close()
        reason = getattr(error, "strerror", None) or error
        raise DemoError(
            f"port {port} on {LOOPBACK} cannot be bound: {reason}\n"
            "likely: another program has it, or one ended less than a minute ago\n"
            "try: port 0, which lets the system choose"
        ) from None
    return sock


def _make_gauge(folder: Path) -> EngineGauge:
    from .state import EngineGauge  # noqa: PLC0415 - only the simulated machine needs it

    try:
        return EngineGauge(folder)
    except OSError as error:
        raise DemoError(
            f"the simulated machine's folder {folder} cannot be written: {error.strerror or error}\n"
            "try: a folder that is there, as state.make_folder makes it"
        ) from None


def _call_soon(loop: asyncio.AbstractEventLoop, callback: Callable[[], None]) -> None:
    try:
        loop.call_soon_threadsafe(callback)
    except RuntimeError:
        return  # the loop has ended by itself


def _write_temporary(content: bytes) -> Path:
    import tempfile  # noqa: PLC0415 - only few faults need it

    with tempfile.NamedTemporaryFile(prefix="pytest-thermal-demo-", suffix=".pem", delete=False) as file:
        file.write(content)
    return Path(file.name)
