"""Text with what it was made of survives what the plugin does with text."""

from __future__ import annotations

import copy
import json
import pickle
from dataclasses import asdict

import pytest
from pydantic import SecretStr

from pytest_thermal.bench import Redactor
from pytest_thermal.model import Finding, Outcome
from pytest_thermal.model.catalogue import Catalogue
from pytest_thermal.model.said import first_part, joined, last_part, packed, say, unpacked

CHINESE = Catalogue(
    "zh",
    {
        "{sensor} rose by {rise:.1f} °C": "{sensor} 温升 {rise:.1f} °C",
        "not settled": "没有稳定",
        "{what}, {why}": "{what}，{why}",
        "; ": "；",
    },
)
SECRET = "sk-" + "a1b2c3d4" * 4
MESSAGE = say(
    "{what}, {why}", what=say("{sensor} rose by {rise:.1f} °C", sensor="gpu0", rise=41.26), why=say("not settled")
)
ROW = joined("; ", [MESSAGE, "plain", say("not settled")])


@pytest.mark.parametrize("message", [MESSAGE, ROW])
def test_survives_pickling_copying_and_the_wire(message: str) -> None:
    told = CHINESE(message)
    assert "温升 41.3 °C，没有稳定" in told
    for other in (
        pickle.loads(pickle.dumps(message)),
        copy.deepcopy(message),
        unpacked(json.loads(json.dumps(packed({"deep": [message]}))))["deep"][0],
    ):
        assert other == message
        assert CHINESE(other) == told


def test_is_plain_text_to_whoever_knows_nothing_of_it() -> None:
    assert MESSAGE == "gpu0 rose by 41.3 °C, not settled"
    assert json.dumps({"seen": MESSAGE}) == json.dumps({"seen": str(MESSAGE)})
    assert type(str(MESSAGE)) is str
    assert type(MESSAGE.upper()) is str


def test_a_sum_keeps_its_parts() -> None:
    assert CHINESE("a: " + MESSAGE + say("not settled")) == "a: gpu0 温升 41.3 °C，没有稳定没有稳定"


def test_what_is_not_in_the_catalogue_is_told_in_english_and_its_values_are_not() -> None:
    assert CHINESE(say("new: {why}", why=say("not settled"))) == "new: 没有稳定"


def test_braces_in_values_and_in_texts_without_values_are_left_alone() -> None:
    assert say('set "${NAME}"') == 'set "${NAME}"'
    assert CHINESE(say("{what}, {why}", what="{x}", why="{}")) == "{x}，{}"


def test_redaction_reaches_the_values() -> None:
    redactor = Redactor([SecretStr(SECRET)])
    for message in (say("{what}, {why}", what=f"key {SECRET}", why="b"), joined("; ", ["a", f"{SECRET} c"])):
        clean = redactor.text(message)
        assert SECRET not in clean
        assert SECRET not in CHINESE(clean)
        assert SECRET not in json.dumps(packed(clean))
        assert "[key sk-a…]" in CHINESE(clean)
    assert redactor.text(MESSAGE) is MESSAGE


def test_a_key_that_only_the_whole_text_shows_is_redacted_in_any_language() -> None:
    """A token is one because of the word before it, which may stand in the template."""
    token = "0123456789abcdef0123456789"
    clean = Redactor().text(say("sent Bearer {token}", token=token))
    assert token not in CHINESE(clean)
    assert token not in json.dumps(packed(clean))


def test_numbers_of_numpy_become_plain() -> None:
    numpy = pytest.importorskip("numpy")
    message = say("{a} {b:.1f}", a=numpy.int64(3), b=numpy.float64(0.25))
    assert json.loads(json.dumps(packed(message)))["values"] == {"a": 3, "b": 0.25}


def test_parts_of_a_row() -> None:
    assert CHINESE(first_part(ROW)) == "gpu0 温升 41.3 °C，没有稳定"
    assert CHINESE(last_part(ROW)) == "没有稳定"
    assert (first_part("a; b; c"), last_part("a; b; c")) == ("a", "c")


def test_a_finding_stays_told_as_plain_data() -> None:
    finding = Finding(
        check="rise",
        layer="rise",
        subject="gpu0",
        outcome=Outcome.INCONCLUSIVE,
        seen=MESSAGE,
        likely=say("not settled"),
    )
    assert finding.message == "inconclusive: rise: gpu0 rose by 41.3 °C, not settled\nlikely: not settled"
    assert CHINESE(asdict(finding)["seen"]) == CHINESE(MESSAGE)
