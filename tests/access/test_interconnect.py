"""The interconnect's three probes: links from sysfs trees, and latency from programs that print, hang, die and fork."""

from __future__ import annotations

import base64
import gc
import os
import shlex
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from textwrap import dedent
from typing import Any

import pytest
from pydantic import SecretStr

from pytest_thermal.access.gateway import Gateway
from pytest_thermal.access.interconnect import ascend, commands, latency_runs
from pytest_thermal.access.interconnect.commands import Program, first_lines, run
from pytest_thermal.access.ledger import Ledger
from pytest_thermal.access.plan import Plan
from pytest_thermal.access.probes.interconnect import fallback, interconnect, latency
from pytest_thermal.access.verdict import CannotMeasure, Verdict
from pytest_thermal.bench import Bench, Domain, ScaleOut
from pytest_thermal.model import Outcome
from tests.support.patience import PATIENCE_SECONDS, until

SAMPLES = Path(__file__).parents[2] / "fixtures" / "interconnect"
KEY = "sk-canary-5f1b0c2d9e8a7b6c5d4e3f2a1b0c9d8e"
RDMA_TCP = ScaleOut(enabled=True, protocol="rdma", fallback="tcp")


class Machine:
    """A machine of files below a folder: its /sys, /dev, /etc and a PATH."""

    def __init__(self, root: Path) -> None:
        self.root = root
        for name in ("sys/class", "dev", "etc", "bin"):
            (root / name).mkdir(parents=True)

    def port(self, device: str = "mlx5_0", number: int = 1, *, model: str = "MT4129", **attributes: str) -> None:
        top = self.root / "sys" / "class" / "infiniband" / device
        folder = top / "ports" / str(number)
        folder.mkdir(parents=True)
        (top / "hca_type").write_text(f"{model}\n")
        told = {
            "state": "4: ACTIVE",
            "phys_state": "5: LinkUp",
            "rate": "400 Gb/sec (4X NDR)",
            "link_layer": "InfiniBand",
            **attributes,
        }
        for name, text in told.items():
            (folder / name).write_text(f"{text}\n")

    def device(self, name: str) -> None:
        (self.root / "dev" / name).touch()

    def program(self, name: str, body: str, *, python: bool = False) -> Path:
        path = self.root / "bin" / name
        shebang = sys.executable if python else "/bin/sh"
        path.write_text(f"#!{shebang}\n{dedent(body)}")
        path.chmod(0o755)
        return path

    def gateway(
        self,
        *,
        named: str | None = "infiniband",
        target_us: float | None = 5,
        scale_out: ScaleOut | None = None,
        command: str | None = None,
        seconds: float = PATIENCE_SECONDS,
        environ: Mapping[str, str] = {},
    ) -> Gateway:
        domain = Domain(
            name="east",
            base_url="http://127.0.0.1:9/v1",
            key=SecretStr(KEY),
            interconnect=named,
            latency_target_us=target_us,
        )
        origins = {
            "domains.east.latency_target_us": "config.toml [scale_up] latency_target_us",
            "domains.east.interconnect": "config.toml [scale_up] interconnect",
            "scale_out.protocol": "config.toml [scale_out] protocol",
        }
        bench = Bench(name="b", domains=(domain,), scale_out=scale_out, origins=origins)
        plan = Plan(sysfs=self.root / "sys", interconnect_command=command, interconnect_seconds=seconds)
        path = f"{self.root / 'bin'}:/usr/bin:/bin" if "PATH" not in environ else environ["PATH"]
        return Gateway(bench, domain, plan=plan, ledger=Ledger(100), environ={**environ, "PATH": path})


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    return Machine(tmp_path / "machine")


def failed_words(verdict: Verdict) -> str:
    assert verdict.outcome is Outcome.FAILED, verdict
    assert verdict.likely, verdict
    assert verdict.advice, verdict
    return verdict.seen


def skipped_words(verdict: Verdict) -> str:
    assert verdict.outcome is Outcome.SKIPPED, verdict
    return verdict.seen


def inconclusive(probe: Callable[[Gateway], Verdict], gateway: Gateway) -> CannotMeasure:
    with pytest.raises(CannotMeasure) as caught:
        probe(gateway)
    assert caught.value.likely
    assert caught.value.advice
    return caught.value


# --- interconnect: whether it is asked for -------------------------------------------------------------------


@pytest.mark.parametrize(
    "named,scale_out",
    [
        (None, None),
        ("none", None),
        ("", ScaleOut(enabled=False, protocol="rdma")),
        (None, ScaleOut(enabled=True, protocol="none")),
    ],
)
def test_a_bench_without_interconnect_has_none_to_check(
    machine: Machine, named: str | None, scale_out: ScaleOut | None
) -> None:
    machine.port(state="1: DOWN")
    seen = skipped_words(interconnect(machine.gateway(named=named, scale_out=scale_out)))
    assert seen.startswith("the bench names no interconnect")


@pytest.mark.parametrize("named", ["rdma", "RoCE v2", "InfiniBand NDR", "ib", "hccs", "UB", "efa"])
def test_a_machine_without_devices_is_skipped_and_says_that_nothing_was_measured(machine: Machine, named: str) -> None:
    seen = skipped_words(interconnect(machine.gateway(named=named)))
    assert seen.startswith("nothing was measured: this machine has no RDMA device (in ")
    assert seen.endswith(f"the bench names {named} (config.toml [scale_up] interconnect)")


def test_a_fabric_named_twice_is_told_once(machine: Machine) -> None:
    gateway = machine.gateway(named="rdma", scale_out=RDMA_TCP)
    seen = skipped_words(interconnect(gateway))
    assert seen.endswith("rdma (config.toml [scale_up] interconnect), rdma (config.toml [scale_out] protocol)")
    elsewhere = gateway.bench.model_copy(update={"origins": {}})
    gateway.bench = elsewhere
    assert skipped_words(interconnect(gateway)).endswith("the bench names rdma (bench file)")


@pytest.mark.parametrize("named", ["nvlink", "tcp", "xgmi", "hub"])
def test_ports_say_nothing_of_a_fabric_they_do_not_carry(machine: Machine, named: str) -> None:
    machine.port()
    assert skipped_words(interconnect(machine.gateway(named=named))).startswith(
        f"nothing was measured: the bench names {named} (config.toml [scale_up] interconnect)"
    )


def test_what_stays_unmeasured_beside_a_pass_is_said(machine: Machine) -> None:
    machine.port()
    verdict = interconnect(machine.gateway(named="nvlink", scale_out=RDMA_TCP))
    assert verdict.outcome is Outcome.PASSED
    assert verdict.warnings == ("nothing was measured of nvlink (config.toml [scale_up] interconnect)",)


def test_rdma_ports_do_not_pass_for_npus(machine: Machine) -> None:
    machine.port()
    assert "no Ascend NPU" in skipped_words(interconnect(machine.gateway(named="hccs")))


def test_a_wrong_sysfs_is_not_a_machine_without_devices(machine: Machine) -> None:
    (machine.root / "sys" / "class").rmdir()
    assert "is no sysfs" in inconclusive(interconnect, machine.gateway()).seen


# --- interconnect: links -------------------------------------------------------------------------------------


def test_active_ports_pass_with_their_rates(machine: Machine) -> None:
    for index in (0, 1, 2, 10):
        machine.port(f"mlx5_{index}")
    verdict = interconnect(machine.gateway())
    assert verdict.outcome is Outcome.PASSED
    assert verdict.warnings == ()
    assert verdict.seen.startswith("4 ports active: mlx5_0 port 1 (InfiniBand, 400 Gb/s), mlx5_1")
    assert list(verdict.evidence) == ["mlx5_0 port 1", "mlx5_1 port 1", "mlx5_2 port 1", "mlx5_10 port 1"]
    assert verdict.evidence["mlx5_0 port 1"] == "ACTIVE, LinkUp, 400 Gb/s, InfiniBand"


def test_a_message_names_some_ports_and_the_evidence_all(machine: Machine) -> None:
    for index in range(16):
        machine.port(f"mlx5_{index}")
    verdict = interconnect(machine.gateway())
    assert verdict.seen.endswith("mlx5_7 port 1 (InfiniBand, 400 Gb/s) and 8 more")
    assert len(verdict.evidence) == 16


@pytest.mark.parametrize("physical", ["2: Polling", "3: Disabled"])
def test_an_unused_port_beside_active_ones_is_a_warning(machine: Machine, physical: str) -> None:
    machine.port("mlx5_0")
    machine.port("mlx5_1", state="1: DOWN", phys_state=physical, rate="10 Gb/sec (4X SDR)")
    verdict = interconnect(machine.gateway())
    assert verdict.outcome is Outcome.PASSED
    assert verdict.seen.startswith("1 port active: mlx5_0 port 1")
    assert verdict.warnings == (f"mlx5_1 port 1 DOWN ({physical[3:]}): not in use, or its cable is out",)


@pytest.mark.parametrize(
    "physical,likely,advice",
    [("2: Polling", "no cable", "cables"), ("3: Disabled", "switched off here", "ip link set")],
)
def test_no_active_port_fails(machine: Machine, physical: str, likely: str, advice: str) -> None:
    for index in (0, 1):
        machine.port(f"mlx5_{index}", state="1: DOWN", phys_state=physical)
    verdict = interconnect(machine.gateway(named="rdma"))
    state = f"DOWN ({physical[3:]})"
    assert failed_words(verdict) == f"no port is active: mlx5_0 port 1 {state}, mlx5_1 port 1 {state}"
    assert likely in verdict.likely
    assert advice in verdict.advice


@pytest.mark.parametrize(
    "state,physical,layer,likely",
    [
        ("2: INIT", "5: LinkUp", "InfiniBand", "subnet manager"),
        ("3: ARMED", "5: LinkUp", "InfiniBand", "subnet manager"),
        ("4: ACTIVE", "6: LinkErrorRecovery", "InfiniBand", "cable"),
        ("1: DOWN", "4: PortConfigurationTraining", "InfiniBand", "cable"),
        ("5: ACTIVE_DEFER", "5: LinkUp", "Ethernet", "cable"),
        ("2: INIT", "5: LinkUp", "Ethernet", "cable"),
    ],
)
def test_a_port_that_is_half_up_fails_beside_active_ones(
    machine: Machine, state: str, physical: str, layer: str, likely: str
) -> None:
    machine.port("mlx5_0", link_layer=layer)
    machine.port("mlx5_3", state=state, phys_state=physical, link_layer=layer)
    verdict = interconnect(machine.gateway(named="rdma"))
    assert failed_words(verdict) == f"mlx5_3 port 1 is {state[3:]} ({physical[3:]})"
    assert likely in verdict.likely


def test_a_link_slower_than_its_siblings_fails(machine: Machine) -> None:
    for index in (0, 1, 2):
        machine.port(f"mlx5_{index}")
    machine.port("mlx5_3", rate="200 Gb/sec (2X NDR)")
    verdict = interconnect(machine.gateway())
    assert failed_words(verdict) == "mlx5_3 port 1 runs at 200 Gb/s, its siblings at up to 400 Gb/s"
    assert "cable" in verdict.advice


@pytest.mark.parametrize("difference", [{"model": "MT4117"}, {"link_layer": "Ethernet"}])
def test_other_adapters_are_no_siblings(machine: Machine, difference: dict[str, Any]) -> None:
    machine.port("mlx5_0")
    machine.port("mlx5_8", rate="25 Gb/sec (1X EDR)", **difference)
    assert interconnect(machine.gateway(named="rdma")).outcome is Outcome.PASSED


def test_all_faults_are_named_at_once(machine: Machine) -> None:
    machine.port("mlx5_0")
    machine.port("mlx5_1", state="2: INIT")
    machine.port("mlx5_2", rate="100 Gb/sec (4X EDR)")
    verdict = interconnect(machine.gateway())
    assert failed_words(verdict) == (
        "mlx5_1 port 1 is INIT (LinkUp); mlx5_2 port 1 runs at 100 Gb/s, its siblings at up to 400 Gb/s"
    )
    assert "subnet manager" in verdict.likely
    assert "slower" in verdict.likely


@pytest.mark.parametrize(
    "named,layer,good",
    [
        ("infiniband", "InfiniBand", True),
        ("infiniband", "Ethernet", False),
        ("roce", "Ethernet", True),
        ("roce", "InfiniBand", False),
        ("rdma", "Ethernet", True),
        ("rdma over ib or roce", "InfiniBand", True),
    ],
)
def test_a_named_fabric_needs_ports_of_its_own_kind(machine: Machine, named: str, layer: str, good: bool) -> None:
    machine.port(link_layer=layer)
    verdict = interconnect(machine.gateway(named=named))
    if good:
        assert verdict.outcome is Outcome.PASSED
    else:
        assert f"no port of this machine is that: mlx5_0 port 1 {layer} ACTIVE" in failed_words(verdict)


def test_infiniband_that_is_down_is_not_saved_by_a_management_adapter(machine: Machine) -> None:
    machine.port("mlx5_0", state="1: DOWN", phys_state="2: Polling")
    machine.port("mlx5_8", link_layer="Ethernet", rate="25 Gb/sec (1X EDR)")
    assert failed_words(interconnect(machine.gateway())) == "no port is active: mlx5_0 port 1 DOWN (Polling)"


def test_an_active_port_without_address_is_a_warning(machine: Machine) -> None:
    machine.port()
    (machine.root / "sys/class/infiniband/mlx5_0/ports/1/gids").mkdir()
    (machine.root / "sys/class/infiniband/mlx5_0/ports/1/gids/0").write_text(
        "0000:0000:0000:0000:0000:0000:0000:0000\n"
    )
    verdict = interconnect(machine.gateway())
    assert verdict.outcome is Outcome.PASSED
    assert verdict.warnings == ("mlx5_0 port 1 is active without an address: its first GID is empty",)


def test_a_port_that_cannot_be_read_is_never_a_pass(machine: Machine) -> None:
    machine.port("mlx5_0")
    machine.port("mlx5_1")
    state = machine.root / "sys/class/infiniband/mlx5_1/ports/1/state"
    state.unlink()
    state.mkdir()
    assert "mlx5_1/ports/1/state cannot be read" in inconclusive(interconnect, machine.gateway()).seen


# --- interconnect: NPUs --------------------------------------------------------------------------------------


def npus(machine: Machine, body: str = 'echo "link status: UP"') -> None:
    for name in ("davinci0", "davinci1", "davinci10", "davinci_manager"):
        machine.device(name)
    machine.program("hccn_tool", body)


@pytest.mark.parametrize("named", ["hccs", "ub", "roce", "rdma"])
def test_npus_with_links_up_pass(machine: Machine, named: str) -> None:
    npus(machine)
    verdict = interconnect(machine.gateway(named=named))
    assert verdict.outcome is Outcome.PASSED
    assert verdict.seen == "3 ports active: npu0 (Ethernet), npu1 (Ethernet), npu10 (Ethernet)"


def test_an_npu_whose_link_is_down_fails(machine: Machine) -> None:
    npus(machine, 'if [ "$*" = "-i 10 -link -g" ]; then echo "link status: DOWN"; else echo "link status: UP"; fi')
    verdict = interconnect(machine.gateway(named="roce"))
    assert failed_words(verdict) == "the network port of npu10 is DOWN"
    assert "hccn_tool -i 10 -optical -g" in verdict.advice


@pytest.mark.parametrize(
    "body,seen",
    [
        ("echo 'hccn_tool is busy, please try again' >&2; exit 3", "ended with status 3: hccn_tool is busy"),
        ("echo 'link status: unknown'", "did not tell the link's state: link status: unknown"),
        ("echo 'link status: UP'; exit 1", "ended with status 1"),
        ("exit 0", "did not tell the link's state: no output"),
        ("exec sleep 600", "did not end within 0.5 s"),
    ],
)
def test_an_npu_that_cannot_be_asked_is_not_measured(
    machine: Machine, monkeypatch: pytest.MonkeyPatch, body: str, seen: str
) -> None:
    if "sleep" in body:
        monkeypatch.setattr(ascend, "TOOL_SECONDS", 0.5)
    npus(machine, body)
    assert seen in inconclusive(interconnect, machine.gateway(named="hccs")).seen


def test_npus_without_their_tool_are_not_measured(machine: Machine) -> None:
    machine.device("davinci0")
    assert "hccn_tool" in inconclusive(interconnect, machine.gateway(named="hccs")).seen


def test_npus_are_not_asked_about_infiniband(machine: Machine) -> None:
    machine.device("davinci0")
    machine.port()
    assert interconnect(machine.gateway(named="infiniband")).outcome is Outcome.PASSED


# --- fallback ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "scale_out,reason",
    [
        (None, "no protocol between domains"),
        (ScaleOut(enabled=False, protocol="rdma", fallback="tcp"), "no protocol between domains"),
        (ScaleOut(enabled=True, protocol="rdma"), "no fallback"),
        (ScaleOut(enabled=True, protocol="tcp", fallback="udp"), "cannot be told"),
        (ScaleOut(enabled=True, protocol="ib", fallback="roce"), "cannot be told"),
    ],
)
def test_without_a_configured_fallback_there_is_none_in_use(
    machine: Machine, scale_out: ScaleOut | None, reason: str
) -> None:
    machine.port(state="1: DOWN")
    assert reason in skipped_words(fallback(machine.gateway(scale_out=scale_out, environ={"NCCL_NET": "Socket"})))


def test_a_machine_without_devices_cannot_show_its_fallback(machine: Machine) -> None:
    gateway = machine.gateway(scale_out=RDMA_TCP, environ={"NCCL_IB_DISABLE": "1"})
    assert "no RDMA device" in skipped_words(fallback(gateway))


def test_an_active_port_and_a_clean_environment_pass(machine: Machine) -> None:
    machine.port()
    verdict = fallback(machine.gateway(scale_out=RDMA_TCP, environ={"NCCL_DEBUG": "INFO"}))
    assert verdict.outcome is Outcome.PASSED
    assert verdict.seen == (
        "rdma is carried by mlx5_0 port 1 (InfiniBand, 400 Gb/s); nothing in this environment forces tcp"
    )


def test_no_active_port_is_the_fallback_in_use(machine: Machine) -> None:
    machine.port(state="1: DOWN", phys_state="2: Polling")
    seen = failed_words(fallback(machine.gateway(scale_out=RDMA_TCP)))
    assert seen.startswith("fallback tcp is in use: no port for rdma (config.toml [scale_out] protocol) is active")


def test_a_port_of_the_wrong_kind_carries_nothing(machine: Machine) -> None:
    machine.port(link_layer="Ethernet")
    gateway = machine.gateway(scale_out=ScaleOut(enabled=True, protocol="ib", fallback="tcp"))
    assert "no port for ib" in failed_words(fallback(gateway))


@pytest.mark.parametrize(
    "name,value",
    [
        ("NCCL_IB_DISABLE", "1"),
        ("NCCL_IB_DISABLE", "01"),
        ("NCCL_NET", "Socket"),
        ("NCCL_NET", "socket"),
        ("MCCL_IB_DISABLE", "1"),
        ("CNCL_IB_DISABLE", "1"),
        ("HCCL_NPU_NET_PROTOCOL", "TCP"),
        ("HCCL_OVER_TCP", "1"),
        ("UCX_TLS", "tcp"),
        ("UCX_TLS", "tcp,self,sm,cuda_copy"),
        ("UCX_TLS", "^ib"),
        ("UCX_TLS", "^rc,ud,dc"),
        ("FI_PROVIDER", "tcp"),
        ("FI_PROVIDER", "tcp;ofi_rxm"),
    ],
)
def test_a_variable_that_forces_tcp_is_the_fallback_in_use(machine: Machine, name: str, value: str) -> None:
    machine.port()
    verdict = fallback(machine.gateway(scale_out=RDMA_TCP, environ={name: value}))
    assert failed_words(verdict) == f"fallback tcp is in use: {name}={value} (environment)"
    assert verdict.advice.startswith(f"unset {name}")


@pytest.mark.parametrize(
    "name,value",
    [
        ("NCCL_IB_DISABLE", "0"),
        ("NCCL_IB_DISABLE", ""),
        ("NCCL_IB_DISABLE", "true"),
        ("NCCL_NET", "IB"),
        ("NCCL_NET", "AWS Libfabric"),
        ("HCCL_NPU_NET_PROTOCOL", "RDMA"),
        ("HCCL_OVER_TCP", "0"),
        ("UCX_TLS", "all"),
        ("UCX_TLS", "rc,ud,sm,self,tcp"),
        ("UCX_TLS", "rc_mlx5:aux,tcp"),
        ("UCX_TLS", "^tcp"),
        ("UCX_TLS", "sm,self"),
        ("FI_PROVIDER", "verbs;ofi_rxm"),
        ("FI_PROVIDER", "efa,tcp"),
        ("FI_PROVIDER", ""),
    ],
)
def test_a_variable_that_leaves_rdma_alone_is_none(machine: Machine, name: str, value: str) -> None:
    machine.port()
    assert fallback(machine.gateway(scale_out=RDMA_TCP, environ={name: value})).outcome is Outcome.PASSED


def test_nccl_reads_files_too_and_the_environment_wins(machine: Machine) -> None:
    machine.port()
    conf = machine.root / "etc" / "nccl.conf"
    conf.write_text("# NCCL_NET=Socket\nNCCL_IB_DISABLE=1 # while the cable is out\nNCCL_SOCKET_IFNAME==eth0\n")
    assert failed_words(fallback(machine.gateway(scale_out=RDMA_TCP))) == (
        f"fallback tcp is in use: NCCL_IB_DISABLE=1 ({conf})"
    )
    overruled = machine.gateway(scale_out=RDMA_TCP, environ={"NCCL_IB_DISABLE": "0"})
    assert fallback(overruled).outcome is Outcome.PASSED
    own = machine.root / "own.conf"
    own.write_text("NCCL_IB_DISABLE=0\nNCCL_NET=Socket\n")
    named = machine.gateway(scale_out=RDMA_TCP, environ={"NCCL_CONF_FILE": str(own)})
    assert failed_words(fallback(named)) == f"fallback tcp is in use: NCCL_NET=Socket ({own})"


def test_ports_that_cannot_be_read_do_not_hide_a_forced_fallback(machine: Machine) -> None:
    machine.port()
    (machine.root / "sys/class/infiniband/mlx5_0/ports/1/state").unlink()
    inconclusive(fallback, machine.gateway(scale_out=RDMA_TCP))
    forced = machine.gateway(scale_out=RDMA_TCP, environ={"NCCL_NET": "Socket"})
    assert "NCCL_NET=Socket" in failed_words(fallback(forced))


# --- latency: the user's command -----------------------------------------------------------------------------


def printing(machine: Machine, name: str, sample: str) -> str:
    machine.program(name, f"cat {shlex.quote(str(SAMPLES / sample))}\n")
    return name


def test_without_a_target_nothing_is_run(machine: Machine, tmp_path: Path) -> None:
    machine.program("ib_write_lat", f"touch {tmp_path / 'ran'}\n")
    machine.port()
    assert "latency_target_us" in skipped_words(latency(machine.gateway(target_us=None, command="ib_write_lat peer")))
    assert not (tmp_path / "ran").exists()


def test_a_latency_within_the_target_passes(machine: Machine) -> None:
    command = f"{printing(machine, 'ib_write_lat', 'ib_write_lat.txt')} -d mlx5_2 peer"
    verdict = latency(machine.gateway(target_us=1.92, command=command))
    assert verdict.outcome is Outcome.PASSED
    assert verdict.seen == (
        "1.92 µs measured by ib_write_lat (t_typical, 2 bytes), target 1.92 µs"
        " (config.toml [scale_up] latency_target_us)"
    )
    assert verdict.warnings == ()
    assert verdict.evidence["latency_us"] == 1.92
    assert verdict.evidence["t_min_us"] == 1.83
    assert verdict.evidence["99%_us"] == 2.41
    assert verdict.evidence["command"] == command
    assert verdict.evidence["measured"] == "one message over a link"
    assert "Mtu             : 4096[B]" in verdict.transcript


def test_a_latency_above_the_target_fails(machine: Machine) -> None:
    command = f"{printing(machine, 'ib_read_lat', 'ib_read_lat_roce.txt')} peer"
    verdict = latency(machine.gateway(target_us=3, command=command))
    assert failed_words(verdict) == (
        "4.11 µs measured by ib_read_lat (t_typical, 2 bytes), target 3 µs (config.toml [scale_up] latency_target_us)"
    )
    assert verdict.evidence["target_us"] == 3


def test_a_collective_is_judged_where_the_user_asks_for_it_and_called_one(machine: Machine) -> None:
    gateway = machine.gateway(command=printing(machine, "hccl.sh", "hccl_all_reduce_test.txt"))
    verdict = latency(gateway)
    assert "21.37 µs measured by hccl_test (aveg_time, 64 bytes), the time of a whole collective" in failed_words(
        verdict
    )
    assert "the links need not be slow" in verdict.likely
    good = machine.gateway(target_us=30, command="hccl.sh")
    assert latency(good).outcome is Outcome.PASSED


@pytest.mark.parametrize(
    "sample,seen", [("all_reduce_perf_wrong.txt", "12 wrong values"), ("hccl_failed.txt", "check_result: failed in 1")]
)
def test_wrong_data_fails_however_fast_it_was(machine: Machine, sample: str, seen: str) -> None:
    gateway = machine.gateway(target_us=1000, command=printing(machine, "test.sh", sample))
    assert seen in failed_words(latency(gateway))


def test_the_command_is_split_like_a_shell_and_run_without_one(machine: Machine) -> None:
    machine.program("args.sh", 'for word in "$@"; do echo "[$word]" >&2; done; echo 3 us\n')
    verdict = latency(machine.gateway(command="args.sh 'one two' $HOME ';' \"*\""))
    assert verdict.outcome is Outcome.PASSED
    assert verdict.evidence["command"] == "args.sh 'one two' '$HOME' ';' '*'"


def test_a_script_may_print_one_figure(machine: Machine) -> None:
    machine.program("measure.sh", "echo preparing >&2; printf '3200 ns'\n")
    verdict = latency(machine.gateway(target_us=3, command="measure.sh"))
    assert failed_words(verdict).startswith("3.2 µs measured by measure.sh, target 3 µs")


KEYED = {
    "TAOTOKEN_API_KEY": KEY,
    "AUTHORIZATION": f"Bearer {KEY}",
    "CONFIG_JSON": f'{{"key": "{KEY}"}}',
    "BASIC": base64.b64encode(KEY.encode()).decode(),
    "URL": f"https://gateway.example/?key={KEY}",
}


def test_no_variable_with_the_key_reaches_the_command(machine: Machine, tmp_path: Path) -> None:
    seen = tmp_path / "environment"
    machine.program("measure.sh", f"env > {seen}; cat /proc/self/cmdline >> {seen}; echo 3 us\n")
    gateway = machine.gateway(command="measure.sh", environ={**KEYED, "NCCL_DEBUG": "INFO", "HOME": "/root"})
    assert latency(gateway).outcome is Outcome.PASSED
    text = seen.read_text("utf-8")
    assert "NCCL_DEBUG=INFO" in text
    for name in KEYED:
        assert f"{name}=" not in text
    assert KEY not in text


def test_no_variable_with_the_key_reaches_the_npus_tool(machine: Machine, tmp_path: Path) -> None:
    npus(machine, f"env >> {tmp_path / 'environment'}; echo 'link status: UP'")
    assert interconnect(machine.gateway(named="hccs", environ=KEYED)).outcome is Outcome.PASSED
    text = (tmp_path / "environment").read_text("utf-8")
    assert "PATH=" in text
    assert KEY not in text
    assert KEYED["BASIC"] not in text


# --- latency: commands that give no figure -------------------------------------------------------------------

NO_DEVICE = f"cat {shlex.quote(str(SAMPLES / 'no_device.stderr'))} >&2; exit 1"


@pytest.mark.parametrize(
    "body,seen,likely",
    [
        (NO_DEVICE, "ended with status 1: Did not detect devices / If device exists", "no RDMA device"),
        ('echo "Couldn\'t connect to peer:18515" >&2; exit 1', "Couldn't connect to peer", "runs no server"),
        ("echo 'Failed to modify QP 27 to RTR' >&2; exit 1", "Failed to modify QP", "GID"),
        ('echo "Couldn\'t allocate MR" >&2; exit 1', "Couldn't allocate MR", "pin"),
        ("echo 'Permission denied' >&2; exit 1", "Permission denied", "may not use"),
        ("echo 'node-a: Test NCCL failure common.cu:1012'; exit 3", "status 3: node-a", "communication library"),
        ("echo 1.2 us; exit 7", "ended with status 7: 1.2 us", "the test itself failed"),
        ("exit 2", "ended with status 2: no output", "the test itself failed"),
        ("kill -SEGV $$", "was ended by signal 11", "the test itself failed"),
        ("true", "not understood: it is no table of a test that is known here", "broke off"),
        ("echo hello; echo world", "it begins: hello / world", "another test"),
        ("echo oops >&2", "it begins: oops", "another test"),
        (f"cat {SAMPLES / 'ib_write_bw.txt'}", "bandwidth test", "another test"),
        ("echo nan us", "nan µs measured by measure.sh, which is not plausible", "measured nothing"),
        ("echo 0 us", "0 µs measured by measure.sh, which is not plausible", "measured nothing"),
        ("echo -- -2.5 us | cut -c 4-", "-2.5 µs measured by measure.sh, which is not plausible", "measured nothing"),
        ("printf '\\377\\376 \\000 binary'", "not understood", "another test"),
    ],
)
def test_a_command_without_a_figure_is_inconclusive(machine: Machine, body: str, seen: str, likely: str) -> None:
    machine.program("measure.sh", f"{body}\n")
    error = inconclusive(latency, machine.gateway(command="measure.sh peer"))
    assert seen in error.seen
    assert likely in error.likely


@pytest.mark.parametrize("cell", ["nan", "0.00", "-1.92"])
def test_a_table_with_an_impossible_figure_is_inconclusive(machine: Machine, tmp_path: Path, cell: str) -> None:
    table = (SAMPLES / "ib_write_lat.txt").read_text("utf-8").replace(" 1.92 ", f" {cell} ")
    (tmp_path / "table").write_text(table)
    machine.program("ib_write_lat", f"cat {tmp_path / 'table'}\n")
    assert "not plausible" in inconclusive(latency, machine.gateway(command="ib_write_lat peer")).seen


@pytest.mark.parametrize(
    "command,seen",
    [
        ("no_such_test -d mlx5_0", "no_such_test of --interconnect-cmd is not found"),
        ("/no/such/test", "/no/such/test of --interconnect-cmd is not found"),
        ("NCCL_DEBUG=INFO all_reduce_perf", "NCCL_DEBUG=INFO of --interconnect-cmd is not found"),
        ("ib_write_lat 'peer", "cannot be split into words"),
        ("", "--interconnect-cmd is empty"),
    ],
)
def test_a_command_that_cannot_be_started_is_inconclusive(machine: Machine, command: str, seen: str) -> None:
    with pytest.raises(CannotMeasure) as caught:
        latency(machine.gateway(command=command))
    assert seen in caught.value.seen
    assert caught.value.advice


def test_a_file_that_is_no_program_is_inconclusive(machine: Machine) -> None:
    machine.program("measure", "").write_bytes(b"\x7fELF no")
    error = inconclusive(latency, machine.gateway(command="measure"))
    assert "could not be started: Exec format error" in error.seen


def test_shell_signs_are_explained_when_the_command_fails(machine: Machine) -> None:
    machine.program("measure.sh", "echo 'Permission denied' >&2; exit 1\n")
    assert "script" in inconclusive(latency, machine.gateway(command="measure.sh | tail -1")).advice


class Since:
    """The machine's clock, and hours ahead of it once a file is there: when a program is where it is to hang."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def monotonic(self) -> float:
        return time.monotonic() + 10_000 * self._path.exists()

    def sleep(self, seconds: float) -> None:
        time.sleep(seconds)


@pytest.fixture
def hanging(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Once this file is there, the time of all programs is over."""
    path = tmp_path / "hangs"
    for module in (commands, latency_runs):
        monkeypatch.setattr(module, "time", Since(path))
    return path


def test_a_command_that_hangs_is_stopped_and_quoted(machine: Machine, hanging: Path) -> None:
    machine.program("measure.sh", f"echo waiting for the peer; touch {hanging}; exec sleep 600\n")
    error = inconclusive(latency, machine.gateway(command="measure.sh peer", seconds=300))
    assert error.seen == "measure.sh peer did not end within 300 s and was stopped; it said: waiting for the peer"


def test_one_that_ended_in_time_is_no_late_one_because_we_were(machine: Machine, tmp_path: Path) -> None:
    program = machine.program("measure.sh", f"echo 3 us; touch {tmp_path / 'ended'}\n")
    with Program([str(program)], environ=dict(os.environ)) as running:
        until(lambda: not running.alive)
        ran = running.wait(-10.0)  # this process stood still, for longer than the program had time
    assert (ran.ok, ran.output, ran.timed_out) == (True, "3 us\n", False)


def test_endless_output_is_stopped(machine: Machine) -> None:
    program = machine.program("endless.sh", "exec yes 3 us\n")
    ran = run([str(program)], environ=dict(os.environ), seconds=60, limit_bytes=5000)
    assert (ran.overflowed, ran.ok, ran.status) == (True, False, None)
    assert len(ran.output) == 5000
    error = inconclusive(latency, machine.gateway(command="endless.sh", seconds=60))
    assert error.seen == "endless.sh wrote without end and was stopped; it began: 3 us / 3 us / 3 us"


# --- latency: nothing is left behind -------------------------------------------------------------------------


def alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_bytes().rpartition(b")")[2].split()[0] not in (b"Z", b"X")
    except OSError:  # gone, or going just now
        return False


def written_pids(folder: Path, count: int) -> list[int]:
    deadline = time.monotonic() + PATIENCE_SECONDS
    while time.monotonic() < deadline:
        pids = [int(path.read_text()) for path in folder.glob("*.pid") if path.read_text().endswith("\n")]
        if len(pids) == count:
            return pids
        time.sleep(0.05)
    raise AssertionError(f"{count} processes were to write their ids into {folder}")


FAMILY = """\
    import os, signal, sys, time
    from pathlib import Path

    def note(name):
        Path("{folder}", name).write_text(str(os.getpid()) + chr(10))
        os.rename(Path("{folder}", name), Path("{folder}", name + ".pid"))

    def live(name):
        note(name)
        while True:
            time.sleep(60)

    if os.fork() == 0:
        live("child")
    if os.fork() == 0:
        os.setpgid(0, 0)
        live("other_group")
    if os.fork() == 0:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        live("deaf")
    if os.fork() == 0:
        os.setsid()
        if os.fork() == 0:
            os.close(0)
            live("daemon")
        os._exit(0)
    while len(list(Path("{folder}").glob("*.pid"))) < 4:
        time.sleep(0.02)
    {ending}
    """


def family(machine: Machine, folder: Path, ending: str) -> Path:
    folder.mkdir()
    return machine.program("family", FAMILY.format(folder=folder, ending=ending), python=True)


def test_all_that_a_command_started_ends_when_its_time_is_over(
    machine: Machine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(commands, "GRACE_SECONDS", 0.3)
    program = family(machine, tmp_path / "pids", "live('parent')")
    with Program([str(program)], environ=dict(os.environ)) as running:
        pids = written_pids(tmp_path / "pids", 5)
        assert all(alive(pid) for pid in pids)
        ran = running.wait(0.0)
        assert [pid for pid in pids if alive(pid)] == []
    assert (ran.timed_out, ran.ok, ran.status) == (True, False, None)


@pytest.mark.parametrize("ending", ["print('3 us'); sys.exit(0)", "os.kill(os.getpid(), 9)"])
def test_all_that_a_command_left_behind_ends_with_it(
    machine: Machine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, ending: str
) -> None:
    monkeypatch.setattr(commands, "GRACE_SECONDS", 0.3)
    family(machine, tmp_path / "pids", ending)
    gateway = machine.gateway(command="family", seconds=120)
    if "print" in ending:
        # Those it left hold its output open, and it is not waited for them.
        assert latency(gateway).outcome is Outcome.PASSED
    else:
        assert "was ended by signal 9" in inconclusive(latency, gateway).seen
    pids = written_pids(tmp_path / "pids", 4)
    assert [pid for pid in pids if alive(pid)] == []


def test_a_command_may_clean_up_when_its_time_is_over(
    machine: Machine, tmp_path: Path, hanging: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(commands, "GRACE_SECONDS", PATIENCE_SECONDS)
    machine.program(
        "measure.sh", f"trap 'touch {tmp_path / 'clean'}; exit 0' TERM\ntouch {hanging}\nsleep 600 & wait\n"
    )
    inconclusive(latency, machine.gateway(command="measure.sh", seconds=300))
    assert (tmp_path / "clean").exists()


def test_a_command_ends_when_the_test_run_is_killed(machine: Machine, tmp_path: Path) -> None:
    machine.program(
        "measure.sh", f"echo $$ > {tmp_path / 'm.tmp'}; mv {tmp_path / 'm.tmp'} {tmp_path / 'm.pid'}; exec sleep 600\n"
    )
    code = (
        "import os; from pytest_thermal.access.interconnect.commands import run;"
        f"run([{str(machine.root / 'bin' / 'measure.sh')!r}], environ=dict(os.environ), seconds=600)"
    )
    with subprocess.Popen([sys.executable, "-c", code], cwd=Path(__file__).parents[2]) as holder:
        try:
            (pid,) = written_pids(tmp_path, 1)
            assert alive(pid)
        finally:
            holder.send_signal(signal.SIGKILL)
    until(lambda: not alive(pid))


def test_no_open_pipe_stays(machine: Machine) -> None:
    machine.program("measure.sh", "echo 3 us\n")
    latency(machine.gateway(command="measure.sh"))
    gc.collect()  # what others left behind goes now, and not in between
    before = len(list(Path("/proc/self/fd").iterdir()))
    for _ in range(3):
        latency(machine.gateway(command="measure.sh"))
    assert len(list(Path("/proc/self/fd").iterdir())) == before


def test_first_lines_are_short() -> None:
    assert first_lines("\n a \n\nb\nc\nd\n") == "a / b / c"
    assert first_lines("x" * 500) == "x" * 120 + "…"
    assert first_lines("") == ""


# --- latency: chosen here ------------------------------------------------------------------------------------

IB_WRITE_LAT = """\
    import os, sys, time
    from pathlib import Path

    folder = Path("{folder}")
    serves = sys.argv[-1] == "-F"
    with open(folder / "calls", "a") as calls:
        calls.write(("server " if serves else "client ") + " ".join(sys.argv[1:]) + chr(10))
    if serves:
        {server}
        (folder / "server.tmp").write_text(str(os.getpid()) + chr(10))
        os.rename(folder / "server.tmp", folder / "server.pid")
        time.sleep(600)
    if not (folder / "server.pid").exists():
        sys.stderr.write("Couldn't connect to 127.0.0.1:18515" + chr(10))
        sys.exit(1)
    {client}
    """


def perftest(machine: Machine, folder: Path, *, server: str = "pass", client: str = "") -> None:
    client = client or f"print(open({str(SAMPLES / 'ib_write_lat.txt')!r}).read(), end='')"
    body = dedent(IB_WRITE_LAT).format(folder=folder, server=server, client=client)
    machine.program("ib_write_lat", body, python=True)


def calls(folder: Path, who: str) -> list[str]:
    return [line.partition(" ")[2] for line in (folder / "calls").read_text().splitlines() if line.startswith(who)]


def test_loopback_measures_the_first_active_port(machine: Machine, tmp_path: Path) -> None:
    machine.port("mlx5_0", state="1: DOWN", phys_state="2: Polling")
    machine.port("mlx5_1", 2)
    perftest(machine, tmp_path)
    verdict = latency(machine.gateway(seconds=60))
    assert verdict.outcome is Outcome.PASSED
    assert verdict.seen.startswith(
        "1.92 µs measured by ib_write_lat (t_typical, 2 bytes) over loopback on mlx5_1 port 2: neither cable, switch"
    )
    assert len(verdict.warnings) == 1
    assert "the way to a peer was not measured" in verdict.warnings[0]
    (served,) = calls(tmp_path, "server")
    assert served.startswith("-d mlx5_1 -i 2 -p ")
    assert calls(tmp_path, "client")[-1] == f"{served} 127.0.0.1"
    assert not alive(*written_pids(tmp_path, 1))


def test_loopback_above_the_target_fails(machine: Machine, tmp_path: Path) -> None:
    machine.port()
    perftest(machine, tmp_path)
    verdict = latency(machine.gateway(target_us=1.5, seconds=60))
    assert "1.92 µs" in failed_words(verdict)
    assert "PCIe" in verdict.likely


def test_a_server_that_is_late_is_waited_for(machine: Machine, tmp_path: Path) -> None:
    machine.port()
    late = "while sum(line.startswith('client') for line in open(folder / 'calls')) < 2: time.sleep(0.02)"
    perftest(machine, tmp_path, server=late)
    assert latency(machine.gateway(seconds=60)).outcome is Outcome.PASSED
    assert len(calls(tmp_path, "client")) >= 2


def test_a_server_that_dies_is_the_one_quoted(machine: Machine, tmp_path: Path) -> None:
    machine.port()
    perftest(machine, tmp_path, server='sys.stderr.write("Couldn\'t allocate MR" + chr(10)); sys.exit(4)')
    error = inconclusive(latency, machine.gateway(seconds=60))
    assert "ended with status 4: Couldn't allocate MR" in error.seen
    assert "pin" in error.likely


def test_a_client_that_fails_takes_the_server_down(machine: Machine, tmp_path: Path) -> None:
    machine.port()
    perftest(machine, tmp_path, client="sys.stderr.write('Failed to modify QP 12 to RTR' + chr(10)); sys.exit(1)")
    assert "Failed to modify QP" in inconclusive(latency, machine.gateway(seconds=60)).seen
    assert not alive(*written_pids(tmp_path, 1))


def test_a_client_that_hangs_takes_the_server_down(machine: Machine, tmp_path: Path, hanging: Path) -> None:
    machine.port()
    perftest(machine, tmp_path, client=f"Path({str(hanging)!r}).touch(); time.sleep(600)")
    assert "did not end within 300 s" in inconclusive(latency, machine.gateway(seconds=300)).seen
    assert not alive(*written_pids(tmp_path, 1))


def test_an_infiniband_target_is_not_measured_on_ethernet(machine: Machine, tmp_path: Path) -> None:
    machine.port(link_layer="Ethernet")
    perftest(machine, tmp_path)
    assert "no RDMA port is active" in skipped_words(latency(machine.gateway(named="infiniband")))
    assert not (tmp_path / "calls").exists()


@pytest.mark.parametrize("named", ["nvlink", "hccs"])
def test_another_fabrics_target_is_not_measured_over_rdma(machine: Machine, tmp_path: Path, named: str) -> None:
    machine.port()
    perftest(machine, tmp_path)
    assert skipped_words(latency(machine.gateway(named=named))).startswith("nothing was measured: ")
    assert not (tmp_path / "calls").exists()


def test_ports_that_cannot_be_read_are_inconclusive(machine: Machine, tmp_path: Path) -> None:
    machine.port()
    (machine.root / "sys/class/infiniband/mlx5_0/ports/1/state").unlink()
    perftest(machine, tmp_path)
    assert "cannot be read" in inconclusive(latency, machine.gateway()).seen


def test_with_no_test_at_hand_it_says_what_would_measure(machine: Machine) -> None:
    machine.port()
    seen = skipped_words(latency(machine.gateway(environ={"PATH": str(machine.root / "bin")})))
    assert seen.startswith("nothing was measured: ib_write_lat (perftest) is not on PATH; all_reduce_perf")
    assert '--interconnect-cmd "ib_write_lat -d mlx5_0 PEER"' in seen


def gpus(machine: Machine, count: int, body: str) -> None:
    for index in range(count):
        machine.device(f"nvidia{index}")
    for name in ("nvidiactl", "nvidia-uvm"):
        machine.device(name)
    machine.program("all_reduce_perf", body)


@pytest.mark.parametrize(
    "count,visible,reason",
    [(0, None, "none is here"), (1, None, "1 is here"), (4, "2", "1 is here"), (4, "", "none is here")],
)
def test_an_all_reduce_needs_two_gpus(machine: Machine, count: int, visible: str | None, reason: str) -> None:
    gpus(machine, count, "echo 1 us\n")
    environ = {} if visible is None else {"CUDA_VISIBLE_DEVICES": visible}
    assert reason in skipped_words(latency(machine.gateway(named="nvlink", environ=environ)))


def test_an_all_reduce_within_a_links_target_passes(machine: Machine, tmp_path: Path) -> None:
    gpus(machine, 4, f'echo "$@" > {tmp_path / "args"}; cat {SAMPLES / "all_reduce_perf.txt"}\n')
    verdict = latency(machine.gateway(named="nvlink", target_us=15))
    assert verdict.outcome is Outcome.PASSED
    assert verdict.seen.startswith(
        "14.72 µs measured by all_reduce_perf (time, out of place, 8 bytes), the time of a whole collective operation"
        " between the 4 GPUs of this machine, target 15 µs"
    )
    assert verdict.evidence["in-place_us"] == 13.90
    assert (tmp_path / "args").read_text() == "-b 8 -e 8 -g 4\n"


def test_an_all_reduce_above_a_links_target_condemns_no_link(machine: Machine) -> None:
    gpus(machine, 2, f"cat {SAMPLES / 'all_reduce_perf.txt'}\n")
    error = inconclusive(latency, machine.gateway(named="nvlink", target_us=5))
    assert error.seen.endswith("above the target, which by itself condemns no link")
