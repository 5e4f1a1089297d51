"""The table of nodes, the worst first, each with a link to its own page."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from urllib.parse import quote

from pytest_thermal.findings.fleet.overview import NodeRow
from pytest_thermal.model.said import say
from pytest_thermal.recording.layout import REPORT
from pytest_thermal.reporting.run_page.markup import Markup, joined, tag
from pytest_thermal.reporting.run_page.numbers import number
from pytest_thermal.reporting.run_page.sections.verdict import badge
from pytest_thermal.reporting.run_page.subject import SEVERITY
from pytest_thermal.reporting.run_page.tables import table
from pytest_thermal.reporting.run_page.words import Words


def nodes_section(rows: Sequence[NodeRow], words: Words, *, folder: Path) -> Markup:
    """Every node of the fleet."""
    tokens = any(row.tokens_per_second is not None for row in rows)
    head = [
        words("node"), words("verdict"), words("place"), words("rise_of_cards"), words("furthest"),
        words("into_steady"), words("rate_tokens" if tokens else "rate_answers"), words("requests"), words("limited"),
        "",
    ]  # fmt: skip
    ordered = sorted(rows, key=lambda row: (SEVERITY.index(row.outcome), not row.outliers))
    return tag(
        "section",
        tag("h2", words("nodes")),
        tag("p", words("nodes_hint"), class_="hint"),
        table(head, [_row(row, words, folder, tokens=tokens) for row in ordered], id_="node-table"),
        id="nodes",
    )


def _row(row: NodeRow, words: Words, folder: Path, *, tokens: bool) -> list[object]:
    furthest = "–" if row.worst_celsius is None else f"{row.worst_device} {number(row.worst_celsius, 1, sign=True)}"
    off = bool(row.outliers)
    own_name = words.told(say("{name}: {text}", name=row.name, text=""))
    seen = words.told(row.seen).removeprefix(own_name)
    numbers = (
        number(row.late_seconds, 1, sign=True, unit="s"),
        number(row.tokens_per_second if tokens else row.answers_per_second, 1),
        number(row.requests, 0),
        number(row.limited, 0),
    )
    return [
        _link(row, folder),
        tag("td", badge(row.outcome, words), class_=row.outcome if row.outcome != "passed" else None),
        words.told(row.place) or "–",
        tag("td", number(row.rise_celsius, 1, unit="°C"), class_="number"),
        tag("td", tag("div", furthest, class_="value"), class_="failed" if off else None),
        *(tag("td", text, class_="number") for text in numbers),
        tag("td", "" if row.outcome == "passed" else seen, class_="said"),
    ]


def _link(row: NodeRow, folder: Path) -> Markup:
    page = Path(row.run) / REPORT if row.run else None
    if page is None or not page.is_file():
        return joined(row.name)
    path = os.path.relpath(page.resolve(), folder.resolve())
    return tag("a", row.name, href=quote(path))
