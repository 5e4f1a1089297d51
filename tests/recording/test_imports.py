from __future__ import annotations

import subprocess
import sys

import pytest

import pytest_thermal.recording


@pytest.mark.parametrize("module", ["pytest_thermal.recording.__main__", "pytest_thermal.recording.lane_process"])
def test_the_processes_that_sample_load_nothing_heavy(module: str) -> None:
    """They are to be up in no time, once for each source."""
    script = f"import sys, {module}; print(*sorted({{name.partition('.')[0] for name in sys.modules}}))"
    loaded = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True).stdout.split()
    assert "pytest_thermal" in loaded
    assert not {"numpy", "scipy", "pydantic", "httpx", "pytest", "asyncio", "psutil"} & set(loaded)


def test_every_name_of_the_room_is_there() -> None:
    for name in pytest_thermal.recording.__all__:
        assert getattr(pytest_thermal.recording, name).__name__ == name
    with pytest.raises(AttributeError):
        _ = pytest_thermal.recording.nothing
