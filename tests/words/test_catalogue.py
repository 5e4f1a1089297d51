"""Each catalogue says all that the package says, with the same values in it, and nothing else."""

from __future__ import annotations

import ast
import re
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

import pytest_thermal
from pytest_thermal.model.catalogue import LANGUAGES, catalogue, language_of_locale, read_table
from pytest_thermal.model.said import joined, say

PACKAGE = Path(pytest_thermal.__file__).parent
SUITES = Path(__file__).parents[2] / "suites"
OTHERS = tuple(language for language in LANGUAGES if language != "en")
HOME = "pytest_thermal.model.said"
WORDS = {"say", "joined"}
"""Functions whose first argument is looked up."""
FIELD = re.compile(r"\{\w+(?:![rsa])?(?::[^{}]*)?\}")
CHINESE = re.compile("[\u4e00-\u9fff]")
HALF_WIDTH = re.compile("[\u4e00-\u9fff] ?[,;?!]|[,;?!] ?[\u4e00-\u9fff]")
"""Punctuation of Western text beside a Chinese character; a colon may follow a word that people grep for."""


def looked_up(source: str) -> Iterator[tuple[str | None, int]]:
    """Each text that a source looks up, and its line; None for one that is no literal."""
    tree = ast.parse(source)
    imports = [node for node in ast.walk(tree) if isinstance(node, ast.ImportFrom) and node.module == HOME]
    names = {alias.name for node in imports for alias in node.names} & WORDS
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in names:
            text = node.args[0] if node.args else None
            yield (text.value if isinstance(text, ast.Constant) and isinstance(text.value, str) else None), node.lineno


def fixed(source: str) -> Iterator[tuple[str, int]]:
    """Each text of a table of fixed words."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name) and node.target.id == "ENGLISH":
            table = node.value
            for text in table.values if isinstance(table, ast.Dict) else ():
                assert isinstance(text, ast.Constant)
                yield str(text.value), text.lineno


def titles() -> Iterator[str]:
    """First lines of the suites' tests, which are titles in a report; those of somebody's own stay as they are."""
    for path in SUITES.rglob("test_*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.FunctionDef) and ast.get_docstring(node):
                yield str(ast.get_docstring(node)).splitlines()[0].rstrip(".")


def fields(template: str) -> Counter[str]:
    """The values of a template, each with how it is written."""
    return Counter(FIELD.findall(template))


def sources() -> Iterator[tuple[str, str]]:
    for path in sorted(PACKAGE.rglob("*.py")):
        name = path.relative_to(PACKAGE).as_posix()
        if name not in ("model/said.py", "model/catalogue.py"):
            yield name, path.read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def said() -> Mapping[str, str]:
    """Every text that the package looks up, and where."""
    return {
        text: f"{name}:{line}"
        for name, source in sources()
        for text, line in (*looked_up(source), *fixed(source))
        if text is not None
    }


def test_what_is_told_is_a_literal() -> None:
    found = [f"{name}:{line}" for name, source in sources() for text, line in looked_up(source) if text is None]
    assert not found, "a text that is put together at run time cannot be looked up: say('…{value}…', value=…)"


@pytest.mark.parametrize("language", OTHERS)
def test_nothing_is_missing_and_nothing_is_left_over(said: Mapping[str, str], language: str) -> None:
    table = read_table(language)
    missing = [f"{where}: {text}" for text, where in said.items() if text not in table]
    assert not missing, f"words/{language}.json lacks these"
    known = {*said, *titles()}
    assert not [text for text in table if text not in known], f"words/{language}.json: nobody says these any more"


@pytest.mark.parametrize("language", OTHERS)
def test_every_text_has_the_same_values(language: str) -> None:
    wrong = [text for text, told in read_table(language).items() if fields(text) != fields(told)]
    assert not wrong


def test_chinese_is_chinese() -> None:
    """A text of words is translated, with punctuation of full width."""
    table = read_table("zh")
    literal = {text: FIELD.sub("", told) for text, told in table.items()}
    assert not [text for text, told in literal.items() if HALF_WIDTH.search(told)]
    words = re.compile(r"[a-z]+ [a-z]+ [a-z]+")
    left = [text for text, told in literal.items() if words.search(text) and not CHINESE.search(told)]
    # A command is one in any language.
    assert not [text for text in left if re.findall(r"\w+", text) != re.findall(r"\w+", table[text])]


def test_the_completeness_test_sees_what_is_missing() -> None:
    source = f'from {HOME} import joined, say; say("one {{x}}", x=say("two")); joined(", ", parts); say(name)'
    assert sorted(str(text) for text, _ in looked_up(source)) == sorted(["one {x}", ", ", "None", "two"])
    assert fields("{a:.1f} {b!r}") == fields("{b!r}：{a:.1f}") != fields("{a:.2f} {b!r}")


@pytest.mark.parametrize(
    "environ, language",
    [
        ({"LANG": "zh_CN.UTF-8"}, "zh"),
        ({"LC_ALL": "zh_TW.UTF-8", "LANG": "en_US.UTF-8"}, "zh"),
        ({"LC_ALL": "C", "LANG": "zh_CN.UTF-8"}, "en"),
        ({"LC_ALL": "", "LC_MESSAGES": "zh_CN", "LANG": "C"}, "zh"),
        ({"LC_CTYPE": "zh_CN.UTF-8", "LANG": "C.UTF-8"}, "en"),
        ({}, "en"),
    ],
)
def test_locale_decides_in_the_order_of_posix(environ: dict[str, str], language: str) -> None:
    assert language_of_locale(environ) == language


def test_english_is_told_as_it_stands() -> None:
    message = joined("; ", [say("{device} at {percent:.0f} %", device="gpu0", percent=97.4), "as it came"])
    assert catalogue("en")(message) == "gpu0 at 97 %; as it came" == message


def test_values_and_parts_are_told_too() -> None:
    inner = say("{size} readings", size=3)
    outer = say("{name}: {reason}", name="gpu0", reason=joined("; ", [inner, say("not measured")]))
    assert outer == "gpu0: 3 readings; not measured"
    assert catalogue("zh")(outer) == "gpu0：3 个读数；没有测"


def test_no_language_is_guessed() -> None:
    with pytest.raises(KeyError, match="no language 'fr'; there are: en, zh"):
        catalogue("fr")
