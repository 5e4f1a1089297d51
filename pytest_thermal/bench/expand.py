"""`${NAME}` in the bench files, and the names of variables that were meant."""

from __future__ import annotations

import difflib
import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from pytest_thermal.model.said import say

NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_PLACE = re.compile(r"\$\{([^{}]*)\}")


@dataclass(frozen=True, kw_only=True)
class Expanded:
    """A text after expansion."""

    text: str = field(repr=False)
    names: tuple[str, ...]
    """The variables that were put in."""
    whole: bool
    """Whether the text was one `${NAME}` and nothing else."""


class ExpansionError(ValueError):
    """A variable that is not there, or no variable at all."""

    def __init__(self, seen: str, likely: str, remedy: str) -> None:
        super().__init__(seen)
        self.seen = seen
        self.likely = likely
        self.remedy = remedy


def expand(text: str, environ: Mapping[str, str]) -> Expanded:
    """Put the environment's values in place of `${NAME}`. A `$` without a brace stays as it is.

    What a variable holds is not expanded again.

    Raises:
        ExpansionError: A variable is missing or empty, or what stands in the braces is no name.
    """
    names = tuple(match[1] for match in _PLACE.finditer(text))
    for name in names:
        if not NAME.fullmatch(name):
            raise ExpansionError(
                say("what stands in ${…} is not the name of a variable"),
                say("a default or another shell form, which the bench files do not have, or a space in the braces"),
                say("write ${NAME} with letters, digits and underscores only, and set NAME in the environment"),
            )
    if "${" in _PLACE.sub("", text):
        raise ExpansionError(say("${ without its closing }"), say("the closing } got lost"), say("write ${NAME}"))
    values = {name: variable(name, environ, shown=f"${{{name}}}") for name in names}
    return Expanded(
        text=_PLACE.sub(lambda match: values[match[1]], text),
        names=tuple(dict.fromkeys(names)),
        whole=_PLACE.fullmatch(text) is not None,
    )


def variable(name: str, environ: Mapping[str, str], *, shown: str) -> str:
    """The value of an environment variable; `shown` is how the file names it.

    Raises:
        ExpansionError: It is not set, or empty.
    """
    value = environ.get(name)
    if value:
        return value
    seen = (
        say("{shown} is not set in the environment", shown=shown)
        if value is None
        else say("{shown} is set but empty", shown=shown)
    )
    others = {other.upper(): other for other, content in environ.items() if content and other != name}
    near = difflib.get_close_matches(name.upper(), others, n=1, cutoff=0.8)
    if near:
        seen += say("; {others} is set: is that the one?", others=others[near[0]])
    raise ExpansionError(
        seen,
        say("it was not exported in this shell, or the CI job has no secret of that name"),
        say("export {name}=…", name=name),
    )
