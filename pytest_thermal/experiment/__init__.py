"""The thermal experiment: phases as a state machine, the idle check, the lock, and what is told while it runs."""

from __future__ import annotations

from pytest_thermal.experiment.errors import BenchBusyError, ExperimentBrokenError
from pytest_thermal.experiment.experiment import Experiment, LoadPlan, PhaseRecord
from pytest_thermal.experiment.lock import BenchLock, lock_folder
from pytest_thermal.experiment.plan import Plan, PlanError, plan_for
from pytest_thermal.experiment.progress import HottestSensor, Notice, Progress
from pytest_thermal.experiment.slurm import SlurmStep, expand_nodes, slurm_step
from pytest_thermal.experiment.together import Together
from pytest_thermal.experiment.watch import Crossing, ThresholdWatch, thresholds_of

__all__ = [
    "BenchBusyError",
    "BenchLock",
    "Crossing",
    "Experiment",
    "ExperimentBrokenError",
    "HottestSensor",
    "LoadPlan",
    "Notice",
    "PhaseRecord",
    "Plan",
    "PlanError",
    "Progress",
    "SlurmStep",
    "ThresholdWatch",
    "Together",
    "expand_nodes",
    "lock_folder",
    "plan_for",
    "slurm_step",
    "thresholds_of",
]
