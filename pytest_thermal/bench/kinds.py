"""What kinds of value a bench file holds: how each is checked, converted to our unit, and shown."""

# ruff: noqa: D102, ARG002 - methods are documented once, in Kind; few kinds care where a text came from

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Protocol

from pydantic import SecretStr

from pytest_thermal.bench.secrets import describe_key, looks_like_key
from pytest_thermal.bench.urls import normalise_base_url, normalise_server_url
from pytest_thermal.model.said import joined, say

_NUMBER = re.compile(r"\s*[+-]?[0-9]+(\.[0-9]+)?([eE][+-]?[0-9]{1,3})?\s*")
_DURATION = re.compile(r"\s*([0-9]+(?:\.[0-9]+)?)\s*(s|sec|m|min|h)?\s*")
_SECONDS_PER = {"": 1.0, "s": 1.0, "sec": 1.0, "m": 60.0, "min": 60.0, "h": 3600.0}
_DEVICE = re.compile(r"[a-z][a-z0-9_]*")
_SENSOR_ID = re.compile(rf"{_DEVICE.pattern}(?:\.[a-z0-9_]+)*")
_LABEL = re.compile(r"[a-zA-Z_][a-zA-Z0-9_]*")
_WORDS = {"true": True, "yes": True, "on": True, "1": True, "false": False, "no": False, "off": False, "0": False}


class UnfitError(ValueError):
    """A value that a setting cannot have. The text says what is expected, and holds nothing of the value."""

    def __init__(self, expected: str, *, seen: str | None = None, likely: str | None = None) -> None:
        super().__init__(expected)
        self.expected = expected
        self.seen = seen
        """The whole of what was seen, where that says more than the value itself."""
        self.likely = likely or say("the unit, the type or the quotes are not what this key takes")


class Kind(Protocol):
    """One kind of value."""

    def read(self, value: object, *, expanded: bool) -> tuple[object, str | None]:
        """The value in our unit, and a correction to tell the user.

        `expanded` says that the text came from the environment, where everything is text.

        Raises:
            UnfitError: The value is not of this kind.
        """
        ...

    def show(self, value: object) -> str:
        """The value with its unit, for a note."""
        ...

    def plain(self) -> Kind:
        """The same kind, for a value that already is in our unit."""
        ...


@dataclass(frozen=True, kw_only=True)
class _Base:
    def show(self, value: object) -> str:
        if isinstance(value, bool):
            return str(value).lower()
        return show_number(value) if isinstance(value, (int, float)) else f'"{value}"'

    def plain(self) -> Kind:
        return self  # type: ignore[return-value]


@dataclass(frozen=True, kw_only=True)
class Number(_Base):
    """A finite number from `least` (or above it) to `most`, in `unit`; `scale` brings it to `our_unit`."""

    unit: str = ""
    our_unit: str = ""
    scale: float = 1.0
    least: float = 0.0
    above: bool = False
    """Whether `least` itself is too small."""
    most: float | None = None
    hint: str = ""

    def read(self, value: object, *, expanded: bool) -> tuple[float, str | None]:
        number = _number(value)
        if number is None or number < self.least or (self.above and number == self.least):
            raise UnfitError(self._expected())
        if self.most is not None and number > self.most:
            raise UnfitError(self._expected() + (say(" ({hint})", hint=self.hint) if self.hint else ""))
        return number * self.scale if self.scale >= 1 else number / round(1 / self.scale), None

    def _expected(self) -> str:
        span = say("above {least:g}", least=self.least) if self.above else say("{least:g} or more", least=self.least)
        if self.most is not None:
            span = (
                say("above {least:g} to {most:g}", least=self.least, most=self.most)
                if self.above
                else say("from {least:g} to {most:g}", least=self.least, most=self.most)
            )
        return say(
            "a number{and_unit}, {span}", and_unit=say(" of {unit}", unit=self.unit) if self.unit else "", span=span
        )

    def show(self, value: object) -> str:
        return f"{show_number(value)} {self.our_unit or self.unit}".rstrip()

    def plain(self) -> Kind:
        return replace(self, unit=self.our_unit or self.unit, scale=1.0)


@dataclass(frozen=True, kw_only=True)
class Whole(_Base):
    """A whole number, at least `least`; `add` is what our setting counts beside it (the first try beside retries)."""

    unit: str = ""
    least: int = 1
    add: int = 0

    def read(self, value: object, *, expanded: bool) -> tuple[int, str | None]:
        number = _number(value)
        if number is None or number != int(number) or number < self.least:
            raise UnfitError(
                say(
                    "a whole number{and_unit}, {least} or more",
                    and_unit=say(" of {unit}", unit=self.unit) if self.unit else "",
                    least=self.least,
                )
            )
        return int(number) + self.add, None

    def show(self, value: object) -> str:
        if self.add and isinstance(value, int):
            return say("{value} ({value_2} retries after the first try)", value=value, value_2=value - self.add)
        return f"{value} {self.unit}".rstrip()

    def plain(self) -> Kind:
        return replace(self, least=self.least + self.add, add=0)


@dataclass(frozen=True, kw_only=True)
class Duration(_Base):
    """A duration above 0: seconds as a number, or a text with its unit (`90s`, `60m`, `1h`)."""

    def read(self, value: object, *, expanded: bool) -> tuple[float, str | None]:
        return parse_duration(value), None

    def show(self, value: object) -> str:
        return f"{show_number(value)} s"


@dataclass(frozen=True, kw_only=True)
class Flag(_Base):
    """true or false; from the environment also yes, no, on, off, 1, 0."""

    def read(self, value: object, *, expanded: bool) -> tuple[bool, str | None]:
        if isinstance(value, bool):
            return value, None
        if expanded and isinstance(value, str) and value.strip().lower() in _WORDS:
            return _WORDS[value.strip().lower()], None
        raise UnfitError(say("true or false, without quotes"))


@dataclass(frozen=True, kw_only=True)
class Text(_Base):
    """A text that is not blank; one of `choices`, in any case, where there are some."""

    choices: Mapping[str, str] | None = None
    """What may be written, in lower case, and what it means."""

    def read(self, value: object, *, expanded: bool) -> tuple[str, str | None]:
        if self.choices is None:
            if isinstance(value, str) and value.strip():
                return value, None
            raise UnfitError(say("a text in quotes, not blank"))
        if isinstance(value, str) and value.strip().lower() in self.choices:
            return self.choices[value.strip().lower()], None
        raise UnfitError(say("one of {names}", names=joined(", ", self.choices)))


@dataclass(frozen=True, kw_only=True)
class Endpoint(_Base):
    """A path on the gateway."""

    def read(self, value: object, *, expanded: bool) -> tuple[str, str | None]:
        if not isinstance(value, str) or not re.fullmatch(r"/?[^\s:/?#][^\s?#]*", value) or "://" in value:
            raise UnfitError(say("a path such as /v1/models, without host and query"))
        return (
            (value, None) if value.startswith("/") else (f"/{value}", say("leading slash added: /{value}", value=value))
        )


@dataclass(frozen=True, kw_only=True)
class Address(_Base):
    """The base URL of a gateway."""

    def read(self, value: object, *, expanded: bool) -> tuple[str, str | None]:
        if not isinstance(value, str):
            raise UnfitError(say("an address in quotes, such as http://127.0.0.1:8000/v1"))
        try:
            return normalise_base_url(value)
        except ValueError as error:
            raise UnfitError(
                say("an address such as http://127.0.0.1:8000/v1"),
                seen=str(error),
                likely=say("more or less was pasted than scheme, host, port and path"),
            ) from None

    def show(self, value: object) -> str:
        return str(value)


@dataclass(frozen=True, kw_only=True)
class Key(_Base):
    """The API key itself. It is kept exactly as it stands; an empty one is no key."""

    def read(self, value: object, *, expanded: bool) -> tuple[SecretStr | None, str | None]:
        if isinstance(value, SecretStr):
            return value, None
        if not isinstance(value, str):
            raise UnfitError(say("the key as a text in quotes, best as ${NAME}"))
        return SecretStr(value) if value else None, None

    def show(self, value: object) -> str:
        return say("the key") if value else say("no key")


@dataclass(frozen=True, kw_only=True)
class KeyVariable(Key):
    """The name of the environment variable that holds the API key."""


@dataclass(frozen=True, kw_only=True)
class Items(_Base):
    """A list of different whole numbers from 0, or with `names` also of names; from the environment `0,1,2`."""

    names: bool = False

    def read(self, value: object, *, expanded: bool) -> tuple[tuple[int | str, ...], str | None]:
        if expanded and isinstance(value, str):
            value = [part.strip() for part in value.split(",") if part.strip()]
        what = say("numbers or names in brackets: [0, 1]") if self.names else say("numbers from 0 in brackets: [0, 1]")
        if not isinstance(value, (list, tuple)):
            raise UnfitError(say("a list of {what}", what=what))
        items = [self._item(item, what) for item in value]
        if len(set(items)) != len(items):
            raise UnfitError(say("a list of different {what}", what=what))
        return tuple(items), None

    def _item(self, item: object, what: str) -> int | str:
        number = _number(item)
        if number is not None and number >= 0 and number == int(number):
            return int(number)
        if self.names and isinstance(item, str) and item.strip():
            return item
        raise UnfitError(say("a list of {what}", what=what))

    def show(self, value: object) -> str:
        return str(list(value)) if isinstance(value, tuple) else str(value)


@dataclass(frozen=True, kw_only=True)
class Scalar(_Base):
    """A text or a number; with `any_number` also a fraction, true or false."""

    any_number: bool = False

    def read(self, value: object, *, expanded: bool) -> tuple[str | int | float | bool, str | None]:
        if isinstance(value, str) and value.strip():
            return value, None
        if isinstance(value, bool) or (isinstance(value, float) and not value.is_integer()):
            if self.any_number and (isinstance(value, bool) or math.isfinite(value)):
                return value, None
        elif isinstance(value, (int, float)) and value >= 0:
            return int(value), None
        raise UnfitError(
            say("a text in quotes, a number, true or false") if self.any_number else say("a name or a whole number")
        )


@dataclass(frozen=True, kw_only=True)
class Sensors(_Base):
    """A table of sensors by the device that the person at the bench knows them to be: ``{pump0 = "ipmi:FAN 7"}``."""

    sources: tuple[str, ...]
    """Whose names may be used."""

    def read(self, value: object, *, expanded: bool) -> tuple[Mapping[str, str], str | None]:
        if not isinstance(value, Mapping) or not value:
            raise UnfitError(self._expected())
        found: dict[str, str] = {}
        for device, sensor in value.items():
            source, colon, name = sensor.partition(":") if isinstance(sensor, str) else ("", "", "")
            named = _SENSOR_ID if source == "prometheus" else _DEVICE
            if not (named.fullmatch(str(device)) and colon and name.strip() and source in self.sources):
                raise UnfitError(
                    self._expected(), likely=say("the name of its source is missing, or the device is no word")
                )
            # What stands between the quotes of PromQL is kept as it is.
            found[str(device)] = f"{source}:{name.strip() if source == 'prometheus' else ' '.join(name.split())}"
        if len(set(found.values())) != len(found):
            raise UnfitError(say("{expected}, each sensor once", expected=self._expected()))
        return found, None

    def _expected(self) -> str:
        return say('a table of words and sensors, such as {{pump0 = "{sources}:FAN 7"}}', sources=self.sources[0])

    def show(self, value: object) -> str:
        pairs = value.items() if isinstance(value, Mapping) else ()
        return ", ".join(f'{device} = "{sensor}"' for device, sensor in pairs)


@dataclass(frozen=True, kw_only=True)
class ServerAddress(_Base):
    """The address of a server other than a gateway: no version belongs to it."""

    def read(self, value: object, *, expanded: bool) -> tuple[str, str | None]:
        if not isinstance(value, str):
            raise UnfitError("an address in quotes, such as http://127.0.0.1:9090")
        try:
            return normalise_server_url(value)
        except ValueError as error:
            raise UnfitError(
                "an address such as http://127.0.0.1:9090",
                seen=str(error),
                likely="more or less was pasted than scheme, host, port and path",
            ) from None


@dataclass(frozen=True, kw_only=True)
class Labels(_Base):
    """A table of Prometheus' labels and their values, each a text or several: ``{instance = "node7"}``."""

    def read(self, value: object, *, expanded: bool) -> tuple[Mapping[str, tuple[str, ...]], str | None]:
        if not isinstance(value, Mapping) or not value:
            raise UnfitError(self._EXPECTED)
        found: dict[str, tuple[str, ...]] = {}
        for label, given in value.items():
            texts = given if isinstance(given, (list, tuple)) else [given]
            right = texts and all(isinstance(text, str) and text.strip() for text in texts)
            if not (_LABEL.fullmatch(str(label)) and right):
                raise UnfitError(self._EXPECTED)
            found[str(label)] = tuple(str(text).strip() for text in texts)
        return found, None

    _EXPECTED = 'a table of labels and texts, such as {instance = "node7"} or {instance = ["node7", "bmc-node7"]}'

    def show(self, value: object) -> str:
        pairs = value.items() if isinstance(value, Mapping) else ()
        return ", ".join(f"{label} = {' or '.join(texts)}" for label, texts in pairs)


def parse_duration(value: object) -> float:
    """Seconds of a duration: a number of seconds, or a text such as `90`, `90s`, `60m`, `1.5h`.

    Raises:
        ValueError: It is no duration above 0.
    """
    found = _DURATION.fullmatch(value.lower()) if isinstance(value, str) else None
    seconds = float(found[1]) * _SECONDS_PER[found[2] or ""] if found else _number(value)
    if seconds is None or seconds <= 0 or not math.isfinite(seconds):
        raise UnfitError(say('a duration above 0: seconds as a number, or "90s", "60m", "1h"'))
    return float(seconds)


def show_number(value: object) -> str:
    """A number without trailing zeros and without an exponent where a person would write none."""
    if isinstance(value, float):
        return str(int(value)) if value.is_integer() and abs(value) < 1e15 else f"{value:.10g}"
    return str(value)


def show_seen(value: object) -> str:
    """A value as it stands in the file, for an error: short, and never one that may be a key."""
    if isinstance(value, SecretStr):
        return describe_key(value)
    if isinstance(value, str):
        if looks_like_key(value):
            return say("a text of {count} characters that looks like a key", count=len(value))
        return (
            say('the text "{value}"', value=value)
            if len(value) <= 40
            else say("a text of {count} characters", count=len(value))
        )
    if value is None:
        return "null"
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, (int, float)):
        return show_number(value) if isinstance(value, float) or abs(value) < 10**20 else say("a huge number")
    if isinstance(value, Mapping):
        return say("a table") if value else say("an empty table")
    return (
        say("a list of {count}", count=len(value)) if isinstance(value, (list, tuple)) else f"a {type(value).__name__}"
    )


def _number(value: object) -> float | None:
    """A finite number, also from plainly numeric text; true and false are none."""
    if isinstance(value, bool):
        return None
    if isinstance(value, str):
        if not _NUMBER.fullmatch(value):
            return None
        value = float(value)
    if isinstance(value, int):
        return value if abs(value) < 2**63 else None
    return value if isinstance(value, float) and math.isfinite(value) else None
