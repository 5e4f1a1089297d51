"""Every word that the history page says beside the run page's, in one place."""

from __future__ import annotations

from collections.abc import Mapping

from pytest_thermal.model.catalogue import IN_ENGLISH, Catalogue
from pytest_thermal.reporting.run_page.words import ENGLISH as OF_THE_RUN_PAGE
from pytest_thermal.reporting.run_page.words import Words

ENGLISH: Mapping[str, str] = {
    "history": "{count} runs",
    "history_one": "1 run",
    "history_title": "Thermal history: {bench}",
    "on_host": "on {host}",
    "nothing_says": "There is no run in {folder} that can be read.",
    "newest_run": "Newest run",
    "newest_says_failed": "{sensor} gets {celsius} °C hotter than in {run}: {limit} °C or more fails.",
    "newest_says_good": "The largest change is {sensor} by {celsius} °C against {run}; {limit} °C or more fails.",
    "newest_says_alone": "It was compared with no earlier run: {why}",
    "newest_says_gone": "It was compared with {run}, whose figures are no longer here.",
    "newest_says_unknown": "It was compared with {run}, and none of its changes is known.",
    "no_reason_told": "it does not say why",
    "no_figures_yet": "No run of this bench has figures: what was not measured is not drawn.",
    "creep": (
        "{sensor} crept up by {celsius} °C since {run}, though no run was {limit} °C or more above the one before it. "
        "Compare with that run: --against {run}"
    ),
    "simulated_history_says": "Every reading here comes from the demo bench's simulated machine.",
    "panels_rise": "Rise under load (°C)",
    "panels_resistance": "Thermal resistance (°C/W)",
    "panels_hint": (
        "One chart a device, one mark a run, the oldest at the left; a mark leads to its run's page. The dash above a "
        "mark is where that run fails by drift: {limit} °C ({origin}) over the run that it was compared with. "
        "Hollow: not comparable with the newest run (why: see the table). Red ring: it failed by drift. "
        "“?”: not measured, so no value."
    ),
    "no_resistance": "No run has a thermal resistance: that needs the device's power.",
    "runs_table": "Runs",
    "run": "run",
    "verdict": "verdict",
    "comparable": "comparable with the newest",
    "compared_with": "compared with",
    "yes": "yes",
    "newest": "newest",
    "figures_of_sensors": "Figures of every sensor",
    "older_runs": "and {count} older runs, which are in the table of runs only",
    "changes": "Newest run, sensor by sensor",
    "rise_now": "rise (°C)",
    "change": "change (°C)",
    "by": "by",
    "since_first": "since the first comparable run (°C)",
    "fails_at": "fails at",
    "drift": "drift",
    "left_out": "Not part of this page ({count})",
    "left_out_says": "Directories of the archive that are no run that could be read. They hide nothing of the others.",
    "directory": "directory",
    "no_report": "no report.html beside it: python -m pytest_thermal.reporting.run_page {run}",
    "unknown_value": "{run}: {sensor}: not known: {why}",
    "known_value": "{run}: {sensor}: {value}",
    "not_comparable_value": "not comparable with the newest run: {why}",
    "failed_value": "failed by drift",
    "line_says": "{run} fails at {value}: {limit} °C ({origin}) above {earlier}",
    "not_compared": "–",
    "quarter": "{year} Q{number}",
    "history_made_by": (
        "Made by pytest-thermal {version} from summary.json of the runs in {folder}, each checked against the checksum "
        "that its run was sealed with; nothing in it is loaded from outside."
    ),
}


def history_words(told: Catalogue = IN_ENGLISH) -> Words:
    """Words of both pages; where both say something, this page's."""
    return Words({**OF_THE_RUN_PAGE, **ENGLISH}, told=told)
