"""Record what the sources of /sys see, until the standard input ends; says where, and where the mocked /sys lies."""

from __future__ import annotations

import json
import os
import sys
import time
from pathlib import Path

from pytest_thermal.bench import Monitor
from pytest_thermal.recording import SourceOrder, create_run, start_recorder
from pytest_thermal.sensors.specs import bench_specs

PERIOD_SECONDS = 0.2
SOURCES = ("cpu_temperature", "thermal_zones", "hwmon")


def main() -> None:
    """Run it."""
    home, said = Path(sys.argv[1]), Path(sys.argv[2])
    run = create_run(home / "runs", facts={"bench": {"name": "mocked"}})
    orders = [
        SourceOrder(source=spec, period_seconds=PERIOD_SECONDS)
        for spec in bench_specs(Monitor())
        if spec.name in SOURCES
    ]
    with start_recorder(run, sources=orders, period_seconds=PERIOD_SECONDS, startup_seconds=60.0):
        while any(not (run / "samples" / f"{name}.csv").exists() for name in SOURCES):
            time.sleep(0.05)
        whole = said.with_suffix(".new")
        whole.write_text(json.dumps({"run": str(run), "mock": os.environ["UMOCKDEV_DIR"]}))
        whole.rename(said)
        while not (home / "stop").exists():
            time.sleep(0.05)
    (home / "stopped").touch()


if __name__ == "__main__":
    main()
