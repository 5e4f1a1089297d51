"""A real Prometheus: it scrapes the simulated BMC by FreeIPMI and its exporter, and one that a test writes."""

from __future__ import annotations

import contextlib
import shutil
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import httpx

from tests.real.parts.bmc import PASSWORD, USER, Bmc
from tests.real.parts.errors import PartUnavailableError
from tests.real.parts.process import free_ports, served
from tests.support.patience import PATIENCE_SECONDS

_NEEDED = {
    "prometheus": "prometheus",
    "prometheus-ipmi-exporter": "prometheus-ipmi-exporter",
    "ipmimonitoring": "freeipmi-tools",
    "prometheus-node-exporter": "prometheus-node-exporter",
}
"""Programs, and Debian's packages that have them."""
SCRAPE_SECONDS = 2
"""A BMC takes most of a second, and more where the machine is busy."""


@dataclass(kw_only=True)
class Written:
    """An exporter on loopback whose page is whatever the test says."""

    port: int
    page: str = ""
    _server: list[ThreadingHTTPServer] = field(default_factory=list, repr=False)

    def start(self) -> None:
        """Answer, from now on."""
        exporter = self

        class Page(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                body = exporter.page.encode()
                self.send_response(200)
                self.send_header("Content-Type", "text/plain; version=0.0.4")
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the base class calls it so
                pass

        server = ThreadingHTTPServer(("127.0.0.1", self.port), Page)
        self._server.append(server)
        threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True).start()

    def stop(self) -> None:
        """Answer nothing any more: the port is closed."""
        for server in self._server:
            server.shutdown()
            server.server_close()
        self._server.clear()


@dataclass(frozen=True, kw_only=True)
class Prometheus:
    """Where it is, and the exporter that a test may write."""

    url: str
    bmc: Bmc
    written: Written
    end_ipmi_exporter: Callable[[], None]

    def asked(self, query: str) -> list[dict[str, Any]]:
        """What it answers to a query, asked by nothing of ours."""
        answer = httpx.get(
            f"{self.url}/api/v1/query", params={"query": query}, timeout=PATIENCE_SECONDS, trust_env=False
        )
        found: list[dict[str, Any]] = answer.raise_for_status().json()["data"]["result"]
        return found


@contextlib.contextmanager
def prometheus_chain(folder: Path, bmc: Bmc) -> Iterator[Prometheus]:
    """The chain, until the block ends.

    Raises:
        PartUnavailableError: A part of it is not installed.
    """
    for program, package in _NEEDED.items():
        if shutil.which(program) is None:
            raise PartUnavailableError(f"{program} is not installed (Debian: {package})")
    home = folder / "prometheus"
    home.mkdir()
    port, ipmi, node, own = free_ports(4)
    (home / "ipmi.yml").write_text(_IPMI.format(user=USER, password=PASSWORD))
    (home / "prometheus.yml").write_text(
        _PROMETHEUS.format(seconds=SCRAPE_SECONDS, own=own, node=node, ipmi=ipmi, bmc=bmc.host)
    )
    written = Written(port=own)
    written.start()
    url = f"http://127.0.0.1:{port}"

    def ready() -> Prometheus | None:
        try:
            up = Prometheus.asked(chain, "up == 1")
            return chain if len(up) == 3 and Prometheus.asked(chain, "ipmi_fan_speed_rpm") else None
        except httpx.HTTPError:
            return None

    def listens(address: str) -> bool | None:
        try:
            return httpx.get(address, trust_env=False).is_success or None
        except httpx.HTTPError:
            return None

    with contextlib.ExitStack() as stack:
        stack.callback(written.stop)
        exporter = stack.enter_context(contextlib.ExitStack())
        chain = Prometheus(url=url, bmc=bmc, written=written, end_ipmi_exporter=exporter.close)
        exporter.enter_context(
            served(
                ["prometheus-ipmi-exporter", f"--config.file={home / 'ipmi.yml'}",
                 f"--web.listen-address=127.0.0.1:{ipmi}"],
                log=home / "ipmi.log", ready=lambda: listens(f"http://127.0.0.1:{ipmi}/"),
            )
        )  # fmt: skip
        stack.enter_context(
            served(
                ["prometheus-node-exporter", f"--web.listen-address=127.0.0.1:{node}", "--collector.disable-defaults",
                 "--collector.hwmon", "--collector.thermal_zone", f"--path.sysfs={_sysfs(home)}"],
                log=home / "node.log", ready=lambda: listens(f"http://127.0.0.1:{node}/"),
            )
        )  # fmt: skip
        command = [
            "prometheus", f"--config.file={home / 'prometheus.yml'}", f"--storage.tsdb.path={home / 'data'}",
            f"--web.listen-address=127.0.0.1:{port}",
        ]  # fmt: skip
        yield stack.enter_context(served(command, log=home / "log", ready=ready))


_CHIPS = {
    "coretemp.0": {"name": "coretemp", "temp1_label": "Package id 0", "temp1_input": "62000",
                   "temp2_label": "Core 0", "temp2_input": "59000"},
    "nct6775.656": {"name": "nct6798", "fan7_label": "W_PUMP+", "fan7_input": "3450"},
}  # fmt: skip


def _sysfs(home: Path) -> Path:
    """A machine's chips, for the exporter to find."""
    root = home / "sys"
    (root / "class" / "thermal").mkdir(parents=True)
    for number, (device, files) in enumerate(_CHIPS.items()):
        chip = root / "class" / "hwmon" / f"hwmon{number}"
        place = root / "devices" / "platform" / device
        for folder in (chip, place):
            folder.mkdir(parents=True)
        (chip / "device").symlink_to(place)
        for name, text in files.items():
            (chip / name).write_text(f"{text}\n")
    return root


_IPMI = """\
modules:
  default:
    user: {user}
    pass: {password}
    driver: LAN_2_0
    privilege: admin
    workaround_flags: [opensesspriv]
    timeout: 5000
    collectors: [ipmi]
"""

# Two targets whose pages are the test's, one that is scraped as a push gateway is, and the real exporters.
_PROMETHEUS = """\
global: {{scrape_interval: {seconds}s, scrape_timeout: {seconds}s}}
scrape_configs:
  - job_name: own
    honor_labels: true
    static_configs: [{{targets: ['127.0.0.1:{own}']}}]
  - job_name: node
    static_configs: [{{targets: ['127.0.0.1:{node}']}}]
  - job_name: ipmi
    metrics_path: /ipmi
    params: {{target: ['{bmc}'], module: ['default']}}
    static_configs: [{{targets: ['127.0.0.1:{ipmi}']}}]
"""
