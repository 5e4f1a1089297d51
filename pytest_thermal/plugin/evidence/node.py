"""What keeps the results of several nodes apart when they are merged: the node and the bench of every test."""

from __future__ import annotations

import platform

import pytest

from pytest_thermal.plugin import options
from pytest_thermal.plugin.keys import ACTIVE_BENCH, THERMAL


def node_of(config: pytest.Config) -> str:
    """The name of the machine that the results are about: this one, or the one that a replayed run was made on.

    Machines of one host name are one node: their results cannot be told apart.
    """
    session = config.stash.get(THERMAL, None)
    if session is not None and options.value(config, "replay") is not None:
        from pytest_thermal.reporting.run_environment import node_name

        return node_name(session.recording())
    return platform.node() or "localhost"


def bench_of(config: pytest.Config) -> str:
    """The bench that the results are about, and whether it is simulated; empty where none is in use."""
    session = config.stash.get(THERMAL, None)
    if session is not None and options.value(config, "replay") is not None:
        bench = str(session.recording().facts.get("bench") or "log")
        return f"{bench} (simulated)" if session.simulated else bench
    active = config.stash.get(ACTIVE_BENCH, None)
    if active is None:
        return ""
    return f"{active.bench.name} (simulated)" if active.bench.demo else active.bench.name
