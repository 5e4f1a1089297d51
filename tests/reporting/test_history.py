"""How a bench changes from run to run, as a reviewer reads it."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

import pytest

from pytest_thermal.reporting.history import history_file, history_html, read_archive, write_history
from pytest_thermal.reporting.history.__main__ import main
from pytest_thermal.reporting.history.story import benches
from tests.findings.recordings import CPU, GPU, MEMORY
from tests.reporting.histories import add_run
from tests.reporting.pages import Page

WATTS = 620.0
"""Of a healthy run's card."""


def page_of(archive: Path) -> tuple[Page, str]:
    text = history_html(read_archive(archive), link=lambda run: f"runs/{run.name}/report.html")
    return Page(text), text


def titles(text: str) -> list[str]:
    return [part.partition("</title>")[0] for part in text.split("<title>")[2:]]


def test_points_and_lines_are_the_runs_own_figures(tmp_path: Path) -> None:
    first = add_run(tmp_path, 0, rise={GPU: 34.0}, resistance={GPU: 0.060})
    second = add_run(tmp_path, 1, rise={GPU: 36.5}, resistance={GPU: 0.064}, against=first.name)
    page, text = page_of(tmp_path)
    told = titles(text)
    assert f"{first.name}: gpu0: 34.0 °C" in told
    assert f"{second.name}: gpu0: 36.5 °C" in told
    assert f"{second.name}: gpu0: 0.064 °C/W" in told
    assert f"{second.name} fails at 39.0 °C: 5 °C (default) above {first.name}" in told
    watts = next(iter(read_archive(tmp_path).runs)).points[GPU].figures["resistance"].detail["watts"]
    assert isinstance(watts, float)
    assert f"{second.name} fails at {0.060 + 5 / watts:.3f} °C/W: 5 °C (default) above {first.name}" in told
    assert not [one for one in told if one.startswith(f"{first.name} fails at")]
    links = [attributes["href"] for tag, attributes in page.tags if tag == "a"]
    assert links.count(f"runs/{second.name}/report.html") >= len([one for one in told if second.name in one]) / 2
    assert "2025 Q1" in page.said
    assert "2025 Q2" in page.said


def test_what_was_not_measured_is_no_value(tmp_path: Path) -> None:
    first = add_run(tmp_path, 0)
    outcomes = {("rise", GPU): "inconclusive", ("load", "cpu0"): "inconclusive", ("settled", MEMORY): "failed"}
    second = add_run(tmp_path, 1, rise={GPU: 33.3, MEMORY: 44.4}, against=first.name, outcomes=outcomes)
    _, text = page_of(tmp_path)
    assert f"{second.name}: gpu0: not known: rise: {GPU} is inconclusive by its rise" in titles(text)
    assert f"{second.name}: gpu0 memory: not known: settled: {MEMORY} is failed by its settled" in titles(text)
    assert not [one for one in titles(text) if one.startswith(f"{second.name}: gpu0: 33.3")]
    assert ">33.3<" not in text
    assert ">44.4<" not in text
    known = {run.name: run.points for run in read_archive(tmp_path).runs}
    assert known[second.name][CPU].rise_celsius is not None, "its rise passed, so its load was proven enough"
    assert known[second.name][GPU].resistance is None


def test_a_run_that_failed_by_drift_is_told_first(tmp_path: Path) -> None:
    first = add_run(tmp_path, 0, rise={MEMORY: 34.0})
    failed = {("drift", MEMORY): "failed", ("rise", GPU): "inconclusive"}
    second = add_run(tmp_path, 1, rise={MEMORY: 39.2}, against=first.name, outcomes=failed)
    page, text = page_of(tmp_path)
    assert f"gpu0 memory gets 5.2 °C hotter than in {first.name}: 5 °C or more fails." in page.said
    assert f"{second.name}: gpu0 memory: 39.2 °C\nfailed by drift" in titles(text)
    assert 'class="dot c1 d0 failed"' in text


def test_a_slow_creep_is_told_though_each_step_passed(tmp_path: Path) -> None:
    before = None
    for quarter in range(4):
        before = add_run(tmp_path, quarter, rise={MEMORY: 34.0 + 2.0 * quarter}, against=before).name
    page, _ = page_of(tmp_path)
    first = read_archive(tmp_path).runs[0].name
    assert f"gpu0 memory crept up by 6.0 °C since {first}" in page.said
    assert f"--against {first}" in page.said


def test_runs_that_may_not_be_compared_are_marked_and_say_why(tmp_path: Path) -> None:
    add_run(tmp_path, 0)
    other = add_run(tmp_path, 1, load={"mode": "mixed", "concurrent_requests": 16})
    add_run(tmp_path, 2)
    page, text = page_of(tmp_path)
    why = "another load: concurrent_requests was 16, now 8"
    assert why in page.said
    assert f"not comparable with the newest run: {why}" in "\n".join(titles(text))
    assert text.count(" apart") == text.count(f"{other.name}: gpu0:") + text.count(f"{other.name}: gpu0 memory:") + (
        text.count(f"{other.name}: cpu0 package:")
    )
    assert text.count('class="curve') == 0, "no line may lead over a run that is not comparable"


def test_simulated_runs_stand_apart_from_those_of_a_real_bench_of_that_name(tmp_path: Path) -> None:
    add_run(tmp_path, 0)
    add_run(tmp_path, 1, simulated=True)
    page, text = page_of(tmp_path)
    assert [one.bench for one in benches(read_archive(tmp_path).runs)] == ["lab-7 (simulated)", "lab-7"]
    simulated, _, real = text.partition("<summary>lab-7 on")
    assert "SIMULATED" in simulated
    assert "SIMULATED" not in real
    assert "SIMULATED" in page.said


def test_a_broken_or_foreign_directory_is_listed_and_hides_nothing(tmp_path: Path) -> None:
    good = add_run(tmp_path, 0)
    changed = add_run(tmp_path, 1)
    (changed / "summary.json").write_text((changed / "summary.json").read_text().replace("passed", "failed", 1))
    add_run(tmp_path, 2, state="recording", sha256=None)
    add_run(tmp_path, 3, sensors=[{"id": 3}])
    add_run(tmp_path, 4, works=7, sensors=4)
    add_run(tmp_path, 5, sha256=None)
    add_run(tmp_path, 6, ended_because="the process that recorded is gone")
    lasted = [("baseline", 0.0, 300.0), ("steady", 420.0, 2820.0)]
    phases = [{"name": name, "start_seconds": start, "end_seconds": end} for name, start, end in lasted]
    add_run(tmp_path, 7, plan={"seconds": {"baseline": 300.0, "steady": 90_000.0}}, phases=phases)
    for name, content in (("cut", b'{"format": 1,'), ("empty", b""), ("list", b"[1]"), ("new", b'{"format": 99}')):
        (tmp_path / name).mkdir()
        (tmp_path / name / "run.json").write_bytes(content)
    (tmp_path / "notes <b>").mkdir()
    (tmp_path / "a file.csv").write_text("1,2,3\n")
    archive = read_archive(tmp_path)
    assert len(archive.runs) == 6
    assert {one.name for one in archive.left_out} >= {"cut", "empty", "list", "new", "notes <b>"}
    assert len(archive.left_out) == 7
    page, text = page_of(tmp_path)
    assert "summary.json: changed after the run was sealed" in page.said
    assert "it is not finished: cut off" in page.said
    assert "it was never sealed" in page.said
    assert [run.why_no_figures for run in archive.runs[-2:]] == [
        "it is not finished: cut off",
        "its steady was cut short: 40 min of 25.0 h",
    ]
    assert "no run.json in it" in page.said
    assert "format 99, and this version reads up to 1" in page.said
    assert f"{good.name}: gpu0:" in text
    assert f"{changed.name}: gpu0:" not in text
    assert "<b>" not in text


@pytest.mark.parametrize(
    "summary",
    [
        {"figures": {GPU: [{"name": "rise", "value": "hot"}]}},
        {"figures": {GPU: 7}},
        {"figures": [], "findings": 3},
        {"figures": {GPU: [{"name": "rise", "value": 31.0, "uncertainty": -1, "unit": None}]}},
        {},
    ],
)
def test_a_summary_of_another_program_takes_nothing_along(tmp_path: Path, summary: object) -> None:
    good, odd = add_run(tmp_path, 0), add_run(tmp_path, 1)
    text = json.dumps(summary).encode()
    (odd / "summary.json").write_bytes(text)
    told = json.loads((odd / "run.json").read_text())
    (odd / "run.json").write_text(json.dumps({**told, "sha256": {"summary.json": hashlib.sha256(text).hexdigest()}}))
    _, page = page_of(tmp_path)
    assert f"{good.name}: gpu0:" in page
    assert odd.name in page


def test_one_run_is_a_page_and_none_is_one_too(tmp_path: Path) -> None:
    page, _ = page_of(tmp_path)
    assert "There is no run in" in page.said
    add_run(tmp_path, 0)
    page, text = page_of(tmp_path)
    assert "It was compared with no earlier run: no earlier run" in page.said
    assert "1 run" in page.said
    assert f"{GPU.partition('.')[0]}: " in text


def test_machines_of_one_bench_are_histories_of_their_own_and_containers_are_not(tmp_path: Path) -> None:
    for quarter in range(2):
        for host in ("node-a", "node-b"):
            add_run(tmp_path / "fleet", quarter, host=host)
        add_run(tmp_path / "container", quarter, host=f"{quarter}f3a9c")
    hosts = [one.host for one in benches(read_archive(tmp_path / "fleet").runs)]
    assert sorted(hosts) == ["node-a", "node-b"]
    assert [one.host for one in benches(read_archive(tmp_path / "container").runs)] == [""]


def test_it_loads_and_runs_nothing_and_takes_keys_out(tmp_path: Path) -> None:
    add_run(tmp_path, 0, bench="of sk-secret", load={"mode": "<script>alert(1)</script>"})
    add_run(tmp_path, 1, bench="of sk-secret")
    text = history_html(read_archive(tmp_path), redact=lambda text: text.replace("sk-secret", "[key]"))
    page = Page(text)
    assert "sk-secret" not in text
    assert "of [key]" in page.said
    assert page.scripts == {}
    assert not [tag for tag, _ in page.tags if tag in ("img", "iframe", "script", "object")]
    policy = next(attributes["content"] for tag, attributes in page.tags if attributes.get("http-equiv"))
    assert policy
    assert "script-src 'none'" in policy
    assert "default-src 'none'" in policy
    assert not [attributes for tag, attributes in page.tags if tag == "a"], "nothing is linked where nothing can be"


def test_links_lead_from_the_page_to_each_run(tmp_path: Path) -> None:
    archive = tmp_path / "reports" / "runs"
    run = add_run(archive, 0)
    bare = add_run(archive, 1)
    (bare / "report.html").unlink()
    assert history_file(archive) == tmp_path / "reports" / "history.html"
    assert history_file(tmp_path / "else") == tmp_path / "else" / "history.html"
    written = write_history(read_archive(archive), history_file(archive))
    targets = {str(attributes["href"]) for tag, attributes in Page(written.read_text()).tags if tag == "a"}
    assert targets == {f"runs/{run.name}/report.html"}
    assert (written.parent / next(iter(targets))).is_file()


def test_no_sample_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run = add_run(tmp_path, 0)
    (run / "samples").mkdir()
    (run / "samples" / "big.csv").write_text("time\n")
    (run / "samples" / "big.csv").chmod(0)
    read: list[str] = []
    real = Path.open

    def noted(self: Path, *more: Any, **options: Any) -> Any:
        read.append(self.name)
        return real(self, *more, **options)

    monkeypatch.setattr(Path, "open", noted)
    read_archive(tmp_path)
    assert set(read) == {"run.json", "summary.json"}


def test_the_command_says_where_and_what_it_left_out(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run = add_run(tmp_path / "runs", 0, bench="lab-7")
    (tmp_path / "runs" / "scratch").mkdir()
    assert main([str(tmp_path / "runs"), "--out", str(tmp_path / "out" / "h.html")]) == 0
    said = capsys.readouterr()
    assert said.out.startswith(f"history of 1 run: {tmp_path / 'out' / 'h.html'} (")
    assert said.err == "left out: scratch: no run.json in it\n"
    for wrong, told in ((tmp_path / "none", "there is no such folder"), (run, "this is one run")):
        assert main([str(wrong)]) == 1
        assert told in capsys.readouterr().err
    (tmp_path / "file").write_text("")
    assert main([str(tmp_path / "runs"), "--out", str(tmp_path / "file" / "h.html")]) == 1
    assert "try: --out" in capsys.readouterr().err
