"""What is special to single vendors: registers of who is who, limits of their own, tools of one name, fields."""

from __future__ import annotations

import json
from collections.abc import Sequence

import pytest

from pytest_thermal.bench import Monitor
from pytest_thermal.findings import limits_for
from pytest_thermal.model import Missing
from pytest_thermal.sensors import TellsAbsent
from tests.sensors.canned import OUTPUTS, Canned, own_tool, read, values


def text(name: str) -> str:
    return (OUTPUTS / name).read_text("utf-8")


# -------------------------------------------------------------------------------------------------------- AMD


class Amd:
    """A machine with amd-smi, whose cards are numbered anew when one falls off the bus."""

    def __init__(self) -> None:
        self.there = [0, 1]
        self.canned = Canned(self.answer)

    def answer(self, arguments: Sequence[str]) -> str:
        if arguments[0] == "metric":
            found = json.loads(text("amd-smi_metric.txt").partition("}\n")[2])["gpu_data"]
            return json.dumps({"gpu_data": self.numbered(found)})
        return json.dumps(self.numbered(json.loads(text(f"amd-smi_{'_'.join(arguments[:-1]).replace('--', '')}.txt"))))

    def numbered(self, cards: list[dict[str, object]]) -> list[dict[str, object]]:
        return [{**cards[card], "gpu": number} for number, card in enumerate(self.there)]


def test_limits_of_the_hot_spot_are_the_ones_that_count() -> None:
    source = own_tool(Amd().canned, "amd-smi")
    sensors = {sensor.id: sensor for sensor in source.sensors()}
    main = sensors["gpu1.temperature_celsius"]
    assert main.identity == "3cff74a1-0000-1000-8022-000000000a11"
    assert main.limits == {"slowdown": 100.0, "shutdown": 110.0}
    assert sensors["gpu1.memory.temperature_celsius"].limits == {"slowdown": 105.0, "shutdown": 115.0}
    assert sensors["gpu1.power_watts"].limits == {"cap": 700.0}
    limit = limits_for(Monitor(alert_threshold_gpu_celsius=104.0)).threshold(main)
    assert limit is not None
    assert limit.text == "100 °C (device (slowdown))"


def test_a_card_that_fell_off_the_bus_moves_no_other() -> None:
    machine = Amd()
    source = own_tool(machine.canned, "amd-smi")
    assert values(source)["gpu1.power_watts"] == 702
    machine.there = [1]
    readings = read(source)
    assert readings["gpu0.power_watts"].missing is Missing.ABSENT
    assert readings["gpu1.power_watts"].value == 702
    machine.canned.calls.clear()
    assert values(source)["gpu1.temperature_celsius"] == 83
    # Who is who is asked for when the numbers change, not for each reading.
    assert machine.canned.calls == [["metric", "--json"]]
    machine.there = [0, 1]
    assert values(source)["gpu0.power_watts"] == 183


def test_without_a_register_one_card_less_is_no_reading_at_all() -> None:
    machine = Amd()
    source = own_tool(Canned(lambda arguments: machine.answer(arguments) if "metric" in arguments else "?"), "amd-smi")
    assert values(source)["gpu1.power_watts"] == 702
    machine.there = [1]
    assert {reading.missing for reading in source.read()} == {Missing.NOT_UNDERSTOOD}


# -------------------------------------------------------------------------------------------- tools of one name


@pytest.mark.parametrize(
    "tool, output, words",
    [
        ("xpu-smi", "xpu-smi_error_intel.txt", "Intel"),
        ("xpu-smi", "xpu-smi-intel_dump.txt", "Intel"),
        ("xpu-smi-intel", "xpu-smi_table.txt", ""),
        ("rocm-smi", "hy-smi_json.txt", "Hygon"),
        ("rocm-smi", "hy-smi_table_hcu.txt", "Hygon"),
        ("rocm-smi-dtk", "rocm-smi_json.txt", "AMD"),
        ("rocm-smi-dtk", "rocm-smi_table.txt", "AMD"),
    ],
)
def test_another_makers_tool_of_the_same_name_is_no_source(tool: str, output: str, words: str) -> None:
    source = own_tool(Canned(text(output)), tool)
    assert not source.probe().ok
    assert source.sensors() == ()
    assert words in source.probe().reason


def test_hygons_cards_are_found_by_amds_tool_of_their_images() -> None:
    assert values(own_tool(Canned(text("hy-smi_json.txt")), "rocm-smi-dtk"))["dcu1.temperature_celsius"] == 79


# ------------------------------------------------------------------------------------------------ broken cards


def test_a_metax_card_that_only_the_list_shows_is_a_fault_of_that_card() -> None:
    def out(arguments: Sequence[str]) -> str:
        if arguments and arguments[0] == "dmon":
            return "dev,hottemp,power,gpu,vram,total\n-,C,W,%,KB,KB\n0,41,74,0,881664,67108864\n"
        return text("mx-smi_list.txt") if "-L" in arguments else "unknown option\n"

    source = own_tool(Canned(out), "mx-smi")
    readings = read(source)
    assert readings["gpu0.temperature_celsius"].value == 41
    assert readings["gpu1.temperature_celsius"].missing is Missing.DEVICE_ERROR
    assert "Sysfs File Unaccessible" in readings["gpu1.temperature_celsius"].detail
    assert {sensor.device: sensor.identity for sensor in source.sensors()} == {
        "gpu0": "GPU-996cde50-bf7e-07c9-a3d4-1270000071d3",
        "gpu1": "0000:1f:00.0",
    }


def test_a_list_without_figures_still_says_what_is_broken() -> None:
    reason = own_tool(Canned(text("mx-smi_list.txt")), "mx-smi").probe().reason
    assert "gpu1: Not Available(MetaX Sysfs File Unaccessible)" in reason


def test_metax_texts_of_power_memory_and_use() -> None:
    out = (
        "GPU#0  MXC500  0000:1e:00.0\n\tBoard Power\n"
        "\t    slot 12V                                  :  12.10 V   2.000 A   24.20 W\n"
        "\t    Total                                     :  12.05 V   4.100 A   49.50 W\n"
        "\tMemory\n"
        "\t    vis_vram total                            :  67108864 KB\n"
        "\t    vis_vram used                             :  881664 KB\n"
    )
    source = own_tool(Canned(out), "mx-smi")
    assert values(source) == {"gpu0.power_watts": 49.5, "gpu0.memory.used_bytes": 881664 * 1024}
    assert {sensor.id: sensor.limits for sensor in source.sensors()}["gpu0.memory.used_bytes"] == {"max": 2.0**36}


def test_a_metax_table_with_more_columns() -> None:
    out = (
        "+---------------------------------------------------------------------------------+\n"
        "| MX-SMI 2.3.1                        Kernel Mode Driver Version: 3.8.30          |\n"
        "|------------------------------------+---------------------+----------------------+\n"
        "| GPU     NAME         Persistence-M | Bus-id              | GPU-Util      sGPU-M |\n"
        "| Temp    Pwr:Usage/Cap         Perf | Memory-Usage        | GPU-State            |\n"
        "|====================================+=====================+======================|\n"
        "| 0       MetaX C500             Off | 0000:38:00.0        | 3%            Native |\n"
        "| 45C     72W / 350W              P9 | 987/65536 MiB       | Available            |\n"
        "+------------------------------------+---------------------+----------------------+\n"
    )
    assert values(own_tool(Canned(out), "mx-smi")) == {
        "gpu0.temperature_celsius": 45,
        "gpu0.power_watts": 72,
        "gpu0.utilization_percent": 3,
        "gpu0.memory.used_bytes": 987 * 2**20,
    }


def test_an_unwell_card_that_still_measures_is_still_measured() -> None:
    hot = text("efsmi_q.txt").replace("Health                   : True", "Health                   : False")
    assert values(own_tool(Canned(hot), "efsmi"))["gcu1.temperature_celsius"] == 74


# ------------------------------------------------------------------------------------------- fields that vary


def refusing(*unknown: str, answer: str) -> Canned:
    """A tool with the query of NVIDIA's that says which field it does not know, one at a time."""

    def out(arguments: Sequence[str]) -> str:
        query = next((one for one in arguments if "--query-gpu=" in one), "")
        for name in query.partition("=")[2].split(","):
            if name in unknown:
                return f'Field "{name}" is not a valid field to query.\n'
        return answer if query and arguments[-1].endswith("csv") else "usage\n"

    return Canned(out)


def test_a_field_that_a_version_does_not_know_is_left_out() -> None:
    canned = refusing("gpu.power.draw", "fan.speed", answer=text("ixsmi_query.txt"))
    assert values(own_tool(canned, "ixsmi"))["gpu1.power_watts"] == 116
    query = canned.calls[-1][0]
    assert "gpu.power.draw" not in query
    assert "board.power.draw" in query


def test_a_field_that_biren_does_not_know_is_not_offered() -> None:
    answer = "index, uuid, memory.used [MiB], memory.total [MiB]\n0, GPU-b1e00000-0001, 512 MiB, 32768 MiB\n"
    canned = refusing("pci.bus_id", "temperature.gpu", "power.draw", "utilization.gpu", answer=answer)
    source = own_tool(canned, "brsmi")
    assert values(source) == {"gpu0.memory.used_bytes": 512 * 2**20}
    assert isinstance(source, TellsAbsent)
    absent = {one.sensor.id: one.reading for one in source.absent()}
    assert absent["gpu0.temperature_celsius"].missing is Missing.NOT_OFFERED
    assert "knows no such field" in absent["gpu0.temperature_celsius"].detail


def test_a_figure_stays_with_the_cell_it_was_found_in() -> None:
    """Board power and chip power are two series: where one falls silent, the other is not taken for it."""
    canned = Canned(text("ixsmi_query.txt"))
    source = own_tool(canned, "ixsmi")
    assert values(source)["gpu1.power_watts"] == 116
    canned.out = text("ixsmi_query.txt").replace("N/A, 116 W", "58 W, N/A")
    assert read(source)["gpu1.power_watts"].missing is Missing.NOT_OFFERED


# ------------------------------------------------------------------------------------------------- any version

IN_ANOTHER_FORM = [
    ("amd-smi", "amd-smi_metric_text.txt", "gpu0"),
    ("rocm-smi", "rocm-smi_table.txt", "gpu1"),
    ("hy-smi", "hy-smi_table_dcu.txt", "dcu1"),
    ("mthreads-gmi", "mthreads-gmi_table.txt", "gpu1"),
    ("ixsmi", "ixsmi_table_wide.txt", "gpu1"),
    ("mx-smi", "mx-smi_dmon.txt", "gpu1"),
    ("efsmi", "efsmi_dmon.txt", "gcu1"),
    ("efsmi", "efsmi_table_1.2.txt", "gcu1"),
    ("xpu-smi", "xpu-smi_m.txt", "xpu1"),
    ("hl-smi", "hl-smi_table.txt", "hpu1"),
]


@pytest.mark.parametrize("tool, output, device", IN_ANOTHER_FORM)
def test_a_version_that_answers_in_another_form_is_read(tool: str, output: str, device: str) -> None:
    assert values(own_tool(Canned(text(output)), tool))[f"{device}.temperature_celsius"] > 30


def test_json_of_enflame_by_its_keys_wherever_they_stand() -> None:
    def device(number: int, celsius: str) -> dict[str, object]:
        return {
            "Dev ID": number,
            "Device Info": {"Dev UUID": f"TPUH7419060{number}", "Health": True},
            "Power Info": {"Cur Power": "96 W", "Power Capa": "300 W"},
            "GCU Info": {"GCU Temp": celsius, "GCU Usage": "12.5 %"},
        }

    out = json.dumps({"devices": [device(0, "35 ℃"), device(1, "N/A")]})
    source = own_tool(Canned(out), "efsmi")
    assert values(source) == {
        "gcu0.temperature_celsius": 35,
        "gcu0.power_watts": 96,
        "gcu0.utilization_percent": 12.5,
        "gcu1.power_watts": 96,
        "gcu1.utilization_percent": 12.5,
    }


@pytest.mark.parametrize(
    "name, tool, fixture",
    [("xpu_smi", "xpu-smi", "xpu-smi_table.txt"), ("ht-smi", "mx-smi", "mx-smi_table.txt")],
)
def test_a_tool_of_another_name_gives_the_same(name: str, tool: str, fixture: str) -> None:
    assert values(own_tool(Canned(text(fixture)), name)) == values(own_tool(Canned(text(fixture)), tool)) != {}
