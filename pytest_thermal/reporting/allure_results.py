"""The folders that allure-pytest writes: which is the newest, and what it says of the bench."""

from __future__ import annotations

from pathlib import Path


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
