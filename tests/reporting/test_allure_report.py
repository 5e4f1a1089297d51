from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from pytest_thermal.reporting import allure_report
from pytest_thermal.reporting.allure_report import (
    LONG_LINE,
    ReportFailedError,
    build_report,
    main,
    other_runs,
    report_title,
    shown_runs,
    slim_run,
    without_tracker,
)
from pytest_thermal.reporting.allure_results import newest_of_each_node
from pytest_thermal.reporting.allure_tools import AllureMissingError, AllureTool, find_allure

ROOT = Path(__file__).parents[2]

TRACKER = """
    <script async src="https://www.googletagmanager.com/gtag/js?id=G-0"></script>
    <script>
        window.dataLayer = window.dataLayer || [];
        function gtag(){dataLayer.push(arguments);}
    </script>
    <script>window.kept = 1</script>"""

WELL = """
out = pathlib.Path(config["output"])
out.mkdir(parents=True)
(out / "index.html").write_text("<p>" + config["name"] + "</p>" + tracker)
with open(config["historyPath"], "a") as history:
    history.write(json.dumps({"name": config["name"], "tests": len(list(results.iterdir()))}) + "\\n")
"""

StandIn = Callable[[str], AllureTool]


@pytest.fixture
def stand_in(tmp_path: Path) -> StandIn:
    """Makes a stand-in for Allure 3 that runs some Python with ``config``, ``results`` and ``tracker``."""

    def make(body: str) -> AllureTool:
        script = tmp_path / "allure.py"
        script.write_text(
            "import json, pathlib, sys\n"
            "assert sys.argv[1:3] == ['generate', '--config'], sys.argv\n"
            # A module of several nodes begins as the JSON of one does; the real Allure runs it.
            "text = pathlib.Path(sys.argv[3]).read_text().removeprefix('const config = ')\n"
            "config = json.loads(text.partition(';\\nfor (')[0])\n"
            f"results, tracker = pathlib.Path(sys.argv[4]), {TRACKER!r}\n{body}"
        )
        return AllureTool(command=(sys.executable, str(script)), version="3.18.0")

    return make


@pytest.fixture
def results(tmp_path: Path) -> Path:
    folder = tmp_path / "allure-results" / "20261130T083911Z"
    folder.mkdir(parents=True)
    (folder / "0a-result.json").write_text(
        json.dumps(
            {
                "uuid": "0a",
                "name": "test_key",
                "fullName": "suites.supernode.test_02_gateway#test_key",
                "historyId": "b1946ac92492d2347c6235b4d2611184",
                "testCaseId": "591785b794601e212b260e25925636fd",
                "status": "passed",
                "start": 1,
                "stop": 2,
            }
        )
    )
    return folder


@pytest.fixture
def output(tmp_path: Path) -> Path:
    return tmp_path / "reports" / "allure"


def files_in(folder: Path) -> list[str]:
    return sorted(entry.name for entry in folder.iterdir())


def test_the_page_lies_alone_and_calls_nobody(stand_in: StandIn, results: Path, output: Path) -> None:
    history = output.parent / "history.jsonl"
    page = build_report(results=results, output=output, history=history, tool=stand_in(WELL))
    assert files_in(output) == ["index.html"]
    assert page == output / "index.html"
    assert "googletagmanager" not in page.read_text()
    assert "window.kept" in page.read_text()


def test_a_run_reported_twice_counts_once(stand_in: StandIn, results: Path, output: Path) -> None:
    history = output.parent / "history.jsonl"
    other = results.parent / "20261130T090000Z"
    other.mkdir()
    for run in (results, other, results):
        build_report(results=run, output=output, history=history, tool=stand_in(WELL))
    names = [json.loads(line)["name"] for line in history.read_text().splitlines()]
    assert names == ["pytest-thermal · 20261130T090000Z", "pytest-thermal · 20261130T083911Z"]


@pytest.mark.parametrize(
    "body, message",
    [
        ("print('torn'); sys.exit(1)", r"ended with code 1 and said:\n  torn\nlikely: .*\ntry: "),
        ("sys.exit(3)", r"ended with code 3 and said:\n  \(nothing\)"),
        ("pass", r"ended well and wrote no page\nlikely: .*\ntry: "),
        (
            WELL.replace("+ tracker", "+ '<script data-from=\"googletagmanager\">other()</script>'"),
            r"still loads an analytics script",
        ),
    ],
)
def test_a_failure_leaves_the_earlier_page_and_history(
    stand_in: StandIn, results: Path, output: Path, body: str, message: str
) -> None:
    history = output.parent / "history.jsonl"
    build_report(results=results, output=output, history=history, tool=stand_in(WELL))
    before = (output / "index.html").read_bytes(), history.read_bytes()
    with pytest.raises(ReportFailedError, match=message):
        build_report(results=results, output=output, history=history, tool=stand_in(body))
    assert ((output / "index.html").read_bytes(), history.read_bytes()) == before
    assert files_in(output) == ["index.html"]


def test_a_hanging_allure_is_ended(
    stand_in: StandIn, results: Path, output: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(allure_report, "GENERATE_SECONDS", 0.2)
    tool = stand_in("import time; time.sleep(60)")
    with pytest.raises(ReportFailedError, match=r"was still at it after 0\.2 s and was ended"):
        build_report(results=results, output=output, history=output.parent / "h", tool=tool)


def test_title_says_the_bench_and_that_it_is_simulated(results: Path) -> None:
    assert report_title(results, {"": results}) == "pytest-thermal · 20261130T083911Z"
    facts = results / "environment.properties"
    facts.write_text("Bench=supernode-a\nEvidence=measured\n")
    assert report_title(results, {"n": results}) == "supernode-a · 20261130T083911Z"
    facts.write_text("Bench=demo\nEvidence=SIMULATED (demo bench)\n")
    assert report_title(results, {"n": results}) == "SIMULATED · demo · 20261130T083911Z"


def of_node(folder: Path, node: str, *, ended: int) -> Path:
    folder.mkdir(parents=True)
    file = folder / "0a-result.json"
    file.write_text(json.dumps({"uuid": node, "name": "t", "labels": [{"name": "node", "value": node}]}))
    (folder / "environment.properties").write_text(f"Bench=rack\nNode={node}\nEvidence=measured\n")
    os.utime(file, (ended, ended))
    return folder


def test_merged_nodes_are_one_page_with_an_environment_each(stand_in: StandIn, tmp_path: Path, output: Path) -> None:
    collected = tmp_path / "collected"
    of_node(collected / "a-old", "bench-07", ended=100)
    new = of_node(collected / "a", "bench-07", ended=300)
    other = of_node(collected / "b", "bench-08", ended=200)
    nodes = newest_of_each_node(collected)
    assert nodes == {"bench-07": new, "bench-08": other}
    tool = stand_in(
        WELL.replace(
            'config["name"] + "</p>"',
            'json.dumps([config["name"], sorted(config["environments"]), [a.split("/")[-1] for a in sys.argv[4:]]])',
        )
    )
    page = build_report(results=collected, output=output, history=output.parent / "h", tool=tool, nodes=nodes)
    told = page.read_text().partition("<p>")[2].splitlines()[0]
    assert json.loads(told) == ["2 nodes · collected", ["bench-07", "bench-08"], ["a", "b"]]


def test_many_nodes_are_made_light_and_the_page_says_so(
    stand_in: StandIn, tmp_path: Path, output: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    collected = tmp_path / "collected"
    for node in ("bench-07", "bench-08"):
        (of_node(collected / node, node, ended=100) / "page.html").write_text("<p>the run's page</p>")
    told = WELL.replace(
        'config["name"] + "</p>"',
        'json.dumps([config["variables"], [a in original for a in sys.argv[4:]]])',
    ).replace("out =", f"original = {[str(collected / node) for node in ('bench-07', 'bench-08')]!r}\nout =")
    tool = stand_in(told)
    nodes = newest_of_each_node(collected)
    for most, light in ((10_000, False), (10, True)):
        monkeypatch.setattr("pytest_thermal.reporting.allure_report.MOST_BYTES", most)
        page = build_report(results=collected, output=output, history=output.parent / "h", tool=tool, nodes=nodes)
        variables, originals = json.loads(page.read_text().partition("<p>")[2].splitlines()[0])
        assert ("Left out" in variables) is light
        assert originals == [not light] * 2
    assert files_in(output) == ["index.html"]


def test_other_runs_keeps_what_it_does_not_know(tmp_path: Path) -> None:
    history = tmp_path / "history.jsonl"
    assert other_runs(history, "a") == ""
    history.write_text('{"name": "a"}\n\n{"name": "b"}\nbroken\n[1]\n{"name": "a"}')
    assert other_runs(history, "a") == '{"name": "b"}\nbroken\n[1]\n'


def test_a_long_history_is_made_slim_and_a_short_one_is_left_alone() -> None:
    result = {"name": "rise", "status": "failed", "labels": [{"name": "node", "value": "n"}], "trace": "t" * 900}
    results = {str(number): {**result, "message": "m" * 900} for number in range(300)}
    short = json.dumps({"name": "small", "testResults": {"1": result}})
    assert slim_run(short) == short
    line = json.dumps({"name": "fleet", "testResults": results, "metrics": {"gpu0": 1}})
    assert len(line) > LONG_LINE
    slim = json.loads(slim_run(line))
    assert (slim["name"], slim["metrics"]) == ("fleet", {"gpu0": 1})
    assert slim["testResults"]["7"] == {"name": "rise", "status": "failed", "labels": [], "message": "m" * 200}
    damaged = "x" * LONG_LINE
    assert slim_run(damaged) == damaged
    assert shown_runs([]) == shown_runs([short] * 30) == 20
    assert shown_runs(["x" * 1_000_000]) == 10
    assert shown_runs(["x" * 9_000_000]) == 4


def test_a_page_that_only_speaks_of_the_tracker_is_left_as_it_is() -> None:
    page = "<script>'a message that names googletagmanager'</script>"
    assert without_tracker(page) == page


def test_a_tracker_in_a_form_we_do_not_know_is_no_page() -> None:
    with pytest.raises(ReportFailedError, match=r"analytics script from outside.*\nlikely: .*\ntry: "):
        without_tracker('<script src="https://www.googletagmanager.com/x.js">')


def test_both_tracker_scripts_go_and_nothing_else() -> None:
    assert without_tracker(f"<head>{TRACKER}</head>") == "<head>\n    <script>window.kept = 1</script></head>"


def test_main_says_where_the_page_is(
    stand_in: StandIn,
    results: Path,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(allure_report, "find_allure", lambda **_: stand_in(WELL))
    assert main(["--results", "allure-results", "--output", "out", "--history", "h.jsonl"]) == 0
    said = capsys.readouterr().out
    assert f"Allure report of allure-results/{results.name}, 0.0 MB" in said
    assert (tmp_path / "out" / "index.html").as_uri() in said


def test_main_without_allure_says_that_the_run_is_kept(
    results: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PATH", str(tmp_path))
    (tmp_path / "reports" / "allure").mkdir(parents=True)
    (tmp_path / "reports" / "allure" / "index.html").write_text("earlier")
    assert main(["--results", str(results)]) == 2
    said = capsys.readouterr().err
    assert said.startswith("no Allure report: Allure 3 is neither in .allure nor on the path\nlikely: ")
    assert f"own results are kept in {results}; reports/allure/index.html is of an earlier run" in said
    assert "needs no Node.js" not in said
    for run in ("20260101T000000Z_a", "20260102T000000Z_a"):
        (tmp_path / "reports" / "runs" / run).mkdir(parents=True)
        (tmp_path / "reports" / "runs" / run / "report.html").write_text("page")
    assert main(["--results", str(results)]) == 2
    said = capsys.readouterr().err
    assert "own page needs no Node.js: reports/runs/20260102T000000Z_a/report.html" in said


def test_main_without_results(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--results", str(tmp_path)]) == 2
    assert "no result of any test" in capsys.readouterr().err


def test_main_with_a_failing_allure(
    stand_in: StandIn,
    results: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(allure_report, "find_allure", lambda **_: stand_in("sys.exit(1)"))
    assert main(["--results", str(results)]) == 1
    assert f"The run's own results are kept in {results}\n" in capsys.readouterr().err


def test_the_real_allure(results: Path, output: Path) -> None:
    try:
        tool = find_allure(prefix=ROOT / ".allure", environ={"PATH": "/usr/local/bin:/usr/bin:/bin"})
    except AllureMissingError as error:
        pytest.skip(f"`make report` installs it: {str(error).splitlines()[0]}")
    history = output.parent / "history.jsonl"
    page = build_report(results=results, output=output, history=history, tool=tool)
    assert "googletagmanager" not in page.read_text(encoding="utf-8")
    assert "test_key" in history.read_text(encoding="utf-8")
