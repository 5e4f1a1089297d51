"""The bench files as used, for the run directory: without a single key."""

from __future__ import annotations

import re
from collections.abc import Mapping

from pytest_thermal.bench import Bench, Redactor
from pytest_thermal.bench.secrets import looks_like_key
from pytest_thermal.recording.layout import SETTINGS, safe_name

_STRING = re.compile(r"""("(?:[^"\\\n]|\\.)*"|'[^'\n]*')""")
_VARIABLE = re.compile(r"\$\{\w+\}")
_DEFAULT_NAME = "API_KEY"


def copied_settings(bench: Bench) -> dict[str, bytes]:
    """Each bench file's content by its name, with every key replaced by ``${NAME}``.

    ``NAME`` is the variable the key came from; for a key that stands in the file itself, one made from the domain's
    name: ``${EAST_API_KEY}``. Comments go through the same sieve. Files that are gone by now are left out.
    """
    redactor = Redactor(bench.secrets())
    names = key_names(bench)
    found = {}
    for path in bench.files:
        if path.name in SETTINGS:
            try:
                text = path.read_bytes().decode("utf-8-sig", "replace")
            except OSError:
                continue
            found[path.name] = without_keys(text, names, redactor).encode()
    return found


def key_names(bench: Bench) -> dict[str, str]:
    """The name to write for each key: the variable it came from where there is one."""
    names: dict[str, str] = {}
    for domain in bench.domains:
        if domain.key is None:
            continue
        if domain.key_origin.startswith("$"):
            name = domain.key_origin.lstrip("$").strip("{}")
        elif len(bench.domains) == 1:
            name = _DEFAULT_NAME
        else:
            name = f"{safe_name(domain.name).upper().replace('-', '_').replace('.', '_')}_{_DEFAULT_NAME}"
        names.setdefault(domain.key.get_secret_value(), name)
    return names


def without_keys(text: str, names: Mapping[str, str], redactor: Redactor) -> str:
    """The text with known keys replaced by ``${NAME}``, and whatever else looks like one made unreadable."""
    for key in sorted(names, key=len, reverse=True):
        if key:
            text = text.replace(key, f"${{{names[key]}}}")

    def judged(match: re.Match[str]) -> str:
        quote, inside = match[0][0], match[0][1:-1]
        if _VARIABLE.fullmatch(inside):
            return match[0]
        if redactor.text(inside) != inside or looks_like_key(inside):
            return f"{quote}${{{_DEFAULT_NAME}}}{quote}"
        return match[0]

    return redactor.text(_STRING.sub(judged, text))
