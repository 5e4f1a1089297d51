"""What is read out of an answer: error texts in every shape, usage, model lists, transcripts without secrets."""

from __future__ import annotations

import json
from typing import Any

import httpx
import pytest

from pytest_thermal.access.reading import (
    TRANSCRIPT_LIMIT,
    choices_in,
    describe,
    error_in,
    error_text,
    error_words,
    gave_up,
    model_ids,
    quote,
    said_in,
    told_error,
    transcript,
    usage_in,
)
from pytest_thermal.transport import Exchange, Fault


def answered(body: object, *, status: int = 400, **headers: str) -> Exchange:
    content = body if isinstance(body, bytes) else json.dumps(body).encode()
    return Exchange(
        method="POST",
        url="https://gw.example/v1/chat/completions",
        sent={"model": "模型"},
        status=status,
        reason="Bad Request",
        headers=httpx.Headers({name.replace("_", "-"): value for name, value in headers.items()}),
        body=content,
        latency_seconds=0.0123,
    )


# --- error texts ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "body, text",
    [
        ({"error": {"message": "no", "type": "x", "code": 400}}, "no"),
        ({"error": "no"}, "no"),
        ({"detail": "no"}, "no"),
        ({"detail": [{"loc": ["body"], "msg": "Field required"}]}, "Field required"),
        ({"detail": ["no"]}, "no"),
        ({"detail": {"error": "no"}}, "no"),
        ({"detail": {"message": "no"}}, "no"),
        ({"message": "no"}, "no"),
        ({"msg": "no", "code": 5}, "no"),
        ({"error_code": 110, "error_msg": "no"}, "no"),
        ({"html-message": "no"}, "no"),
        ({"errorMessage": "no"}, "no"),
        ({"title": "no", "status": 400, "type": "about:blank"}, "no"),
        ({"error": "invalid_token", "error_description": "no"}, "invalid_token"),
        ({"errors": [{"code": 1, "message": "no"}], "success": False}, "no"),
        ({"base_resp": {"status_code": 1004, "status_msg": "no"}}, "no"),
        ({"error": {"error": {"message": "no"}}}, "no"),
        ([{"error": {"message": "no"}}], "no"),
        ({"error": {"message": "two\n  lines\t here"}}, "two lines here"),
        (b"<html><head><title>502 Bad\n Gateway</title></head><body>x</body></html>", "502 Bad Gateway"),
        (b"<html><body><h1>No <b>way</b></h1></body></html>", "No way"),
        (b"<html><body><p>Blocked by rule</p></body></html>", "Blocked by rule"),
        (b"plain words", "plain words"),
        (b'"a JSON string"', '"a JSON string"'),
        (b"", ""),
        ({"error": {"message": ""}, "message": "no"}, "no"),
        ({"error": {"message": None}}, '{"error": {"message": null}}'),
        ({"unknown": 1}, '{"unknown": 1}'),
        (b"esc\x1b[2Jape\x00", "esc [2Jape"),
    ],
)
def test_the_gateways_own_words_in_every_shape(body: object, text: str) -> None:
    assert error_text(answered(body)) == text


def test_nesting_without_end_is_cut_off() -> None:
    body: Any = {"message": "deep"}
    for _ in range(200):
        body = {"error": body}
    assert error_text(answered(body)).startswith('{"error": {"error"')


def test_the_kinds_of_an_error_are_among_its_words() -> None:
    found = error_words(answered({"error": {"message": "No", "type": "Auth_Error", "code": 401, "param": "Model"}}))
    assert found == "no auth_error 401 model"
    assert error_words(answered([{"error": {"message": "No", "status": "DENIED"}}])) == "no denied"


def test_only_the_headers_that_tell_are_among_its_words() -> None:
    found = error_words(
        answered(
            {"error": "no"},
            x_envoy_upstream_service_time="5",
            x_envoy_overloaded="true",
            x_ratelimit_remaining_requests="0",
            x_squid_error="ERR_X 0",
            server="upstream",
            set_cookie="upstream=1",
        )
    )
    assert "upstream" not in found
    assert {"x-envoy-overloaded: true", "x-ratelimit-remaining-requests: 0"} <= set(found.split(" x")) | {
        "x" + part for part in found.split(" x")
    }
    assert "err_x" in found


@pytest.mark.parametrize(
    "said, shown",
    [
        ("Incorrect API key provided: sk-abcd****wxyz.", "Incorrect API key provided: sk-a…."),
        ("key sk-proj-************************1234 is bad", "key sk-p… is bad"),
        ("Received API Key = sk-...wxyz, hash", "Received API Key = sk-…, hash"),
        ("Received sk-ab…wxyz", "Received sk-…"),
        ("Your api key: ****1c8e is invalid", "Your api key: … is invalid"),
        ("api key 1a2b****c3d4 refused", "api key 1a2b… refused"),
        ("token 0123456789****abcd", "token 0123…"),
        ("ak-**xy", "ak-…"),
        # What is no key stays as it is.
        ("please wait...then try again", "please wait...then try again"),
        ("re-deploying...done", "re-deploying...done"),
        ("a **bold** word", "a **bold** word"),
        ("well-known...", "well-known..."),
    ],
)
def test_of_a_key_that_is_echoed_only_the_head_is_shown(said: str, shown: str) -> None:
    exchange = answered({"error": {"message": said}})
    assert error_text(exchange) == shown
    assert shown in transcript(exchange)


def test_a_quote_is_one_line_and_no_novel() -> None:
    assert quote(" two\n lines ") == "“two lines”"
    assert quote("") == ""
    assert quote(" \n") == ""
    assert quote("x " * 500) == f"“{'x ' * 99}…”"
    assert quote("x" * 200) == f"“{'x' * 200}”"


def test_a_text_that_is_cut_holds_no_part_of_a_key() -> None:
    key = "sk-live-Abc0123456789"
    for before in range(170, 205):
        assert "sk-" not in quote("w" * before + " " + key + " refused").replace(key, "")
        assert "sk-" not in quote("句" * before + '{"key":"' + key + '"}' + "w" * 40).replace(key, "")
    assert "sk-" not in quote(key + "x" * 200)
    assert quote("句" * 300) == f"“{'句' * 199}…”"


@pytest.mark.parametrize(
    "data, words",
    [
        ({"error": {"message": "too long", "code": 400}}, "too long"),
        ({"error": "too long", "choices": [{}]}, "too long"),
        ({"object": "error", "message": "too long", "code": 400}, "too long"),
        ({"code": 1210, "msg": "too long"}, "too long"),
        ({"detail": [{"msg": "too long", "loc": ["body", "messages"]}]}, "too long"),
        ({"success": False, "message": "too long"}, "too long"),
        ({"error": None}, None),
        ({"error": {"code": 0, "message": ""}, "choices": [{}]}, None),
        ({"error": {"code": None}, "choices": [{}]}, None),
        ({"choices": [], "usage": {}}, None),
        ({"id": "c", "object": "chat.completion.chunk", "choices": [{"delta": {}}]}, None),
        ([], None),
    ],
)
def test_an_error_told_with_status_200(data: object, words: str | None) -> None:
    found = error_in(data)
    assert (None if found is None else told_error(found)) == words


@pytest.mark.parametrize(
    "reason, broken", [("abort", True), ("error", True), ({"type": "abort"}, True), ("stop", False), (None, False)]
)
def test_an_engine_that_broke_off_says_so(reason: object, broken: bool) -> None:
    assert bool(gave_up({"finish_reason": reason})) is broken


# --- describing ----------------------------------------------------------------------------------------------


def test_an_answer_in_one_line() -> None:
    assert describe(answered({"error": "no"})) == "400 Bad Request from POST /v1/chat/completions (“no”)"
    assert describe(answered(b"")) == "400 Bad Request from POST /v1/chat/completions (empty body)"
    page = answered(b"<html><title>Sign in</title>", status=200, server="nginx", via="1.1 px")
    assert "(an HTML page, “Sign in”, server: nginx, via: 1.1 px)" in describe(page)
    assert describe(answered({"data": []}, status=200)).endswith("/chat/completions")


def test_a_fault_in_one_line() -> None:
    gone = Exchange(method="GET", url="http://gw/v1/models", fault=Fault.REFUSED, fault_text="Connection refused")
    assert describe(gone) == "Connection refused from GET /v1/models"


# --- usage ---------------------------------------------------------------------------------------------------


def usage(prompt: Any = 5, completion: Any = 2, total: Any = 7, **more: Any) -> dict[str, Any]:
    return {"usage": {"prompt_tokens": prompt, "completion_tokens": completion, "total_tokens": total, **more}}


@pytest.mark.parametrize(
    "data, adds_up",
    [
        (usage(), True),
        (usage(5.0, 2.0, 7.0), True),
        (usage(0, 0, 0), True),
        (usage(total=8), False),
        (usage(total=10, completion_tokens_details={"reasoning_tokens": 3}), True),
        (usage(completion_tokens_details={"reasoning_tokens": 2}), True),
        (usage(total=11, completion_tokens_details={"reasoning_tokens": 3}), False),
        (usage(completion_tokens_details=None, prompt_tokens_details=None), True),
        (usage(completion_tokens_details=[]), True),
    ],
)
def test_usage_that_is_whole(data: dict[str, Any], adds_up: bool) -> None:
    found = usage_in(data)
    assert found is not None
    assert found.missing == ()
    assert found.adds_up is adds_up
    assert all(isinstance(count, int) for count in (found.prompt_tokens, found.completion_tokens, found.total_tokens))


@pytest.mark.parametrize("odd", ["5", "", None, -1, 5.5, True, [5], {}, float("nan"), float("inf")])
def test_a_count_that_is_no_whole_number_is_missing(odd: Any) -> None:
    found = usage_in(usage(prompt=odd))
    assert found is not None
    assert found.missing == ("prompt_tokens",)
    assert not found.adds_up


@pytest.mark.parametrize("data", [None, [], "x", {}, {"usage": None}, {"usage": []}, {"usage": "5"}, {"usage": 7}])
def test_no_usage(data: Any) -> None:
    assert usage_in(data) is None


def test_usage_in_words() -> None:
    assert str(usage_in(usage())) == "prompt 5, completion 2, total 7"


# --- choices -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "data, number",
    [
        ({"choices": [{"index": 0}, {"index": 1}]}, 2),
        ({"choices": [None, 1, "x", {}]}, 1),
        ({"choices": None}, 0),
        ({"choices": {}}, 0),
        ({"choices": []}, 0),
        ({}, 0),
        (None, 0),
        ([], 0),
    ],
)
def test_choices(data: Any, number: int) -> None:
    assert len(choices_in(data)) == number


@pytest.mark.parametrize(
    "choice, said",
    [
        ({"message": {"content": "OK"}}, ("OK", "")),
        ({"delta": {"content": "OK"}}, ("OK", "")),
        ({"message": {"content": None, "reasoning_content": "hm"}}, ("", "hm")),
        ({"message": {"reasoning": "hm"}}, ("", "hm")),
        ({"message": {"content": [{"type": "text", "text": "O"}, {"type": "text", "text": "K"}, 5]}}, ("OK", "")),
        ({"text": "OK"}, ("OK", "")),
        ({"message": "OK"}, ("", "")),
        ({"message": None, "delta": None}, ("", "")),
        ({"message": {"content": 5}}, ("5", "")),
        ({}, ("", "")),
    ],
)
def test_what_a_choice_says_and_thinks(choice: dict[str, Any], said: tuple[str, str]) -> None:
    assert said_in(choice) == said


# --- model lists ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "data, ids",
    [
        ({"object": "list", "data": [{"id": "a"}, {"id": "b"}]}, ["a", "b"]),
        ({"data": [{"id": "a", "object": "model"}], "models": [{"name": "a"}]}, ["a"]),
        ({"data": [{"id": "a"}, {"id": "b"}, {"id": "a"}]}, ["a", "b"]),
        ({"data": []}, []),
        ({"data": None}, []),
        ({"data": [{"id": ""}]}, None),
        ({"data": [{"id": 5}]}, None),
        ({"data": [{"name": "a"}]}, None),
        ({"data": ["a"]}, None),
        ({"data": [None]}, None),
        ({"data": {"a": 1}}, None),
        ({"models": [{"name": "a"}]}, None),
        ([{"id": "a"}], None),
        (None, None),
        ("a", None),
        ({}, None),
    ],
)
def test_ids_of_a_model_list(data: Any, ids: list[str] | None) -> None:
    assert model_ids(data) == ids


# --- transcripts ---------------------------------------------------------------------------------------------


def test_a_transcript_shows_both_sides() -> None:
    text = transcript(answered({"error": "no"}, server="x", set_cookie="session=secret"))
    assert text.splitlines()[0] == "> POST https://gw.example/v1/chat/completions"
    assert '> {"model": "模型"}' in text
    assert "< 400 Bad Request" in text
    assert "< server: x" in text
    assert '{"error": "no"}' in text
    assert text.endswith("after 12 ms")
    assert "secret" not in text


def test_a_transcript_of_silence() -> None:
    gone = Exchange(method="GET", url="http://gw/v1/models", fault=Fault.SILENCE, fault_text="no answer in time")
    assert transcript(gone).splitlines() == [
        "> GET http://gw/v1/models",
        "",
        "! silence: no answer in time",
        "after 0 ms",
    ]


def test_a_transcript_moves_no_cursor_and_is_no_novel() -> None:
    text = transcript(answered(b"\x1b[2Ja\r\nb\rc\x00\x07" + b"x" * 100_000))
    assert all(character.isprintable() or character == "\n" for character in text)
    assert "a\nb c" in text
    assert len(text) < TRANSCRIPT_LIMIT + 500
