"""The history of a bench in a real browser: as wide as its window, every mark leads to its run, nobody is asked."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, expect

from pytest_thermal.reporting.history import history_file, read_archive, write_history
from tests.findings.recordings import GPU
from tests.real.conftest import or_skip
from tests.real.parts.browser import browser
from tests.reporting.histories import add_run
from tests.support.patience import PATIENCE_SECONDS

pytestmark = pytest.mark.real

QUARTERS, CARDS = 12, 16


@pytest.fixture(scope="module")
def chromium() -> Iterator[Browser]:
    with or_skip(browser()) as running:
        yield running


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory) -> dict[int, Path]:
    """By how many quarters they tell of."""
    found = {}
    for quarters in (1, QUARTERS):
        archive = tmp_path_factory.mktemp("reports") / "runs"
        before = None
        for quarter in range(quarters):
            cards = [f"gpu{number}" for number in range(1, CARDS)] if quarters > 1 else []
            load = {"mode": "mixed", "concurrent_requests": 16 if quarter == 6 else 8}
            before = add_run(
                archive, quarter, rise={GPU: 34.0 + 0.2 * quarter}, against=before, cards=cards, load=load
            ).name
        found[quarters] = write_history(read_archive(archive), history_file(archive))
    return found


@pytest.mark.parametrize("width", [1280, 390])
@pytest.mark.parametrize("quarters", [1, QUARTERS])
def test_it_is_read_at_any_width(chromium: Browser, pages: dict[int, Path], quarters: int, width: int) -> None:
    context = chromium.new_context(viewport={"width": width, "height": 900})
    page = context.new_page()
    page.set_default_timeout(1000 * PATIENCE_SECONDS)
    trouble: list[str] = []
    asked: list[str] = []
    page.on("console", lambda said: trouble.append(said.text))
    page.on("request", lambda request: asked.append(request.url))
    try:
        page.goto(pages[quarters].as_uri())
        assert page.evaluate("document.documentElement.scrollWidth") == width
        charts = page.locator("#rise-gpu0 svg")
        drawn = charts.bounding_box()
        assert drawn is not None
        assert 240 < drawn["width"] <= width
        assert page.locator("[id^=rise-] svg").count() == (2 if quarters == 1 else CARDS + 1)
        assert page.locator("#rise-gpu0 circle.c0").count() == quarters
        assert page.locator("#rise-gpu0 circle.apart.c0").count() == (0 if quarters == 1 else 1)
        fill = page.locator("#rise-gpu0 circle.c0").first.evaluate("node => getComputedStyle(node).fill")
        assert fill == "rgb(0, 114, 178)"
        assert not trouble
        page.locator("#rise-gpu0 circle.c0").last.click()
        expect(page).to_have_title("its page")
        assert [url for url in asked if not url.startswith("file:")] == []
    finally:
        context.close()
