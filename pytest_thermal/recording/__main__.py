"""``python -m pytest_thermal.recording``: the recorder process.

Its specification is the first line of standard input, or a file: ``--spec FILE``. After that standard input brings
commands, one JSON object a line, and its end ends the recording. Standard output tells how it goes, likewise.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from pathlib import Path

from pytest_thermal.recording.errors import RecordingError
from pytest_thermal.recording.recorder import Recorder
from pytest_thermal.recording.spec import RecordingSpec

_REFUSED = 2


def _first_line(descriptor: int) -> str:
    line = bytearray()
    while not line.endswith(b"\n"):
        sign = os.read(descriptor, 1)  # not more: what follows is for the recorder
        if not sign:
            break
        line += sign
    return line.decode()


def main(arguments: list[str]) -> int:
    """Record; 0 for a recording that ended in order, 2 for one that could not begin."""
    parser = argparse.ArgumentParser(prog="python -m pytest_thermal.recording", description=__doc__)
    parser.add_argument("--spec", type=Path, help="a file with the specification (default: a line on standard input)")
    options = parser.parse_args(arguments)
    try:
        text = options.spec.read_text(encoding="utf-8") if options.spec else _first_line(0)
        recorder = Recorder(RecordingSpec.from_json(text), control=0, status=1)
    except (RecordingError, OSError) as error:
        print(json.dumps({"is": "failed", "text": str(error)}), flush=True)
        return _REFUSED
    recorder.run()
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
