"""The whole history page: one HTML text that loads nothing and runs nothing."""

from __future__ import annotations

from collections.abc import Callable
from importlib.resources import files

from pytest_thermal import __version__
from pytest_thermal.model.catalogue import IN_ENGLISH, Catalogue
from pytest_thermal.reporting.history.archive import Archive, RunEntry
from pytest_thermal.reporting.history.panels import Link
from pytest_thermal.reporting.history.sections import bench_section, left_out
from pytest_thermal.reporting.history.story import BenchHistory, benches
from pytest_thermal.reporting.history.words import history_words
from pytest_thermal.reporting.run_page import palette
from pytest_thermal.reporting.run_page.markup import Markup, tag
from pytest_thermal.reporting.run_page.shell import asset, whole_page
from pytest_thermal.reporting.run_page.words import Words


def history_html(
    archive: Archive,
    *,
    link: Link | None = None,
    redact: Callable[[str], str] = str,
    told: Catalogue = IN_ENGLISH,
) -> str:
    """The page as HTML text.

    Args:
        archive: What lies in the archive. The bench of the newest run stands first and open, others are folded.
        link: Where a run's own page is, seen from this one; None: it is linked to none.
        redact: Takes keys out of text.
        told: The language of the page.
    """
    words = history_words(told)
    found = benches(archive.runs)
    title = words("history_title", bench=found[0].bench if found else archive.folder.name)
    main = tag(
        "main",
        tag("header", tag("p", _count(len(archive.runs), words), class_="where"), tag("h1", title)),
        None if found else tag("p", words("nothing_says", folder=archive.folder), class_="banner"),
        *(_group(story, link or _nowhere, words, is_first=place == 0) for place, story in enumerate(found)),
        left_out(archive.left_out, words),
        tag("footer", words("history_made_by", version=__version__, folder=archive.folder.name)),
    )
    own = (files("pytest_thermal.reporting.history") / "assets" / "history.css").read_text(encoding="utf-8")
    return whole_page(
        redact(main),
        title=redact(title),
        language=words.language,
        styles=[palette.style_sheet(), asset("page.css"), own],
    )


def _group(story: BenchHistory, link: Link, words: Words, *, is_first: bool) -> Markup:
    parts = [story.bench or words("unknown")]
    if story.host:
        parts.append(words("on_host", host=story.host))
    return tag(
        "details",
        tag("summary", " ".join(parts), f" · {_count(len(story.runs), words)}"),
        bench_section(story, link=link, words=words),
        open=is_first,
        class_="group",
    )


def _count(runs: int, words: Words) -> str:
    return words("history_one") if runs == 1 else words("history", count=runs)


def _nowhere(_: RunEntry) -> None:
    return None
