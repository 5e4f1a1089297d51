from __future__ import annotations

import numpy as np
import pytest

from pytest_thermal.analysis.answers import Answer
from pytest_thermal.analysis.fleet import Consistency, Member, judge_fleet


def fleet(seed: int, *, nodes: int = 8, cards: int = 8, spread: float = 1.0) -> list[Member]:
    rng = np.random.default_rng(seed)
    return [
        Member(
            key=f"node{node} gpu{card}",
            value=33 + float(rng.normal(0, spread)),
            position={"slot": str(card), "branch": "AB"[node % 2]},
        )
        for node in range(nodes)
        for card in range(cards)
    ]


def warmer(members: list[Member], by: float, *, key: str = "", **place: str) -> list[Member]:
    def hit(member: Member) -> bool:
        return (member.key == key) if key else all(member.position[kind] == name for kind, name in place.items())

    return [
        Member(key=member.key, value=member.value + (by if hit(member) else 0.0), position=member.position)
        for member in members
    ]


def outliers(found: Consistency) -> set[str]:
    return {judged.member.key for judged in found.members if judged.consistent is Answer.NO}


@pytest.mark.parametrize("nodes, cards", [(8, 8), (8, 1), (4, 4)])
@pytest.mark.parametrize("spread", [1.0, 3.0])
def test_a_healthy_fleet_has_no_outlier(spread: float, nodes: int, cards: int) -> None:
    alarms = 0
    for seed in range(60):
        found = judge_fleet(fleet(seed, nodes=nodes, cards=cards, spread=spread))
        alarms += bool(outliers(found)) + bool(found.places)
    assert alarms <= (0 if spread == 1.0 else 5)


@pytest.mark.parametrize("by", [9.0, -9.0])
def test_a_bad_card_stands_out_and_its_places_do_not(by: float) -> None:
    for seed in range(20):
        found = judge_fleet(warmer(fleet(seed), by, key="node3 gpu5"))
        assert outliers(found) == {"node3 gpu5"}
        assert found.places == ()


def test_a_warm_slot_is_a_place_and_no_bad_cards() -> None:
    for seed in range(20):
        found = judge_fleet(warmer(fleet(seed), 9.0, slot="7"))
        assert outliers(found) == set()
        assert [(place.kind, place.name, place.members) for place in found.places] == [("slot", "7", 8)]
        assert found.places[0].effect == pytest.approx(9.0, abs=1.6)
        told = [judged for judged in found.members if judged.member.position["slot"] == "7"]
        assert all("goes with its place" in judged.reason for judged in told if abs(judged.deviation) > 5)


def test_a_bad_card_in_a_warm_slot_is_still_found() -> None:
    for seed in range(20):
        members = warmer(warmer(fleet(seed), 9.0, slot="7"), 9.0, key="node2 gpu7")
        assert outliers(judge_fleet(members)) == {"node2 gpu7"}


def test_a_card_as_warm_as_a_warm_slot_is_bad_where_its_slot_is_cool() -> None:
    found = judge_fleet(warmer(warmer(fleet(1), 9.0, slot="7"), 9.0, key="node2 gpu0"))
    assert outliers(found) == {"node2 gpu0"}


def test_without_positions_a_warm_slot_is_eight_outliers() -> None:
    members = [Member(key=member.key, value=member.value) for member in warmer(fleet(2), 9.0, slot="7")]
    assert len(outliers(judge_fleet(members))) == 8


def test_less_than_five_degrees_is_never_an_outlier() -> None:
    tight = warmer(fleet(3, spread=0.1), 4.0, key="node1 gpu1")
    assert outliers(judge_fleet(tight)) == set()
    assert outliers(judge_fleet(tight, least_deviation=3.0)) == {"node1 gpu1"}


def test_a_scattered_fleet_needs_more_than_five_degrees() -> None:
    found = judge_fleet(warmer(fleet(4, spread=4.0), 8.0, key="node1 gpu1"))
    assert found.threshold is not None
    assert found.threshold > 7
    assert outliers(found) == set()


def test_half_of_the_fleet_may_be_wrong_without_moving_the_median_far() -> None:
    members = fleet(5)
    hot = [Member(key=m.key, value=m.value + (30 if index < 25 else 0)) for index, m in enumerate(members)]
    found = judge_fleet(hot)
    assert found.median == pytest.approx(34, abs=1.5)


def test_four_members_are_no_fleet() -> None:
    found = judge_fleet(warmer(fleet(6)[:4], 8.0, key="node0 gpu1"))
    assert {judged.consistent for judged in found.members} == {Answer.UNKNOWN}
    assert "4 members are too few" in found.reason
    assert judge_fleet([]).members == ()


def test_four_members_that_agree_are_consistent_and_one_alone_is_nothing() -> None:
    found = judge_fleet(fleet(6)[:4])
    assert {judged.consistent for judged in found.members} == {Answer.YES}
    assert {judged.consistent for judged in judge_fleet(fleet(6)[:1]).members} == {Answer.UNKNOWN}


def test_two_cards_make_no_place() -> None:
    members = [*fleet(7, nodes=4, cards=3), *(Member(key=f"x{i}", value=45.0, position={"slot": "99"}) for i in (1, 2))]
    found = judge_fleet(members)
    assert outliers(found) == {"x1", "x2"}
    assert found.places == ()
