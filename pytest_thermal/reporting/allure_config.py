"""What the Allure report looks like: its title, its tree, and the categories that faults fall into."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pytest_thermal.findings import CHECKS
from pytest_thermal.model import LAYERS

# pytest puts the exception's name before the message ("Failed: ", "Skipped: ", "package.Inconclusive: ").
_RAISED_AS = r"^(?:[A-Za-z_][\w.]*: )?"

_ABOUT_LOAD = "(?:not loaded in full|was loaded is not known|without the .* load|not one inference request)"

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
    *,
    title: str,
    output: Path,
    history: Path,
    history_runs: int,
    variables: Mapping[str, str],
    nodes: Mapping[str, Mapping[str, str]],
) -> dict[str, Any]:
    """The content of an ``allurerc`` that makes one self-contained page.

    Allure 3 accepts only the top-level keys it knows, but ignores unknown options of a plugin without a word.

    Args:
        title: Of the report.
        output: Folder that the page is made in.
        history: File of the trends, which Allure reads and adds this run to.
        history_runs: How many earlier runs it shows.
        variables: What its overview says.
        nodes: What each node's environment says. One node needs none of its own; several get one each, since Allure
            would show the facts of any one of them for all.
    """
    content: dict[str, Any] = {
        "name": title,
        "output": str(output),
        "historyPath": str(history),
        "historyLimit": history_runs,
        "hideLabels": list(_LABELS_OF_THE_TOOL),
        "variables": dict(variables),
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
    if len(nodes) > 1:
        content["environments"] = {node: {"variables": dict(facts)} for node, facts in nodes.items()}
    return content


def config_file(config: Mapping[str, Any]) -> tuple[str, str]:
    """Name and text of the file that Allure takes it from: JSON, which has no functions, or a module where it must."""
    text = json.dumps(config, ensure_ascii=False, indent=1)
    if "environments" not in config:
        return "allurerc.json", text
    return "allurerc.mjs", f"const config = {text};\n{_MATCHERS}export default config;\n"


_MATCHERS = """\
for (const [node, environment] of Object.entries(config.environments)) {
  environment.matcher = ({ labels }) => labels.some((label) => label.name === "node" && label.value === node);
}
"""
"""Whose results are whose: only a function can say that."""


def categories() -> list[dict[str, Any]]:
    """The categories, in the words of our messages; the first that matches holds, else Allure's own two."""
    layers, checks = ("|".join(map(re.escape, names)) for names in (LAYERS, ("phase", *CHECKS)))
    failed, not_known = ["failed"], ["failed", "broken"]
    return [
        {
            "name": "Access fault",
            "matchers": {"statuses": failed, "message": f"{_RAISED_AS}(?:{layers}): "},
            "groupBy": [{"label": "feature"}],
            "expand": True,
        },
        # Cool because idle is no pass, and a fault of the load is none of the cooling.
        {
            "name": "Load not proven",
            "matchers": [
                {"statuses": failed, "message": f"{_RAISED_AS}load: "},
                {"statuses": failed, "message": f"{_RAISED_AS}phase: .*(?:requests failed|ended by itself|was lost)"},
                {"statuses": not_known, "message": f"{_RAISED_AS}inconclusive: .*{_ABOUT_LOAD}"},
            ],
            "expand": True,
        },
        {
            "name": "Thermal fault",
            "matchers": {"statuses": failed, "message": f"{_RAISED_AS}(?:{checks}): "},
            "groupBy": [{"label": "story"}],
            "expand": True,
        },
        {
            "name": "Not measured (inconclusive)",
            "matchers": {"statuses": not_known, "message": f"{_RAISED_AS}inconclusive: "},
            "expand": True,
        },
        # Whatever else broke: the bench was busy or gone, a fixture failed, a tool is not there.
        {"name": "Environment", "matchers": {"statuses": ["broken"]}, "expand": True},
        # An advisory check that failed is an expected failure to pytest, and a skipped test to Allure.
        {"name": "Advisory", "matchers": {"statuses": ["skipped"], "message": "^XFAIL "}, "expand": True},
        {"name": "Blocked", "matchers": {"statuses": ["skipped"], "message": f"{_RAISED_AS}blocked\\b"}},
    ]
