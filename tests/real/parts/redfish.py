"""sushy-tools: a coolant distribution unit whose tree lies on the disk, and a BMC that knows names and no sessions."""

from __future__ import annotations

import contextlib
import json
import subprocess
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import trustme

from tests.real.parts import installs
from tests.real.parts.process import free_ports, retried_on_taken_address, served

USER, PASSWORD = "operator", "loopback-only"
_OK = {"State": "Enabled", "Health": "OK"}
_CDU = "/redfish/v1/ThermalEquipment/CDUs/1"


@dataclass(frozen=True, kw_only=True)
class Cdu:
    """Where it is, whose certificate it has, and its tree."""

    host: str
    ca: Path
    tree: Path

    def set(self, path: str, **change: Any) -> None:
        """Change a resource of the unit, at once and whole."""
        file = self.tree / _CDU.removeprefix("/redfish/v1/") / path / "index.json"
        fresh = file.with_suffix(".new")
        fresh.write_text(json.dumps({**json.loads(file.read_text()), **change}))
        fresh.replace(file)

    def turn(self, rpm: float) -> None:
        """Let its first pump turn so fast."""
        self.set("Pumps/1", PumpSpeedPercent={"Reading": rpm / 50, "SpeedRPM": rpm})


@dataclass(frozen=True, kw_only=True)
class RedfishBmc:
    """A simulated server's BMC, asked by Basic authentication."""

    host: str


@contextlib.contextmanager
def simulated_cdu(folder: Path) -> Iterator[Cdu]:
    """The unit, behind a certificate of its own, until the block ends."""
    program = installs.python_environment("redfish").with_name("sushy-static")
    home = folder / "cdu"
    tree = home / "tree"
    issuer = trustme.CA()
    home.mkdir()
    issuer.cert_pem.write_to_path(home / "ca.pem")
    issuer.issue_cert("127.0.0.1").private_key_and_cert_chain_pem.write_to_path(home / "own.pem")
    _write(tree)

    def start() -> contextlib.AbstractContextManager[Cdu]:
        (port,) = free_ports(1)
        own = str(home / "own.pem")
        command = [str(program), "-i", "127.0.0.1", "-p", str(port), "-m", str(tree), "-c", own, "-k", own]
        unit = Cdu(host=f"127.0.0.1:{port}", ca=home / "ca.pem", tree=tree)
        return served(command, log=home / "log", ready=_answers(f"https://{unit.host}/redfish/v1", unit))

    with retried_on_taken_address(start) as running:
        yield running


@contextlib.contextmanager
def simulated_redfish_bmc(folder: Path) -> Iterator[RedfishBmc]:
    """sushy-tools' emulator with a machine that does not exist, until the block ends."""
    python = installs.python_environment("redfish")
    home = folder / "redfish-bmc"
    home.mkdir()
    hashed = subprocess.run(
        [str(python), "-c", f"import bcrypt; print(bcrypt.hashpw({PASSWORD.encode()!r}, bcrypt.gensalt(4)).decode())"],
        capture_output=True, text=True, check=True, timeout=120,
    ).stdout.strip()  # fmt: skip
    (home / "users").write_text(f"{USER}:{hashed}\n")
    machine = {"uuid": "da69abcc-dae0-4913-9a7b-d344043097c0", "name": "node", "power_state": "On",
               "external_notifier": False, "nics": []}  # fmt: skip

    def start() -> contextlib.AbstractContextManager[RedfishBmc]:
        (port,) = free_ports(1)
        settings = {
            "LISTEN_IP": "127.0.0.1", "LISTEN_PORT": port, "FAKE_DRIVER": True, "AUTH_FILE": str(home / "users"),
            "FAKE_IPA": False, "FAKE_SYSTEMS": [machine], "INDICATOR_LEDS": {},
        }  # fmt: skip
        lines = [f"SUSHY_EMULATOR_{name} = {value!r}" for name, value in settings.items()]
        (home / "emulator.conf").write_text("\n".join(lines) + "\n")
        bmc = RedfishBmc(host=f"127.0.0.1:{port}")
        command = [str(python.with_name("sushy-emulator")), "--config", str(home / "emulator.conf")]
        return served(command, log=home / "log", ready=_answers(f"http://{bmc.host}/redfish/v1/", bmc))

    with retried_on_taken_address(start) as running:
        yield running


def _answers(url: str, part: Any) -> Callable[[], Any]:
    def ready() -> Any:
        with contextlib.suppress(httpx.TransportError):
            # Its certificate is for those that are to be tested.
            if httpx.get(url, timeout=20.0, trust_env=False, verify=False).status_code == 200:
                return part
        return None

    return ready


def _write(tree: Path) -> None:
    def put(path: str, resource: Mapping[str, Any]) -> None:
        folder = tree / path.removeprefix("/redfish/v1").strip("/")
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "index.json").write_text(json.dumps({"@odata.id": path, **resource}))

    def collection(path: str, members: Mapping[str, Mapping[str, Any]]) -> None:
        put(path, {"Members": [{"@odata.id": f"{path}/{name}"} for name in members]})
        for name, member in members.items():
            put(f"{path}/{name}", {"Id": name, "Status": _OK, **member})

    def link(path: str) -> dict[str, str]:
        return {"@odata.id": f"/redfish/v1/{path}"}

    put("/redfish/v1", {"ThermalEquipment": link("ThermalEquipment"), "Systems": link("Systems")})
    collection("/redfish/v1/Systems", {"Tray": {"Processors": link("Systems/Tray/Processors")}})
    metrics = "Systems/Tray/Processors/GPU_3/EnvironmentMetrics"
    gpu = {"ProcessorType": "GPU", "EnvironmentMetrics": link(metrics)}
    collection("/redfish/v1/Systems/Tray/Processors", {"GPU_3": gpu})
    put(f"/redfish/v1/{metrics}", {"TemperatureCelsius": {"Reading": 57.5}})
    put("/redfish/v1/ThermalEquipment", {"CDUs": {"@odata.id": "/redfish/v1/ThermalEquipment/CDUs"}})
    parts = ("Pumps", "SecondaryCoolantConnectors", "LeakDetection")
    collection("/redfish/v1/ThermalEquipment/CDUs", {"1": {one: {"@odata.id": f"{_CDU}/{one}"} for one in parts}})
    collection(
        f"{_CDU}/Pumps",
        {
            "1": {"Name": "Pump 1", "PumpSpeedPercent": {"Reading": 72, "SpeedRPM": 3600}},
            "2": {"Name": "Pump 2", "PumpSpeedPercent": {"SpeedRPM": None}, "Status": {"State": "Disabled"}},
        },
    )
    supply, back = {"Reading": 31.5}, {"Reading": 40.5}
    loop = {
        "SupplyTemperatureCelsius": supply,
        "ReturnTemperatureCelsius": back,
        "FlowLitersPerMinute": {"Reading": 84},
    }
    collection(f"{_CDU}/SecondaryCoolantConnectors", {"1": {"Name": "Rack", **loop}})
    put(f"{_CDU}/LeakDetection", {"LeakDetectors": {"@odata.id": f"{_CDU}/LeakDetection/LeakDetectors"}})
    collection(f"{_CDU}/LeakDetection/LeakDetectors", {"1": {"Name": "Tray", "DetectorState": "OK"}})
