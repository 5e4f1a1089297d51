"""What the fleet's page says beside the words of a run's page."""

from __future__ import annotations

from collections.abc import Mapping

from pytest_thermal.model.catalogue import IN_ENGLISH, Catalogue
from pytest_thermal.reporting.run_page.words import ENGLISH as OF_THE_RUN_PAGE
from pytest_thermal.reporting.run_page.words import Words

ENGLISH: Mapping[str, str] = {
    "fleet_title": "Fleet {name}",
    "fleet_failed_says": "At least one check found a fault. This fleet is not to be signed off as it is.",
    "fleet_inconclusive_says": (
        "Nothing was found wrong, but not every node could be judged. What was not measured never passes."
    ),
    "fleet_passed_says": "Every node is there, whole and good, and no card and no place stands out.",
    "fleet_nothing_says": "No node lies below this folder: nothing was judged.",
    "fleet_simulated_says": "Runs of the demo bench's simulated machine are among these: they say nothing of hardware.",
    "nodes": "Nodes",
    "nodes_hint": "The worst first. A node's name leads to its own page, where its run has one.",
    "node": "node",
    "place": "place",
    "verdict": "verdict",
    "rise_of_cards": "rise, median of its cards",
    "furthest": "furthest card",
    "into_steady": "into steady",
    "rate_tokens": "tokens/s",
    "rate_answers": "answers/s",
    "requests": "requests",
    "limited": "limited (429)",
    "failed_requests": "failed",
    "tokens": "tokens",
    "matrix": "Cards side by side",
    "matrix_says": (
        "Rise of each {family} against the fleet's median of {median}; {allowed} of a card's own is an outlier "
        "({origin}), with a frame around it. Empty: not compared."
    ),
    "scale_within": "within ± {value} °C",
    "no_matrix": "No card of one node could be compared with another's.",
    "places": "Places",
    "places_says": "How far all cards of a place are from the fleet's median, whatever cards they are.",
    "no_places": "No fleet.toml says where nodes sit: a warm branch or rack cannot be told from bad cards.",
    "effect": "effect on rise",
    "cards": "cards",
    "start": "Start",
    "clock": "clock",
    "late_in_every_phase": "in every phase",
    "quota": "Requests and quota",
    "no_requests": "No node asked a gateway for anything.",
    "domain": "domain",
    "limited_nodes": "limited nodes",
    "tokens_in": "tokens in",
    "tokens_out": "tokens out",
    "limit_met": "limit met",
    "frequent_error": "most frequent refusal or error",
    "by_node_and_domain": "By node and domain",
    "kind": "kind",
    "of_its_own": "{rise}, {own} of its own",
    "fleet_made_by": "Made by pytest-thermal {version} from {folder}; nothing in it is loaded from outside.",
}


def fleet_words(told: Catalogue = IN_ENGLISH) -> Words:
    """The run page's words, and the fleet's own, in a language."""
    return Words({**OF_THE_RUN_PAGE, **ENGLISH}, told=told)
