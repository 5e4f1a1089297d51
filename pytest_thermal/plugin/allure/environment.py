"""``environment.properties`` beside Allure's results: versions, the machine, the bench, and whether it is simulated."""

from __future__ import annotations

import json
import platform
import re
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from pytest_thermal import __version__
from pytest_thermal.plugin.evidence.node import node_of
from pytest_thermal.plugin.keys import ACTIVE_BENCH, ENDINGS, FLEET, THERMAL_ENDINGS
from pytest_thermal.reporting.allure_results import NODES_FILE

if TYPE_CHECKING:
    from pytest_thermal.plugin.active_bench import ActiveBench
    from pytest_thermal.plugin.thermal_checks.session import ThermalEnding

_BEFORE_ITS_NAME = re.compile(r"(?<=^replay of ).*/")
MOST_LINES = 6
"""Of what a thermal run has to say of itself."""


def write_environment(config: pytest.Config, folder: Path) -> None:
    """Write it, where there is anything to say: a run that used no bench is none of ours."""
    active = config.stash.get(ACTIVE_BENCH, None)
    header = [line for ending in config.stash.get(ENDINGS, []) for line in ending.bench]
    thermal: list[ThermalEnding] = config.stash.get(THERMAL_ENDINGS, [])
    fleet = config.stash.get(FLEET, None)
    if active is None and not header and not thermal:
        return
    lines = {"Node": "fleet" if fleet is not None else node_of(config)}
    of_others = (thermal or fleet is not None) and not header  # what was judged was made elsewhere
    lines |= machine() if of_others else environment(active, header)
    nodes = {ending.machine.get("Node", ending.node): _of_run(ending, lines) for ending in thermal}
    if len(nodes) == 1:
        lines |= next(iter(nodes.values()))
    elif nodes:  # what is known of one of them must not be told of all
        lines["Node"] = ", ".join(nodes)
        lines["Evidence"] = next(iter(sorted({own["Evidence"] for own in nodes.values()}, key=_worst_first)))
    if fleet is not None:
        from pytest_thermal.plugin.allure.fleet import fleet_environment, node_environments

        lines |= fleet_environment(fleet)
        nodes = node_environments(fleet)
    spent = [ending.spending for ending in config.stash.get(ENDINGS, []) if ending.spending]
    if spent:
        lines["Tokens"] = "; ".join(spent)
    lines |= {name: str(value) for name, value in metadata(config).items()}
    text = "".join(f"{_escape(name)}={_escape(value, key=False)}\n" for name, value in lines.items())
    if active is not None:
        text = active.redactor.text(text)
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "environment.properties").write_text(text, encoding="utf-8")
    if len(nodes) > 1 or fleet is not None:
        told = json.dumps(nodes, ensure_ascii=False, indent=1)
        (folder / NODES_FILE).write_text(told if active is None else active.redactor.text(told), encoding="utf-8")


def _of_run(ending: ThermalEnding, lines: Mapping[str, str]) -> dict[str, str]:
    """What a thermal run says of itself and of its machine."""
    said = [_BEFORE_ITS_NAME.sub("", line.removeprefix("thermal: ")) for line in (*ending.head, *ending.lines)]
    # Where it lies on the disk of its machine is no matter for a page that is mailed; its name stands in "Run".
    told = [line for line in said if not line.startswith(("run: ", "report: ", "history: "))][:MOST_LINES]
    found = {
        "Thermal run": "; ".join(told),
        "Evidence": ending.evidence or lines.get("Evidence", "none: the run broke before it began"),
    }
    # What a bench in use says of itself is more than its bare name; all else is better known to the run.
    return found | {name: text for name, text in ending.machine.items() if name != "Bench" or name not in lines}


def _worst_first(evidence: str) -> int:
    return 2 if evidence == "measured" else 0 if evidence.startswith("SIMULATED") else 1


def metadata(config: pytest.Config) -> dict[str, Any]:
    """What the hook for facts of one's own adds."""
    found: dict[str, Any] = {}
    config.hook.pytest_thermal_metadata(config=config, metadata=found)
    return found


def environment(active: ActiveBench | None, header: list[str]) -> dict[str, str]:
    """What Allure's environment says: versions, host, bench, and whether it is simulated."""
    found = machine()
    if active is None:
        found["Bench"] = "; ".join(line.removeprefix("thermal: ") for line in header[:2])
        return found
    bench = active.bench
    found["Bench"] = f"{bench.name} ({active.chosen_by})"
    found["Evidence"] = "SIMULATED (demo bench)" if bench.demo else "measured"
    for domain in bench.domains[:8]:
        found[f"Gateway {domain.name}"] = "embedded demo gateway" if bench.demo else domain.base_url
    return found


def machine() -> dict[str, str]:
    """Versions and host."""
    return {
        "pytest-thermal": __version__,
        "pytest": pytest.__version__,
        "Python": platform.python_version(),
        "Host": f"{platform.node()} ({platform.system()} {platform.release()}, {platform.machine()})",
    }


def _escape(text: str, *, key: bool = True) -> str:
    text = text.replace("\\", "\\\\").replace("\n", " ")
    return text.replace(" ", "\\ ").replace("=", "\\=").replace(":", "\\:") if key else text
