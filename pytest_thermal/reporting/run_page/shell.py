"""What is around every page made here: one HTML text that loads nothing, and in which nothing runs but what is ours."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Sequence
from importlib.resources import files

from pytest_thermal import __version__
from pytest_thermal.reporting.run_page.markup import Markup, tag

ASSETS = files("pytest_thermal.reporting.run_page") / "assets"
_NONE = "'none'"


def whole_page(
    body: str, *, title: str, language: str, styles: Sequence[str], scripts: Sequence[str] = (), remark: str = ""
) -> str:
    """The page around ``body``, which is HTML already.

    Args:
        body: Markup, escaped and redacted.
        title: Text.
        language: As HTML has it.
        styles: Style sheets, whole.
        scripts: Those that may run, at the end of the page; a content security policy forbids all others.
        remark: For whoever reads the source.
    """
    policy = (
        "default-src 'none'; img-src data:; base-uri 'none'; form-action 'none'; "
        f"style-src {' '.join(map(_sha256, styles)) or _NONE}; script-src {' '.join(map(_sha256, scripts)) or _NONE}"
    )
    head = tag(
        "head",
        tag("meta", charset="utf-8"),
        tag("meta", http_equiv="Content-Security-Policy", content=policy),
        tag("meta", name="viewport", content="width=device-width, initial-scale=1"),
        tag("meta", name="color-scheme", content="light dark"),
        tag("meta", name="generator", content=f"pytest-thermal {__version__}"),
        tag("link", rel="icon", href="data:,"),
        tag("title", title),
        *(Markup(f"<style>{style}</style>\n") for style in styles),
    )
    whole = tag("body", Markup(body), *(Markup(f"<script>{script}</script>\n") for script in scripts))
    comment = Markup(f"<!-- {remark.replace('--', '- -')}-->\n") if remark else None
    return f"<!DOCTYPE html>\n{tag('html', head, comment, whole, lang=language)}\n"


def asset(name: str) -> str:
    """A file of the page's own, as text."""
    return (ASSETS / name).read_text(encoding="utf-8")


def _sha256(text: str) -> str:
    """As a content security policy names a script or a style: nothing else may run, whatever text holds it."""
    digest = base64.b64encode(hashlib.sha256(text.encode()).digest()).decode("ascii")
    return f"'sha256-{digest}'"
