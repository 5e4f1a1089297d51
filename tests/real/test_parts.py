"""Each part answers as the matrix takes for granted: when one of these fails, the matrix proves nothing."""

from __future__ import annotations

import contextlib
import json
import signal
import ssl
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from email.utils import parsedate_to_datetime
from pathlib import Path

import httpx
import pytest

from tests.real.parts import gate
from tests.real.parts.dead_ends import UNRESOLVABLE_URL, DeadEnds
from tests.real.parts.gate import (
    KEY_VARIABLE,
    GateResult,
    Outcome,
    assert_fails_at,
    assert_green,
    layer_of,
    write_bench,
)
from tests.real.parts.installs import REPOSITORY
from tests.real.parts.litellm_proxy import LiteLLM, PlainLiteLLM
from tests.real.parts.llama import Llama
from tests.real.parts.mocks import Aimock, Llmock
from tests.real.parts.netns import NetworkNamespace
from tests.real.parts.nginx import BURST, Nginx
from tests.real.parts.process import free_ports, line_after, served
from tests.support.patience import PATIENCE_SECONDS, until

pytestmark = pytest.mark.real

WRONG_KEY = "sk-0123456789abcdef0123456789"
BURST_REQUESTS, BURST_WORKERS = 16, 8


def models(
    url: str, key: str | None, *, verify: ssl.SSLContext | bool = True, timeout: float = PATIENCE_SECONDS
) -> httpx.Response:
    return httpx.get(f"{url}/models", headers=_bearer(key), verify=verify, timeout=timeout, trust_env=False)


def chat(url: str, key: str | None, model: str, *, max_tokens: int = 2, text: str = "Say one word.") -> httpx.Response:
    body = {"model": model, "messages": [{"role": "user", "content": text}], "max_tokens": max_tokens}
    return httpx.post(
        f"{url}/chat/completions", headers=_bearer(key), json=body, timeout=PATIENCE_SECONDS, trust_env=False
    )


def stream(url: str, key: str, model: str, *, max_tokens: int = 3) -> list[str]:
    """The `data:` lines of a streamed answer that asks for usage."""
    body = {
        "model": model,
        "messages": [{"role": "user", "content": "Say one word."}],
        "max_tokens": max_tokens,
        "stream": True,
        "stream_options": {"include_usage": True},
    }
    answer = httpx.post(
        f"{url}/chat/completions", headers=_bearer(key), json=body, timeout=PATIENCE_SECONDS, trust_env=False
    )
    assert answer.status_code == 200, answer.text
    return [line.removeprefix("data: ") for line in answer.text.splitlines() if line.startswith("data: ")]


def burst(url: str, key: str, model: str, *, max_tokens: int = 2) -> list[httpx.Response]:
    """All workers begin each round at one moment, over connections that are there: so requests do overlap."""
    body = {"model": model, "messages": [{"role": "user", "content": "Say one word."}], "max_tokens": max_tokens}
    together = threading.Barrier(BURST_WORKERS)

    def work(one: httpx.Client) -> list[httpx.Response]:
        found = []
        for _ in range(BURST_REQUESTS // BURST_WORKERS):
            together.wait(PATIENCE_SECONDS)
            found.append(one.post(f"{url}/chat/completions", json=body))
        return found

    with contextlib.ExitStack() as stack, ThreadPoolExecutor(BURST_WORKERS) as pool:
        clients = [
            stack.enter_context(httpx.Client(headers=_bearer(key), timeout=PATIENCE_SECONDS, trust_env=False))
            for _ in range(BURST_WORKERS)
        ]
        return [answer for answers in pool.map(work, clients) for answer in answers]


def _bearer(key: str | None) -> dict[str, str]:
    return {} if key is None else {"Authorization": f"Bearer {key}"}


def statuses(answers: list[httpx.Response]) -> dict[int, int]:
    codes = [answer.status_code for answer in answers]
    return {code: codes.count(code) for code in sorted(set(codes))}


# ----------------------------------------------------------------------------------------------------- engine


def test_engine_lists_its_model_and_answers_with_a_usage_that_adds_up(llama: Llama) -> None:
    assert [model["id"] for model in models(llama.url, llama.key).json()["data"]] == [llama.model]
    usage = chat(llama.url, llama.key, llama.model, max_tokens=5).json()["usage"]
    assert usage["completion_tokens"] == 5
    assert usage["prompt_tokens"] + usage["completion_tokens"] == usage["total_tokens"]


@pytest.mark.parametrize("key", [None, WRONG_KEY])
def test_engine_refuses_a_key_with_an_integer_code(llama: Llama, key: str | None) -> None:
    for answer in (models(llama.url, key), chat(llama.url, key, llama.model)):
        assert answer.status_code == 401
        assert answer.json()["error"]["code"] == 401


def test_engine_answers_an_unknown_model_with_the_one_it_has(llama: Llama) -> None:
    answer = chat(llama.url, llama.key, "no-such-model")
    assert answer.status_code == 200
    assert answer.json()["model"] == llama.model


def test_engine_streams_visible_text_then_usage_then_done(llama: Llama) -> None:
    *chunks, done = stream(llama.url, llama.key, llama.model)
    assert done == "[DONE]"
    last = json.loads(chunks[-1])
    assert last["choices"] == []
    assert last["usage"]["completion_tokens"] == 3
    text = [json.loads(chunk)["choices"][0]["delta"].get("content") for chunk in chunks[:-1]]
    assert len("".join(part or "" for part in text)) == 3


def test_engine_of_noise_sometimes_streams_tokens_that_nobody_can_see(llama_noise: Llama) -> None:
    seen = []
    for _ in range(30):
        chunks = [json.loads(chunk) for chunk in stream(llama_noise.url, llama_noise.key, "any", max_tokens=1)[:-1]]
        text = [chunk["choices"][0]["delta"].get("content") for chunk in chunks if chunk["choices"]]
        seen.append((bool("".join(part or "" for part in text)), chunks[-1]["usage"]["completion_tokens"]))
    assert (False, 1) in seen


def test_engine_answers_a_burst_in_full(llama: Llama) -> None:
    answers = burst(llama.url, llama.key, llama.model)
    assert statuses(answers) == {200: BURST_REQUESTS}
    assert len({answer.json()["id"] for answer in answers}) == BURST_REQUESTS


def test_one_slot_works_on_one_request_at_a_time(llama_one_slot: Llama) -> None:
    origin = llama_one_slot.url.removesuffix("/v1")
    props = httpx.get(f"{origin}/props", headers=_bearer(llama_one_slot.key), trust_env=False)
    assert props.json()["total_slots"] == 1
    started = time.monotonic()
    timings = [answer.json()["timings"] for answer in burst(llama_one_slot.url, llama_one_slot.key, "any")]
    wall_ms = (time.monotonic() - started) * 1000
    # By the engine's own clock. Work that nowhere overlaps cannot be more than the time it was done in.
    work_ms = [each["prompt_ms"] + each["predicted_ms"] for each in timings]
    assert sum(work_ms) <= wall_ms
    assert min(each["cache_n"] for each in timings) == max(each["cache_n"] for each in timings) == 0


# -------------------------------------------------------------------------------------------------- dead ends


def test_dead_ends_refuse_and_keep_silent(ends: DeadEnds) -> None:
    with pytest.raises(httpx.ConnectError, match="refused"):
        models(ends.closed_url, None)
    with pytest.raises(httpx.ReadTimeout):
        models(ends.silent_url, None, timeout=0.5)


def test_the_unresolvable_name_does_not_resolve() -> None:
    with pytest.raises(httpx.ConnectError, match=r"Errno -\d"):
        models(UNRESOLVABLE_URL, None)


# ---------------------------------------------------------------------------------------------------- LiteLLM


def test_litellm_serves_its_mock_and_the_engine(litellm: LiteLLM) -> None:
    key = litellm.key()
    listed = {model["id"] for model in models(litellm.url, key).json()["data"]}
    assert {litellm.mock, litellm.engine, litellm.bad_upstream_key} <= listed
    for model in (litellm.mock, litellm.engine):
        answer = chat(litellm.url, key, model)
        assert (answer.status_code, answer.json()["model"]) == (200, model), answer.text
        assert stream(litellm.url, key, model)[-1] == "[DONE]"


def test_litellm_answers_a_burst_in_full(litellm: LiteLLM) -> None:
    assert statuses(burst(litellm.url, litellm.key(), litellm.mock)) == {200: BURST_REQUESTS}


def test_litellm_refuses_wrong_and_missing_keys(litellm: LiteLLM) -> None:
    for key in (litellm.wrong_key(), "short", None):
        for answer in (models(litellm.url, key), chat(litellm.url, key, litellm.mock)):
            assert answer.status_code == 401
            assert answer.json()["error"]["type"] == "auth_error"


def test_plain_litellm_tells_a_wrong_key_as_a_missing_database(litellm_plain: PlainLiteLLM) -> None:
    assert chat(litellm_plain.url, litellm_plain.key, litellm_plain.model).status_code == 200
    wrong = models(litellm_plain.url, WRONG_KEY)
    assert (wrong.status_code, wrong.json()["error"]["type"]) == (400, "no_db_connection")
    assert models(litellm_plain.url, None).status_code == 401


def test_litellm_unknown_model_is_a_400(litellm: LiteLLM) -> None:
    answer = chat(litellm.url, litellm.key(), "no-such-model")
    assert (answer.status_code, answer.json()["error"]["type"]) == (400, "invalid_request_error")


@pytest.mark.parametrize(
    "model, status, words",
    [
        ("bad_upstream_key", 401, "litellm.AuthenticationError"),
        ("dead_upstream", 500, "Connection error"),
        ("hanging_upstream", 408, "litellm.Timeout"),
        ("exhausted_upstream", 429, "litellm.RateLimitError"),
    ],
)
def test_litellm_passes_on_what_is_wrong_upstream(litellm: LiteLLM, model: str, status: int, words: str) -> None:
    answer = chat(litellm.url, litellm.key(), getattr(litellm, model))
    assert answer.status_code == status
    assert words in answer.json()["error"]["message"]
    assert "retry-after" not in answer.headers


def test_litellm_limits_requests_per_minute(litellm: LiteLLM) -> None:
    key = litellm.key("requests")
    answers = [chat(litellm.url, key, litellm.mock) for _ in range(4)]
    assert statuses(answers) == {200: 3, 429: 1}
    assert answers[-1].headers["retry-after"] == "60"
    assert answers[-1].headers["rate_limit_type"] == "requests"
    assert models(litellm.url, key).status_code == 200  # only chat is counted


def test_litellm_limits_tokens_per_minute(litellm: LiteLLM) -> None:
    key = litellm.key("tokens")
    last = [chat(litellm.url, key, litellm.mock) for _ in range(4)][-1]
    assert (last.status_code, last.headers["rate_limit_type"]) == (429, "tokens")


def test_litellm_limits_parallel_requests_and_takes_one_at_a_time(litellm: LiteLLM) -> None:
    key = litellm.key("parallel")
    answers = burst(litellm.url, key, litellm.engine, max_tokens=100)
    refused = [answer for answer in answers if answer.status_code == 429]
    assert refused, statuses(answers)
    assert {answer.headers["rate_limit_type"] for answer in refused} == {"max_parallel_requests"}
    assert chat(litellm.url, key, litellm.engine).status_code == 200


# ------------------------------------------------------------------------------------------------------ nginx


@pytest.mark.parametrize("place", ["", "buffered", "gzip", "key", "text-models", "open-models"])
def test_nginx_passes_on_the_engine(nginx: Nginx, place: str) -> None:
    url = nginx.url(place)
    assert models(url, nginx.key).json()["data"][0]["id"] == nginx.model
    assert chat(url, nginx.key, nginx.model).status_code == 200
    assert stream(url, nginx.key, nginx.model)[-1] == "[DONE]"
    assert chat(url, WRONG_KEY, nginx.model).status_code == 401


@pytest.mark.parametrize(
    "place, status, words",
    [
        ("dead", 502, "502 Bad Gateway"),
        ("slow", 504, "504 Gateway Time-out"),
        ("deny", 403, "403 Forbidden"),
        ("basic", 401, "401 Authorization Required"),
        ("login", 200, "Sign in"),
        ("redirect", 301, "301 Moved Permanently"),
        ("moved", 301, "301 Moved Permanently"),
        ("moved-307", 307, "307 Temporary Redirect"),
        ("maintenance", 503, "Down for maintenance"),
        ("empty", 204, ""),
    ],
)
def test_nginx_answers_for_itself_in_html(nginx: Nginx, place: str, status: int, words: str) -> None:
    for answer in (models(nginx.url(place), nginx.key), chat(nginx.url(place), nginx.key, nginx.model)):
        assert answer.status_code == status
        assert words in answer.text
        assert status == 204 or answer.headers["content-type"] == "text/html"


@pytest.mark.parametrize("place, status", [("engine-dead", 502), ("engine-slow", 504)])
def test_nginx_lists_models_of_an_engine_that_is_gone(nginx: Nginx, place: str, status: int) -> None:
    assert models(nginx.url(place), nginx.key).status_code == 200
    assert chat(nginx.url(place), nginx.key, nginx.model).status_code == status


def test_nginx_says_when_maintenance_ends_as_a_date(nginx: Nginx) -> None:
    ends = parsedate_to_datetime(models(nginx.url("maintenance"), nginx.key).headers["retry-after"])
    assert ends.timestamp() > time.time()


def test_nginx_redirects_stay_on_the_origin(nginx: Nginx) -> None:
    origin = nginx.url().removesuffix("/v1")
    for place, target in (("redirect", "/login/"), ("moved", "/v1/models"), ("moved-307", "/v1/models")):
        assert models(nginx.url(place), nginx.key).headers["location"] == origin + target


def test_nginx_models_may_be_open_or_text(nginx: Nginx) -> None:
    assert models(nginx.url("open-models"), WRONG_KEY).status_code == 200
    assert models(nginx.url("text-models"), nginx.key).headers["content-type"] == "text/plain"
    refused = models(nginx.url("key"), WRONG_KEY)
    assert refused.json()["error"]["code"] == "invalid_api_key"


def test_nginx_serves_one_level_deeper_only(nginx: Nginx) -> None:
    assert models(nginx.too_short_url, nginx.key).status_code == 404
    assert models(nginx.deeper_url, nginx.key).status_code == 200


@pytest.mark.parametrize(
    "place, status, content_type, retry_after",
    [("limit-503", 503, "text/html", None), ("limit-429", 429, "application/json", "2")],
)
def test_nginx_limits_the_rate(
    nginx: Nginx, place: str, status: int, content_type: str, retry_after: str | None
) -> None:
    url = nginx.counted_url(place)
    answers = burst(url, nginx.key, nginx.model) + burst(url, nginx.key, nginx.model)
    refused = [answer for answer in answers if answer.status_code == status]
    assert len(answers) - len(refused) >= BURST
    assert refused, statuses(answers)
    assert refused[0].headers["content-type"] == content_type
    assert refused[0].headers.get("retry-after") == retry_after
    assert models(nginx.counted_url(place), nginx.key).status_code == 200  # another visit, another counter


def test_nginx_limits_connections(nginx: Nginx) -> None:
    url = nginx.counted_url("connections")
    answers = burst(url, nginx.key, nginx.model)
    assert set(statuses(answers)) == {200, 429}
    assert chat(url, nginx.key, nginx.model).status_code == 200


@pytest.mark.parametrize(
    "kind, words",
    [
        ("expired", "certificate has expired"),
        ("wrong_host", "IP address mismatch"),
        ("unknown_issuer", "unable to get local issuer"),
        ("old", "protocol version"),
    ],
)
def test_tls_front_is_refused(nginx: Nginx, kind: str, words: str) -> None:
    with pytest.raises(httpx.ConnectError, match=words):
        models(nginx.tls_url(kind), nginx.key, verify=_trusting(nginx))


def test_good_tls_front_is_trusted_only_with_its_authority(nginx: Nginx) -> None:
    for host in ("127.0.0.1", "localhost"):
        assert models(nginx.tls_url("good", host=host), nginx.key, verify=_trusting(nginx)).status_code == 200
    with pytest.raises(httpx.ConnectError, match="unable to get local issuer"):
        models(nginx.tls_url("good"), nginx.key)


def test_front_that_asks_for_a_client_certificate(nginx: Nginx) -> None:
    without = models(nginx.tls_url("client"), nginx.key, verify=_trusting(nginx))
    assert without.status_code == 400
    assert "No required SSL certificate was sent" in without.text
    context = _trusting(nginx)
    context.load_cert_chain(nginx.certificates.client)
    assert models(nginx.tls_url("client"), nginx.key, verify=context).status_code == 200


def test_http_and_https_mixed_up(nginx: Nginx) -> None:
    with pytest.raises(httpx.ConnectError, match=r"(?i)wrong.version.number"):
        models(nginx.plain_port_as_https, nginx.key, verify=_trusting(nginx))
    assert "plain HTTP request was sent to HTTPS port" in models(nginx.tls_port_as_http, nginx.key).text


def _trusting(nginx: Nginx) -> ssl.SSLContext:
    return ssl.create_default_context(cafile=nginx.certificates.authority)


# ------------------------------------------------------------------------------------------ network namespace

_LOOK = """
import json, sys, httpx
seen = {}
for url in sys.argv[3:]:
    try:
        bearer = {"Authorization": f"Bearer {sys.argv[1]}"}
        answer = httpx.get(f"{url}/models", headers=bearer, timeout=float(sys.argv[2]))
        seen[url] = str(answer.status_code)
    except httpx.TransportError as error:
        seen[url] = f"{type(error).__name__} {error}"
print(json.dumps(seen))
"""


def look_inside(netns: NetworkNamespace, *urls: str, seconds: float = PATIENCE_SECONDS) -> Mapping[str, str]:
    command = [*netns.enter, sys.executable, "-c", _LOOK, netns.engine.key, f"{seconds}", *urls]
    seen: Mapping[str, str] = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
    return seen


def test_namespace_has_a_healthy_engine_by_address_and_by_name(netns: NetworkNamespace) -> None:
    urls = netns.url(), netns.named_url("here")
    assert look_inside(netns, *urls) == dict.fromkeys(urls, "200")


@pytest.mark.parametrize(
    "fate, words",
    [
        ("dropped", "ConnectTimeout"),
        ("reset", "Errno 111"),
        ("unreachable", "Errno 113"),
        ("prohibited", "Errno 113"),
    ],
)
def test_namespace_filters_packets(netns: NetworkNamespace, fate: str, words: str) -> None:
    url = netns.filtered_url(fate)
    seconds = 1.5 if fate == "dropped" else PATIENCE_SECONDS
    assert words in look_inside(netns, url, seconds=seconds)[url]


@pytest.mark.parametrize(
    "label, words",
    [
        ("nxdomain", "Errno -2"),
        ("servfail", "Errno -3"),
        ("refused", "Errno -3"),
        ("silent", "Errno -3"),
        ("empty", "Errno -5"),
        ("here6", "Errno 111"),
    ],
)
def test_namespace_loses_names(netns: NetworkNamespace, label: str, words: str) -> None:
    url = netns.named_url(label)
    assert words in look_inside(netns, url)[url]


# ------------------------------------------------------------------------------------------------------ mocks


def test_aimock_answers_as_openai_does(aimock: Aimock) -> None:
    assert aimock.model in {model["id"] for model in models(aimock.url, aimock.key).json()["data"]}
    assert chat(aimock.url, aimock.key, aimock.model).json()["usage"]["total_tokens"] > 0
    assert stream(aimock.url, aimock.key, aimock.model)[-1] == "[DONE]"
    refused = models(aimock.url, WRONG_KEY)
    assert (refused.status_code, refused.json()["error"]["code"]) == (401, "invalid_api_key")
    assert refused.headers["www-authenticate"].startswith("Bearer ")
    assert chat(aimock.url, aimock.key, aimock.retired_model).json()["error"]["code"] == "model_not_found"
    assert chat(aimock.url, aimock.key, aimock.forbidden_model).status_code == 403


def test_aimock_cuts_a_stream(aimock: Aimock) -> None:
    with pytest.raises(httpx.RemoteProtocolError):
        stream(aimock.url, aimock.key, aimock.cut_model)


def test_aimock_chaos(aimock_with: Callable[..., Aimock]) -> None:
    limited = aimock_with("--chaos-ratelimit", "1")
    answer = chat(limited.url, limited.key, limited.model)
    assert (answer.status_code, answer.headers["retry-after"]) == (429, "1")
    malformed = aimock_with("--chaos-malformed", "1")
    with pytest.raises(json.JSONDecodeError):
        chat(malformed.url, malformed.key, malformed.model).json()
    cut = aimock_with("--chaos-disconnect", "1")
    with pytest.raises(httpx.RemoteProtocolError):
        chat(cut.url, cut.key, cut.model)
    assert models(cut.url, cut.key).status_code == 200


def test_llmock_judges_its_client(llmock: Llmock) -> None:
    assert llmock.verdict()["attempts"] == 0
    llmock.scenario({"type": "fail", "status": 429, "retry_after": 2, "times": 1})
    assert chat(llmock.url, llmock.key, llmock.model).status_code == 429
    assert chat(llmock.url, llmock.key, llmock.model).status_code == 200  # at once: what a bad client does
    assert {finding["code"] for finding in llmock.verdict()["findings"]} == {"retry_after_ignored"}
    assert len(llmock.requests()["requests"]) == 2


# --------------------------------------------------------------------------------- nothing outlives its tests

_STARTS_AND_WAITS = """
import signal, sys, time
from pathlib import Path
signal.signal(signal.SIGINT, signal.default_int_handler)  # what a background shell starts ignores Ctrl-C
from tests.real.parts.process import line_after, served
log = Path(sys.argv[1])
child = "import os, time; print('pid is', os.getpid(), flush=True); time.sleep(600)"
with served([sys.executable, "-c", child], log=log, ready=lambda: line_after(log, "pid is ")) as pid:
    print(pid, flush=True)
    time.sleep(600)
"""


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGTERM, signal.SIGINT])
def test_a_part_ends_with_the_tests_however_they_end(tmp_path: Path, how: signal.Signals) -> None:
    with said_by(_STARTS_AND_WAITS, tmp_path / "server.log") as (tests, said):
        server = int(said)
        assert _alive(server)
        tests.send_signal(how)
    until(lambda: not _alive(server))


def test_a_part_gets_none_of_our_keys(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(KEY_VARIABLE, WRONG_KEY)
    log = tmp_path / "server.log"
    child = "import os, time; print('sees', sorted(os.environ), flush=True); time.sleep(600)"
    with served([sys.executable, "-c", child], log=log, ready=lambda: line_after(log, "sees ")) as seen:
        assert KEY_VARIABLE not in seen
        assert "PATH" in seen


_MAKES_A_NAMESPACE = """
import sys, time
from pathlib import Path
from tests.real.parts.netns import network_namespace
with network_namespace(Path(sys.argv[1])) as made:
    print(made.name, flush=True)
    time.sleep(600)
"""


def test_a_namespace_goes_with_the_tests(netns: NetworkNamespace, tmp_path: Path) -> None:
    with said_by(_MAKES_A_NAMESPACE, tmp_path) as (tests, name):
        places = Path("/run/netns") / name, Path("/etc/netns") / name
        assert all(place.exists() for place in places)
        tests.kill()
    until(lambda: not any(place.exists() for place in places))
    assert Path("/run/netns", netns.name).exists()  # another run's is left alone


@contextlib.contextmanager
def said_by(program: str, argument: Path) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """Run a program that stands for the tests; yields it with the first line it prints, waits for its end."""
    with subprocess.Popen(
        [sys.executable, "-c", program, str(argument)],
        cwd=REPOSITORY,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        start_new_session=True,
    ) as running:
        try:
            assert running.stdout is not None
            yield running, running.stdout.readline().strip()
            running.wait()
        finally:
            running.kill()


def _alive(process: int) -> bool:
    with contextlib.suppress(OSError):
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    return False


def test_free_ports_differ() -> None:
    assert len(set(free_ports(20))) == 20


# ------------------------------------------------------------------------- what is made of the gate's results


def test_bench_holds_the_key_by_reference_only(tmp_path: Path) -> None:
    bench = write_bench(tmp_path, "http://127.0.0.1:1/v1", WRONG_KEY, "a", "b", rate_limit={"requests_per_minute": 3})
    text = (bench.path / "settings.json").read_text()
    assert WRONG_KEY not in text
    assert json.loads(text) == {
        "api_endpoint": "http://127.0.0.1:1/v1",
        "api_key": f"${{{KEY_VARIABLE}}}",
        "model_route": {"default": "a", "fallback": "b"},
        "rate_limit": {"requests_per_minute": 3},
    }
    assert bench.environ == {KEY_VARIABLE: WRONG_KEY}


def test_layers_of_tests() -> None:
    names = ("test_key[domain0]", "test_key_wrong", "test_chat", "test_health", "test_keys")
    assert [layer_of(name) for name in names] == ["key", "key", "chat", None, None]


PASSED = Outcome(outcome="passed", message="")
ALL_PASSED = {f"test_{layer}": PASSED for layer in ("name", "http", "key", "models", "chat", "stream", "concurrency")}
KEY_FAILED = {
    **ALL_PASSED,
    "test_key": Outcome(outcome="failed", message="key: 401 Unauthorized\nlikely: it is wrong\ntry: another"),
    **{
        f"test_{layer}": Outcome(outcome="skipped", message=f"blocked: {layer}: not tried, since key: 401 Unauthorized")
        for layer in ("models", "chat", "stream", "concurrency")
    },
}


def result_of(
    outcomes: Mapping[str, Outcome], *, exit_code: int, stdout: str = "", written: tuple[Path, ...] = ()
) -> GateResult:
    return GateResult(exit_code=exit_code, outcomes=outcomes, stdout=stdout, seconds=0.1, written=written)


def test_green_is_green() -> None:
    assert_green(result_of(ALL_PASSED, exit_code=0), WRONG_KEY)


@pytest.mark.parametrize(
    "result",
    [
        result_of(KEY_FAILED, exit_code=1),
        result_of(ALL_PASSED, exit_code=3),
        result_of({"test_http": PASSED}, exit_code=0),
        result_of(ALL_PASSED, exit_code=0, stdout=f"Authorization: Bearer {WRONG_KEY}"),
    ],
    ids=["failed", "exit code", "nothing ran", "key shown"],
)
def test_what_is_not_green(result: GateResult) -> None:
    with pytest.raises(AssertionError):
        assert_green(result, WRONG_KEY)


def test_layer_that_failed_is_found() -> None:
    assert_fails_at(result_of(KEY_FAILED, exit_code=1), {"key"}, WRONG_KEY)


def test_layer_at_fault_may_be_another_than_the_tests() -> None:
    models_failed = {**KEY_FAILED, "test_key": PASSED, "test_models": KEY_FAILED["test_key"]}
    assert_fails_at(result_of(models_failed, exit_code=1), {"key"}, WRONG_KEY, words=["unauthorized"])
    with pytest.raises(AssertionError, match="does not say 'forbidden'"):
        assert_fails_at(result_of(models_failed, exit_code=1), {"key"}, WRONG_KEY, words=["forbidden"])


@pytest.mark.parametrize(
    "change, layers",
    [
        ({}, {"http"}),
        ({"test_key": Outcome(outcome="failed", message="401 Unauthorized")}, {"key"}),
        ({"test_key": Outcome(outcome="failed", message="key: 401 Unauthorized\nlikely: wrong")}, {"key"}),
        ({"test_key": Outcome(outcome="error", message="key: 401\nlikely: wrong\ntry: another")}, {"key"}),
        ({"test_chat": PASSED}, {"key"}),
        ({"test_chat": Outcome(outcome="skipped", message="no model")}, {"key"}),
        ({"test_chat": Outcome(outcome="failed", message="chat: 401\nlikely: wrong\ntry: another")}, {"key"}),
        ({"test_http": Outcome(outcome="failed", message="chat: 401\nlikely: wrong\ntry: another")}, {"key"}),
    ],
    ids=["other layer", "no layer said", "nothing to try", "error", "went on", "unnamed", "failed too", "outer"],
)
def test_what_does_not_fail_as_expected(change: Mapping[str, Outcome], layers: set[str]) -> None:
    with pytest.raises(AssertionError):
        assert_fails_at(result_of({**KEY_FAILED, **change}, exit_code=1), layers, WRONG_KEY)


def test_key_in_a_written_file_is_found(tmp_path: Path) -> None:
    leak = tmp_path / "report.json"
    leak.write_text(json.dumps({"header": f"Bearer {WRONG_KEY}"}))
    result = result_of(ALL_PASSED, exit_code=0, written=(leak,))
    assert result.places_of(WRONG_KEY) == [str(leak)]
    with pytest.raises(AssertionError):
        assert_green(result, WRONG_KEY)


def test_message_that_junit_cuts_short_is_read_whole(tmp_path: Path) -> None:
    junit = tmp_path / "junit.xml"
    junit.write_text(
        '<testsuites><testsuite><testcase name="test_key"><failure message="AssertionError: key: 401&#10;likely: a'
        '&#10;[+1 more line; full report in element text]">E   AssertionError: key: 401\nE   likely: a\nE   try: b\n'
        "\ntest_02.py:25: FindingFailed</failure></testcase></testsuite></testsuites>"
    )
    (outcome,) = dict(gate.outcomes_in(junit)).values()
    assert outcome == Outcome(outcome="failed", message="key: 401\nlikely: a\ntry: b")
