"""Archives of runs as they stand on disk, but for their samples, which no history reads."""

from __future__ import annotations

import copy
import functools
import hashlib
import json
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from pytest_thermal.recording.words import sensor_to_json
from tests.findings.recordings import FACTS, healthy, judged

QUARTER_SECONDS = 91 * 86_400.0
FIRST = 1_736_000_000.0
"""In the first quarter of 2025."""


@functools.cache
def _summary() -> str:
    """What a real run concluded."""
    return json.dumps(judged(healthy()).summary())


def add_run(
    archive: Path,
    quarter: int,
    *,
    rise: Mapping[str, float] | None = None,
    resistance: Mapping[str, float] | None = None,
    against: str | None = None,
    outcomes: Mapping[tuple[str, str], str] | None = None,
    cards: Sequence[str] = (),
    host: str = "lab-7",
    **facts: Any,
) -> Path:
    """A finished, sealed run of that quarter, as ``judged(healthy())`` but for what is given.

    Args:
        archive: Where.
        quarter: Counted from ``FIRST``.
        rise: By sensor, °C.
        resistance: By sensor, °C/W.
        against: Which run it was compared with.
        outcomes: By check and subject.
        cards: Further cards, each as gpu0.
        host: Its name.
        **facts: Of ``run.json``.
    """
    start = FIRST + quarter * QUARTER_SECONDS
    run = archive / f"{time.strftime('%Y%m%dT%H%M%SZ', time.gmtime(start))}_{host}"
    run.mkdir(parents=True)
    summary = json.loads(_summary())
    sensors = [sensor_to_json(one.sensor) for one in healthy().series.values()]
    for card in cards:
        for name in [one for one in summary["figures"] if one.startswith("gpu0.")]:
            summary["figures"][name.replace("gpu0", card)] = copy.deepcopy(summary["figures"][name])
        summary["findings"] += [
            {**one, "subject": one["subject"].replace("gpu0", card)}
            for one in summary["findings"]
            if one["subject"].startswith("gpu0")
        ]
        sensors += [
            {key: value.replace("gpu0", card) if isinstance(value, str) else value for key, value in one.items()}
            for one in sensors
            if one["device"] == "gpu0"
        ]
    for name, given in (("rise", rise), ("resistance", resistance)):
        for sensor, value in (given or {}).items():
            figure = next(one for one in summary["figures"][sensor] if one["name"] == name)
            figure["value"] = value
    for (check, subject), outcome in (outcomes or {}).items():
        found = next(one for one in summary["findings"] if (one["check"], one["subject"]) == (check, subject))
        found |= {"outcome": outcome, "seen": f"{subject} is {outcome} by its {check}"}
    summary["against"] = {"asked": "latest", "run": against, "why": [] if against else ["no earlier run"]}
    text = json.dumps(summary).encode()
    (run / "summary.json").write_bytes(text)
    (run / "report.html").write_text("<!DOCTYPE html><title>its page</title>")
    told = {
        "format": 1,
        **FACTS,
        "name": run.name,
        "start_seconds": start,
        "host": {"name": host},
        "sensors": sensors,
        "sha256": {"summary.json": hashlib.sha256(text).hexdigest()},
        **facts,
    }
    (run / "run.json").write_text(json.dumps(told))
    return run
