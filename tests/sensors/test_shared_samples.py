"""Outputs that lie beside the checkout, where they do, against the figures that were written down for them."""

from __future__ import annotations

import json
import re
import shlex
from pathlib import Path
from typing import Any

import pytest

from pytest_thermal.model import Missing
from pytest_thermal.sensors.sysfs import thermal_zones
from pytest_thermal.sensors.tools import known, npu_smi
from pytest_thermal.sensors.tools.answer import Raw, Row
from pytest_thermal.sensors.tools.figures import figure
from pytest_thermal.sensors.tools.places import stands_in
from pytest_thermal.sensors.tools.printed import printed
from pytest_thermal.sensors.tools.tool import Tool

DEVICES = Path(__file__).parents[3] / "shared" / "devices"
SAMPLES = DEVICES / "samples"
EXPECTED: dict[str, Any] = json.loads((SAMPLES / "expected.json").read_text("utf-8")) if SAMPLES.exists() else {}

TOOLS: dict[str, Tool] = {tool.name: tool for tool in known.TOOLS if not tool.roster}
LISTS = {"npu-smi": (npu_smi.chip_map, npu_smi.card_list)}

pytestmark = pytest.mark.skipif(not EXPECTED, reason="there are no shared samples beside this checkout")

QUANTITIES = {
    "temp_c": "temperature_celsius",
    "power_w": "power_watts",
    "util_pct": "utilization_percent",
    "temp_margin_c": "temperature_kelvin_margin",
    "mem_temp_c": "memory.temperature_celsius",
    "hbm_temp_c": "memory.temperature_celsius",
    "power_instant_w": "instant.power_watts",
    "mem_power_w": "memory.power_watts",
    "fan_pct": "fan.speed_percent",
    "board_temp_c": "board.temperature_celsius",
    "clock_mhz": "clock_megahertz",
    "mem_used_mib": "memory.used_bytes",
    "throttle_bits": "throttle_reasons_bits",
    "edge_c": "edge.temperature_celsius",
    "inlet_c": "inlet.temperature_celsius",
    "mem_pct": "memory.utilization_percent",
}
CELLS = {
    "power_average_w": "power.draw.average",
    "power_management": "power.management",
    "health": "health",
    "phy_id": "phy-id",
    "logic_id": "device",
    "hbm_pct": "hbm usage rate",
    "npu_util_pct": "npu utilization",
    "LM75A_TE": "lm75a_te",
    "LM75B_TE": "lm75b_te",
}
NOTES = {"note", "state"}


def samples(*tools: str) -> list[str]:
    return sorted(name for name in EXPECTED if name.split("__")[0] in tools)


def tool_of(name: str) -> Tool:
    """The tool that a sample is of; two have one name."""
    return TOOLS["xpu-smi-intel" if "intel" in name else name.split("__", maxsplit=1)[0]]


def arguments(name: str) -> list[str]:
    words = shlex.split(EXPECTED[name]["cmd"])
    return words[1:]


def rows_of(name: str) -> dict[str, Row]:
    tool = name.split("__", maxsplit=1)[0]
    out = printed((SAMPLES / name).read_bytes())
    for layout in (*tool_of(name).layouts, *LISTS.get(tool, ())):
        answer = layout(out, arguments(name))
        if answer is not None and answer.rows:
            assert not answer.refused
            return {row.key: row for row in answer.rows}
    return {}


def matches(tool: Tool, row: Row, key: str, expected: object) -> bool:
    """Whether the row says what was written down, in whichever words it was."""
    if key in CELLS and not isinstance(expected, (int, float)):
        text = row.text(CELLS[key]) or row.text(f"{CELLS[key]} status")
        return text.strip("[]") in str(expected) and text != ""
    if key in CELLS:
        return float(row.text(CELLS[key])) == expected
    if key == "mem_total_mib":
        field = next(one for one in tool.fields if one.quantity == "memory.used_bytes")
        raw = next((row.cells[name] for name in field.limits["max"] if name in row.cells), Raw(""))
        return figure(raw, field.unit, assumed=field.scale).value == expected * 2**20  # type: ignore[operator]
    if key == "limit_kind":
        return all(limit in str(expected) for limit in limits_of(tool, row))
    if key == "codes":
        return row.text("error code").split() == expected
    field = next(one for one in tool.fields if one.quantity == QUANTITIES[key])
    found_cell = row.cells.get(stands_in(field, row)[0])
    if found_cell is None:
        return str(expected).startswith("missing")
    found = figure(found_cell, field.unit, assumed=field.scale)
    if isinstance(expected, str) and expected.startswith("missing"):
        return found.missing in {Missing.NOT_OFFERED, Missing.UNREADABLE}
    if isinstance(expected, str) and expected.startswith("0x"):
        return found.value == int(expected.split()[0], 16)
    if key.endswith("_mib"):
        # Written down in whole MiB.
        return found.value is not None and found.value // 2**20 == expected
    return found.value == pytest.approx(expected)


def limits_of(tool: Tool, row: Row) -> list[str]:
    field = tool.fields[0]
    found = []
    for limit in ("slowdown",):
        raw = next((row.cells[name] for name in field.limits[limit] if name in row.cells), Raw(""))
        found.append(f"{figure(raw, field.unit).value:g}")
    return found


@pytest.mark.parametrize("name", samples(*TOOLS))
def test_a_sample_says_what_was_written_down(name: str) -> None:
    tool = tool_of(name)
    expected = EXPECTED[name]["expect"]
    rows = rows_of(name)
    if "error" in expected:
        assert not rows
        out, err = printed((SAMPLES / name).read_bytes()), printed(EXPECTED[name]["stderr"])
        problem = tool.problem(out) or tool.problem(err)
        assert problem is not None or EXPECTED[name]["rc"] == 127
        return
    if "npu_ids" in expected:
        assert sorted({int(key.split("/")[0]) for key in rows}) == expected["npu_ids"]
        return
    if "logic_to_card_chip" in expected:
        found = {row.text("chip logic id"): row.key for row in rows.values()}
        assert found == expected["logic_to_card_chip"]
        return
    assert set(rows) == set(expected)
    for key, figures in expected.items():
        if "error" in figures:
            assert rows[key].fault
            continue
        assert not rows[key].fault
        wrong = {
            one: value
            for one, value in figures.items()
            if one not in NOTES and not matches(tool, rows[key], one, value)
        }
        assert not wrong, rows[key]


@pytest.mark.parametrize("name", samples("sysfs"))
def test_a_zone_says_what_was_written_down(name: str, tmp_path: Path) -> None:
    if "rapl" in name:
        pytest.skip("a file that its own user may not read cannot be had by root")
    match = re.search(r"thermal_zone\d", EXPECTED[name]["cmd"])
    assert match
    zone = tmp_path / "class" / "thermal" / match[0]
    zone.mkdir(parents=True)
    lines = (SAMPLES / name).read_text("utf-8").split()
    (zone / "type").write_text(f"{lines[0] if lines else 'other'}\n")
    if len(lines) > 1:
        (zone / "temp").write_text(f"{lines[1]}\n")
    source = thermal_zones.make(sysfs=str(tmp_path))
    values = [reading.value for reading in source.read() if reading.value is not None]
    source.close()
    numbers = [float(value) for value in EXPECTED[name]["expect"].values() if isinstance(value, float)]
    assert values in ([27.8], numbers, [])
