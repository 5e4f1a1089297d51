"""The recipes in deploy/ are what they claim to be, give options that there are, and hold no secret."""

from __future__ import annotations

import configparser
import re
import shlex
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from pytest_thermal.plugin.options import OPTIONS

DEPLOY = Path(__file__).parents[2] / "deploy"
SBATCH = DEPLOY / "slurm" / "thermal.sbatch"
UNITS = DEPLOY / "systemd"
JOB = DEPLOY / "kubernetes" / "thermal-job.yaml"
PLAYBOOK = DEPLOY / "ansible" / "thermal.yml"
OF_OTHERS = {"--junitxml", "--alluredir", "--pyargs"}


def job() -> dict[str, Any]:
    (found,) = yaml.safe_load_all(JOB.read_text("utf-8"))
    assert isinstance(found, dict)
    return found


def playbook_run() -> str:
    (play,) = yaml.safe_load(PLAYBOOK.read_text("utf-8"))
    return str(next(task["ansible.builtin.shell"]["cmd"] for task in play["tasks"] if task["name"] == "Thermal run"))


def unit(name: str) -> configparser.ConfigParser:
    parser = configparser.ConfigParser(strict=True, interpolation=None, delimiters=("=",))
    parser.optionxform = str  # type: ignore[assignment,method-assign]
    parser.read_string((UNITS / name).read_text("utf-8").replace("\\\n", " "))
    return parser


def pytest_commands() -> Iterator[tuple[str, list[str]]]:
    text = SBATCH.read_text("utf-8").replace("\\\n", " ")
    yield "slurm", shlex.split(text[text.index('exec "$PYTHON"') : text.index('"$@"\n')])
    yield "systemd", shlex.split(unit("pytest-thermal.service")["Service"]["ExecStart"])
    (container,) = job()["spec"]["template"]["spec"]["containers"]
    yield "kubernetes", [*container["command"], *container["args"]]
    run = playbook_run().replace("\\\n", " ")
    yield "ansible", shlex.split(run[run.index("exec ") :])


COMMANDS = dict(pytest_commands())


@pytest.mark.parametrize("recipe", COMMANDS)
def test_every_option_is_one_that_there_is(recipe: str) -> None:
    words = COMMANDS[recipe]
    assert words[words.index("pytest") - 1] == "-m"
    after = words[words.index("pytest") + 1 :]
    given = {word.partition("=")[0] for word in after if word.startswith("--")}
    assert given - {f"--{option.name}" for option in OPTIONS} - OF_OTHERS == set()
    assert {"--bench", "--runs"} <= given
    # A cache in the folder of the suites would be written by all nodes at once.
    assert "no:cacheprovider" in after
    assert any("suites" in word.lower() for word in after)
    assert not [word for word in after if word in ("||", ";")]


def test_the_job_script_is_bash_and_each_node_writes_to_a_folder_of_its_own() -> None:
    subprocess.run(["bash", "-n", str(SBATCH)], check=True, timeout=90)
    text = SBATCH.read_text("utf-8")
    assert "results=$SHARED/results/$SLURM_JOB_ID/$SLURMD_NODENAME" in text
    assert "--kill-on-bad-exit=0" in text
    assert "#SBATCH --ntasks-per-node=1" in text


def test_the_job_is_one_pod_a_node_that_meet_anew_each_time() -> None:
    spec = job()["spec"]
    pod = spec["template"]["spec"]
    (container,) = pod["containers"]
    assert spec["completionMode"] == "Indexed"
    assert spec["backoffLimit"] == 0
    assert pod["restartPolicy"] == "Never"
    assert f"--nodes={spec['completions']}" in container["args"]
    assert spec["parallelism"] == spec["completions"]
    places = {mount["name"]: mount for mount in container["volumeMounts"]}
    assert places.keys() == {volume["name"] for volume in pod["volumes"]}
    assert f"--sysfs={places['sys']['mountPath']}" in container["args"]
    assert places["sys"]["readOnly"]
    told = {one["name"] for one in container["env"]}
    used = set(re.findall(r"\$\((\w+)\)", " ".join(container["args"])))
    assert used <= told
    assert any("$(JOB_UID)" in argument for argument in container["args"] if argument.startswith("--together="))


def test_the_units_verify() -> None:
    service, timer = unit("pytest-thermal.service"), unit("pytest-thermal.timer")
    assert service["Service"]["KillMode"] == "mixed"
    assert timer["Timer"]["OnCalendar"]
    program = shutil.which("systemd-analyze")
    if program is None:
        pytest.skip("systemd-analyze is not installed")
    subprocess.run([program, "calendar", timer["Timer"]["OnCalendar"]], check=True, capture_output=True, timeout=90)


def test_the_service_is_understood_by_systemd(tmp_path: Path) -> None:
    program = shutil.which("systemd-analyze")
    if program is None:
        pytest.skip("systemd-analyze is not installed")
    for path in UNITS.iterdir():
        # Its program is not installed here, and that is all that may differ.
        text = path.read_text("utf-8").replace("/opt/pytest-thermal/bin/python", "/bin/true")
        (tmp_path / path.name).write_text(text, "utf-8")
    done = subprocess.run(
        [program, "verify", "--man=no", *map(str, sorted(tmp_path.iterdir()))],
        capture_output=True,
        text=True,
        check=False,
        timeout=90,
    )
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize("path", [path for path in DEPLOY.rglob("*") if path.is_file()], ids=lambda path: path.name)
def test_no_recipe_holds_a_secret(path: Path) -> None:
    text = path.read_text("utf-8")
    assert not re.search(r"\bsk-[A-Za-z0-9]", text)
    assert not re.search(r"(?i)(password|token|secret|api_key)\s*[:=]\s*[\"']?[A-Za-z0-9+/]{16,}", text)
