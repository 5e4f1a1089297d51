"""What it costs to judge a fleet: 48 nodes with their samples, 1,000 by their summaries; and whether that is linear.

The archive is simulated, and says so. It is made by construction: one bad card, one warm branch within a rack, one node
that is missing; the judgement must find these and nothing else. Each measurement is a process of its own.
"""

from __future__ import annotations

import argparse
import itertools
import json
import platform
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from judgement import CARDS, write_run

from pytest_thermal.bench import Monitor
from pytest_thermal.bench.fleet_file import read_fleet_file
from pytest_thermal.findings import Judgement, limits_for
from pytest_thermal.recording import read_run, write_summary
from pytest_thermal.recording.layout import RUN, SUMMARY, sealed

HOURS, PER_SECOND = 1.0, 5.0
BUDGET_SECONDS, BUDGET_MEGABYTES = 60.0, 2000.0
"""For 48 nodes of 8 cards, 1 h at 1 s."""
COOLER_CELSIUS = 6.5
"""Than the runs of the other benchmark: so that neither the card nor the branch is beyond a limit of its own run."""
BAD_CARD_CELSIUS, WARM_BRANCH_CELSIUS, SPREAD_CELSIUS = 12.0, 8.0, 0.7
MANY = (100, 300, 1000)


def names(count: int) -> list[str]:
    """Of the nodes; the last of them has no run."""
    return [f"n{number:04}" for number in range(1, count + 1)]


def places(count: int) -> str:
    """Two racks of two branches each."""
    edges = np.linspace(0, count, 5).astype(int).tolist()
    tables = []
    for index, (first, last) in enumerate(itertools.pairwise(edges)):
        hosts = f"n[{first + 1:04}-{last:04}]"
        tables.append(f'[[node]]\nhost = "{hosts}"\nrack = "R{index // 2 + 1}"\nbranch = "{"ABCD"[index]}"\n')
    return "\n".join(tables)


def warmer(number: int, count: int, rng: np.random.Generator) -> dict[int, float]:
    """What the cards of a node rise by more than others': chance, the bad card, the warm branch."""
    found = {card: float(rng.normal(-COOLER_CELSIUS, SPREAD_CELSIUS)) for card in range(CARDS)}
    if number == 2:
        found[3] += BAD_CARD_CELSIUS
    if count // 4 <= number < count // 2:
        found = {card: value + WARM_BRANCH_CELSIUS for card, value in found.items()}
    return found


def make(archive: Path, count: int) -> None:
    """An archive with samples, requests and a sealed summary of each node."""
    rng = np.random.default_rng(7)
    for number, node in enumerate(names(count)[:-1]):
        run = write_run(
            archive, HOURS, per_second=PER_SECOND, only_temperatures=False, seed=number, node=node,
            warmer=warmer(number, count, rng),
        )  # fmt: skip
        judgement = Judgement(read_run(run), limits_for(Monitor()), simulated=True)
        write_summary(run, judgement.summary())
    (archive / "fleet.toml").write_text(places(count))


def multiply(template: Path, archive: Path, count: int) -> None:
    """Many nodes from one: its summary with other rises, and no samples, which a disk for a thousand would not hold."""
    rng = np.random.default_rng(7)
    facts = json.loads((template / RUN).read_bytes())
    summary = json.loads((template / SUMMARY).read_bytes())
    for number, node in enumerate(names(count)[:-1]):
        run = archive / f"{template.name.partition('_')[0]}_{node}"
        run.mkdir(parents=True)
        shutil.copy(template / "requests.csv", run / "requests.csv")
        own = json.loads(json.dumps(summary))  # whose cards are cooler already
        for card, more in warmer(number, count, rng).items():
            for sensor in (f"gpu{card}.temperature_celsius", f"gpu{card}.memory.temperature_celsius"):
                for figure in own["figures"][sensor]:
                    if figure["name"] in ("rise", "peak", "steady"):
                        figure["value"] += more + COOLER_CELSIUS
        (run / SUMMARY).write_text(json.dumps(own))
        told = sealed(run, {**facts, "host": {**facts["host"], "name": node}})
        (run / RUN).write_text(json.dumps(told))
    (archive / "fleet.toml").write_text(places(count))


def judge(archive: Path, *, anew: bool) -> dict[str, Any]:
    """Seconds and megabytes of one judgement, and what it found."""
    begin, cpu = time.perf_counter(), time.process_time()
    from pytest_thermal.findings.fleet.archive import find_fleet
    from pytest_thermal.findings.fleet.judgement import FleetJudgement
    from pytest_thermal.reporting.fleet_page import write_fleet_page

    told = read_fleet_file(archive / "fleet.toml")
    limits = limits_for(Monitor())
    roster = find_fleet(archive, expected=dict.fromkeys(told.hosts, "fleet.toml"))
    found = time.perf_counter()
    fleet = FleetJudgement(roster, limits, places=told, limits_of_runs=(lambda _: limits) if anew else None)
    runs = fleet.runs
    read = time.perf_counter()
    findings = [one for one in fleet.findings() if one.check != "simultaneous"]
    judged = time.perf_counter()
    page = write_fleet_page(fleet, archive / "fleet.html")
    ended, ended_cpu = time.perf_counter(), time.process_time()
    bad = [one for one in findings if str(one.outcome) in ("failed", "inconclusive")]
    return {
        "nodes": len(roster.nodes),
        "runs": len(runs),
        "by": sorted({run.how for run in runs.values()}),
        "find": found - begin,
        "read": read - found,
        "judge": judged - read,
        "page": ended - judged,
        "all": ended - begin,
        "cpu": ended_cpu - cpu,
        "megabytes": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
        "page_megabytes": page.stat().st_size / 1e6,
        "bad": [f"{one.check}[{one.subject}]" for one in bad],
    }


def measured(archive: Path, *, anew: bool) -> dict[str, Any]:
    """The same in a fresh process."""
    command = [sys.executable, __file__, "--judge", str(archive), *(["--anew"] if anew else [])]
    done = subprocess.run(command, check=True, stdout=subprocess.PIPE, timeout=1800)
    told: dict[str, Any] = json.loads(done.stdout)
    return told


def row(what: str, told: dict[str, Any]) -> str:
    """A line of the table."""
    numbers = " | ".join(f"{told[name]:.1f}" for name in ("find", "read", "judge", "page", "all", "cpu"))
    each = 1000 * told["cpu"] / told["nodes"]
    found = ", ".join(told["bad"][:4]) + (f" and {len(told['bad']) - 4} more" if len(told["bad"]) > 4 else "")
    return f"| {what} | {numbers} | {each:.0f} | {told['megabytes']:.0f} | {found} |"


def main(arguments: Sequence[str] | None = None) -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--judge", type=Path, help=argparse.SUPPRESS)
    parser.add_argument("--anew", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("--nodes", type=int, default=48, help="with samples (default 48)")
    parser.add_argument("--many", type=int, nargs="*", default=MANY, help="by summary alone (default 100 300 1000)")
    parser.add_argument("--keep", type=Path, help="write the archives there, and leave them")
    options = parser.parse_args(arguments)
    if options.judge:
        sys.stdout.write(json.dumps(judge(options.judge, anew=options.anew)))
        return
    print(f"Python {platform.python_version()}, numpy {np.__version__}, {platform.machine()}; SIMULATED runs;")
    print(f"for 48 nodes with samples: at most {BUDGET_SECONDS:g} s, {BUDGET_MEGABYTES:g} MB\n")
    print("| what | find s | read s | judge s | page s | all s | CPU s | CPU ms/node | peak MB | found |")
    print("|---|--:|--:|--:|--:|--:|--:|--:|--:|---|")
    with tempfile.TemporaryDirectory() as name:
        folder = options.keep or Path(name)
        archive = folder / f"samples-{options.nodes}"
        if not archive.exists():
            make(archive, options.nodes)
        for anew in (False, True):
            what = f"{options.nodes} nodes × {CARDS} cards, {HOURS:g} h, {'judged anew' if anew else 'by summary'}"
            print(row(what, measured(archive, anew=anew)), flush=True)
        template = next(path for path in sorted(archive.iterdir()) if path.name.endswith("_n0001"))
        for count in options.many:
            many = folder / f"summaries-{count}"
            if not many.exists():
                multiply(template, many, count)
            print(row(f"{count:,} nodes, by summary", measured(many, anew=False)), flush=True)


if __name__ == "__main__":
    main()
