"""``--prometheus-port``: a thermal run served to Prometheus while it goes on, by the process that makes it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from pytest_thermal.plugin import options
from pytest_thermal.plugin.evidence.node import bench_of, node_of

if TYPE_CHECKING:
    from pytest_thermal.bench import Bench
    from pytest_thermal.experiment import Notice
    from pytest_thermal.reporting.live_metrics import Endpoint


def check_metrics(config: pytest.Config) -> None:
    """Refuse now what could not be served in an hour.

    Raises:
        pytest.UsageError: the library is missing, or the port is taken.
    """
    address = options.value(config, "prometheus-port")
    if address is None or hasattr(config, "workerinput"):  # xdist's workers would be in each other's way
        return
    from pytest_thermal.reporting.live_metrics import LiveMetricsError, check_free

    try:
        check_free(address)
    except LiveMetricsError as error:
        raise pytest.UsageError(str(error)) from None


def serve_metrics(
    config: pytest.Config, *, bench: Bench, run: Callable[[], Path | None], tell: Callable[[Notice], None]
) -> Endpoint | None:
    """Serve from now on; None where nobody asked for it, or, with a warning, where it cannot be."""
    address = options.value(config, "prometheus-port")
    if address is None:
        return None
    from pytest_thermal.bench import Redactor
    from pytest_thermal.experiment import Notice
    from pytest_thermal.reporting.live_metrics import Endpoint, LiveMetricsError, Named

    named = Named(bench=bench_of(config), node=node_of(config), redact=Redactor(bench.secrets()).text)
    try:
        found = Endpoint(address, named=named, run=run)
    except LiveMetricsError as error:  # taken since it was looked at: no reason to lose a run
        config.issue_config_time_warning(pytest.PytestWarning(f"thermal: {error}"), stacklevel=2)
        return None
    tell(Notice(text=f"Prometheus: {found.address.url}", kind="note"))
    return found
