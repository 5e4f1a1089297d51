"""A Redfish service on loopback, whose tree and manners a test sets: resources are dictionaries by their address."""

from __future__ import annotations

import json
import ssl
import threading
from collections.abc import Callable, Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

if TYPE_CHECKING:
    from typing_extensions import Self

ROOT = "/redfish/v1"
USER, PASSWORD = "operator", "correct-horse-battery"
OK = {"State": "Enabled", "Health": "OK"}
CDU = f"{ROOT}/ThermalEquipment/CDUs/1"
CHASSIS = f"{ROOT}/Chassis/1"

Answer = tuple[int, Mapping[str, str], bytes]
Tree = dict[str, dict[str, Any]]


def link(path: str) -> dict[str, str]:
    return {"@odata.id": path}


def collection(tree: Tree, path: str, members: Mapping[str, Mapping[str, Any]]) -> None:
    tree[path] = {"Members": [link(f"{path}/{name}") for name in members], "Members@odata.count": len(members)}
    for name, member in members.items():
        tree[f"{path}/{name}"] = {"Id": name, "Status": OK, **member}


def cdu() -> Tree:
    """A coolant distribution unit with two pumps, one of them off, and a leak detector."""
    tree: Tree = {
        ROOT: {"ThermalEquipment": link(f"{ROOT}/ThermalEquipment")},
        f"{ROOT}/ThermalEquipment": {"CDUs": link(f"{ROOT}/ThermalEquipment/CDUs")},
    }
    collection(
        tree,
        f"{ROOT}/ThermalEquipment/CDUs",
        {
            "1": {
                "Name": "Row 4",
                "Pumps": link(f"{CDU}/Pumps"),
                "PrimaryCoolantConnectors": link(f"{CDU}/PrimaryCoolantConnectors"),
                "SecondaryCoolantConnectors": link(f"{CDU}/SecondaryCoolantConnectors"),
                "LeakDetection": link(f"{CDU}/LeakDetection"),
            }
        },
    )
    collection(
        tree,
        f"{CDU}/Pumps",
        {
            "A": {"Name": "Pump 1", "PumpSpeedPercent": {"Reading": 71.5, "SpeedRPM": 3580}},
            "B": {"Name": "Pump 2", "PumpSpeedPercent": {"Reading": 0}, "Status": {"State": "Disabled"}},
        },
    )
    for loop, supply, back, flow in (("Primary", 17.5, 23.0, 130.0), ("Secondary", 31.5, 40.25, 82.5)):
        collection(
            tree,
            f"{CDU}/{loop}CoolantConnectors",
            {
                "1": {
                    "Name": f"{loop} loop",
                    "SupplyTemperatureCelsius": {"Reading": supply},
                    "ReturnTemperatureCelsius": {"Reading": back},
                    "FlowLitersPerMinute": {"Reading": flow},
                    "SupplyPressurekPa": {"Reading": 305.5},
                }
            },
        )
    tree[f"{CDU}/LeakDetection"] = {"LeakDetectors": link(f"{CDU}/LeakDetection/LeakDetectors")}
    collection(
        tree,
        f"{CDU}/LeakDetection/LeakDetectors",
        {"Tray": {"Name": "Leak Detector Tray", "DetectorState": "OK"}},
    )
    return tree


def chassis() -> Tree:
    """A server as newer services have it."""
    tree: Tree = {ROOT: {"Chassis": link(f"{ROOT}/Chassis")}}
    collection(
        tree,
        f"{ROOT}/Chassis",
        {
            "1": {
                "Name": "Node",
                "Sensors": link(f"{CHASSIS}/Sensors"),
                "ThermalSubsystem": link(f"{CHASSIS}/ThermalSubsystem"),
                "EnvironmentMetrics": link(f"{CHASSIS}/EnvironmentMetrics"),
                "PowerSubsystem": link(f"{CHASSIS}/PowerSubsystem"),
                "Thermal": link(f"{CHASSIS}/Thermal"),
            }
        },
    )
    collection(
        tree,
        f"{CHASSIS}/Sensors",
        {
            "InletTemp": {
                "Name": "Inlet Temp",
                "Reading": 23.5,
                "ReadingUnits": "Cel",
                "PhysicalContext": "Intake",
                "Thresholds": {"UpperCaution": {"Reading": 38.0}, "UpperCritical": {"Reading": 42.0}},
            },
            "Coolant": {"Name": "Node coolant in", "Reading": 89.6, "ReadingUnits": "[degF]"},
            "Cpu1": {"Name": "CPU1 Temp", "Reading": 61, "ReadingUnits": "Cel", "PhysicalContext": "CPU"},
            "Flow": {"Name": "Coolant flow", "Reading": 0.5, "ReadingUnits": "L/s", "ReadingType": "LiquidFlow"},
            "Fan1": {"Name": "Fan 1 tach", "Reading": 5000, "ReadingUnits": "{rev}/min"},
            "Fan1Share": {"Name": "Fan 1 share", "Reading": 50, "ReadingUnits": "%"},
            "Gone": {"Name": "Outlet Temp", "Reading": None, "ReadingUnits": "Cel", "Status": {"State": "Absent"}},
        },
    )
    tree[f"{CHASSIS}/ThermalSubsystem"] = {
        "Fans": link(f"{CHASSIS}/ThermalSubsystem/Fans"),
        "ThermalMetrics": link(f"{CHASSIS}/ThermalSubsystem/ThermalMetrics"),
    }
    collection(
        tree,
        f"{CHASSIS}/ThermalSubsystem/Fans",
        {"Bay1": {"SpeedPercent": {"Reading": 50, "SpeedRPM": 5040, "DataSourceUri": f"{CHASSIS}/Sensors/Fan1Share"}}},
    )
    tree[f"{CHASSIS}/ThermalSubsystem/ThermalMetrics"] = {
        "TemperatureSummaryCelsius": {
            "Intake": {"Reading": 23.5, "DataSourceUri": f"{CHASSIS}/Sensors/InletTemp"},
            "Exhaust": {"Reading": None},
        }
    }
    tree[f"{CHASSIS}/EnvironmentMetrics"] = {"PowerWatts": {"Reading": 1480.5}, "HumidityPercent": {"Reading": 41}}
    tree[f"{CHASSIS}/PowerSubsystem"] = {"PowerSupplies": link(f"{CHASSIS}/PowerSubsystem/PowerSupplies")}
    collection(
        tree,
        f"{CHASSIS}/PowerSubsystem/PowerSupplies",
        {"0": {"Name": "PSU 1", "Metrics": link(f"{CHASSIS}/PowerSubsystem/PowerSupplies/0/Metrics")}},
    )
    tree[f"{CHASSIS}/PowerSubsystem/PowerSupplies/0/Metrics"] = {"InputPowerWatts": {"Reading": 740}}
    tree[f"{CHASSIS}/Thermal"] = {"Fans": [{"MemberId": "0", "Name": "Fan 1", "Reading": 5040, "ReadingUnits": "RPM"}]}
    return tree


class _Server(ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, request: object, client_address: object) -> None:
        """A client that is gone is none."""


class Service:
    """Counts sessions and requests; ``before`` may answer in the tree's place."""

    def __init__(self, tree: Tree, *, context: ssl.SSLContext | None = None, password: str | None = PASSWORD) -> None:
        self.tree = tree
        self.password = password
        self.asked: list[tuple[str, str]] = []
        self.sessions: dict[str, str] = {}
        self.logins = 0
        self.most_sessions = 0
        self.before: Callable[[str, str], Answer | None] = lambda _method, _path: None
        service = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"
            disable_nagle_algorithm = True  # or each answer's body waits 40 ms for its headers to be confirmed

            def do_GET(self) -> None:
                self._answer(b"")

            def do_DELETE(self) -> None:
                self._answer(b"")

            def do_POST(self) -> None:
                self._answer(self.rfile.read(int(self.headers["Content-Length"])))

            def _answer(self, body: bytes) -> None:
                status, headers, content = service.answer(
                    self.command, self.path, self.headers.get("X-Auth-Token", ""), body
                )
                self.send_response(status)
                for name, value in {"Content-Type": "application/json", **headers}.items():
                    self.send_header(name, value)
                self.send_header("Content-Length", str(len(content)))
                self.end_headers()
                self.wfile.write(content)

            def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - as its parent has it
                pass

        self._server = _Server(("127.0.0.1", 0), Handler)
        if context is not None:
            self._server.socket = context.wrap_socket(self._server.socket, server_side=True)
        self.host = f"127.0.0.1:{self._server.server_address[1]}"
        self.url = f"{'https' if context else 'http'}://{self.host}"
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.02,), daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._server.shutdown()
        self._server.server_close()

    def answer(self, method: str, target: str, token: str, body: bytes) -> Answer:
        path = urlsplit(target).path.rstrip("/")
        self.asked.append((method, target))
        instead = self.before(method, path)
        if instead is not None:
            return instead
        if method == "POST" and path == f"{ROOT}/SessionService/Sessions":
            return self._log_in(json.loads(body))
        if self.password is not None and path != ROOT and token not in self.sessions.values():
            return said(401, "session needed")
        if method == "DELETE":
            return (204, {}, b"") if self.sessions.pop(path, None) else said(404, "no such session")
        if path not in self.tree:
            return said(404, "no such resource")
        return 200, {}, json.dumps({"@odata.id": path, **self._expanded(path, target)}).encode()

    def _expanded(self, path: str, target: str) -> dict[str, Any]:
        found = dict(self.tree[path])
        if "$expand" in target:
            found["Members"] = [{**one, **self.tree[one["@odata.id"]]} for one in found["Members"]]
        return found

    def _log_in(self, told: Mapping[str, str]) -> Answer:
        self.logins += 1
        if (told["UserName"], told["Password"]) != (USER, self.password):
            return said(401, "The user name or password is wrong.")
        path = f"{ROOT}/SessionService/Sessions/{self.logins}"
        self.sessions[path] = f"token-{self.logins}"
        self.most_sessions = max(self.most_sessions, len(self.sessions))
        return 201, {"X-Auth-Token": f"token-{self.logins}", "Location": path}, b"{}"


def said(status: int, message: str) -> Answer:
    return status, {}, json.dumps({"error": {"@Message.ExtendedInfo": [{"Message": message}]}}).encode()
