"""The folders that allure-pytest writes: which is the newest, and what it says of the bench."""

from __future__ import annotations

import json
from pathlib import Path

NODES_FILE = "thermal-nodes.json"
"""Beside the results of several nodes: by node, what its environment says."""


class NoResultsError(Exception):
    """There is nothing to report on. ``str()`` is the whole message for the user."""


def newest_results(folder: Path) -> Path:
    """The folder of the run that ended last: ``folder`` itself, or one right below it.

    Raises:
        NoResultsError: there is no result of any test in ``folder`` nor right below it.
    """
    if not folder.is_dir():
        raise NoResultsError(
            f"{folder}: no such folder\n"
            "likely: no run has written Allure results yet, or it wrote them elsewhere\n"
            f"try: pytest suites/supernode --alluredir {folder}/NAME, or --results with its folder"
        )
    candidates = [folder, *(entry for entry in folder.iterdir() if entry.is_dir())]
    ended = {candidate: time for candidate in candidates if (time := _last_written(candidate)) is not None}
    if not ended:
        raise NoResultsError(
            f"{folder}: no result of any test in it\n"
            "likely: the run selected no test, or stopped before the first one\n"
            "try: run the suite again and look at its own output"
        )
    return max(ended, key=lambda candidate: (ended[candidate], candidate.name))


def newest_of_each_node(folder: Path) -> dict[str, Path]:
    """By node, the folder of its run that ended last: ``folder`` itself and those right below it are looked at.

    Raises:
        NoResultsError: as `newest_results`.
    """
    newest_results(folder)
    found: dict[str, tuple[int, Path]] = {}
    for candidate in (folder, *(entry for entry in sorted(folder.iterdir()) if entry.is_dir())):
        ended = _last_written(candidate)
        if ended is None:
            continue
        for node in nodes_in(candidate) or (candidate.name,):
            if node not in found or ended >= found[node][0]:
                found[node] = ended, candidate
    return {node: candidate for node, (_, candidate) in sorted(found.items())}


def nodes_in(folder: Path) -> tuple[str, ...]:
    """The nodes whose results lie in a folder, by the label on each; those of another program have none."""
    found = set()
    for file in folder.glob("*-result.json"):
        try:
            labels = json.loads(file.read_text(encoding="utf-8")).get("labels", [])
            found |= {str(label["value"]) for label in labels if label.get("name") == "node"}
        except (OSError, ValueError, AttributeError, KeyError, TypeError):
            continue  # damaged: Allure says so
    return tuple(sorted(found))


def node_facts(results: Path, node: str) -> dict[str, str]:
    """What is known of one of the nodes whose results lie in a folder; of the run where nothing is known of the node.

    Of a fleet's run that is its size and evidence, without a line for each other node.
    """
    facts = run_facts(results)
    try:
        told = json.loads((results / NODES_FILE).read_text(encoding="utf-8"))
        own = {str(name): str(text) for name, text in told[node].items()}
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return facts
    return {name: text for name, text in facts.items() if not name.startswith("Node ")} | own


def run_facts(results: Path) -> dict[str, str]:
    """The ``environment.properties`` of a run, unescaped; empty where there is none."""
    try:
        text = (results / "environment.properties").read_text(encoding="utf-8")
    except FileNotFoundError:
        return {}
    facts = {}
    for line in text.splitlines():
        if not line.strip() or line.lstrip().startswith(("#", "!")):
            continue
        key, value = _split_property(line)
        facts[key] = value
    return facts


def _last_written(folder: Path) -> int | None:
    """When the last test result was written (nanoseconds), ``None`` where there is no result."""
    return max((file.stat().st_mtime_ns for file in folder.glob("*-result.json")), default=None)


def _split_property(line: str) -> tuple[str, str]:
    r"""``Host\ OS = Debian`` is ``("Host OS", "Debian")``: what follows a backslash means itself."""
    key: list[str] = []
    characters = iter(line.lstrip())
    for character in characters:
        if character == "\\":
            key.append(next(characters, ""))
        elif character in "=:":
            break
        else:
            key.append(character)
    value = "".join(characters).strip()
    return "".join(key).strip(), value.replace("\\\\", "\\")
