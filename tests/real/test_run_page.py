"""The page of a run in a real browser: drawn, zoomed, switched on and off, and nothing asked of anybody."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from playwright.sync_api import Browser, ConsoleMessage, Page, expect

from pytest_thermal.recording import Recording
from tests.analysis.signals import Plan
from tests.findings.recordings import GPU, PLAN, healthy
from tests.real.conftest import or_skip
from tests.real.parts.browser import browser
from tests.reporting.pages import GAP, faulty, page_of
from tests.support.patience import PATIENCE_SECONDS, until

pytestmark = pytest.mark.real

WIDE, NARROW = 1280, 390
GAP_SECONDS = (PLAN.load_on - PLAN.times[0] + GAP[0], PLAN.load_on - PLAN.times[0] + GAP[1])
LONG = Plan(baseline=300.0, ramp=120.0, steady=4800.0, cooldown=600.0, period=1.0)
"""More readings than are drawn at once."""
PIXELS = """([first, colour]) => {
  // How many pixels of a chart are of a colour, give or take what smoothing does; bands shine through, curves do not.
  const plot = runPage.charts[first].plot, box = plot.bbox;
  const wanted = [1, 3, 5].map(i => parseInt(colour.slice(i, i + 2), 16));
  const seen = plot.ctx.getImageData(box.left, box.top + 14, box.width, box.height - 24).data;
  let count = 0;
  for (let i = 0; i < seen.length; i += 4) {
    if (seen[i + 3] > 200 && wanted.every((value, part) => Math.abs(seen[i + part] - value) < 24)) count++;
  }
  return count;
}"""
ORANGE, ORANGE_BY_NIGHT = "#d55e00", "#ff8f4d"
"""gpu0, the second device."""

Open = Callable[..., Page]


@pytest.fixture(scope="module")
def chromium() -> Iterator[Browser]:
    with or_skip(browser()) as running:
        yield running


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The pages, each made once."""
    made = tmp_path_factory.mktemp("pages")
    values = healthy(LONG).series[GPU].values.copy()
    values[2345] = 97.0
    long = healthy(LONG)
    runs: dict[str, Recording] = {
        "faulty": faulty(),
        "good": healthy(),
        "long": replace(long, series={**long.series, GPU: replace(long.series[GPU], values=values)}),
    }
    for name, run in runs.items():
        (made / f"{name}.html").write_text(page_of(run), encoding="utf-8")
    return made


@pytest.fixture
def opened(chromium: Browser, folder: Path) -> Iterator[Open]:
    """Open a page in a window of its own; at its end it must have complained of nothing and asked nobody."""
    with contextlib.ExitStack() as stack:
        trouble: list[str] = []
        asked: list[str] = []

        def open_page(name: str = "faulty", *, width: int = WIDE, prepare: str = "", **options: Any) -> Page:
            height = 1000 if width > 600 else 844
            context = chromium.new_context(viewport={"width": width, "height": height}, **options)
            stack.callback(context.close)
            page = context.new_page()
            page.set_default_timeout(1000 * PATIENCE_SECONDS)
            page.on("console", lambda said: trouble.append(said.text) if is_trouble(said) else None)
            page.on("pageerror", lambda error: trouble.append(str(error)))
            page.on("request", lambda request: asked.append(request.url))
            if prepare:
                page.add_init_script(prepare)
            page.goto((folder / f"{name}.html").as_uri())
            if options.get("java_script_enabled", True):
                page.evaluate("runPage.ready")
            return page

        yield open_page
        assert not trouble, trouble
        assert {url for url in asked if not url.startswith(folder.as_uri())} == set()


def is_trouble(said: ConsoleMessage) -> bool:
    """That pixels are read back is these tests' own doing."""
    return said.type in ("error", "warning") and "willReadFrequently" not in said.text


def wait(page: Page, condition: str) -> None:
    """Until it holds; Playwright's own way needs eval, which the page forbids."""
    until(lambda: page.evaluate(condition), lambda: condition)


def to_the_curves(page: Page) -> None:
    page.evaluate("document.querySelector('#curves').scrollIntoView()")
    wait(page, "runPage.charts[0].seen && !runPage.charts[0].stale")


def drawn(page: Page, colour: str, chart: int = 0) -> int:
    """Pixels of a colour, once what was asked for is drawn."""
    page.evaluate("new Promise(done => requestAnimationFrame(() => setTimeout(done)))")
    count: int = page.evaluate(PIXELS, [chart, colour])
    return count


def scale(page: Page, chart: int = 0) -> tuple[float, float]:
    found = page.evaluate(f"(({{min, max}}) => [min, max])(runPage.charts[{chart}].plot.scales.x)")
    return found[0], found[1]


class Finger:
    """One finger on the screen; Playwright itself only taps."""

    def __init__(self, page: Page) -> None:
        self._page = page
        self._wire = page.context.new_cdp_session(page)

    def drag(self, start: tuple[float, float], end: tuple[float, float], steps: int = 8) -> None:
        self._send("touchStart", start)
        for step in range(1, steps + 1):
            share = step / steps
            self._send("touchMove", (start[0] + share * (end[0] - start[0]), start[1] + share * (end[1] - start[1])))
            self._page.wait_for_timeout(16)
        self._send("touchEnd")

    def _send(self, kind: str, *points: tuple[float, float]) -> None:
        self._wire.send(
            "Input.dispatchTouchEvent", {"type": kind, "touchPoints": [{"x": x, "y": y} for x, y in points]}
        )


@pytest.mark.parametrize("width", [WIDE, NARROW])
@pytest.mark.parametrize("colours, line", [("light", ORANGE), ("dark", ORANGE_BY_NIGHT)])
def test_curves_are_drawn_and_the_page_is_as_wide_as_its_window(
    opened: Open, width: int, colours: str, line: str
) -> None:
    page = opened(width=width, color_scheme=colours)
    to_the_curves(page)
    assert drawn(page, line) > width / 2
    assert page.evaluate("runPage.charts.map(one => one.spec.id)") == [
        *("temperature", "power", "utilisation", "speed", "requests", "latency", "tokens", "timeline"),
    ]
    assert page.evaluate("document.documentElement.scrollWidth") == width
    plots = page.evaluate("runPage.charts.map(one => one.plot.width)")
    assert width * 0.85 < min(plots) <= max(plots) <= width
    expect(page.locator("#chart-temperature svg")).to_be_hidden()


def test_what_is_in_the_curves_is_what_was_recorded(opened: Open) -> None:
    page = opened()
    index = page.evaluate(f"runPage.charts[0].curves.findIndex(one => one.sensor === '{GPU}')")
    values = page.evaluate(f"runPage.charts[0].levels[0][{index + 1}]")
    times = page.evaluate("runPage.charts[0].levels[0][0]")
    series = faulty().series[GPU]
    np.testing.assert_allclose(times, series.time_seconds - series.time_seconds[0], atol=0.0006)
    np.testing.assert_allclose(np.array(values, dtype=np.float64), series.values, atol=0.0051)


def test_a_gap_is_a_gap(opened: Open) -> None:
    page = opened()
    to_the_curves(page)
    page.evaluate("runPage.toggleDevice('cpu0', true)")
    page.get_by_role("button", name="gpu0 memory").click()
    low, high = GAP_SECONDS
    page.evaluate(f"runPage.setZoom({low + 10}, {high - 10})")
    assert drawn(page, ORANGE) == 0
    page.evaluate(f"runPage.setZoom({low - 200}, {low - 20})")
    assert drawn(page, ORANGE) > 200


def test_dragging_zooms_all_charts_and_a_double_click_shows_the_whole_run(opened: Open) -> None:
    page = opened()
    to_the_curves(page)
    whole = scale(page)
    box = page.locator("#chart-temperature .u-over").bounding_box()
    assert box is not None
    middle = box["y"] + box["height"] / 2
    page.mouse.move(box["x"] + 0.25 * box["width"], middle)
    page.mouse.down()
    page.mouse.move(box["x"] + 0.5 * box["width"], middle, steps=4)
    page.mouse.up()
    wait(page, "runPage.zoom()[1] - runPage.zoom()[0] < 0.5 * runPage.data.duration")
    expected = 0.25 * whole[1], 0.5 * whole[1]
    assert scale(page) == pytest.approx(expected, rel=0.02)
    assert scale(page, 1) == scale(page)
    page.locator("#chart-requests").scroll_into_view_if_needed()
    wait(page, "runPage.charts[4].seen && !runPage.charts[4].stale")
    assert scale(page, 4) == pytest.approx(expected, rel=0.02)
    page.mouse.move(box["x"] + 0.5 * box["width"], middle)
    to_the_curves(page)
    page.locator("#chart-temperature .u-over").dblclick()
    wait(page, "runPage.zoom()[0] === 0 && runPage.zoom()[1] === runPage.data.duration")
    assert scale(page) == whole


def test_a_finger_across_zooms_up_and_down_scrolls_and_two_taps_show_the_whole_run(opened: Open) -> None:
    page = opened(width=NARROW, has_touch=True, is_mobile=True)
    to_the_curves(page)
    whole = scale(page)
    box = page.locator("#chart-temperature .u-over").bounding_box()
    assert box is not None
    middle = box["y"] + box["height"] / 2
    finger = Finger(page)
    finger.drag((box["x"] + 0.25 * box["width"], middle), (box["x"] + 0.5 * box["width"], middle + 4))
    wait(page, "runPage.zoom()[1] - runPage.zoom()[0] < 0.5 * runPage.data.duration")
    assert scale(page) == pytest.approx((0.25 * whole[1], 0.5 * whole[1]), rel=0.05)
    assert scale(page, 1) == scale(page)
    assert page.evaluate("runPage.charts[0].plot.select.width") == 0
    before, scrolled = scale(page), page.evaluate("scrollY")
    finger.drag((box["x"] + 0.5 * box["width"], middle + 40), (box["x"] + 0.51 * box["width"], middle - 120))
    wait(page, f"scrollY > {scrolled} + 50")
    assert scale(page) == before
    to_the_curves(page)
    box = page.locator("#chart-temperature .u-over").bounding_box()
    assert box is not None
    place = box["x"] + 0.5 * box["width"], box["y"] + 60

    def whole_again() -> bool:
        for _ in range(2):  # once more where this machine took so long between the two that they are none
            page.touchscreen.tap(*place)
        found: bool = page.evaluate("runPage.zoom()[0] === 0 && runPage.zoom()[1] === runPage.data.duration")
        return found

    until(whole_again)
    expect(page.locator("#at")).to_contain_text("UTC")


@pytest.mark.parametrize("width", [WIDE, NARROW])
def test_a_phase_is_one_click_away(opened: Open, width: int) -> None:
    page = opened(width=width)
    to_the_curves(page)
    page.get_by_role("button", name="cooldown").click()
    page.evaluate("new Promise(done => requestAnimationFrame(done))")
    start = PLAN.phases["cooldown"].start_seconds - PLAN.times[0]
    assert scale(page)[0] == pytest.approx(start)
    page.get_by_role("button", name="farther").click()
    page.evaluate("new Promise(done => requestAnimationFrame(done))")
    assert scale(page)[0] < start


def test_a_device_is_switched_off_and_on_in_all_charts(opened: Open) -> None:
    page = opened()
    to_the_curves(page)
    before = drawn(page, ORANGE)
    button = page.locator("#controls").get_by_role("button", name="gpu0")
    button.click()
    expect(button).to_have_attribute("aria-pressed", "false")
    assert drawn(page, ORANGE) == 0
    assert drawn(page, ORANGE, chart=1) == 0
    button.click()
    assert drawn(page, ORANGE) == pytest.approx(before, rel=0.02)


def test_the_cursor_tells_time_and_values_of_all_charts_in_sight(opened: Open) -> None:
    page = opened()
    to_the_curves(page)
    box = page.locator("#chart-temperature .u-over").bounding_box()
    assert box is not None
    page.mouse.move(box["x"] + 0.7 * box["width"], box["y"] + 80)
    expect(page.locator("#at")).to_contain_text("UTC")
    shown = page.locator("#chart-temperature .keys output").all_inner_texts()
    at = float(0.7 * (PLAN.times[-1] - PLAN.times[0]))
    recorded = faulty().series[GPU].values[int(at / PLAN.period)]
    assert any(abs(float(text) - recorded) < 3 for text in shown)
    expect(page.locator("#chart-power .keys output").first).not_to_be_empty()


def test_a_long_run_is_drawn_thinner_loses_no_peak_and_gives_all_when_closer(opened: Open) -> None:
    page = opened("long")
    to_the_curves(page)
    index = page.evaluate(f"runPage.charts[0].curves.findIndex(one => one.sensor === '{GPU}')") + 1
    rows = page.evaluate("runPage.charts[0].plot.data[0].length")
    assert rows < LONG.times.size / 2
    assert page.evaluate(f"Math.max(...runPage.charts[0].plot.data[{index}])") == pytest.approx(97.0)
    page.evaluate("runPage.setZoom(2300, 2400)")
    page.evaluate("new Promise(done => requestAnimationFrame(done))")
    assert page.evaluate("runPage.charts[0].plot.data[0].length") == LONG.times.size
    assert page.evaluate(f"runPage.charts[0].plot.data[{index}][2345]") == pytest.approx(97.0)


def test_markup_from_the_run_is_text(opened: Open) -> None:
    page = opened()
    assert page.title().startswith("Thermal run")
    assert page.locator("#errors").inner_text().count("<script>") == 1
    assert page.locator("#errors b, #missing i, img").count() == 0


def test_without_javascript_a_reviewer_still_has_verdict_tables_and_overview(opened: Open) -> None:
    page = opened(java_script_enabled=False)
    expect(page.locator("#verdict")).to_contain_text("Failed")
    expect(page.locator("#chart-temperature svg")).to_be_visible()
    expect(page.locator("#chart-temperature .key")).to_have_text(["cpu0 package", "gpu0"])
    expect(page.locator("#key-figures")).to_be_visible()
    expect(page.get_by_text("With JavaScript they can be zoomed")).to_be_visible()
    expect(page.locator("#chart-clock, #chart-requests").first).to_be_hidden()


def test_a_browser_that_cannot_unpack_shows_the_overview_and_says_why(opened: Open) -> None:
    page = opened(prepare="delete window.DecompressionStream")
    expect(page.get_by_text("This browser cannot unpack the curves")).to_be_visible()
    expect(page.locator("#chart-temperature svg")).to_be_visible()


def test_printed_it_is_light_and_complete(opened: Open) -> None:
    page = opened("good", color_scheme="dark")
    page.emulate_media(media="print", color_scheme="dark")
    page.evaluate("dispatchEvent(new Event('beforeprint'))")
    page.evaluate("new Promise(done => requestAnimationFrame(() => setTimeout(done)))")
    assert drawn(page, ORANGE) > 300
    assert max(page.evaluate("runPage.charts.map(one => one.plot.width)")) <= 700
    expect(page.locator("#controls")).to_be_hidden()
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
    expect(page.get_by_text("throughput_least", exact=True)).to_be_visible()
    assert page.pdf(format="A4").startswith(b"%PDF")
