from __future__ import annotations

import pytest

from pytest_thermal.model import Finding, Outcome
from pytest_thermal.model.findings import Scalar
from pytest_thermal.reporting.allure_descriptions import evidence_table, finding_text, markdown, picture_text
from pytest_thermal.reporting.phase_table import phase_table
from pytest_thermal.reporting.pictures import Picture
from tests.findings.recordings import GPU, changed, healthy, judged, with_limits


def cells(line: str) -> list[str]:
    return [cell.strip() for cell in line.strip("|").split("|")]


def finding(**more: object) -> Finding:
    told: dict[str, object] = {
        "check": "rise",
        "layer": "rise",
        "subject": GPU,
        "outcome": Outcome.FAILED,
        "seen": "gpu0 rose by 53.4 °C, more than 40 °C (default)",
        "likely": "pump stopped: the pump stands still",
        "advice": "look at the pump",
    }
    return Finding(**{**told, **more})  # type: ignore[arg-type]


def test_verdict_cause_and_next_step_in_plain_words() -> None:
    text = finding_text(finding(warnings=("a note",)), simulated=False)
    assert text.splitlines()[0] == "**Failed** — rise: gpu0 rose by 53.4 °C, more than 40 °C (default)"
    assert "- likely: pump stopped: the pump stands still" in text
    assert "- try: look at the pump" in text
    assert "- note: a note" in text
    assert "imulated" not in text
    assert "*Simulated: the embedded demo bench, no real machine.*" in finding_text(finding(), simulated=True)


def test_inconclusive_says_that_it_is_no_pass_and_says_it_once() -> None:
    text = finding_text(finding(outcome=Outcome.INCONCLUSIVE, seen="the slope is not known"), simulated=False)
    assert text.startswith("**Inconclusive: not measured, so not passed** — rise: the slope is not known")


@pytest.mark.parametrize(
    "evidence, expected",
    [
        (
            {"rise_celsius": 35.61, "uncertainty_celsius": 0.02, "baseline_celsius": 32.9, "limit_celsius": 40.0,
             "limit_origin": "default", "simulated": True},
            [["rise", "35.6 ± 0.1 °C", "≤ 40 °C (default)", "4.4 °C"], ["baseline", "32.9 °C", "", ""]],
        ),
        (
            {"peak_celsius": 87.5, "limit_celsius": 83.0, "limit_origin": "config.toml [thermal] alert_threshold_gpu",
             "phase": "steady"},
            [
                ["peak", "87.5 °C", "≤ 83 °C (config.toml \\[thermal\\] alert\\_threshold\\_gpu)", "**-4.5 °C**"],
                ["phase", "steady", "", ""],
            ],
        ),
        (
            {"slope_celsius_per_minute": 0.03, "remaining_celsius": 0.1, "limit_celsius_per_minute": 0.2,
             "limit_origin": "default", "limit_remaining_celsius": 1.0},
            [
                ["slope", "0.030 K/min", "≤ 0.2 K/min (default)", "0.170 K/min"],
                ["remaining", "0.1 °C", "≤ 1 °C (default)", "0.9 °C"],
            ],
        ),
        (
            {"ramp_thermal_milliseconds": 0.0, "steady_thermal_milliseconds": 340.0, "limit_milliseconds": 0.0},
            [["ramp thermal", "0 ms", "≤ 0 ms", "0 ms"], ["steady thermal", "340 ms", "≤ 0 ms", "**-340 ms**"]],
        ),
        (
            {"held": 0.87, "uncertainty": 0.02, "requests": 1312, "limit": 0.9, "limit_origin": "default"},
            [["held", "87 ± 2 %", "≥ 90 % (default)", "**-3 %**"], ["requests", "1,312", "", ""]],
        ),
        (
            {"rebound_celsius": 0.0, "limit_celsius": 2.0, "limit_seconds": 30.0, "limit_origin": "default"},
            [["rebound", "0.0 °C", "≤ 2 °C (default)", "2.0 °C"], ["limit", "", "30 s", ""]],
        ),
        ({"requests": 16, "model": "a|b", "answer": None}, [["requests", "16"], ["model", "a\\", "b"]]),
        ({"simulated": True}, []),
        ({}, []),
    ],
)  # fmt: skip
def test_each_figure_stands_beside_its_limit(evidence: dict[str, Scalar], expected: list[list[str]]) -> None:
    assert [cells(line) for line in evidence_table(evidence)[2:]] == expected


def test_the_picture_is_seen_without_a_click_and_its_caption_is_text() -> None:
    text = picture_text(Picture(png=b"\x89PNG", svg=b"", caption="gpu0 [A_b] | <x>"))
    image, caption = text.split("\n\n")
    assert image.startswith("![gpu0 ")
    assert image.endswith("](data:image/png;base64,iVBORw==)")
    assert image.index("](") == image.index("](data:")
    assert caption == "*gpu0 \\[A\\_b\\] \\| &lt;x>*"


def test_markup_in_what_a_gateway_said_is_text() -> None:
    assert markdown("<img src=x> **a** `b`\n# c") == "&lt;img src=x> \\*\\*a\\*\\* \\`b\\` # c"


def test_a_phase_says_where_each_sensor_began_and_ended() -> None:
    judgement = judged(with_limits(healthy(), GPU, slowdown=60.0))
    head, _, *rows = phase_table(judgement, "steady")
    assert cells(head) == ["sensor", "at its start", "at its end", "change", "highest", "limit", "left"]
    found = {cells(row)[0]: cells(row)[1:] for row in rows}
    assert set(found) == {
        "`cpu0.package`",
        "`gpu0`",
        "`gpu0.memory`",
        "`cpu0.package.power_watts`",
        "`gpu0.power_watts`",
    }
    start, end, change, highest, limit, left = found["`gpu0`"]
    assert float(change.split()[0]) == pytest.approx(float(end.split()[0]) - float(start.split()[0]), abs=0.11)
    assert limit == "≤ 60 °C (device (slowdown))"
    over = 60 - float(highest.split()[0])
    assert left == (f"**{over:.1f} °C**" if over < 0 else f"{over:.1f} °C")
    assert found["`cpu0.package`"][4] == "≤ 85 °C (default)"
    assert phase_table(judgement, "limit") == []


def test_a_sensor_without_a_reading_has_no_figures_in_the_table() -> None:
    judgement = judged(changed(healthy(), GPU, lambda values, _: values * float("nan")))
    row = next(line for line in phase_table(judgement, "steady") if line.startswith("| `gpu0` "))
    assert cells(row) == ["`gpu0`", "–", "–", "–", "no reading", "", ""]
