"""The tools we know, and sources made of them. A vendor's module is added to this list, and nowhere else."""

from __future__ import annotations

import json
import os
import shlex
from collections.abc import Sequence
from dataclasses import replace
from pathlib import PurePath

from pytest_thermal.bench.files import IPMI_PASSWORD
from pytest_thermal.sensors.tools import (
    amd_smi,
    brsmi,
    cnmon,
    efsmi,
    hl_smi,
    hy_smi,
    intel_xpu_smi,
    ipmi,
    ixsmi,
    mthreads_gmi,
    mx_smi,
    npu_smi,
    numbers,
    nvidia_smi,
    rocm_smi,
    xpu_smi,
)
from pytest_thermal.sensors.tools.asking import Way
from pytest_thermal.sensors.tools.command import Command
from pytest_thermal.sensors.tools.tool import Layout, Query, Tool
from pytest_thermal.sensors.tools.tool_source import ToolSource

TOOLS: tuple[Tool, ...] = (
    nvidia_smi.TOOL,
    npu_smi.TOOL,
    npu_smi.DETAILS,
    cnmon.TOOL,
    amd_smi.TOOL,
    rocm_smi.TOOL,
    hy_smi.TOOL,
    hy_smi.IN_DTK,
    mthreads_gmi.TOOL,
    ixsmi.TOOL,
    mx_smi.TOOL,
    mx_smi.HPCC,
    efsmi.TOOL,
    xpu_smi.TOOL,
    xpu_smi.OLDER,
    intel_xpu_smi.TOOL,
    hl_smi.TOOL,
    brsmi.TOOL,
    ipmi.TOOL,
)

_SHELL = ("|", "||", "&&", "&", ";", ">", ">>", "<", "2>&1", "2>/dev/null")
_COMMAND_SECONDS = 10.0


def make(*, tool: str, only: str = "") -> ToolSource:
    """The source that is the tool of that name.

    ``only`` has the numbers of the wanted cards, with commas; empty for all.

    Raises:
        KeyError: There is no tool of that name.
    """
    known = {one.name: one for one in TOOLS}[tool]
    return ToolSource(
        name=known.name,
        command=Command(known.program, environ=os.environ, extra=known.environ),
        ways=tool_ways(known),
        only=_numbers(only),
    )


def make_bmc(
    *,
    tool: str = ipmi.TOOL.name,
    roles: str = "{}",
    host: str | None = None,
    user: str | None = None,
    cipher_suite: int | None = None,
) -> ToolSource:
    """The source that is a BMC: this machine's, or the one at ``host``, whose password is taken from $IPMI_PASSWORD.

    ``roles``: sensors' names by the device that the bench says they are, as JSON.
    """
    known = ipmi.with_roles(json.loads(roles))
    password = os.environ.get(IPMI_PASSWORD, "")
    if host:
        known = ipmi.over_network(known, host=host, user=user, cipher_suite=cipher_suite)
    return ToolSource(
        name=tool,
        # Other than the command line, its environment is for root's and the user's eyes only.
        command=Command(known.program, environ=os.environ, extra={IPMI_PASSWORD: password} if host else {}),
        ways=tool_ways(known),
        unfit="" if password or not host else f"${IPMI_PASSWORD} is not set, and ipmi_host wants a password",
    )


def tool_ways(tool: Tool) -> list[Way]:
    """Each query with its layout, then with the others: a version may answer in another form than it was asked for."""
    if tool.roster:
        # All queries belong to one way.
        return [Way(tool=tool, query=query) for query in tool.queries[:1]]
    return [
        Way(tool=tool, query=query if layout is query.layout else replace(query, layout=layout, adapt=None))
        for query in tool.queries
        for layout in (query.layout, *(other for other in tool.layouts if other is not query.layout))
    ]


def make_command(
    *, command: str, name: str = "gpu_temp_cmd", only: str = "", deadline_seconds: float = _COMMAND_SECONDS
) -> ToolSource:
    """A user's command, run without a shell.

    What it prints may be any layout of a known tool, else one or several numbers (see
    :mod:`pytest_thermal.sensors.tools.numbers`).
    """
    try:
        words = shlex.split(command)
    except ValueError as error:
        words, unfit = [], f"{command!r} cannot be split into words: {error}"
    else:
        unfit = _why_unfit(command, words)
    program = words[0] if words else ""
    return ToolSource(
        name=name,
        command=Command(program, environ=os.environ),
        ways=command_ways(words),
        only=_numbers(only),
        deadline_seconds=deadline_seconds,
        unfit=unfit,
    )


def command_ways(words: Sequence[str]) -> list[Way]:
    """What a command may print: any layout of any tool, those of a tool that it names first, and plain numbers last."""
    asked = tuple(words[1:])
    named = {PurePath(word).name for word in words}
    by_layout: dict[Layout, Tool] = {}
    for tool in sorted(TOOLS, key=lambda tool: tool.program not in named):
        for layout in tool.layouts if not tool.roster else ():
            # A tool of two names has its layouts once.
            by_layout.setdefault(layout, tool)
    ways = [Way(tool=tool, query=Query(arguments=asked, layout=layout)) for layout, tool in by_layout.items()]
    return [*ways, Way(tool=numbers.TOOL, query=Query(arguments=asked, layout=numbers.numbers))]


def _why_unfit(command: str, words: list[str]) -> str:
    if not words:
        return "the command is empty"
    shell = next((word for word in words if word in _SHELL or word.startswith("$(") or word.endswith(";")), None)
    if shell or "`" in command:
        return f"{shell or '`'!r} in {command!r} needs a shell, and none is used: put the line into a script"
    return ""


def _numbers(only: str) -> frozenset[str]:
    return frozenset(filter(None, (one.strip() for one in only.split(","))))
