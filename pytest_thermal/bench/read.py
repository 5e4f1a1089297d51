"""From a folder to the raw content of its bench files, with the usual slips of hand explained."""

from __future__ import annotations

import codecs
import difflib
import json
import re
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path

from pytest_thermal.bench.errors import Problem
from pytest_thermal.bench.files import CONFIG, FILES, SETTINGS

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib  # type: ignore[import-not-found,unused-ignore]

_UTF16 = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)


class UnreadableError(Exception):
    """A file or folder that cannot be read, with the problem to tell."""

    def __init__(self, problem: Problem) -> None:
        super().__init__(problem.seen)
        self.problem = problem


def find_files(folder: Path) -> list[str]:
    """Names of the bench files that are in a folder.

    Raises:
        UnreadableError: There is no such folder, it cannot be read, or it holds none of them.
    """
    try:
        names = sorted(entry.name for entry in folder.iterdir())
    except FileNotFoundError:
        raise UnreadableError(_no_folder(folder)) from None
    except NotADirectoryError:
        raise UnreadableError(
            Problem(
                where="bench",
                seen=f"{folder} is a file, not a folder",
                likely="the path of a bench file was given instead of its folder's",
                remedy=f"--bench {folder.parent}",
            )
        ) from None
    except OSError as error:
        raise UnreadableError(
            Problem(where="bench", seen=f"the folder cannot be read: {error.strerror}", **_RIGHTS)
        ) from None
    found: list[str] = [name for name in FILES if name in names]
    if found:
        return found
    lower = {name.lower(): name for name in names}
    near = [lower[name] for file in FILES for name in difflib.get_close_matches(file, lower, n=1, cutoff=0.75)]
    raise UnreadableError(
        Problem(
            where="bench",
            seen="neither settings.json nor config.toml is in this folder" + (f", but {near[0]} is" if near else ""),
            likely="the file has another name" if near else "another folder is meant, or the files are not there yet",
            remedy=f"rename {near[0]}" if near else "put a settings.json or a config.toml there, or name a template",
        )
    )


def read_file(folder: Path, name: str) -> Mapping[str, object]:
    """The raw content of one bench file.

    Raises:
        UnreadableError: It cannot be read, is not UTF-8, or breaks the rules of JSON or TOML.
    """
    text = _text(folder / name)
    return _toml(text, name) if name.endswith(".toml") else _json(text)


_RIGHTS = {
    "likely": "the rights do not let this user read it, or its disk is gone",
    "remedy": "look at it with ls -l, and read it once with cat",
}


def _no_folder(folder: Path) -> Problem:
    try:
        near = difflib.get_close_matches(folder.name, [entry.name for entry in folder.parent.iterdir()], n=1)
    except OSError:
        near = []
    return Problem(
        where="bench",
        seen=f"there is no folder {folder}" + (f", but {folder.parent / near[0]}" if near else ""),
        likely="a slip in --bench or $THERMAL_BENCH, or another working directory is meant",
        remedy="give the folder that holds settings.json or config.toml",
    )


def _text(path: Path) -> str:
    try:
        raw = path.read_bytes()
    except IsADirectoryError:
        raise _unreadable(
            path.name, "is a folder, not a file", "a folder was made by this name (a container mount does)",
            "remove it and put the file there",
        ) from None  # fmt: skip
    except FileNotFoundError:
        raise _unreadable(
            path.name, "is a link to a file that does not exist", "the link's target was moved", "repair the link"
        ) from None
    except OSError as error:
        raise _unreadable(path.name, f"cannot be read: {error.strerror}", *_RIGHTS.values()) from None
    if raw.startswith(_UTF16):
        raise _unreadable(
            path.name, "is UTF-16, not UTF-8", "an editor on Windows saved it as \"Unicode\"", "save it as UTF-8"
        )  # fmt: skip
    try:
        text = raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = raw.count(b"\n", 0, error.start) + 1
        raise _unreadable(
            path.name, f"is not UTF-8: line {line}, byte {error.start}", "it was saved as GBK or Latin-1",
            f"save it as UTF-8: iconv -f gbk -t utf-8 {path.name}",
        ) from None  # fmt: skip
    if not text.strip():
        raise _unreadable(
            path.name, "is empty", "writing it was cut short, or it was only touched",
            "fill it, or remove it" + (": one of the two files is enough" if path.name in FILES else ""),
        )  # fmt: skip
    return text


def _unreadable(where: str, seen: str, likely: str, remedy: str) -> UnreadableError:
    return UnreadableError(Problem(where=where, seen=seen, likely=likely, remedy=remedy))


class _Object(dict[str, object]):
    """A JSON object that remembers which of its names came twice."""

    def __init__(self, pairs: list[tuple[str, object]]) -> None:
        super().__init__(pairs)
        names = [name for name, _ in pairs]
        self.twice = [name for name in self if names.count(name) > 1]


def _json(text: str) -> Mapping[str, object]:
    try:
        content = json.loads(text, object_pairs_hook=_Object)
    except json.JSONDecodeError as error:
        likely, remedy = _json_cause(error)
        # The line itself is not shown: it may hold a key.
        raise _unreadable(
            f"{SETTINGS}: line {error.lineno}, column {error.colno}", f"not JSON: {error.msg}", likely, remedy
        ) from None
    except (ValueError, RecursionError):
        raise _unreadable(
            SETTINGS, "not usable JSON: a number of thousands of digits, or brackets nested without end",
            "another file was put in its place", "compare it with a template",
        ) from None  # fmt: skip
    if not isinstance(content, _Object):
        raise _unreadable(
            SETTINGS, "the top level is not an object in { }", "the outer braces are missing",
            "put everything between { and }",
        )  # fmt: skip
    twice = list(_twice(content, ()))
    if twice:
        raise _unreadable(
            SETTINGS, f"{' and '.join(twice)} {'is' if len(twice) == 1 else 'are'} there twice",
            "a section was pasted a second time: JSON would quietly take the last", "keep one of them",
        )  # fmt: skip
    return content


def _twice(value: object, path: tuple[str, ...]) -> Iterator[str]:
    if isinstance(value, _Object):
        yield from (".".join((*path, name)) for name in value.twice)
        for name, item in value.items():
            yield from _twice(item, (*path, name))
    elif isinstance(value, list):
        for item in value:
            yield from _twice(item, path)


def _json_cause(error: json.JSONDecodeError) -> tuple[str, str]:
    before, rest = error.doc[: error.pos].rstrip(), error.doc[error.pos :].lstrip()
    causes = (
        (not rest, "the file ends too early: a closing } is missing", "add it, or fetch the file again"),
        (rest.startswith(("//", "/*", "#")), "a comment, which JSON does not have", "remove it"),
        (error.msg.startswith("Invalid control"), "a closing quote is missing on this line", 'add the "'),
        (error.msg.startswith("Unterminated"), "a closing quote is missing", 'add the "'),
        (error.msg.startswith("Invalid \\"), "a backslash in a text, as in a Windows path", "double it: \\\\"),
        (error.msg.startswith("Extra data"), "something stands behind the last }", "remove it, or a } too many"),
        (rest.startswith("'"), "single quotes", 'JSON wants double quotes: "'),
        (rest.startswith(("“", "”", "‘", "’")), "typographic quotes from a word processor or chat", 'write "'),
        (
            (before.endswith(",") and rest[0:1] in "}],") or "trailing comma" in error.msg,
            "a comma too many before a closing bracket", "remove the comma",
        ),
        (
            re.match(r"(True|False|None)\b", rest), "a word of Python's", "write true, false or null",
        ),
        (
            error.msg.startswith("Expecting ',' delimiter"),
            "a comma is missing at the end of the line above, or a quote on this one", "add it",
        ),
        (error.msg.startswith("Expecting ':'"), "a colon is missing behind a name", "add it"),
        (True, "a text or a name without its double quotes", 'put it between "'),
    )  # fmt: skip
    return next((likely, remedy) for holds, likely, remedy in causes if holds)


def _toml(text: str, name: str = CONFIG) -> Mapping[str, object]:
    try:
        content: dict[str, object] = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        message = str(error)
        found = re.search(r" \(at line (\d+), column (\d+)\)$", message)
        where = f"{name}: line {found[1]}, column {found[2]}" if found else f"{name}: end of the file"
        line = text.splitlines()[int(found[1]) - 1] if found and int(found[1]) <= len(text.splitlines()) else ""
        likely, remedy = _toml_cause(message, line)
        raise _unreadable(where, f"not TOML: {re.sub(r' [(]at .*[)]$', '', message)}", likely, remedy) from None
    except (ValueError, RecursionError):
        raise _unreadable(
            name, "not usable TOML: a number of thousands of digits, or brackets nested without end",
            "another file was put in its place", "compare it with a template",
        ) from None  # fmt: skip
    return content


def _toml_cause(message: str, line: str) -> tuple[str, str]:
    value = line.partition("=")[2].strip()
    causes = (
        (
            re.search(r"[Cc]annot (overwrite|declare|mutate)|[Dd]uplicate", message),
            "a key or section is there twice", "keep one of them; several scale-up domains are [[scale_up]]",
        ),
        (re.match(r"(True|False)\b", value), "a word of Python's", "write true or false"),
        (re.search(r"[Uu]nescaped|escape", message), "a backslash in a text", "put the text between single quotes"),
        (value.startswith(("“", "”", "‘", "’")), "typographic quotes from a word processor or chat", 'write "'),
        (re.match(r"\s*[\"'\w-]+\s*:", line), "JSON or YAML: a colon behind the name", "write name = value"),
        (re.match(r"\s*(//|;)", line), "a comment of another language", "TOML comments begin with #"),
        (re.match(r"\s*[{}]", line), "JSON in the TOML file", "write [section] and name = value lines"),
        (re.match(r"\s*\[", line), "a bracket of the section's head is missing", "write [section] on its own line"),
        (re.match(r"[\"']", value), "a quote is missing, or something stands behind the value", "close the quote"),
        (re.match(r"[A-Za-z/$~]", value), "a text without quotes", 'put it between "'),
        (True, "a bracket or a quote is missing, or two settings share a line", "look at this line and the one above"),
    )  # fmt: skip
    return next((likely, remedy) for holds, likely, remedy in causes if holds)
