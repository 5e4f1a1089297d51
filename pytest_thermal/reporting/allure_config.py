"""What the Allure report looks like: its title, its tree, and the categories that faults fall into."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from pytest_thermal.model import LAYERS

# pytest puts the exception's name before the message ("Failed: ", "Skipped: ", "package.Inconclusive: ").
_RAISED_AS = r"^(?:[A-Za-z_][\w.]*: )?"

_LABELS_OF_THE_TOOL = (
    "host",
    "thread",
    "framework",
    "language",
    "package",
    "parentSuite",
    "suite",
    "subSuite",
)
"""Labels that say how the run was made and nothing about the machine."""


def allure_config(
    *, title: str, output: Path, history: Path, history_runs: int, variables: dict[str, str]
) -> dict[str, Any]:
    """The content of an ``allurerc.json`` that makes one self-contained page.

    Allure 3 accepts only the top-level keys it knows, but ignores unknown options of a plugin without a word.
    """
    return {
        "name": title,
        "output": str(output),
        "historyPath": str(history),
        "historyLimit": history_runs,
        "hideLabels": list(_LABELS_OF_THE_TOOL),
        "variables": variables,
        "categories": {"rules": categories()},
        "plugins": {
            "awesome": {
                # One file, since a report of several files does not open from file://.
                "options": {
                    "singleFile": True,
                    "reportLanguage": "en",
                    "groupBy": ["epic", "feature", "story"],
                }
            }
        },
    }


def categories() -> list[dict[str, Any]]:
    """The categories, in the words of our messages; what matches none falls into Allure's own two."""
    layers = "|".join(re.escape(layer) for layer in LAYERS)
    return [
        {
            "name": "Access fault",
            "matchers": {"statuses": ["failed"], "message": f"{_RAISED_AS}(?:{layers}): "},
            "groupBy": [{"label": "feature"}],
            "expand": True,
        },
        {
            "name": "Inconclusive",
            "matchers": {"statuses": ["failed", "broken"], "message": f"{_RAISED_AS}inconclusive: "},
            "expand": True,
        },
        # An advisory check that failed is an expected failure to pytest, and a skipped test to Allure.
        {"name": "Advisory", "matchers": {"statuses": ["skipped"], "message": "^XFAIL "}, "expand": True},
        {"name": "Blocked", "matchers": {"statuses": ["skipped"], "message": f"{_RAISED_AS}blocked\\b"}},
    ]
