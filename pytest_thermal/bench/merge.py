"""One value per setting: who wins, and what is said of those that lose."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from pytest_thermal.bench.candidates import Candidate
from pytest_thermal.model.said import say


@dataclass(kw_only=True)
class Merge:
    """Picks winners and keeps what the user should be told about them."""

    conflicts: list[str] = field(default_factory=list)
    remarks: list[str] = field(default_factory=list)

    def pick(self, setting: str, candidates: Sequence[Candidate]) -> Candidate | None:
        """The first candidate; those after it with another value are said to have lost."""
        if not candidates:
            return None
        winner, *others = candidates
        losers = [other for other in others if other.value != winner.value]
        if losers:
            lost = " nor ".join(_said(loser) for loser in losers)
            self.conflicts.append(say("{setting}: {said}, not {lost}", setting=setting, said=_said(winner), lost=lost))
        self.remarks += [remark for remark in winner.remarks if remark not in self.remarks]
        return winner

    @property
    def notes(self) -> tuple[str, ...]:
        """Conflicts, then corrections."""
        return tuple(dict.fromkeys([*self.conflicts, *self.remarks]))


def of_setting(setting: str, candidates: Iterable[Candidate]) -> list[Candidate]:
    """Candidates for one setting, in order of precedence."""
    return [one for one in candidates if one.setting == setting]


def _said(candidate: Candidate) -> str:
    return say("{candidate} from {candidate_origin}", candidate=candidate.shown, candidate_origin=candidate.origin)
