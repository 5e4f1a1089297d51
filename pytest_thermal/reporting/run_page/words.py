"""Every word that the page itself says, in one place; other languages have theirs in the catalogue (``words/``)."""

from __future__ import annotations

from collections.abc import Mapping

from pytest_thermal.model.catalogue import IN_ENGLISH, Catalogue

ENGLISH: Mapping[str, str] = {
    # ------------------------------------------------------------------------------------------------------- verdict
    "title": "Thermal run {run}",
    "failed": "failed",
    "inconclusive": "inconclusive",
    "passed": "passed",
    "skipped": "does not apply",
    "blocked": "blocked",
    "verdict_failed": "Failed",
    "verdict_inconclusive": "Inconclusive",
    "verdict_passed": "Passed",
    "verdict_failed_says": "At least one check found a fault. This machine is not to be signed off as it is.",
    "verdict_inconclusive_says": (
        "Nothing was found wrong, but not everything could be measured. What was not measured never passes."
    ),
    "verdict_passed_says": "Every check that applies to this bench was measured and found good.",
    "verdict_nothing_says": "No check was judged: this run says nothing of the machine.",
    "simulated": "SIMULATED",
    "simulated_says": (
        "Every reading of this run comes from the demo bench's simulated machine: it says nothing of real hardware."
    ),
    "scaled_says": (
        "The simulated loop is {scale} times as fast as a real one. Times here are those of a real loop; "
        "times of requests are as they were."
    ),
    "measured": "measured",
    "changed_says": "Files of this run were changed after its end. What follows may not be what was recorded:",
    "cut_short_says": "This run was cut short: it is shown as far as it was recorded.",
    "cut_short_because": "This run was cut short ({why}): it is shown as far as it was recorded.",
    "judged_now": (
        "The run holds no summary of its own: it was judged when this page was made, by the limits of its bench."
    ),
    "and_more": "and {count} more",
    "likely": "likely",
    "try": "try",
    "note": "note",
    "notes": "Notes",
    "passed_checks": "What passed ({count})",
    "skipped_checks": "What does not apply ({count})",
    # --------------------------------------------------------------------------------------------------- what was run
    "what_was_run": "What was run",
    "bench": "bench",
    "host": "host",
    "system": "system",
    "processor": "processor",
    "product": "product",
    "memory": "memory",
    "devices": "devices",
    "drivers": "drivers and firmware",
    "load": "load",
    "gateways": "gateways",
    "started": "started",
    "ended": "ended",
    "phases": "phases",
    "planned": "planned {seconds}",
    "evidence": "readings",
    "against": "compared with",
    "versions": "versions",
    "state": "state",
    "fingerprint": "sha256 of run.json",
    "log": "log",
    "unknown": "not known",
    "none": "none",
    # ---------------------------------------------------------------------------------------------------------- curves
    "curves": "Curves",
    "zoom_all": "whole run",
    "zoom_in": "closer",
    "zoom_out": "farther",
    "earlier": "earlier",
    "later": "later",
    "zoom_hint": "Drag across a chart to zoom, double-click for the whole run. Click a device or a curve to hide it.",
    "devices_all": "all",
    "devices_none": "none",
    "device_itself": "device",
    "drawn_all": "Every reading is drawn; a missing one leaves a gap. Values are rounded to a step that no eye sees.",
    "drawn_thinned": (
        "Drawn: least and most of each {seconds} s, in the order in which they came. Gaps shorter than that show only "
        "as a mark at the chart's lower edge. The run directory holds every reading."
    ),
    "per_stretch": "one value for each {seconds} s",
    "ribbon_throttle": "slowed down by heat: red along the upper edge; by a power limit: amber",
    "ribbon_missing": "readings missing: violet along the lower edge",
    "dotted_marks": "a warning, a stop, or a load that was lost (see Events): dotted line",
    "no_script": "The curves below are a still overview. With JavaScript they can be zoomed and switched on and off.",
    "no_inflate": (
        "This browser cannot unpack the curves (it needs DecompressionStream: Chrome 80, Firefox 113, Safari 16.4). "
        "The still overview is shown."
    ),
    "no_curves": "Nothing was recorded that could be drawn.",
    "missing": "missing",
    "more_curves": "More quantities",
    "chart_temperature": "Temperature",
    "chart_margin": "Margin to the device's own limit",
    "chart_power": "Power",
    "chart_utilisation": "Utilisation",
    "chart_clock": "Clock",
    "chart_speed": "Speed of pumps and fans",
    "chart_flow": "Flow",
    "chart_share": "Shares",
    "chart_pressure": "Pressure",
    "chart_voltage": "Voltage",
    "chart_current": "Current",
    "chart_memory": "Memory",
    "chart_count": "Counters",
    "chart_state": "Detectors",
    "chart_time_spent": "Time spent slowed down",
    "chart_requests": "Requests",
    "chart_latency": "Latency of requests",
    "chart_tokens": "Tokens",
    "chart_timeline": "Slowed down and missing, by device",
    "row_thermal": "{device} heat",
    "row_power": "{device} power",
    "row_either": "{device} heat or power",
    "row_missing": "{device} missing",
    "requests_answered": "answered",
    "requests_failed": "failed",
    "requests_latency_p50": "whole answer, p50",
    "requests_latency_p99": "whole answer, p99",
    "requests_ttft_p50": "first token, p50",
    "requests_ttft_p99": "first token, p99",
    "requests_tokens": "output tokens",
    "phase_baseline": "baseline",
    "phase_ramp": "ramp",
    "phase_steady": "steady",
    "phase_limit": "limit phase",
    "phase_cooldown": "cooldown",
    # --------------------------------------------------------------------------------------------------------- figures
    "figures": "Figures and limits",
    "figures_hint": (
        "± is one standard uncertainty. Below each figure stands its limit (and where that came from); "
        "“–” says why on hover where a figure could not be had."
    ),
    "sensor": "sensor",
    "device": "device",
    "baseline": "baseline",
    "steady": "steady",
    "rise": "rise",
    "peak": "peak",
    "slope": "settled: slope",
    "remaining": "settled: to come",
    "rebound": "rebound",
    "slow": "slow time constant",
    "resistance": "°C/W",
    "over": "over {reference}",
    "drift": "drift",
    "at_most": "≤ {limit}",
    "between": "{least} … {most}",
    "no_figures": "No temperature of a processor or an accelerator was recorded.",
    "by_device": "Load and throttling",
    "no_devices": "No processor and no accelerator is part of this run.",
    "of_the_run": "Phases, loop, requests",
    "utilisation": "utilisation in steady",
    "power": "power in steady",
    "load_check": "loaded in full",
    "throttling": "slowed down by heat",
    "at_least": "≥ {limit}",
    "by_phase": "Every sensor in each phase: mean (least … most)",
    "all_checks": "Every check ({count})",
    "all_limits": "Every limit and where it came from ({count})",
    "check": "check",
    "subject": "subject",
    "outcome": "outcome",
    "seen": "what was seen",
    "limit": "limit",
    "value": "value",
    "origin": "from",
    # -------------------------------------------------------------------------------------------------------- sampling
    "sampling": "Quality of sampling",
    "source": "source",
    "period": "period",
    "ticks": "readings",
    "lost": "lost",
    "late_p50": "late p50",
    "late_p99": "late p99",
    "late_most": "late at most",
    "read_p99": "read p99",
    "priority": "priority",
    "stopped": "ended early",
    "no_timing": "This log does not say how it was sampled.",
    "nothing_missing": "No reading is missing.",
    "present": "present",
    "gaps": "gaps",
    "longest_gap": "longest gap",
    "why": "why",
    "first_gap": "first",
    "no_reason": "no reason was noted",
    "never": "never a reading",
    "reading_notes": "Corrected or left out while reading ({count})",
    # -------------------------------------------------------------------------------------------------------- requests
    "requests": "Requests",
    "no_requests": "No inference requests were part of this run.",
    "phase": "phase",
    "total": "total",
    "cut_off": "cut off at the end",
    "tokens": "output tokens",
    "whole_run": "whole run",
    "errors": "Errors",
    "error": "error",
    "count": "count",
    "first": "first",
    "no_errors": "No request failed.",
    # ---------------------------------------------------------------------------------------------------------- events
    "events": "Events ({count})",
    "time": "time",
    "event": "event",
    # -------------------------------------------------------------------------------------------------------- sign-off
    "sign": "Sign-off",
    "sign_says": "I have read this page and {choice} this machine.",
    "sign_choice": "accept / do not accept",
    "name": "name",
    "date": "date",
    "signature": "signature",
    "made_by": "Made by pytest-thermal {version} from {run}; nothing in it is loaded from outside.",
}


class Words:
    """Words in one language, by key; and what was said in the run, told in it."""

    def __init__(self, table: Mapping[str, str] = ENGLISH, *, told: Catalogue = IN_ENGLISH) -> None:
        self._table = table
        self.told = told
        """Tells a text of the run."""
        self.language = {"zh": "zh-CN"}.get(told.language, told.language)
        """As HTML has it: ``en``, ``zh-CN``."""

    def __call__(self, key: str, **values: object) -> str:
        """The text for a key, with values put in.

        Raises:
            KeyError: There is no such key, or a value is missing.
        """
        text = self.told.template(self._table[key])
        return text.format(**values) if values else text

    def get(self, key: str, default: str) -> str:
        """The text for a key, or another text."""
        return self(key) if key in self._table else default

    def some(self, *keys: str) -> dict[str, str]:
        """Several, for the page's script."""
        return {key: self(key) for key in keys}
