"""The fleet's page: what stands on it, and that nothing anybody wrote into a run runs."""

from __future__ import annotations

import re
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

from pytest_thermal.model.catalogue import catalogue
from pytest_thermal.reporting.fleet_page import write_fleet_page
from tests.findings.fleet_archives import LEFT_OUT, judged, request_rows, write_fleet, write_node

EVIL = '<img src=x onerror="alert(1)">'
PLACES = '[[node]]\nhost = "n[01-04]"\nbranch = "A"\n[[node]]\nhost = "n[05-08]"\nbranch = "B"\n'


class Reader(HTMLParser):
    """Tags that are there, cells of the matrix, links, and all text."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.links: list[str] = []
        self.framed: list[dict[str, str]] = []
        self.text = ""
        self.feed(html)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        told = {name: value or "" for name, value in attrs}
        self.tags.append(tag)
        if tag == "a":
            self.links.append(told.get("href", ""))
        if tag == "td" and "off" in told.get("class", "").split():
            self.framed.append(told)

    def handle_data(self, data: str) -> None:
        self.text += data


def page(folder: Path, **more: Any) -> Reader:
    path = write_fleet_page(judged(folder, **more), folder / "reports" / "fleet.html")
    return Reader(path.read_text(encoding="utf-8"))


def test_nodes_matrix_places_start_and_quota_are_there(tmp_path: Path) -> None:
    rows: dict[str, Any] = {f"n{number:02}": {"requests": request_rows(0.05)} for number in range(1, 9)}
    rows["n03"]["rises"] = {2: 12.0}
    rows["n06"] = LEFT_OUT
    write_fleet(tmp_path, 8, **rows)
    (next(tmp_path.glob("*_n02")) / "report.html").write_text("its own page")
    found = page(tmp_path, fleet=PLACES)
    assert len(found.framed) == 1
    assert re.match(r"4\d\.\d °C, \+1\d\.\d °C of its own", found.framed[0]["title"])
    assert [link for link in found.links if "n02" in link] == ["../20270115T080000Z_n02/report.html"]
    for words in ("Failed", "n06 is missing", "branch A", "7 nodes entered steady within 0.0 s", "1,260"):
        assert words in found.text


def test_in_chinese_no_english_sentence_is_left(tmp_path: Path) -> None:
    rows: dict[str, Any] = {f"n{number:02}": {"requests": request_rows(0.05)} for number in range(1, 9)}
    rows["n03"]["rises"] = {2: 12.0}
    rows["n06"] = LEFT_OUT
    write_fleet(tmp_path, 8, **rows)
    fleet = judged(tmp_path, fleet=PLACES)
    html = write_fleet_page(fleet, tmp_path / "fleet.html", told=catalogue("zh")).read_text(encoding="utf-8")
    found = Reader(html)
    assert '<html lang="zh-CN">' in html
    assert re.match(r"4\d\.\d °C，自身偏差 \+1\d\.\d °C", found.framed[0]["title"])
    for words in (
        "失败",
        "缺少 n06：fleet.toml 提到了它",
        "支路 A",
        "7 个节点在 0.0 s 内先后进入稳态",
        "n03 gpu2（支路 A）：温升",
    ):
        assert words in found.text
    shown = Reader(html.partition("<main>")[2]).text
    assert shown
    assert not re.findall(r"\b[a-z]+ [a-z]+ [a-z]+\b", shown)


def test_what_a_run_says_is_text_and_nothing_runs(tmp_path: Path) -> None:
    write_fleet(tmp_path)
    write_node(tmp_path, "n09", facts=lambda facts: facts.update(bench=EVIL, host={"name": EVIL}))
    html = write_fleet_page(judged(tmp_path), tmp_path / "fleet.html").read_text(encoding="utf-8")
    found = Reader(html)
    assert EVIL in found.text
    assert "img" not in found.tags
    assert "script" not in found.tags
    assert "style=" not in html
    policy = re.search(r'http-equiv="Content-Security-Policy" content="([^"]*)"', html)
    assert policy is not None
    assert "default-src &#x27;none&#x27;" in policy[1]
    assert "script-src &#x27;none&#x27;" in policy[1]


def test_keys_are_taken_out(tmp_path: Path) -> None:
    write_fleet(tmp_path)
    write_node(tmp_path, "n09", facts=lambda facts: facts.update(bench="sk-secret"))
    fleet = judged(tmp_path)
    path = write_fleet_page(fleet, tmp_path / "fleet.html", redact=lambda text: text.replace("sk-secret", "[key]"))
    assert "sk-secret" not in path.read_text(encoding="utf-8")
    assert "[key]" in path.read_text(encoding="utf-8")


def test_an_empty_archive_has_a_page_that_passes_nothing(tmp_path: Path) -> None:
    found = page(tmp_path)
    assert "Inconclusive" in found.text
    assert "nothing was judged" in found.text
