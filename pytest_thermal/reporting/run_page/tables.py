"""Tables that scroll by themselves where the page is narrow."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from pytest_thermal.reporting.run_page.markup import Markup, tag


def table(head: Sequence[object], rows: Iterable[Sequence[object]], *, id_: str | None = None) -> Markup:
    """The first cell of each row names it. A cell that is a ``td`` already stays as it is."""
    body = [tag("tr", tag("th", row[0], scope="row"), *map(_cell, row[1:])) for row in rows]
    return tag(
        "div",
        tag(
            "table",
            tag("thead", tag("tr", *(tag("th", one, scope="col") for one in head))),
            tag("tbody", *body),
            id=id_,
        ),
        class_="scroll",
        tabindex="0",
    )


def _cell(value: object) -> Markup:
    return value if isinstance(value, Markup) and value.startswith("<td") else tag("td", value)
