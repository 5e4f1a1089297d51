"""What a picture shows, as data; and that it can be drawn."""

from __future__ import annotations

import io
import sys
from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import pytest

from pytest_thermal.findings import Judgement
from pytest_thermal.model.findings import Finding, Outcome
from pytest_thermal.recording import Recording
from pytest_thermal.reporting.pictures import Painter, View, finding_scene, phase_scene, why_no_pictures
from pytest_thermal.reporting.pictures.scene import Panel, Scene
from pytest_thermal.reporting.pictures.stretches import POINTS, drawn, joined
from tests.analysis.signals import Floats, Plan, loop_run
from tests.findings.recordings import (
    CPU,
    GPU,
    HOT,
    PUMP,
    changed,
    healthy,
    in_phase,
    judged,
    with_limits,
    without,
    without_phase,
)

Image = pytest.importorskip("PIL.Image")


def scene_of(judgement: Judgement, check: str, subject: str) -> Scene:
    scene = finding_scene(View(judgement), judgement.finding(check, subject))
    assert scene is not None
    return scene


def first(judgement: Judgement, check: str, subject: str) -> Panel:
    return scene_of(judgement, check, subject).panels[0]


@pytest.fixture(scope="module")
def good() -> Judgement:
    return judged(healthy())


@pytest.fixture(scope="module")
def painter() -> Painter:
    return Painter()


def lost(values: Floats, plan: Plan) -> Floats:
    steady = np.flatnonzero(in_phase("steady", plan))
    values[steady[100:140]] = np.nan
    return values


def test_a_phase_shows_temperatures_limits_power_and_requests(good: Judgement) -> None:
    scene = phase_scene(View(good), "steady")
    assert scene is not None
    heat, power, requests = scene.panels
    assert [curve.label for curve in heat.curves if not curve.thin] == ["cpu0", "gpu0"]
    assert [curve.label for curve in heat.curves if curve.thin] == ["gpu0 memory"]
    assert [(limit.value, limit.label) for limit in heat.limits] == [
        (83.0, "gpu0 at most 83 °C (default)"),
        (85.0, "cpu0 at most 85 °C (default)"),
    ]
    assert power.unit == "W"
    assert requests.bars is not None
    assert requests.bars.answered_per_second.max() == pytest.approx(4.0, rel=0.1)
    assert not requests.bars.failed_per_second.any()
    steady = good.recording.phases[2]
    assert scene.start_seconds < steady.start_seconds < steady.end_seconds < scene.end_seconds
    assert scene.origin_seconds == steady.start_seconds
    assert "Simulated" not in scene.caption


def test_a_devices_own_limit_is_drawn_where_it_is_the_lower_one() -> None:
    scene = phase_scene(View(judged(with_limits(healthy(), GPU, slowdown=75.0))), "steady")
    assert scene is not None
    assert (75.0, "gpu0 at most 75 °C (device (slowdown))") in [
        (one.value, one.label) for one in scene.panels[0].limits
    ]


def test_a_phase_that_is_not_there_has_no_picture() -> None:
    assert phase_scene(View(judged(without_phase(healthy(), "cooldown"))), "cooldown") is None
    assert phase_scene(View(judged(healthy())), "limit") is None


def test_what_is_missing_is_a_gap_and_is_marked() -> None:
    judgement = judged(changed(healthy(), GPU, lost))
    scene = phase_scene(View(judgement), "steady")
    assert scene is not None
    (gap,) = [band for band in scene.panels[0].bands if band.kind == "missing"]
    assert gap.end_seconds - gap.start_seconds == pytest.approx(200.0)
    curve = next(curve for curve in scene.panels[0].curves if curve.label == "gpu0")
    inside = (curve.time_seconds >= gap.start_seconds) & (curve.time_seconds < gap.end_seconds)
    assert inside.any()
    assert np.isnan(curve.values[inside]).all()
    assert "Hatched" in scene.caption
    assert "Hatched" in scene_of(judgement, "coverage", GPU).caption


def test_throttling_is_a_ribbon_over_its_time() -> None:
    def slowed(values: Floats, plan: Plan) -> Floats:
        steady = np.flatnonzero(in_phase("steady", plan))
        steps = np.zeros(values.size)
        steps[steady[50:90]] = 500.0
        return np.cumsum(steps)

    judgement = judged(changed(healthy(), HOT, slowed))
    (ribbon,) = first(judgement, "throttling", "gpu0").ribbons
    assert (ribbon.label, ribbon.kind) == ("gpu0", "heat")
    ((start, end),) = ribbon.spans
    assert end - start == pytest.approx(200.0)
    assert "never" not in scene_of(judgement, "throttling", "gpu0").caption
    assert "never slowed itself down" in scene_of(judged(healthy()), "throttling", "gpu0").caption


def test_many_devices_that_slow_down_are_one_ribbon() -> None:
    assert len(first(judged(healthy()), "throttling", "gpu0").ribbons) == 0
    judgement = judged(many_cards(6))
    scene = phase_scene(View(judgement), "steady")
    assert scene is not None
    assert [ribbon.label for ribbon in scene.panels[0].ribbons] == ["6 devices"]


def many_cards(count: int) -> Recording:
    """Cards that all slow themselves down through steady."""
    one = healthy()
    series = dict(one.series)
    steps = np.cumsum(np.where(in_phase("steady"), 100.0, 0.0))
    for card in range(count):
        for name in (GPU, HOT):
            source = one.series[name]
            sensor = replace(source.sensor, id=name.replace("gpu0", f"gpu{card}"), device=f"gpu{card}")
            series[sensor.id] = replace(source, sensor=sensor, values=steps if name == HOT else source.values)
    return replace(one, series=series)


def test_the_rise_is_an_arrow_between_the_levels_that_were_judged(good: Judgement) -> None:
    panel = first(good, "rise", GPU)
    evidence = good.finding("rise", GPU).evidence
    (arrow,) = panel.arrows
    assert arrow.start_value == evidence["baseline_celsius"]
    assert arrow.end_value == evidence["steady_celsius"]
    assert arrow.label == f"{evidence['rise_celsius']:+.1f} °C"
    (limit,) = panel.limits
    assert limit.value == pytest.approx(arrow.start_value + 40.0)
    windows = [band.end_seconds - band.start_seconds for band in panel.bands if band.kind == "window"]
    assert windows == pytest.approx([60.0, 300.0])
    assert "at most 40 °C (default)" in scene_of(good, "rise", GPU).caption


def test_the_peak_is_marked_where_it_was_read(good: Judgement) -> None:
    (mark,) = first(good, "threshold", GPU).marks
    series = good.recording.series[GPU]
    assert mark.value == series.values.max()
    assert series.values[series.time_seconds == mark.time_seconds] == [mark.value]
    assert "at most 83 °C (default)" in [limit.label for limit in first(good, "threshold", GPU).limits]


def test_settled_shows_its_slope_and_what_is_allowed(good: Judgement) -> None:
    levels = first(good, "settled", GPU).levels
    slope = good.finding("settled", GPU).evidence["slope_celsius_per_minute"]
    (line,) = [level for level in levels if not level.dotted]
    seconds = line.end_seconds - line.start_seconds
    assert 60 * (line.end_value - line.start_value) / seconds == pytest.approx(slope)
    allowed = [60 * (one.end_value - one.start_value) / seconds for one in levels if one.dotted]
    assert sorted(allowed) == pytest.approx([-0.2, 0.2])


def test_a_rebound_is_shaded_from_where_it_begins() -> None:
    def back(values: Floats, plan: Plan) -> Floats:
        cooldown = np.flatnonzero(in_phase("cooldown", plan))
        values[cooldown[60:90]] += 6.0
        return values

    judgement = judged(changed(healthy(), GPU, back))
    found = judgement.finding("rebound", GPU)
    assert found.outcome is Outcome.FAILED
    panel = first(judgement, "rebound", GPU)
    (arrow,) = panel.arrows
    assert arrow.end_value - arrow.start_value == pytest.approx(found.evidence["rebound_celsius"])
    (window,) = [band for band in panel.bands if band.kind == "window"]
    cooldown = judgement.recording.phases[-1]
    assert window.start_seconds - cooldown.start_seconds == pytest.approx(300.0, abs=20.0)
    assert first(judged(healthy()), "rebound", GPU).arrows == ()


def test_a_pump_that_stops_is_drawn_against_half_of_its_speed() -> None:
    def stopped(values: Floats, plan: Plan) -> Floats:
        values[np.flatnonzero(in_phase("steady", plan))[200:]] = 0.0
        return values

    judgement = judged(changed(healthy(), PUMP, stopped))
    scene = scene_of(judgement, "pump", PUMP)
    speed, heat = scene.panels
    (limit,) = speed.limits
    assert limit.value == pytest.approx(1400.0, rel=0.02)
    assert [curve.label for curve in heat.curves] == ["cpu0", "gpu0"]


def test_simulated_is_in_every_caption() -> None:
    judgement = judged(healthy(), simulated=True)
    view = View(judgement)
    scenes = [phase_scene(view, "steady"), *(finding_scene(view, found) for found in judgement.findings())]
    drawn_ones = [scene for scene in scenes if scene is not None]
    assert len(drawn_ones) > 20
    for scene in drawn_ones:
        assert scene.simulated
        assert scene.caption.endswith("Simulated: the demo bench, no real machine.")


def findings_of(recording: Recording) -> Iterator[tuple[View, Finding]]:
    judgement = judged(recording)
    view = View(judgement)
    for found in judgement.findings():
        yield view, found


@pytest.mark.parametrize(
    "recording",
    [
        healthy(),
        without_phase(healthy(), "baseline"),
        without_phase(healthy(), "steady", "ramp", "cooldown"),
        without(healthy(), "gpu0.power_watts", "gpu0.utilization_percent", CPU),
        changed(healthy(), GPU, lambda values, _: np.full(values.size, np.nan)),
        changed(healthy(), GPU, lambda values, _: np.full(values.size, 40.0)),
    ],
    ids=["healthy", "no baseline", "baseline alone", "few sensors", "a sensor without a reading", "a stuck sensor"],
)
def test_whatever_was_recorded_no_finding_makes_a_picture_fail(recording: Recording, painter: Painter) -> None:
    scenes = [scene for view, found in findings_of(recording) if (scene := finding_scene(view, found)) is not None]
    assert scenes
    # Drawing costs: one of each shape.
    for scene in {len(scene.panels) * 100 + len(scene.panels[0].levels): scene for scene in scenes}.values():
        assert painter.paint(scene).png.startswith(b"\x89PNG")


def test_a_picture_fits_the_column_and_the_mail(good: Judgement, painter: Painter) -> None:
    scene = phase_scene(View(good), "steady")
    assert scene is not None
    picture = painter.paint(scene, svg=True)
    image = Image.open(io.BytesIO(picture.png))
    assert 700 <= image.width <= 1000
    assert 300 <= image.height <= 800
    assert len(picture.png) < 60_000
    text = picture.svg.decode()
    assert "gpu0 at most 83 °C (default)" in text
    assert "<script" not in text
    assert painter.paint(scene, svg=True) == picture


def colours_in(png: bytes) -> set[tuple[int, int, int]]:
    return {colour for _, colour in Image.open(io.BytesIO(png)).convert("RGB").getcolors(1 << 20)}


def test_a_simulated_picture_says_so_in_itself(painter: Painter) -> None:
    text = []
    for simulated in (False, True):
        scene = phase_scene(View(judged(healthy(), simulated=simulated)), "baseline")
        assert scene is not None
        picture = painter.paint(scene, svg=True)
        text.append("SIMULATED" in picture.svg.decode())
        # On white, between the paper and the grid: there only where the word is, and kept by the palette.
        greys = {red for red, green, blue in colours_in(picture.png) if abs(red - green) < 4 and abs(green - blue) < 4}
        assert any(222 < grey < 236 for grey in greys) >= simulated
    assert text == [False, True]


def test_without_matplotlib_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    assert why_no_pictures() == ""
    monkeypatch.setitem(sys.modules, "matplotlib.backends.backend_agg", None)
    assert "pip install 'pytest-thermal[report]'" in why_no_pictures()


def test_no_peak_is_lost_of_many_readings() -> None:
    plan = Plan(baseline=300.0, ramp=120.0, steady=7200.0, cooldown=600.0, period=1.0)
    series = loop_run(plan, np.random.default_rng(3)).temperature
    values = series.values.copy()
    values[4321] = 99.0
    values[6000:6200] = np.nan
    times, found = drawn(replace(series, values=values), plan.times[0], plan.times[-1])
    assert times.size <= 2 * POINTS + 2
    assert np.nanmax(found) == 99.0
    assert times[np.nanargmax(found)] == pytest.approx(plan.times[4321], abs=15)
    hole = (times > plan.times[6020]) & (times < plan.times[6180])
    assert hole.any()
    assert np.isnan(found[hole]).all()
    assert (np.diff(times) > 0).all()


def test_stretches_are_cut_and_joined() -> None:
    assert joined([(50.0, 60.0), (-5.0, 10.0), (10.05, 20.0), (95.0, 130.0), (200.0, 300.0)], 0.0, 100.0) == (
        (0.0, 20.0),
        (50.0, 60.0),
        (95.0, 100.0),
    )
