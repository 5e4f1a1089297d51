"""The healthy gateway answers as OpenAI's API does."""

from __future__ import annotations

import json
import re
from email.utils import parsedate_to_datetime
from typing import TYPE_CHECKING, Any

import httpx
import pytest

if TYPE_CHECKING:
    from tests.demo.conftest import Bed, MakeBed


def error_of(response: httpx.Response) -> dict[str, Any]:
    body = response.json()
    assert set(body) == {"error"}
    assert set(body["error"]) == {"message", "type", "param", "code"}
    error: dict[str, Any] = body["error"]
    return error


def test_models_are_listed_in_order(bed: Bed) -> None:
    listing = bed.models().json()
    assert listing["object"] == "list"
    assert [model["id"] for model in listing["data"]] == ["demo-chat", "demo-chat-mini"]
    assert {model["object"] for model in listing["data"]} == {"model"}


def test_one_model_is_shown(make_bed: MakeBed) -> None:
    bed = make_bed(models=("vendor/with-slash",))
    shown = bed.client.get("/models/vendor/with-slash")
    assert (shown.status_code, shown.json()["id"]) == (200, "vendor/with-slash")
    unknown = bed.client.get("/models/nix")
    assert (unknown.status_code, error_of(unknown)["code"]) == (404, "model_not_found")


def test_health_needs_no_key(bed: Bed) -> None:
    url = bed.gateway.url.removesuffix("/v1") + "/health"
    response = bed.new_client(key="").get(url)
    assert (response.status_code, response.json()) == (200, {"status": "ok"})


def test_chat_answers_the_number_that_was_asked_for(bed: Bed) -> None:
    answer = bed.chat("Reply with only the number 4711", max_tokens=5).json()
    (choice,) = answer["choices"]
    assert choice["message"] == {"role": "assistant", "content": "4711"}
    assert choice["finish_reason"] == "stop"
    assert answer["object"] == "chat.completion"
    assert answer["model"] == "demo-chat"
    assert answer["usage"] == {"prompt_tokens": 10, "completion_tokens": 1, "total_tokens": 11}


@pytest.mark.parametrize("limit_name", ["max_tokens", "max_completion_tokens"])
@pytest.mark.parametrize("limit", [1, 5, 63])
def test_a_limit_is_spent_and_kept(bed: Bed, limit_name: str, limit: int) -> None:
    body: dict[str, Any] = {limit_name: limit}
    answer = bed.chat(**body).json()
    assert answer["choices"][0]["finish_reason"] == "length"
    assert answer["usage"]["completion_tokens"] == limit
    assert len(answer["choices"][0]["message"]["content"].split()) == limit


def test_without_a_limit_the_model_stops_by_itself(bed: Bed) -> None:
    answer = bed.chat().json()
    assert answer["choices"][0]["finish_reason"] == "stop"
    assert answer["usage"]["completion_tokens"] == 64


def test_prompt_tokens_grow_with_the_words_of_all_messages(bed: Bed) -> None:
    few = bed.chat("one two").json()["usage"]
    more = bed.chat("one two three four five").json()["usage"]
    assert more["prompt_tokens"] - few["prompt_tokens"] == 3
    assert more["total_tokens"] == more["prompt_tokens"] + more["completion_tokens"]
    parts = [{"type": "text", "text": "Reply with only"}, {"type": "text", "text": "the number 8"}]
    messages = [{"role": "system", "content": "Be brief"}, {"role": "user", "content": parts}]
    answer = bed.chat(messages=messages).json()
    assert answer["choices"][0]["message"]["content"] == "8"
    assert answer["usage"]["prompt_tokens"] > few["prompt_tokens"]


def test_ids_are_unique(bed: Bed) -> None:
    assert len({bed.chat(max_tokens=1).json()["id"] for _ in range(5)}) == 5


def test_stream_with_usage(bed: Bed) -> None:
    stream = bed.stream("Reply with only the number 12", max_tokens=4)
    assert stream.done
    assert stream.tokens == ["12"]
    assert stream.finish_reasons == ["stop"]
    assert stream.events[0]["choices"][0]["delta"] == {"role": "assistant", "content": ""}
    assert len({event["id"] for event in stream.events}) == 1
    assert {event["object"] for event in stream.events} == {"chat.completion.chunk"}
    *others, last = stream.events
    assert last["choices"] == []
    assert last["usage"] == {"prompt_tokens": 10, "completion_tokens": 1, "total_tokens": 11}
    assert all(event["usage"] is None for event in others)


def test_stream_without_usage_says_nothing_of_it(bed: Bed) -> None:
    stream = bed.stream(usage=False, max_tokens=3)
    assert (stream.done, len(stream.tokens), stream.finish_reasons) == (True, 3, ["length"])
    assert not any("usage" in event for event in stream.events)


def test_stream_is_an_event_stream_that_comes_in_pieces(make_bed: MakeBed) -> None:
    bed = make_bed(token_seconds=0.02)
    body = {
        "model": "demo-chat",
        "messages": [{"role": "user", "content": "x"}],
        "stream": True,
        "max_tokens": 4,
    }
    with bed.client.stream("POST", "/chat/completions", json=body) as response:
        assert response.headers["content-type"].startswith("text/event-stream")
        assert len(list(response.iter_raw())) > 3


def test_every_answer_says_that_it_is_simulated(bed: Bed) -> None:
    headers = {"x-request-id": "mine-1"}
    for response in (
        bed.client.get("/models", headers=headers),
        bed.client.get("/nix", headers=headers),
        bed.client.put("/models", headers=headers),
        bed.client.post("/chat/completions", content=b"{", headers=headers),
    ):
        assert response.headers.get_list("server") == ["pytest-thermal-demo"]
        assert response.headers["x-demo"] == "simulated"
        assert response.headers["x-request-id"] == "mine-1"
        assert parsedate_to_datetime(response.headers["date"]).year > 2000
    ids = {bed.models().headers["x-request-id"] for _ in range(2)}
    assert len(ids) == 2


def test_what_is_not_http_is_answered_under_our_name(bed: Bed) -> None:
    import socket  # noqa: PLC0415

    with socket.create_connection(("127.0.0.1", bed.gateway.port)) as sock:
        sock.sendall(b"\x16\x03\x01 this is no HTTP\r\n\r\n")
        head = b"".join(iter(lambda: sock.recv(4096), b""))
    assert head.startswith(b"HTTP/1.1 400 ")
    assert b"server: pytest-thermal-demo\r\n" in head
    assert b"x-demo: simulated\r\n" in head


@pytest.mark.parametrize("authorization", ["", "Bearer sk-wrong-key-0001", "Basic c2s6c2s=", "Bearer"])
def test_only_the_key_opens(bed: Bed, authorization: str) -> None:
    client = bed.new_client(key="")
    for request in (
        client.build_request("GET", "/models"),
        client.build_request("GET", "/models/demo-chat"),
        client.build_request("POST", "/chat/completions", json={}),
    ):
        if authorization:
            request.headers["authorization"] = authorization
        response = client.send(request)
        assert (response.status_code, error_of(response)["code"]) == (401, "invalid_api_key")
        assert response.headers["www-authenticate"].startswith("Bearer ")


def test_a_refused_key_is_not_repeated(bed: Bed) -> None:
    key = "sk-canary-0123456789abcdef"
    response = bed.new_client(key=key).get("/models")
    assert "sk-c" in response.text
    assert key[4:9] not in response.text + str(response.headers)


@pytest.mark.parametrize(
    "body, param",
    [
        (b"{'model': 'x'}", None),
        (b"", None),
        (b"[" * 100_000, None),
        (b"[]", None),
        ({"messages": [{"role": "user", "content": "x"}]}, "model"),
        ({"model": "demo-chat"}, "messages"),
        ({"model": "demo-chat", "messages": []}, "messages"),
        ({"model": "demo-chat", "messages": "x"}, "messages"),
        ({"model": "demo-chat", "messages": [{"content": "x"}]}, "messages[0]"),
        ({"model": "demo-chat", "messages": [{"role": "user", "content": 7}]}, "messages[0].content"),
        ({"max_tokens": 0}, "max_tokens"),
        ({"max_tokens": True}, "max_tokens"),
        ({"max_completion_tokens": "5"}, "max_completion_tokens"),
        ({"max_tokens": 10**9}, "max_tokens"),
        ({"messages": [{"role": "user", "content": "word " * 9000}]}, "messages"),
        ({"stream": "yes"}, "stream"),
        ({"stream_options": {"include_usage": True}}, "stream_options"),
        ({"stream": True, "stream_options": []}, "stream_options"),
        ({"n": 2}, "n"),
    ],
)
def test_a_bad_request_is_refused_by_the_parameter(bed: Bed, body: dict[str, Any] | bytes, param: str) -> None:
    if isinstance(body, dict):
        if "model" not in body and "messages" not in body:
            body = {"messages": [{"role": "user", "content": "x"}], **body}
        if param != "model":
            body = {"model": "demo-chat", **body}
        body = json.dumps(body).encode()
    response = bed.client.post("/chat/completions", content=body)
    assert (response.status_code, error_of(response)["param"]) == (400, param)
    assert bed.gateway.output_tokens_served == 0


def test_a_body_beyond_all_measure_is_refused(bed: Bed) -> None:
    response = bed.client.post("/chat/completions", content=b" " * (5 * 1024 * 1024))
    assert (response.status_code, bed.models().status_code) == (413, 200)


def test_unknown_model_path_and_method(bed: Bed) -> None:
    unknown = bed.chat(model="demo-chta")
    assert (unknown.status_code, error_of(unknown)["code"]) == (404, "model_not_found")
    assert "demo-chta" in error_of(unknown)["message"]
    path = bed.client.get("/models/../nix/")
    assert (path.status_code, error_of(path)["type"]) == (404, "invalid_request_error")
    method = bed.client.get("/chat/completions")
    assert (method.status_code, method.headers["allow"]) == (405, "POST")
    assert error_of(method)["code"] == "method_not_supported"


def test_requests_per_minute(make_bed: MakeBed) -> None:
    bed = make_bed(requests_per_minute=2)
    first, second, third = (bed.chat(max_tokens=1) for _ in range(3))
    assert [r.status_code for r in (first, second, third)] == [200, 200, 429]
    assert [r.headers["x-ratelimit-remaining-requests"] for r in (first, second, third)] == ["1", "0", "0"]
    assert {r.headers["x-ratelimit-limit-requests"] for r in (first, second, third)} == {"2"}
    assert 0 < int(third.headers["retry-after"]) <= 60
    assert re.fullmatch(r"\d+\.\ds", third.headers["x-ratelimit-reset-requests"])
    assert third.headers["rate_limit_type"] == "requests"
    assert error_of(third)["code"] == "rate_limit_exceeded"
    assert bed.models().status_code == 200


def test_tokens_per_minute(make_bed: MakeBed) -> None:
    bed = make_bed(tokens_per_minute=20)
    first = bed.chat("x", max_tokens=10)
    assert (first.status_code, first.headers["x-ratelimit-remaining-tokens"]) == (200, "5")
    second = bed.chat("x", max_tokens=10)
    assert (second.status_code, second.headers["rate_limit_type"]) == (429, "tokens")
    assert "retry-after" in second.headers
    never = bed.chat("x", max_tokens=50)
    assert (never.status_code, "retry-after" in never.headers) == (429, False)


def test_streams_announce_the_limits_too(make_bed: MakeBed) -> None:
    bed = make_bed(requests_per_minute=2)
    response = bed.chat(stream=True, max_tokens=1)
    assert response.headers["x-ratelimit-remaining-requests"] == "1"


def test_parallel_limit(make_bed: MakeBed) -> None:
    bed = make_bed(parallel_limit=3, service_seconds=0.5)
    outcome = [r for r in bed.burst(8) if isinstance(r, httpx.Response)]
    assert sorted(r.status_code for r in outcome) == [200] * 3 + [429] * 5
    assert {r.headers["rate_limit_type"] for r in outcome if r.status_code == 429} == {"max_parallel_requests"}
    assert {r.headers["retry-after"] for r in outcome if r.status_code == 429} == {"1"}
    assert bed.chat(max_tokens=1).status_code == 200


def test_a_burst_gets_each_its_own_answer(make_bed: MakeBed) -> None:
    bed = make_bed(service_seconds=0.3)
    outcome = [r.json() for r in bed.burst(16) if isinstance(r, httpx.Response)]
    assert [answer["choices"][0]["message"]["content"] for answer in outcome] == [str(n) for n in range(16)]
    assert [answer["usage"]["prompt_tokens"] for answer in outcome] == [10 + n for n in range(16)]
    assert len({answer["id"] for answer in outcome}) == 16
    assert bed.gateway.max_parallel_seen == 16


def test_what_was_served_is_told(bed: Bed) -> None:
    bed.models()
    bed.chat(max_tokens=3)
    bed.stream("x", max_completion_tokens=4)
    bed.chat(model="nix")
    rows = [(r.method, r.path, r.status, r.max_tokens, r.stream) for r in bed.gateway.served]
    assert rows == [
        ("GET", "/v1/models", 200, None, False),
        ("POST", "/v1/chat/completions", 200, 3, False),
        ("POST", "/v1/chat/completions", 200, 4, True),
        ("POST", "/v1/chat/completions", 404, None, False),
    ]
    assert (bed.gateway.requests_served, bed.gateway.output_tokens_served) == (4, 7)
    assert bed.gateway.max_parallel_seen == 1


def test_a_client_that_leaves_gives_its_slot_back(make_bed: MakeBed) -> None:
    bed = make_bed(slots=1, token_seconds=30.0)
    body = {"model": "demo-chat", "messages": [{"role": "user", "content": "x"}], "stream": True}
    with bed.client.stream("POST", "/chat/completions", json=body) as response:
        next(response.iter_raw())
    with pytest.raises(httpx.ReadTimeout):
        bed.impatient().chat()
    assert bed.chat("Reply with only the number 3").json()["choices"][0]["message"]["content"] == "3"
