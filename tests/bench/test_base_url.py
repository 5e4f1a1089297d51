from __future__ import annotations

from pathlib import Path

import httpx
import pytest

from pytest_thermal.bench import is_loopback, normalise_base_url
from tests.bench.bench_files import read_bench


@pytest.mark.parametrize(
    "given,url,said",
    [
        ("http://h/v1", "http://h/v1", None),
        ("https://h/api/v3", "https://h/api/v3", None),
        ("https://h/api/paas/v4", "https://h/api/paas/v4", None),
        ("https://h/compatible-mode/v1", "https://h/compatible-mode/v1", None),
        ("https://h/v1beta", "https://h/v1beta", None),
        ("https://h/v1beta/openai", "https://h/v1beta/openai", None),
        ("http://h/v1/v1", "http://h/v1/v1", None),
        ("http://h/models/x/v1", "http://h/models/x/v1", None),
        ("http://h_x:1/v1", "http://h_x:1/v1", None),
        ("http://[::1]:8000/v1", "http://[::1]:8000/v1", None),
        ("http://[0:0:0:0:0:0:0:1]/v1", "http://[::1]/v1", None),
        ("http://h", "http://h/v1", "/v1 appended"),
        ("http://h/", "http://h/v1", "/v1 appended"),
        ("http://h/v1/", "http://h/v1", "trailing slash removed"),
        ("http://h/v1//", "http://h/v1", "double slash removed, trailing slash removed"),
        ("http://h//gw//v1", "http://h/gw/v1", "double slash removed"),
        ("http://h/api", "http://h/api/v1", "/v1 appended"),
        ("http://h/v1/chat/completions", "http://h/v1", "/chat/completions removed"),
        ("http://h/v1/chat/completions/", "http://h/v1", "trailing slash removed, /chat/completions removed"),
        ("http://h/v1/chat", "http://h/v1", "/chat removed"),
        ("http://h/v1/models", "http://h/v1", "/models removed"),
        ("http://h/v1/models/some-model", "http://h/v1", "/models/some-model removed"),
        ("http://h/v1/completions", "http://h/v1", "/completions removed"),
        ("http://h/v1/embeddings", "http://h/v1", "/embeddings removed"),
        ("http://h/api/paas/v4/chat/completions", "http://h/api/paas/v4", "/chat/completions removed"),
        ("http://h/chat/completions", "http://h/v1", "/chat/completions removed, /v1 appended"),
        ("http://h/openai/models", "http://h/openai/v1", "/models removed, /v1 appended"),
        ("http://h/v1beta/openai/chat/completions", "http://h/v1beta/openai", "/chat/completions removed"),
        (" http://h/v1 ", "http://h/v1", "surrounding spaces or quotes removed"),
        ("'http://h/v1'", "http://h/v1", "surrounding spaces or quotes removed"),
        ("http://h/v1\n", "http://h/v1", "surrounding spaces or quotes removed"),
        ("HTTP://h/v1", "http://h/v1", "scheme in lower case"),
        ("http://Host.Example/v1", "http://host.example/v1", "host name in lower case"),
        ("http:/h/v1", "http://h/v1", "1 slash after http: made two"),
        ("http:///h/v1", "http://h/v1", "3 slashes after http: made two"),
        ("http://h:/v1", "http://h/v1", "colon without a port removed"),
        ("h:8000", "http://h:8000/v1", "http:// added, /v1 appended"),
        ("h:8000/v1", "http://h:8000/v1", "http:// added"),
        ("localhost/v1", "http://localhost/v1", "http:// added"),
        ("10.1.2.3/v1", "http://10.1.2.3/v1", "http:// added"),
        ("[::1]/v1", "http://[::1]/v1", "http:// added"),
        ("gateway.example/v1", "https://gateway.example/v1", "https:// added"),
        ("gateway.example:443/v1", "https://gateway.example:443/v1", "https:// added"),
        ("//gateway.example/v1", "https://gateway.example/v1", "https:// added"),
        ("http://h/v1?key=hush#frag", "http://h/v1", "query and fragment removed"),
        ("http://h?x", "http://h/v1", "query and fragment removed, /v1 appended"),
        ("http://h/v1#", "http://h/v1", "query and fragment removed"),
        ("https：//h／v1", "https://h/v1", "full-width punctuation replaced"),
        (
            "https://bücher.example/v1",
            "https://xn--bcher-kva.example/v1",
            "host name as the DNS knows it (xn--bcher-kva.example)",
        ),
        ("http://h/v1/accounts/@x", "http://h/v1/accounts/@x", None),
        ("http://h/机/v1", "http://h/%E6%9C%BA/v1", None),
    ],
)
def test_address_is_normalised(given: str, url: str, said: str | None) -> None:
    assert normalise_base_url(given) == (url, None if said is None else f"{said}: {url}")
    assert normalise_base_url(url) == (url, None)
    assert str(httpx.URL(url)) == url.replace(":443", "")


@pytest.mark.parametrize(
    "given,why",
    [
        ("", "empty"),
        ("  ", "empty"),
        ("http://", "no host name"),
        (":8000", "no host name"),
        ("http:///", "no host name"),
        ("http://a b/v1", "space"),
        ("http://h/v1\nhttp://i/v1", "space"),
        ("ftp://h", "ftp:// is not http:// or https://"),
        ("htps://h", "https:// is near"),
        ("ws://h", "ws:// is not"),
        ("http://h:0/v1", "port 0 is not between 1 and 65535"),
        ("http://h:65536/v1", "port 65536 is not between"),
        ("http://h:999999999999999999999/v1", "is not between"),
        ("http://h:80a/v1", "the port is not a number"),
        ("http://h:８０/v1", "the port is not a number"),
        ("::1", "stands in brackets"),
        ("http://fe80::1:8000/v1", "stands in brackets"),
        ("http://[::g]/v1", "not an IPv6 address"),
        ("http://[fe80::1%eth0]/v1", "zone"),
        ("http://10.0.0.256/v1", "10.0.0.256 is not an IPv4 address"),
        ("http://1.2.3/v1", "1.2.3 is not an IPv4 address"),
        ("http://a..b/v1", "host name"),
        ("http://-a/v1", "host name"),
        (f"http://{'a' * 64}/v1", "host name"),
        ("http://straße.example/v1", "xn--"),
        ("http://h/../v1", "in the path"),
        ("http://h{x}/v1", "host name"),
    ],
)
def test_address_is_refused(given: str, why: str) -> None:
    with pytest.raises(ValueError) as caught:
        normalise_base_url(given)
    assert why in str(caught.value)


@pytest.mark.parametrize(
    "given",
    [
        "http://user:hunter2@h/v1",
        "http://hunter2@h/v1",
        "user:hunter2@h:80/v1",
        "http://user:hun/ter2@h/v1",
        "http://user:hun?ter2@h/v1",
        "http://h/sk-hunter2hunter2hunter2/v1",
        "sk-hunter2hunter2hunter2",
        "http://sk-hunter2hunter2hunter2/v1",
        "hunter2hunter2hunter2",
    ],
)
def test_credentials_in_an_address_are_refused_unseen(given: str) -> None:
    with pytest.raises(ValueError, match="belongs in the key's own setting") as caught:
        normalise_base_url(given)
    assert "hun" not in str(caught.value)


def test_the_correction_is_said_with_its_place(tmp_path: Path) -> None:
    bench = read_bench(tmp_path, None, '[api]\nbase_url = "Host:8000/v1/models?key=hush"\n')
    assert bench.notes == (
        (
            "config.toml [api] base_url: query and fragment removed, host name in lower case, http:// added, "
            "/models removed: http://host:8000/v1"
        ),
    )


@pytest.mark.parametrize(
    "address, here",
    [
        ("http://127.0.0.1:8000/v1", True),
        ("http://127.9.9.9/v1", True),
        ("https://[::1]:8443/v1", True),
        ("http://localhost:1/v1", True),
        ("http://gateway.localhost/v1", True),
        ("https://gateway.example/v1", False),
        ("http://10.0.0.1/v1", False),
        ("http://localhost.example/v1", False),
        ("http://[::1", False),
        ("", False),
    ],
)
def test_what_leads_to_this_machine_is_known(address: str, here: bool) -> None:
    assert is_loopback(address) is here
