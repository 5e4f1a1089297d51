from __future__ import annotations

import base64
import html
import json
import re
from collections import namedtuple
from urllib.parse import quote, quote_plus

import pytest
from pydantic import SecretStr

from pytest_thermal.bench import Redactor, describe_key
from pytest_thermal.bench.secrets import looks_like_key
from tests.bench.bench_files import KEY, OTHER_KEY

ODD = "pä\"ss/wo+rd=\\x&<y> 'z\n1234"
Pair = namedtuple("Pair", "left right")  # noqa: PYI024 - one without types is the harder case


@pytest.mark.parametrize(
    "key,said",
    [
        (None, "none"),
        (SecretStr("sk-a" + "b" * 47), "sk-a…, 51 characters"),
        (SecretStr("abcdefghijkl"), "abcd…, 12 characters"),
        (SecretStr("abcdefghijk"), "11 characters"),
        (SecretStr("a"), "1 character"),
        (SecretStr(""), "0 characters"),
        (SecretStr("\nab\tcdefghijkl"), "?ab?…, 14 characters"),
    ],
)
def test_describe_key(key: SecretStr | None, said: str) -> None:
    assert describe_key(key) == said


@pytest.mark.parametrize(
    "form",
    [
        str,
        quote,
        quote_plus,
        lambda key: quote(key, safe=""),
        lambda key: re.sub("%..", lambda found: found.group().lower(), quote(key, safe="")),
        json.dumps,
        lambda key: json.dumps(key, ensure_ascii=False),
        repr,
        ascii,
        html.escape,
        lambda key: base64.b64encode(key.encode()).decode(),
        lambda key: base64.b64encode(f":{key}".encode()).decode(),
        lambda key: base64.urlsafe_b64encode(key.encode()).decode().rstrip("="),
        lambda key: f"Bearer {key}",
        lambda key: repr({"headers": {"Authorization": f"Bearer {key}"}}),
    ],
)  # fmt: skip
@pytest.mark.parametrize("key", [KEY, ODD])
def test_every_form_of_a_key_is_replaced(key: str, form: object) -> None:
    assert callable(form)
    written = form(key)
    text = Redactor([SecretStr(key)]).text(f"<{written}>")
    assert written not in text
    assert key not in text
    assert f"[key {key[:4]}…]" in text
    for length in range(8, len(key)):
        assert key[-length:] not in text
        assert key[:length] not in text


def test_of_two_keys_the_longer_is_found_first() -> None:
    redactor = Redactor([SecretStr("abcdef-prefix"), SecretStr("abcdef-prefix-and-more")])
    assert redactor.text("abcdef-prefix-and-more, abcdef-prefix") == "[key abcd…], [key abcd…]"


def test_a_key_that_a_repr_cut_short_is_replaced() -> None:
    redactor = Redactor([SecretStr(KEY)])
    text = redactor.text(f"key='{KEY[:20]}...{KEY[-18:]}' and {KEY[:30]}")
    assert text == "key='[key sk-c…]' and [key sk-c…]"
    assert redactor.text(f"...{KEY[-16:]}'") == "...[key sk-c…]'"


def test_a_key_with_a_line_end_is_found_without_it() -> None:
    assert Redactor([SecretStr(f" '{OTHER_KEY}'\n")]).text(f"x {OTHER_KEY} x") == "x [key sk-s…] x"
    assert Redactor([SecretStr(f"Bearer {OTHER_KEY}")]).text(f"x {OTHER_KEY} x") == "x [key sk-s…] x"


def test_a_short_key_shows_nothing_and_a_tiny_one_is_left_alone() -> None:
    redactor = Redactor([SecretStr("secret"), SecretStr("a"), SecretStr("five5"), SecretStr("")])
    assert redactor.text("a secret, five5") == "a [key …], five5"


@pytest.mark.parametrize(
    "text,clean",
    [
        ("Authorization: Bearer abc.DEF-123_456", "Authorization: Bearer [key abc.…]"),
        ("bearer abcdefg1", "bearer [key …]"),
        ("BEARER  abcdefgh12345", "BEARER  [key abcd…]"),
        ("Bearer%20abcdefgh12345", "Bearer%20[key abcd…]"),
        ("a sk-ABCDEFGHIJKLMNOP z", "a [key sk-A…] z"),
        ('{"k":"sk-proj-abcdefghij_klmn"}', '{"k":"[key sk-p…]"}'),
        ("Incorrect API key provided: sk-abcd****wxyz", None),
        ('WWW-Authenticate: Bearer realm="aimock"', None),
        ('Bearer error="invalid_token"', None),
        ("Bearer authentication failed", None),
        ("Bearer token missing", None),
        ("task-force-one-hundred-and-one", None),
        ("sk-short", None),
        ("", None),
    ],
)
def test_unknown_keys_are_caught_and_prose_is_not(text: str, clean: str | None) -> None:
    redactor = Redactor()
    assert redactor.text(text) == (text if clean is None else clean)
    if clean is None:
        assert redactor.text(text) is text


def test_twice_redacted_is_once_redacted() -> None:
    redactor = Redactor([SecretStr(KEY), SecretStr("secret")])
    once = redactor.text(f"{KEY} secret Bearer {KEY} Bearer 0123456789abcdef")
    assert redactor.text(once) is once


def test_structures_are_redacted_throughout() -> None:
    redactor = Redactor([SecretStr(KEY)])
    clean = redactor.data(
        {
            KEY: [KEY, 1, None, True, 2.5],
            "tuple": (KEY, {"deep": {KEY}}),
            "bytes": b"\xff" + KEY.encode(),
            "named": Pair(KEY, 1),
            "other": ...,
        }
    )
    assert clean == {
        "[key sk-c…]": ["[key sk-c…]", 1, None, True, 2.5],
        "tuple": ("[key sk-c…]", {"deep": {"[key sk-c…]"}}),
        "bytes": b"\xff" + "[key sk-c…]".encode(),
        "named": Pair("[key sk-c…]", 1),
        "other": ...,
    }
    assert isinstance(clean, dict)
    assert type(clean["named"]) is Pair


def test_the_redactor_itself_shows_nothing() -> None:
    redactor = Redactor([SecretStr(KEY), SecretStr(KEY), SecretStr(OTHER_KEY)])
    assert repr(redactor) == "Redactor(2 keys)"
    assert KEY not in str(redactor)


@pytest.mark.parametrize(
    "text",
    [KEY, "sk-abcdef", "Bearer x", "0a1b2c3d4e5f6071", "123e4567-e89b-12d3-a456-426614174000", "x" * 40 + "1"],
)
def test_looks_like_key(text: str) -> None:
    assert looks_like_key(text)


@pytest.mark.parametrize(
    "text", ["soon", "TAOTOKEN_API_KEY_2", "http://h/v1", "a few words and 1 number", "deepseek-v3-0324", "sk-1"]
)
def test_does_not_look_like_key(text: str) -> None:
    assert not looks_like_key(text)
