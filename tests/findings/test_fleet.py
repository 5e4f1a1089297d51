"""What came back from many nodes, by construction: what stands out is found and named, and nothing hides anybody."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from pytest_thermal.findings.fleet.judgement import FleetJudgement
from pytest_thermal.findings.fleet.overview import domain_rows, node_rows, use_rows
from pytest_thermal.model import Finding, Outcome
from pytest_thermal.model.phases import PHASES
from pytest_thermal.recording.layout import checksums
from tests.analysis.signals import EPOCH
from tests.findings.archives import write_run
from tests.findings.fleet_archives import (
    LEFT_OUT,
    card_of,
    judged,
    request_rows,
    told,
    write_fleet,
    write_node,
)
from tests.findings.recordings import healthy

BRANCHES = """
[[node]]
host = "n[01-04]"
rack = "R1"
branch = "A"
[[node]]
host = "n[05-08]"
rack = "R1"
branch = "B"
[[node]]
host = "n[09-12]"
rack = "R2"
branch = "C"
"""
WARM = dict.fromkeys(range(4), 8.0)


def node(fleet: FleetJudgement, name: str) -> Finding:
    return fleet.finding("node", name)


def outcomes(fleet: FleetJudgement) -> dict[str, Outcome]:
    return {f"{one.check}[{one.subject}]": one.outcome for one in fleet.findings() if one.check != "simultaneous"}


def bad(fleet: FleetJudgement) -> set[str]:
    return {name for name, outcome in outcomes(fleet).items() if outcome not in (Outcome.PASSED, Outcome.SKIPPED)}


def test_a_healthy_fleet_passes(tmp_path: Path) -> None:
    write_fleet(tmp_path)
    fleet = judged(tmp_path)
    assert outcomes(fleet) == dict.fromkeys(
        [*(f"node[n{number:02}]" for number in range(1, 7)), *(f"consistency[{card_of(card)}]" for card in range(4))],
        Outcome.PASSED,
    )


def test_a_bad_card_is_named_with_node_place_value_median_and_limit(tmp_path: Path) -> None:
    write_fleet(tmp_path, 12, n03={"rises": {2: 12.0}})
    fleet = judged(tmp_path, fleet=BRANCHES)
    assert bad(fleet) == {f"consistency[{card_of(2)}]"}
    found = fleet.finding("consistency", card_of(2))
    assert found.outcome is Outcome.FAILED
    for word in ("n03 gpu2 (rack R1, branch A)", "rise 4", "from the median 3", "allowed 5.0 °C", "consistency_least"):
        assert word in found.seen
    assert "cold plate" in found.likely
    assert found.advice
    assert found.evidence["node"] == "n03"
    assert found.evidence["deviation_celsius"] == pytest.approx(12.0, abs=2.5)


def test_a_warm_branch_is_the_branch_and_no_bad_cards(tmp_path: Path) -> None:
    write_fleet(tmp_path, 12, **{f"n{number:02}": {"rises": WARM} for number in range(5, 9)})
    fleet = judged(tmp_path, fleet=BRANCHES)
    assert bad(fleet) == {"place[branch]"}
    found = fleet.finding("place", "branch")
    assert "branch B: 4 nodes, 16 gpu*" in found.seen
    assert "not its cards" in found.likely


def test_a_bad_card_in_a_warm_branch_is_both(tmp_path: Path) -> None:
    warm = {f"n{number:02}": {"rises": dict(WARM)} for number in range(5, 9)}
    warm["n06"]["rises"][1] = 20.0
    write_fleet(tmp_path, 12, **warm)
    fleet = judged(tmp_path, fleet=BRANCHES)
    assert bad(fleet) == {"place[branch]", f"consistency[{card_of(1)}]"}
    assert "n06 gpu1" in fleet.finding("consistency", card_of(1)).seen


def test_of_two_halves_the_warmer_one_is_told(tmp_path: Path) -> None:
    write_fleet(tmp_path, 8, **{f"n{number:02}": {"rises": WARM} for number in range(5, 9)})
    halves = '[[node]]\nhost="n[01-04]"\nbranch="A"\n[[node]]\nhost="n[05-08]"\nbranch="B"\n'
    fleet = judged(tmp_path, fleet=halves)
    assert bad(fleet) == {"place[branch]"}
    assert fleet.finding("place", "branch").seen.startswith("branch B:")


def test_a_node_all_of_whose_cards_are_warm_is_that_node(tmp_path: Path) -> None:
    write_fleet(tmp_path, 12, n07={"rises": WARM})
    fleet = judged(tmp_path, fleet=BRANCHES)
    assert bad(fleet) == {"node[n07]"}
    assert "all its 4 gpu*" in node(fleet, "n07").seen
    assert "not one card" in node(fleet, "n07").likely


def test_a_card_that_is_warm_in_every_node_is_its_place_in_the_chassis(tmp_path: Path) -> None:
    write_fleet(tmp_path, 8, **{f"n{number:02}": {"rises": {3: 9.0}} for number in range(1, 9)})
    fleet = judged(tmp_path)
    assert bad(fleet) == set()
    assert any("gpu3 is +8.9" in text for text in fleet.finding("consistency", card_of(3)).warnings)


def test_a_slow_card_is_found_by_its_time_constant(tmp_path: Path) -> None:
    write_fleet(tmp_path, n02={"slow": {0: 300.0}})
    fleet = judged(tmp_path)
    assert bad(fleet) == {f"consistency[{card_of(0)}]"}
    assert "slow time constant 5" in fleet.finding("consistency", card_of(0)).seen


def test_too_few_cards_are_no_fleet(tmp_path: Path) -> None:
    write_node(tmp_path, "n01", cards=2)
    write_node(tmp_path, "n02", cards=2, rises={0: 9.0})
    fleet = judged(tmp_path)
    found = fleet.finding("consistency", card_of(0))
    assert found.outcome is Outcome.INCONCLUSIVE
    assert "4 members are too few" in found.seen
    assert "furthest from the median: n02 gpu0" in found.likely
    assert node(fleet, "n01").outcome is Outcome.PASSED


def test_eight_cards_of_one_node_are_compared_with_each_other(tmp_path: Path) -> None:
    write_node(tmp_path, "n01", cards=8, rises={5: 11.0})
    assert bad(judged(tmp_path)) == {f"consistency[{card_of(5)}]"}


# ------------------------------------------------------------------------------------------------ whose run is no proof


def cut_in_steady(facts: dict[str, Any]) -> None:
    facts["state"] = "cut off"
    facts["phases"] = facts["phases"][:3]
    facts["phases"][2]["end_seconds"] = facts["phases"][2]["start_seconds"] + 600.0


def ended_in_steady(facts: dict[str, Any]) -> None:
    """In order, by Ctrl-C."""
    cut_in_steady(facts)
    facts.update(state="finished", ended_because="interrupted by KeyboardInterrupt")


def director_killed(facts: dict[str, Any]) -> None:
    facts["ended_because"] = "the process that recorded is gone"


def test_runs_that_nobody_saw_to_their_end_are_no_measure(tmp_path: Path) -> None:
    write_fleet(tmp_path, 8, n02={"facts": ended_in_steady}, n03={"facts": director_killed})
    fleet = judged(tmp_path)
    assert bad(fleet) == {"node[n02]", "node[n03]"}
    assert "its newest run is not whole: its steady was cut short: 10 min of 60 min" in node(fleet, "n02").seen
    assert "its newest run is cut off" in node(fleet, "n03").seen
    assert {node(fleet, name).outcome for name in ("n02", "n03")} == {Outcome.INCONCLUSIVE}
    assert not any(fleet.is_measure(name) for name in ("n02", "n03"))


def test_missing_and_cut_nodes_never_pass_and_hide_nobody(tmp_path: Path) -> None:
    write_fleet(tmp_path, 8, n02={"facts": cut_in_steady}, n05=LEFT_OUT, n06={"rises": {0: 12.0}})
    fleet = judged(tmp_path, fleet='[[node]]\nhost = "n[01-08]"\n')
    assert bad(fleet) == {"node[n02]", "node[n05]", f"consistency[{card_of(0)}]"}
    assert "cut off in steady, after 10 min of 60 min" in node(fleet, "n02").seen
    assert node(fleet, "n05").seen.startswith("n05 is missing: fleet.toml tells of it")
    assert {node(fleet, name).outcome for name in ("n02", "n05")} == {Outcome.INCONCLUSIVE}


def test_a_node_that_the_others_ran_together_with_is_expected(tmp_path: Path) -> None:
    def together(facts: dict[str, Any]) -> None:
        facts["together"] = {"names": ["n01", "n02", "gone"]}

    write_fleet(tmp_path, n01={"facts": together})
    found = node(judged(tmp_path), "gone")
    assert found.outcome is Outcome.INCONCLUSIVE
    assert "the run of n01" in found.seen


def test_nodes_that_are_only_counted_are_missed_too(tmp_path: Path) -> None:
    write_fleet(tmp_path, n01={"facts": lambda facts: facts.update(together={"names": [], "count": 8})})
    assert bad(judged(tmp_path)) == {"node[unnamed-1]", "node[unnamed-2]"}


@pytest.mark.parametrize(
    "change, word",
    [
        (lambda facts: facts["drivers"].update(nvidia="560.1"), "driver nvidia is 560.1, and 570.86 in the others"),
        (lambda facts: facts["host"].update(bios="0.9"), "BIOS is 0.9, and 1.2 in the others"),
        (lambda facts: facts["load"].update(mode="mixed"), "load: mode is mixed, and gpu in the others"),
        (
            lambda facts: facts["sensors"][1]["limits"].update(cap=500.0),
            "power limit of gpu0 is 500 W, and 700 W in the others",
        ),
        (lambda facts: facts.update(sensors=facts["sensors"][:6]), "other sensors: 1 missing (gpu3.temperature"),
        (lambda facts: facts.update(bench="another"), "bench is another, and pod in the others"),
        (lambda facts: facts.update(simulated=True), "what was read is simulated"),
    ],
)
def test_a_node_under_other_conditions_is_not_comparable_and_says_which(tmp_path: Path, change: Any, word: str) -> None:
    write_fleet(tmp_path, n04={"facts": change})
    fleet = judged(tmp_path)
    found = node(fleet, "n04")
    assert found.outcome is Outcome.INCONCLUSIVE
    assert word in found.seen
    assert bad(fleet) == {"node[n04]"}


def test_a_power_limit_that_is_printed_rounded_is_the_same(tmp_path: Path) -> None:
    write_fleet(tmp_path, n04={"facts": lambda facts: facts["sensors"][1]["limits"].update(cap=699.6)})
    assert bad(judged(tmp_path)) == set()


def test_two_halves_under_other_conditions_pass_nobody(tmp_path: Path) -> None:
    other = {"facts": lambda facts: facts["drivers"].update(nvidia="560.1")}
    write_fleet(tmp_path, 4, n03=other, n04=other)
    fleet = judged(tmp_path)
    assert {node(fleet, f"n0{number}").outcome for number in range(1, 5)} == {Outcome.INCONCLUSIVE}
    assert "no majority" in node(fleet, "n01").seen


def test_a_node_without_a_key_is_not_comparable(tmp_path: Path) -> None:
    denied = request_rows(0.1).replace(",200,,", ",401,401 Unauthorized,")
    write_fleet(tmp_path, n02={"requests": denied})
    found = node(judged(tmp_path), "n02")
    assert found.outcome is not Outcome.PASSED
    assert "none of its 360 requests was answered: 401 Unauthorized" in found.seen


def test_what_was_changed_since_it_was_sealed_is_no_proof(tmp_path: Path) -> None:
    write_fleet(tmp_path)
    run = next(tmp_path.glob("*_n03"))
    summary = json.loads((run / "summary.json").read_text())
    summary["warnings"] = ["all is well"]
    (run / "summary.json").write_text(json.dumps(summary))
    found = node(judged(tmp_path), "n03")
    assert found.outcome is Outcome.INCONCLUSIVE
    assert "summary.json" in found.seen


def test_a_damaged_run_json_is_its_node_s_newest_run_all_the_same(tmp_path: Path) -> None:
    write_fleet(tmp_path)
    write_node(tmp_path, "n03", start=EPOCH + 86_400)
    (next(tmp_path.glob("20270116*_n03")) / "run.json").write_text('{"format": 1, ')
    found = node(judged(tmp_path), "n03")
    assert found.outcome is Outcome.INCONCLUSIVE
    assert "cannot be read" in found.seen
    assert "damaged" in found.seen


@pytest.mark.parametrize("state", [[], {}, "x", None, 7])
def test_nonsense_in_a_run_json_is_told_of_its_node_alone(tmp_path: Path, state: Any) -> None:
    def spoil(facts: dict[str, Any]) -> None:
        facts.update(phases=state, clock=state, drivers=state, accelerators=state, together=state, gateways=state)

    write_fleet(tmp_path, n04={"facts": spoil})
    fleet = judged(tmp_path)
    assert {name for name in bad(fleet) if name != "node[n04]"} == set()


def test_own_failures_of_a_node_fail_it_in_their_words(tmp_path: Path) -> None:
    def fail(summary: dict[str, Any]) -> None:
        summary["findings"].append(
            told("pump", "pump0.speed_rpm", "failed", "pump0 stood still for 40 s", likely="its power", advice="look")
        )

    write_fleet(tmp_path, n05={"summary": fail})
    found = node(judged(tmp_path), "n05")
    assert found.outcome is Outcome.FAILED
    assert "pump[pump0.speed_rpm] failed: pump0 stood still for 40 s" in found.seen
    assert (found.likely, found.advice) == ("its power", "look")


def test_a_card_that_was_not_loaded_is_no_measure_for_others(tmp_path: Path) -> None:
    def idle(summary: dict[str, Any]) -> None:
        summary["findings"] = [one for one in summary["findings"] if one["subject"] != "gpu1"]
        summary["findings"].append(told("load", "gpu1", "inconclusive", "gpu1 was at 30 %"))

    write_fleet(tmp_path, n02={"summary": idle, "rises": {1: -25.0}})
    fleet = judged(tmp_path)
    assert bad(fleet) == {"node[n02]"}
    assert any("gpu1 was at 30 %" in text for text in fleet.finding("consistency", card_of(1)).warnings)


# --------------------------------------------------------------------------------------------------- history and names


def test_the_newest_run_counts_and_drift_is_measured_by_the_one_before(tmp_path: Path) -> None:
    write_fleet(tmp_path)
    for day in (1, 2):
        write_node(tmp_path, "n02", start=EPOCH - day * 86_400, rises={1: -7.0} if day == 1 else {})
    fleet = judged(tmp_path)
    found = node(fleet, "n02")
    assert any("the newest of 3 runs counts" in text for text in found.warnings)
    assert found.outcome is Outcome.FAILED
    assert f"{card_of(1)} gets" in found.seen
    assert "20270114T080000Z_n02" in found.seen
    assert node(judged(tmp_path, with_drift=False), "n02").outcome is Outcome.PASSED


def test_two_machines_of_one_name_at_one_time_are_two_nodes(tmp_path: Path) -> None:
    write_fleet(tmp_path)
    write_node(tmp_path, "n02", start=EPOCH + 60, rises={0: 12.0})
    fleet = judged(tmp_path)
    assert {"n02", "n02~2"} < set(fleet.roster.nodes)
    assert any("2 machines called n02" in text for text in node(fleet, "n02").warnings)


def test_another_machine_under_an_old_name_is_told_and_is_no_history(tmp_path: Path) -> None:
    write_fleet(tmp_path, n02={"facts": lambda facts: facts["host"].update(machine_id="new")})
    write_node(
        tmp_path, "n02", start=EPOCH - 86_400, rises={1: -9.0},
        facts=lambda facts: facts["host"].update(machine_id="old"),
    )  # fmt: skip
    found = node(judged(tmp_path), "n02")
    assert found.outcome is Outcome.PASSED
    assert any("another machine" in text for text in found.warnings)


def test_runs_may_lie_in_folders_of_their_nodes(tmp_path: Path) -> None:
    write_fleet(tmp_path)
    for run in list(tmp_path.glob("*_n0[1-3]")):
        (tmp_path / run.name[-3:]).mkdir()
        run.rename(tmp_path / run.name[-3:] / run.name)
    assert len(judged(tmp_path).roster.nodes) == 6
    assert bad(judged(tmp_path)) == set()


def test_runs_without_a_summary_are_judged_anew_and_say_so(tmp_path: Path) -> None:
    for number, watts in enumerate((620.0, 625.0), 1):
        recording = healthy(seed=number, watts=watts)
        run = write_run(tmp_path, recording, host=f"n{number:02}")
        facts = json.loads((run / "run.json").read_text())
        facts["host"] = {"name": f"n{number:02}"}
        (run / "run.json").write_text(json.dumps({**facts, "sha256": checksums(run)}))
    fleet = judged(tmp_path)
    found = node(fleet, "n01")
    assert any("judged anew: it has no summary" in text for text in found.warnings)
    assert fleet.runs["n01"].cards[0].value("rise") is not None
    assert found.evidence["by"] == "judged"


def test_a_log_named_after_its_host_is_that_node(tmp_path: Path) -> None:
    write_fleet(tmp_path)
    log = Path(__file__).parents[2] / "fixtures" / "logs" / "wide.csv"
    (tmp_path / "n77.csv").write_bytes(log.read_bytes())
    (tmp_path / "n78.csv").write_text("what is this\n")
    fleet = judged(tmp_path)
    assert any("a log from elsewhere" in text for text in node(fleet, "n77").warnings)
    assert node(fleet, "n78").outcome is Outcome.INCONCLUSIVE
    assert "cannot be read" in node(fleet, "n78").seen


# ------------------------------------------------------------------------------------------------- time, quota, totals


def later(seconds: float, *, offset: float | None = None) -> dict[str, Any]:
    def change(facts: dict[str, Any]) -> None:
        for phase in facts["phases"]:
            phase["start_seconds"] += seconds
            phase["end_seconds"] += seconds
        if offset is not None:
            facts["clock"] = {"offsets": {"shared_disk": {"offset_seconds": offset, "within_seconds": 0.1}}}

    return {"facts": change}


def test_nodes_that_entered_steady_together_say_within_what(tmp_path: Path) -> None:
    write_fleet(tmp_path, n02=later(2.1))
    found = judged(tmp_path).finding("simultaneous", "fleet")
    assert found.outcome is Outcome.PASSED
    assert "6 nodes entered steady within 2.1 s" in found.seen


def test_a_clock_that_is_off_is_told_and_its_node_is_compared_by_phase(tmp_path: Path) -> None:
    write_fleet(tmp_path, n02=later(90.0))
    fleet = judged(tmp_path)
    assert fleet.finding("simultaneous", "fleet").outcome is Outcome.FAILED
    assert "n02 +90.0 s in every phase" in fleet.finding("simultaneous", "fleet").likely
    assert bad(fleet) == set()
    assert any("90.0 s later" in text for text in node(fleet, "n02").warnings)


def test_a_known_offset_is_taken_off(tmp_path: Path) -> None:
    write_fleet(tmp_path, n02=later(90.0, offset=90.0))
    fleet = judged(tmp_path)
    assert fleet.finding("simultaneous", "fleet").outcome is Outcome.PASSED
    assert any("its clock is 90.0 s ahead" in text for text in node(fleet, "n02").warnings)


def test_whose_requests_were_limited_is_told_and_why_it_is_slow(tmp_path: Path) -> None:
    rows = {f"n{number:02}": {"requests": request_rows(1.0)} for number in range(1, 7)}
    rows["n04"] = {"requests": request_rows(1.0, limited=0.25)}
    write_fleet(tmp_path, **rows)
    fleet = judged(tmp_path)
    found = node(fleet, "n04")
    assert found.outcome is Outcome.FAILED
    assert "25 % less than the fleet's median of 100" in found.seen
    assert "900 of its 3,600 requests were refused with 429" in found.likely
    (domain,) = domain_rows(fleet)
    assert (domain.name, domain.nodes, domain.requests, domain.limited) == ("pod", 6, 21_600, 900)
    assert domain.limited_nodes == ("n04",)
    assert domain.tokens == (21_600 - 900) * 150
    assert {row.name: row.limited for row in node_rows(fleet)}["n04"] == 900


def test_simulated_runs_say_so_in_every_finding(tmp_path: Path) -> None:
    def simulate(facts: dict[str, Any]) -> None:
        facts["simulated"] = True

    write_fleet(tmp_path, **{f"n{number:02}": {"facts": simulate} for number in range(1, 7)})
    assert all(found.evidence.get("simulated") for found in judged(tmp_path).findings())


def test_an_empty_folder_passes_nothing(tmp_path: Path) -> None:
    fleet = judged(tmp_path)
    assert list(fleet.roster.nodes) == []
    assert fleet.finding("consistency", card_of(0)).outcome is Outcome.INCONCLUSIVE
    assert len(PHASES) > 0


# ---------------------------------------------------------------------------------- nobody is blamed or passed by guess


@pytest.mark.parametrize("nodes", [2, 4])
def test_of_two_halves_of_nodes_none_is_blamed_and_none_passes(tmp_path: Path, nodes: int) -> None:
    warm = {f"n{number:02}": {"rises": WARM} for number in range(nodes // 2 + 1, nodes + 1)}
    write_fleet(tmp_path, nodes, **warm)
    fleet = judged(tmp_path)
    found = [node(fleet, f"n{number:02}") for number in range(1, nodes + 1)]
    assert {one.outcome for one in found} == {Outcome.INCONCLUSIVE}
    assert "below those of the other half" in found[0].seen
    assert "above those of the other half" in found[-1].seen


def test_a_branch_of_four_degrees_is_seen_and_a_healthy_one_is_not(tmp_path: Path) -> None:
    write_fleet(
        tmp_path / "warm", 12, **{f"n{number:02}": {"rises": dict.fromkeys(range(4), 4.5)} for number in range(5, 9)}
    )
    assert bad(judged(tmp_path / "warm", fleet=BRANCHES)) == {"place[branch]"}
    write_fleet(tmp_path / "well", 12)
    assert bad(judged(tmp_path / "well", fleet=BRANCHES)) == set()


def test_a_node_that_draws_less_hides_no_resistance(tmp_path: Path) -> None:
    def worse(summary: dict[str, Any]) -> None:
        for figures in summary["figures"].values():
            for one in figures:
                if one["name"] == "resistance":
                    one["value"] *= 1.25

    write_fleet(tmp_path, 8, n03={"summary": worse})
    fleet = judged(tmp_path)
    assert bad(fleet) == {"node[n03]"}
    assert "by their resistance" in node(fleet, "n03").seen


def test_a_run_of_last_quarter_and_one_of_before_the_meeting_do_not_stand_for_now(tmp_path: Path) -> None:
    write_fleet(
        tmp_path, 7, n02=LEFT_OUT, n03=LEFT_OUT, n01={"facts": lambda facts: facts.update(together={"names": ["n03"]})}
    )
    write_node(tmp_path, "n02", start=EPOCH - 92 * 86_400)
    write_node(tmp_path, "n03", start=EPOCH - 86_400)
    fleet = judged(tmp_path)
    assert bad(fleet) == {"node[n02]", "node[n03]"}
    assert "92 days older than the others'" in node(fleet, "n02").seen
    assert "older than that of n01, which was to be made together with it" in node(fleet, "n03").seen


def test_an_empty_run_folder_is_a_node_that_is_missed(tmp_path: Path) -> None:
    write_fleet(tmp_path, 6)
    (tmp_path / "20270115T080000Z_n77").mkdir()
    assert bad(judged(tmp_path)) == {"node[n77]"}


def test_a_host_whose_folder_came_back_empty_is_missed(tmp_path: Path) -> None:
    for number in range(1, 7):
        write_node(tmp_path / f"n{number:02}", f"n{number:02}")
    (tmp_path / "n07").mkdir()
    (tmp_path / "n08").mkdir()
    (tmp_path / "n08" / "slurm.out").write_text("died\n")
    fleet = judged(tmp_path)
    assert bad(fleet) == {"node[n07]", "node[n08]"}
    assert "n08 is missing: its folder in the archive tells of it" in node(fleet, "n08").seen


def test_folders_beside_the_runs_that_hold_something_else_are_no_nodes(tmp_path: Path) -> None:
    write_fleet(tmp_path / "runs", 6)
    (tmp_path / "allure").mkdir()
    (tmp_path / "allure" / "a.json").write_text("{}")
    (tmp_path / "runs" / "logs").mkdir()
    assert bad(judged(tmp_path)) == set()
    assert bad(judged(tmp_path / "runs")) == set()


def test_what_lies_beside_the_folders_of_hosts_is_no_node(tmp_path: Path) -> None:
    for number in range(1, 7):
        write_node(tmp_path / f"n{number:02}", f"n{number:02}")
    (tmp_path / "allure").mkdir()
    (tmp_path / "allure" / "a.json").write_text("{}")
    assert bad(judged(tmp_path)) == set()


def test_a_node_that_is_expected_under_its_long_name_is_missed_with_a_hint(tmp_path: Path) -> None:
    write_fleet(tmp_path, 6)
    fleet = judged(tmp_path, fleet='[[node]]\nhost = "N03.rack.example"\n')
    assert bad(fleet) == {"node[N03.rack.example]"}
    assert "the run of n03 is here" in node(fleet, "N03.rack.example").likely


def test_one_machine_under_two_names_is_not_two_nodes(tmp_path: Path) -> None:
    def same(facts: dict[str, Any]) -> None:
        for one in facts["sensors"]:
            one["identity"] = "GPU-0aa1b2c3-0000-4000-8000-00000000000" + one["device"][-1]

    write_fleet(tmp_path, 6, n02={"facts": same}, n05={"facts": same})
    fleet = judged(tmp_path)
    assert bad(fleet) == {"node[n02]", "node[n05]"}
    assert "are those of n05 too" in node(fleet, "n02").seen


def test_each_domain_has_its_requests_tokens_and_the_limit_that_was_met(tmp_path: Path) -> None:
    rows = ["start,ttft,latency,status,error,prompt_tokens,completion_tokens,phase,domain,limit"]
    for second in range(1000):
        at = EPOCH + 500 + second
        rows.append(f"{at},0.1,0.5,200,,50,100,steady,east,")
        rows.append(f"{at},,0.1,429,429 Too Many Requests,,,steady,west-of-the-hall,tokens" if second % 4 == 0 else
                    f"{at},0.1,0.5,200,,50,100,steady,west-of-the-hall,")  # fmt: skip
    write_fleet(tmp_path, 2, n01={"requests": "\n".join(rows) + "\n"})
    fleet = judged(tmp_path)
    east, west = domain_rows(fleet)
    assert (east.name, east.requests, east.limited, east.prompt_tokens, east.completion_tokens) == (
        "east", 1000, 0, 50_000, 100_000,
    )  # fmt: skip
    assert (west.name, west.limited, dict(west.by_limit)) == ("west-of-the-hall", 250, {"tokens": 250})
    used = {(row.node, row.domain): row for row in use_rows(fleet)}
    assert used["n01", "west-of-the-hall"].limits == "tokens a minute (TPM) × 250"
    assert used["n01", "east"].limits == ""
