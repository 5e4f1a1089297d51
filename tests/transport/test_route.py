"""Which way a request goes: the variables for proxies as a site sets them."""

from __future__ import annotations

import pytest

from pytest_thermal.transport import route_to

PROXY = "http://proxy.corp.example:3128"


@pytest.mark.parametrize(
    "url, scheme, host, port, origin",
    [
        ("http://gw.example/v1", "http", "gw.example", 80, "http://gw.example:80"),
        ("https://gw.example/v1", "https", "gw.example", 443, "https://gw.example:443"),
        ("https://gw.example:8443/v1", "https", "gw.example", 8443, "https://gw.example:8443"),
        ("http://[::1]:8000/v1", "http", "::1", 8000, "http://[::1]:8000"),
        ("https://[2001:db8::7]/v1", "https", "2001:db8::7", 443, "https://[2001:db8::7]:443"),
    ],
)
def test_where_an_address_leads(url: str, scheme: str, host: str, port: int, origin: str) -> None:
    route = route_to(url, {})
    assert (route.scheme, route.host, route.port, route.origin) == (scheme, host, port, origin)
    assert route.proxy is None
    assert route.hop == (host, port)
    assert route.uses_tls is (scheme == "https")


@pytest.mark.parametrize(
    "url, environ, variable",
    [
        ("http://gw.example/v1", {"http_proxy": PROXY}, "http_proxy"),
        ("http://gw.example/v1", {"HTTP_PROXY": PROXY}, "HTTP_PROXY"),
        ("http://gw.example/v1", {"HTTP_PROXY": "http://other:1", "http_proxy": PROXY}, "http_proxy"),
        ("https://gw.example/v1", {"https_proxy": PROXY}, "https_proxy"),
        ("https://gw.example/v1", {"HTTPS_PROXY": PROXY, "http_proxy": "http://other:1"}, "HTTPS_PROXY"),
        ("https://gw.example/v1", {"all_proxy": PROXY}, "all_proxy"),
        ("http://gw.example/v1", {"ALL_PROXY": PROXY}, "ALL_PROXY"),
        ("http://gw.example/v1", {"ALL_PROXY": "http://other:1", "http_proxy": PROXY}, "http_proxy"),
        ("http://10.0.0.7:8000/v1", {"http_proxy": PROXY}, "http_proxy"),
        ("http://[2001:db8::7]:8000/v1", {"http_proxy": PROXY}, "http_proxy"),
        # The site set no_proxy and left loopback out of it.
        ("http://localhost:8000/v1", {"http_proxy": PROXY, "no_proxy": ".corp.example"}, "http_proxy"),
    ],
)
def test_the_proxy_and_the_variable_that_names_it(url: str, environ: dict[str, str], variable: str) -> None:
    route = route_to(url, environ)
    assert route.proxy is not None
    assert route.proxy.variable == variable
    assert route.hop == ("proxy.corp.example", 3128)
    assert route.proxy.shown == f"http://proxy.corp.example:3128 (from ${variable})"


@pytest.mark.parametrize(
    "url, environ",
    [
        ("http://gw.example/v1", {"https_proxy": PROXY}),
        ("https://gw.example/v1", {"http_proxy": PROXY}),
        ("http://gw.example/v1", {"http_proxy": ""}),
        ("http://gw.example/v1", {"http_proxy": "  "}),
        # Set to nothing on purpose: "http_proxy= command" is how people switch a proxy off.
        ("http://gw.example/v1", {"http_proxy": "", "HTTP_PROXY": PROXY, "ALL_PROXY": PROXY}),
        ("http://localhost:8000/v1", {"http_proxy": PROXY}),
        ("http://127.0.0.1:8000/v1", {"http_proxy": PROXY}),
        ("http://127.9.9.9:8000/v1", {"http_proxy": PROXY}),
        ("http://[::1]:8000/v1", {"http_proxy": PROXY}),
        ("http://localhost:8000/v1", {"http_proxy": PROXY, "no_proxy": ""}),
    ],
)
def test_straight(url: str, environ: dict[str, str]) -> None:
    assert route_to(url, environ).proxy is None


@pytest.mark.parametrize(
    "url, no_proxy",
    [
        ("http://gw.example/v1", "gw.example"),
        ("http://gw.example/v1", "GW.Example"),
        ("http://gw.example/v1", "other.example, gw.example"),
        ("http://gw.example/v1", "other.example gw.example"),
        ("http://gw.corp.example/v1", ".corp.example"),
        ("http://gw.corp.example/v1", "corp.example"),
        ("http://gw.corp.example/v1", "*.corp.example"),
        ("http://gw.example/v1", "*"),
        ("http://gw.example/v1", "localhost,*"),
        ("http://gw.example:8000/v1", "gw.example:8000"),
        ("https://gw.example/v1", "gw.example:443"),
        ("http://10.1.2.3:8000/v1", "10.0.0.0/8"),
        ("http://10.1.2.3:8000/v1", "192.168.0.0/16,10.1.2.3"),
        ("http://10.1.2.3:8000/v1", "10.1.2.3/8"),
        ("http://10.1.2.3:8000/v1", "10.1.2.3:8000"),
        ("http://[fd00::7]:8000/v1", "fd00::/8"),
        ("http://[fd00::7]:8000/v1", "fd00::7"),
        ("http://[fd00::7]:8000/v1", "[fd00::7]"),
        ("http://[fd00:0:0::7]:8000/v1", "fd00::7"),
        ("http://[fd00::7]:8000/v1", "[fd00::7]:8000"),
        ("http://localhost:8000/v1", "localhost"),
    ],
)
@pytest.mark.parametrize("spelling", ["no_proxy", "NO_PROXY"])
def test_no_proxy_matches(url: str, no_proxy: str, spelling: str) -> None:
    environ = {"http_proxy": PROXY, "https_proxy": PROXY}
    assert route_to(url, environ).proxy is not None or "localhost" in url
    assert route_to(url, {**environ, spelling: no_proxy}).proxy is None


@pytest.mark.parametrize(
    "url, no_proxy",
    [
        ("http://gw.example/v1", "other.example"),
        ("http://mygw.example/v1", "gw.example"),
        ("http://gw.example.org/v1", "gw.example"),
        ("http://gw.example:8000/v1", "gw.example:9000"),
        ("http://11.1.2.3:8000/v1", "10.0.0.0/8"),
        ("http://10.1.2.3:8000/v1", "fd00::/8"),
        ("http://[fd00::7]:8000/v1", "10.0.0.0/8"),
        ("http://10.1.2.3:8000/v1", "10.1.2.3:9000"),
        ("http://gw.example/v1", "10.0.0.0/8,not/a/network"),
        ("http://gw.example/v1", ",, ,"),
    ],
)
def test_no_proxy_does_not_match(url: str, no_proxy: str) -> None:
    assert route_to(url, {"http_proxy": PROXY, "no_proxy": no_proxy}).proxy is not None


@pytest.mark.parametrize(
    "value, hop",
    [
        ("proxy.corp.example:3128", ("proxy.corp.example", 3128)),
        ("http://proxy.corp.example", ("proxy.corp.example", 80)),
        ("https://proxy.corp.example", ("proxy.corp.example", 443)),
        ("socks5://proxy.corp.example", ("proxy.corp.example", 1080)),
        ("socks5h://proxy.corp.example:9050/", ("proxy.corp.example", 9050)),
        ("http://[fd00::1]:3128", ("fd00::1", 3128)),
        ("http://user:p%40ss@proxy.corp.example:3128", ("proxy.corp.example", 3128)),
        ("http://user:p@ss@proxy.corp.example:3128", ("proxy.corp.example", 3128)),
    ],
)
def test_how_a_proxy_may_be_written(value: str, hop: tuple[str, int]) -> None:
    assert route_to("http://gw.example/v1", {"http_proxy": value}).hop == hop


def test_a_password_in_a_proxys_address_is_not_shown() -> None:
    route = route_to("http://gw.example/v1", {"http_proxy": "http://user:hunter2@proxy.example:3128"})
    assert route.proxy is not None
    assert "hunter2" in route.proxy.url
    for shown in (repr(route), str(route), repr(route.proxy), route.proxy.shown):
        assert "hunter2" not in shown
        assert "user" not in shown


@pytest.mark.parametrize(
    "value",
    [
        "http://",
        "http://user:hunter2/x@proxy:3128",
        "http://proxy:port",
        "http://[fd00::1:3128",
        "ftp://hunter2@proxy",
        "://",
    ],
)
def test_a_proxy_that_is_no_address_is_named_and_not_quoted(value: str) -> None:
    with pytest.raises(ValueError, match=r"\$http_proxy") as caught:
        route_to("http://gw.example/v1", {"http_proxy": value})
    assert "hunter2" not in str(caught.value)
    assert caught.value.__cause__ is None
