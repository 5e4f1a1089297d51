"""One self-contained Allure page from the newest results.

Run as ``python -m pytest_thermal.reporting.allure_report``.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

from pytest_thermal.reporting.allure_config import allure_config, config_file
from pytest_thermal.reporting.allure_lean import LEFT_OUT, MOST_BYTES, heavy_bytes, lean_copy
from pytest_thermal.reporting.allure_results import (
    NoResultsError,
    newest_of_each_node,
    newest_results,
    node_facts,
    nodes_in,
    run_facts,
)
from pytest_thermal.reporting.allure_tools import AllureMissingError, AllureTool, find_allure

HISTORY_RUNS = 20
"""How many earlier runs the page shows; a quarterly check fills this in five years."""

LEAST_HISTORY_RUNS = 4
"""However large they are: a year of quarters."""
LONG_LINE, MOST_HISTORY = 500_000, 10_000_000
"""Characters of one run in the history, and of all that a page shows."""
_SHORT_MESSAGE = 200

GENERATE_SECONDS = 600
"""Allure takes 2 s for 600 tests; ten minutes mean that it hangs."""

RUN_PAGES = Path("reports/runs/RUN/report.html")
"""Where each thermal run leaves a page of its own."""

_TRACKER = re.compile(
    r"\s*<script[^>]*\bgoogletagmanager\b[^>]*>\s*</script>(?:\s*<script[^>]*>\s*window\.dataLayer.*?</script>)?",
    re.DOTALL,
)


class ReportFailedError(Exception):
    """Allure started and made no page. ``str()`` is the whole message for the user."""


def build_report(
    *, results: Path, output: Path, history: Path, tool: AllureTool, nodes: Mapping[str, Path] | None = None
) -> Path:
    """Makes ``output/index.html`` from one run's results and adds the run to ``history``.

    Args:
        results: Of one run; or the folder of several, where ``nodes`` is given.
        output: Where the page goes.
        history: What earlier reports left.
        tool: Allure 3.
        nodes: By node, the folder of its results: they become one report with an environment for each.

    Both are made aside and moved into place: a failure leaves an earlier page and the history as they were.
    Made twice from the same results, the run still counts once in the history.

    Raises:
        ReportFailedError: Allure exited with an error, or wrote no page or one that calls outside.
    """
    if nodes is None:
        nodes = dict.fromkeys(nodes_in(results), results) or {"": results}
    title = report_title(results, nodes)
    output.mkdir(parents=True, exist_ok=True)
    history.parent.mkdir(parents=True, exist_ok=True)
    page = output / "index.html"
    with tempfile.TemporaryDirectory(prefix=".making-", dir=output) as aside:
        made, trends = Path(aside, "page"), Path(aside, "history.jsonl")
        earlier = [slim_run(line) for line in other_runs(history, title).splitlines()]
        trends.write_text("".join(f"{line}\n" for line in earlier), encoding="utf-8")
        folders = list(dict.fromkeys(nodes.values()))
        variables = {"Results": _as_seen_from_here(results)}
        if len(folders) > 1 and heavy_bytes(folders) > MOST_BYTES:
            variables["Left out"] = LEFT_OUT
            folders = [lean_copy(folder, Path(aside, "lean", str(place))) for place, folder in enumerate(folders)]
        content = allure_config(
            title=title,
            output=made.resolve(),
            history=trends.resolve(),
            history_runs=shown_runs(earlier),
            variables=variables,
            nodes={node: node_facts(folder, node) for node, folder in nodes.items()},
        )
        name, text = config_file(content)
        config = Path(aside, name)
        config.write_text(text, encoding="utf-8")
        _generate(tool, config, folders)
        raw = made / "index.html"
        if not raw.is_file():
            raise ReportFailedError(
                f"Allure {tool.version} ended well and wrote no page\n"
                "likely: a version that names its files otherwise\n"
                "try: make report with the version that the Makefile names"
            )
        raw.write_text(without_tracker(raw.read_text(encoding="utf-8")), encoding="utf-8")
        raw.replace(page)
        shutil.move(trends, history)
    return page


def report_title(results: Path, nodes: Mapping[str, Path]) -> str:
    """The bench, where the run says which, and the name of the results folder, which is the run's start.

    Of several nodes, how many there are; simulated, where one of them is.
    """
    told = [run_facts(folder) for folder in dict.fromkeys(nodes.values())]
    benches = dict.fromkeys(facts.get("Bench", "pytest-thermal") for facts in told)
    parts = [next(iter(benches)) if len(nodes) == 1 else f"{len(nodes)} nodes", results.resolve().name]
    if any(facts.get("Evidence", "").startswith("SIMULATED") for facts in told):
        parts.insert(0, "SIMULATED")
    return " · ".join(parts)


def other_runs(history: Path, title: str) -> str:
    """The lines of the history that are no earlier report of the same run, in their order."""
    try:
        text = history.read_text(encoding="utf-8")
    except FileNotFoundError:
        return ""
    lines = (line for line in text.split("\n") if line.strip())
    return "".join(f"{line}\n" for line in lines if _name_of(line) != title)


def slim_run(line: str) -> str:
    """A line of a history that is long, as of many nodes, without what no trend needs: labels, traces, long messages.

    Allure puts every earlier run of every test into the page: of 48 nodes 10 MB a run, and with this a third of it.
    """
    if len(line) < LONG_LINE:
        return line
    try:
        told = json.loads(line)
        for one in told["testResults"].values():
            one["labels"] = []
            one.pop("trace", None)
            if "message" in one:
                one["message"] = str(one["message"])[:_SHORT_MESSAGE]
    except (ValueError, TypeError, KeyError, AttributeError):
        return line
    return json.dumps(told, ensure_ascii=False, separators=(",", ":"))


def shown_runs(earlier: Sequence[str]) -> int:
    """How many runs the page shows: fewer where they are so large that it would not open."""
    longest = max(map(len, earlier), default=1)
    return max(LEAST_HISTORY_RUNS, min(HISTORY_RUNS, MOST_HISTORY // max(longest, 1)))


def without_tracker(page: str) -> str:
    """The page without the analytics script, which Allure 3 puts into it and lets nobody switch off.

    Raises:
        ReportFailedError: a trace of it is left, in a form that this function does not know.
    """
    clean = _TRACKER.sub("", page)
    if re.search(r"<script[^>]*googletagmanager", clean):
        raise ReportFailedError(
            "the page still loads an analytics script from outside, so it was not kept\n"
            "likely: a newer Allure 3 that writes the script otherwise\n"
            "try: make report with the version that the Makefile names"
        )
    return clean


def main(arguments: Sequence[str] | None = None) -> int:
    """The command line. Returns 0 with a page, 1 when Allure failed, 2 when it or the results are missing."""
    parser = argparse.ArgumentParser(
        prog="python -m pytest_thermal.reporting.allure_report",
        description="Makes one self-contained Allure 3 page, which opens from a disk without a server.",
    )
    parser.add_argument(
        "--results",
        type=Path,
        default=Path("reports/allure-results"),
        metavar="DIR",
        help="a run's --alluredir, or the folder of several: the newest is taken (default: %(default)s)",
    )
    parser.add_argument(
        "--output",
        type=Path,
        default=Path("reports/allure"),
        metavar="DIR",
        help="where index.html goes (default: %(default)s)",
    )
    parser.add_argument(
        "--history",
        type=Path,
        default=Path("reports/history.jsonl"),
        metavar="FILE",
        help="what earlier reports left for the trends, and where this one is added (default: %(default)s)",
    )
    parser.add_argument(
        "--allure",
        type=Path,
        default=Path(".allure"),
        metavar="DIR",
        help="npm prefix that Allure 3 is installed in (default: %(default)s, then the path)",
    )
    parser.add_argument(
        "--merge",
        action="store_true",
        help="one report of all nodes whose results lie in --results or right below it: the newest run of each",
    )
    given = parser.parse_args(arguments)
    try:
        nodes = newest_of_each_node(given.results) if given.merge else None
        results = given.results if given.merge else newest_results(given.results)
    except NoResultsError as error:
        return _refuse(str(error), 2)
    try:
        tool = find_allure(prefix=given.allure, environ=os.environ)
        page = build_report(results=results, output=given.output, history=given.history, tool=tool, nodes=nodes)
    except AllureMissingError as error:
        return _refuse(f"{error}\n{_what_is_left(results, given.output)}", 2)
    except (ReportFailedError, OSError) as error:
        return _refuse(f"{error}\n{_what_is_left(results, given.output)}", 1)
    megabytes = page.stat().st_size / 1e6
    sys.stdout.write(
        f"Allure report of {_as_seen_from_here(results)}, {megabytes:.1f} MB, opens in any browser:\n"
        f"  {page}\n  {page.resolve().as_uri()}\n"
    )
    return 0


def _generate(tool: AllureTool, config: Path, results: Sequence[Path]) -> None:
    folders = [str(folder.resolve()) for folder in results]
    command = [*tool.command, "generate", "--config", str(config.resolve()), *folders]
    try:
        done = subprocess.run(
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
            timeout=GENERATE_SECONDS,
            check=False,
        )
    except subprocess.TimeoutExpired:
        raise ReportFailedError(
            f"Allure {tool.version} was still at it after {GENERATE_SECONDS} s and was ended\n"
            "likely: very large attachments, or a machine without free memory\n"
            "try: look at the size of the results folder"
        ) from None
    if done.returncode != 0:
        said = "\n".join(f"  {line}" for line in done.stdout.strip().splitlines()[-15:])
        raise ReportFailedError(
            f"Allure {tool.version} ended with code {done.returncode} and said:\n{said or '  (nothing)'}\n"
            "likely: a damaged file in the results or in the history\n"
            "try: again with --history and a fresh file name"
        )


def _name_of(line: str) -> object:
    """The report name of one line of the history; a line that is no JSON object is nobody's."""
    try:
        point = json.loads(line)
    except ValueError:
        return None
    return point.get("name") if isinstance(point, dict) else None


def _as_seen_from_here(path: Path) -> str:
    """Relative where that is possible: a page that is mailed should not tell where its maker lives."""
    resolved, here = path.resolve(), Path.cwd()
    return str(resolved.relative_to(here)) if resolved.is_relative_to(here) else resolved.name


def _what_is_left(results: Path, output: Path) -> str:
    page = output / "index.html"
    stale = f"; {page} is of an earlier run" if page.exists() else ""
    lines = [f"The run's own results are kept in {results}{stale}"]
    own = sorted(RUN_PAGES.parent.parent.glob(f"*/{RUN_PAGES.name}"))
    if own:
        lines.append(f"The newest thermal run's own page needs no Node.js: {own[-1]}")
    return "\n".join(lines)


def _refuse(message: str, code: int) -> int:
    sys.stderr.write(f"no Allure report: {message}\n")
    return code


if __name__ == "__main__":
    raise SystemExit(main())
