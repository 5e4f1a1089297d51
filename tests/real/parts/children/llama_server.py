"""A real llama.cpp server: `python llama_server.py FOLDER SIZE SLOTS ALIAS`.

The port is the system's choice and printed.

The key it accepts is in the environment, as LLAMA_KEY, and so in no process list.
"""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path

import tiny_model  # type: ignore[import-not-found,unused-ignore]
import xllamacpp  # type: ignore[import-not-found,unused-ignore]


def main(folder: Path, size: str, slots: int, alias: str) -> None:
    """Serve until told to stop."""
    model = folder / f"{size}.gguf"
    if not model.exists():
        tiny_model.make(model, tiny_model.SIZES[size])
    wanted = xllamacpp.CommonParams()
    wanted.model.path = str(model)
    wanted.model_alias = {alias}
    wanted.hostnames = ["127.0.0.1"]
    wanted.port = 0
    wanted.api_keys = [os.environ["LLAMA_KEY"]]
    wanted.n_parallel = slots
    wanted.n_ctx = 512 * slots
    wanted.cache_prompt = size != "slow"  # a prompt read before would be answered too fast for a queue to show
    wanted.n_threads_http = 64  # each idle connection holds one, and then others wait for seconds
    wanted.endpoint_metrics = True
    wanted.offline = True
    wanted.cpuparams.n_threads = 1
    wanted.cpuparams_batch.n_threads = 1
    server = xllamacpp.Server(wanted)
    sys.stdout.write(f"port chosen: {server.listening_address}\n")
    sys.stdout.flush()
    signal.sigwait([signal.SIGTERM, signal.SIGINT])


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2], int(sys.argv[3]), sys.argv[4])
