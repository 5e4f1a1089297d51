"""Which loads a bench's mode means, and what is said of those that cannot be made."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import SecretStr

from pytest_thermal.bench import Bench, Domain, Monitor, Stress
from pytest_thermal.load import Work, burn_works, plan_works
from pytest_thermal.load import plan as planning
from pytest_thermal.load.orders import InferenceOrders
from pytest_thermal.recording import RunClock

KEY = "sk-canary-5f0c2b7e9d1a4c6b8e3f"


def bench(
    *, demo: bool = True, cards: tuple[int, ...] | None = None, host: str = "{}.localhost", **stress: Any
) -> Bench:
    return Bench(
        name="b",
        demo=demo,
        domains=tuple(
            Domain(name=name, base_url=f"http://{host.format(name)}/v1", key=SecretStr(KEY))
            for name in ("east", "west")
        ),
        stress=Stress(**stress),
        monitor=Monitor(gpu_indices=cards),
    )


def plan(of: Bench, **settings: Any) -> tuple[list[Work], list[str]]:
    works, lacking = plan_works(
        of,
        run=None,
        clock=RunClock.start(),
        limit_seconds=100.0,
        environ={"PYTEST_THERMAL_DEMO": "/a/folder"},
        which=lambda _: None,
        **settings,
    )
    assert KEY not in repr(works)
    for work in works:
        assert work.environ["PYTEST_THERMAL_DEMO"] == "/a/folder"
        assert work.limit_seconds == 100.0
        # So that no variable that holds it is inherited.
        assert SecretStr(KEY) in work.secrets
    return works, lacking


def kinds(works: list[Work]) -> list[str]:
    return [work.kind for work in works]


def orders_of(works: list[Work]) -> InferenceOrders:
    (line,) = [work.orders for work in works if work.kind == "inference"]
    return InferenceOrders.from_line(line)


def test_cpu() -> None:
    works, lacking = plan(bench(mode="cpu", cpu_workers=2))
    assert (kinds(works), lacking) == (["cpu"], [])


def test_inference_goes_to_all_domains() -> None:
    works, lacking = plan(bench(mode="inference", concurrent_requests=12), profile="agent", rate=3.0)
    assert (kinds(works), lacking) == (["inference"], [])
    orders = orders_of(works)
    assert [domain.base_url for domain in orders.domains] == ["http://east.localhost/v1", "http://west.localhost/v1"]
    assert (orders.concurrency, orders.inference_ratio, orders.profile) == (12, 1.0, "agent")
    assert orders.rate_per_second == 3.0
    assert works[0].tool == "open loop at 3/s, agent"


def test_mixed_burns_the_cpu_beside_requests_and_bursts() -> None:
    works, lacking = plan(bench(mode="mixed", inference_ratio=0.6))
    assert (kinds(works), lacking) == (["cpu", "inference"], [])
    orders = orders_of(works)
    assert orders.inference_ratio == 0.6
    assert "pytest_thermal.load.cpu_burner" in orders.burner
    assert works[1].tool == "closed loop of 8, 60% requests"


@pytest.mark.parametrize(
    "host, gpu_workers, burnt",
    [("{}.localhost", None, 0), ("{}.example", None, 2), ("{}.localhost", 1, 1), ("{}.example", 0, 0)],
)
def test_cards_that_requests_do_not_reach_are_burnt_too(host: str, gpu_workers: int | None, burnt: int) -> None:
    works, _ = plan(bench(mode="mixed", host=host, gpu_workers=gpu_workers))
    assert kinds(works).count("accelerator") == burnt
    assert kinds(works)[-2:] == ["cpu", "inference"]


def test_the_cpu_burner_gives_way_and_requests_do_not() -> None:
    works, _ = plan(bench(mode="mixed"))
    assert {work.kind: work.nice for work in works} == {"cpu": 10, "inference": 0}


def test_mixed_with_requests_only_has_no_burner() -> None:
    works, _ = plan(bench(mode="mixed", inference_ratio=1.0))
    assert orders_of(works).burner == ()


def test_bursts_go_to_the_accelerator_where_torch_reaches_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(planning, "torch_device", lambda: "npu")
    works, lacking = plan(bench(mode="mixed", demo=False))
    assert "pytest_thermal.load.torch_burner" in orders_of(works).burner
    assert "npu" in orders_of(works).burner
    assert lacking == []


def test_bursts_that_go_to_the_cpu_instead_are_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(planning, "torch_device", lambda: None)
    _, lacking = plan(bench(mode="mixed", demo=False))
    assert lacking == ["compute bursts go to the CPU: torch, or an accelerator that it knows, is not there"]


def test_gpu_on_the_demo_bench_is_one_process_a_card() -> None:
    works, lacking = plan(bench(mode="gpu"))
    assert lacking == []
    assert [work.tool for work in works] == ["demo accelerator 0", "demo accelerator 1"]
    assert all("pytest_thermal.demo.accelerator" in work.command for work in works)
    assert [work.command[work.command.index("--card") + 1] for work in works] == ["0", "1"]


def test_cards_and_workers_choose() -> None:
    works, _ = plan(bench(mode="gpu", cards=(1, 3, 5), gpu_workers=2))
    assert [work.command[work.command.index("--card") + 1] for work in works] == ["1", "3"]


def test_a_users_command_comes_first_also_on_the_demo_bench() -> None:
    works, _ = plan(bench(mode="gpu"), accelerator_command="burn {seconds}")
    assert [work.command for work in works] == [("burn", "100")]


def test_where_no_accelerator_can_be_loaded_it_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(planning, "accelerator_works", lambda **_: ((), "no accelerator is found"))
    assert plan(bench(mode="gpu", demo=False)) == ([], ["no accelerator is found"])


@pytest.mark.parametrize("mode", ["cpu", "inference", "mixed"])
def test_the_limit_phase_burns_accelerators_whatever_the_mode(mode: str) -> None:
    works, why_not = burn_works(bench(mode=mode), limit_seconds=5.0, environ={})
    assert (len(works), why_not) == (2, "")
