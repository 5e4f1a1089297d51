"""Chat and stream: the first questions that an engine must answer."""

from __future__ import annotations

import itertools
import re
from typing import Any

from pytest_thermal.access.gateway import Gateway
from pytest_thermal.access.plan import CHAT_TOKENS, ROUTE_TOKENS
from pytest_thermal.access.reading import (
    choices_in,
    describe,
    error_in,
    error_text,
    gave_up,
    model_ids,
    quote,
    said_in,
    told_error,
    transcript,
    usage_in,
)
from pytest_thermal.access.verdict import CannotMeasure, Verdict, failed, passed, skipped
from pytest_thermal.model.said import joined, say
from pytest_thermal.transport import Exchange, Fault, StreamEvent, StreamExchange

BUFFERED_FROM_SECONDS = 0.5
BUFFERED_SPAN_SECONDS = 0.001
"""Several tokens within a millisecond, after half a second of nothing: no engine is that slow and that fast."""


def chat(gateway: Gateway) -> Verdict:
    """A minimal chat is answered with choices."""
    return _chat_verdict(gateway, gateway.chat, gateway.model)


def chat_usage(gateway: Gateway) -> Verdict:
    """Its usage gives prompt, completion and total tokens, and they add up."""
    usage = usage_in(gateway.chat.json)
    proof = transcript(gateway.chat)
    if usage is None or usage.missing:
        raw = "" if usage is None else quote(str(gateway.chat.json["usage"]))
        return failed(
            say("the answer has no usage")
            if usage is None
            else say("its usage has no whole number for {names}: {raw}", names=joined(", ", usage.missing), raw=raw),
            likely=say("the engine or the gateway leaves token counts out: quotas and throughput cannot be checked"),
            advice=say("switch usage on in the gateway (include_usage, track_usage …), or update the engine"),
            transcript=proof,
        )
    if not usage.adds_up:
        return failed(
            say("usage does not add up: {usage}", usage=usage),
            likely=say("the gateway counts with another tokenizer than the engine, or hidden tokens in one place only"),
            advice=say("compare with the engine's own /v1/chat/completions; report it to the gateway's maker"),
            transcript=proof,
        )
    if not usage.prompt_tokens:
        return failed(
            say("usage counts no prompt tokens: {usage}", usage=usage),
            likely=say("the gateway fills usage in without counting"),
            advice=say("compare with the engine's own answer"),
            transcript=proof,
        )
    return passed(str(usage), prompt_tokens=usage.prompt_tokens, completion_tokens=usage.completion_tokens)


def chat_model(gateway: Gateway) -> Verdict:
    """The model that was asked for is the one that answered."""
    return _model_verdict(gateway, gateway.chat, gateway.model)


def chat_fallback(gateway: Gateway) -> Verdict:
    """The fallback model answers too, so that a switch to it would work."""
    route = gateway.domain.route
    if not route.fallback or route.fallback == gateway.model:
        return skipped(say("the bench names no fallback model besides the default"))
    answer = gateway.ask("Reply with only the word OK.", tokens=ROUTE_TOKENS, model=route.fallback)
    verdict = _chat_verdict(gateway, answer, route.fallback)
    if verdict.outcome != "passed":
        return verdict
    return _model_verdict(gateway, answer, route.fallback)


def chat_limit(gateway: Gateway) -> Verdict:
    """`max_tokens` is kept, so that the cost of a run can be promised."""
    usage = usage_in(gateway.chat.json)
    if usage is None or usage.completion_tokens is None:
        raise CannotMeasure(say("the answer does not say how many tokens it spent"))
    if usage.completion_tokens <= CHAT_TOKENS:
        return passed(
            say(
                "{completion_tokens} of at most {chat_tokens} tokens spent",
                completion_tokens=usage.completion_tokens,
                chat_tokens=CHAT_TOKENS,
            )
        )
    return failed(
        say(
            "{completion_tokens} output tokens charged where {chat_tokens} were allowed",
            completion_tokens=usage.completion_tokens,
            chat_tokens=CHAT_TOKENS,
        ),
        likely=say(
            "the gateway ignores max_tokens (or counts reasoning outside it): this run costs more than its budget"
        ),
        advice=say("set a limit on the gateway's side before a load of thousands of requests"),
        transcript=transcript(gateway.chat),
    )


def stream(gateway: Gateway) -> Verdict:
    """A streamed chat brings its first token, goes on without a stall, and comes to its end."""
    streamed = gateway.stream
    answer = streamed.exchange
    parts = _parts(streamed)
    trouble = _stream_trouble(gateway, streamed, parts)
    if trouble is not None:
        return trouble
    if not parts:
        return passed(
            say("finished, and its usage counts tokens, but none of them was visible text"),
            warnings=(say("time to first token was not measured: the stream's tokens carried no text"),),
        )
    first = parts[0][0]
    gaps = [later - sooner for (sooner, _), (later, _) in itertools.pairwise(parts)]
    warnings: tuple[str, ...] = ()
    total = answer.latency_seconds
    at_once = len(parts) > 2 and first >= BUFFERED_FROM_SECONDS and parts[-1][0] - first < BUFFERED_SPAN_SECONDS
    if at_once and not gateway.stream_stood_still:
        buffered = say(
            "all {count} chunks came at once after {first:.2f} s: something on the way buffers the "
            "stream (nginx: proxy_buffering off), and times to first token are not the engine's",
            count=len(parts),
            first=first,
        )
        warnings = (buffered,)
    return passed(
        say(
            "first token after {first:.0f} ms, {count} chunks in {total:.0f} ms",
            first=first * 1000,
            count=len(parts),
            total=total * 1000,
        ),
        warnings=warnings,
        first_token_ms=round(first * 1000, 1),
        longest_gap_ms=round(max(gaps) * 1000, 1) if gaps else None,
        chunks=len(parts),
    )


def stream_done(gateway: Gateway) -> Verdict:
    """The stream closes with `[DONE]`, by which clients tell its end from a cut."""
    if any(event.is_done for event in gateway.stream.events):
        return passed(say("ends with [DONE]"))
    return failed(
        say("ended without [DONE], though with a finish_reason"),
        likely=say("the engine or a gateway between leaves it out; some clients then wait or report a cut"),
        advice=say("update the engine or gateway; this plugin's load takes finish_reason as the end"),
        transcript=transcript(gateway.stream.exchange),
    )


def stream_usage(gateway: Gateway) -> Verdict:
    """The stream's last chunks give usage, as asked for by `stream_options.include_usage`."""
    counted = [usage for usage in (usage_in(event.json) for event in gateway.stream.events) if usage]
    if not counted:
        return failed(
            say("no usage in the stream, though include_usage was asked for"),
            likely=say(
                "the engine or a gateway between does not know stream_options: load then counts chunks, not tokens"
            ),
            advice=say("update the engine or gateway, or run the load with stream = false"),
            transcript=transcript(gateway.stream.exchange),
        )
    usage = counted[-1]
    if usage.missing or not usage.adds_up:
        return failed(
            say("usage of the stream does not add up: {usage}", usage=usage),
            likely=say("the gateway counts streamed tokens with another tokenizer than the engine"),
            advice=say("compare with the engine's own stream"),
            transcript=transcript(gateway.stream.exchange),
        )
    return passed(str(usage), prompt_tokens=usage.prompt_tokens, completion_tokens=usage.completion_tokens)


# --- judging one answer --------------------------------------------------------------------------------------


def _chat_verdict(gateway: Gateway, answer: Exchange, model: str | None) -> Verdict:
    found = gateway.diagnose(answer, "chat", model=model)
    if found is not None:
        return found.verdict(answer)
    data = answer.json
    trouble = completion_trouble(data)
    if trouble is not None:
        return failed(
            say(
                "{status_line} from {answer}, but {trouble}",
                status_line=answer.status_line,
                answer=answer.line,
                trouble=trouble,
            ),
            likely=say("the gateway tells an error with status 200: {error_text}", error_text=quote(error_text(answer)))
            if isinstance(data, dict) and data.get("error")
            else say("another API's answer, or a gateway that loses the engine's"),
            advice=say("compare with the engine's own /v1/chat/completions"),
            transcript=transcript(answer),
        )
    choice = choices_in(data)[0]
    content, thought = said_in(choice)
    warnings: tuple[str, ...] = ()
    if not content and not thought and choice.get("finish_reason") != "length":
        warnings = (say("the answer is empty although it was not cut by max_tokens"),)
    said = (
        say("reasoning only")
        if thought and not content
        else say("finish_reason {get}", get=choice.get("finish_reason"))
    )
    return passed(
        say(
            "{model} answers in {latency_seconds:.0f} ms, {said}",
            model=model or say("the model"),
            latency_seconds=answer.latency_seconds * 1000,
            said=said,
        ),
        warnings=warnings,
        latency_ms=round(answer.latency_seconds * 1000, 1),
        model=str(data.get("model", ""))[:120],
    )


def completion_trouble(data: Any) -> str | None:
    """Why ``data`` is no chat completion; None when it is one.

    Empty content is fine: reasoning models spend all of ``max_tokens`` before they speak.
    """
    if not isinstance(data, dict):
        return say("the body is no JSON object")
    choices = choices_in(data)
    if not choices:
        return say("it has no choices")
    first = choices[0]
    if not isinstance(first.get("message"), dict):
        return say("its first choice has no message")
    broken = gave_up(first)
    return say("the engine broke off: finish_reason {broken}", broken=broken) if broken else None


def fell_back_to(gateway: Gateway, answer: Exchange, asked: str | None) -> str:
    """The other model of this gateway that answered in place of ``asked``; empty where it was that one, or an alias."""
    data = answer.json
    answered = data.get("model") if isinstance(data, dict) else None
    if asked is None or not isinstance(answered, str) or same_model(asked, answered):
        return ""
    known = [*(model_ids(gateway.models.json) or []), gateway.domain.route.default, gateway.domain.route.fallback]
    return answered if answered in known else ""


def _model_verdict(gateway: Gateway, answer: Exchange, asked: str | None) -> Verdict:
    data = answer.json
    answered = data.get("model") if isinstance(data, dict) else None
    if asked is None:
        return skipped(say("no model was asked for"))
    if not isinstance(answered, str) or not answered:
        raise CannotMeasure(
            say("the answer does not name its model"),
            likely=say("the gateway leaves the field out"),
            advice=say("compare with the engine's own answer; an answer by another model would go unnoticed"),
        )
    if same_model(asked, answered):
        return passed(say("asked for {asked!r}, answered by {answered!r}", asked=asked, answered=answered))
    if fell_back_to(gateway, answer, asked):
        return failed(
            say("asked for {asked!r}, answered by {answered!r}", asked=asked, answered=answered),
            likely=say("the gateway fell back to another route without saying so: the engine of this one is down"),
            advice=say(
                "ask the engine of {asked!r} directly; look for a fallback rule in the gateway's configuration",
                asked=asked,
            ),
            transcript=transcript(answer),
        )
    return passed(
        say(
            "asked for {asked!r}, answered by {answered!r}, which is not listed: taken for an alias",
            asked=asked,
            answered=answered,
        ),
        warnings=(
            say(
                "{asked!r} is answered by {answered!r}: make sure that it is an alias of it",
                asked=asked,
                answered=answered,
            ),
        ),
    )


def same_model(asked: str, answered: str) -> bool:
    """Whether two names mean one model: provider prefixes, case, and a trailing date or revision do not count."""
    short, long = sorted((_plain(asked), _plain(answered)), key=len)
    rest = long.removeprefix(short)
    return long == short or (rest != long and bool(_REVISION.fullmatch(rest)))


_REVISION = re.compile(
    r"([-_@:](preview|exp|beta))?"
    r"([-_@:](\d{4}[-_.]?\d\d[-_.]?\d\d|\d\d[-_.]\d\d([-_.]\d{4})?|\d{6}|\d{3,4}|latest|default))?"
    r"([-_@:](v\d+(:\d+)?|preview|exp|beta))?"
)
"""What may follow a model's name without making it another: a date, a revision of three or four digits, a tag. Not a
size (``-8b``), a context (``-32k``), a kind (``-mini``), nor a next version (``.1``)."""


def _plain(model: str) -> str:
    return model.rstrip("/").rsplit("/", 1)[-1].lower()


# --- judging a stream ----------------------------------------------------------------------------------------


def _parts(streamed: StreamExchange) -> list[tuple[float, str]]:
    """Arrival (s) and text of each chunk that carries output: content, reasoning, or a tool call."""
    found = []
    for event in streamed.events:
        for choice in choices_in(event.json)[:1]:
            # A "message" in place of the "delta" is read by no client.
            content, thought = said_in({name: choice.get(name) for name in ("delta", "text")})
            delta = choice.get("delta")
            other = isinstance(delta, dict) and (delta.get("tool_calls") or delta.get("refusal"))
            if content or thought or other:
                found.append((event.at_seconds, content or thought))
    return found


def _finished(streamed: StreamExchange) -> bool:
    return any(event.is_done for event in streamed.events) or any(
        choice.get("finish_reason") for event in streamed.events for choice in choices_in(event.json)
    )


def _stream_trouble(gateway: Gateway, streamed: StreamExchange, parts: list[tuple[float, str]]) -> Verdict | None:
    answer = streamed.exchange
    proof = transcript(answer)
    so_far = say(
        "after {count} chunks and {latency_seconds:.2f} s", count=len(parts), latency_seconds=answer.latency_seconds
    )
    logs = say("the logs of the gateway and the engine at this minute; read timeouts of every proxy between")
    mid_error = next(
        (found for found in map(_error_in, streamed.events) if found),
        None,
    )
    if mid_error is not None:
        text = told_error(mid_error)
        return failed(
            say("an error in the middle of the stream, {so_far}: {text}", so_far=so_far, text=quote(text)),
            likely=say("the engine failed on this request after the gateway had said 200"),
            advice=logs,
            transcript=proof,
        )
    torn = next((event for event in streamed.events if _is_torn(event)), None)
    if torn is not None:
        return failed(
            say("a chunk of the stream is no JSON, {so_far}: {data}", so_far=so_far, data=quote(torn.data[:80])),
            likely=say("the gateway or a proxy between cuts or mixes chunks: clients drop the rest or crash on it"),
            advice=logs,
            transcript=proof,
        )
    if answer.fault in (Fault.SILENCE, Fault.SLOW) and answer.status is not None:
        return failed(
            say("the stream stalled {so_far}: {fault_text}", so_far=so_far, fault_text=answer.fault_text),
            likely=say(
                "the engine hangs in mid-answer: preempted, out of memory for its cache, or a card that stopped"
            ),
            advice=say("the engine's log and nvidia-smi/npu-smi at this minute; then again with one request alone"),
            transcript=proof,
        )
    if answer.fault is not None and answer.status is not None:
        if _finished(streamed):
            return None
        return failed(
            say("the stream was cut {so_far}: {fault_text}", so_far=so_far, fault_text=answer.fault_text),
            likely=say("the gateway, a proxy between or the engine closed it: a crash, or a limit on time or size"),
            advice=logs,
            transcript=proof,
        )
    found = gateway.diagnose(answer, "stream")
    if found is not None:
        return found.verdict(answer)
    if not streamed.is_event_stream or (not parts and completion_trouble(answer.json) is None):
        return failed(
            say(
                "{status_line} with {content_type} instead of an event stream",
                status_line=answer.status_line,
                content_type=answer.content_type or say("no content type"),
            ),
            likely=say("the gateway ignores stream = true, or a proxy collects the stream"),
            advice=say("stream = false in the bench file for this gateway, or switch streaming on in it"),
            transcript=proof,
        )
    if not _finished(streamed):
        return failed(
            say("the stream ended {so_far} without finish_reason or [DONE]", so_far=so_far),
            likely=say("it was cut, and a proxy between closed it as if it were whole"),
            advice=logs,
            transcript=proof,
        )
    if not parts and not _counted(streamed):
        return _no_token(answer, proof)
    return None


def _error_in(event: StreamEvent) -> Any:
    """The error that an event tells, in its data or by its kind; None where it tells none."""
    data = event.json
    error = error_in(data)
    if error is not None:
        return error
    if "error" in event.kind.lower():
        return data or event.data
    broken = next(filter(None, map(gave_up, choices_in(data)[:1])), "")
    return say("the engine broke off: finish_reason {broken}", broken=broken) if broken else None


def _is_torn(event: StreamEvent) -> bool:
    """Whether an event that should be a chunk is none. Events of other kinds (pings) and blank ones are free text."""
    return event.kind == "message" and bool(event.data.strip()) and not event.is_done and event.json is None


def _counted(streamed: StreamExchange) -> bool:
    """Whether usage says that tokens were produced, though none of them could be seen as text."""
    return any(usage.completion_tokens for usage in (usage_in(event.json) for event in streamed.events) if usage)


def _no_token(answer: Exchange, proof: str) -> Verdict:
    return failed(
        say("{describe}: the stream came to its end without a single token", describe=describe(answer)),
        likely=say("the gateway drops the engine's chunks, or the engine produced nothing"),
        advice=say("compare with the engine's own stream"),
        transcript=proof,
    )
