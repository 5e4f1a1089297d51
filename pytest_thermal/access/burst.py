"""Many requests at once: sending them, and what the answers together say."""

from __future__ import annotations

import itertools
import threading
import time
import uuid
from collections import Counter
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

from pytest_thermal.access.gateway import Gateway
from pytest_thermal.access.plan import BURST_TOKENS, letter_prompt
from pytest_thermal.access.reading import choices_in, said_in, usage_in
from pytest_thermal.access.standstill import Standstill
from pytest_thermal.model.said import joined, say
from pytest_thermal.transport import Exchange

SAME_BY_CHANCE = 3
"""So many answers of one id are no chance, even where ids are drawn from a thousand numbers."""
_FEW = 5
"""So many counts must grow before one that does not tells anything."""
MOSTLY = 0.75
"""Share of answers that must be one of the letters asked for before letters count."""


@dataclass(frozen=True, kw_only=True)
class Shot:
    """One request of a burst: which letter it asked for, its own id, and what came."""

    index: int
    letter: str
    request_id: str
    answer: Exchange
    waited_seconds: float
    """From the burst's start to this answer, in seconds."""

    @property
    def said(self) -> str:
        """The answer's text, bare of blanks and punctuation; empty where there is none."""
        choices = choices_in(self.answer.json)
        return said_in(choices[0])[0].strip(" \n\t.\"'*`").upper() if choices else ""

    @property
    def answer_id(self) -> str | None:
        """The completion's id."""
        data = self.answer.json
        found = data.get("id") if isinstance(data, dict) else None
        return found if isinstance(found, str) and found else None

    @property
    def echoed_id(self) -> str | None:
        """Our request id as the answer's headers give it back, if they do."""
        echoed: str | None = self.answer.headers.get("x-request-id")
        return echoed

    @property
    def prompt_tokens(self) -> int | None:
        """The answer's count of prompt tokens."""
        usage = usage_in(self.answer.json)
        return usage.prompt_tokens if usage else None


@dataclass(frozen=True, kw_only=True)
class Burst:
    """A burst of requests, ``workers`` at a time, and its wall time in seconds."""

    workers: int
    shots: tuple[Shot, ...]
    wall_seconds: float
    stood_still_seconds: float = 0.0
    """How much of that time this process itself stood still."""

    @property
    def refused(self) -> tuple[Shot, ...]:
        """Those that did not end in a whole 2xx answer."""
        return tuple(shot for shot in self.shots if not shot.answer.ok or shot.answer.is_html or not shot.answer.body)

    @property
    def latencies_seconds(self) -> list[float]:
        """Latencies of the answered ones, sorted."""
        refused = set(map(id, self.refused))
        return sorted(shot.answer.latency_seconds for shot in self.shots if id(shot) not in refused)

    def tally(self) -> str:
        """``13 × 429 Too Many Requests, 3 × 200 OK``: outcomes by number, the refused first."""
        refused = set(map(id, self.refused))
        counts = Counter(
            (id(shot) not in refused, shot.answer.status_line + (say(" (HTML page)") if shot.answer.is_html else ""))
            for shot in self.shots
        )
        ordered = sorted(counts.items(), key=lambda entry: (entry[0][0], -entry[1]))
        return joined(", ", (say("{number} × {what}", number=number, what=what) for (_, what), number in ordered))


def fire(gateway: Gateway, *, requests: int, workers: int) -> Burst:
    """Send ``requests`` chats of one token, ``workers`` at a time, the first of each worker at the same moment.

    Raises CannotMeasure when the token budget has not got them.
    """
    gateway.reserve(BURST_TOKENS, requests=requests)
    workers = min(workers, requests)
    start = threading.Barrier(workers)
    begin = 0.0

    def shoot(index: int) -> Shot:
        nonlocal begin
        if index < workers:
            start.wait(timeout=30)
            begin = begin or time.perf_counter()
        letter, prompt = letter_prompt(index)
        request_id = f"thermal-{uuid.uuid4()}"
        answer = gateway.ask(prompt, tokens=BURST_TOKENS, request_id=request_id, reserved=True, client=own)
        return Shot(
            index=index,
            letter=letter,
            request_id=request_id,
            answer=answer,
            waited_seconds=time.perf_counter() - begin,
        )

    # Connections of its own, closed with it: engines with few HTTP threads let new connections wait behind idle ones,
    # and the next burst would be blamed for those of this one.
    with (
        gateway.new_client() as own,
        ThreadPoolExecutor(max_workers=workers, thread_name_prefix="thermal-burst") as pool,
        Standstill() as still,
    ):
        shots = tuple(pool.map(shoot, range(requests)))
        wall_seconds = time.perf_counter() - begin
    return Burst(workers=workers, shots=shots, wall_seconds=wall_seconds, stood_still_seconds=still.seconds)


def mixed_up(shots: Sequence[Shot]) -> str | None:
    """How the answers show that they were not each their own request's; None when nothing shows it.

    Five independent signs: our request id comes back with another answer; one and the same answer comes back for
    prompts that differ; a letter that was asked for elsewhere comes back here while its owner got another; prompt
    tokens fall while prompts grow; an answer comes with another's count and letter. A model that does not obey, or a
    gateway that counts in its own way, must show none.
    """
    signs = (_echo_swapped, _one_answer_for_all, _letters_swapped, _counts_swapped, _borrowed_counts)
    return next(filter(None, (sign(shots) for sign in signs)), None)


def _echo_swapped(shots: Sequence[Shot]) -> str | None:
    ours = {shot.request_id: shot for shot in shots}
    for shot in shots:
        owner = ours.get(shot.echoed_id or "")
        if owner is not None and owner is not shot:
            return say(
                "request {index} got the x-request-id of request {index_2}", index=shot.index, index_2=owner.index
            )
    return None


def _one_answer_for_all(shots: Sequence[Shot]) -> str | None:
    """Answers that share their id, their text and their count of prompt tokens though the prompts differ.

    The id alone shows nothing: some engines draw it from a thousand numbers, and some have only one.
    """
    groups: dict[tuple[str, str], list[Shot]] = {}
    for shot in shots:
        if shot.answer_id:
            groups.setdefault((shot.answer_id, shot.said), []).append(shot)
    for (name, _), group in sorted(groups.items(), key=lambda entry: -len(entry[1])):
        counts = {shot.prompt_tokens for shot in group}
        enough = SAME_BY_CHANCE if counts == {None} else 2
        if len(counts) == 1 and len(group) >= enough:
            return say("{count} answers are one and the same, down to the id {name}", count=len(group), name=name[:60])
    return None


def _letters_swapped(shots: Sequence[Shot]) -> str | None:
    letters = {shot.letter: shot for shot in shots}
    obedient = [shot for shot in shots if shot.said in letters]
    # A random or a talkative model says letters by chance: only a set that mostly obeys, and in which none comes twice,
    # can testify.
    if (
        len(letters) != len(shots)
        or len(obedient) < MOSTLY * len(shots)
        or len({shot.said for shot in obedient}) < len(obedient)
    ):
        return None
    for shot in obedient:
        owner = letters[shot.said]
        if owner is not shot and owner.said != owner.letter and owner.said in letters:
            return say(
                "request {index} asked for {letter} and got {said}, which request {index_2} asked for",
                index=shot.index,
                letter=shot.letter,
                said=shot.said,
                index_2=owner.index,
            )
    return None


def _counts_swapped(shots: Sequence[Shot]) -> str | None:
    counted = [(shot.index, shot.prompt_tokens) for shot in shots if shot.prompt_tokens is not None]
    # The counts must be those of our growing prompts, whatever their order. Others (what a prefix cache had not yet,
    # one number for all) tell nothing about whose answer it is.
    in_order = sorted(count for _, count in counted)
    if any(later <= sooner for sooner, later in itertools.pairwise(in_order)):
        return None
    for (sooner, many), (later, few) in itertools.pairwise(counted):
        if few < many:
            return say(
                "request {later} has the longer prompt but {few} prompt tokens, request {sooner} has {many}",
                later=later,
                few=few,
                sooner=sooner,
                many=many,
            )
    return None


def _borrowed_counts(shots: Sequence[Shot]) -> str | None:
    """One answer that came twice: its own request's, and once more in place of another's.

    The counts of most grow with the prompts; the one that stands out has another's count to the token, and its letter
    too, where the owner's is right. One of the two alone may be chance, or a gateway's own way to count.
    """
    counted = [(shot, shot.prompt_tokens) for shot in shots if shot.prompt_tokens is not None]
    for index, (shot, count) in enumerate(counted):
        rest = [other for position, (_, other) in enumerate(counted) if position != index]
        grows = all(sooner < later for sooner, later in itertools.pairwise(rest))
        owner = next((other for other, many in counted if other is not shot and many == count), None)
        if len(rest) < _FEW or not grows or owner is None or shot.said == shot.letter:
            continue
        if shot.said == owner.said == owner.letter:
            return say(
                "request {index} got the prompt tokens and the answer of request {index_2}",
                index=shot.index,
                index_2=owner.index,
            )
    return None


def proven_own(shots: Sequence[Shot]) -> int:
    """How many answers show by their letter or their echoed id that they are their own request's."""
    return sum(shot.said == shot.letter or shot.echoed_id == shot.request_id for shot in shots)
