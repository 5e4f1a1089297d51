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
from pytest_thermal.model.said import joined, say

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
                seen=say("{folder} is a file, not a folder", folder=folder),
                likely=say("the path of a bench file was given instead of its folder's"),
                remedy=say("--bench {parent}", parent=folder.parent),
            )
        ) from None
    except OSError as error:
        raise UnreadableError(
            Problem(
                where="bench", seen=say("the folder cannot be read: {strerror}", strerror=error.strerror), **_RIGHTS
            )
        ) from None
    found: list[str] = [name for name in FILES if name in names]
    if found:
        return found
    lower = {name.lower(): name for name in names}
    near = [lower[name] for file in FILES for name in difflib.get_close_matches(file, lower, n=1, cutoff=0.75)]
    raise UnreadableError(
        Problem(
            where="bench",
            seen=say("neither settings.json nor config.toml is in this folder")
            + (say(", but {near} is", near=near[0]) if near else ""),
            likely=say("the file has another name")
            if near
            else say("another folder is meant, or the files are not there yet"),
            remedy=say("rename {near}", near=near[0])
            if near
            else say("put a settings.json or a config.toml there, or name a template"),
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
    "likely": say("the rights do not let this user read it, or its disk is gone"),
    "remedy": say("look at it with ls -l, and read it once with cat"),
}


def _no_folder(folder: Path) -> Problem:
    try:
        near = difflib.get_close_matches(folder.name, [entry.name for entry in folder.parent.iterdir()], n=1)
    except OSError:
        near = []
    return Problem(
        where="bench",
        seen=say("there is no folder {folder}", folder=folder)
        + (say(", but {parent}", parent=folder.parent / near[0]) if near else ""),
        likely=say("a slip in --bench or $THERMAL_BENCH, or another working directory is meant"),
        remedy=say("give the folder that holds settings.json or config.toml"),
    )


def _text(path: Path) -> str:
    try:
        raw = path.read_bytes()
    except IsADirectoryError:
        raise _unreadable(
            path.name,
            say("is a folder, not a file"),
            say("a folder was made by this name (a container mount does)"),
            say("remove it and put the file there"),
        ) from None
    except FileNotFoundError:
        raise _unreadable(
            path.name,
            say("is a link to a file that does not exist"),
            say("the link's target was moved"),
            say("repair the link"),
        ) from None
    except OSError as error:
        raise _unreadable(
            path.name, say("cannot be read: {strerror}", strerror=error.strerror), *_RIGHTS.values()
        ) from None
    if raw.startswith(_UTF16):
        raise _unreadable(
            path.name,
            say("is UTF-16, not UTF-8"),
            say('an editor on Windows saved it as "Unicode"'),
            say("save it as UTF-8"),
        )
    try:
        text = raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = raw.count(b"\n", 0, error.start) + 1
        raise _unreadable(
            path.name,
            say("is not UTF-8: line {line}, byte {start}", line=line, start=error.start),
            say("it was saved as GBK or Latin-1"),
            say("save it as UTF-8: iconv -f gbk -t utf-8 {path_name}", path_name=path.name),
        ) from None
    if not text.strip():
        raise _unreadable(
            path.name,
            say("is empty"),
            say("writing it was cut short, or it was only touched"),
            say("fill it, or remove it: one of the two files is enough")
            if path.name in FILES
            else say("fill it, or remove it"),
        )
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
            say("{settings}: line {lineno}, column {colno}", settings=SETTINGS, lineno=error.lineno, colno=error.colno),
            say("not JSON: {msg}", msg=error.msg),
            likely,
            remedy,
        ) from None
    except (ValueError, RecursionError):
        raise _unreadable(
            SETTINGS,
            say("not usable JSON: a number of thousands of digits, or brackets nested without end"),
            say("another file was put in its place"),
            say("compare it with a template"),
        ) from None
    if not isinstance(content, _Object):
        raise _unreadable(
            SETTINGS,
            say("the top level is not an object in { }"),
            say("the outer braces are missing"),
            say("put everything between { and }"),
        )
    twice = list(_twice(content, ()))
    if twice:
        raise _unreadable(
            SETTINGS,
            say("{name} is there twice", name=twice[0])
            if len(twice) == 1
            else say("{names} are there twice", names=joined(" and ", twice)),
            say("a section was pasted a second time: JSON would quietly take the last"),
            say("keep one of them"),
        )
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
        (not rest, say("the file ends too early: a closing } is missing"), say("add it, or fetch the file again")),
        (rest.startswith(("//", "/*", "#")), say("a comment, which JSON does not have"), say("remove it")),
        (error.msg.startswith("Invalid control"), say("a closing quote is missing on this line"), say('add the "')),
        (error.msg.startswith("Unterminated"), say("a closing quote is missing"), say('add the "')),
        (
            error.msg.startswith("Invalid \\"),
            say("a backslash in a text, as in a Windows path"),
            say("double it: \\\\"),
        ),
        (
            error.msg.startswith("Extra data"),
            say("something stands behind the last }"),
            say("remove it, or a } too many"),
        ),
        (rest.startswith("'"), say("single quotes"), say('JSON wants double quotes: "')),
        (
            rest.startswith(("“", "”", "‘", "’")),
            say("typographic quotes from a word processor or chat"),
            say('write "'),
        ),
        (
            (before.endswith(",") and rest[0:1] in "}],") or "trailing comma" in error.msg,
            say("a comma too many before a closing bracket"),
            say("remove the comma"),
        ),
        (
            re.match(r"(True|False|None)\b", rest),
            say("a word of Python's"),
            say("write true, false or null"),
        ),
        (
            error.msg.startswith("Expecting ',' delimiter"),
            say("a comma is missing at the end of the line above, or a quote on this one"),
            say("add it"),
        ),
        (error.msg.startswith("Expecting ':'"), say("a colon is missing behind a name"), say("add it")),
        (True, say("a text or a name without its double quotes"), say('put it between "')),
    )
    return next((likely, remedy) for holds, likely, remedy in causes if holds)


def _toml(text: str, name: str = CONFIG) -> Mapping[str, object]:
    try:
        content: dict[str, object] = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        message = str(error)
        found = re.search(r" \(at line (\d+), column (\d+)\)$", message)
        where = (
            say("{config}: line {found}, column {found_2}", config=name, found=found[1], found_2=found[2])
            if found
            else say("{config}: end of the file", config=name)
        )
        line = text.splitlines()[int(found[1]) - 1] if found and int(found[1]) <= len(text.splitlines()) else ""
        likely, remedy = _toml_cause(message, line)
        raise _unreadable(
            where, say("not TOML: {sub}", sub=re.sub(r" [(]at .*[)]$", "", message)), likely, remedy
        ) from None
    except (ValueError, RecursionError):
        raise _unreadable(
            name,
            say("not usable TOML: a number of thousands of digits, or brackets nested without end"),
            say("another file was put in its place"),
            say("compare it with a template"),
        ) from None
    return content


def _toml_cause(message: str, line: str) -> tuple[str, str]:
    value = line.partition("=")[2].strip()
    causes = (
        (
            re.search(r"[Cc]annot (overwrite|declare|mutate)|[Dd]uplicate", message),
            say("a key or section is there twice"),
            say("keep one of them; several scale-up domains are [[scale_up]]"),
        ),
        (re.match(r"(True|False)\b", value), say("a word of Python's"), say("write true or false")),
        (
            re.search(r"[Uu]nescaped|escape", message),
            say("a backslash in a text"),
            say("put the text between single quotes"),
        ),
        (
            value.startswith(("“", "”", "‘", "’")),
            say("typographic quotes from a word processor or chat"),
            say('write "'),
        ),
        (re.match(r"\s*[\"'\w-]+\s*:", line), say("JSON or YAML: a colon behind the name"), say("write name = value")),
        (re.match(r"\s*(//|;)", line), say("a comment of another language"), say("TOML comments begin with #")),
        (re.match(r"\s*[{}]", line), say("JSON in the TOML file"), say("write [section] and name = value lines")),
        (
            re.match(r"\s*\[", line),
            say("a bracket of the section's head is missing"),
            say("write [section] on its own line"),
        ),
        (
            re.match(r"[\"']", value),
            say("a quote is missing, or something stands behind the value"),
            say("close the quote"),
        ),
        (re.match(r"[A-Za-z/$~]", value), say("a text without quotes"), say('put it between "')),
        (
            True,
            say("a bracket or a quote is missing, or two settings share a line"),
            say("look at this line and the one above"),
        ),
    )
    return next((likely, remedy) for holds, likely, remedy in causes if holds)
