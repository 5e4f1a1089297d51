"""The built-in CPU burner, where there is no stress-ng: ``cpu_burner --workers N --limit SECONDS``.

Products of matrices by numpy's BLAS, one thread a worker, and plain arithmetic where there is no numpy. On a Zen 3
core the former did 33 GFLOP/s in double precision, of 39 that it can do, beside 3.2 of stress-ng's matrixprod, which
computes one number at a time. Watts were not compared: that takes a machine with RAPL.

With ``--bursts`` it burns on command: see `burn_bursts`.
"""

from __future__ import annotations

import argparse
import importlib
import importlib.util
import os
import signal
import sys
import time
from collections.abc import Callable, Sequence

from pytest_thermal.load.burning import burn_bursts, die_with_parent, say

BURST_NICE = 10
"""Bursts are started by the load generator, which they must not hold up."""
_SIZE = 512
"""Rows of a matrix. From 200 on the rate is the same to 5 %, so that two other things decide.

6 MiB of doubles do not stay in a core's own cache, so the shared one works too; and a product takes 8 ms, after which
it is looked whether a burst is over.
"""
_ONE_THREAD = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "BLIS_NUM_THREADS")
_ROUNDS = 20_000


def has_numpy() -> bool:
    """Whether numpy does the work here."""
    return importlib.util.find_spec("numpy") is not None


def main(arguments: Sequence[str] | None = None) -> int:
    """Burn until the limit, or until a worker is lost."""
    parser = argparse.ArgumentParser(prog="cpu_burner")
    parser.add_argument("--workers", type=int, default=1)
    parser.add_argument("--limit", type=float, required=True)
    parser.add_argument("--bursts", action="store_true")
    options = parser.parse_args(arguments)
    deadline = time.monotonic() + options.limit
    step = _product() if has_numpy() else _arithmetic

    def burn(until: float) -> None:
        while time.monotonic() < until:
            step()

    if options.bursts:
        os.nice(BURST_NICE)
        burn_bursts(burn, sys.stdin, deadline=deadline)
        return 0
    workers = [_worker(burn, deadline) for _ in range(options.workers)]
    say(f"{len(workers)} workers, {'numpy' if has_numpy() else 'pure Python, which heats less than numpy'}")
    for _ in workers:
        worker, status = os.wait()
        code = os.waitstatus_to_exitcode(status)
        if code != 0:
            how = signal.Signals(-code).name if code < 0 else f"exit code {code}"
            say(f"a worker (process {worker}) was lost: {how}")
            return 1
    return 0


def _worker(burn: Callable[[float], None], deadline: float) -> int:
    worker = os.fork()
    if worker == 0:
        code = 1
        try:
            die_with_parent()
            burn(deadline)
            code = 0
        finally:
            os._exit(code)
    return worker


def _product() -> Callable[[], object]:
    os.environ.update(dict.fromkeys(_ONE_THREAD, "1"))  # before numpy is there: it asks once
    numpy = importlib.import_module("numpy")
    generator = numpy.random.default_rng(0)
    left, right = generator.random((2, _SIZE, _SIZE))
    out = numpy.empty((_SIZE, _SIZE))
    return lambda: numpy.matmul(left, right, out=out)


def _arithmetic() -> float:
    number = 1.0
    for _ in range(_ROUNDS):
        number = number * 1.000001 + 0.5 / number
    return number


if __name__ == "__main__":
    sys.exit(main())
