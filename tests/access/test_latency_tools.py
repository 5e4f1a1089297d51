"""The parsers of latency tests: which figure, from which row, and what is no figure at all."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path

import pytest

from pytest_thermal.access.interconnect.latency_tools import Kind, NotUnderstood, read_latency, us_text

SAMPLES = Path(__file__).parents[2] / "fixtures" / "interconnect"


def sample(name: str) -> str:
    return (SAMPLES / name).read_text("utf-8")


TABLES = [
    ("ib_write_lat.txt", "ib_write_lat", "t_typical", 1.92, 2, Kind.LINK),
    ("ib_read_lat_roce.txt", "ib_read_lat", "t_typical", 4.11, 2, Kind.LINK),
    ("ib_send_lat_all.txt", "ib_send_lat", "t_typical", 1.60, 2, Kind.LINK),
    ("ib_write_lat_duration.txt", "ib_write_lat", "t_avg", 2.02, 2, Kind.LINK),
    ("ib_write_lat_old.txt", "perftest", "t_typical", 2.55, 2, Kind.LINK),
    ("all_reduce_perf.txt", "all_reduce_perf", "time, out of place", 14.72, 8, Kind.COLLECTIVE),
    ("all_reduce_perf_old.txt", "nccl-tests", "time, out of place", 19.31, 8, Kind.COLLECTIVE),
    ("all_reduce_perf_iterations.txt", "sendrecv_perf", "time, out of place", 9.44, 8, Kind.COLLECTIVE),
    ("all_reduce_perf_wrong.txt", "all_reduce_perf", "time, out of place", 14.72, 8, Kind.COLLECTIVE),
    ("hccl_all_reduce_test.txt", "hccl_test", "aveg_time", 21.37, 64, Kind.COLLECTIVE),
    ("hccl_failed.txt", "hccl_test", "aveg_time", 22.05, 64, Kind.COLLECTIVE),
    ("osu_latency.txt", "OSU MPI Latency", "Latency", 1.21, 0, Kind.MESSAGE),
    ("osu_allreduce_full.txt", "OSU MPI-CUDA Allreduce Latency", "Avg Latency", 11.72, 4, Kind.COLLECTIVE),
]


@pytest.mark.parametrize("name,tool,statistic,microseconds,size_bytes,kind", TABLES, ids=[row[0] for row in TABLES])
def test_judges_the_smallest_message(
    name: str, tool: str, statistic: str, microseconds: float, size_bytes: int, kind: Kind
) -> None:
    figure = read_latency(sample(name))
    assert (figure.tool, figure.statistic, figure.microseconds) == (tool, statistic, microseconds)
    assert (figure.size_bytes, figure.kind, figure.rows) == (size_bytes, kind, 1)


@pytest.mark.parametrize(
    "name,others",
    [
        (
            "ib_write_lat.txt",
            {"t_min": 1.83, "t_max": 9.71, "t_avg": 1.95, "t_stdev": 0.11, "99%": 2.41, "99.9%": 9.71},
        ),
        ("ib_write_lat_old.txt", {"t_min": 2.41, "t_max": 11.60}),
        ("all_reduce_perf.txt", {"in-place": 13.90}),
        ("all_reduce_perf_iterations.txt", {"in-place": 9.52}),
        (
            "osu_allreduce_full.txt",
            {"Min Latency": 10.98, "Max Latency": 12.61, "P50 Tail Lat": 11.60, "P99 Tail Lat": 14.80},
        ),
    ],
)
def test_keeps_the_other_times_of_the_row(name: str, others: dict[str, float]) -> None:
    assert read_latency(sample(name)).others_us == others


@pytest.mark.parametrize(
    "name,argv,tool",
    [
        ("ib_write_lat_old.txt", ["/usr/bin/ib_write_lat", "peer"], "ib_write_lat"),
        ("all_reduce_perf_old.txt", ["mpirun", "-np", "2", "./build/alltoall_perf", "-g", "1"], "alltoall_perf"),
        ("hccl_all_reduce_test.txt", ["mpirun", "-n", "8", "/opt/hccl_test/bin/all_reduce_test"], "all_reduce_test"),
        ("osu_latency.txt", ["srun", "osu_latency"], "osu_latency"),
    ],
)
def test_takes_the_name_from_the_command_where_the_output_has_none(name: str, argv: list[str], tool: str) -> None:
    assert read_latency(sample(name), argv=argv).tool == tool


def recoloured(text: str) -> str:
    return "".join(f"\x1b[1;32m{line.rstrip()}\x1b[0m\x1b[K\n" for line in text.splitlines())


def carriage_returns(text: str) -> str:
    return text.replace("\n", "\r\n")


def rank_labels(text: str) -> str:
    return "".join(f"[1,0]<stdout>: {line}\n" for line in text.splitlines())


def srun_labels(text: str) -> str:
    return "".join(f"0: {line}\n" for line in text.splitlines())


def among_logs(text: str) -> str:
    noise = "node-a:70411:70420 [0] NCCL INFO Channel 00/02 : 0 1 2 3 took 12.5 us\n"
    return noise + text.replace("\n", f"\n{noise}")


@pytest.mark.parametrize("dress", [recoloured, carriage_returns, rank_labels, srun_labels, among_logs])
@pytest.mark.parametrize("name", [row[0] for row in TABLES])
def test_sees_through_what_launchers_do_to_the_output(name: str, dress: Callable[[str], str]) -> None:
    assert read_latency(dress(sample(name))) == read_latency(sample(name))


@pytest.mark.parametrize("name", [row[0] for row in TABLES])
def test_output_cut_anywhere_gives_the_same_figure_or_none(name: str) -> None:
    text = sample(name)
    whole = read_latency(text).microseconds
    understood = 0
    for end in range(len(text) + 1):
        try:
            figure = read_latency(text[:end])
        except NotUnderstood:
            continue
        understood += 1
        assert figure.microseconds == whole, text[:end][-80:]
    # Were none of them understood, this would show nothing.
    assert understood > 0


def test_a_row_cut_in_its_last_cell_is_no_row() -> None:
    text = sample("all_reduce_perf_wrong.txt")
    row_end = text.index("13.90    0.00    0.00       0\n") + len("13.90    0.00    0.00       0")
    with pytest.raises(NotUnderstood, match="no whole row"):
        read_latency(text[:row_end])


def test_a_row_with_cells_missing_is_not_shifted() -> None:
    text = sample("all_reduce_perf.txt")
    only_in_place = text.replace("   14.72    0.00    0.00       0", " " * 32)
    assert only_in_place != text
    assert read_latency(only_in_place).size_bytes == 16
    with pytest.raises(NotUnderstood, match="no whole row"):
        read_latency("\n".join(line for line in only_in_place.splitlines() if "14." not in line) + "\n")


def test_doubled_output_counts_its_worst_row() -> None:
    text = sample("ib_write_lat.txt")
    figure = read_latency(text + text.replace(" 1.92 ", " 2.07 "))
    assert figure.words == "2.07 µs measured by ib_write_lat (t_typical, 2 bytes, the worst of 2)"
    assert figure.others_us["t_min"] == 1.83


@pytest.mark.parametrize("cell", ["nan", "0.00", "-1.92", "inf"])
def test_an_impossible_row_is_not_hidden_by_a_possible_one(cell: str) -> None:
    text = sample("ib_write_lat.txt")
    assert not read_latency(text.replace(" 1.92 ", f" {cell} ") + text).plausible
    assert not read_latency(text + text.replace(" 1.92 ", f" {cell} ")).plausible


def test_says_when_data_arrived_wrong() -> None:
    assert read_latency(sample("all_reduce_perf.txt")).wrong == ""
    assert read_latency(sample("all_reduce_perf_old.txt")).wrong == "", "its error column is no count"
    assert read_latency(sample("all_reduce_perf_wrong.txt")).wrong == "12 wrong values"
    assert read_latency(sample("hccl_failed.txt")).wrong == "check_result: failed in 1 of 1 rows"


@pytest.mark.parametrize(
    "text,reason",
    [
        ("", "no line is a latency"),
        ("all is well\n", "no line is a latency"),
        (sample("ib_write_bw.txt"), "bandwidth test"),
        ("# OSU MPI Bandwidth Test v7.4\n# Size      Bandwidth (MB/s)\n1    2.1\n", "bandwidth test"),
        (sample("ib_write_lat_cycles.txt"), "cycles: leave out -C"),
        (sample("ib_write_lat.txt") + sample("all_reduce_perf.txt"), "several tests: perftest, nccl-tests"),
        (sample("ib_write_lat.txt") + sample("ib_read_lat_roce.txt"), "several tests: ib_read_lat, ib_write_lat"),
        (sample("ib_write_lat.txt").partition(" 2 ")[0], "header and no whole row"),
        (sample("hccl_failed.txt").replace("(us)", "(ms)"), "no time in it"),
        (sample("osu_latency.txt").replace("(us)", "(ms)"), "not in microseconds"),
        (sample("osu_latency.txt").replace("Latency (us)", "Latency"), "not in microseconds"),
        ("min latency: 1.2 us\nmax latency: 7.5 us\n", "holds 2 latencies"),
        ("the test took 12 ms\n", "no line is a latency"),
        ("latency 3.2\n", "no line is a latency"),
        ("3.2\n", "no line is a latency"),
        ("3,2 us\n", "no line is a latency"),
        ("rtt min/avg/max/mdev = 0.031/0.040/0.055/0.007 ms\n", "no line is a latency"),
        ("64 bytes from peer: icmp_seq=1 ttl=64 time=0.040 ms\n", "no line is a latency"),
    ],
)
def test_takes_nothing_for_a_latency_that_is_none(text: str, reason: str) -> None:
    with pytest.raises(NotUnderstood, match=reason):
        read_latency(text)


@pytest.mark.parametrize(
    "text,microseconds",
    [
        ("3.2 us", 3.2),
        ("3.2us\n", 3.2),
        ("3.2 µs\n", 3.2),
        ("3.2 μs\n", 3.2),
        ("3200 ns\n", 3.2),
        ("0.0032 ms\n", 3.2),
        ("3.2e0 usec\n", 3.2),
        ("3.2 microseconds\n", 3.2),
        ("latency: 3200 ns\n", 3.2),
        ("Average latency (one way) = 3.2 usec\n", 3.2),
        ("rc_rdma_write_lat:\n    latency  =  3.2 us\n", 3.2),
        ("starting\n\x1b[32m3.2 us\x1b[0m\ndone\n", 3.2),
        ("3.2 us\n3.2 us\n", 3.2),
        ("0 us\n", 0.0),
        ("-4 us\n", -4.0),
    ],
)
def test_one_bare_figure_with_its_unit_is_enough(text: str, microseconds: float) -> None:
    figure = read_latency(text, argv=["./measure.sh"])
    assert figure.microseconds == pytest.approx(microseconds)
    assert (figure.tool, figure.kind) == ("measure.sh", Kind.FIGURE)
    assert figure.words.endswith("µs measured by measure.sh")


def test_no_number_is_read_as_no_number() -> None:
    figure = read_latency("latency: nan us\n")
    assert math.isnan(figure.microseconds)
    assert not figure.plausible


@pytest.mark.parametrize(
    "microseconds,text",
    [
        (3.9, "3.9 µs"),
        (3.0, "3 µs"),
        (20.0, "20 µs"),
        (1234.567, "1234.57 µs"),
        (0.2, "0.2 µs"),
        (0.00123, "0.00123 µs"),
    ],
)
def test_figures_are_written_short_and_never_as_zero(microseconds: float, text: str) -> None:
    assert us_text(microseconds) == text
