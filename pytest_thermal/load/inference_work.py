"""The inference load as a work: its process, and the orders that it gets."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from pydantic import SecretStr

from pytest_thermal.bench import Domain, Inference, Stress, Timeouts
from pytest_thermal.load.cpu_quota import usable_cores
from pytest_thermal.load.errors import LoadError
from pytest_thermal.load.orders import PROFILES, DomainOrders, InferenceOrders
from pytest_thermal.load.share import processes_for
from pytest_thermal.load.work import Work, own_environ, own_program
from pytest_thermal.model.said import joined, say
from pytest_thermal.recording import RunClock
from pytest_thermal.transport import fast

CALIBRATION_SECONDS = 2.0
MOST_IN_FLIGHT = 256
"""Of the open loop, unless the bench wants more at the same time."""
GRACE_SECONDS = 0.8
"""It gives up what is in flight and records it; that takes a moment when all cores burn."""
SHARED_GRACE_SECONDS = 1.1
"""What several processes give up is told to one of them first."""


def inference_work(
    *,
    domains: Sequence[Domain],
    inference: Inference,
    stress: Stress,
    timeouts: Timeouts,
    run: Path | None,
    clock: RunClock,
    profile: str = "chat",
    rate_per_second: float | None = None,
    limit_seconds: float,
    environ: Mapping[str, str],
    secrets: Sequence[SecretStr] = (),
    inference_ratio: float = 1.0,
    burner: Sequence[str] = (),
    calibration_seconds: float = CALIBRATION_SECONDS,
    cores: float | None = None,
) -> Work:
    """Requests to the domains in turn: ``concurrent_requests`` slots in all, or an open loop at a rate.

    Each finished request becomes a row of ``run``'s requests.csv, stamped by ``clock``. With a ratio below 1 the
    other items are compute bursts on ``burner``, the command of a program that takes them (`burn_bursts`). Before the
    first request the engine itself is measured for ``calibration_seconds``; 0 leaves that out.

    It is shared among ``inference_workers`` processes, else among as many as it needs and ``cores`` allow (None for
    those that there are). More slots later do not make more processes.

    Raises:
        LoadError: The profile, the rate or the ratio makes no sense.
    """
    if profile not in PROFILES:
        raise LoadError(
            say("no request profile is called {profile!r}", profile=profile),
            remedy=say("one of {names}", names=joined(", ", PROFILES)),
        )
    if rate_per_second is not None and rate_per_second <= 0:
        raise LoadError(
            say("a rate of {rate_per_second:g} requests per second is none", rate_per_second=rate_per_second),
            remedy=say("a rate above 0"),
        )
    if not 0 <= inference_ratio <= 1:
        raise LoadError(
            say("an inference_ratio of {inference_ratio:g} is no share", inference_ratio=inference_ratio),
            remedy=say("a number from 0 to 1"),
        )
    if inference_ratio < 1 and not burner:
        raise LoadError(say("compute bursts are asked for, and nothing burns them"), remedy="inference_ratio = 1")
    orders = InferenceOrders(
        domains=tuple(
            DomainOrders(
                base_url=domain.base_url,
                key=domain.key,
                model=domain.route.default or domain.route.fallback,
                name=domain.name,
            )
            for domain in domains
        ),
        connect_seconds=timeouts.connect_seconds,
        read_seconds=timeouts.read_seconds,
        max_tokens=inference.max_tokens,
        temperature=inference.temperature,
        stream=inference.stream,
        profile=profile,
        concurrency=stress.concurrent_requests,
        interval_seconds=stress.request_interval_seconds,
        rate_per_second=rate_per_second,
        most_in_flight=max(MOST_IN_FLIGHT, stress.concurrent_requests),
        inference_ratio=inference_ratio,
        burner=tuple(burner),
        run=run.absolute() if run is not None else None,
        clock=clock,
        limit_seconds=limit_seconds + 1.0,
        calibration_seconds=calibration_seconds,
        environ=dict(environ),
    )
    orders = replace(
        orders,
        processes=processes_for(
            orders.parallel, cores=usable_cores() if cores is None else cores, asked=stress.inference_workers
        ),
    )
    loop = (
        f"closed loop of {stress.concurrent_requests}"
        if rate_per_second is None
        else f"open loop at {rate_per_second:g}/s"
    )
    kind = "" if profile == "chat" else f", {profile}"
    share = "" if inference_ratio == 1 else f", {inference_ratio:.0%} requests"
    among = "" if orders.processes == 1 else f", {orders.processes} processes"
    return Work(
        kind="inference",
        tool=f"{loop}{kind}{share}{among}",
        command=own_program("pytest_thermal.load.inference"),
        environ=own_environ(environ),
        orders=orders.to_line(),
        limit_seconds=limit_seconds,
        grace_seconds=GRACE_SECONDS if orders.processes == 1 else SHARED_GRACE_SECONDS,
        notes=(say("{missing}: requests go through httpx, which makes far fewer of them", missing=fast.missing()),)
        if fast.missing()
        else (),
        secrets=(*secrets, *(domain.key for domain in domains if domain.key is not None)),
    )
