"""Run the access gate as a person would, `pytest suites/supernode --bench DIR`, and read what it said."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from xml.etree import ElementTree as ET

from tests.plugin.plugin_runs import AS_INSTALLED
from tests.real.parts.installs import REPOSITORY

LAYERS = (
    "name",
    "connection",
    "tls",
    "http",
    "key",
    "models",
    "chat",
    "stream",
    "concurrency",
    "quota",
    "scheduler",
    "interconnect",
)
SUITE = REPOSITORY / "suites" / "supernode"
KEY_VARIABLE = "CANARY_KEY"
_LIMIT_SECONDS = 240.0
_PASSED_ON = ("PATH", "LANG", "LC_ALL", "TMPDIR", "COVERAGE_PROCESS_START")
_CUT_SHORT = "full report in element text]"  # what pytest 9.2 ends a long `message` attribute with
_EXCEPTION_NAME = re.compile(r"^(?:\w+\.)*[A-Z]\w*: ")  # layers are in lower case


@dataclass(frozen=True, kw_only=True)
class BenchFolder:
    """A folder with a `settings.json`, and the environment in which it can be read."""

    path: Path
    environ: Mapping[str, str] = field(repr=False)


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """`passed`, `failed`, `error` or `skipped`, and the message without the exception's name."""

    outcome: str
    message: str

    @property
    def layer_at_fault(self) -> str | None:
        """Layer that the message begins with, which need not be that of the test: a chat can fail on its key."""
        word = self.message.partition(": ")[0]
        return word if word in LAYERS else None


@dataclass(frozen=True, kw_only=True)
class GateResult:
    """What a run of the gate left behind."""

    exit_code: int
    outcomes: Mapping[str, Outcome]
    stdout: str
    seconds: float
    written: tuple[Path, ...]

    def of_layer(self, layer: str) -> dict[str, Outcome]:
        """Outcomes of the tests of that layer, by test name."""
        return {name: outcome for name, outcome in self.outcomes.items() if layer_of(name) == layer}

    @property
    def first_bad(self) -> str | None:
        """Name of the first test that failed or broke; the outermost, since tests run from outside in."""
        bad = {"failed", "error"}
        return next((name for name, each in self.outcomes.items() if each.outcome in bad), None)

    def places_of(self, secret: str) -> list[str]:
        """Where the secret can be read: in the output, or in a file written by the run."""
        places = ["output"] if secret in self.stdout else []
        return places + [str(file) for file in self.written if secret.encode() in file.read_bytes()]


def layer_of(test_name: str) -> str | None:
    """Layer that `test_key_wrong[domain0]` belongs to; None for a test of no layer."""
    word = re.split(r"[_\[]", test_name.removeprefix("test_"), maxsplit=1)[0]
    return word if word in LAYERS else None


def write_bench(
    folder: Path,
    url: str,
    key: str | None,
    model: str,
    fallback: str | None = None,
    *,
    toml: str | None = None,
    **more: object,
) -> BenchFolder:
    """Write a `settings.json` in the supernode's dialect, the key by reference only; None leaves it out.

    `more` are further top-level keys of the file; `toml` is the text of a `config.toml` beside it.
    """
    settings: dict[str, object] = {
        "api_endpoint": url,
        "api_key": f"${{{KEY_VARIABLE}}}",
        "model_route": {"default": model, "fallback": fallback},
        **more,
    }
    if fallback is None:
        settings["model_route"] = {"default": model}
    if key is None:
        del settings["api_key"]
    path = folder / "bench"
    path.mkdir(parents=True)
    (path / "settings.json").write_text(json.dumps(settings, indent=2))
    if toml is not None:
        (path / "config.toml").write_text(toml)
    return BenchFolder(path=path, environ={} if key is None else {KEY_VARIABLE: key})


def run_gate(
    bench: BenchFolder | Path,
    *arguments: str,
    env: Mapping[str, str] | None = None,
    prefix: tuple[str, ...] = (),
    limit_seconds: float = _LIMIT_SECONDS,
) -> GateResult:
    """Run the suite on a bench in a process of its own, in a folder beside the bench's.

    `env` is added to a small environment; `prefix` goes in front of the command, as `ip netns exec NAME`.
    Raises `AssertionError` when the run does not end within `limit_seconds`.
    """
    folder = bench.path if isinstance(bench, BenchFolder) else bench
    work = folder.parent / "gate"
    work.mkdir(exist_ok=True)
    junit = work / "junit.xml"
    junit.unlink(missing_ok=True)
    command = [sys.executable, "-m", "pytest", str(SUITE), "--bench", str(folder)]
    command += [f"--junitxml={junit}", *AS_INSTALLED, *arguments]
    environ = {name: os.environ[name] for name in _PASSED_ON if name in os.environ}
    environ |= {"HOME": str(work), "COLUMNS": "160"}
    environ |= bench.environ if isinstance(bench, BenchFolder) else {}
    before = time.time()
    started = time.monotonic()
    process = subprocess.Popen(
        [*prefix, *command],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
        cwd=work,
        env=environ | dict(env or {}),
        start_new_session=True,
    )
    try:
        output, _ = process.communicate(timeout=limit_seconds)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        output, _ = process.communicate()
        raise AssertionError(f"the gate ran for more than {limit_seconds:.0f} s:\n{output[-4000:]}") from None
    except BaseException:  # Ctrl-C or a timeout of ours must not leave the run behind
        os.killpg(process.pid, signal.SIGKILL)
        raise
    return GateResult(
        exit_code=process.returncode,
        outcomes=dict(outcomes_in(junit)) if junit.exists() else {},
        stdout=output,
        seconds=time.monotonic() - started,
        written=tuple(_written_since(before, work, folder, REPOSITORY / "reports")),
    )


def outcomes_in(junit: Path) -> Iterator[tuple[str, Outcome]]:
    for case in ET.parse(junit).getroot().iter("testcase"):
        outcome, message = "passed", ""
        for tag, name in (("failure", "failed"), ("error", "error"), ("skipped", "skipped")):
            found = case.find(tag)
            if found is not None:
                outcome, message = name, _EXCEPTION_NAME.sub("", _whole_message(found))
                break
        yield case.get("name") or "", Outcome(outcome=outcome, message=message)


def _whole_message(found: ET.Element) -> str:
    message = found.get("message") or ""
    if not message.endswith(_CUT_SHORT):
        return message
    return "\n".join(line[1:].strip() for line in (found.text or "").splitlines() if line.startswith("E "))


def _written_since(before: float, *folders: Path) -> Iterable[Path]:
    for folder in folders:
        for file in folder.rglob("*"):
            if file.is_file() and file.stat().st_mtime >= before - 1:
                yield file


def assert_green(result: GateResult, key: str | None) -> None:
    """Exit code 0, the way in tried as far as the stream, and the key nowhere."""
    bad = {name: each for name, each in result.outcomes.items() if each.outcome in {"failed", "error"}}
    assert not bad, _told(result, bad)
    assert result.exit_code == 0, result.stdout[-4000:]
    for layer in ("http", "models", "chat", "stream", "concurrency"):
        outcomes = {each.outcome for each in result.of_layer(layer).values()}
        assert "passed" in outcomes, f"no test of layer {layer} passed: {outcomes}\n{result.stdout[-4000:]}"
    assert_key_is_nowhere(result, key)


def assert_fails_at(result: GateResult, layers: Iterable[str], key: str | None, *, words: Iterable[str] = ()) -> None:
    """Exit code 1, one of `layers` named and explained, all inner ones blocked by it, and the key nowhere.

    `words` stand in the message of the failure, whatever their case.
    """
    told = _told(result, result.outcomes)
    name = result.first_bad
    assert name is not None, f"nothing failed: {told}"
    found = result.outcomes[name]
    at = layer_of(name)
    assert at is not None, f"{name} belongs to no layer: {told}"
    assert found.outcome == "failed", f"{name} is {found.outcome}: {told}"
    assert found.layer_at_fault in set(layers), f"expected {' or '.join(layers)}: {told}"
    for word in ("\nlikely: ", "\ntry: "):
        assert word in found.message, f"{name} does not say {word.strip()!r}: {found.message}"
    for word in words:
        assert word.lower() in found.message.lower(), f"{name} does not say {word!r}: {found.message}"
    assert result.exit_code == 1, result.stdout[-4000:]
    for inner in LAYERS[LAYERS.index(at) + 1 :]:
        for each_name, each in result.of_layer(inner).items():
            if "_health" in each_name:  # looks back on the whole run, whatever else was found
                continue
            assert each.outcome == "skipped", f"{each_name} is {each.outcome} after {name} failed: {told}"
            # A machine without RDMA skips its interconnect whatever else happens.
            named = re.search(rf"\b{found.layer_at_fault}: ", each.message) or inner == "interconnect"
            assert named, f"{each_name} does not name {found.layer_at_fault}: {each.message}"
    assert not [each for each in result.outcomes.values() if each.outcome == "error"], told
    assert_key_is_nowhere(result, key)


def assert_key_is_nowhere(result: GateResult, key: str | None) -> None:
    """Neither the output nor any file that the run wrote has the key."""
    if key:
        assert not result.places_of(key), f"the key can be read in {result.places_of(key)}"


def _told(result: GateResult, outcomes: Mapping[str, Outcome]) -> str:
    lines = [f"{name}: {each.outcome} {each.message}" for name, each in outcomes.items()]
    return "\n".join(["", *lines, result.stdout[-2000:]])
