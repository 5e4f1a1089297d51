"""Concurrency, quota, scheduler: what the gateway holds when many ask at once."""

from __future__ import annotations

import re
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from pytest_thermal.access.burst import Burst, Shot, fire, mixed_up, proven_own
from pytest_thermal.access.gateway import Gateway
from pytest_thermal.access.plan import BURST_TOKENS
from pytest_thermal.access.probes.inference import completion_trouble, fell_back_to
from pytest_thermal.access.reading import error_text, quote, transcript, usage_in
from pytest_thermal.access.verdict import CannotMeasure, Verdict, failed, passed, skipped
from pytest_thermal.access.words import limit_kind, waiting
from pytest_thermal.model.said import joined, say
from pytest_thermal.transport import Exchange, Fault

FOLLOW_UP_SECONDS = (0.0, 1.0, 3.0)
"""When one request alone is tried after a refused burst: at once it passes where only parallel requests are limited,
a little later where a rate is."""
SERIAL_FACTOR = 2.0
"""Fewer than this many requests at work at once, of 8 or 16, is one after another."""
WORSE_THAN_SERIAL = 0.5
"""Fewer than this: one after another would have been twice as fast."""
SERIAL_DELAY_SECONDS = 1.5
"""Queueing shorter than this does not matter to a load, and cannot be told from a slow machine's jitter."""

MOST_DISTURBED = 2
"""So many times more a burst is fired in which this process stood still, where that may be all that is wrong."""

AMOUNTS: Mapping[str, str] = {"requests": say("requests"), "tokens": say("tokens")}
"""What a quota counts."""


def concurrency(gateway: Gateway) -> Verdict:
    """16 requests, 8 at a time, are all answered."""
    burst = _burst(gateway)
    total = len(burst.shots)
    if burst.refused:
        return _refused(gateway, burst, "concurrency")
    slowest, middle = burst.latencies_seconds[-1], burst.latencies_seconds[total // 2]
    return passed(
        say(
            "{total} requests at {workers} workers all answered in {wall_seconds:.2f} s, median "
            "{middle:.0f} ms, slowest {slowest:.0f} ms",
            total=total,
            workers=burst.workers,
            wall_seconds=burst.wall_seconds,
            middle=middle * 1000,
            slowest=slowest * 1000,
        ),
        requests=total,
        workers=burst.workers,
        wall_ms=round(burst.wall_seconds * 1000, 1),
        median_ms=round(middle * 1000, 1),
        slowest_ms=round(slowest * 1000, 1),
    )


def concurrency_answers(gateway: Gateway) -> Verdict:
    """Each answer is a completion, and its own request's."""
    shots = _burst(gateway).shots
    hollow = _hollow(shots)
    if hollow is not None:
        return hollow
    for shot in shots:
        other = fell_back_to(gateway, shot.answer, gateway.model)
        if other:
            return failed(
                say(
                    "request {index} of {count} asked for {asked!r} and was answered by {answered!r}",
                    index=shot.index,
                    count=len(shots),
                    asked=gateway.model,
                    answered=other,
                ),
                likely=say("the gateway falls back to another route when several ask at once, without saying so"),
                advice=say("look for a fallback or balancing rule in the gateway's configuration"),
                transcript=transcript(shot.answer),
            )
    confusion = mixed_up(shots)
    if confusion is not None:
        return failed(
            say("answers went to the wrong requests: {confusion}", confusion=confusion),
            likely=say("a cache that ignores the prompt, or a gateway that mixes up connections"),
            advice=say("switch the gateway's cache and connection reuse off in turn, and run this check again"),
            transcript="\n\n".join(transcript(shot.answer) for shot in shots[:4]),
        )
    others = _other_models(shots)
    own = proven_own(shots)
    return passed(
        say(
            "no sign of a mix-up in {count} answers; {own} show that they are their own request's",
            count=len(shots),
            own=own,
        ),
        warnings=others,
        proven=own,
        answers=len(shots),
    )


def _hollow(shots: Sequence[Shot]) -> Verdict | None:
    """What is wrong with the first answer that is a 200 and no completion; None where all are."""
    for shot in shots:
        trouble = completion_trouble(shot.answer.json)
        if trouble is not None:
            return failed(
                say(
                    "request {index} of {count} was answered {status}, but {trouble}",
                    index=shot.index,
                    count=len(shots),
                    status=shot.answer.status,
                    trouble=trouble,
                ),
                likely=say("the gateway or one of its engines fails under several requests and hides it behind a 200"),
                advice=say("the gateway's log at this minute; ask each engine alone"),
                transcript=transcript(shot.answer),
            )
    return None


def concurrency_usage(gateway: Gateway) -> Verdict:
    """Every answer counts its tokens, and the counts add up one by one and together."""
    shots = _burst(gateway).shots
    usages = [(shot, usage_in(shot.answer.json)) for shot in shots]
    without = [shot for shot, usage in usages if usage is None or usage.missing]
    wrong = [(shot, usage) for shot, usage in usages if usage is not None and not usage.missing and not usage.adds_up]
    if without or wrong:
        bad = without[0] if without else wrong[0][0]
        return failed(
            say(
                "{count} of {count_2} answers without whole usage, {count_3} whose usage does not add up",
                count=len(without),
                count_2=len(shots),
                count_3=len(wrong),
            )
            + (say(" ({wrong})", wrong=wrong[0][1]) if wrong else ""),
            likely=say("one of several engines counts differently, or the gateway loses counts under load"),
            advice=say("ask each engine alone; compare their versions"),
            transcript=transcript(bad.answer),
        )
    prompt = sum(usage.prompt_tokens or 0 for _, usage in usages if usage)
    completion = sum(usage.completion_tokens or 0 for _, usage in usages if usage)
    total = sum(usage.total_tokens or 0 for _, usage in usages if usage)
    return passed(
        say(
            "{prompt} prompt + {completion} completion tokens, {total} in all",
            prompt=prompt,
            completion=completion,
            total=total,
        ),
        prompt_tokens=prompt,
        completion_tokens=completion,
        total_tokens=total,
    )


# --- quota ---------------------------------------------------------------------------------------------------


def quota(gateway: Gateway) -> Verdict:
    """One batch, and this bench's concurrency, fit the minute's tokens and requests (computed)."""
    bench = gateway.bench
    limits = bench.rate_limit
    announced = announced_limits(gateway.chat)
    at_once = max(bench.scheduler.batch_size, bench.stress.concurrent_requests)
    prompt = _prompt_tokens(gateway)
    each = prompt + bench.inference.max_tokens
    origin = bench.origins.get("scheduler.batch_size", "default")
    evidence: dict[str, Any] = {
        "requests_at_once": at_once,
        "tokens_per_request": each,
        "requests_per_minute": limits.requests_per_minute,
        "tokens_per_minute": limits.tokens_per_minute,
        **{f"announced_{what}": number for what, number in announced.items()},
    }
    if limits.requests_per_minute is None and limits.tokens_per_minute is None and not announced:
        return skipped(
            say("the bench file sets no rate_limit and the gateway announces none: nothing to hold the load against")
        )
    needs = {"requests": at_once, "tokens": at_once * each}
    for what, granted, who in (
        ("requests", limits.requests_per_minute, _origin(gateway, "requests_per_minute")),
        ("tokens", limits.tokens_per_minute, _origin(gateway, "tokens_per_minute")),
        ("requests", announced.get("requests"), say("announced by the gateway")),
        ("tokens", announced.get("tokens"), say("announced by the gateway")),
    ):
        if granted is not None and needs[what] > granted:
            return failed(
                say(
                    "{at_once} requests at once need {needs} {what}, {granted} a minute are granted ({who})",
                    at_once=at_once,
                    needs=needs[what],
                    what=AMOUNTS[what],
                    granted=granted,
                    who=who,
                ),
                likely=say(
                    "the batch ({origin}) of up to {each} tokens a request is larger than the key's quota: "
                    "the load would stop half-way with 429",
                    origin=origin,
                    each=each,
                ),
                advice=say("raise the key's quota, or lower batch_size, concurrent_requests or max_tokens"),
                **evidence,
            )
    warnings = tuple(
        say(
            "the gateway announces {announced} {what} a minute, the bench file counts on {configured}",
            announced=announced[what],
            what=AMOUNTS[what],
            configured=configured,
        )
        for what, configured in (("requests", limits.requests_per_minute), ("tokens", limits.tokens_per_minute))
        if configured is not None and announced.get(what, configured) < configured
    )
    demand = _sustained(gateway, each)
    for what, granted in (("requests", limits.requests_per_minute), ("tokens", limits.tokens_per_minute)):
        if granted is not None and demand is not None and demand[what] > granted:
            share = granted / demand[what]
            held = say(
                "{concurrent_requests} workers could ask for about {demand:.0f} {what} a minute; the "
                "quota of {granted} holds the load to {share:.0%} of that",
                concurrent_requests=bench.stress.concurrent_requests,
                demand=demand[what],
                what=AMOUNTS[what],
                granted=granted,
                share=share,
            )
            warnings += (held,)
    return passed(
        say(
            "{at_once} requests at once need {requests} requests and {tokens} tokens of a minute, "
            "granted are {requests_per_minute} requests and {tokens_per_minute} tokens",
            at_once=at_once,
            requests=needs["requests"],
            tokens=needs["tokens"],
            requests_per_minute=limits.requests_per_minute or say("any number of"),
            tokens_per_minute=limits.tokens_per_minute or say("any number of"),
        ),
        warnings=warnings,
        **evidence,
    )


def quota_tried(gateway: Gateway) -> Verdict:
    """With `--probe-quota`: the bench's own concurrency for a while meets no 429."""
    if not gateway.plan.probe_quota:
        return skipped(say("only computed: with --probe-quota it is tried too (costs tokens)"))
    bench = gateway.bench
    workers = bench.stress.concurrent_requests
    requests = max(bench.scheduler.batch_size, 4 * workers)
    if bench.rate_limit.requests_per_minute is not None:
        requests = min(requests, bench.rate_limit.requests_per_minute)
    burst = gateway.once("quota burst", lambda: fire(gateway, requests=requests, workers=workers))
    if burst.refused:
        return _refused(gateway, burst, "quota")
    hollow = _hollow(burst.shots)
    if hollow is not None:
        return hollow
    return passed(
        say(
            "{requests} requests at {workers} workers within {wall_seconds:.1f} s, none refused",
            requests=requests,
            workers=workers,
            wall_seconds=burst.wall_seconds,
        ),
        requests=requests,
        workers=workers,
    )


def announced_limits(answer: Exchange) -> dict[str, int]:
    """Requests and tokens per minute that an answer's `x-ratelimit-…limit-…` headers announce."""
    found: dict[str, int] = {}
    for header, value in answer.headers.items():
        match = re.fullmatch(r"x-ratelimit-(?:\w+-)?limit-(req|tok)(?:uest|en)?s?(?:-(?:per-)?minute)?", header)
        if match and re.fullmatch(r"[0-9]{1,18}", value.strip()) and int(value) > 0:
            what = {"req": "requests", "tok": "tokens"}[match.group(1)]
            found[what] = min(int(value), found.get(what, int(value)))
    return found


# --- scheduler -----------------------------------------------------------------------------------------------


def scheduler(gateway: Gateway) -> Verdict:
    """Alone, 8 and 16 in parallel are answered within `timeout_ms`."""
    levels = _levels(gateway)
    limit_ms = gateway.bench.scheduler.timeout_ms
    origin = gateway.bench.origins.get("scheduler.timeout_ms", "default")
    for burst in levels:
        late = [shot for shot in burst.refused if shot.answer.fault in (Fault.SILENCE, Fault.SLOW)]
        if burst.refused and not late:
            return _refused(gateway, burst, "scheduler")
        hollow = None if late else _hollow(burst.shots)
        if hollow is not None:
            return hollow  # an error is told quickly: in time it is no answer
        slowest_ms = max(shot.answer.latency_seconds for shot in burst.shots) * 1000
        if not late and _is_late_by_us(burst, limit_ms):
            raise _stood_still(burst)
        if late or slowest_ms > limit_ms:
            return failed(
                say(
                    "{count} in parallel: the slowest answer took {slowest_ms:.0f} ms",
                    count=len(burst.shots),
                    slowest_ms=slowest_ms,
                )
                + (say(", {count} did not come at all", count=len(late)) if late else "")
                + say("; timeout_ms is {limit_ms} ({origin})", limit_ms=limit_ms, origin=origin),
                likely=_why_late(levels[0], burst),
                advice=say(
                    "raise the engine's parallel slots (--parallel, --max-num-seqs, max_batch_size), or "
                    "timeout_ms if the model is that slow"
                ),
                transcript=transcript((late or [max(burst.shots, key=lambda s: s.answer.latency_seconds)])[0].answer),
                slowest_ms=round(slowest_ms, 1),
                parallel=len(burst.shots),
            )
    evidence: dict[str, Any] = {
        f"slowest_ms_at_{len(burst.shots)}": round(burst.latencies_seconds[-1] * 1000, 1) for burst in levels
    }
    return passed(
        say("slowest answer ")
        + joined(
            ", ",
            (
                say(
                    "{latencies_seconds:.0f} ms at {count}",
                    latencies_seconds=burst.latencies_seconds[-1] * 1000,
                    count=len(burst.shots),
                )
                for burst in levels
            ),
        )
        + say(" in parallel, within {limit_ms} ms", limit_ms=limit_ms),
        **evidence,
    )


def scheduler_parallel(gateway: Gateway) -> Verdict:
    """Parallel requests are served together, not one after another behind a single slot."""
    alone, *crowds = _levels(gateway)
    crowd = crowds[-1] if crowds else alone
    if _is_serial_by_us(alone, crowd):
        raise _stood_still(max(alone, crowd, key=lambda burst: burst.stood_still_seconds))
    at_work = parallel_at_work(alone, crowd)
    words = say(
        "{count} in parallel took {wall_seconds:.2f} s, one alone {wall_seconds_2:.2f} s: "
        "{at_work:.1f} at work at once",
        count=len(crowd.shots),
        wall_seconds=crowd.wall_seconds,
        wall_seconds_2=alone.wall_seconds,
        at_work=at_work,
    )
    batch = gateway.bench.scheduler.batch_size
    if is_serial(alone, crowd):
        origin = gateway.bench.origins.get("scheduler.batch_size", "default")
        return failed(
            words,
            likely=say(
                "{why_late}; batch_size {batch} ({origin}) has no effect",
                why_late=_why_late(alone, crowd),
                batch=batch,
                origin=origin,
            ),
            advice=say(
                "raise the engine's parallel slots (--parallel, --max-num-seqs, max_batch_size); look "
                "for a lock or a limit of one in the gateway"
            ),
            at_work_at_once=round(at_work, 2),
        )
    return passed(words, at_work_at_once=round(at_work, 2))


def parallel_at_work(alone: Burst, crowd: Burst) -> float:
    """Requests at work at once: time the crowd would take one after another ÷ the time it took."""
    return len(crowd.shots) * alone.wall_seconds / crowd.wall_seconds if crowd.wall_seconds > 0 else float("inf")


def is_serial(alone: Burst, crowd: Burst) -> bool:
    """Whether a crowd was served one after another, and long enough to matter."""
    waited = crowd.wall_seconds - alone.wall_seconds
    return waited >= SERIAL_DELAY_SECONDS and parallel_at_work(alone, crowd) < SERIAL_FACTOR


def _why_late(alone: Burst, crowd: Burst) -> str:
    if crowd is alone or not alone.latencies_seconds or not is_serial(alone, crowd):
        return say("the engine is too slow for this many at once, or shares its cards with other work")
    if parallel_at_work(alone, crowd) < WORSE_THAN_SERIAL:
        return say(
            "together they take far longer than one after another behind a single slot would: the "
            "engine is overloaded (its cache swaps, its cards are shared), or its HTTP server has "
            "too few threads"
        )
    return say("requests are served one after another behind a single slot")


# --- shared --------------------------------------------------------------------------------------------------


def _burst(gateway: Gateway) -> Burst:
    plan = gateway.plan
    return gateway.once("burst", lambda: fire(gateway, requests=plan.requests, workers=plan.workers))


def _levels(gateway: Gateway) -> list[Burst]:
    def measure() -> list[Burst]:
        found: list[Burst] = []
        for level in gateway.plan.parallel_levels:
            burst = _undisturbed(gateway, level, found)
            found.append(burst)
            if burst.refused or burst.latencies_seconds[-1] * 1000 > gateway.bench.scheduler.timeout_ms:
                break
        return found

    return gateway.once("levels", measure)


def _undisturbed(gateway: Gateway, level: int, before: list[Burst]) -> Burst:
    """A burst of ``level`` requests; once more where this process stood still and that decides, if tokens are left."""
    limit_ms = gateway.bench.scheduler.timeout_ms
    burst = fire(gateway, requests=level, workers=level)
    for _ in range(MOST_DISTURBED):
        alone = before[0] if before else burst
        if burst.refused or not (_is_late_by_us(burst, limit_ms) or _is_serial_by_us(alone, burst)):
            break
        try:
            burst = fire(gateway, requests=level, workers=level)
        except CannotMeasure:
            break
    return burst


def _is_late_by_us(burst: Burst, limit_ms: float) -> bool:
    slowest_seconds = max(shot.answer.latency_seconds for shot in burst.shots)
    return slowest_seconds * 1000 > limit_ms >= (slowest_seconds - burst.stood_still_seconds) * 1000


def _is_serial_by_us(alone: Burst, crowd: Burst) -> bool:
    """Whether it looks as if they were served one after another or not, depending on when this process stood still."""
    quick_crowd = replace(crowd, wall_seconds=crowd.wall_seconds - crowd.stood_still_seconds)
    quick_alone = replace(alone, wall_seconds=alone.wall_seconds - alone.stood_still_seconds)
    return crowd is not alone and is_serial(alone, quick_crowd) is not is_serial(quick_alone, crowd)


def _stood_still(burst: Burst) -> CannotMeasure:
    return CannotMeasure(
        say(
            "{count} in parallel took {wall_seconds:.2f} s, of which this process itself stood still for {still:.2f} s",
            count=len(burst.shots),
            wall_seconds=burst.wall_seconds,
            still=burst.stood_still_seconds,
        ),
        likely=say("others keep this machine's processors busy, or the run was suspended: the gateway may be fast"),
        advice=say("run again while nothing else runs here"),
    )


def _refused(gateway: Gateway, burst: Burst, check: str) -> Verdict:
    """Why a burst was not answered in full: the limit on parallel requests, the rate, or something broken."""
    refused = burst.refused
    seen = say(
        "{count} of {count_2} requests at {workers} workers not answered ({tally})",
        count=len(refused),
        count_2=len(burst.shots),
        workers=burst.workers,
        tally=burst.tally(),
    )
    capacity = [shot.answer for shot in refused if shot.answer.status in (408, 429, 503, 529)]
    if not capacity:
        return _broke(gateway, burst, max((shot.answer for shot in refused), key=_weight), seen, check)
    answer = max(capacity, key=_weight)
    kind, how = _which_limit(gateway, answer)
    layer = check
    if kind == "rate":
        layer = "quota"
        likely = say("the key's rate is used up: {how}", how=how)
        advice = say(
            "raise the key's requests or tokens per minute, or set rate_limit and --probe-workers to what is given"
        )
    elif kind == "parallel":
        likely = say("the gateway takes fewer than {workers} at once: {how}", workers=burst.workers, how=how)
        advice = say(
            "raise the limit on parallel requests of the key, gateway or web server in front "
            "(max_parallel_requests, limit_conn, circuit breaker), or lower concurrent_requests and "
            "batch_size"
        )
    else:
        likely = say(
            "the gateway or its engine broke down under {workers} at once: {how}", workers=burst.workers, how=how
        )
        advice = say("the gateway's and the engine's log at this minute; run with --probe-workers 2")
    return failed(
        joined(": ", (part for part in (seen, quote(error_text(answer))) if part))
        + say(", {waiting}", waiting=waiting(answer)),
        layer=layer,
        likely=likely,
        advice=advice,
        transcript=transcript(answer),
        refused=len(refused),
        limit=kind,
    )


def _broke(gateway: Gateway, burst: Burst, answer: Exchange, seen: str, check: str) -> Verdict:
    """Refusals that have nothing to do with capacity: some of the answers, or the gateway itself."""
    refused = len(burst.refused)
    afterwards = gateway.ask("Reply with only the word OK.", tokens=BURST_TOKENS)
    found = gateway.diagnose(answer, check)
    if not afterwards.ok:
        ended = say("one alone ends in {status_line!r} afterwards", status_line=afterwards.status_line)
        likely = say("the gateway did not survive {workers} at once: {ended}", workers=burst.workers, ended=ended)
    else:
        part = (
            say("{refused} of {count}, not all: ", refused=refused, count=len(burst.shots))
            if refused < len(burst.shots)
            else ""
        )
        likely = part + (_partly(answer) or (found.likely if found else say("answers without content")))
    return failed(
        seen,
        likely=likely,
        advice=say("the gateway's and the engine's log at this minute, and whether they were restarted"),
        transcript=transcript(answer),
        refused=refused,
    )


def _which_limit(gateway: Gateway, answer: Exchange) -> tuple[str, str]:
    """``parallel``, ``rate`` or ``broken``, and how that is known."""
    stated = limit_kind(answer)
    if stated:
        named = answer.headers.get("rate_limit_type")
        return stated, say("the answer says so ({named})", named=named) if named else say("the answer says so")
    how = say("the token budget had none left to ask one alone")
    begin = time.perf_counter()
    for due in FOLLOW_UP_SECONDS:
        time.sleep(max(0.0, begin + due - time.perf_counter()))
        try:
            again = gateway.ask("Reply with only the word OK.", tokens=BURST_TOKENS)
        except CannotMeasure:
            break
        if again.ok and not again.is_html:
            return (
                ("parallel", say("one alone is answered at once afterwards"))
                if due == 0
                else (
                    "rate",
                    say("one alone is refused at first and answered {due:g} s later", due=due),
                )
            )
        how = say("one alone is still refused {due:g} s later", due=due)
    return ("rate" if answer.status == 429 else "broken"), how


def _weight(answer: Exchange) -> tuple[bool, bool, int]:
    """Which refusal to show: one with words before one without, an answer before a torn connection."""
    return (bool(limit_kind(answer)), answer.status is not None, len(answer.body))


def _partly(answer: Exchange) -> str:
    if answer.status == 401:
        return say("one of several gateways or engines behind the balancer does not know the key")
    if answer.status == 404:
        return say("one of several engines behind the balancer does not serve the model")
    if answer.fault in (Fault.RESET, Fault.CLOSED, Fault.REFUSED):
        return say(
            "a limit on connections (backlog, file descriptors, limit_conn) in the gateway or a balancer before it"
        )
    if answer.fault in (Fault.SILENCE, Fault.SLOW):
        return say("requests queue behind too few slots and time out")
    return ""


def _other_models(shots: tuple[Shot, ...]) -> tuple[str, ...]:
    names = sorted({str(shot.answer.json.get("model")) for shot in shots if shot.answer.json.get("model")})
    return (
        (say("the answers name {count} models: {names}", count=len(names), names=joined(", ", names[:4])),)
        if len(names) > 1
        else ()
    )


def _prompt_tokens(gateway: Gateway) -> int:
    usage = usage_in(gateway.chat.json)
    return (usage.prompt_tokens or 0) if usage else 0


def _origin(gateway: Gateway, what: str) -> str:
    return gateway.bench.origins.get(f"rate_limit.{what}", "default")


def _sustained(gateway: Gateway, tokens_each: int) -> dict[str, float] | None:
    """Requests and tokens a minute that the closed loop of the bench's load would ask for, from the stream's pace.

    Little's law: workers ÷ (time of one request + pause). None where the stream gave no pace.
    """
    streamed = gateway.stream
    times = [event.at_seconds for event in streamed.events if not event.is_done]
    if len(times) < 3:
        return None
    stress = gateway.bench.stress
    gap = (times[-1] - times[0]) / (len(times) - 1)
    one = times[0] + gap * gateway.bench.inference.max_tokens
    requests = 60 * stress.concurrent_requests / (one + stress.request_interval_seconds)
    return {"requests": requests, "tokens": requests * tokens_each}
