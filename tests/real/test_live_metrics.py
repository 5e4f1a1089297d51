"""A real Prometheus scrapes a run while it goes on, and answers every question of the example dashboard."""

from __future__ import annotations

import contextlib
import itertools
import json
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from pytest_thermal.reporting.live_metrics import Address, Endpoint, Named
from tests.real.conftest import or_skip
from tests.real.parts.errors import PartUnavailableError
from tests.real.parts.process import free_ports, served
from tests.reporting.test_live_metrics import DEPLOY, GPU, PUMP, USE, Written
from tests.support.patience import PATIENCE_SECONDS, until

pytestmark = pytest.mark.real

Ask = Callable[[str], list[dict[str, Any]]]


@contextlib.contextmanager
def scraping(folder: Path, target: str) -> Iterator[Ask]:
    """A Prometheus that asks once a second; yields how to ask it.

    Raises:
        PartUnavailableError: It is not installed.
    """
    if shutil.which("prometheus") is None:
        raise PartUnavailableError("no prometheus on this machine: apt-get install prometheus")
    (port,) = free_ports(1)
    (folder / "prometheus.yml").write_text(
        "global: {scrape_interval: 1s, scrape_timeout: 1s}\n"
        f"scrape_configs: [{{job_name: bench, static_configs: [{{targets: ['{target}']}}]}}]\n"
    )

    def ask(query: str) -> list[dict[str, Any]]:
        url = f"http://127.0.0.1:{port}/api/v1/query"
        answer = httpx.get(url, params={"query": query}, timeout=PATIENCE_SECONDS, trust_env=False).raise_for_status()
        found: list[dict[str, Any]] = answer.json()["data"]["result"]
        return found

    def ready() -> Ask | None:
        with contextlib.suppress(httpx.HTTPError):
            return ask if ask("up == 1") else None
        return None

    command = [
        "prometheus", f"--config.file={folder / 'prometheus.yml'}", f"--storage.tsdb.path={folder / 'data'}",
        f"--web.listen-address=127.0.0.1:{port}",
    ]  # fmt: skip
    with served(command, log=folder / "prometheus.log", ready=ready) as found:
        yield found


@pytest.fixture
def written(tmp_path: Path) -> Written:
    run = Written(tmp_path)
    run.event("phase", name="steady")
    run.event("load", what="started", load="inference")
    for second in range(3):
        row(run, second)
    run.add("samples/bmc.csv", f"{run.start},2800")
    run.add("requests.csv", "1.0,,2.0,200,,1,2,steady")
    return run


def row(run: Written, second: int, celsius: str = "61.5") -> None:
    run.add("samples/nvml.csv", f"{run.start + second},{celsius},99,0.1")


def once(condition: Callable[[], Any]) -> Any:
    """What it comes to, when it comes to something: Prometheus may miss its second, and then knows nothing."""
    found: Any = None

    def asked() -> Any:
        nonlocal found
        found = condition()
        return found

    until(asked)
    return found


def test_prometheus_has_the_readings_and_loses_them_with_the_run(written: Written, tmp_path: Path) -> None:
    named = Named(bench="lab-7 (simulated)", node="node-1")
    endpoint = Endpoint(Address(host="127.0.0.1", port=0), named=named, run=lambda: written.path)
    seconds = itertools.count(3)
    target = f"127.0.0.1:{endpoint.address.port}"
    try:
        with or_skip(scraping(tmp_path, target)) as ask:

            def goes_on(celsius: str = "61.5") -> None:
                # What nothing follows would be gone soon, and Prometheus takes its time.
                row(written, next(seconds), celsius)
                written.add("samples/bmc.csv", f"{written.start},2800")

            def reading() -> list[dict[str, Any]]:
                goes_on()
                return ask(f'pytest_thermal_sensor_celsius{{sensor="{GPU}"}}')

            (hot,) = once(reading)
            assert float(hot["value"][1]) == 61.5
            labels = {name: hot["metric"][name] for name in ("bench", "node", "device")}
            assert labels == {"bench": named.bench, "node": named.node, "device": "gpu0"}
            (info,) = once(lambda: ask("pytest_thermal_run_info"))
            assert info["metric"]["simulated"] == "true"
            dashboard = json.loads((DEPLOY / "pytest-thermal.json").read_text())
            asked = {
                target["expr"].replace("$bench", ".*").replace("$node", ".*")
                for panel in dashboard["panels"]
                for target in panel["targets"]
            }
            absent = ("sensor_liters_per_minute", "sensor_seconds", "sensor_watts")
            open_ones = {expr for expr in asked if not any(name in expr for name in absent)}
            assert len(open_ones) > 10

            def all_answered() -> bool:
                goes_on()
                open_ones.difference_update({expr for expr in open_ones if ask(expr)})
                return not open_ones

            until(all_answered)

            def without_one() -> bool:
                goes_on("")
                return not ask(f'pytest_thermal_sensor_celsius{{sensor="{GPU}"}}')

            until(without_one)

            def the_others() -> bool:
                goes_on("")
                asked = (f'ratio{{sensor="{USE}"}}', f'rpm{{sensor="{PUMP}"}}')
                return all(ask(f"pytest_thermal_sensor_{one}") for one in asked)

            until(the_others)
            until(without_one)
            endpoint.close()
            until(lambda: ask("up == 0"))
            until(lambda: not ask("pytest_thermal_sensor_rpm"))
    finally:
        endpoint.close()
