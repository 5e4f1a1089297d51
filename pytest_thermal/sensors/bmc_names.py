"""What a BMC's sensor is, told from its name and unit: nothing else in its answer says so."""

from __future__ import annotations

import re

from pytest_thermal.model.kinds import Kind, kind_of
from pytest_thermal.model.said import say
from pytest_thermal.sensors.sysfs.files import slug

TEMPERATURE, MARGIN, SPEED, SHARE, POWER = "temperature", "margin", "speed", "share", "power"
"""What is measured: a temperature, degrees left to a limit, turns, the share of full speed, power."""

_WORD = r"(?<![a-z])(?:{})(?![a-z])"


def _words(*words: str) -> re.Pattern[str]:
    return re.compile(_WORD.format("|".join(words)), re.IGNORECASE)


_PUMP = re.compile(r"pump", re.IGNORECASE)
_TURNS = re.compile(r"pump|fan|blower", re.IGNORECASE)
_STATE = _words(
    "over ?temp\\w*",
    "trip",
    "prochot",
    "status",
    "state",
    "redundan\\w*",
    "fail\\w*",
    "fault",
    "present",
    "presence",
    "health",
)
_COOLANT = re.compile(r"coolant|liquid|water|(?<![a-z])(?:cdu|liq|lqd)(?![a-z])", re.IGNORECASE)
_FACILITY = _words("facility", "primary", "fws", "fwu", "chilled")
"""The building's loop, which is not the one through the machine."""
_IN = _words("in", "inlet", "supply", "intake")
_OUT = _words("out", "outlet", "return", "ret")
_AIR = _words("inlet", "ambient", "amb", "outlet", "exhaust", "intake", "room", "front", "rear")
_SOMETHING_ELSE = re.compile(
    r"(?<![a-z])(?:cpu|gpu|npu|psu|ps|dimm|mem\w*|ddr|pcie?|nvme|ssd|hdd|disk|bp|vr\w*|ocp|nic|raid|pch|bmc|board|hbm"
    r"|soc|core|p\d)(?![a-z])",
    re.IGNORECASE,
)
_SUPPLY_OR_WHOLE = re.compile(
    r"(?<![a-z])(?:psu|ps|sys|system|chassis|node|host|total|server|input|pin|pwr|power)(?![a-z])", re.IGNORECASE
)
_PART = re.compile(
    r"(?<![a-z])(?:cpu|gpu|npu|mem\w*|dimm|ddr|fan\w*|pcie?|disk|hdd|riser|soc|hbm)(?![a-z])", re.IGNORECASE
)
_MARGIN = _words("rem", "dts", "margin", "marg")
"""Huawei's ``CPU1 Core Rem`` and others' ``DTS``: degrees left to the limit, printed as ``degrees C``."""

_KINDS = {"degrees c": TEMPERATURE, "rpm": SPEED, "watts": POWER}
_OF_UNITS = re.compile(r"(?:[ _.-]+(?:temp|temperature|tmp|rpm|speed|duty|power|pwr|watts?|sensor))+$", re.IGNORECASE)
_OTHERS_LEFT_OUT = say("left out, since it is not of the cooling")


def measures(name: str, unit: str) -> str:
    """What a sensor measures: by the unit, or where none is printed what the name makes likely. Empty: none of ours."""
    folded = unit.casefold()
    if folded in ("percent", "%"):
        return SHARE if _TURNS.search(name) else ""
    if folded:
        kind = _KINDS.get(folded, "")
        return MARGIN if kind == TEMPERATURE and _MARGIN.search(name) else kind
    if _STATE.search(name):
        return ""
    if _MARGIN.search(name):
        return MARGIN
    if re.search(r"temp|degc", name, re.IGNORECASE) or (_COOLANT.search(name) and not _PUMP.search(name)):
        return TEMPERATURE if not re.search(r"flow|press|leak|level", name, re.IGNORECASE) else ""
    if re.search(r"duty|pwm", name, re.IGNORECASE):
        return SHARE
    if _TURNS.search(name):
        return SPEED
    return POWER if re.search(r"power|pwr|watt|_pin\b", name, re.IGNORECASE) else ""


def called(name: str, *, whole: bool = False) -> str:
    """What ids call the sensor's device: ``pump1``, ``coolant_supply``, ``inlet``; else its own name as a word.

    ``whole``: the name says more than it has to, so as to be no other's.
    """
    bare = name if whole else _OF_UNITS.sub("", name.strip())
    if not whole and _COOLANT.search(name) and not _FACILITY.search(name) and not _TURNS.search(name):
        place = "supply" if _IN.search(_spaced(name)) else "return" if _OUT.search(_spaced(name)) else ""
        number = re.search(r"\d+", bare)
        if place and not _SOMETHING_ELSE.search(_spaced(name)):
            return f"coolant_{place}{number[0] if number else ''}"
    word = slug(bare)
    if _PUMP.search(bare):
        # ``LIQPUMP_A`` and ``PUMP 1`` are pumps to every check: the word stands by itself, or with its number.
        word = re.sub(r"pump_(?=\d+(?:_|$))", "pump", re.sub(r"_*pump_*", "_pump_", word)).strip("_")
    # How hot a processor may get is not asked of what only bears its name.
    return word if kind_of(word) is Kind.OTHER else f"bmc_{word}"


def left_out(name: str, kind: str) -> str:
    """Why a sensor that can be read is not recorded unless the bench names it; empty where it is."""
    spaced = _spaced(name)
    if kind in (SPEED, SHARE):
        return ""
    if kind == POWER:
        return "" if _SUPPLY_OR_WHOLE.search(spaced) and not _PART.search(spaced) else _OTHERS_LEFT_OUT
    if kind == TEMPERATURE:
        loop = _COOLANT.search(name) or (_AIR.search(spaced) and not _SOMETHING_ELSE.search(spaced))
        return "" if loop else _OTHERS_LEFT_OUT
    return _OTHERS_LEFT_OUT


def _spaced(name: str) -> str:
    """``PSU1_PIN`` → ``PSU 1 PIN``: words apart from numbers and from each other."""
    return re.sub(r"(?<=[A-Za-z])(?=\d)|(?<=\d)(?=[A-Za-z])|(?<=[a-z])(?=[A-Z])|[_.-]+", " ", name)
