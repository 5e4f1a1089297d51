"""Text that a person reads: in English, and with what it was made of, so that it can be told in another language."""

from __future__ import annotations

import textwrap
from collections.abc import Callable, Iterable, Mapping
from typing import Any, SupportsIndex

Value = str | int | float | bool | None
"""What may stand in a text; a ``Said`` is told in the same language as the text around it."""

_TEMPLATE = "said"
_PARTS = "joined"


class Said(str):
    """English text that remembers its template and the values in it. Everywhere else it is a plain ``str``."""

    __slots__ = ("template", "values")

    template: str
    """As in ``say``: with ``str.format`` fields where there are values."""
    values: Mapping[str, Value]

    def __new__(cls, text: str, template: str, values: Mapping[str, Value]) -> Said:  # noqa: D102, PYI034 - 3.10 has no Self
        made = super().__new__(cls, text)
        made.template = template
        made.values = values
        return made

    def told(self, table: Mapping[str, str]) -> str:
        """In the language of a table from English templates to its own; English where that has no such template."""
        return _filled(
            table.get(self.template, self.template), {name: tell(v, table) for name, v in self.values.items()}
        )

    def mapped(self, change: Callable[[str], str]) -> str:
        """With each value changed, as redaction does; plain text where the change also touches the template's words."""
        values = {
            name: mapped(value, change) if isinstance(value, str) else value for name, value in self.values.items()
        }
        whole = _filled(self.template, values)
        if change(_filled(self.template, self.values)) != whole:
            return change(str(self))
        if all(value is self.values[name] for name, value in values.items()):
            return self
        return Said(change(str(self)), self.template, values)

    def shortened(self, text: str) -> Said:
        """The same message, whose English text is cut to ``text``; in another language it is told in full."""
        return Said(text, self.template, self.values)

    def packed(self) -> dict[str, Any]:
        """As plain data, for JSON and for xdist."""
        return {_TEMPLATE: self.template, "values": packed(dict(self.values)), "text": str(self)}

    def __add__(self, other: str) -> str:
        return joined("", (self, other))

    def __radd__(self, other: str) -> str:
        return joined("", (other, self))

    def __reduce_ex__(self, _protocol: SupportsIndex) -> tuple[Any, ...]:
        return Said, (str(self), self.template, self.values)


class Joined(Said):
    """Several texts in a row; its template is what stands between them."""

    __slots__ = ("parts",)

    parts: tuple[str, ...]

    def __new__(cls, separator: str, parts: Iterable[str]) -> Joined:  # noqa: D102, PYI034 - as above
        texts = tuple(parts)
        made = str.__new__(cls, separator.join(texts))
        made.template = separator
        made.values = {}
        made.parts = texts
        return made

    def told(self, table: Mapping[str, str]) -> str:
        """As ``Said.told``, with the language's own separator."""
        return table.get(self.template, self.template).join(str(tell(part, table)) for part in self.parts)

    def mapped(self, change: Callable[[str], str]) -> str:
        """As ``Said.mapped``."""
        parts = tuple(mapped(part, change) for part in self.parts)
        whole = self.template.join(parts)
        if change(str(self)) != whole:
            return change(str(self))
        unchanged = all(after is before for after, before in zip(parts, self.parts, strict=True))
        return self if unchanged else Joined(self.template, parts)

    def packed(self) -> dict[str, Any]:
        """As plain data."""
        return {_PARTS: self.template, "parts": packed(list(self.parts))}

    def __reduce_ex__(self, _protocol: SupportsIndex) -> tuple[Any, ...]:
        return Joined, (self.template, self.parts)


def say(template: str, /, **values: object) -> str:
    """``say("{sensor} rose by {rise:.1f} °C", sensor=…, rise=…)``: English text that can be told in another language.

    The template stands in the catalogue of every language (``words/``) word for word. It is a template of
    ``str.format`` where values are given, and plain text where none are.
    """
    return Said(_filled(template, values), template, {name: _plain(value) for name, value in values.items()})


def joined(separator: str, parts: Iterable[str]) -> str:
    """``separator.join(parts)``, whose parts and separator are told in another language too."""
    return Joined(separator, parts)


def mapped(text: str, change: Callable[[str], str]) -> str:
    """``change(text)``, which keeps what the text was made of where that can be changed piece by piece."""
    return text.mapped(change) if isinstance(text, Said) else change(text)


def words_of(error: BaseException) -> str:
    """What an error says, and what that was made of, where it was raised with one text."""
    return error.args[0] if len(error.args) == 1 and isinstance(error.args[0], str) else str(error)


def in_english(text: str, english: str) -> str:
    """The same message with another English text: cut, or set in lines; another language tells it in full."""
    return text.shortened(english) if isinstance(text, Said) else english


def shorten(text: str, most: int) -> str:
    """The text with no more than ``most`` characters, cut at a word; in another language it is told in full."""
    cut = textwrap.shorten(text, most, placeholder=" …")
    return text if cut == text else in_english(text, cut)


def first_part(text: str, separator: str = "; ") -> str:
    """The first of several texts in a row."""
    if isinstance(text, Joined):
        return text.parts[0] if text.parts and text.template == separator else text
    return text if separator not in text else text.partition(separator)[0]


def last_part(text: str, separator: str = "; ") -> str:
    """The last of several texts in a row."""
    if isinstance(text, Joined):
        return text.parts[-1] if text.parts and text.template == separator else text
    return text if separator not in text else text.rpartition(separator)[2]


def tell(value: Value, table: Mapping[str, str]) -> Value:
    """A value as it stands in a text of the table's language."""
    return value.told(table) if isinstance(value, Said) else value


def packed(data: Any) -> Any:
    """The same structure with plain data for each ``Said`` in it."""
    if isinstance(data, Said):
        return data.packed()
    if isinstance(data, Mapping):
        return {name: packed(value) for name, value in data.items()}
    if isinstance(data, (list, tuple)):
        return [packed(value) for value in data]
    return str(data) if type(data) is not str and isinstance(data, str) else data


def plain(data: Any) -> Any:
    """The same structure with plain ``str`` for each ``Said`` in it: what xdist sends must be of Python's own types."""
    if isinstance(data, str):
        return str(data)
    if isinstance(data, Mapping):
        return {plain(name): plain(value) for name, value in data.items()}
    if isinstance(data, (list, tuple)):
        return [plain(value) for value in data]
    return data


def unpacked(data: Any) -> Any:
    """What ``packed`` made plain, as it was; anything else as it stands."""
    if isinstance(data, Mapping):
        if data.keys() == {_TEMPLATE, "values", "text"}:
            return Said(data["text"], data[_TEMPLATE], unpacked(data["values"]))
        if data.keys() == {_PARTS, "parts"}:
            return Joined(data[_PARTS], unpacked(data["parts"]))
        return {name: unpacked(value) for name, value in data.items()}
    if isinstance(data, list):
        return [unpacked(value) for value in data]
    return data


def _filled(template: str, values: Mapping[str, object]) -> str:
    return template.format_map(values) if values else template


def _plain(value: object) -> Value:
    if isinstance(value, (str, bool, int, float)) or value is None:
        item = getattr(value, "item", None)  # numpy's float64 is a float, and pickles as numpy's
        return item() if callable(item) else value
    item = getattr(value, "item", None)
    number = item() if callable(item) else value
    return number if isinstance(number, (bool, int, float)) else str(value)
