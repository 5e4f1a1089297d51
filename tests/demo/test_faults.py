"""Each fault's answer on the wire, seen with a client that holds what the bench file would hold."""

from __future__ import annotations

import importlib.util
import json
import socket
import ssl
import sys
import time
from collections.abc import Callable
from email.utils import parsedate_to_datetime
from typing import TYPE_CHECKING, Any

import httpx
import pytest

from pytest_thermal.demo import FAULTS, DemoError, DemoGateway
from tests.support.patience import PATIENCE_SECONDS

if TYPE_CHECKING:
    from tests.demo.conftest import Bed, MakeBed

LAYERS = [
    "name",
    "connection",
    "tls",
    "http",
    "key",
    "models",
    "chat",
    "stream",
    "concurrency",
    "quota",
    "scheduler",
    "interconnect",
    "health",
]
CHECKS: dict[str, Callable[[Bed], None]] = {}

Check = Callable[["Bed"], None]


def wire(*names: str) -> Callable[[Check], Check]:
    """The check of the faults of these names."""

    def add(check: Check) -> Check:
        CHECKS.update(dict.fromkeys(names, check))
        return check

    return add


def test_every_fault_has_a_check() -> None:
    assert set(CHECKS) == set(FAULTS)


def test_the_table_is_well_formed() -> None:
    assert all(name == fault.name for name, fault in FAULTS.items())
    assert {fault.layer for fault in FAULTS.values()} <= set(LAYERS)
    order = [LAYERS.index(fault.layer) for fault in FAULTS.values()]
    assert order == sorted(order), "outside in"
    healthy = {name for name, fault in FAULTS.items() if fault.healthy}
    assert healthy == {
        "tls-good",
        "open",
        "models-text",
        "reasoning",
        "ignores-max-tokens",
        "max-completion-tokens-only",
        "stream-usage-beside-choices",
        "stream-comments",
    }
    with pytest.raises(TypeError):
        FAULTS["x"] = FAULTS["open"]  # type: ignore[index]


@pytest.mark.parametrize("name", FAULTS)
def test_fault(name: str, make_bed: MakeBed, request: pytest.FixtureRequest) -> None:
    if name in ("silence", "chat-hang", "stream-stall"):
        request.getfixturevalue("hush")
    CHECKS[name](make_bed(name))


@pytest.mark.parametrize(
    "name, near",
    [("key-worng", "key-wrong"), ("stream", "stream-cut"), ("429", "burst-429"), ("zzz", "unresolvable")],
)
def test_an_unknown_fault_is_refused_with_near_names(name: str, near: str) -> None:
    with pytest.raises(ValueError, match=near) as refusal:
        DemoGateway(fault=name)
    assert repr(name) in str(refusal.value)


def gets_answers_elsewhere(bed: Bed) -> None:
    """Models and chat are as they should be, so that the layer before is not to blame."""
    assert [model["id"] for model in bed.models().json()["data"]] == ["demo-chat", "demo-chat-mini"]
    answer = bed.chat("Reply with only the number 5", max_completion_tokens=9).json()
    assert answer["choices"][0]["message"]["content"] == "5"


def is_html(response: httpx.Response, status: int) -> bool:
    type_is_html = response.headers["content-type"].startswith("text/html")
    return response.status_code == status and type_is_html and "<html>" in response.text


def message_of(response: httpx.Response) -> str:
    return str(response.json()["error"]["message"])


# -------------------------------------------------------------------------------- name, connection, TLS, HTTP


@wire("unresolvable")
def _unresolvable(bed: Bed) -> None:
    assert bed.gateway.url == f"http://gateway.invalid:{bed.gateway.port}/v1"


@wire("refused")
def _refused(bed: Bed) -> None:
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(("127.0.0.1", bed.gateway.port))


@wire("silent-connection")
def _silent_connection(bed: Bed) -> None:
    if sys.platform != "linux":
        pytest.skip("only Linux drops what its queue has no place for")
    with pytest.raises(httpx.ConnectTimeout):
        bed.impatient().models()


@wire("plain-for-https")
def _plain_for_https(bed: Bed) -> None:
    assert bed.gateway.url.startswith("https://127.0.0.1:")
    with pytest.raises(httpx.ConnectError, match=r"WRONG_VERSION_NUMBER|record layer failure"):
        bed.models()


@wire("tls-good")
def _tls_good(bed: Bed) -> None:
    assert bed.gateway.url.startswith("https://127.0.0.1:")
    gets_answers_elsewhere(bed)


@wire("tls-expired")
def _tls_expired(bed: Bed) -> None:
    with pytest.raises(httpx.ConnectError, match="certificate has expired"):
        bed.models()


@wire("tls-wrong-host")
def _tls_wrong_host(bed: Bed) -> None:
    with pytest.raises(httpx.ConnectError, match=r"IP address mismatch|Hostname mismatch"):
        bed.models()


@wire("tls-unknown-issuer")
def _tls_unknown_issuer(bed: Bed) -> None:
    assert bed.gateway.ca_file is None
    with pytest.raises(httpx.ConnectError, match="unable to get local issuer certificate"):
        bed.models()


@wire("silence")
def _silence(bed: Bed) -> None:
    for ask in (bed.models, bed.chat):
        with pytest.raises(httpx.ReadTimeout):
            ask()


@wire("not-http")
def _not_http(bed: Bed) -> None:
    with socket.create_connection(("127.0.0.1", bed.gateway.port)) as sock:
        assert sock.recv(100) == b"SSH-2.0-OpenSSH_9.2\r\n"
    with pytest.raises(httpx.RemoteProtocolError):
        bed.models()


@wire("cut-connection")
def _cut_connection(bed: Bed) -> None:
    with pytest.raises(httpx.RemoteProtocolError, match="disconnected without sending a response"):
        bed.models()


@wire("proxy-page")
def _proxy_page(bed: Bed) -> None:
    assert is_html(bed.models(), 200)
    assert is_html(bed.chat(), 200)


@wire("bad-gateway")
def _bad_gateway(bed: Bed) -> None:
    assert is_html(bed.models(), 502)
    assert "502 Bad Gateway" in bed.models().text


@wire("unavailable")
def _unavailable(bed: Bed) -> None:
    response = bed.models()
    assert is_html(response, 503)
    date = parsedate_to_datetime(response.headers["retry-after"])
    waited = (date - parsedate_to_datetime(response.headers["date"])).total_seconds()
    assert 119 - response.elapsed.total_seconds() <= waited <= 121


@wire("gateway-timeout")
def _gateway_timeout(bed: Bed) -> None:
    assert is_html(bed.models(), 504)


@wire("redirect")
def _redirect(bed: Bed) -> None:
    response = bed.models()
    assert (response.status_code, response.headers["location"]) == (302, "/login?next=/v1/models")
    assert is_html(bed.client.get("/models", follow_redirects=True), 200)


@wire("empty")
def _empty(bed: Bed) -> None:
    response = bed.models()
    assert (response.status_code, response.content) == (204, b"")


# -------------------------------------------------------------------------------------------------------- key


def key_opens(bed: Bed) -> bool:
    return bed.new_client(key=bed.gateway.gateway_key).get("/models").status_code == 200


@wire("key-wrong")
def _key_wrong(bed: Bed) -> None:
    assert bed.gateway.key != bed.gateway.gateway_key
    assert len(bed.gateway.key) == len(bed.gateway.gateway_key)
    for response in (bed.models(), bed.chat()):
        assert (response.status_code, response.json()["error"]["code"]) == (401, "invalid_api_key")
        assert "Incorrect API key" in message_of(response)
        assert "www-authenticate" in response.headers
    assert key_opens(bed)


@wire("key-missing")
def _key_missing(bed: Bed) -> None:
    assert bed.gateway.key == ""
    assert bed.models().status_code == 401
    assert "didn't provide" in message_of(bed.models())
    assert key_opens(bed)


@wire("key-scope")
def _key_scope(bed: Bed) -> None:
    assert bed.gateway.key == bed.gateway.gateway_key
    for response in (bed.models(), bed.chat()):
        assert response.status_code == 403
        assert "insufficient permissions" in message_of(response)
    assert bed.new_client(key="sk-wrong-key-0001").get("/models").status_code == 401


@wire("key-no-db")
def _key_no_db(bed: Bed) -> None:
    response = bed.models()
    assert (response.status_code, response.json()["error"]["type"]) == (400, "no_db_connection")
    assert key_opens(bed)


@wire("key-string-error")
def _key_string_error(bed: Bed) -> None:
    response = bed.models()
    assert (response.status_code, response.json()) == (401, {"error": "Unauthorized"})
    assert key_opens(bed)


@wire("key-number-code")
def _key_number_code(bed: Bed) -> None:
    response = bed.models()
    assert (response.status_code, response.json()["error"]["code"]) == (401, 401)
    assert key_opens(bed)


@wire("key-detail")
def _key_detail(bed: Bed) -> None:
    response = bed.models()
    assert (response.status_code, set(response.json())) == (401, {"detail"})
    assert key_opens(bed)


@wire("key-only-on-chat")
def _key_only_on_chat(bed: Bed) -> None:
    assert bed.new_client(key="").get("/models").status_code == 200
    assert bed.models().status_code == 200
    assert bed.chat().status_code == 401


@wire("upstream-key")
def _upstream_key(bed: Bed) -> None:
    assert bed.models().status_code == 200
    response = bed.chat()
    assert response.status_code == 401
    assert message_of(response).startswith("litellm.AuthenticationError: ")
    assert "upstream" in message_of(response)


@wire("open")
def _open(bed: Bed) -> None:
    gets_answers_elsewhere(bed)
    assert bed.new_client(key="").get("/models").status_code == 200


# ----------------------------------------------------------------------------------------------------- models


@wire("path-too-deep")
def _path_too_deep(bed: Bed) -> None:
    assert bed.gateway.url.endswith("/v1/v1")
    assert (bed.models().status_code, message_of(bed.models())) == (404, "Invalid URL (GET /v1/v1/models)")
    right = bed.gateway.url.removesuffix("/v1") + "/models"
    assert bed.client.get(right).status_code == 200


@wire("path-too-short")
def _path_too_short(bed: Bed) -> None:
    assert bed.models().status_code == 404
    right = bed.gateway.url.removesuffix("/v1") + "/api/v1/models"
    assert bed.client.get(right).status_code == 200


@wire("models-missing")
def _models_missing(bed: Bed) -> None:
    assert (bed.models().status_code, bed.chat().status_code) == (404, 200)
    assert "Invalid URL" in message_of(bed.models())


@wire("models-shape")
def _models_shape(bed: Bed) -> None:
    listing = bed.models().json()
    assert set(listing) == {"models"}
    assert listing["models"][0]["id"] == "demo-chat"


@wire("route-missing")
def _route_missing(bed: Bed) -> None:
    assert [model["id"] for model in bed.models().json()["data"]] == ["demo-chat-2", "demo-chat-mini"]
    assert (bed.chat().status_code, bed.chat(model="demo-chat-2").status_code) == (404, 200)


@wire("models-text")
def _models_text(bed: Bed) -> None:
    assert bed.models().headers["content-type"].startswith("text/plain")
    gets_answers_elsewhere(bed)


# ------------------------------------------------------------------------------------------------------- chat


@wire("model-not-found")
def _model_not_found(bed: Bed) -> None:
    assert "demo-chat" in bed.models().text
    response = bed.chat()
    assert (response.status_code, response.json()["error"]["code"]) == (404, "model_not_found")


@wire("model-not-found-400")
def _model_not_found_400(bed: Bed) -> None:
    assert "demo-chat" in bed.models().text
    response = bed.chat()
    assert response.status_code == 400
    assert "Invalid model name passed in model=demo-chat" in message_of(response)


@wire("wrong-model")
def _wrong_model(bed: Bed) -> None:
    assert bed.chat().json()["model"] == "demo-chat-mini"
    assert bed.chat(model="demo-chat-mini").json()["model"] == "demo-chat"
    assert {event["model"] for event in bed.stream(max_tokens=2).events} == {"demo-chat-mini"}


@wire("no-choices")
def _no_choices(bed: Bed) -> None:
    answer = bed.chat().json()
    assert (answer["choices"], answer["usage"]["completion_tokens"]) == ([], 64)
    assert bed.stream(max_tokens=2).tokens == []


@wire("no-usage")
def _no_usage(bed: Bed) -> None:
    answer = bed.chat().json()
    assert "usage" not in answer
    assert answer["choices"]
    assert bed.stream(max_tokens=2).usages == []


@wire("usage-sum")
def _usage_sum(bed: Bed) -> None:
    for usage in (bed.chat().json()["usage"], bed.stream(max_tokens=2).usages[0]):
        assert usage["total_tokens"] == usage["prompt_tokens"] + usage["completion_tokens"] + 7


@wire("engine-dead")
def _engine_dead(bed: Bed) -> None:
    assert bed.models().status_code == 200
    response = bed.chat()
    assert response.status_code == 500
    assert message_of(response).startswith("EngineCore encountered an issue")


@wire("chat-html")
def _chat_html(bed: Bed) -> None:
    assert bed.models().status_code == 200
    assert is_html(bed.chat(), 200)


@wire("chat-hang")
def _chat_hang(bed: Bed) -> None:
    assert bed.models().status_code == 200
    with pytest.raises(httpx.ReadTimeout):
        bed.chat()
    assert [r.status for r in bed.gateway.served][:1] == [200]


@wire("reasoning")
def _reasoning(bed: Bed) -> None:
    answer = bed.chat("Reply with only the number 5", max_tokens=6).json()
    (choice,) = answer["choices"]
    assert choice["message"]["content"] is None
    assert len(choice["message"]["reasoning_content"].split()) == 6
    assert choice["finish_reason"] == "length"
    assert answer["usage"]["completion_tokens"] == 6
    assert answer["usage"]["completion_tokens_details"] == {"reasoning_tokens": 6}
    stream = bed.stream(max_tokens=3)
    assert (stream.tokens, stream.done, stream.finish_reasons) == ([], True, ["length"])
    thoughts = [e["choices"][0]["delta"].get("reasoning_content") for e in stream.events if e["choices"]]
    assert len([thought for thought in thoughts if thought]) == 3
    patient = bed.chat("Reply with only the number 5", max_tokens=100).json()
    assert patient["choices"][0]["message"]["content"] == "5"
    assert (patient["usage"]["completion_tokens"], patient["choices"][0]["finish_reason"]) == (49, "stop")


@wire("ignores-max-tokens")
def _ignores_max_tokens(bed: Bed) -> None:
    answer = bed.chat("Reply with only the number 5", max_tokens=1).json()
    assert answer["usage"]["completion_tokens"] == 20
    assert answer["choices"][0]["message"]["content"].split()[0] == "5"
    assert len(bed.stream(max_tokens=1).tokens) == 20


@wire("max-completion-tokens-only")
def _max_completion_tokens_only(bed: Bed) -> None:
    error = bed.chat(max_tokens=1)
    assert (error.status_code, error.json()["error"]["code"]) == (400, "unsupported_parameter")
    assert (error.json()["error"]["param"], "max_completion_tokens" in message_of(error)) == (
        "max_tokens",
        True,
    )
    gets_answers_elsewhere(bed)


# ----------------------------------------------------------------------------------------------------- stream


def cut_in_the_middle(bed: Bed, error: type[httpx.TransportError], **body: Any) -> str:
    """What came of a stream before the error."""
    body = {"model": "demo-chat", "messages": [{"role": "user", "content": "x"}], "stream": True, **body}
    came = ""
    with bed.client.stream("POST", "/chat/completions", json=body) as response:
        try:
            for text in response.iter_text():
                came += text
        except error:
            return came
    pytest.fail(f"the stream ended without {error.__name__}")


@wire("stream-cut")
def _stream_cut(bed: Bed) -> None:
    for limit in (1, 10):
        came = cut_in_the_middle(bed, httpx.RemoteProtocolError, max_tokens=limit)
        assert came.count('"content": "') == 1 + min(limit, 2)
        assert "finish_reason" in came
        assert '"finish_reason": "' not in came
    gets_answers_elsewhere(bed)


@wire("stream-truncated")
def _stream_truncated(bed: Bed) -> None:
    stream = bed.stream(max_tokens=10)
    assert (len(stream.tokens), stream.finish_reasons, stream.usages, stream.done) == (2, [], [], False)
    gets_answers_elsewhere(bed)


@wire("stream-stall")
def _stream_stall(bed: Bed) -> None:
    gets_answers_elsewhere(bed)
    came = cut_in_the_middle(bed, httpx.ReadTimeout, max_tokens=10)
    assert came.count('"content": "') == 3


@wire("stream-no-done")
def _stream_no_done(bed: Bed) -> None:
    stream = bed.stream(max_tokens=3)
    assert (len(stream.tokens), stream.finish_reasons, stream.done) == (3, ["length"], False)
    assert stream.usages[0]["completion_tokens"] == 3


@wire("stream-no-usage")
def _stream_no_usage(bed: Bed) -> None:
    stream = bed.stream(max_tokens=3)
    assert (len(stream.tokens), stream.finish_reasons, stream.usages, stream.done) == (
        3,
        ["length"],
        [],
        True,
    )
    assert "usage" in bed.chat().json()


@wire("stream-usage-beside-choices")
def _stream_usage_beside_choices(bed: Bed) -> None:
    stream = bed.stream(max_tokens=3)
    assert (len(stream.tokens), stream.finish_reasons, stream.done) == (3, ["length"], True)
    assert stream.events[-1]["choices"][0]["finish_reason"] == "length"
    assert stream.events[-1]["usage"]["completion_tokens"] == 3
    assert bed.stream(max_tokens=3, usage=False).usages == []


@wire("stream-ignored")
def _stream_ignored(bed: Bed) -> None:
    response = bed.chat(stream=True, stream_options={"include_usage": True}, max_tokens=2)
    assert response.headers["content-type"] == "application/json"
    assert response.json()["object"] == "chat.completion"


@wire("stream-error-event")
def _stream_error_event(bed: Bed) -> None:
    stream = bed.stream(max_tokens=10)
    assert (len(stream.tokens), stream.finish_reasons) == (2, [])
    assert stream.events[-1]["error"]["code"] == 500


@wire("stream-buffered")
def _stream_buffered(bed: Bed) -> None:
    body = {"model": "demo-chat", "messages": [{"role": "user", "content": "x"}], "stream": True}
    with bed.client.stream("POST", "/chat/completions", json=body) as response:
        first = next(response.iter_text())
    assert "chat.completion.chunk" in first, "the first piece"
    assert first.count("data: ") > 40, "is as good as all of it"
    whole = bed.stream(max_tokens=3)
    assert (len(whole.tokens), whole.finish_reasons, whole.done) == (3, ["length"], True)


@wire("stream-comments")
def _stream_comments(bed: Bed) -> None:
    body = {
        "model": "demo-chat",
        "messages": [{"role": "user", "content": "x"}],
        "stream": True,
        "max_tokens": 4,
    }
    with bed.client.stream("POST", "/chat/completions", json=body) as response:
        pieces = list(response.iter_raw())
    whole = b"".join(pieces).decode()
    assert max(map(len, pieces[1:])) <= 9, "small pieces"
    assert any(is_broken(piece) for piece in pieces), "that cut letters in two"
    assert ": keep-alive\r\n\r\n" in whole
    assert "event: message\r\n" in whole
    data = [line.removeprefix("data: ") for line in whole.split("\r\n") if line.startswith("data: ")]
    assert data[-1] == "[DONE]"
    events = [json.loads(text) for text in data[:-1]]
    assert len([e for e in events if e["choices"][0]["delta"].get("content")]) == 4
    assert "冷却" in events[1]["choices"][0]["delta"]["content"]
    assert bed.stream("Reply with only the number 5", max_tokens=4).tokens == ["5"]


def is_broken(piece: bytes) -> bool:
    try:
        piece.decode()
    except UnicodeDecodeError:
        return True
    return False


# ------------------------------------------------------------------------------------------------ concurrency


def refusals(bed: Bed, status: int) -> list[httpx.Response]:
    """Those of eight chats at a time that were not served."""
    assert [bed.chat(max_tokens=1).status_code for _ in range(4)] == [200] * 4, "one at a time is all right"
    outcome = [r for r in bed.burst(8) if isinstance(r, httpx.Response)]
    assert sorted(r.status_code for r in outcome) == [200] * 2 + [status] * 6
    return [r for r in outcome if r.status_code == status]


@wire("burst-429")
def _burst_429(bed: Bed) -> None:
    for response in refusals(bed, 429):
        assert "retry-after" not in response.headers
        assert response.json()["error"]["type"] == "max_parallel_requests"
        assert response.headers["rate_limit_type"] == "max_parallel_requests"


@wire("burst-429-html")
def _burst_429_html(bed: Bed) -> None:
    assert all(is_html(response, 429) for response in refusals(bed, 429))


@wire("burst-408")
def _burst_408(bed: Bed) -> None:
    for response in refusals(bed, 408):
        assert response.content == b""
        assert "retry-after" not in response.headers


@wire("burst-503")
def _burst_503(bed: Bed) -> None:
    for response in refusals(bed, 503):
        assert response.headers["x-envoy-overloaded"] == "true"
        assert response.headers["content-type"].startswith("text/plain")
        assert "overflow" in response.text


@wire("burst-drop")
def _burst_drop(bed: Bed) -> None:
    assert [bed.chat(max_tokens=1).status_code for _ in range(5)] == [200] * 5
    assert bed.statuses(8) == [200] * 4 + ["ReadError"] * 4


@wire("swapped")
def _swapped(bed: Bed) -> None:
    assert bed.chat("Reply with only the number 5").json()["choices"][0]["message"]["content"] == "5"
    answers = [r.json() for r in bed.burst(8) if isinstance(r, httpx.Response)]
    numbers = [int(answer["choices"][0]["message"]["content"]) for answer in answers]
    prompts = [answer["usage"]["prompt_tokens"] - 10 for answer in answers]
    assert prompts == numbers, "the usage goes with the words"
    wrong = [asked for asked, got in enumerate(numbers) if asked != got]
    assert len(wrong) >= 2
    assert all(numbers[numbers[asked]] == asked for asked in wrong), "each other's"
    assert len({answer["id"] for answer in answers}) == 8


@wire("duplicated")
def _duplicated(bed: Bed) -> None:
    answers = [r.json() for r in bed.burst(8, max_tokens=5) if isinstance(r, httpx.Response)]
    assert len(answers) == 8
    assert len({answer["id"] for answer in answers}) == 1
    assert len({answer["choices"][0]["message"]["content"] for answer in answers}) == 1
    other = bed.chat("Reply with only the number 77", max_tokens=6).json()
    assert other["choices"][0]["message"]["content"] == "77"


@wire("burst-500")
def _burst_500(bed: Bed) -> None:
    assert [bed.chat(max_tokens=1).status_code for _ in range(6)] == [200] * 6
    assert bed.statuses(8) == [200] * 7 + [500]


# ------------------------------------------------------------------------------------------------------ quota


def over_quota(bed: Bed) -> httpx.Response:
    """The fourth of four chats; requests for models are not counted."""
    bed.models()
    *first, fourth = [bed.chat(max_tokens=1) for _ in range(4)]
    assert [r.status_code for r in first] == [200] * 3
    assert (fourth.status_code, bed.models().status_code) == (429, 200)
    return fourth


@wire("quota-429")
def _quota_429(bed: Bed) -> None:
    begin = time.monotonic()
    response = over_quota(bed)
    assert 60 - (time.monotonic() - begin) <= int(response.headers["retry-after"]) <= 60
    assert response.headers["rate_limit_type"] == "requests"
    assert response.headers["x-ratelimit-limit-requests"] == "3"


@wire("quota-429-date")
def _quota_429_date(bed: Bed) -> None:
    begin = time.monotonic()
    response = over_quota(bed)
    wait = parsedate_to_datetime(response.headers["retry-after"]) - parsedate_to_datetime(response.headers["date"])
    assert 59 - (time.monotonic() - begin) <= wait.total_seconds() <= 62


@wire("quota-429-bare")
def _quota_429_bare(bed: Bed) -> None:
    response = over_quota(bed)
    assert "retry-after" not in response.headers
    assert response.headers["content-type"].startswith("text/plain")
    assert response.text == "local_rate_limited"


@wire("quota-low")
def _quota_low(bed: Bed) -> None:
    for response in [bed.models(), *(bed.chat() for _ in range(5))]:
        assert response.status_code == 200
        assert response.headers["x-ratelimit-limit-requests"] == "3"
        assert response.headers["x-ratelimit-limit-tokens"] == "100"


# ------------------------------------------------------------------------------------------ scheduler, health


def seconds_of(ask: Callable[[], object]) -> float:
    begin = time.monotonic()
    ask()
    return time.monotonic() - begin


@wire("one-slot")
def _one_slot(bed: Bed) -> None:
    assert seconds_of(lambda: bed.burst(4)) > 4 * 0.25
    assert bed.gateway.max_parallel_seen == 4


@wire("slow")
def _slow(bed: Bed) -> None:
    assert seconds_of(lambda: bed.chat(max_tokens=1)) > 1.5


@wire("overload")
def _overload(bed: Bed) -> None:
    assert bed.statuses(8) == [200] * 8
    assert bed.gateway.max_parallel_seen == 8


def test_overload_grows_with_the_square(make_bed: MakeBed) -> None:
    bed = make_bed("overload", service_seconds=0.02)
    assert seconds_of(lambda: bed.burst(8)) > 0.02 * 8**2


@wire("flapping")
def _flapping(bed: Bed) -> None:
    assert [bed.chat(max_tokens=1).status_code for _ in range(4)] == [200] * 4
    statuses = []
    for _ in range(5):
        statuses.append(bed.models().status_code)
        assert bed.chat(max_tokens=1).status_code == 200
    assert statuses == [503, 503, 503, 503, 200]


@wire("dies")
def _dies(bed: Bed) -> None:
    assert [bed.models().status_code for _ in range(6)] == [200] * 6
    with pytest.raises(httpx.ConnectError):
        bed.models()
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(("127.0.0.1", bed.gateway.port))


def test_dying_takes_the_kept_connection_along(make_bed: MakeBed) -> None:
    bed = make_bed("dies")
    with httpx.Client(base_url=bed.gateway.url, trust_env=False, timeout=PATIENCE_SECONDS) as client:
        assert [client.get("/models").status_code for _ in range(6)] == [401] * 6
        with pytest.raises(httpx.TransportError):
            client.get("/models")


@pytest.mark.parametrize(
    "name", [name for name, fault in FAULTS.items() if fault.layer == "tls" and "plain" not in name]
)
def test_tls_faults_say_what_they_need(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    assert importlib.util.find_spec("trustme"), "the test bench has it"
    monkeypatch.setitem(sys.modules, "trustme", None)
    with pytest.raises(DemoError, match="needs trustme") as refusal:
        DemoGateway(fault=name)
    assert name in str(refusal.value)
    assert "pip install" in str(refusal.value)


def test_the_authority_is_kept_as_long_as_the_gateway() -> None:
    with DemoGateway(fault="tls-good") as gateway:
        path = gateway.ca_file
        assert path is not None
        assert ssl.create_default_context(cafile=str(path)).cert_store_stats()["x509_ca"] == 1
    assert not path.exists()
    assert gateway.ca_file is None
