"""A library like NVIDIA's, whose GPUs fail as the test says."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

NOT_SUPPORTED, NO_PERMISSION, UNKNOWN_FUNCTION, LOST, NOT_FOUND, UNKNOWN = 3, 4, 13, 15, 6, 999
WORDS = {
    3: "Not Supported",
    4: "Insufficient Permissions",
    13: "Function Not Found",
    15: "GPU is lost",
    999: "Unknown Error",
}


class NvmlError(Exception):
    def __init__(self, value: int) -> None:
        super().__init__(WORDS.get(value, f"code {value}"))
        self.value = value


class Gpu:
    """One GPU: figures by the function that gives them, errors by the same name, or of every function."""

    def __init__(self, uuid: str, celsius: int) -> None:
        self.uuid = uuid
        self.error: int | None = None
        self.errors: dict[str, int] = {"FanSpeed": NOT_SUPPORTED, "MarginTemperature": UNKNOWN_FUNCTION}
        self.figures: dict[str, Any] = {
            "Temperature": celsius,
            "PowerUsage": 305_250,
            "UtilizationRates": SimpleNamespace(gpu=87, memory=40),
            "MemoryInfo": SimpleNamespace(used=3 << 30, total=80 << 30),
            "CurrentClocksEventReasons": 0x24,
            "ViolationStatus": SimpleNamespace(violationTime=2_500_000),
            "EnforcedPowerLimit": 700_000,
        }
        self.memory_celsius = 66
        self.thresholds = {0: 92, 1: 127, 2: 95, 3: 0}


class FakeNvml:
    """The functions of ``pynvml`` that are used. A handle names its GPU, not its place."""

    NVMLError = NvmlError

    def __init__(self, *gpus: Gpu) -> None:
        self.gpus = list(gpus)
        self.session: int | None = None
        """The error that every call gives until a new session begins."""
        self.no_session: int | None = None
        """The error that beginning a session gives."""
        self.open = 0
        self.begun = 0

    def nvmlInit(self) -> None:  # noqa: N802
        if self.no_session is not None:
            raise NvmlError(self.no_session)
        self.open += 1
        self.begun += 1
        self.session = None

    def nvmlShutdown(self) -> None:  # noqa: N802
        self.open -= 1

    def nvmlDeviceGetCount(self) -> int:  # noqa: N802
        return len(self.gpus)

    def nvmlDeviceGetHandleByIndex(self, index: int) -> Gpu:  # noqa: N802
        return self._alive(self.gpus[index])

    def nvmlDeviceGetHandleByUUID(self, uuid: str) -> Gpu:  # noqa: N802
        found = [gpu for gpu in self.gpus if gpu.uuid == uuid]
        if not found:
            raise NvmlError(NOT_FOUND)
        return self._alive(found[0])

    def nvmlDeviceGetUUID(self, handle: Gpu) -> str:  # noqa: N802
        return handle.uuid

    def nvmlDeviceGetClockInfo(self, handle: Gpu, kind: int) -> int:  # noqa: N802
        self._alive(handle)
        return {1: 1755, 2: 2619}[kind]

    def nvmlDeviceGetMaxClockInfo(self, _handle: Gpu, _kind: int) -> int:  # noqa: N802
        return 1980

    def nvmlDeviceGetTemperatureThreshold(self, handle: Gpu, number: int) -> int:  # noqa: N802
        return handle.thresholds[number]

    def nvmlDeviceGetFieldValues(self, handle: Gpu, fields: list[int]) -> list[SimpleNamespace]:  # noqa: N802
        self._alive(handle)
        known = {82: handle.memory_celsius, 186: 311_000}
        return [
            SimpleNamespace(nvmlReturn=0, valueType=1, value=SimpleNamespace(uiVal=known[field])) for field in fields
        ]

    def __getattr__(self, name: str) -> Callable[..., Any]:
        if not name.startswith("nvmlDeviceGet"):
            raise AttributeError(name)
        figure = name.removeprefix("nvmlDeviceGet")
        if figure == "CurrentClocksThrottleReasons":
            raise AttributeError(name)

        def ask(handle: Gpu, *_more: object) -> Any:
            self._alive(handle)
            if figure in handle.errors:
                raise NvmlError(handle.errors[figure])
            return handle.figures[figure]

        return ask

    def _alive(self, gpu: Gpu) -> Gpu:
        if self.session is not None:
            raise NvmlError(self.session)
        if gpu.error is not None:
            raise NvmlError(gpu.error)
        return gpu
