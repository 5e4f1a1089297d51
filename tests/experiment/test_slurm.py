from __future__ import annotations

import pytest

from pytest_thermal.experiment import SlurmStep, expand_nodes, slurm_step

STEP = {
    "SLURM_CLUSTER_NAME": "lab",
    "SLURM_JOB_ID": "12",
    "SLURM_STEP_ID": "0",
    "SLURM_STEP_NUM_NODES": "2",
    "SLURM_STEP_NODELIST": "n[1-2]",
    "SLURM_JOB_NUM_NODES": "2",
}


@pytest.mark.parametrize(
    "text, names",
    [
        ("n1", ["n1"]),
        ("n[1-3]", ["n1", "n2", "n3"]),
        ("gpu[008-010,02],login", ["gpu008", "gpu009", "gpu010", "gpu02", "login"]),
        ("r[1-2]c[3,5]", ["r1c3", "r1c5", "r2c3", "r2c5"]),
        ("n1-ib.example,n2-ib.example", ["n1-ib.example", "n2-ib.example"]),
        ("n[1-2]-mgmt, n1-mgmt", ["n1-mgmt", "n2-mgmt"]),
        ("", []),
    ],
)
def test_a_list_of_nodes_is_read_as_slurm_writes_it(text: str, names: list[str]) -> None:
    assert list(expand_nodes(text)) == names


@pytest.mark.parametrize("text", ["n[a-c]", "n[3-1]", "n[]", "n[1-9999999]"])
def test_what_is_no_range_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"n\["):
        expand_nodes(text)


def test_a_step_of_several_nodes_is_known_by_a_name_of_its_own() -> None:
    assert slurm_step(STEP) == SlurmStep(name="lab-12.0", nodes=("n1", "n2"))
    requeued = slurm_step({**STEP, "SLURM_RESTART_COUNT": "1"})
    assert requeued is not None
    assert requeued.name == "lab-12.0-1"


@pytest.mark.parametrize("without", ["SLURM_STEP_NUM_NODES", "SLURM_STEP_ID", "SLURM_JOB_ID"])
def test_a_batch_script_waits_for_nobody(without: str) -> None:
    assert slurm_step({name: text for name, text in STEP.items() if name != without}) is None
    assert slurm_step({**STEP, "SLURM_STEP_NUM_NODES": "1"}) is None
