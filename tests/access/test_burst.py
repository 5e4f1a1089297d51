"""Many answers together: whose is whose, what the tally says, and how many were at work at once."""

from __future__ import annotations

import json
import random
import threading
import time
from collections.abc import Callable
from typing import Any

import httpx
import pytest

from pytest_thermal.access import Ladder
from pytest_thermal.access import burst as burst_module
from pytest_thermal.access.burst import Burst, Shot, fire, mixed_up, proven_own
from pytest_thermal.access.plan import FILLER_WORDS, letter_prompt
from pytest_thermal.access.probes.capacity import is_serial, parallel_at_work
from pytest_thermal.access.verdict import CannotMeasure
from pytest_thermal.demo import DemoGateway
from pytest_thermal.transport import Exchange, Fault
from tests.support.meeting import Meeting

MakeLadder = Callable[..., Ladder]
BASE_TOKENS = 12


def shot(
    index: int,
    *,
    said: str | None = None,
    tokens: Any = "growing",
    name: str | None = "unique",
    echoed: str | None = None,
    status: int = 200,
    latency: float = 0.1,
) -> Shot:
    """The answer to request ``index``: by default the letter it asked for, and the tokens of its own prompt."""
    letter, _ = letter_prompt(index)
    body: dict[str, Any] = {"choices": [{"message": {"content": letter if said is None else said}}]}
    if name is not None:
        body["id"] = f"chatcmpl-{index}" if name == "unique" else name
    if tokens is not None:
        prompt = count(index) if tokens == "growing" else tokens
        body["usage"] = {"prompt_tokens": prompt, "completion_tokens": 1, "total_tokens": prompt + 1}
    return Shot(
        index=index,
        letter=letter,
        request_id=f"thermal-{index}",
        waited_seconds=latency,
        answer=Exchange(
            method="POST",
            url="http://gw/v1/chat/completions",
            status=status,
            headers=httpx.Headers({"x-request-id": echoed} if echoed else {}),
            body=json.dumps(body).encode(),
            latency_seconds=latency,
        ),
    )


def shots(number: int = 16, **settings: Any) -> list[Shot]:
    return [shot(index, **settings) for index in range(number)]


def swapped(found: list[Shot], one: int, other: int, **what: Callable[[int], Any]) -> list[Shot]:
    """As if requests ``one`` and ``other`` had got each other's answer, in the respects named in ``what``."""
    exchanged = list(found)
    for mine, theirs in ((one, other), (other, one)):
        exchanged[mine] = shot(mine, **{name: take(theirs) for name, take in what.items()})
    return exchanged


def letter(index: int) -> str:
    return letter_prompt(index)[0]


def count(index: int) -> int:
    return BASE_TOKENS + FILLER_WORDS * index


# --- prompts -------------------------------------------------------------------------------------------------


def test_prompts_differ_in_letter_and_length() -> None:
    prompts = [letter_prompt(index) for index in range(26)]
    assert len({wanted for wanted, _ in prompts}) == 26
    assert all(f"letter {wanted}." in prompt for wanted, prompt in prompts)
    lengths = [len(prompt.split()) for _, prompt in prompts]
    assert lengths == sorted(set(lengths))
    assert letter_prompt(26)[0] == "A"


# --- no mix-up -----------------------------------------------------------------------------------------------


INNOCENT: dict[str, list[Shot]] = {
    "obedient": shots(),
    "obedient in other dress": [shot(index, said=f' "{letter(index).lower()}".\n') for index in range(16)],
    "talkative": shots(said="Sure"),
    "says nothing (a reasoning model)": shots(said=""),
    "always the same letter": shots(said="A"),
    "always the letter of another": shots(said="F"),
    "always a letter that nobody asked for": shots(said="Z"),
    "no usage": shots(tokens=None),
    "no ids": shots(name=None),
    "an empty id": shots(name=""),
    "one id for all, and each its own letter": shots(name="chatcmpl", tokens=None),
    "one id for all, and counts that grow": shots(name="chatcmpl", said="Sure"),
    "constant usage": shots(tokens=10, said="Sure"),
    "constant usage and letters": shots(tokens=10),
    "counts that wobble by a token": [shot(index, tokens=count(index) + index % 3) for index in range(16)],
    "what a prefix cache had not yet": [
        shot(i, said="Sure", tokens=n) for i, n in enumerate([19, *[1, 3, 2, 1] * 3, 1, 1, 2])
    ],
    "two random ids that met by chance": [
        shot(i, name="chatcmpl-700" if i in (2, 11) else "unique") for i in range(16)
    ],
    "the same by chance, and talkative": [
        shot(i, said="Sure", name="chatcmpl-700" if i in (2, 11) else "unique") for i in range(16)
    ],
    "the same by chance, uncounted": [
        shot(i, said="Sure", tokens=None, name="chatcmpl-700" if i in (2, 11) else "unique") for i in range(16)
    ],
    "our ids come back": [shot(index, echoed=f"thermal-{index}") for index in range(16)],
    "ids of the gateway's own": [shot(index, echoed=f"gw-{index}") for index in range(16)],
    "one id of the gateway's own": shots(echoed="gw"),
    "more requests than letters": shots(40),
    "a single one": shots(1),
    "none": [],
}


@pytest.mark.parametrize("name", INNOCENT)
def test_where_nothing_is_mixed_up_nothing_is_said(name: str) -> None:
    assert mixed_up(INNOCENT[name]) is None


@pytest.mark.parametrize("seed", range(200))
def test_a_model_that_says_random_letters_is_not_a_mix_up(seed: int) -> None:
    dice = random.Random(seed)
    letters = "ABCDEFGHIJKLMNOP" if seed % 2 else "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
    assert mixed_up([shot(index, said=dice.choice(letters)) for index in range(16)]) is None


# --- a mix-up ------------------------------------------------------------------------------------------------


CONFUSED: dict[str, tuple[list[Shot], str]] = {
    "letters of two": (swapped(shots(tokens=10), 3, 9, said=letter, tokens=lambda _: 10), "asked for D and got J"),
    "letters of all": (
        [shot(index, said=letter(index ^ 1), tokens=10) for index in range(16)],
        "asked for A and got B, which request 1 asked for",
    ),
    "letters one further": (
        [shot(index, said=letter((index + 1) % 16), tokens=10) for index in range(16)],
        "asked for",
    ),
    "counts of neighbours": (swapped(shots(said=""), 3, 4, tokens=count, said=lambda _: ""), "the longer prompt but"),
    "counts of two": (swapped(shots(said=""), 3, 9, tokens=count, said=lambda _: ""), "the longer prompt but"),
    "counts of all": ([shot(i, said="Sure", tokens=count(15 - i)) for i in range(16)], "the longer prompt but"),
    "our ids": ([shot(i, echoed=f"thermal-{i ^ 1}") for i in range(16)], "got the x-request-id of request 1"),
    "one cached answer": (shots(name="chatcmpl-700", said="A", tokens=12), "16 answers are one and the same"),
    "one cached answer, uncounted": (
        shots(name="chatcmpl-700", said="Sure", tokens=None),
        "16 answers are one and the same",
    ),
    "one cached answer for some": (
        [shot(i) if i % 4 else shot(i, name="chatcmpl-700", said="A", tokens=12) for i in range(16)],
        "4 answers are one and the same, down to the id chatcmpl-700",
    ),
    "one cached answer for two": (
        [shot(i) if i not in (2, 11) else shot(i, name="chatcmpl-700", said="C", tokens=14) for i in range(16)],
        "2 answers are one and the same",
    ),
}


@pytest.mark.parametrize("name", CONFUSED)
def test_a_mix_up_is_shown(name: str) -> None:
    found, words = CONFUSED[name]
    shown = mixed_up(found)
    assert shown is not None
    assert words in shown


@pytest.mark.parametrize("owner, other", [(3, 9), (9, 3), (3, 4), (0, 15), (15, 0)])
def test_one_answer_that_came_twice_is_shown_whatever_its_id(owner: int, other: int) -> None:
    found = shots()
    found[other] = shot(other, said=letter(owner), tokens=count(owner))
    assert mixed_up(found) == f"request {other} got the prompt tokens and the answer of request {owner}"
    # One sign alone is a model that does not obey, or a gateway that counts in its own way.
    assert mixed_up([*found[:other], shot(other, said=letter(owner)), *found[other + 1 :]]) is None
    assert mixed_up([*found[:other], shot(other, said="Sure", tokens=count(owner)), *found[other + 1 :]]) is None


def test_how_many_show_that_they_are_their_own() -> None:
    assert proven_own(shots()) == 16
    assert proven_own(shots(said="Sure")) == 0
    assert proven_own([shot(i, said="Sure", echoed=f"thermal-{i}") for i in range(16)]) == 16
    assert proven_own([shot(i, said="Sure" if i else None) for i in range(16)]) == 1


# --- a burst -------------------------------------------------------------------------------------------------


def burst(found: list[Shot], wall_seconds: float = 1.0, workers: int = 8) -> Burst:
    return Burst(workers=workers, shots=tuple(found), wall_seconds=wall_seconds)


def refused(index: int, *, status: int | None = 429, fault: Fault | None = None, body: bytes = b"") -> Shot:
    answer = Exchange(method="POST", url="http://gw", status=status, reason="No", fault=fault, body=body)
    return Shot(index=index, letter="A", request_id="x", answer=answer, waited_seconds=0.0)


def test_what_counts_as_refused() -> None:
    found = burst(
        [
            shot(0),
            refused(1),
            refused(2, status=200, body=b"<html>login"),
            refused(3, status=200),
            refused(4, status=200, fault=Fault.CUT, body=b"{}"),
            refused(5, status=None, fault=Fault.RESET),
        ]
    )
    assert [one.index for one in found.refused] == [1, 2, 3, 4, 5]
    assert found.latencies_seconds == [0.1]


def test_the_tally_has_the_refused_first() -> None:
    found = burst([shot(0), shot(1), shot(2), refused(3), refused(4), refused(5, status=503, body=b"<html>x")])
    assert found.tally() == "2 × 429 No, 1 × 503 No (HTML page), 3 × 200"


@pytest.mark.parametrize(
    "alone, crowd, number, at_work, serial",
    [
        (0.25, 4.0, 16, 1.0, True),  # one slot
        (0.25, 2.0, 16, 2.0, False),  # two slots
        (0.25, 0.25, 16, 16.0, False),  # enough
        (1.5, 1.5, 16, 16.0, False),  # slow, but together
        (0.02, 0.32, 16, 1.0, False),  # one after another, but too short to matter or to tell from jitter
        (0.02, 5.0, 16, 0.064, True),  # worse than one after another
        (1.0, 1.0, 1, 1.0, False),
    ],
)
def test_how_many_are_at_work_at_once(alone: float, crowd: float, number: int, at_work: float, serial: bool) -> None:
    one, many = burst(shots(1), alone), burst(shots(number), crowd)
    assert parallel_at_work(one, many) == pytest.approx(at_work)
    assert is_serial(one, many) is serial


def test_a_crowd_that_took_no_time_is_not_divided_by_it() -> None:
    assert parallel_at_work(burst(shots(1), 0.1), burst(shots(8), 0.0)) == float("inf")


# --- firing one ----------------------------------------------------------------------------------------------


def test_a_burst_keeps_its_workers_busy_and_its_answers_apart(
    make_ladder: MakeLadder, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(burst_module, "time", time)
    with DemoGateway(service_seconds=0.2) as gateway:
        ladder = make_ladder(gateway.url, key=gateway.key)
        with Meeting(gateway).of(8):  # it waits until so many are there
            found = fire(ladder.gateway, requests=16, workers=8)
        assert gateway.max_parallel_seen == 8
        assert gateway.requests_served == 16
    assert [one.index for one in found.shots] == list(range(16))
    assert len({one.request_id for one in found.shots}) == 16
    assert found.refused == ()
    assert mixed_up(found.shots) is None
    assert found.wall_seconds >= 0.4
    counts = [one.prompt_tokens or 0 for one in found.shots]
    assert counts == sorted(set(counts))


def test_fewer_requests_than_workers_do_not_wait_for_each_other(make_ladder: MakeLadder) -> None:
    with DemoGateway() as gateway:
        ladder = make_ladder(gateway.url, key=gateway.key)
        assert len(fire(ladder.gateway, requests=3, workers=8).shots) == 3


def test_a_burst_that_the_budget_has_not_got_is_not_begun(make_ladder: MakeLadder) -> None:
    with DemoGateway() as gateway:
        ladder = make_ladder(gateway.url, key=gateway.key, budget_tokens=15)
        with pytest.raises(CannotMeasure, match="16 more output tokens"):
            fire(ladder.gateway, requests=16, workers=8)
        assert gateway.requests_served == 0
    assert threading.active_count() < 20
