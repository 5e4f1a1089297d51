"""Hygon's ``hy-smi``, and the ``rocm-smi`` of its DTK images, which is the same program."""

from __future__ import annotations

from dataclasses import replace

from pytest_thermal.sensors.tools.rocm_smi import FIELDS, cards_json, hygon_json, hygon_table, table
from pytest_thermal.sensors.tools.tool import COMMON_SYMPTOMS, Query, Tool

_ASKED = ("--showtemp", "--showpower", "--showuse", "--showmemuse", "--showbus", "--json")

TOOL = Tool(
    name="hy-smi",
    program="hy-smi",
    maker="hygon",
    device="dcu",
    queries=(Query(arguments=_ASKED, layout=cards_json), Query(arguments=(), layout=table)),
    layouts=(cards_json, table),
    # Its cards have no fan of their own: 0 % is none.
    fields=tuple(replace(field, zero_is_blank=True) if "fan" in field.names else field for field in FIELDS),
    symptoms=COMMON_SYMPTOMS,
    keys_stay=False,
    at_start=(Query(arguments=("--showmaxpower", "--showbus", "--json"), layout=cards_json),),
    environ={"PATH": "/opt/hyhal/bin"},
)

IN_DTK = replace(
    TOOL,
    name="rocm-smi-dtk",
    program="rocm-smi",
    queries=(Query(arguments=_ASKED, layout=hygon_json), Query(arguments=(), layout=hygon_table)),
    layouts=(hygon_json, hygon_table),
    fallback_for="hy-smi",
    environ={"PATH": "/opt/dtk/bin"},
)
