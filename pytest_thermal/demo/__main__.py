"""A simulated gateway for a person at a shell: `python -m pytest_thermal.demo --port 0 --fault NAME`.

The key is never printed. It and the address go into a file that only its owner can read, for a shell to
source.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import shlex
import signal
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from . import FAULTS, DemoError, DemoGateway

KEY_VARIABLE = "THERMAL_DEMO_KEY"
URL_VARIABLE = "THERMAL_DEMO_URL"


def main(arguments: Sequence[str] | None = None) -> int:
    """Serve until interrupted.

    Returns:
        0 after an orderly end, 2 when the gateway could not be made as asked.
    """
    options = _parser().parse_args(arguments)
    if options.list:
        with contextlib.suppress(BrokenPipeError):  # the reader, such as `head`, has seen enough
            print(_table(), flush=True)
        return 0
    try:
        gateway = DemoGateway(
            fault=options.fault,
            key=os.environ.get(KEY_VARIABLE) or None,
            port=options.port,
            slots=options.slots,
            requests_per_minute=options.requests_per_minute,
            tokens_per_minute=options.tokens_per_minute,
            parallel_limit=options.parallel_limit,
        )
    except (ValueError, DemoError) as error:
        print(error, file=sys.stderr)
        return 2
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        return _serve(gateway, options.env_file)
    except (DemoError, OSError) as error:
        print(error, file=sys.stderr)
        return 2
    finally:
        gateway.stop()


def _serve(gateway: DemoGateway, env_file: Path | None) -> int:
    path: Path | None = None
    try:
        gateway.start()
        path = _write_environment(gateway, env_file)
        fault = f"{gateway.fault.name}: {gateway.fault.description}" if gateway.fault else "none"
        print(
            f"simulated gateway on {gateway.url}\n"
            f"fault: {fault}\n"
            f"address and key for a shell: . {shlex.quote(str(path))}\n"
            "stop: Ctrl-C",
            flush=True,
        )
        while True:
            signal.pause()
    except KeyboardInterrupt:
        return 0
    finally:
        if path is not None:
            path.unlink(missing_ok=True)


def _write_environment(gateway: DemoGateway, path: Path | None) -> Path:
    lines = [
        f"export {URL_VARIABLE}={shlex.quote(gateway.url)}",
        f"export {KEY_VARIABLE}={shlex.quote(gateway.key)}",
    ]
    if gateway.ca_file is not None:
        lines.append(f"export SSL_CERT_FILE={shlex.quote(str(gateway.ca_file))}")
    if path is None:
        descriptor, name = tempfile.mkstemp(prefix="pytest-thermal-demo-", suffix=".env")
        path = Path(name)
    else:
        # Never into a file that is there already: it may be a link, or readable by others.
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(descriptor, "w", encoding="utf-8") as file:
        file.write("\n".join(lines) + "\n")
    return path


def _table() -> str:
    width = max(map(len, FAULTS))
    return "\n".join(f"{row.layer:<12} {row.name:<{width}}  {row.description}" for row in FAULTS.values())


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m pytest_thermal.demo",
        description="Serve a simulated OpenAI-compatible gateway on loopback, healthy or with a fault.",
        epilog=f"The key is taken from ${KEY_VARIABLE} if that is set, else made up; it is never printed.",
    )
    parser.add_argument("--port", type=int, default=0, help="port to bind (default 0: the system chooses)")
    parser.add_argument("--fault", metavar="NAME", help="what is to be wrong; see --list")
    parser.add_argument("--list", action="store_true", help="list the faults and stop")
    parser.add_argument(
        "--env-file",
        type=Path,
        metavar="PATH",
        help="a new file for address and key, mode 0600, until the end",
    )
    parser.add_argument("--slots", type=int, default=32, help="requests served at a time (default 32)")
    parser.add_argument("--requests-per-minute", type=int, metavar="N", help="limit per key (default: none)")
    parser.add_argument("--tokens-per-minute", type=int, metavar="N", help="limit per key (default: none)")
    parser.add_argument("--parallel-limit", type=int, metavar="N", help="at a time and key (default: none)")
    return parser


if __name__ == "__main__":
    sys.exit(main())
