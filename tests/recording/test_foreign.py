"""Logs from elsewhere: read right, with every correction said, or refused; never shifted and never guessed."""

from __future__ import annotations

import codecs
import datetime as dt
import random
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from pytest_thermal.model import Missing
from pytest_thermal.recording import ForeignLogError, Recording, RecordingError, open_recording, read_foreign_log

ROOT = Path(__file__).resolve().parents[2]
LOGS = ROOT / "fixtures" / "logs"
REAL = ROOT.parent / "shared" / "real_logs" / "arm-boards"
START = 1_796_032_500  # 2026-11-30 09:55:00 UTC

Log = Callable[..., Recording]


@pytest.fixture
def log(tmp_path: Path) -> Log:
    """Reads a log of some lines, or of some bytes."""

    def read(*lines: str, content: bytes | None = None, zone: dt.tzinfo | None = None) -> Recording:
        path = tmp_path / "log.csv"
        path.write_bytes("".join(f"{line}\n" for line in lines).encode() if content is None else content)
        return read_foreign_log(path, zone=zone)

    return read


def values(recording: Recording, sensor: str) -> list[float | None]:
    """A sensor's values, None where one is missing."""
    return [None if np.isnan(value) else float(value) for value in recording.series[sensor].values]


def times(recording: Recording) -> list[float]:
    """Times of the first sensor, from the first on."""
    series = next(iter(recording.series.values()))
    return [round(float(time - series.time_seconds[0]), 3) for time in series.time_seconds]


# ------------------------------------------------------------------------------------------- the logs in fixtures/


def test_a_wide_log_with_our_names_and_phases() -> None:
    recording = read_foreign_log(LOGS / "wide.csv")
    assert recording.notes == ()
    assert set(recording.series) == {
        "cpu0.package.temperature_celsius",
        "gpu0.temperature_celsius",
        "gpu0.power_watts",
        "gpu0.utilization_percent",
    }
    assert [(phase.name, phase.start_seconds - START, phase.end_seconds - START) for phase in recording.phases] == [
        ("baseline", 0, 60),
        ("ramp", 60, 120),
        ("steady", 120, 300),
        ("cooldown", 300, 420),
    ]
    cpu = recording.series["cpu0.package.temperature_celsius"]
    assert (len(cpu), cpu.period_seconds, cpu.values[0]) == (84, 5.0, 38.0)
    assert cpu.during(recording.phases[2]).values[-1] == 64.9


def test_the_naive_script() -> None:
    recording = read_foreign_log(LOGS / "naive.csv")
    assert set(recording.series) == {f"{device}.temperature_celsius" for device in ("cpu0", "gpu0", "gpu1")}
    cpu, first, second = (values(recording, f"{device}.temperature_celsius") for device in ("cpu0", "gpu0", "gpu1"))
    assert cpu[0] == 38.0
    assert cpu[20] is None, "0.0 is a failed read"
    assert (first[20], second[20]) == (None, None)
    assert (first[30], second[30]) == (None, None), "of two GPUs one line came: whose it is cannot be told"
    for one, other in zip(first, second, strict=True):
        assert one is None or other == one + 3
    why = recording.why_missing("gpu0.temperature_celsius", START + 150.05)
    assert why is not None
    assert why.detail == "1 figures for 2 GPUs: whose is missing cannot be told"
    assert "the CPU's column: in millidegrees" in recording.notes
    assert "line 41: the CPU's column: 0 is written for a failed read; taken as missing" in recording.notes


def test_a_log_of_nvidia_smi_with_a_card_that_fails_and_a_restart() -> None:
    recording = read_foreign_log(LOGS / "nvidia-smi-l.csv")
    first, second = (recording.series[f"gpu{number}.temperature_celsius"] for number in (0, 1))
    assert first.sensor.identity == "GPU-5a0d1e5c-1111-4222-8333-000000000001"
    assert second.sensor.identity == "GPU-0c4b7a9e-1111-4222-8333-000000000002"
    assert first.present.all()
    assert np.flatnonzero(~second.present).tolist() == [25, 26, *range(70, 84)]
    told = {
        (round(stretch.time_seconds - START), stretch.reason, stretch.detail)
        for stretch in recording.missing
        if stretch.sensor_id == second.sensor.id
    }
    assert told == {(125, Missing.DEVICE_ERROR, "[Unknown Error]"), (350, Missing.DEVICE_ERROR, "[GPU is lost]")}
    assert "gpu0.memory.temperature_celsius" not in recording.series, "[N/A] in every row is no sensor"
    assert recording.series["gpu1.power_watts"].values[20] == 302.07
    assert "line 82: the header again: the logger was started anew, or repeats it" in recording.notes
    assert "times have no zone and are taken as UTC" in recording.notes


def test_nvidia_smi_dmon() -> None:
    recording = read_foreign_log(LOGS / "dmon.txt")
    assert values(recording, "gpu1.power_watts")[-1] == 251
    assert len(recording.series["gpu0.temperature_celsius"]) == 24
    assert recording.series["gpu0.temperature_celsius"].time_seconds[0] == START


def test_a_windows_monitor_in_german() -> None:
    recording = read_foreign_log(LOGS / "windows-monitor.csv")
    assert len(recording.series["cpu0.package.temperature_celsius"]) == 210
    assert values(recording, "gpu0.power_watts")[100] == 220.125
    assert values(recording, "cpu0.fan.speed_rpm")[0] == 0.0, "a fan may stand still"
    assert values(recording, "cpu0.utilization_percent")[0] == 1.5
    for said in (
        "no UTF-8: read as CP1252",
        "decimal commas: 61,5 is read as 61.5",
        "columns that are not understood are left out: Virtual Memory [MB]",
        "line 212: the header again: the logger was started anew, or repeats it",
    ):
        assert said in recording.notes


def test_a_table_with_more_cells_than_names_is_read_by_its_units_alone() -> None:
    recording = read_foreign_log(LOGS / "board-monitor.txt")
    assert list(recording.series) == ["device0.temperature_celsius"]
    series = recording.series["device0.temperature_celsius"]
    assert series.values[:3].tolist() == [38, 38, 38]
    assert series.values.max() > 60
    assert (np.diff(series.time_seconds) > 0).all()
    assert not recording.absolute_time
    assert any("only 'Temp' can be told by the units in the cells" in note for note in recording.notes)
    assert any(note.endswith("midnight: the times go on") for note in recording.notes)


@pytest.mark.parametrize(
    "name, seen, likely",
    [
        (
            "fewer-names.csv",
            "the header has 3 names, and line 2 has 4 cells: 1796032500, 38.0, 1, 35.0",
            "the header is",
        ),
        ("comma-decimals.csv", "the header has 3 names, and line 2 has 5 cells", "numbers with decimal commas"),
    ],
)
def test_a_header_that_does_not_fit_is_refused(name: str, seen: str, likely: str) -> None:
    with pytest.raises(ForeignLogError) as refused:
        read_foreign_log(LOGS / name)
    assert f"{LOGS / name}: line 1: {seen}" in str(refused.value)
    assert f"\nlikely: {likely}" in str(refused.value)
    assert "\ntry: " in str(refused.value)


def test_a_clock_that_was_set_after_the_start() -> None:
    recording = read_foreign_log(LOGS / "clock-set-late.csv")
    series = recording.series["cpu0.temperature_celsius"]
    assert len(series) == 60
    assert series.time_seconds.min() == START
    assert np.diff(series.time_seconds).max() == 9
    assert "line 9: the clock had not been set before: the times go on" in recording.notes


def test_the_end_of_summer_time() -> None:
    recording = read_foreign_log(LOGS / "summer-time-ends.csv")
    assert set(np.diff(recording.series["cpu0.temperature_celsius"].time_seconds)) == {10.0}
    assert any("as at the end of summer time" in note for note in recording.notes)


def test_real_cycles_read_whole() -> None:
    if not REAL.is_dir():
        pytest.skip("no real logs beside this checkout")
    for path in REAL.glob("*.csv"):
        rows = path.read_text(encoding="utf-8").splitlines()[1:]
        recording = read_foreign_log(path)
        series = recording.series["device0.temperature_celsius"]
        assert series.values.tolist() == [float(row.split(",")[1]) for row in rows[: len(series)]]
        assert len(rows) - len(series) <= 1
        assert (series.time_seconds - series.time_seconds[0]).tolist() == [
            float(row.split(",")[0]) for row in rows[: len(series)]
        ]


# ---------------------------------------------------------------------------------------------- bytes and separators

PLAIN = "time,cpu0.temperature_celsius,gpu0.temperature_celsius\n" + "".join(
    f"{START + 5 * row},{40 + row}.5,{50 + row}\n" for row in range(6)
)


@pytest.mark.parametrize(
    "content",
    [
        PLAIN.encode(),
        PLAIN.replace("\n", "\r\n").encode(),
        PLAIN.replace("\n", "\r").encode(),
        codecs.BOM_UTF8 + PLAIN.encode(),
        codecs.BOM_UTF16_LE + PLAIN.encode("utf-16-le"),
        codecs.BOM_UTF16_BE + PLAIN.replace("\n", "\r\n").encode("utf-16-be"),
        PLAIN.encode("utf-16-le"),
        PLAIN.encode("utf-16-be"),
        codecs.BOM_UTF32_LE + PLAIN.encode("utf-32-le"),
        PLAIN.replace(",", ";").encode(),
        PLAIN.replace(",", "\t").encode(),
        PLAIN.replace(",", " , ").encode(),
        PLAIN.replace(",", "   ").encode(),
        PLAIN.replace(",", ";").replace(".5", ",5").encode(),
        ("sep=;\n" + PLAIN.replace(",", ";")).encode(),
        ("# made by a script\n\n" + PLAIN + "\n\n").encode(),
        ("#" + PLAIN).encode(),
        PLAIN.replace("cpu0.temp", '"cpu0.temp').replace("celsius,gpu", 'celsius",gpu').encode(),
        PLAIN.encode() + b"\0" * 512,
        ("\x1b[32m" + PLAIN).encode(),
        "".join(f"{line}{',' * (number > 0)}\n" for number, line in enumerate(PLAIN.splitlines())).encode(),
    ],
)
def test_the_same_log_however_it_is_written(log: Log, content: bytes) -> None:
    recording = log(content=content)
    assert values(recording, "cpu0.temperature_celsius") == [40.5, 41.5, 42.5, 43.5, 44.5, 45.5]
    assert values(recording, "gpu0.temperature_celsius") == [50, 51, 52, 53, 54, 55]
    assert times(recording) == [0, 5, 10, 15, 20, 25]
    assert recording.series["cpu0.temperature_celsius"].time_seconds[0] == START


@pytest.mark.parametrize("cut", ["1796032530,4", "1796032530,47.5,5", "17960"])
def test_a_last_line_without_an_end_is_left_out(log: Log, cut: str) -> None:
    recording = log(content=(PLAIN + cut).encode())
    assert len(recording.series["gpu0.temperature_celsius"]) == 6
    assert recording.notes == ("line 8: the last line has no end: it may be cut short and is left out",)


def test_a_chinese_windows_log(log: Log) -> None:
    text = "时间,CPU温度(℃),GPU功率(W)\n" + "".join(f"2026/11/30 09:55:0{n},4{n}.0,20{n}\n" for n in range(5))
    recording = log(content=text.encode("gb18030"))
    assert values(recording, "cpu0.temperature_celsius") == [40, 41, 42, 43, 44]
    assert values(recording, "gpu0.power_watts") == [200, 201, 202, 203, 204]
    assert "no UTF-8: read as GB18030" in recording.notes


def test_thousands_and_decimal_commas(log: Log) -> None:
    recording = log("time;pump0.speed_rpm;gpu0.power_watts", *(f"{START + n};1.23{n},5;30{n},25" for n in range(4)))
    assert values(recording, "pump0.speed_rpm") == [1230.5, 1231.5, 1232.5, 1233.5]
    assert values(recording, "gpu0.power_watts") == [300.25, 301.25, 302.25, 303.25]


def test_decimal_commas_in_quotes(log: Log) -> None:
    recording = log("time,cpu_temp,gpu_temp", *(f'{START + n},"4{n},5","5{n},0"' for n in range(4)))
    assert values(recording, "cpu0.temperature_celsius") == [40.5, 41.5, 42.5, 43.5]


# --------------------------------------------------------------------------------------------------------- times


@pytest.mark.parametrize(
    "stamps",
    [
        ("1796032500", "1796032505", "1796032510"),
        ("1796032500.0", "1796032505.0", "1796032510.0"),
        ("1796032500000", "1796032505000", "1796032510000"),
        ("1796032500000000", "1796032505000000", "1796032510000000"),
        ("2026-11-30T09:55:00Z", "2026-11-30T09:55:05Z", "2026-11-30T09:55:10Z"),
        ("2026-11-30T10:55:00+01:00", "2026-11-30T10:55:05+01:00", "2026-11-30T10:55:10+01:00"),
        ("2026-11-30T04:25:00.000-0530", "2026-11-30T04:25:05.000-0530", "2026-11-30T04:25:10.000-0530"),
        ("2026-11-30 09:55:00", "2026-11-30 09:55:05", "2026-11-30 09:55:10"),
        ("2026/11/30 09:55:00.000", "2026/11/30 09:55:05.000", "2026/11/30 09:55:10.000"),
        ("30.11.2026 09:55:00", "30.11.2026 09:55:05", "30.11.2026 09:55:10"),
        ("30/11/2026 09:55:00", "30/11/2026 09:55:05", "30/11/2026 09:55:10"),
        ("11/30/2026 9:55:00 AM", "11/30/2026 9:55:05 AM", "11/30/2026 9:55:10 AM"),
        ("20261130 09:55:00", "20261130 09:55:05", "20261130 09:55:10"),
        ("2026-11-30 09:55:00 UTC", "2026-11-30 09:55:05 UTC", "2026-11-30 09:55:10 UTC"),
    ],
)
def test_times_in_every_form(log: Log, stamps: tuple[str, ...]) -> None:
    recording = log("time,cpu_temp", *(f"{stamp},50" for stamp in stamps))
    series = recording.series["cpu0.temperature_celsius"]
    assert series.time_seconds.tolist() == [START, START + 5, START + 10]
    assert recording.absolute_time


def test_local_times_of_a_zone(log: Log) -> None:
    recording = log(
        "time,cpu_temp",
        *(f"2026-11-30 17:55:0{n},50" for n in range(3)),
        zone=dt.timezone(dt.timedelta(hours=8)),
    )
    assert recording.series["cpu0.temperature_celsius"].time_seconds[0] == START
    assert recording.notes == ()


def test_date_and_time_in_two_columns(log: Log) -> None:
    recording = log("Date,Time,CPU Temp", "2026-11-30,09:55:00,40", "2026-11-30,09:55:05,41")
    assert recording.series["cpu0.temperature_celsius"].time_seconds.tolist() == [START, START + 5]


@pytest.mark.parametrize(
    "name, cells, expected",
    [
        ("elapsed_s", ("0", "10", "25"), [0, 10, 25]),
        ("elapsed_ms", ("0", "10000", "25000"), [0, 10, 25]),
        ("time (min)", ("0", "0.5", "2"), [0, 30, 120]),
        ("time", ("23:59:50", "00:00:00", "00:00:15"), [0, 10, 25]),
        ("time", ("11:59:50 PM", "12:00:00 AM", "12:00:15 AM"), [0, 10, 25]),
    ],
)
def test_times_that_only_count(log: Log, name: str, cells: tuple[str, ...], expected: list[float]) -> None:
    recording = log(f"{name},cpu_temp", *(f"{cell},50" for cell in cells))
    assert times(recording) == expected
    assert not recording.absolute_time


@pytest.mark.parametrize(
    "dates, days",
    [
        (("01/02/2026 23:59:55", "02/02/2026 00:00:00"), 5),  # the next day, not the next month
        (("02/01/2026 23:59:55", "02/02/2026 00:00:00"), 5),
    ],
)
def test_day_and_month_are_read_in_the_order_that_makes_sense(log: Log, dates: tuple[str, str], days: float) -> None:
    recording = log("time,cpu_temp", *(f"{date},50" for date in dates))
    assert times(recording) == [0, days]
    assert any("are taken as" in note for note in recording.notes)


@pytest.mark.parametrize(
    "offsets, expected, said",
    [
        ((0, 5, 10, 10, 15), [0, 5, 10, 15], "line 5: the same time as the row before: left out"),
        ((0, 5, 10, 3, 8), [0, 5, 10, 15, 20], "line 5: the clock goes back by 7 s: the times go on one step later"),
        ((0, 5, 10, -3590, -3585), [0, 5, 10, 15, 20], "line 5: the clock goes back by 3600 s"),
        ((0, 5, 10**8, 15, 20), [0, 5, 15, 20], "line 4: a time far from those of the rows around it: left out"),
        ((0, 5, -(10**7), 15, 20), [0, 5, 15, 20], "line 4: a time far from those of the rows around it: left out"),
        ((0, 5, 46 * 10**10, 15, 20), [0, 5, 15, 20], "line 4: no time that can be read: left out"),
        ((0, 5, 9 - START, 15, 20), [0, 5, 15, 20], "line 4: no time that can be read: left out"),
    ],
)
def test_clocks_that_were_set(log: Log, offsets: tuple[int, ...], expected: list[int], said: str) -> None:
    recording = log("time,cpu_temp", *(f"{START + offset},{40 + row}" for row, offset in enumerate(offsets)))
    assert times(recording) == expected
    assert any(note.startswith(said) for note in recording.notes)


def test_the_start_of_summer_time(log: Log) -> None:
    recording = log(
        "time,cpu_temp", *(f"2026-03-29 {stamp},50" for stamp in ("01:59:50", "01:59:55", "03:00:00", "03:00:05"))
    )
    assert times(recording) == [0, 5, 10, 15]
    assert any("as at the start of summer time" in note for note in recording.notes)


def test_a_pause_of_the_logger_stays_a_gap(log: Log) -> None:
    recording = log("time,cpu_temp", *(f"{START + offset},50" for offset in (0, 5, 10, 4000, 4005)))
    assert times(recording) == [0, 5, 10, 4000, 4005]


def test_rows_without_a_readable_time_are_left_out(log: Log) -> None:
    recording = log("time,cpu_temp", f"{START},40", "soon,41", f"{START + 10},42")
    assert values(recording, "cpu0.temperature_celsius") == [40, 42]
    assert recording.notes[0] == "line 3: no time that can be read: left out"


# -------------------------------------------------------------------------------------------------- cells and columns


@pytest.mark.parametrize(
    "cell",
    ["61.5", "61.5 C", "61.5°C", "61.5 ℃", "61.5c", "+61.5°C", "temp=61.5'C", "61.5 degrees C", "61500", "142.7 F"],
)
def test_temperatures_in_every_spelling(log: Log, cell: str) -> None:
    recording = log("time,gpu_temp", *(f"{START + n},{cell}" for n in range(3)))
    assert values(recording, "gpu0.temperature_celsius") == pytest.approx([61.5] * 3)


@pytest.mark.parametrize(
    "name, cell, sensor, value",
    [
        ("GPU Power [W]", "301.5", "gpu0.power_watts", 301.5),
        ("gpu_power_mw", "301500", "gpu0.power_watts", 301.5),
        ("gpu0.power_watts", "301.5 W", "gpu0.power_watts", 301.5),
        ("gpu power", "301500", "gpu0.power_watts", 301.5),
        ("CPU Package [°F]", "140", "cpu0.package.temperature_celsius", 60.0),
        ("CPU Clock [GHz]", "3.5", "cpu0.clock_megahertz", 3500.0),
        ("CPU", "1800MHz", "cpu0.clock_megahertz", 1800.0),
        ("hotspot_c", "71", "hotspot.temperature_celsius", 71.0),
        ("coolant supply temp", "31.5", "coolant_supply.temperature_celsius", 31.5),
        ("water out (°C)", "38", "coolant_return.temperature_celsius", 38.0),
        ("pump_rpm", "2900", "pump0.speed_rpm", 2900.0),
        ("flow_lpm", "1.25", "device0.flow_liters_per_minute", 1.25),
        ("zone7", "55.5°C", "zone7.temperature_celsius", 55.5),
        ("npu3", "61", "npu3.temperature_celsius", 61.0),
        ("gpu1 temperature.gpu", "61", "gpu1.temperature_celsius", 61.0),
        ("temperature.memory", "77", "gpu0.memory.temperature_celsius", 77.0),
    ],
)
def test_what_columns_are(log: Log, name: str, cell: str, sensor: str, value: float) -> None:
    recording = log(f"time,{name}", *(f"{START + n},{cell}" for n in range(3)))
    found = {series: values(recording, series)[0] for series in recording.series}
    assert found == {sensor: pytest.approx(value)}
    assert recording.series[sensor].sensor.label == name


@pytest.mark.parametrize(
    "cell, reason",
    [
        ("N/A", Missing.NOT_OFFERED),
        ("[N/A]", Missing.NOT_OFFERED),
        ("[Not Supported]", Missing.NOT_OFFERED),
        ("-", Missing.NOT_OFFERED),
        ("", Missing.NOT_OFFERED),
        ("nan", Missing.NOT_OFFERED),
        ("None", Missing.NOT_OFFERED),
        ("Unknown Error", Missing.DEVICE_ERROR),
        ("[Unknown Error]", Missing.DEVICE_ERROR),
        ("ERR!", Missing.DEVICE_ERROR),
        ("[Insufficient Permissions]", Missing.UNREADABLE),
        ("0", Missing.UNREADABLE),
        ("0.0", Missing.UNREADABLE),
        ("-1", Missing.IMPLAUSIBLE),
        ("255", Missing.IMPLAUSIBLE),
        ("4294967295", Missing.IMPLAUSIBLE),
        ("999", Missing.IMPLAUSIBLE),
        ("61..5", Missing.NOT_UNDERSTOOD),
        ("6I", Missing.NOT_UNDERSTOOD),
        ("45 W", Missing.NOT_UNDERSTOOD),
        ("1_0", Missing.NOT_UNDERSTOOD),
    ],
)
def test_a_cell_that_is_no_reading_is_missing_with_its_reason(log: Log, cell: str, reason: Missing) -> None:
    cells = ["61", "62", cell, "63", *["64"] * 40]
    recording = log("time,gpu_temp,cpu_temp", *(f"{START + n},{text},50" for n, text in enumerate(cells)))
    assert values(recording, "gpu0.temperature_celsius")[:4] == [61, 62, None, 63]
    assert values(recording, "cpu0.temperature_celsius")[:4] == [50] * 4
    why = recording.why_missing("gpu0.temperature_celsius", START + 2)
    assert why is not None
    assert why.reason is reason


def test_after_a_failed_read_a_load_of_0_is_none_either(log: Log) -> None:
    recording = log(
        "time,gpu_temp,gpu_util [%],fan1_rpm",
        *(
            f"{START + n},{temp},{util},{fan}"
            for n, (temp, util, fan) in enumerate([(40, 0, 0), (0, 0, 0), (41, 0, 900)])
        ),
    )
    assert values(recording, "gpu0.utilization_percent") == [0, None, 0]
    assert values(recording, "fan1.speed_rpm") == [0, None, 900]
    assert any("every figure is 0, as after a failed read" in note for note in recording.notes)


def test_millidegrees_and_degrees_in_one_column_are_told_apart(log: Log) -> None:
    recording = log("time,cpu_temp", *(f"{START + n},{cell}" for n, cell in enumerate(["45000"] * 5 + ["46.5"] * 5)))
    assert values(recording, "cpu0.temperature_celsius") == [45.0] * 5 + [46.5] * 5
    assert any("in degrees instead" in note for note in recording.notes)


def test_a_lone_figure_among_millidegrees_is_not_guessed_at(log: Log) -> None:
    recording = log("time,cpu_temp", *(f"{START + n},{'45' if n == 7 else 45000 + n}" for n in range(40)))
    assert values(recording, "cpu0.temperature_celsius")[6:9] == [45.006, None, 45.008]


def test_hundredths_or_thousandths_of_a_degree_are_not_guessed_at(log: Log) -> None:
    recording = log("time,cpu_temp,gpu_temp", *(f"{START + n},{3900 + n},50" for n in range(10)))
    assert list(recording.series) == ["gpu0.temperature_celsius"]
    assert any("may be hundredths or thousandths of a degree: left out" in note for note in recording.notes)


def test_two_columns_of_one_name_are_two_devices(log: Log) -> None:
    recording = log("time,GPU Temperature [°C],GPU Temperature [°C]", *(f"{START + n},40,50" for n in range(3)))
    assert values(recording, "gpu0.temperature_celsius") == [40] * 3
    assert values(recording, "gpu1.temperature_celsius") == [50] * 3


def test_two_names_of_one_meaning_stay_two_sensors(log: Log) -> None:
    recording = log("time,CPU,CPU Temp", *(f"{START + n},40,50" for n in range(3)))
    assert values(recording, "cpu0.temperature_celsius") == [40] * 3
    assert values(recording, "cpu0.n2.temperature_celsius") == [50] * 3
    assert any("is called cpu0.n2.temperature_celsius" in note for note in recording.notes)


def test_a_logger_started_anew_with_other_columns(log: Log) -> None:
    recording = log(
        "time,cpu_temp,gpu power [W]",
        f"{START},40,100",
        f"{START + 1},41,101",
        "time,gpu power [mW],gpu_temp,cpu_temp",
        f"{START + 2},102000,60,42",
        f"{START + 3},103000,61,43",
    )
    assert values(recording, "cpu0.temperature_celsius") == [40, 41, 42, 43]
    assert values(recording, "gpu0.power_watts") == [100, 101, 102, 103]
    assert values(recording, "gpu0.temperature_celsius") == [None, None, 60, 61]


def test_messages_of_a_tool_between_rows_are_left_out(log: Log) -> None:
    recording = log("time,cpu_temp,gpu_temp", f"{START},40,50", "No devices were found", "a,b,c", f"{START + 5},41,51")
    assert times(recording) == [0, 5]
    assert "lines 3, 4: text, no figures: left out" in recording.notes


def test_a_row_cut_or_doubled_is_left_out_and_not_shifted(log: Log) -> None:
    rows = [f"{START + n},{40 + n},{50 + n}" for n in range(20)]
    rows[5] = f"{START + 5},45"
    rows[9] = rows[9] + rows[9]
    recording = log("time,cpu_temp,gpu_temp", *rows)
    assert values(recording, "cpu0.temperature_celsius") == [40 + n for n in range(20) if n not in {5, 9}]
    assert values(recording, "gpu0.temperature_celsius") == [50 + n for n in range(20) if n not in {5, 9}]
    assert "line 7: 2 cells where the header has 3 names: left out" in recording.notes


def test_phases_that_come_again_or_are_none(log: Log) -> None:
    names = ["baseline", "baseline", "steady", "steady", "steady", "lunch", "steady", ""]
    recording = log("time,phase,cpu_temp", *(f"{START + 10 * n},{name},50" for n, name in enumerate(names)))
    assert [(phase.name, phase.start_seconds - START, phase.end_seconds - START) for phase in recording.phases] == [
        ("baseline", 0, 20),
        ("steady", 20, 50),
    ]
    assert "'lunch' is no phase: left out" in recording.notes
    assert "phase steady occurs more than once: the longest is taken" in recording.notes


def test_a_quote_that_is_never_closed_does_not_swallow_the_log(log: Log) -> None:
    rows = [f"{START + n},4{n % 10},x" for n in range(200)]
    rows[3] = f'{START + 3},43,"x'
    recording = log("time,cpu_temp,name", *rows)
    assert len(recording.series["cpu0.temperature_celsius"]) == 200


@pytest.mark.parametrize("name", ["wide.csv", "nvidia-smi-l.csv", "dmon.txt", "windows-monitor.csv"])
def test_damage_costs_readings_and_never_changes_one(log: Log, name: str) -> None:
    """Lines cut, glued, doubled, lost, with a cell too few or too many: what is still read is what was there."""
    content = (LOGS / name).read_bytes()
    whole = {
        (series.sensor.id, round(float(time), 2)): float(value)
        for series in read_foreign_log(LOGS / name).series.values()
        for time, value in zip(series.time_seconds, series.values, strict=True)
        if not np.isnan(value)
    }
    random_ = random.Random(name)
    separator = b";" if b";" in content else b","
    for _ in range(12):
        lines = content.split(b"\n")
        for _ in range(random_.choice([1, 3])):
            place = random_.randrange(1, len(lines) - 1)
            line = lines[place]
            cells = line.split(separator)
            lines[place : place + 1] = random_.choice(
                [
                    [line[: random_.randrange(len(line) + 1)]],
                    [line + lines[place + 1]],
                    [line, line],
                    [],
                    [separator.join(cells[1:])],
                    [separator.join([cells[0], *cells])],
                ]
            )
        try:
            damaged = log(content=b"\n".join(lines))
        except ForeignLogError:
            continue
        for series in damaged.series.values():
            for time, value in zip(series.time_seconds, series.values, strict=True):
                if not np.isnan(value):
                    assert whole[series.sensor.id, round(float(time), 2)] == value


# ------------------------------------------------------------------------------------------------ logs without a header


def test_several_gpus_as_columns(log: Log) -> None:
    recording = log(*(f"{START + n},45000,60,70" for n in range(3)))
    assert {name: values(recording, name)[0] for name in recording.series} == {
        "cpu0.temperature_celsius": 45,
        "gpu0.temperature_celsius": 60,
        "gpu1.temperature_celsius": 70,
    }


@pytest.mark.parametrize(
    "lines",
    [
        [f"{START + n},45.5,60\n70\n80" for n in range(4)],
        [f'{START + n},45.5,"60\n70\n80"' for n in range(4)],
        [f"{START + n},45.5,60\n{START + n},45.5,70\n{START + n},45.5,80" for n in range(4)],
        [f"{START + n},45.5,60 70 80" for n in range(4)],
        [f"2026-11-30 09:55:0{n},45.5,60\n70\n80" for n in range(4)],
        [f"2026-11-30,09:55:0{n},45.5,60,70,80" for n in range(4)],
        [f"{START + n} 45.5 60 70 80" for n in range(4)],
    ],
)
def test_several_gpus_in_whatever_way_the_script_wrote_them(log: Log, lines: list[str]) -> None:
    recording = log(*lines)
    assert {name: values(recording, name) for name in recording.series} == {
        "cpu0.temperature_celsius": [45.5] * 4,
        "gpu0.temperature_celsius": [60] * 4,
        "gpu1.temperature_celsius": [70] * 4,
        "gpu2.temperature_celsius": [80] * 4,
    }
    assert times(recording) == [0, 1, 2, 3]


def test_a_script_that_could_not_read_the_cpu(log: Log) -> None:
    recording = log(*(f"{START + n},0.0,60" for n in range(5)))
    assert list(recording.series) == ["gpu0.temperature_celsius"]


def test_one_column_without_a_name_is_nobodys(log: Log) -> None:
    recording = log(*(f"{START + n},{40 + n}" for n in range(5)))
    assert list(recording.series) == ["device0.temperature_celsius"]


@pytest.mark.parametrize(
    "lines, seen",
    [
        ([f"{START + n},0,61,642.3" for n in range(5)], "the temperature of gpu1 holds 642.3"),
        ([f"{START + n},3,61,52" for n in range(5)], "the temperature of cpu0 is always 3"),
        (
            [f"{START + n},00000000:17:00.{n % 8},61,52" for n in range(5)],
            "the temperature of cpu0 holds 00000000:17:00.0",
        ),
        ([f"{n},40,50" for n in range(4)], "'0' is no time"),
        (["40,50,60"] * 5, "'40' is no time"),
        ([f"{START + n // 2},{n % 2},{40 + n}" for n in range(8)], "a second row of the time"),
        (["cpu 45 C", "cpu 46 C", "cpu 47 C"], "there is no row of figures|is no time"),
    ],
)
def test_other_columns_than_the_scripts_are_refused(log: Log, lines: list[str], seen: str) -> None:
    with pytest.raises(ForeignLogError, match=seen):
        log(*lines)


# -------------------------------------------------------------------------------------------- one row for each device

QUERY = "timestamp, index, uuid, temperature.gpu, power.draw [W]"


def tick(second: int, *cards: tuple[object, str, object]) -> list[str]:
    return [f"2026/11/30 09:55:{second:02d}.{n:03d}, {i}, {u}, {t}, {t}.5 W" for n, (i, u, t) in enumerate(cards)]


A, B = "GPU-aaaaaaaa-0000-4000-8000-000000000001", "GPU-bbbbbbbb-0000-4000-8000-000000000002"


def test_a_card_that_is_gone_does_not_lend_its_name(log: Log) -> None:
    """After a reboot without the first card, the second one has its number."""
    lines = [line for second in range(3) for line in tick(second, (0, A, 40), (1, B, 50))]
    lines += [line for second in range(3, 6) for line in tick(second, (0, B, 51))]
    recording = log(QUERY, *lines)
    assert {series.sensor.id: series.sensor.identity for series in recording.series.values()} == {
        "gpu0.temperature_celsius": A,
        "gpu0.power_watts": A,
        "gpu1.temperature_celsius": B,
        "gpu1.power_watts": B,
    }
    assert values(recording, "gpu0.temperature_celsius") == [40, 40, 40]
    assert values(recording, "gpu1.temperature_celsius") == [50, 50, 50, 51, 51, 51]


def test_a_card_that_lost_its_identity_is_told_by_its_number_while_that_is_only_its_own(log: Log) -> None:
    lines = [line for second in range(3) for line in tick(second, (0, A, 40), (1, B, 50))]
    lines += ["2026/11/30 09:55:03.000, 1, [Unknown Error], [Unknown Error], [Unknown Error]"]
    recording = log(QUERY, *lines)
    assert values(recording, "gpu1.temperature_celsius") == [50, 50, 50, None]
    assert values(recording, "gpu0.temperature_celsius") == [40, 40, 40]


def test_cards_by_number_alone(log: Log) -> None:
    recording = log(
        "timestamp, index, temperature.gpu",
        *(f"2026/11/30 09:55:0{second}, {card}, {40 + 10 * card}" for second in range(4) for card in (0, 2)),
    )
    assert values(recording, "gpu2.temperature_celsius") == [60] * 4


def test_a_column_called_gpu_is_a_number_beside_temperature_and_a_temperature_beside_cpu(log: Log) -> None:
    recording = log("time,gpu,temperature", *(f"{START + n // 2},{n % 2},{40 + n % 2}" for n in range(8)))
    assert values(recording, "gpu1.temperature_celsius") == [41] * 4
    recording = log("time,cpu,gpu", *(f"{START + n},40,50" for n in range(4)))
    assert values(recording, "gpu0.temperature_celsius") == [50] * 4


def test_doubled_rows_of_a_card_count_once(log: Log) -> None:
    lines = [line for second in range(3) for line in tick(second, (0, A, 40)) * 2]
    recording = log(QUERY, *lines)
    assert values(recording, "gpu0.temperature_celsius") == [40, 40, 40]


def test_a_figure_of_the_machine_beside_those_of_its_cards(log: Log) -> None:
    recording = log(
        "timestamp, index, uuid, temperature.gpu, cpu_temp",
        *(f"{START + n // 2}, {n % 2}, {(A, B)[n % 2]}, {40 + n % 2}, 55" for n in range(8)),
    )
    assert values(recording, "cpu0.temperature_celsius") == [55] * 4
    assert values(recording, "gpu1.temperature_celsius") == [41] * 4


def test_a_single_card_needs_no_number_and_several_do(log: Log) -> None:
    header = "timestamp, temperature.gpu, power.draw [W]"
    recording = log(header, *(f"2026/11/30 09:55:{second:02d}.123, 40, 100.5 W" for second in range(0, 30, 5)))
    assert values(recording, "gpu0.power_watts") == [100.5] * 6
    with pytest.raises(ForeignLogError, match="no column says which GPU each is of"):
        log(
            header,
            *(f"2026/11/30 09:55:{s:02d}.{m:03d}, {40 + m}, 100.5 W" for s in range(0, 30, 5) for m in (1, 9)),
        )


def test_memory_and_clocks_come_in_our_units(log: Log) -> None:
    recording = log(
        "timestamp, index, memory.used [MiB], clocks.current.memory [MHz], clocks_event_reasons.active, pstate, name",
        *(f"2026/11/30 09:55:0{n}, 0, 1024 MiB, 3201 MHz, 0x0000000000000004, P0, X" for n in range(3)),
    )
    assert {name: values(recording, name)[0] for name in recording.series} == {
        "gpu0.memory.used_bytes": 2.0**30,
        "gpu0.memory.clock_megahertz": 3201,
        "gpu0.throttle_reasons_bits": 4,
    }
    assert not any("not understood" in note for note in recording.notes)


# --------------------------------------------------------------------------------------------------------- refusals


@pytest.mark.parametrize(
    "content, seen",
    [
        (b"", "it is empty"),
        (b"\n\n", "it is empty"),
        (b"PK\x03\x04rest", "this is an Excel workbook"),
        (b"\x1f\x8brest\n", "this is compressed by gzip"),
        (b"61\n62\n63\n", "no line of it has several columns"),
        (b"time,cpu_temp\n", "there is no row of figures in it"),
        (b"cpu_temp,gpu_temp\n40,50\n41,51\n", "none of the columns is a time"),
        (b"time,weather,mood\n1796032500,1,2\n1796032501,3,4\n", "no column holds a figure that can be used"),
        (b"time,cpu_temp\n1796032500,N/A\n1796032501,N/A\n", "no column holds a figure that can be used"),
        (b"time,cpu_temp\nyesterday,40\ntoday,41\n", "'yesterday' in the time column is no time"),
        (b"Failed to initialize NVML: Unknown Error\n" * 3, "no row of figures|several columns"),
    ],
)
def test_what_is_no_log_is_refused_with_its_name(log: Log, content: bytes, seen: str) -> None:
    with pytest.raises(ForeignLogError, match=seen) as refused:
        log(content=content)
    assert "log.csv: " in str(refused.value)
    assert "\ntry: " in str(refused.value) or "\nlikely: " in str(refused.value)


def test_whatever_can_be_replayed_is_opened(tmp_path: Path) -> None:
    assert open_recording(LOGS / "wide.csv").state == "foreign"
    with pytest.raises(RecordingError, match="there is nothing of that name"):
        open_recording(tmp_path / "nothing")
    with pytest.raises(RecordingError, match=r"no run\.json in it"):
        open_recording(tmp_path)
    with pytest.raises(RecordingError, match=r"no run\.json in it"):
        open_recording(tmp_path / "run.json")
