"""Every option, ini key and marker, in one table, and the one place that reads them."""

from __future__ import annotations

import argparse
import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest

LANGUAGES = ("en", "zh")


def _count(text: str) -> int:
    """A whole number of at least 1."""
    try:
        number = int(text)
    except ValueError:
        number = 0
    if number < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is no whole number of at least 1")
    return number


def _duration(text: str) -> float:
    """Seconds of a duration: `90`, `90s`, `60m`, `1h`."""
    from pytest_thermal.bench import parse_duration

    try:
        return parse_duration(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r} is no duration: seconds as a number, or 90s, 60m, 1h") from None


def _nodes(text: str) -> tuple[int, tuple[str, ...]]:
    """Number of nodes, and their names where those are given: `4`, `n1,n2`, `n[1-4]`."""
    if text.strip().isdigit():
        return _count(text.strip()), ()
    from pytest_thermal.bench.host_list import expand_nodes

    try:
        names = expand_nodes(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from None
    if not names:
        raise argparse.ArgumentTypeError(f"{text!r} names no node: a number, or names such as n1,n2 or n[1-4]")
    return len(names), names


def _rate(text: str) -> float:
    """Requests per second, above 0."""
    try:
        number = float(text)
    except ValueError:
        number = 0.0
    if not 0 < number < 1e6:
        raise argparse.ArgumentTypeError(f"{text!r} is no rate of requests per second above 0")
    return number


def _address(text: str) -> Any:
    """Where to listen: a port of this machine's own address, or an address and a port."""
    from pytest_thermal.reporting.live_metrics import read_address

    try:
        return read_address(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from None


def _language(text: str) -> str:
    """`zh` or `en`."""
    if text not in LANGUAGES:
        raise argparse.ArgumentTypeError(f"{text!r} is no language: {' or '.join(LANGUAGES)}")
    return text


@dataclass(frozen=True, kw_only=True)
class Option:
    """One option: ``--NAME`` and ``--thermal-NAME``; with ``ini`` also the ini key ``thermal_NAME``."""

    name: str
    help: str
    metavar: str | None = None
    read: Callable[[str], Any] = str
    ini: bool = False
    choices: tuple[str, ...] = ()
    """Values it may take after ``=``; the first is meant where it stands alone."""

    @property
    def dest(self) -> str:
        """Where pytest keeps it: `thermal_` and the name, so that it collides with nobody's."""
        return f"thermal_{self.name.replace('-', '_')}"

    @property
    def is_flag(self) -> bool:
        """Whether it takes no value."""
        return self.metavar is None and not self.choices


OPTIONS: tuple[Option, ...] = (
    Option(
        name="bench",
        metavar="NAME|DIR",
        help="Bench under test: a folder with settings.json and/or config.toml, or the name of a template"
        " (demo, workstation, supernode). Else $THERMAL_BENCH, else ./config, else the demo bench.",
    ),
    Option(name="demo", help="Run on the embedded demo bench; everything it touches is marked as simulated."),
    Option(
        name="demo-fault",
        metavar="NAME",
        help="Run on the demo bench with a fault switched on (a wrong NAME lists them all).",
    ),
    Option(
        name="sensors",
        choices=("table", "json"),
        help="List every source and sensor of this bench with a live reading, or why not, and stop; --sensors=json"
        " prints a list of {sensor, value, unit, source, device, reason}.",
    ),
    Option(
        name="probe-requests",
        metavar="N",
        read=_count,
        ini=True,
        help="Requests of the concurrency check (default 16).",
    ),
    Option(
        name="probe-workers",
        metavar="N",
        read=_count,
        ini=True,
        help="Requests of the concurrency check that are under way at once (default 8).",
    ),
    Option(
        name="probe-quota",
        help="Also try the quota: this bench's own concurrency for a while (costs tokens).",
    ),
    Option(
        name="token-budget",
        metavar="N",
        read=_count,
        ini=True,
        help="Output tokens that an access run may ask for (default 100; 50 a domain beyond two).",
    ),
    Option(
        name="interconnect-cmd",
        metavar="CMD",
        ini=True,
        help="Latency test of the interconnect, run without a shell (ib_write_lat, nccl-tests, hccl_test …).",
    ),
    Option(
        name="duration",
        metavar="TIME",
        read=_duration,
        help="Length of the steady phase: seconds, or 90s, 60m, 1h (default: the bench file's, else 1h).",
    ),
    Option(name="baseline", metavar="TIME", read=_duration, help="Length of the cold baseline (default 5m)."),
    Option(
        name="ramp",
        metavar="TIME",
        read=_duration,
        help="From the load's start until steady (default: the bench file's warm-up, else 2m).",
    ),
    Option(name="cooldown", metavar="TIME", read=_duration, help="Length of the cooldown (default 10m)."),
    Option(name="limit-phase", help="Add the limit phase: the accelerators' burn on top of inference."),
    Option(
        name="limit-duration",
        metavar="TIME",
        read=_duration,
        help="Length of the limit phase, which this adds too (default 5m).",
    ),
    Option(
        name="accelerator-cmd",
        metavar="CMD",
        ini=True,
        help="What burns the accelerators, run without a shell (else gpu_burn, else torch where they are installed).",
    ),
    Option(
        name="load-profile",
        choices=("chat", "long-context", "agent"),
        ini=True,
        help="What inference requests look like: short chats, prompts of thousands of tokens, or several turns with"
        " tool results (default chat).",
    ),
    Option(
        name="request-rate",
        metavar="N",
        read=_rate,
        ini=True,
        help="Inference requests per second at fixed times, whether or not earlier ones were answered; else"
        " concurrent_requests of the bench file, each after the answer to its last.",
    ),
    Option(
        name="find-concurrency",
        help="Search for the number of concurrent requests that loads the accelerators in full (from 8, +4), print"
        " it, and stop.",
    ),
    Option(
        name="runs",
        metavar="DIR",
        ini=True,
        help="The archive: a folder of run directories (default reports/runs).",
    ),
    Option(
        name="fleet",
        metavar="FILE",
        help="Which nodes a fleet has, and where they and their cards sit (default fleet.toml in the archive, in this"
        " folder, or in ./config).",
    ),
    Option(
        name="nodes",
        metavar="N|NAMES",
        read=_nodes,
        help="Enter each phase together with the other nodes of this run: their number, or the names of all, such as"
        " n1,n2 or n[1-4] (default: those of the Slurm step; 1: alone).",
    ),
    Option(
        name="together",
        metavar="DIR",
        help="Where these nodes meet: a folder that all of them see, new for each run (default within Slurm: beside"
        " the runs).",
    ),
    Option(
        name="together-wait",
        metavar="TIME",
        read=_duration,
        help="How long a node waits for the others before a phase, until it goes on without them (default 2m).",
    ),
    Option(
        name="replay",
        metavar="PATH",
        help="Judge a run directory, or a CSV from elsewhere, again: no load, no waiting.",
    ),
    Option(
        name="against",
        metavar="RUN|latest|none",
        ini=True,
        help="The earlier run that drift is judged against (default latest: the newest comparable one of this bench).",
    ),
    Option(
        name="settling",
        metavar="STANDARD",
        ini=True,
        help="Whose rate counts as settled (a wrong STANDARD lists them all; default 1 K in 5 min).",
    ),
    Option(
        name="gate",
        help="Pre-production gate: fail unless every critical check was measured on the machine and passed, and write"
        " reports/gate.json.",
    ),
    Option(
        name="ocp-diag",
        metavar="FILE",
        help="Write the findings as OCP Test & Validation output, a JSON document a line (pytest-thermal[ocp]).",
    ),
    Option(
        name="prometheus-port",
        metavar="[ADDR:]PORT",
        read=_address,
        ini=True,
        help="Serve readings, phase, load and requests to Prometheus while a thermal run goes on, to this machine alone"
        " unless an address is given (pytest-thermal[prometheus]).",
    ),
    Option(
        name="lang",
        metavar="zh|en",
        read=_language,
        help="Language of what people read: terminal, report pages, Allure titles; what programs read stays English"
        " (default: zh where LC_ALL, LC_MESSAGES or LANG says so, else en).",
    ),
    Option(name="sysfs", metavar="DIR", help="Where the host's /sys is seen, as in a container (default /sys)."),
)

LIMITS = "thermal_limits"
GATE_ACCEPT = "thermal_gate_accept"
GATE_OLDEST = "thermal_gate_oldest"
INI_LINES: tuple[tuple[str, str], ...] = (
    (
        LIMITS,
        "Limits of thermal checks beside those of the bench file, one `name = value` a line (a wrong name lists all).",
    ),
    (
        GATE_ACCEPT,
        "Critical checks that the gate accepts as skipped, one `check = reason` or `check[subject] = reason` a line.",
    ),
)
"""Ini keys of several lines, which no option could hold."""

INI_WORDS: tuple[tuple[str, str, str], ...] = (
    (
        GATE_OLDEST,
        "How long ago a run may have ended that --gate judges again: seconds, 90s, 60m, 24h (default 24h).",
        "24h",
    ),
)
"""Ini keys of one word, each with its default."""

MARKERS: tuple[tuple[str, str], ...] = (
    ("access", "access check of a gateway; kept on one xdist worker with the others of its run"),
    ("thermal", "part of a thermal run, which loads the machine; run only where it is asked for (-m thermal)"),
    ("fleet", "judges what many nodes brought back; run only where it is asked for (suites/fleet, -m fleet)"),
    ("critical", "blocks the pre-production gate when it does not pass"),
    ("advisory", "never fails: what it finds is told as an expected failure"),
)


def add_options(parser: pytest.Parser) -> list[str]:
    """Add all options; returns the short spellings that another plugin owns, so that only ``--thermal-…`` is ours."""
    group = parser.getgroup("thermal", "sign-off of AI machines (pytest-thermal)")
    taken = []
    for option in OPTIONS:
        settings: dict[str, Any] = {"dest": option.dest, "default": None, "help": option.help}
        if option.is_flag:
            settings["action"] = "store_true"
        elif option.choices:
            settings |= {"nargs": "?", "const": option.choices[0], "choices": option.choices}
        else:
            settings |= {"metavar": option.metavar, "type": option.read}
        try:
            group.addoption(f"--{option.name}", f"--thermal-{option.name}", **settings)
        except (ValueError, argparse.ArgumentError):
            taken.append(f"--{option.name}")
            group.addoption(f"--thermal-{option.name}", **settings)
        if option.ini:
            parser.addini(option.dest, help=option.help, default=None)
    for name, text in INI_LINES:
        parser.addini(name, type="linelist", help=text, default=[])
    for name, text, default in INI_WORDS:
        parser.addini(name, help=text, default=default)
    return taken


def limits(config: pytest.Config) -> dict[str, tuple[float, str]]:
    """What the ini key `thermal_limits` says: limit → value in its unit, and where that stands.

    Raises:
        pytest.UsageError: a line is no `name = value`.
    """
    found = {}
    for line in config.getini(LIMITS):
        name, equals, text = (part.strip() for part in line.partition("="))
        try:
            number = float(text)
        except ValueError:
            number = math.nan
        found[name] = (number, f"ini key {LIMITS}")
        if not (name and equals and math.isfinite(number) and number >= 0):
            from pytest_thermal.model.said import say

            raise pytest.UsageError(
                say(
                    "ini key {limits}: {line!r}\ntry: name = value, such as rise_gpu_most = 45",
                    limits=LIMITS,
                    line=line,
                )
            )
    return found


def value(config: pytest.Config, name: str) -> Any:
    """An option's value: command line, else ini; None where neither gives one.

    Raises:
        pytest.UsageError: the ini file's value cannot be read.
    """
    option = next(option for option in OPTIONS if option.name == name)
    given = config.getoption(option.dest, None)
    if given is not None or not option.ini:
        return given
    text = config.getini(option.dest)
    if text in (None, ""):
        return None
    if option.choices and text not in option.choices:
        from pytest_thermal.model.said import joined, say

        raise pytest.UsageError(
            say(
                "ini key {dest}: {text!r} is none of {names}",
                dest=option.dest,
                text=text,
                names=joined(", ", option.choices),
            )
        )
    try:
        return option.read(str(text))
    except argparse.ArgumentTypeError as error:
        from pytest_thermal.model.said import say

        raise pytest.UsageError(say("ini key {dest}: {error}", dest=option.dest, error=error)) from error
