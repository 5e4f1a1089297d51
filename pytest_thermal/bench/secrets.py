"""Keys: how one may be shown, and how every trace of one is taken out of text."""

from __future__ import annotations

import base64
import html
import json
import re
from collections.abc import Iterable, Iterator
from typing import Protocol, runtime_checkable
from urllib.parse import quote, quote_plus

from pydantic import SecretStr

from pytest_thermal.model.said import Said, say

_HEAD = 4
_SHOWS_HEAD_FROM = 12  # four characters of a shorter key would be too much of it
_REDACTED_FROM = 6  # a key as short as "a" would shred every text; it is no secret either
_CUT_FROM = 24
_CUT = 16  # of a key that some repr shortened, this much of its start or end still gives it away
_TOKEN = r"[A-Za-z0-9._~+/=-]"  # noqa: S105 - the characters of a bearer token in RFC 6750, not a token
# A challenge (`Bearer realm=…`) and a sentence ("Bearer authentication") are no tokens.
_NET = re.compile(
    rf"(?P<scheme>\b[Bb][Ee][Aa][Rr][Ee][Rr](?:\s|%20)+)(?=\S*\d|\S{{20}})(?P<token>{_TOKEN}{{8,}})"
    r"|(?<![A-Za-z0-9])(?P<key>sk-[A-Za-z0-9_-]{16,})"
)


def _head(key: str) -> str:
    return "".join(sign if sign.isprintable() else "?" for sign in key[:_HEAD]) if len(key) >= _SHOWS_HEAD_FROM else ""


def describe_key(key: SecretStr | None) -> str:
    """What may be shown of a key: `sk-a…, 51 characters`; of one shorter than 12 characters only the length."""
    if key is None:
        return say("none")
    text = key.get_secret_value()
    length = say("1 character") if len(text) == 1 else say("{count} characters", count=len(text))
    head = _head(text)
    return say("{head}…, {length}", head=head, length=length) if head else length


def looks_like_key(text: str) -> bool:
    """Whether a text that should be something else is probably a key, and so must not be shown."""
    if re.match(r"(sk|pk|rk|ak|tk)[-_]\S{6,}", text, re.IGNORECASE) or re.match(r"bearer\s", text, re.IGNORECASE):
        return True
    if re.search(r"[\s/]", text):
        return False
    runs = re.findall(r"[A-Za-z0-9]{16,}", text)
    if any(re.search(r"\d", run) and re.search(r"[A-Za-z]", run) for run in runs):
        return True
    return bool(re.fullmatch(r"[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}", text)) or (
        len(text) > 40 and any(sign.isdigit() for sign in text)
    )


@runtime_checkable
class _Named(Protocol):
    """A named tuple."""

    def _make(self, items: Iterable[object]) -> object: ...


class Redactor:
    """Replaces keys in text by `[key sk-a…]`.

    Known keys are found as they stand, quoted for a URL, escaped for JSON, XML or a Python literal, in base64,
    and cut short by some repr. Keys of fewer than 6 characters are left alone: they would shred the text.
    Besides, whatever follows `Bearer` and whatever looks like `sk-…` is replaced, known or not.
    """

    __slots__ = ("_count", "_known", "_labels", "_needles", "_prefixes")

    def __init__(self, secrets: Iterable[SecretStr] = ()) -> None:
        labels: dict[str, str] = {}
        prefixes: dict[str, str] = {}
        keys = {secret.get_secret_value() for secret in secrets}
        for key in sorted(keys):
            for bare in (key, _bare(key)):
                if len(bare) < _REDACTED_FROM:
                    continue
                label = f"[key {_head(bare)}…]"
                for form in _forms(bare):
                    labels.setdefault(form, label)
                if len(bare) >= _CUT_FROM:
                    prefixes.setdefault(bare[:_CUT], label)
                    labels.setdefault(bare[-_CUT:], label)
        self._count = len(keys)
        self._labels = labels
        self._prefixes = prefixes
        self._needles = (*labels, *prefixes)
        alternatives = [re.escape(form) for form in sorted(labels, key=len, reverse=True)]
        alternatives += [f"{re.escape(prefix)}{_TOKEN}*" for prefix in sorted(prefixes)]
        self._known = re.compile("|".join(alternatives)) if alternatives else None

    def __repr__(self) -> str:
        return f"Redactor({self._count} keys)"

    def text(self, text: str) -> str:
        """The text without keys; the same object when there is none in it."""
        if isinstance(text, Said):
            return text.mapped(self.text)
        # Plain searches first: nearly every text holds no key, and they are many times faster than the patterns.
        if self._known is not None and any(needle in text for needle in self._needles):
            text = self._known.sub(self._replace, text)
        if ("sk-" in text or "bearer" in text.lower()) and _NET.search(text):
            text = _NET.sub(_replace_unknown, text)
        return text

    def data(self, data: object) -> object:
        """The same structure with every text in it redacted: in dicts (keys too), lists, tuples, sets and bytes."""
        if isinstance(data, str):
            return self.text(data)
        if isinstance(data, bytes):
            return self.text(data.decode("utf-8", "surrogateescape")).encode("utf-8", "surrogateescape")
        if isinstance(data, dict):
            return {self.data(name): self.data(value) for name, value in data.items()}
        if isinstance(data, tuple):
            items = tuple(self.data(item) for item in data)
            return data._make(items) if isinstance(data, _Named) else items
        if isinstance(data, (list, set, frozenset)):
            return type(data)(self.data(item) for item in data)
        return data

    def _replace(self, match: re.Match[str]) -> str:
        found = match.group()
        return self._labels.get(found) or self._prefixes[found[:_CUT]]


def _replace_unknown(match: re.Match[str]) -> str:
    return f"{match['scheme'] or ''}[key {_head(match['token'] or match['key'])}…]"


def _bare(key: str) -> str:
    """The key as logs show it after someone stripped it."""
    return re.sub(r"^bearer\s+", "", key.strip().strip("\"'").strip(), flags=re.IGNORECASE)


def _forms(key: str) -> Iterator[str]:
    yield key
    for quoted in (quote(key), quote(key, safe=""), quote_plus(key)):
        yield quoted
        yield re.sub(r"%[0-9A-F]{2}", lambda match: match.group().lower(), quoted)
    for escaped in (json.dumps(key), json.dumps(key, ensure_ascii=False), repr(key), ascii(key)):
        yield escaped[1:-1]
    yield html.escape(key)
    yield html.escape(key, quote=False)
    raw = key.encode("utf-8", "surrogateescape")
    for plain in (raw, b":" + raw):
        for encoded in (base64.b64encode(plain), base64.urlsafe_b64encode(plain)):
            yield encoded.decode("ascii")
            yield encoded.decode("ascii").rstrip("=")
