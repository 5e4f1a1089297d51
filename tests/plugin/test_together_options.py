"""Which other nodes a run is made together with: by its options, else by the Slurm step."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from pytest_thermal.plugin.thermal_checks.live_session import _together

STEP = {
    "SLURM_CLUSTER_NAME": "lab",
    "SLURM_JOB_ID": "12",
    "SLURM_STEP_ID": "0",
    "SLURM_STEP_NUM_NODES": "2",
    "SLURM_STEP_NODELIST": "n[1-2]",
    "SLURMD_NODENAME": "n1",
}


@pytest.fixture(autouse=True)
def nowhere(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in (*STEP, "THERMAL_NODE"):
        monkeypatch.delenv(name, raising=False)


def config(**given: Any) -> pytest.Config:
    """As far as it is asked."""
    told = {f"thermal_{name}": value for name, value in given.items()}
    return cast(
        "pytest.Config",
        SimpleNamespace(
            getoption=lambda name, default=None: told.get(name, default),
            getini=lambda _: None,
            invocation_params=SimpleNamespace(dir=Path("/here")),
        ),
    )


def in_step(monkeypatch: pytest.MonkeyPatch, **more: str) -> None:
    for name, text in {**STEP, **more}.items():
        monkeypatch.setenv(name, text)


def test_a_run_by_itself_waits_for_nobody() -> None:
    assert _together(config()) is None
    assert _together(config(nodes=(1, ()))) is None


def test_the_nodes_of_a_slurm_step_meet_beside_the_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    in_step(monkeypatch)
    made = _together(config(runs="/shared/runs", together_wait=30.0))
    assert made is not None
    assert (made.node, made.names, made.count, made.wait_seconds) == ("n1", ("n1", "n2"), 2, 30.0)
    assert made.folder == Path("/shared/runs/.together/lab-12.0")
    assert _together(config(nodes=(1, ()))) is None  # alone, where that is asked for


def test_a_step_whose_nodes_go_by_other_names_is_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    in_step(monkeypatch, THERMAL_NODE="rack1-n7")
    made = _together(config())
    assert made is not None
    assert (made.node, made.names, made.count) == ("rack1-n7", (), 2)


def test_without_slurm_number_and_folder_are_both_needed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("THERMAL_NODE", "a")
    made = _together(config(nodes=(2, ("a", "b")), together="meeting"))
    assert made is not None
    assert (made.folder, made.names) == (Path("/here/meeting"), ("a", "b"))
    with pytest.raises(pytest.UsageError, match="--together meeting: how many nodes meet there is not known"):
        _together(config(together="meeting"))
    with pytest.raises(pytest.UsageError, match="--nodes 2: where these nodes meet is not known"):
        _together(config(nodes=(2, ())))
    with pytest.raises(pytest.UsageError, match="this node is called a, which is none of these"):
        _together(config(nodes=(2, ("b", "c")), together="meeting"))
