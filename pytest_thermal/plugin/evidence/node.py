"""What keeps the results of several nodes apart when they are merged: the node and the bench of every test."""

from __future__ import annotations

import os

import pytest

from pytest_thermal.plugin import options
from pytest_thermal.plugin.keys import ACTIVE_BENCH, THERMAL


def own_node(config: pytest.Config) -> str:
    """What this machine is called: as xdist's controller names it, by the environment, or its host's name."""
    from pytest_thermal.recording.host import node_name

    return str(getattr(config, "workerinput", {}).get("thermal_node") or node_name(os.environ))


def node_environ(config: pytest.Config) -> dict[str, str]:
    """The environment with ``$THERMAL_NODE`` in it, for what is named by node: ``--bench '…/${THERMAL_NODE}'``."""
    return {**os.environ, "THERMAL_NODE": own_node(config)}


def node_of(config: pytest.Config) -> str:
    """The name of the machine that the results are about: this one, or the one that a replayed run was made on.

    Machines of one name are one node: their results cannot be told apart.
    """
    session = config.stash.get(THERMAL, None)
    if session is not None and options.value(config, "replay") is not None:
        from pytest_thermal.reporting.run_environment import node_name

        return node_name(session.recording())
    return own_node(config)


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
