"""The package as it is installed: its names, how fast it loads, its wheel."""

import ast
import json
import os
import pydoc
import re
import subprocess
import sys
import sysconfig
import textwrap
import tomllib
import venv
import zipfile
from fractions import Fraction
from importlib.util import find_spec
from pathlib import Path

import pytest
from typer.testing import CliRunner

import mdpcloud as mc
from mdpcloud.cli import app
from mdpcloud.study.file.reading import read_study

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "mdpcloud"


def python(code: str) -> str:
    """Output of a fresh interpreter running the code."""
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return run.stdout.strip()


def test_import_loads_nothing_but_numpy_of_the_dependencies() -> None:
    heavy = ["scipy", "numba", "cvxpy", "networkx", "joblib", "pydantic", "typer", "matplotlib"]
    loaded = python(f"import mdpcloud, sys; print([m for m in {heavy} if m in sys.modules])")
    assert loaded == "[]"


def test_a_submodule_does_not_hide_the_function_of_its_name() -> None:
    code = "import mdpcloud as mc, mdpcloud.solve; print('solve' in vars(mc))"
    assert python(code) == "False"


def test_every_public_name_is_listed_once_and_in_order() -> None:
    assert sorted(mc.__all__) == sorted({*mc.__all__})
    assert dir(mc) == sorted(mc.__all__)


def test_the_help_on_systems_shows_the_systems_alone() -> None:
    routing, allocation = ["CloudRouting", "Node"], ["Cooperation", "Downgrading", "ErlangLoss"]
    allocation += ["LossNetwork", "Offloading", "TrunkReservation"]
    assert dir(mc.systems) == sorted(routing + allocation)
    text = pydoc.plain(pydoc.render_doc(mc.systems))
    assert "class CloudRouting(" in text
    assert "class Node(" in text
    assert "AT_CAP" not in text


def test_type_checkers_see_public_names_where_they_are_loaded_from() -> None:
    tree = ast.parse((PACKAGE / "__init__.py").read_text(encoding="utf-8"))
    (block,) = [n for n in tree.body if isinstance(n, ast.If)]
    seen = {
        alias.name: f"{source.module}.{alias.name}".split(".", 1)[1]
        for source in block.body
        if isinstance(source, ast.ImportFrom)
        for alias in source.names
    }
    places = {name: f"{place}.{name}" for name, place in mc._HOME.items()}
    places |= {name: name for name in mc._SUBPACKAGES}
    assert seen == places


@pytest.mark.parametrize("name", mc.__all__)
def test_every_public_name_is_there(name: str) -> None:
    assert getattr(mc, name) is not None


def test_an_unknown_name_is_an_attribute_error() -> None:
    assert not hasattr(mc, "no_such_name")


def test_the_public_api_has_one_source_of_its_version() -> None:
    tree = ast.parse((PACKAGE / "__init__.py").read_text(encoding="utf-8"))
    assigned = [
        n for n in ast.walk(tree) if isinstance(n, ast.Constant) and n.value == mc.__version__
    ]
    assert len(assigned) == 1
    assert mc.__version__ not in (ROOT / "pyproject.toml").read_text(encoding="utf-8")


def test_the_package_says_that_it_is_typed() -> None:
    assert (PACKAGE / "py.typed").is_file()


def test_import_costs_little_more_than_numpy() -> None:
    lines = ("import numpy, time", "t = time.process_time()", "import mdpcloud")
    code = "; ".join((*lines, "print(time.process_time() - t)"))
    assert min(float(python(code)) for _ in range(3)) < 0.25


# --- the README -----------------------------------------------------------------------------------

README = (ROOT / "README.md").read_text(encoding="utf-8")


def blocks(language: str) -> list[str]:
    """Code of the README in a language."""
    return re.findall(rf"^```{language}\n(.*?)^```", README, re.DOTALL | re.MULTILINE)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Working directory that holds the files of the README."""
    rules, script, system, questions, simulation, arm, dispatch = blocks("python")
    scenario, centres, loads = blocks("toml")
    files = {
        "my_rules.py": rules,
        "script.py": script,
        "my_system.py": system,
        "questions.py": questions,
        "simulation.py": simulation,
        "arm.py": arm,
        "dispatch.py": dispatch,
        "my.toml": scenario,
        "centres.toml": centres,
        "loads.toml": loads,
    }
    for name, text in files.items():
        (tmp_path / name).write_text(text, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def command(*arguments: object) -> str:
    """What a command prints that must end well."""
    result = CliRunner().invoke(app, [str(one) for one in arguments])
    assert result.exit_code == 0, result.output
    return result.stdout


@pytest.mark.parametrize("script", ["script.py", "questions.py", "simulation.py", "arm.py"])
def test_the_python_of_the_readme_prints_what_the_readme_says(
    folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, script: str
) -> None:
    monkeypatch.syspath_prepend(str(folder))
    exec((folder / script).read_text(encoding="utf-8"), {})
    printed = capsys.readouterr().out
    assert textwrap.indent(printed, "    ") in README


def test_the_tables_of_the_readme_decide_as_the_readme_says(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (folder / "indices.json").write_text(command("indices", "my.toml"), encoding="utf-8")
    exec((folder / "dispatch.py").read_text(encoding="utf-8"), {})
    printed = capsys.readouterr().out
    assert f"0: outside, k + 1: node k\n```\n\n{textwrap.indent(printed, '    ')}" in README


def test_the_scenario_and_rule_of_the_readme_give_the_costs_of_its_python(folder: Path) -> None:
    command("compare", "my.toml", "--json", "out.json")
    record = json.loads((folder / "out.json").read_text(encoding="utf-8"))
    costs = {row["name"]: row["cost"] for row in record["policies"]}
    assert f"optimum: {record['optimum']['cost']:.6f}" in README
    assert f"index: {costs['policy_improvement']:.6f}" in README
    assert f"mine: {costs['fast_first']:.6f}" in README
    assert mc.read_scenario(folder / "my.toml").name == "two nodes"


def test_the_system_of_the_readme_has_a_scenario_and_an_optimum(folder: Path) -> None:
    scenario = command("new", "my_system.py:Admission")
    (folder / "admission.toml").write_text(scenario, encoding="utf-8")
    assert "refusal_cost = 5.0" in scenario
    assert "least cost, euro per minute: 2.2749077" in command("solve", "admission.toml")


@pytest.mark.parametrize("name", ["evaluate", "compare"])
def test_the_tables_of_the_two_centres_are_what_the_commands_print(folder: Path, name: str) -> None:
    """Word by word; numbers but for their last digits and errors."""
    lines = command(name, "centres.toml").splitlines()[4:]
    first = README.index(f"    {lines[0]}\n")
    shown = [line.strip() for line in README[first:].splitlines()[: len(lines)]]
    for line, printed in zip(shown, lines, strict=True):
        for word, now in zip(line.split(), printed.split(), strict=True):
            if re.fullmatch(r"[\d.]{6,}", now):
                assert float(word) == pytest.approx(float(now), abs=1e-7)
            elif not re.fullmatch(r"\de-\d+", now):
                assert word == now


@pytest.mark.slow
def test_the_study_of_the_readme_prints_its_table_and_draws_its_figure(folder: Path) -> None:
    printed = command("study", "loads.toml").replace("± ", "±")
    shown = re.sub(r"± ?\de-\d", "±", README)  # the widths of bounds differ between machines
    assert textwrap.indent(re.sub(r"±\de-\d", "±", printed.rstrip()), "    ") in shown
    assert (folder / "loads.results" / "figures" / "gaps.pdf").is_file()


def tables() -> list[str]:
    """What the README shows of the demo: compared, and simulated."""
    return re.findall(r"^    base-like 1 .*?^(?=\S)", README, re.DOTALL | re.MULTILINE)


@pytest.mark.slow
def test_the_simulated_table_of_the_readme_is_what_the_command_prints() -> None:
    """Costs within three times their intervals, as paths differ between machines."""
    _, block = tables()
    shown = textwrap.dedent(block).strip().splitlines()
    scenario = ROOT / "experiments" / "base_like_1.toml"
    printed = command("simulate", scenario, "--events", "2e7").splitlines()
    assert shown[0] == printed[0]
    assert shown[2:5] == printed[2:5]
    for line, other in zip(shown[5:], printed[5:], strict=False):
        name, cost, _, error, *_ = line.split()
        name_now, cost_now, *_ = other.split()
        assert name == name_now
        assert abs(float(cost) - float(cost_now)) <= 3 * float(error)


def test_the_table_of_the_readme_is_what_the_demo_prints() -> None:
    """Word by word; costs within their bounds, whose last digits differ between machines."""
    block, _ = tables()
    shown = textwrap.dedent(block).strip().splitlines()
    printed = command("compare", ROOT / "experiments" / "base_like_1.toml").splitlines()
    assert shown[:5] == printed[:5]
    for line, other in zip(shown[5:], printed[5:], strict=True):
        name, cost, _, error, *rest = line.split()
        name_now, cost_now, _, error_now, *rest_now = other.split()
        assert [name, *rest] == [name_now, *rest_now]
        assert abs(float(cost) - float(cost_now)) <= float(error) + float(error_now)


def test_the_scenarios_and_studies_of_the_experiments_can_be_read() -> None:
    files = sorted((ROOT / "experiments").glob("**/*.toml"))
    assert files
    for file in files:
        is_study = "base" in tomllib.loads(file.read_text(encoding="utf-8"))
        assert (read_study if is_study else mc.read_scenario)(file).name


# --- the wheel, installed away from the checkout --------------------------------------------------

SYSTEM = '''
from dataclasses import dataclass
from typing import Annotated

from annotated_types import Gt

import mdpcloud as mc
from mdpcloud.systems.parameters import validate


@dataclass(frozen=True)
class Queue:
    """One server that may refuse jobs."""

    arrival_rate: Annotated[float, Gt(0)] = 0.5
    refusal_cost: Annotated[float, Gt(0)] = 4.0

    def __post_init__(self):
        validate(self)

    def model(self, caps=None):
        arrival = mc.Event("arrival", self.arrival_rate, [
            mc.Action("accept", mc.step(jobs=+1)), mc.Action("refuse", cost=self.refusal_cost)])
        service = mc.Event("service", lambda x: 1.0 * (x.jobs > 0), mc.step(jobs=-1))
        return mc.Model(mc.Lattice({"jobs": 20}), [arrival, service], cost_rate=lambda x: x.jobs)
'''


@pytest.fixture(scope="session")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Wheel of the package."""
    folder = tmp_path_factory.mktemp("wheel")
    command = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(folder)]
    subprocess.run(command, cwd=ROOT, check=True, capture_output=True)
    (built,) = folder.glob("*.whl")
    return built


@pytest.fixture(scope="session")
def installed(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Folder of the commands of a fresh environment that holds the wheel.

    What the package needs is taken from the environment of the tests, by a path file, so that
    nothing is fetched.
    """
    folder = tmp_path_factory.mktemp("fresh")
    has_pip = find_spec("pip") is not None
    venv.create(folder, with_pip=not has_pip, symlinks=True)
    python = folder / "bin" / "python"
    pip = [sys.executable, "-m", "pip", "--python", python] if has_pip else [python, "-m", "pip"]
    subprocess.run([*pip, "install", "--no-deps", "--no-index", wheel], check=True)
    (site,) = (folder / "lib").glob("python*/site-packages")
    (site / "needs.pth").write_text(sysconfig.get_path("purelib") + "\n", encoding="utf-8")
    return folder / "bin"


def test_the_wheel_holds_the_package_and_nothing_else(wheel: Path) -> None:
    names = set(zipfile.ZipFile(wheel).namelist())
    sources = {p.relative_to(ROOT).as_posix() for p in PACKAGE.rglob("*.py")}
    assert sources | {"mdpcloud/py.typed"} <= names
    assert {name.partition("/")[0] for name in names} == {
        "mdpcloud",
        f"mdpcloud-{mc.__version__}.dist-info",
    }


def test_the_installed_package_is_the_wheel(installed: Path, tmp_path: Path) -> None:
    code = "import mdpcloud; print(mdpcloud.__version__, mdpcloud.__file__)"
    command = [installed / "python", "-c", code]
    run = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=True)
    version, place = run.stdout.split()
    assert version == mc.__version__
    assert Path(place).is_relative_to(installed.parent)


@pytest.mark.slow
def test_the_installed_command_compares_a_rule_and_a_system_of_the_users_own(
    installed: Path, tmp_path: Path
) -> None:
    for name, text in (
        ("my_system.py", SYSTEM),
        ("my_rules.py", RULE),
        ("my.toml", SCENARIO),
    ):
        (tmp_path / name).write_text(text, encoding="utf-8")
    command = [installed / "mdpcloud", "compare", "my.toml", "--json", "out.json"]
    own_cache = {**os.environ, "MDPCLOUD_CACHE": str(tmp_path / "cache")}
    run = subprocess.run(command, cwd=tmp_path, env=own_cache, capture_output=True, text=True)
    assert run.returncode == 0, run.stderr
    assert "first run: numba compiles the kernels" in run.stderr
    record = json.loads((tmp_path / "out.json").read_text(encoding="utf-8"))
    best = min(cost_of_threshold(i) for i in range(21))
    assert record["optimum"]["lower"] <= best <= record["optimum"]["upper"]
    (mine,) = record["policies"]
    assert mine["name"] == "refuse_at_three"
    assert mine["lower"] <= cost_of_threshold(3) <= mine["upper"]


def cost_of_threshold(room: int) -> Fraction:
    """Cost rate of the queue if it refuses jobs in state `room`, from its stationary law."""
    law = [Fraction(1, 2**i) for i in range(room + 1)]
    jobs = sum((i * p for i, p in enumerate(law)), Fraction(0))
    return (jobs + Fraction(1, 2) * 4 * law[-1]) / sum(law)


RULE = """
import numpy as np


def refuse_at_three(x):
    return np.where(x.jobs < 3, 0, 1)
"""

SCENARIO = """
format = 1
system = "my_system.py:Queue"
parameters = { refusal_cost = 4.0 }
compare = { policies = ["my_rules.py:refuse_at_three"] }
"""


def test_the_installed_command_knows_systems_of_the_users_own(
    installed: Path, tmp_path: Path
) -> None:
    (tmp_path / "my_system.py").write_text(SYSTEM, encoding="utf-8")
    command = [installed / "mdpcloud", "new", "my_system.py:Queue"]
    run = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=True)
    assert "refusal_cost = 4.0" in run.stdout
