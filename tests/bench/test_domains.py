from __future__ import annotations

from pathlib import Path

import pytest

from tests.bench.bench_files import ADDRESS, KEY, OTHER_KEY, read_bench, refusal

SHARED = {
    **ADDRESS,
    "api_key": "${TAOTOKEN_API_KEY}",
    "model_route": {"default": "m", "fallback": "n"},
}


def test_each_domain_has_its_own_way_in(tmp_path: Path) -> None:
    bench = read_bench(
        tmp_path,
        SHARED,
        """
        [[scale_up]]
        name = "east"
        api_base = "http://east:1/v1"
        api_key_env = "OTHER_KEY"
        interconnect = "ub"
        latency_target_us = 5
        memory_pool = "pool-0"
        model_route = { default = "x" }
        [[scale_up]]
        name = "west"
        """,
    )
    east, west = bench.domains
    assert (east.name, east.base_url, east.key_origin) == ("east", "http://east:1/v1", "$OTHER_KEY")
    assert (east.interconnect, east.latency_target_us, east.memory_pool) == ("ub", 5.0, "pool-0")
    assert (east.route.default, east.route.fallback) == ("x", None)
    assert (west.name, west.base_url, west.key_origin) == ("west", "http://127.0.0.1:9000/v1", "$TAOTOKEN_API_KEY")
    assert (west.route.default, west.route.fallback) == ("m", "n")
    assert (west.interconnect, west.latency_target_us, west.memory_pool) == (None, None, None)
    assert [secret.get_secret_value() for secret in bench.secrets()] == [OTHER_KEY, KEY]
    assert bench.origin("domains.east.base_url") == "config.toml [[scale_up]] #1 api_base"
    assert bench.origin("domains.east.route.default") == "config.toml [[scale_up]] #1 model_route.default"
    assert bench.origin("domains.west.base_url") == "settings.json api_endpoint"
    assert bench.origin("domains.west.name") == "config.toml [[scale_up]] #2 name"
    assert bench.origin("base_url") == "settings.json api_endpoint"
    assert bench.notes == ()


def test_one_secret_that_several_domains_share_is_named_once(tmp_path: Path) -> None:
    bench = read_bench(tmp_path, SHARED, "[[scale_up]]\n[[scale_up]]\n")
    assert [domain.name for domain in bench.domains] == ["domain0", "domain1"]
    assert len(bench.secrets()) == 1


def test_domains_need_no_shared_address(tmp_path: Path) -> None:
    bench = read_bench(
        tmp_path, None, '[[scale_up]]\napi_base = "http://a:1/v1"\n[[scale_up]]\napi_base = "http://b:1"\n'
    )
    assert [domain.base_url for domain in bench.domains] == ["http://a:1/v1", "http://b:1/v1"]
    assert bench.notes == ("config.toml [[scale_up]] #2 api_base: /v1 appended: http://b:1/v1",)


def test_a_correction_of_a_shared_address_is_said_once(tmp_path: Path) -> None:
    bench = read_bench(tmp_path, {"api_endpoint": "http://a:1"}, "[[scale_up]]\n[[scale_up]]\n")
    assert bench.notes == ("settings.json api_endpoint: /v1 appended: http://a:1/v1",)


def test_an_override_holds_for_every_domain(tmp_path: Path) -> None:
    bench = read_bench(
        tmp_path,
        SHARED,
        '[[scale_up]]\nmodel_route = { default = "x" }\n[[scale_up]]\n',
        overrides={"route.default": ("y", "--model")},
    )
    assert [domain.route.default for domain in bench.domains] == ["y", "y"]
    assert any('domains.domain0.route.default: "y" from command line --model, not "x" from' in n for n in bench.notes)


def test_with_one_domain_its_own_keys_win_and_it_is_said(tmp_path: Path) -> None:
    bench = read_bench(tmp_path, SHARED, '[scale_up]\napi_base = "http://own:1/v1"\nmodel_route = { default = "x" }\n')
    (domain,) = bench.domains
    assert domain.base_url == "http://own:1/v1"
    assert (domain.route.default, domain.route.fallback) == ("x", "n")
    assert bench.origin("base_url") == "config.toml [scale_up] api_base"
    assert (
        "base_url: http://own:1/v1 from config.toml [scale_up] api_base, "
        "not http://127.0.0.1:9000/v1 from settings.json api_endpoint"
    ) in bench.notes


@pytest.mark.parametrize(
    "config,name,bench_name",
    [
        ("", "rack7", "rack7"),
        ('[cluster]\nname = "pod"\n', "pod", "pod"),
        ('[cluster]\nname = "pod"\nscale_up_domain = "ub0"\n', "ub0", "pod"),
        ('[cluster]\nname = "pod"\nscale_up_domain = 384\n', "pod", "pod"),
        ('[cluster]\nname = "pod"\n[scale_up]\nname = "own"\n', "own", "pod"),
        ('[cluster]\nname = "pod"\n[[scale_up]]\ninterconnect = "ub"\n', "pod", "pod"),
        ('[cluster]\nname = "pod a/1"\n', "pod-a-1", "pod a/1"),
        ('[cluster]\nname = "机柜"\n', "domain0", "机柜"),
    ],
)
def test_name_of_the_only_domain(tmp_path: Path, config: str, name: str, bench_name: str) -> None:
    folder = tmp_path / "rack7"
    folder.mkdir()
    bench = read_bench(folder, ADDRESS, config or None)
    assert bench.domains[0].name == name
    assert bench.name == bench_name
    if name not in ("rack7", "pod", "ub0", "own"):
        assert bench.notes == (f'config.toml [cluster] name: the domain "{bench_name}" is called {name} in test ids',)


def test_domains_of_one_name_are_refused(tmp_path: Path) -> None:
    text = refusal(tmp_path, ADDRESS, '[[scale_up]]\nname = "a b"\n[[scale_up]]\nname = "a-b"\n')
    assert text.startswith("config.toml: [[scale_up]] #2 name: the domain's name a-b is that of [[scale_up]] #1 too")


def test_a_name_can_clash_with_a_numbered_one(tmp_path: Path) -> None:
    text = refusal(tmp_path, ADDRESS, '[[scale_up]]\nname = "domain1"\n[[scale_up]]\n')
    assert "the domain's name domain1 is that of [[scale_up]] #1 too" in text


def test_a_domain_without_an_address_is_named(tmp_path: Path) -> None:
    text = refusal(tmp_path, None, '[[scale_up]]\napi_base = "http://a:1/v1"\n[[scale_up]]\nname = "west"\n')
    assert text.startswith("config.toml: [[scale_up]] #2: the domain west has no address")


def test_mistakes_in_a_domain_name_its_table(tmp_path: Path) -> None:
    text = refusal(
        tmp_path,
        ADDRESS,
        '[[scale_up]]\n[[scale_up]]\nlatency_us = 5\nlatency_target_us = -5\napi_key_env = "GONE"\n',
    )
    assert (
        "config.toml: [[scale_up]] #2 latency_us: unknown key; nearest known key: [[scale_up]] #2 latency_target_us"
    ) in text
    assert "config.toml: [[scale_up]] #2 latency_target_us: -5, but expected is a number of µs, above 0" in text
    assert "config.toml: [[scale_up]] #2 api_key_env: $GONE is not set in the environment" in text


def test_scale_up_must_be_tables(tmp_path: Path) -> None:
    assert "config.toml: [scale_up]: a number where a table is expected" in refusal(tmp_path, ADDRESS, "scale_up = 4\n")
    text = refusal(tmp_path, ADDRESS, 'scale_up = ["ub0"]\n')
    assert "config.toml: [[scale_up]] #1: a text where a table is expected" in text


def test_topology_must_add_up(tmp_path: Path) -> None:
    text = refusal(tmp_path, ADDRESS, "[cluster]\nnode_count = 48\ngpu_per_node = 4\ntotal_gpus = 384\n")
    assert text.startswith("config.toml: [cluster] total_gpus: 384, but node_count 48 × gpu_per_node 4 = 192\n")


def test_part_of_the_topology_is_enough(tmp_path: Path) -> None:
    bench = read_bench(tmp_path, ADDRESS, "[cluster]\nnode_count = 48\ntotal_gpus = 384\n")
    assert bench.cluster is not None
    assert bench.cluster.gpu_per_node is None


def test_more_domains_than_cards_are_refused(tmp_path: Path) -> None:
    text = refusal(tmp_path, ADDRESS, "[cluster]\nnode_count = 1\ngpu_per_node = 1\n[[scale_up]]\n[[scale_up]]\n")
    assert text.startswith("config.toml: [[scale_up]]: 2 domains, but the cluster has 1 cards")
