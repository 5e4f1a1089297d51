"""What a bench is, once its files are read: frozen models with the unit of each figure in its name."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, SecretStr


class Part(BaseModel):
    """Base of all bench models: frozen, no unknown field, and no value in its validation errors (keys!)."""

    model_config = ConfigDict(frozen=True, extra="forbid", hide_input_in_errors=True)


class ModelRoute(Part):
    """Names of the models that are asked for."""

    default: str | None = None
    fallback: str | None = None


class RateLimit(Part):
    """What the gateway grants per minute; None where the files say nothing."""

    tokens_per_minute: int | None = None
    requests_per_minute: int | None = None


class RetryPolicy(Part):
    """How often a request is tried in all (1 = no retry), and the first pause in seconds."""

    max_attempts: int = 4
    backoff_seconds: float = 2.0


class Timeouts(Part):
    """Seconds until a connection, or the next bytes of an answer, are given up."""

    connect_seconds: float = 30.0
    read_seconds: float = 120.0


class HealthCheck(Part):
    """The background poll: whether, how often in seconds, and which path."""

    enabled: bool = False
    interval_seconds: float = 30.0
    endpoint: str = "/v1/models"


class Inference(Part):
    """What an inference request of the load asks for."""

    max_tokens: int = 256
    temperature: float = 0.0
    stream: bool = True


class Stress(Part):
    """The load: its kind, size and times in seconds."""

    mode: Literal["cpu", "gpu", "inference", "mixed"] = "mixed"
    concurrent_requests: int = 8
    request_interval_seconds: float = 0.2
    duration_seconds: float = 3600.0
    warmup_seconds: float = 120.0
    cpu_workers: int | None = None
    gpu_workers: int | None = None
    inference_workers: int | None = None
    """Processes that share the requests; None for as many as they need."""
    inference_ratio: float = 0.6
    """Share of issued work items that are inference requests, 0 to 1."""


class Monitor(Part):
    """What is sampled, how often in seconds, and the temperatures in °C at which a sensor warns or ends the load."""

    sample_interval_seconds: float = 5.0
    cpu_temp_path: str | None = None
    gpu_temp_cmd: str | None = None
    log_dir: str | None = None
    cpu_zones: tuple[str | int, ...] | None = None
    gpu_indices: tuple[int, ...] | None = None
    sensors: Mapping[str, str] = {}
    """Sensors whose own names do not say what they are, by the device that they are: `pump0` to `ipmi:FAN 7`.

    Of a PromQL expression (`prometheus:…`) also by the sensor's whole id: `"flow.rate_liters_per_minute"`.
    """
    ipmi_host: str | None = None
    """The BMC's address, with `:port` where it is not 623; None for the BMC of this machine, asked from inside."""
    ipmi_user: str | None = None
    ipmi_cipher_suite: int | None = None
    prometheus_url: str | None = None
    """Normalised: up to where `/api/v1/query` begins, without a trailing slash."""
    prometheus_user: str | None = None
    prometheus_labels: Mapping[str, tuple[str, ...]] = {}
    """Which of the server's series are this bench's: by label, the values that it may have."""
    alert_threshold_cpu_celsius: float = 85.0
    alert_threshold_gpu_celsius: float = 83.0
    critical_threshold_cpu_celsius: float | None = None
    critical_threshold_gpu_celsius: float | None = None


class Cluster(Part):
    """The supernode's name and size, as far as the files give it."""

    name: str | None = None
    scale_up_domain: str | int | None = None
    node_count: int | None = None
    gpu_per_node: int | None = None
    total_gpus: int | None = None


class Scheduler(Part):
    """The token scheduler: milliseconds an answer may take, and requests in one batch."""

    timeout_ms: int = 30000
    batch_size: int = 16


class ScaleOut(Part):
    """The network between domains: its protocol and what it falls back to."""

    enabled: bool = True
    protocol: str = "rdma"
    fallback: str | None = None


class Logging(Part):
    """Level, file and size in megabytes at which the file is rotated."""

    level: str = "INFO"
    output: str | None = None
    rotate_size_mb: float | None = None


class Domain(Part):
    """One scale-up domain: one way in, with its own address, key and models. A workstation has exactly one."""

    name: str
    base_url: str
    """Normalised: no trailing slash, and the version segment (such as `/v1`) is in it."""
    key: SecretStr | None = None
    key_origin: str = "none"
    """`$NAME` of an environment variable, the file and key of a literal, or `none`. Never the key."""
    route: ModelRoute = ModelRoute()
    interconnect: str | None = None
    latency_target_us: float | None = None
    memory_pool: str | int | float | bool | None = None


class Bench(Part):
    """The machine or supernode under test: every setting, with the place that it came from."""

    name: str
    folder: Path | None = None
    files: tuple[Path, ...] = ()
    demo: bool = False
    domains: Annotated[tuple[Domain, ...], Field(min_length=1)]
    timeouts: Timeouts = Timeouts()
    retry: RetryPolicy = RetryPolicy()
    rate_limit: RateLimit = RateLimit()
    health_check: HealthCheck = HealthCheck()
    inference: Inference = Inference()
    stress: Stress = Stress()
    monitor: Monitor = Monitor()
    cluster: Cluster | None = None
    scheduler: Scheduler = Scheduler()
    scale_out: ScaleOut | None = None
    logging: Logging = Logging()
    ipmi_password: SecretStr | None = None
    """`$IPMI_PASSWORD`, where the BMC is asked over the network."""
    prometheus_password: SecretStr | None = None
    """`$PROMETHEUS_PASSWORD`, where Prometheus is asked as a user."""
    prometheus_token: SecretStr | None = None
    """`$PROMETHEUS_TOKEN`, where Prometheus is asked without a user."""
    origins: Mapping[str, str] = {}
    """Where each setting came from, by its dotted name: `timeouts.read_seconds`, `domains.east.base_url`."""
    notes: tuple[str, ...] = ()
    """What a person should be told about the files: conflicts and corrections, one line each."""

    def origin(self, setting: str) -> str:
        """Where a setting came from: file and key, `command line --…`, or `default`.

        Raises:
            KeyError: There is no setting of that dotted name.
        """
        return self.origins[setting]

    def secrets(self) -> tuple[SecretStr, ...]:
        """Every key of the bench, and what the BMC and Prometheus want to know, each once."""
        others = (self.ipmi_password, self.prometheus_password, self.prometheus_token)
        keys = [*(domain.key for domain in self.domains), *others]
        return tuple(dict.fromkeys(key for key in keys if key is not None))
