"""HTML from text that anybody may have written: everything is escaped but what was made here."""

from __future__ import annotations

import html
import json
import re

_UNSEEN = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\ud800-\udfff]")
_IN_SCRIPT = {"<": "\\u003c", ">": "\\u003e", "&": "\\u0026", "\u2028": "\\u2028", "\u2029": "\\u2029"}
_VOID = {"br", "hr", "input", "link", "meta"}


class Markup(str):
    """Text that is HTML already."""

    __slots__ = ()


def escaped(text: object) -> Markup:
    """Any text as HTML that shows it; control characters and halves of characters show as �."""
    return text if isinstance(text, Markup) else Markup(html.escape(_UNSEEN.sub("\ufffd", str(text))))


def tag(name: str, /, *children: object, **attributes: object) -> Markup:
    """One element. Children are escaped unless they are Markup; None is left out.

    Attributes: ``class_`` is ``class``, ``aria_label`` is ``aria-label``; True stands alone, None and False are left
    out.
    """
    words = [name]
    for key, value in attributes.items():
        if value is None or value is False:
            continue
        attribute = key.rstrip("_").replace("_", "-")
        words.append(attribute if value is True else f'{attribute}="{escaped(value)}"')
    opening = f"<{' '.join(words)}>"
    return Markup(opening if name in _VOID else f"{opening}{joined(*children)}</{name}>")


def joined(*children: object) -> Markup:
    """Children one after another, as ``tag`` takes them."""
    return Markup("".join(escaped(child) for child in children if child is not None))


def json_script(data: object, *, id_: str) -> Markup:
    """Data for a script of the page, which no text in it can end or leave.

    Raises:
        ValueError: A number in it is not finite.
    """
    text = json.dumps(data, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    for sign, code in _IN_SCRIPT.items():
        text = text.replace(sign, code)
    text = _UNSEEN.sub("\ufffd", text)
    return Markup(f'<script type="application/json" id="{escaped(id_)}">{text}</script>')
