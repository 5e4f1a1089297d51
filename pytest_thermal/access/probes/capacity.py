"""Concurrency, quota, scheduler: what the gateway holds when many ask at once."""

from __future__ import annotations

import re
import time
from typing import Any

from pytest_thermal.access.burst import Burst, Shot, fire, mixed_up, proven_own
from pytest_thermal.access.gateway import Gateway
from pytest_thermal.access.plan import BURST_TOKENS
from pytest_thermal.access.probes.inference import completion_trouble
from pytest_thermal.access.reading import error_text, quote, transcript, usage_in
from pytest_thermal.access.verdict import CannotMeasure, Verdict, failed, passed, skipped
from pytest_thermal.access.words import limit_kind, waiting
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


def concurrency(gateway: Gateway) -> Verdict:
    """16 requests, 8 at a time, are all answered."""
    burst = _burst(gateway)
    total = len(burst.shots)
    if burst.refused:
        return _refused(gateway, burst, "concurrency")
    slowest, middle = burst.latencies_seconds[-1], burst.latencies_seconds[total // 2]
    return passed(
        f"{total} requests at {burst.workers} workers all answered in {burst.wall_seconds:.2f} s,"
        f" median {middle * 1000:.0f} ms, slowest {slowest * 1000:.0f} ms",
        requests=total,
        workers=burst.workers,
        wall_ms=round(burst.wall_seconds * 1000, 1),
        median_ms=round(middle * 1000, 1),
        slowest_ms=round(slowest * 1000, 1),
    )


def concurrency_answers(gateway: Gateway) -> Verdict:
    """Each answer is a completion, and its own request's."""
    shots = _burst(gateway).shots
    for shot in shots:
        trouble = completion_trouble(shot.answer.json)
        if trouble is not None:
            return failed(
                f"request {shot.index} of {len(shots)} was answered {shot.answer.status}, but {trouble}",
                likely="the gateway or one of its engines fails under several requests and hides it behind a 200",
                advice="the gateway's log at this minute; ask each engine alone",
                transcript=transcript(shot.answer),
            )
    confusion = mixed_up(shots)
    if confusion is not None:
        return failed(
            f"answers went to the wrong requests: {confusion}",
            likely="a cache that ignores the prompt, or a gateway that mixes up connections",
            advice="switch the gateway's cache and connection reuse off in turn, and run this check again",
            transcript="\n\n".join(transcript(shot.answer) for shot in shots[:4]),
        )
    others = _other_models(shots)
    own = proven_own(shots)
    return passed(
        f"no sign of a mix-up in {len(shots)} answers; {own} show that they are their own request's",
        warnings=others,
        proven=own,
        answers=len(shots),
    )


def concurrency_usage(gateway: Gateway) -> Verdict:
    """Every answer counts its tokens, and the counts add up one by one and together."""
    shots = _burst(gateway).shots
    usages = [(shot, usage_in(shot.answer.json)) for shot in shots]
    without = [shot for shot, usage in usages if usage is None or usage.missing]
    wrong = [(shot, usage) for shot, usage in usages if usage is not None and not usage.missing and not usage.adds_up]
    if without or wrong:
        bad = without[0] if without else wrong[0][0]
        return failed(
            f"{len(without)} of {len(shots)} answers without whole usage, {len(wrong)} whose usage does not add up"
            + (f" ({wrong[0][1]})" if wrong else ""),
            likely="one of several engines counts differently, or the gateway loses counts under load",
            advice="ask each engine alone; compare their versions",
            transcript=transcript(bad.answer),
        )
    prompt = sum(usage.prompt_tokens or 0 for _, usage in usages if usage)
    completion = sum(usage.completion_tokens or 0 for _, usage in usages if usage)
    total = sum(usage.total_tokens or 0 for _, usage in usages if usage)
    return passed(
        f"{prompt} prompt + {completion} completion tokens, {total} in all",
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
            "the bench file sets no rate_limit and the gateway announces none: nothing to hold the load against"
        )
    needs = {"requests": at_once, "tokens": at_once * each}
    for what, granted, who in (
        ("requests", limits.requests_per_minute, _origin(gateway, "requests_per_minute")),
        ("tokens", limits.tokens_per_minute, _origin(gateway, "tokens_per_minute")),
        ("requests", announced.get("requests"), "announced by the gateway"),
        ("tokens", announced.get("tokens"), "announced by the gateway"),
    ):
        if granted is not None and needs[what] > granted:
            return failed(
                f"{at_once} requests at once need {needs[what]} {what}, {granted} a minute are granted ({who})",
                likely=f"the batch ({origin}) of up to {each} tokens a request is larger than the key's quota:"
                " the load would stop half-way with 429",
                advice="raise the key's quota, or lower batch_size, concurrent_requests or max_tokens",
                **evidence,
            )
    warnings = tuple(
        f"the gateway announces {announced[what]} {what} a minute, the bench file counts on {configured}"
        for what, configured in (("requests", limits.requests_per_minute), ("tokens", limits.tokens_per_minute))
        if configured is not None and announced.get(what, configured) < configured
    )
    demand = _sustained(gateway, each)
    for what, granted in (("requests", limits.requests_per_minute), ("tokens", limits.tokens_per_minute)):
        if granted is not None and demand is not None and demand[what] > granted:
            share = granted / demand[what]
            held = (
                f"{bench.stress.concurrent_requests} workers could ask for about {demand[what]:.0f} {what} a minute;"
                f" the quota of {granted} holds the load to {share:.0%} of that"
            )
            warnings += (held,)
    return passed(
        f"{at_once} requests at once need {needs['requests']} requests and {needs['tokens']} tokens of a minute,"
        f" granted are {limits.requests_per_minute or 'any number of'} requests and"
        f" {limits.tokens_per_minute or 'any number of'} tokens",
        warnings=warnings,
        **evidence,
    )


def quota_tried(gateway: Gateway) -> Verdict:
    """With `--probe-quota`: the bench's own concurrency for a while meets no 429."""
    if not gateway.plan.probe_quota:
        return skipped("only computed: with --probe-quota it is tried too (costs tokens)")
    bench = gateway.bench
    workers = bench.stress.concurrent_requests
    requests = max(bench.scheduler.batch_size, 4 * workers)
    if bench.rate_limit.requests_per_minute is not None:
        requests = min(requests, bench.rate_limit.requests_per_minute)
    burst = gateway.once("quota burst", lambda: fire(gateway, requests=requests, workers=workers))
    if burst.refused:
        return _refused(gateway, burst, "quota")
    return passed(
        f"{requests} requests at {workers} workers within {burst.wall_seconds:.1f} s, none refused",
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
        slowest_ms = max(shot.answer.latency_seconds for shot in burst.shots) * 1000
        if late or slowest_ms > limit_ms:
            return failed(
                f"{len(burst.shots)} in parallel: the slowest answer took {slowest_ms:.0f} ms"
                + (f", {len(late)} did not come at all" if late else "")
                + f"; timeout_ms is {limit_ms} ({origin})",
                likely=_why_late(levels[0], burst),
                advice="raise the engine's parallel slots (--parallel, --max-num-seqs, max_batch_size), or timeout_ms"
                " if the model is that slow",
                transcript=transcript((late or [max(burst.shots, key=lambda s: s.answer.latency_seconds)])[0].answer),
                slowest_ms=round(slowest_ms, 1),
                parallel=len(burst.shots),
            )
    evidence: dict[str, Any] = {
        f"slowest_ms_at_{len(burst.shots)}": round(burst.latencies_seconds[-1] * 1000, 1) for burst in levels
    }
    return passed(
        "slowest answer "
        + ", ".join(f"{burst.latencies_seconds[-1] * 1000:.0f} ms at {len(burst.shots)}" for burst in levels)
        + f" in parallel, within {limit_ms} ms",
        **evidence,
    )


def scheduler_parallel(gateway: Gateway) -> Verdict:
    """Parallel requests are served together, not one after another behind a single slot."""
    alone, *crowds = _levels(gateway)
    crowd = crowds[-1] if crowds else alone
    at_work = parallel_at_work(alone, crowd)
    words = (
        f"{len(crowd.shots)} in parallel took {crowd.wall_seconds:.2f} s, one alone {alone.wall_seconds:.2f} s:"
        f" {at_work:.1f} at work at once"
    )
    batch = gateway.bench.scheduler.batch_size
    if is_serial(alone, crowd):
        origin = gateway.bench.origins.get("scheduler.batch_size", "default")
        return failed(
            words,
            likely=f"{_why_late(alone, crowd)}; batch_size {batch} ({origin}) has no effect",
            advice="raise the engine's parallel slots (--parallel, --max-num-seqs, max_batch_size); look for a lock or"
            " a limit of one in the gateway",
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
        return "the engine is too slow for this many at once, or shares its cards with other work"
    if parallel_at_work(alone, crowd) < WORSE_THAN_SERIAL:
        return (
            "together they take far longer than one after another behind a single slot would: the engine is overloaded"
            " (its cache swaps, its cards are shared), or its HTTP server has too few threads"
        )
    return "requests are served one after another behind a single slot"


# --- shared --------------------------------------------------------------------------------------------------


def _burst(gateway: Gateway) -> Burst:
    plan = gateway.plan
    return gateway.once("burst", lambda: fire(gateway, requests=plan.requests, workers=plan.workers))


def _levels(gateway: Gateway) -> list[Burst]:
    def measure() -> list[Burst]:
        found: list[Burst] = []
        for level in gateway.plan.parallel_levels:
            burst = fire(gateway, requests=level, workers=level)
            found.append(burst)
            if burst.refused or burst.latencies_seconds[-1] * 1000 > gateway.bench.scheduler.timeout_ms:
                break
        return found

    return gateway.once("levels", measure)


def _refused(gateway: Gateway, burst: Burst, check: str) -> Verdict:
    """Why a burst was not answered in full: the limit on parallel requests, the rate, or something broken."""
    refused = burst.refused
    seen = f"{len(refused)} of {len(burst.shots)} requests at {burst.workers} workers not answered ({burst.tally()})"
    capacity = [shot.answer for shot in refused if shot.answer.status in (408, 429, 503, 529)]
    if not capacity:
        return _broke(gateway, burst, max((shot.answer for shot in refused), key=_weight), seen, check)
    answer = max(capacity, key=_weight)
    kind, how = _which_limit(gateway, answer)
    layer = check
    if kind == "rate":
        layer = "quota"
        likely = f"the key's rate is used up: {how}"
        advice = "raise the key's requests or tokens per minute, or set rate_limit and --probe-workers to what is given"
    elif kind == "parallel":
        likely = f"the gateway takes fewer than {burst.workers} at once: {how}"
        advice = (
            "raise the limit on parallel requests of the key, gateway or web server in front (max_parallel_requests,"
            " limit_conn, circuit breaker), or lower concurrent_requests and batch_size"
        )
    else:
        likely = f"the gateway or its engine broke down under {burst.workers} at once: {how}"
        advice = "the gateway's and the engine's log at this minute; run with --probe-workers 2"
    return failed(
        ": ".join(part for part in (seen, quote(error_text(answer))) if part) + f", {waiting(answer)}",
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
        ended = f"one alone ends in {afterwards.status_line!r} afterwards"
        likely = f"the gateway did not survive {burst.workers} at once: {ended}"
    else:
        part = f"{refused} of {len(burst.shots)}, not all: " if refused < len(burst.shots) else ""
        likely = part + (_partly(answer) or (found.likely if found else "answers without content"))
    return failed(
        seen,
        likely=likely,
        advice="the gateway's and the engine's log at this minute, and whether they were restarted",
        transcript=transcript(answer),
        refused=refused,
    )


def _which_limit(gateway: Gateway, answer: Exchange) -> tuple[str, str]:
    """``parallel``, ``rate`` or ``broken``, and how that is known."""
    stated = limit_kind(answer)
    if stated:
        named = answer.headers.get("rate_limit_type")
        return stated, f"the answer says so ({named})" if named else "the answer says so"
    how = "the token budget had none left to ask one alone"
    begin = time.perf_counter()
    for due in FOLLOW_UP_SECONDS:
        time.sleep(max(0.0, begin + due - time.perf_counter()))
        try:
            again = gateway.ask("Reply with only the word OK.", tokens=BURST_TOKENS)
        except CannotMeasure:
            break
        if again.ok and not again.is_html:
            return (
                ("parallel", "one alone is answered at once afterwards")
                if due == 0
                else (
                    "rate",
                    f"one alone is refused at first and answered {due:g} s later",
                )
            )
        how = f"one alone is still refused {due:g} s later"
    return ("rate" if answer.status == 429 else "broken"), how


def _weight(answer: Exchange) -> tuple[bool, bool, int]:
    """Which refusal to show: one with words before one without, an answer before a torn connection."""
    return (bool(limit_kind(answer)), answer.status is not None, len(answer.body))


def _partly(answer: Exchange) -> str:
    if answer.status == 401:
        return "one of several gateways or engines behind the balancer does not know the key"
    if answer.status == 404:
        return "one of several engines behind the balancer does not serve the model"
    if answer.fault in (Fault.RESET, Fault.CLOSED, Fault.REFUSED):
        return "a limit on connections (backlog, file descriptors, limit_conn) in the gateway or a balancer before it"
    if answer.fault in (Fault.SILENCE, Fault.SLOW):
        return "requests queue behind too few slots and time out"
    return ""


def _other_models(shots: tuple[Shot, ...]) -> tuple[str, ...]:
    names = sorted({str(shot.answer.json.get("model")) for shot in shots if shot.answer.json.get("model")})
    return (f"the answers name {len(names)} models: {', '.join(names[:4])}",) if len(names) > 1 else ()


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
