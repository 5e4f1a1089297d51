"""Arrays in, figures out: what a thermal run's readings say, with uncertainty. No clock, no files.

Needs numpy and scipy. A figure that cannot be had is None with a reason; a question that the figures leave open is
answered UNKNOWN. Times are unix seconds, temperatures °C unless a sensor's unit says otherwise.
"""

from __future__ import annotations

from pytest_thermal.analysis.answers import Answer
from pytest_thermal.analysis.coverage import Coverage, measure_coverage
from pytest_thermal.analysis.drift import RunFacts, drift, not_comparable
from pytest_thermal.analysis.fleet import Consistency, Consistent, Member, Place, judge_fleet
from pytest_thermal.analysis.health import Health, check_health
from pytest_thermal.analysis.levels import level, peak, rise
from pytest_thermal.analysis.load_proof import LoadProof, judge_idle, prove_load, throughput_held
from pytest_thermal.analysis.loop_faults import LoopFault, LoopFaultKind, LoopSensors, name_loop_fault
from pytest_thermal.analysis.loop_shape import Departure, LoopShape, Swing, find_departure, find_swing, measure_shape
from pytest_thermal.analysis.noise import estimate_resolution, noise_sigma
from pytest_thermal.analysis.own_time import OwnTime, own_share
from pytest_thermal.analysis.phases import DetectedPhases, detect_phases
from pytest_thermal.analysis.rebound import Rebound, find_rebound
from pytest_thermal.analysis.resistance import resistance
from pytest_thermal.analysis.settled import Settled, judge_baseline_settled, judge_settled
from pytest_thermal.analysis.settling_rates import SETTLING_RATES, SettlingRate
from pytest_thermal.analysis.temperature import TemperatureFigures, analyse_temperature
from pytest_thermal.analysis.throttling import ThrottleKind, Throttling, kind_of, measure_throttling
from pytest_thermal.analysis.time_constants import TimeConstants, fit_time_constants
from pytest_thermal.analysis.trend import Trend, fit_trend

__all__ = [
    "SETTLING_RATES",
    "Answer",
    "Consistency",
    "Consistent",
    "Coverage",
    "Departure",
    "DetectedPhases",
    "Health",
    "LoadProof",
    "LoopFault",
    "LoopFaultKind",
    "LoopSensors",
    "LoopShape",
    "Member",
    "OwnTime",
    "Place",
    "Rebound",
    "RunFacts",
    "Settled",
    "SettlingRate",
    "Swing",
    "TemperatureFigures",
    "ThrottleKind",
    "Throttling",
    "TimeConstants",
    "Trend",
    "analyse_temperature",
    "check_health",
    "detect_phases",
    "drift",
    "estimate_resolution",
    "find_departure",
    "find_rebound",
    "find_swing",
    "fit_time_constants",
    "fit_trend",
    "judge_baseline_settled",
    "judge_fleet",
    "judge_idle",
    "judge_settled",
    "kind_of",
    "level",
    "measure_coverage",
    "measure_shape",
    "measure_throttling",
    "name_loop_fault",
    "noise_sigma",
    "not_comparable",
    "own_share",
    "peak",
    "prove_load",
    "resistance",
    "rise",
    "throughput_held",
]
