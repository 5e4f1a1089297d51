"""Network ports of Ascend NPUs, which are in no sysfs: their own tool tells the state of their links."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path

from pytest_thermal.access.interconnect.commands import find_program, run
from pytest_thermal.access.interconnect.rdma import ETHERNET, Port
from pytest_thermal.access.verdict import CannotMeasure
from pytest_thermal.model.said import say

TOOL = "hccn_tool"
TOOL_SECONDS = 10.0
"""It answers in a fraction of a second, or hangs in the driver."""


def npu_ids(dev: Path) -> tuple[int, ...]:
    """Physical ids of the NPUs, from their device files (``/dev/davinci0`` …)."""
    found = (re.fullmatch(r"davinci(\d+)", path.name) for path in dev.glob("davinci*"))
    return tuple(sorted(int(match[1]) for match in found if match))


def read_npu_ports(dev: Path, environ: Mapping[str, str]) -> tuple[Port, ...]:
    """The network port of each NPU; empty where there is no NPU.

    Raises:
        CannotMeasure: there are NPUs, and their tool is missing, fails, or says nothing of the link.
    """
    ids = npu_ids(dev)
    if not ids:
        return ()
    program = find_program(TOOL, environ)
    if program is None:
        raise CannotMeasure(
            say(
                "{count} Ascend NPUs are here, and {tool}, which tells the state of their links, is not on PATH",
                count=len(ids),
                tool=TOOL,
            ),
            likely=say("it is installed with the driver, in a folder that is not on PATH"),
            advice="export PATH=$PATH:/usr/local/Ascend/driver/tools",
        )
    return tuple(_port(program, number, environ) for number in ids)


def _port(program: str, number: int, environ: Mapping[str, str]) -> Port:
    argv = [program, "-i", str(number), "-link", "-g"]
    ran = run(argv, environ=environ, seconds=TOOL_SECONDS)
    shown = say("{tool} -i {number} -link -g", tool=TOOL, number=number)
    if ran.timed_out:
        raise CannotMeasure(
            say("{shown} did not end within {tool_seconds:g} s", shown=shown, tool_seconds=TOOL_SECONDS),
            likely=say("the NPU's driver or management processor hangs"),
            advice=say("npu-smi info -i {number}; dmesg | tail; power the node off and on", number=number),
        )
    told = re.search(r"link\s+status\s*:\s*(\w+)", ran.output, re.IGNORECASE)
    if not ran.ok or told is None or told[1].upper() not in ("UP", "DOWN"):
        ending = "" if ran.status == 0 else say(", ended with status {status}", status=ran.status)
        raise CannotMeasure(
            say(
                "{shown} did not tell the link's state{ending}: {said}",
                shown=shown,
                ending=ending,
                said=ran.said or say("no output"),
            ),
            likely=say("this user may not ask, this NPU has no network port, or the driver is older than the tool"),
            advice=say("run {shown} as root; npu-smi info", shown=shown),
        )
    up = told[1].upper() == "UP"
    return Port(device=f"npu{number}", state="ACTIVE" if up else "DOWN", link_layer=ETHERNET, model="NPU")
