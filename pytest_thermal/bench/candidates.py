"""From raw values to candidates for our settings: expanded, checked, converted, each with its origin."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from pydantic import SecretStr

from pytest_thermal.bench.dialects import Leaf, Place, Stray, advice_on_stray, row_of
from pytest_thermal.bench.errors import Problem
from pytest_thermal.bench.expand import NAME, Expanded, ExpansionError, expand, variable
from pytest_thermal.bench.files import CONFIG, SETTINGS
from pytest_thermal.bench.kinds import Key, KeyVariable, UnfitError, show_seen
from pytest_thermal.bench.secrets import looks_like_key
from pytest_thermal.model.said import joined, say

_PLACEHOLDER = re.compile(r"<.*>|.*(your|changeme|change_me|replace|placeholder|xxxx|\.\.\.|…).*", re.IGNORECASE)


@dataclass(frozen=True, kw_only=True)
class Candidate:
    """One value for one setting, in our unit."""

    setting: str
    value: object = field(repr=False)
    shown: str
    """The value with its unit; for a key nothing of it."""
    origin: str
    index: int = 0
    """Which scale-up domain of the file it is for, where it is a domain's setting."""
    override: bool = False
    """Whether it is from the command line."""
    key_origin: str = "none"
    remarks: tuple[str, ...] = ()
    """What to tell the user when this candidate is used."""


@dataclass(kw_only=True)
class Findings:
    """What reading the bench found: candidates in order of precedence, problems, and every key for the redactor."""

    candidates: list[Candidate] = field(default_factory=list)
    problems: list[Problem] = field(default_factory=list)
    failed: set[str] = field(default_factory=set)
    """Settings that a file gives a wrong value or a misspelt name: they are not missing too."""
    in_use: set[tuple[str, str]] = field(default_factory=set)
    """Pairs of file and dialect that occur."""
    remarks: list[str] = field(default_factory=list)
    """What to tell the user, whichever candidate is used."""
    secrets: list[SecretStr] = field(default_factory=list, repr=False)

    def add_problem(self, where: str, seen: str, likely: str, remedy: str) -> None:
        """Note something wrong."""
        self.problems.append(Problem(where=where, seen=seen, likely=likely, remedy=remedy))


def add_overrides(overrides: Mapping[str, tuple[object, str]], findings: Findings) -> None:
    """Take settings from the command line: dotted name to value and option. A value of None is not given."""
    for setting, (value, option) in overrides.items():
        origin = say("command line {option}", option=option) if option.startswith("-") else option
        row = row_of(setting)
        if row is None:
            findings.add_problem(
                origin, f"there is no setting {setting}", "a slip in its name", "take one of the bench's origins"
            )
            continue
        if value is None:
            continue
        kind = Key() if isinstance(row.kind, Key) else row.kind.plain()
        try:
            read, correction = kind.read(value, expanded=isinstance(value, str))
        except UnfitError as error:
            seen = "a key" if isinstance(kind, Key) else error.seen or show_seen(value)
            findings.failed.add(setting)
            findings.add_problem(
                origin,
                seen,
                say("not {expected}", expected=error.expected),
                say("{option} with {expected}", option=option, expected=error.expected),
            )
            continue
        if isinstance(read, SecretStr):
            findings.secrets.append(read)
        findings.candidates.append(
            Candidate(
                setting=setting,
                value=read,
                shown=kind.show(read),
                origin=origin,
                override=True,
                key_origin=origin if isinstance(kind, Key) and read else "none",
                remarks=(say("{origin}: {correction}", origin=origin, correction=correction),) if correction else (),
            )
        )


def add_leaves(items: Iterable[Leaf | Stray], environ: Mapping[str, str], findings: Findings) -> None:
    """Take what a file holds."""
    for item in items:
        if isinstance(item, Stray):
            _add_stray(item, findings)
            continue
        findings.in_use.add((item.row.file, item.row.dialect))
        if item.value is None:
            continue  # null says: not given
        try:
            candidate = _candidate(item, environ, findings)
        except ExpansionError as error:
            findings.problems.append(
                Problem(where=item.place.where, seen=error.seen, likely=error.likely, remedy=error.remedy)
            )
        except UnfitError as error:
            _add_unfit(item, error, findings)
        else:
            findings.candidates.append(candidate)
            continue
        findings.failed.add(item.row.setting)


def _add_stray(stray: Stray, findings: Findings) -> None:
    if stray.section:
        findings.add_problem(
            stray.place.where,
            say(
                "{type} where {and_file} is expected",
                type=_type(stray.value),
                and_file=say("a table") if stray.place.file == CONFIG else say("an object"),
            ),
            say("the section's head or braces are missing"),
            say("make it a section with some of: {names}", names=joined(", ", stray.section)),
        )
    else:
        advice, meant = advice_on_stray(stray.place)
        findings.failed |= meant
        findings.add_problem(
            stray.place.where,
            say("unknown key; {advice}", advice=advice),
            say("a slip in the name, or the key stands in another section or file than its own"),
            say("correct the name, move the key, or remove it"),
        )


def _add_unfit(leaf: Leaf, error: UnfitError, findings: Findings) -> None:
    if isinstance(leaf.row.kind, Key):
        seen = _type(leaf.value)  # of what stands in a key's place nothing is shown
    elif isinstance(leaf.value, str) and "${" in leaf.value:
        seen = say("what the environment holds for it (not shown)")
    else:
        seen = show_seen(leaf.value)
    name, equals = leaf.place.path[-1], "=" if leaf.place.file == CONFIG else ":"
    name = name if leaf.place.file == CONFIG else f'"{name}"'
    findings.add_problem(
        leaf.place.where,
        error.seen or say("{seen}, but expected is {expected}", seen=seen, expected=error.expected),
        error.likely,
        say(
            "for example {name}{and_equals}{equals} {example}",
            name=name,
            and_equals=" " if equals == "=" else "",
            equals=equals,
            example=leaf.row.example,
        ),
    )


def _type(value: object) -> str:
    names = (
        (bool, say("true or false")),
        (str, say("a text")),
        ((int, float), say("a number")),
        (list, say("a list")),
        (Mapping, say("a table")),
    )
    return next((name for kind, name in names if isinstance(value, kind)), show_seen(value))


def _candidate(leaf: Leaf, environ: Mapping[str, str], findings: Findings) -> Candidate:
    kind, place = leaf.row.kind, leaf.place
    if isinstance(kind, KeyVariable):
        return _key_by_name(leaf, environ, findings)
    value, expanded = _expanded(leaf.value, environ)
    if not isinstance(kind, Key) and not _is_encodable(value):
        raise UnfitError(
            say("a text"), seen=say("there are bytes in it that are no characters"), likely=say("it is not UTF-8")
        )
    read, correction = kind.read(value, expanded=expanded is not None)
    if isinstance(kind, Key):
        return _key(leaf, read, expanded, environ, findings)
    return Candidate(
        setting=leaf.row.setting,
        value=read,
        shown=kind.show(read),
        origin=place.origin,
        index=place.index or 0,
        remarks=(say("{place_origin}: {correction}", place_origin=place.origin, correction=correction),)
        if correction
        else (),
    )


def _expanded(value: object, environ: Mapping[str, str]) -> tuple[object, Expanded | None]:
    """The value with variables put in, and how, if there were any."""
    if isinstance(value, list):
        return [_expanded(item, environ)[0] for item in value], None
    if not isinstance(value, str):
        return value, None
    expanded = expand(value, environ)
    return (expanded.text, expanded) if expanded.names else (value, None)


def _is_encodable(value: object) -> bool:
    """Whether no half of a character is in it: a lone surrogate in JSON, or a variable that is not UTF-8."""
    try:
        str(value).encode()
    except UnicodeEncodeError:
        return False
    return True


def _key(
    leaf: Leaf, read: object, expanded: Expanded | None, environ: Mapping[str, str], findings: Findings
) -> Candidate:
    place, remarks = leaf.place, []
    if not isinstance(read, SecretStr):
        key_origin = "none"
        remarks.append(say("{place_origin} is empty: requests go out without a key", place_origin=place.origin))
    else:
        text = read.get_secret_value()
        if expanded is None:
            _refuse_name_as_key(text, place, environ)
        findings.secrets.append(read)
        if expanded is None:
            key_origin = place.origin
            findings.remarks.append(
                say(
                    "{place_origin}: the key stands in the file in clear: write ${{NAME}} and put it in the "
                    "environment",
                    place_origin=place.origin,
                )
            )
        elif expanded.whole:
            key_origin = f"${expanded.names[0]}"
        else:
            key_origin = say(
                "{names} in {place_origin}",
                names=" ".join(f"${name}" for name in expanded.names),
                place_origin=place.origin,
            )
        remarks += _key_remarks(text, key_origin)
    return _key_candidate(leaf, read, place.origin, key_origin, remarks)


def _key_by_name(leaf: Leaf, environ: Mapping[str, str], findings: Findings) -> Candidate:
    place = leaf.place
    if not isinstance(leaf.value, str) or not leaf.value.strip():
        raise UnfitError(say("the NAME of an environment variable, in quotes"))
    expanded = expand(leaf.value, environ)
    name = expanded.text
    if not NAME.fullmatch(name) or (name not in environ and (expanded.names or looks_like_key(name))):
        raise _not_a_name(leaf.value, expanded, place)
    value = SecretStr(variable(name, environ, shown=f"${name}"))
    findings.secrets.append(value)
    remarks = _key_remarks(value.get_secret_value(), f"${name}")
    return _key_candidate(
        leaf, value, say("{place_origin} (${name})", place_origin=place.origin, name=name), f"${name}", remarks
    )


def _key_candidate(leaf: Leaf, value: object, origin: str, key_origin: str, remarks: list[str]) -> Candidate:
    return Candidate(
        setting=leaf.row.setting,
        value=value,
        shown=say("the key") if value else say("no key"),
        origin=origin,
        index=leaf.place.index or 0,
        key_origin=key_origin,
        remarks=tuple(remarks),
    )


def _not_a_name(text: str, expanded: Expanded, place: Place) -> ExpansionError:
    """What stands in place of a variable's name is not shown: it probably is the key."""
    key = place.path[-1]
    inner = re.fullmatch(r"\$\{?(\w+)\}?", text.strip())
    if inner and NAME.fullmatch(inner[1]) and not looks_like_key(inner[1]):
        return ExpansionError(
            say("${{{inner}}} gives the value of the variable; what belongs here is its NAME", inner=inner[1])
            if expanded.names
            else say("a $ stands before the name"),
            say("{key} was filled in like api_key", key=key),
            f'{key} = "{inner[1]}"',
        )
    return ExpansionError(
        say("the text of {count} characters (not shown) is no name of an environment variable", count=len(text)),
        say("the key itself was put where the NAME of the variable that holds it belongs"),
        say(
            'export TAOTOKEN_API_KEY=… and write {key} = "TAOTOKEN_API_KEY"; have a key that was shared replaced',
            key=key,
        ),
    )


def _refuse_name_as_key(text: str, place: Place, environ: Mapping[str, str]) -> None:
    name = text.removeprefix("$").strip()
    if NAME.fullmatch(name) and name in environ:
        quoted = (
            say('"{path}": "${{{name}}}"', path=place.path[-1], name=name)
            if place.file == SETTINGS
            else say('api_key_env = "{name}"', name=name)
        )
        raise ExpansionError(
            say("the NAME of the environment variable {name} stands where its value belongs", name=name),
            say("only ${NAME} is replaced by the variable's value; NAME and $NAME stay as they are"),
            say("write {quoted}", quoted=quoted),
        )


def _key_remarks(text: str, key_origin: str) -> list[str]:
    """What is odd about a key, which is sent all the same, exactly as it stands."""
    odd = []
    if text != text.strip():
        odd.append(say("white space or a line end surrounds it"))
    bare = text.strip()
    if len(bare) > 1 and bare[0] in "\"'" and bare[-1] in "\"'":
        odd.append(say("quotes surround it"))
    if bare.strip("\"'").lower().startswith("bearer "):
        odd.append(say('it begins with "Bearer", which the client adds itself'))
    if not bare.isascii() or not bare.isprintable():
        odd.append(say("it holds characters that an HTTP header cannot carry"))
    if _PLACEHOLDER.fullmatch(bare):
        odd.append(say("it looks like a placeholder that nobody filled in"))
    if bare.startswith("$"):
        odd.append(say("it begins with $: only ${NAME} is replaced from the environment"))
    return (
        [
            say(
                "the key from {key_origin} is sent as it stands, but {names}",
                key_origin=key_origin,
                names=joined(", and ", odd),
            )
        ]
        if odd
        else []
    )
