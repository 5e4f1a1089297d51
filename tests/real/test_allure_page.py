"""The Allure page in a real browser: pictures seen without a click, nodes that stay apart, nothing asked of anybody."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page

from pytest_thermal.reporting.allure_descriptions import finding_text, picture_text
from pytest_thermal.reporting.allure_metrics import allure_metrics
from pytest_thermal.reporting.allure_report import build_report
from pytest_thermal.reporting.allure_results import newest_of_each_node
from pytest_thermal.reporting.allure_tools import AllureMissingError, find_allure
from pytest_thermal.reporting.pictures import Painter, View, finding_scene
from tests.findings.recordings import GPU, healthy, judged
from tests.real.conftest import or_skip
from tests.real.parts.browser import browser
from tests.support.patience import PATIENCE_SECONDS, until

pytestmark = pytest.mark.real

ROOT = Path(__file__).parents[2]
NODES = ("bench-07", "bench-08")


@pytest.fixture(scope="module")
def chromium() -> Iterator[Browser]:
    with or_skip(browser()) as running:
        yield running


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Of two nodes, one test each: the rise of a card, with its picture."""
    try:
        tool = find_allure(prefix=ROOT / ".allure", environ=os.environ)
    except AllureMissingError as error:
        pytest.skip(f"`make report` installs it: {str(error).splitlines()[0]}")
    folder = tmp_path_factory.mktemp("allure")
    judgement = judged(healthy(), simulated=True)
    found = judgement.finding("rise", GPU)
    scene = finding_scene(View(judgement), found)
    assert scene is not None
    text = f"{finding_text(found, simulated=True)}\n\n{picture_text(Painter().paint(scene))}"
    for node in NODES:
        results = folder / "collected" / node
        results.mkdir(parents=True)
        result = {
            "uuid": node,
            "name": "The rise is as it should be",
            "fullName": "suites.thermal.test_03_heat#test_rise",
            "testCaseId": "591785b794601e212b260e25925636fd",
            "status": "passed",
            "description": text,
            "labels": [{"name": "epic", "value": "Thermal"}, {"name": "node", "value": node}],
            "parameters": [{"name": "node", "value": node}],
            "start": 1,
            "stop": 2,
        }
        (results / f"{node}-result.json").write_text(json.dumps(result), encoding="utf-8")
        (results / f"{node}-perf.json").write_text(json.dumps(allure_metrics(judgement, node=node)), encoding="utf-8")
        (results / "environment.properties").write_text(f"Node={node}\nEvidence=SIMULATED\n", encoding="utf-8")
    collected = folder / "collected"
    return build_report(
        results=collected,
        output=folder / "page",
        history=folder / "history.jsonl",
        tool=tool,
        nodes=newest_of_each_node(collected),
    )


@pytest.fixture(params=[1280, 390])
def page(request: pytest.FixtureRequest, chromium: Browser, report: Path) -> Iterator[Page]:
    asked: list[str] = []
    with chromium.new_context(viewport={"width": request.param, "height": 1200}) as context:
        opened = context.new_page()
        opened.set_default_timeout(1000 * PATIENCE_SECONDS)
        opened.on("request", lambda one: asked.append(one.url))
        opened.goto(report.as_uri())
        opened.get_by_text("2 nodes").first.wait_for()
        yield opened
    assert [url for url in asked if not url.startswith(("file:", "data:", "blob:"))] == []


def test_two_nodes_are_two_tests_and_each_shows_its_picture(page: Page) -> None:
    text = page.inner_text("body")
    assert "SIMULATED · 2 nodes · collected" in text
    for node in NODES:
        assert f'Environment: "{node}"' in text
    leaves = page.locator("[data-testid=tree-leaf]")
    sections = page.locator("[data-testid=tree-section]")
    until(lambda: max(sections.count(), leaves.count()) >= len(NODES), lambda: text)
    if leaves.count() < len(NODES):
        for place in range(sections.count()):
            sections.nth(place).dispatch_event("click")
    until(lambda: leaves.count() == len(NODES), lambda: text)
    leaves.first.dispatch_event("click")
    description = page.frame_locator("iframe").first  # Allure gives each a frame without scripts
    picture = description.locator("img[src^='data:image/png']")
    picture.wait_for(state="visible")
    assert picture.evaluate("image => image.complete && image.naturalWidth") >= 700
    box = picture.bounding_box()
    assert box is not None
    assert box["x"] >= 0
    assert box["x"] + box["width"] <= page.viewport_size["width"]  # type: ignore[index]
    assert "at most 40 °C (default)" in description.locator("body").inner_text()
    page.goto(f"{page.url.partition('#')[0]}#metrics")
    page.get_by_text("gpu0 rise").first.wait_for()
