"""Whatever a server, or what stands before it, answers: a sample is as it was told, or there is none; never a crash."""

from __future__ import annotations

import json

import httpx
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_thermal.model import Unit
from pytest_thermal.sensors.prometheus import exporters
from pytest_thermal.sensors.prometheus.answer import Answered, Sample, read_answer
from pytest_thermal.sensors.prometheus.promql import selector, selectors, unit_of
from pytest_thermal.transport import Exchange
from tests.sensors.damage import Damage, after, cheaply, damages

SAMPLES = [
    {"metric": {"__name__": "DCGM_FI_DEV_GPU_TEMP", "gpu": "0"}, "value": [1796066393.564, "51"]},
    {"metric": {"__name__": "DCGM_FI_DEV_POWER_USAGE", "gpu": "0"}, "value": [1796066393.564, "412.5"]},
    {"metric": {"__name__": "ipmi_fan_speed_rpm", "name": "Pump 1"}, "value": [1796066393.564, "NaN"]},
    {"metric": {"__name__": "room_celsius", "place": "机房"}, "value": [1796066393.564, "2.15e+01"]},
]
ANSWER = {"status": "success", "data": {"resultType": "vector", "result": SAMPLES}}


def answered(body: bytes, status: int = 200) -> Answered:
    headers = httpx.Headers({"content-type": "application/json"})
    return read_answer(
        Exchange(method="POST", url="http://p/api/v1/query", status=status, headers=headers, body=body)
    )  # fmt: skip


@pytest.mark.parametrize("number, address", [("id", "pcie_bus_info"), ("npuID", "pcie")])
def test_both_chips_of_a_card_with_one_address_are_two_devices(number: str, address: str) -> None:
    labels = [{"__name__": "npu_chip_info_temperature", number: chip, address: "0000:0B:00.0"} for chip in "01"]
    found = exporters.sensors_of([Sample(labels=one, value=50.0, text="50") for one in labels])
    assert [(one.device, one.identity) for one in found] == [
        ("npu0", "0000:0B:00.0 npu0"),
        ("npu1", "0000:0B:00.0 npu1"),
    ]


@pytest.mark.parametrize("indent", [None, 1])
def test_a_damaged_answer_holds_nothing_wrong(indent: int | None) -> None:
    whole = json.dumps(ANSWER, indent=indent).encode()
    right = {(sample.name, sample.series): sample.text for sample in answered(whole).samples}
    assert len(right) == len(SAMPLES)

    @cheaply(examples=150)
    @given(damages(whole.count(b"\n") + 1, len(whole)))
    def holds(damage: list[Damage]) -> None:
        found = answered(after(whole, damage))
        assert found.samples or found.problem
        for sample in found.samples:
            assert right.get((sample.name, sample.series), sample.text) == sample.text

    holds()


KEYS = st.sampled_from(["status", "data", "resultType", "result", "metric", "value", "values", "error"])
ANYTHING = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS | st.text(max_size=3), inner, max_size=4),
    max_leaves=10,
)
SERIES = st.fixed_dictionaries(
    {
        "metric": ANYTHING | st.dictionaries(st.text(max_size=4), st.text(max_size=4), max_size=3),
        "value": ANYTHING | st.tuples(st.floats(), st.text(max_size=5)),
    }
)
NEAR = st.fixed_dictionaries(
    {
        "status": st.sampled_from(["success", "error"]),
        "data": ANYTHING
        | st.fixed_dictionaries(
            {
                "resultType": st.sampled_from(["vector", "matrix", "scalar", "string", "streams"]) | ANYTHING,
                "result": ANYTHING | st.lists(ANYTHING | SERIES, max_size=3),
            }
        ),
    }
)


@cheaply(examples=150)
@given(ANYTHING | NEAR, st.sampled_from([200, 204, 302, 400, 422, 503]))
def test_no_answer_is_a_crash(answer: object, status: int) -> None:
    found = answered(json.dumps(answer).encode(), status)
    assert found.problem or found.kind


@cheaply(examples=150)
@given(st.text(alphabet=list("abc_:{}[]()\"'`\\=~!,0159.# mby\n+*/@-<>"), max_size=40))
def test_no_expression_is_a_crash(expression: str) -> None:
    for one in selectors(expression):
        assert one.text
    unit_of(expression, exporters.UNITS)


@pytest.mark.parametrize(
    "expression, found, unit",
    [
        ("cdu_pump_rpm", ["cdu_pump_rpm"], Unit.RPM),
        ('ipmi_temperature_celsius{name="Outlet Coolant"}', ['ipmi_temperature_celsius{name="Outlet Coolant"}'], "c"),
        ('max by (name) (a_celsius{name=~"x}y"}) - min(a_celsius) ', ['a_celsius{name=~"x}y"}', "a_celsius"], "c"),
        ("avg_over_time(a_watts[5m:1m] offset 1h)", ["a_watts"], Unit.WATTS),
        ("rate(node_rapl_package_joules_total[1m])", ["node_rapl_package_joules_total"], Unit.WATTS),
        ("node_rapl_package_joules_total", ["node_rapl_package_joules_total"], None),
        ("a_celsius * on(instance) group_left(name) b_info", ["a_celsius", "b_info"], "c"),
        ("sum(a_watts) without (gpu) / 1e3", ["a_watts"], Unit.WATTS),
        ("DCGM_FI_DEV_GPU_TEMP > bool 80", ["DCGM_FI_DEV_GPU_TEMP"], "c"),
        ("job:pump_rpm:max5m", ["job:pump_rpm:max5m"], Unit.RPM),
        ('{__name__="room_celsius",place="a"}', ['{__name__="room_celsius",place="a"}'], "c"),
        ("a_celsius + b_watts", ["a_celsius", "b_watts"], None),
        ("1 / 0", [], None),
    ],
)
def test_what_an_expression_is_made_of(expression: str, found: list[str], unit: Unit | str | None) -> None:
    assert [one.text for one in selectors(expression)] == found
    told = unit_of(expression, exporters.UNITS)
    assert (told[0] if told else None) == (Unit.CELSIUS if unit == "c" else unit)


def test_labels_are_matched_as_they_are_written() -> None:
    assert selector(["a"], {"instance": ["node7", "10.0.0.7:9100"]}) == (
        '{__name__=~"a",instance=~"node7(:[0-9]+)?|10\\\\.0\\\\.0\\\\.7:9100"}'
    )
    assert selector([], {"name": ['a "b"\\']}) == '{name=~"a\\\\ \\"b\\"\\\\\\\\"}'
