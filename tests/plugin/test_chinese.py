"""What a user sees with ``--lang zh``: Chinese that lines up in 80 columns, while files stay English."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from pathlib import Path

import pytest

from pytest_thermal.plugin.columns import clipped, columns, cut, padded, wrapped
from tests.plugin.plugin_runs import REPO, SUITE, cases
from tests.plugin.thermal_runs import THERMAL, Started

LOG = REPO / "fixtures" / "logs" / "wide.csv"
FEW = "phase or coverage or baseline or load or settled or rise"
OWN_WORDS = re.compile(
    r"GET /v1/models|401 Unauthorized|Incorrect API key provided|short test summary info|test session starts"
    r"|[Ww]arnings summary|Docs: https\S+|generated xml file|no reading|^platform .*|^plugins: .*|^rootdir: .*"
    r"|^configfile: .*|^collected \d+ items.*|^suites/.*|^.*suites/\S+:\d+:.*|\d+ (?:failed|passed|skipped|warning)\b"
    r"|^(?:FAILED|ERROR) .*|^=+ FAILURES =+$|^_+ .* _+$|@pytest\.mark\.\w+|seconds|nvidia-smi"
)
"""What pytest and other tools say in their own words."""
SENTENCE = re.compile(r"(?:\b[a-z]{2,} ){2,}[a-z]{2,}\b")
"""Three words in lower case in a row."""


@dataclass(frozen=True)
class Told:
    """What a run printed and left."""

    output: str
    folder: Path

    @property
    def lines(self) -> list[str]:
        return self.output.splitlines()

    def english(self) -> list[str]:
        """Lines in which an English sentence is left."""
        return [line for line in self.lines if SENTENCE.search(OWN_WORDS.sub("", line))]

    def summary(self, title: str) -> list[str]:
        """The lines of a section of ours."""
        start = next(number for number, line in enumerate(self.lines) if re.fullmatch(rf"=+ {title} =+", line))
        rest = self.lines[start + 1 :]
        return rest[: next(number for number, line in enumerate(rest) if re.match(r"=====", line))]


def run_in(folder: Path, *arguments: str | Path, **env: str) -> Told:
    started = Started(folder, *arguments, "--junitxml", folder / "junit.xml", env={**env, "PYTHONUTF8": "1"})
    started.wait()
    return Told(started.output, folder)


@pytest.fixture(scope="module")
def access(tmp_path_factory: pytest.TempPathFactory) -> Told:
    """A fault in the way in, over two workers, with the gate; the language comes from the locale."""
    folder = tmp_path_factory.mktemp("access")
    return run_in(folder, SUITE, "--demo-fault", "key-wrong", "--gate", "-n", "1", LC_ALL="zh_CN.UTF-8")


@pytest.fixture(scope="module")
def thermal(tmp_path_factory: pytest.TempPathFactory) -> Told:
    """A recording from elsewhere, judged again."""
    return run_in(tmp_path_factory.mktemp("thermal"), THERMAL, "--replay", LOG, "--lang", "zh", "-k", FEW)


@pytest.mark.parametrize("run", ["access", "thermal"])
def test_no_english_sentence_is_left(run: str, request: pytest.FixtureRequest) -> None:
    told: Told = request.getfixturevalue(run)
    assert not told.english(), told.output


def test_what_was_found_is_told_in_chinese(access: Told, thermal: Told) -> None:
    key = "E   key: GET /v1/models 返回 401 Unauthorized（“Incorrect API key provided: sk-d….”）"
    assert key in access.lines
    assert (
        "E   可能原因: $THERMAL_DEMO_KEY 中的密钥（sk-d…，48 个字符）写错、已停用，或属于另一个网关或项目"
        in access.lines
    )
    assert "E   建议: 与网关控制台核对开头几位和长度，然后重新设置 $THERMAL_DEMO_KEY" in access.lines
    assert "E   无法判定: load: 无法知道 cpu0 是否加载：利用率：没有测；功率：没有测" in thermal.lines
    assert any("温升 29.0 ± 1.1 °C，低于 30 °C（默认）" in line for line in thermal.lines)


def test_our_sections_stay_within_80_columns(access: Told, thermal: Told) -> None:
    lines = [*access.summary("接入"), *access.summary("门禁"), *thermal.summary("热测试")]
    long = [line for line in lines if columns(line) > 80 and str(REPO) not in line and str(access.folder) not in line]
    assert not long
    assert sum(len(line) for line in lines) < sum(map(columns, lines))


def test_tables_line_up(access: Told, thermal: Told) -> None:
    rows = [line for line in access.summary("接入") if re.match(r"  (?:通过|失败|不适用|被阻断) ", line)]
    assert len(rows) >= 5
    for row in rows:
        _, name, text = re.split(r" {2,}", row.strip(), maxsplit=2)
        assert columns(row[: row.index(name)]) == 15
        assert columns(row[: row.index(text)]) == 37
    head, *figures = [line for line in thermal.summary("热测试") if re.match(r"  (?:°C|\w+0)", line)][:3]
    ends = [columns(head[: head.index(title) + len(title)]) for title in ("基线", "稳态", "温升", "峰值")]
    for row in figures:
        assert [match.end() for match in re.finditer(r"[+\d.]+(?= )", row)][-5:][: len(ends)] == ends or all(
            row[end - 1].isdigit() and row[end] == " " for end in ends
        )


def test_files_stay_english(access: Told, thermal: Told) -> None:
    chinese = re.compile("[\u4e00-\u9fff]")
    for run in (access, thermal):
        assert not chinese.search((run.folder / "junit.xml").read_text(encoding="utf-8"))
    outcome, message = cases(access.folder / "junit.xml")["test_key[demo]"]
    assert outcome == "failure"
    assert message.startswith("key: 401 Unauthorized from GET /v1/models")
    assert "\nlikely: the key in $THERMAL_DEMO_KEY" in message
    gate = json.loads((access.folder / "reports" / "gate.json").read_text(encoding="utf-8"))
    assert gate["decision"] == "no-go"
    assert not chinese.search(json.dumps(gate, ensure_ascii=False))


def test_a_locale_that_the_output_cannot_show_is_told_in_english(tmp_path: Path) -> None:
    started = Started(
        tmp_path, SUITE, "--bench", "nowhere", env={"LANG": "zh_CN.UTF-8", "LC_ALL": "", "PYTHONIOENCODING": "ascii"}
    )
    assert started.wait() == pytest.ExitCode.USAGE_ERROR
    assert "likely: a slip in --bench" in started.output


@pytest.mark.parametrize(
    "language, told", [("zh", "可能原因: --bench 或 $THERMAL_BENCH 写错"), ("en", "likely: a slip")]
)
def test_a_refusal_is_told_in_the_language(tmp_path: Path, language: str, told: str) -> None:
    started = Started(tmp_path, SUITE, "--bench", "nowhere", "--thermal-lang", language, env={"PYTHONUTF8": "1"})
    assert started.wait() == pytest.ExitCode.USAGE_ERROR
    assert told in started.output
    assert all(columns(line) <= 80 or str(tmp_path) in line for line in started.output.splitlines())


def test_a_wrong_language_is_refused(tmp_path: Path) -> None:
    started = Started(tmp_path, SUITE, "--lang", "fr")
    assert started.wait() == pytest.ExitCode.USAGE_ERROR
    assert "'fr' is no language: en or zh" in started.output


# ------------------------------------------------------------------------------------------------------------- columns


def test_columns_count_wide_characters_twice() -> None:
    assert columns("温升 +25.1 °C") == 2 * 2 + len(" +25.1 °C")
    assert padded("温升", 6) == "温升  "
    assert padded("温升", 6, right=True) == "  温升"
    assert clipped("温升 25 °C", 6) == "温升 …"
    assert cut("网关在 127.0.0.1 端口接受连接", 12) == "网关在…"


def test_lines_end_between_characters_and_not_before_a_stop() -> None:
    text = "负载没有保持住：gpu0.temperature_celsius 低于 90 %，看 events.jsonl"
    for width in range(26, 60):
        lines = wrapped(text, width, rest="  ")
        assert all(columns(line) <= width for line in lines)
        assert not [line for line in lines if line.strip()[0] in "，：。"]
        assert "".join(line.strip() for line in lines).replace(" ", "") == text.replace(" ", "")
    assert wrapped("only plain words here", 10) == ["only plain", "words here"]


def test_english_wraps_as_before() -> None:
    assert wrapped("a b", 3, first="", rest="  ") == ["a b"]
