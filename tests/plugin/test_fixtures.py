"""Fixtures for tests of one's own."""

from __future__ import annotations

import pytest

from tests.plugin.plugin_runs import Run


def test_bench_tells_where_a_setting_came_from(run: Run, pytester: pytest.Pytester) -> None:
    pytester.makepyfile(
        "def test_it(bench):\n"
        "    assert bench.demo\n"
        "    assert 'settings.json' in bench.origin('rate_limit.requests_per_minute')\n"
    )
    run("--demo").assert_outcomes(passed=1)


def test_api_is_a_client_of_the_bench(run: Run, pytester: pytest.Pytester) -> None:
    pytester.makepyfile(
        "def test_models(api):\n"
        "    assert api.get('/models').json()['data'][0]['id'] == 'demo-chat'\n"
        "def test_with_version(api):\n"
        "    assert api.get('/v1/models').status_code == 200\n"
        "def test_repr(api, domain):\n"
        "    assert domain.key.get_secret_value() not in repr(api.auth) + repr(vars(api)) + repr(domain)\n"
        "def test_chat(api):\n"
        "    answer = api.post('/chat/completions', json={'model': 'demo-chat', 'max_tokens': 1,\n"
        "        'messages': [{'role': 'user', 'content': 'hi'}]})\n"
        "    assert answer.status_code == 200\n"
    )
    run("--demo").assert_outcomes(passed=4)


def test_async_api_works_within_and_without_a_with(run: Run, pytester: pytest.Pytester) -> None:
    pytester.makepyfile(
        "import asyncio\n"
        "def test_plain(async_api):\n"
        "    async def ask():\n"
        "        return await async_api.get('/models')\n"
        "    assert asyncio.run(ask()).status_code == 200\n"
        "def test_with(async_api):\n"
        "    async def ask():\n"
        "        async with async_api:\n"
        "            return await asyncio.gather(*(async_api.get('/models') for _ in range(20)))\n"
        "    assert {answer.status_code for answer in asyncio.run(ask())} == {200}\n"
    )
    run("--demo", "-W", "error").assert_outcomes(passed=2)


def test_api_does_not_repeat_a_refused_key(run: Run, pytester: pytest.Pytester) -> None:
    pytester.makepyfile(
        "def test_it(api):\n"
        "    answer = api.get('/models')\n"
        "    assert answer.status_code == 401\n"
        "    assert answer.extensions['attempts'] == 1\n"
    )
    run("--demo-fault", "key-wrong").assert_outcomes(passed=1)


def test_access_gives_findings_to_tests_of_ones_own(run: Run, pytester: pytest.Pytester) -> None:
    pytester.makepyfile(
        "def test_it(access):\n"
        "    found = access.finding('key')\n"
        "    assert (found.outcome, found.layer) == ('failed', 'key')\n"
        "def test_typo(access):\n"
        "    access.require('chatt')\n"
    )
    result = run("--demo-fault", "key-wrong")
    result.assert_outcomes(passed=1, failed=1)
    result.stdout.fnmatch_lines(["*no access check 'chatt'; there are: name, connection*"])
