"""Which language a person is told things in, and its words: one table a language, read only where it is chosen."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

from pytest_thermal.model.said import Said

LANGUAGES = ("en", "zh")
_FOLDER = Path(__file__).parents[1] / "words"


class Catalogue:
    """One language: tells a text in it. English tells every text as it stands."""

    def __init__(self, language: str = "en", table: Mapping[str, str] | None = None) -> None:
        self.language = language
        """``en``, ``zh``."""
        self._table = table or {}

    def __call__(self, text: str) -> str:
        """The text in this language; as it stands, where it is none that ``say`` made."""
        return text.told(self._table) if self._table and isinstance(text, Said) else str(text)

    def template(self, text: str) -> str:
        """What stands in this language for a template, or for a text that is the same in every message."""
        return self._table.get(text, text)


IN_ENGLISH = Catalogue()


def catalogue(language: str) -> Catalogue:
    """The words of a language.

    Raises:
        KeyError: There is no such language.
    """
    if language not in LANGUAGES:
        raise KeyError(f"no language {language!r}; there are: {', '.join(LANGUAGES)}")
    return IN_ENGLISH if language == "en" else Catalogue(language, read_table(language))


def read_table(language: str) -> dict[str, str]:
    """English template → template of that language."""
    table: dict[str, str] = json.loads((_FOLDER / f"{language}.json").read_text(encoding="utf-8"))
    return table


def language_of_locale(environ: Mapping[str, str]) -> str:
    """``zh`` where the first of LC_ALL, LC_MESSAGES and LANG that is set begins with it (as in POSIX); else ``en``."""
    locale = next((environ[name] for name in ("LC_ALL", "LC_MESSAGES", "LANG") if environ.get(name)), "")
    return "zh" if locale.lower().startswith("zh") else "en"
