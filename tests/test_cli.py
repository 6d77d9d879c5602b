"""The command line: what it prints and writes, its exit codes, its messages."""

import json
import math
import os
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console
from typer.testing import CliRunner, Result

import mdpcloud as mc
from mdpcloud.cli import app
from mdpcloud.cli.progress import done, progress_bar
from mdpcloud.compare import Row
from mdpcloud.numbers import interval, percent, with_error
from mdpcloud.scenario import SimulateSettings

SYSTEM = '''
"""A system of the user's own."""
from dataclasses import dataclass

from mdpcloud.systems.parameters import validate


@dataclass(frozen=True)
class Row:
    """Jobs in a row."""

    arrival_rate: float = 1.0
    policy_names = ("split", "greedy")

    def __post_init__(self):
        validate(self)

    def model(self, caps=None):
        return ("model", caps)



@dataclass(frozen=True)
class Bare:
    """Nothing but a model."""

    def model(self, caps=None):
        return None


def rule(x):
    return x.nothing
'''

SCENARIO = """
format = 1
system = "own.py:Row"
name = "a [row]"
time_unit = "hour"
cost_unit = "euro"
[solve]
tolerance = 1e-7
caps = [3]
[compare]
policies = ["split", "own.py:rule"]
ties = "last"
"""


@pytest.fixture
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "own.py").write_text(SYSTEM, encoding="utf-8")
    path = tmp_path / "row.toml"
    path.write_text(SCENARIO, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    return path


def run(*arguments: object) -> Result:
    return CliRunner().invoke(app, [str(a) for a in arguments])


def failed(result: Result, code: int) -> str:
    """Message of a command that must have failed with this code, without a traceback."""
    assert result.exit_code == code, result.output
    assert isinstance(result.exception, SystemExit)
    assert "Traceback" not in result.output
    return result.stderr


@dataclass(frozen=True)
class FakeComparison:
    """What the command line expects of a comparison."""

    name: str = ""
    time_unit: str = ""
    cost_unit: str = ""
    scenario_sha256: str | None = None
    system_name: str | None = None

    def to_dict(self) -> dict[str, Any]:
        row = {"cost": 2.0, "lower": 2 - 1e-7, "upper": 2 + 1e-7, "status": "exact", "notes": []}
        gaps = {"gap": 1 / 3, "gap_lower": 0.3333, "gap_upper": 0.3334}
        profit = {"absolute_gap": 0.5, "profit_gap": 0.25}
        none = {"gap": None, "gap_lower": None, "gap_upper": None, "profit_gap": None}
        return {
            "format": 1,
            "system": self.system_name,
            "name": self.name,
            "units": {"time": self.time_unit, "cost": self.cost_unit},
            "states": 17,
            "caps": [16],
            "truncation": {"kind": "exact", "error": 0.0},
            "optimum": {"cost": 1.5, "lower": 1.4999, "upper": 1.5001, "status": "time"},
            "notes": ["nodes[0]: never refuses", "nodes[2]: never refuses", "odd"],
            "policies": [
                {"name": "split", **row, **gaps, **profit, "notes": ["odd"]},
                {"name": "rule", **row, **none, "status": "closed_form", "notes": ["slow " * 30]},
            ],
            "run": {"scenario_sha256": self.scenario_sha256},
        }

    def plot(self, folder: Path) -> list[Path]:
        picture = folder / "costs.png"
        picture.write_bytes(b"")
        return [picture]


@pytest.fixture
def calls(monkeypatch: pytest.MonkeyPatch) -> list[dict[str, Any]]:
    """Calls of compare, which is replaced."""
    made: list[dict[str, Any]] = []

    def compare(system: Any, policies: Any, **settings: Any) -> FakeComparison:
        made.append({"system": system, "policies": policies, **settings})
        return FakeComparison()

    monkeypatch.setitem(vars(mc), "compare", compare)
    return made


def raising(error: BaseException) -> Callable[..., Any]:
    def call(*_: Any, **__: Any) -> Any:
        raise error

    return call


# --- compare --------------------------------------------------------------------------------------


def test_compare_prints_costs_bounds_and_gaps_in_the_scenarios_units(
    file: Path, calls: list[dict[str, Any]]
) -> None:
    result = run("compare", file)
    assert result.exit_code == 0, result.output
    assert result.stdout.splitlines()[:8] == [
        "a [row] (own.py:Row)",
        "17 states, the optimum never leaves this box",
        "costs in euro per hour",
        "",
        "policy        cost  bounds       gap  profit gap  status",
        "optimum    1.50000  ± 0.0001                      time limit",
        "split    2.0000000  ± 2e-7    33.3 %     25.00 %  exact",
        "rule     2.0000000  ± 2e-7         -           -  closed form",
    ]


def test_notes_are_told_once_within_the_width_of_the_terminal(
    file: Path, calls: list[dict[str, Any]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "60")
    notes = run("compare", file).stdout.partition("\n\nnote: ")[2].splitlines()
    assert notes[:2] == ["nodes[0], nodes[2]: never refuses", "note: odd"]
    assert notes[2].startswith("note: rule: slow slow")
    assert notes[3].startswith("  slow slow")
    assert max(map(len, notes)) <= 60


def test_a_system_that_is_finite_by_itself_is_not_called_a_box(
    file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Finite(FakeComparison):
        def to_dict(self) -> dict[str, Any]:
            return {**super().to_dict(), "caps": None}

    monkeypatch.setitem(vars(mc), "compare", lambda *_, **__: Finite())
    assert "\n17 states\n" in run("compare", file).stdout


def test_compare_passes_on_what_the_file_says(file: Path, calls: list[dict[str, Any]]) -> None:
    run("compare", file)
    (call,) = calls
    assert call["system"].arrival_rate == 1.0
    assert list(call["policies"]) == ["split", "rule"]
    assert (call["ties"], call["tolerance"], call["threads"]) == ("last", 1e-7, 1)
    assert call["caps"] == (3,)


def test_flags_override_the_file_and_are_echoed(file: Path, calls: list[dict[str, Any]]) -> None:
    result = run("compare", file, "--tolerance", "1e-5", "--threads", "2")
    assert (calls[0]["tolerance"], calls[0]["threads"]) == (1e-5, 2)
    assert "--tolerance 1e-05 (the file has 1e-07)" in result.stderr
    assert "--threads 2 (the file has 1)" in result.stderr


def test_compare_writes_results_and_pictures(
    file: Path, tmp_path: Path, calls: list[dict[str, Any]]
) -> None:
    out, folder = tmp_path / "out.json", tmp_path / "deep" / "pictures"
    result = run("compare", file, "--json", out, "--plots", folder)
    record = json.loads(out.read_text(encoding="utf-8"))
    assert (record["name"], record["units"]) == ("a [row]", {"time": "hour", "cost": "euro"})
    assert record["system"] == "own.py:Row"
    assert len(record["run"]["scenario_sha256"]) == 64
    assert (folder / "costs.png").exists()
    assert f"picture: {folder / 'costs.png'}" in result.stderr


@pytest.mark.parametrize(
    "arguments", [("compare", "--json"), ("evaluate", "--json"), ("solve", "--save")]
)
def test_a_file_in_no_folder_is_refused_before_anything_is_solved(
    file: Path, tmp_path: Path, arguments: tuple[str, str], calls: list[dict[str, Any]]
) -> None:
    command, flag = arguments
    message = failed(run(command, file, flag, tmp_path / "none" / "out"), 2)
    assert message.startswith(f"error: {flag} {tmp_path / 'none' / 'out'}: there is no folder")
    assert calls == []
    assert not (tmp_path / "none").exists()


def test_a_comparison_that_did_not_converge_is_printed_and_exits_with_1(
    file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    error = mc.SolveError("time limit reached", FakeComparison())
    monkeypatch.setitem(vars(mc), "compare", raising(error))
    result = run("compare", file, "--json", tmp_path / "out.json")
    assert "did not converge: time limit reached" in failed(result, 1)
    assert "optimum" in result.stdout
    assert (tmp_path / "out.json").exists()


def test_what_did_not_converge_is_said_once(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    error = mc.SolveError("the optimum did not converge (time limit)", FakeComparison())
    monkeypatch.setitem(vars(mc), "compare", raising(error))
    assert failed(run("compare", file), 1) == "the optimum did not converge (time limit)\n"


def test_an_interrupt_before_there_is_a_result_exits_with_130(
    file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(vars(mc), "compare", raising(KeyboardInterrupt()))
    assert failed(run("compare", file), 130) == "interrupted before there was a result\n"


def test_a_partial_solution_is_told_by_its_bounds(
    file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    partial = SimpleNamespace(bounds=(1.25, 1.5), iterations=7, elapsed=2.0)
    monkeypatch.setitem(vars(mc), "compare", raising(mc.SolveError("stopped", partial)))
    message = failed(run("compare", file), 1)
    assert "bounds so far: 1.25 to 1.5" in message
    assert "after 7 iterations and 2.0 s" in message


# --- mistakes -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("own.py:Row", "own.py:Rwo", "did you mean 'Row'?"),
        ('"split"', '"spilt"', "did you mean 'split'?"),
        ("tolerance = 1e-7", "tolerance = 0", "solve.tolerance must be a finite number > 0"),
        ("format = 1", "format = 9", "has format 9"),
        ("format = 1", "format 1", "is not TOML"),
        (
            "[solve]",
            "[solve]\ncriterion = { discount_rate = 1 }",
            "compared by their 'average_cost' only",
        ),
    ],
)
def test_a_mistake_in_the_file_exits_with_2(file: Path, old: str, new: str, message: str) -> None:
    file.write_text(SCENARIO.replace(old, new), encoding="utf-8")
    assert message in failed(run("compare", file), 2)


def test_a_missing_file_exits_with_2(tmp_path: Path) -> None:
    for command in ("compare", "evaluate", "solve", "indices"):
        assert "cannot be read" in failed(run(command, tmp_path / "none.toml"), 2)


def test_a_wrong_flag_exits_with_2(file: Path) -> None:
    message = failed(run("compare", file, "--tolerance", "0"), 2)
    assert "error: --tolerance must be a finite number > 0 and < 1, not 0.0" in message
    assert "(the file has" not in message
    assert failed(run("compare", file, "--threads", "two"), 2)


@pytest.mark.parametrize(
    ("error", "message"),
    [
        (mc.InputError("nodes must be used"), "row.toml: nodes must be used"),
        (mc.InputError("caps has 3 numbers"), "row.toml: solve.caps has 3 numbers"),
        (mc.MultichainError("two classes"), "error: two classes"),
        (MemoryError(), "does not fit into memory"),
        (PermissionError(13, "Permission denied", "out.json"), "out.json: Permission denied"),
    ],
)
def test_errors_of_input_exit_with_2(
    file: Path, monkeypatch: pytest.MonkeyPatch, error: Exception, message: str
) -> None:
    monkeypatch.setitem(vars(mc), "compare", raising(error))
    assert message in failed(run("compare", file), 2)


def test_an_error_in_a_rule_of_the_users_exits_with_2_and_names_the_rule(
    file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(vars(mc), "compare", lambda _, policies, **__: policies["rule"](3))
    message = failed(run("compare", file), 2)
    assert f"rule of {file.parent / 'own.py'}: AttributeError: 'int' object has no" in message


def test_an_error_of_our_own_is_not_hidden(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(vars(mc), "compare", raising(ZeroDivisionError()))
    assert isinstance(run("compare", file).exception, ZeroDivisionError)


def test_an_unknown_command_exits_with_2_and_a_suggestion() -> None:
    assert "compare" in failed(run("compar"), 2)


# --- the other commands ---------------------------------------------------------------------------


@pytest.fixture
def evaluation(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """Calls of the evaluation of policies, which is replaced."""
    made: list[Any] = []

    def evaluate_policies(system: Any, policies: Any, **settings: Any) -> list[Any]:
        made.append((system, policies, settings))
        measures = {"mean jobs": (3.0, 3.5)}
        return [Row(name, 1.5, 1.0, 2.0, "exact", measures, states=3) for name in policies]

    monkeypatch.setattr(sys.modules["mdpcloud.compare"], "evaluate_policies", evaluate_policies)
    return made


def test_evaluate_prints_and_writes_costs_and_measures(
    file: Path, tmp_path: Path, evaluation: list[Any]
) -> None:
    result = run("evaluate", file, "--policy", "split", "--json", tmp_path / "out.json")
    assert result.exit_code == 0, result.output
    ((_, policies, settings),) = evaluation
    assert policies == {"split": "split"}
    assert callable(settings.pop("progress"))
    assert settings.pop("simulate") == SimulateSettings()
    assert settings == {"ties": "last", "tolerance": 1e-7, "threads": 1, "caps": (3,)}
    lines = [line.split() for line in result.stdout.splitlines()]
    assert "a [row] (own.py:Row)\ncosts in euro per hour\n" in result.stdout
    assert ["split", "cost", "1.50", "1.00", "to", "2.00"] in lines
    assert ["mean", "jobs", "3.25", "3.000", "to", "3.500"] in lines
    (row,) = json.loads((tmp_path / "out.json").read_text())["policies"]
    assert row["measures"] == {"mean jobs": [3.0, 3.5]}


def test_an_evaluation_that_was_interrupted_is_printed_and_an_error(
    file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    row = Row("split", 1.5, 1.0, 2.0, "interrupted")
    monkeypatch.setattr(
        sys.modules["mdpcloud.compare"], "evaluate_policies", lambda *_, **__: [row]
    )
    result = run("evaluate", file)
    assert failed(result, 1) == "the cost of split did not converge\n"
    assert "1.00 to 2.00" in result.stdout


def test_evaluate_refuses_a_policy_that_the_file_does_not_have(file: Path) -> None:
    message = failed(run("evaluate", file, "--policy", "spilt"), 2)
    assert "--policy: the scenario has no policy 'spilt'; did you mean 'split'?" in message


def test_evaluate_takes_a_policy_as_the_file_spells_it(file: Path, evaluation: list[Any]) -> None:
    run("evaluate", file, "--policy", "own.py:rule", "--policy", "split")
    ((_, policies, _),) = evaluation
    assert list(policies) == ["rule", "split"]
    assert "has no policy 'other.py:rule'" in failed(
        run("evaluate", file, "--policy", "other.py:rule"), 2
    )


def test_evaluate_without_policies_takes_those_of_the_system(
    file: Path, evaluation: list[Any]
) -> None:
    file.write_text('format = 1\nsystem = "own.py:Row"', encoding="utf-8")
    run("evaluate", file)
    assert list(evaluation[0][1]) == ["split", "greedy"]
    file.write_text('format = 1\nsystem = "own.py:Bare"', encoding="utf-8")
    assert "row.toml has no policies, and its system knows none" in failed(run("evaluate", file), 2)


def test_solve_prints_and_saves_the_optimum(
    file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def solve(model: Any, **settings: Any) -> Any:
        assert model == ("model", (3,))
        assert settings["criterion"] == ("discounted", {"rate": 0.5})
        return SimpleNamespace(
            bounds=(1.0, 2.0),
            status="converged",
            solver="policy iteration",
            iterations=3,
            elapsed=0.25,
            save=lambda path: path.write_bytes(b""),
        )

    monkeypatch.setitem(vars(mc), "solve", solve)
    monkeypatch.setitem(vars(mc), "Discounted", lambda **k: ("discounted", k))
    text = SCENARIO.replace("[solve]", "[solve]\ncriterion = { discount_rate = 0.5 }")
    file.write_text(text, encoding="utf-8")
    result = run("solve", file, "--save", tmp_path / "solution.npz")
    assert result.exit_code == 0, result.output
    assert "least discounted cost over all initial states, euro: 1.00 to 2.00" in result.stdout
    assert "converged" in result.stdout
    assert "policy iteration: 3 iterations, 0.25 s" in result.stdout
    assert (tmp_path / "solution.npz").exists()


def test_a_solve_that_is_cut_short_is_printed_saved_and_an_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    scenario = tmp_path / "short.toml"
    folder = Path(__file__).parents[1] / "experiments"
    text = (folder / "base_like_1.toml").read_text(encoding="utf-8")
    scenario.write_text(text.replace("[solve]", "[solve]\ntime_limit = 1e-9"), encoding="utf-8")
    saved, record = tmp_path / "solution.npz", tmp_path / "record.json"
    result = run("solve", scenario, "--save", saved, "--json", record)
    assert "did not converge" in failed(result, 1)
    assert "stopped at the time limit" in result.stdout
    lower, upper = mc.load_solution(saved).bounds
    assert lower < upper
    assert json.loads(record.read_text(encoding="utf-8"))["optimum"]["lower"] == lower


def test_systems_lists_one_line_each() -> None:
    assert run("systems").exit_code == 0


def test_new_prints_a_scenario_that_can_be_read(file: Path, tmp_path: Path) -> None:
    result = run("new", "own.py:Row")
    (tmp_path / "new.toml").write_text(result.stdout, encoding="utf-8")
    assert mc.read_scenario(tmp_path / "new.toml").system.arrival_rate == 1.0
    assert "there is no system 'nosuch'" in failed(run("new", "nosuch"), 2)


def test_the_version_is_printed() -> None:
    assert run("--version").stdout == f"mdpcloud {mc.__version__}\n"


# --- a system of the user's own, with two decisions -----------------------------------------------

GATES = '''
from dataclasses import dataclass

import numpy as np

import mdpcloud as mc


@dataclass(frozen=True)
class Gates:
    """A room with two doors."""

    room: int = 5

    def model(self, caps=None):
        arrivals = [
            mc.Event(name, rate, [mc.Action("in", mc.step(jobs=+1)), mc.Action("out", cost=cost)])
            for name, rate, cost in (("gold", 1.0, 5.0), ("plain", 2.0, 1.0))
        ]
        leave = mc.Event("leave", lambda x: 1.0 * x.jobs, mc.step(jobs=-1))
        return mc.Model(mc.Lattice({"jobs": self.room}), [*arrivals, leave])


def gold(x):
    return np.where(x.jobs < 5, "in", "out")


def at_once(x):
    return {"gold": gold(x), "plain": "out"}


def of_two(x, y):
    return 0


mapping = {"gold": gold, "plain": "out"}
'''


@pytest.fixture
def gates(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "gates.py").write_text(GATES, encoding="utf-8")
    policies = 'compare = { policies = ["gates.py:mapping", "gates.py:at_once"] }'
    path = tmp_path / "gates.toml"
    path.write_text(f'format = 1\nsystem = "gates.py:Gates"\nparameters = {{}}\n{policies}')
    monkeypatch.chdir(tmp_path)
    return path


def test_rules_of_two_decisions_come_as_mappings_and_as_functions(gates: Path) -> None:
    result = run("compare", gates, "--json", "out.json")
    assert result.exit_code == 0, result.output
    policies = json.loads(Path("out.json").read_text(encoding="utf-8"))["policies"]
    blocked = 1 / sum(math.factorial(5) // math.factorial(k) for k in range(6))  # Erlang's formula
    for policy in policies:
        assert policy["lower"] <= 2.0 + 5.0 * blocked <= policy["upper"]
    assert [policy["name"] for policy in policies] == ["mapping", "at_once"]


@pytest.mark.parametrize("command", ["compare", "evaluate"])
def test_a_rule_of_two_arguments_exits_with_2_and_names_it(gates: Path, command: str) -> None:
    gates.write_text(gates.read_text(encoding="utf-8").replace("at_once", "of_two"))
    message = failed(run(command, gates), 2)
    assert "gates.toml: policy 'of_two': the rule for ['gold', 'plain'] must be a func" in message


# --- numbers --------------------------------------------------------------------------------------

finite = st.floats(allow_nan=False, allow_infinity=False)


@given(finite, finite)
def test_printed_bounds_are_rounded_outwards(one: float, other: float) -> None:
    lower, upper = sorted((one, other))
    low, high = map(Fraction, interval(lower, upper).split(" to "))
    assert low <= Fraction(lower)
    assert Fraction(upper) <= high


@given(st.tuples(finite, finite, finite) | st.tuples(*[st.floats(1, 1 + 1e-9)] * 3))
def test_what_is_printed_of_a_value_holds(numbers: tuple[float, float, float]) -> None:
    lower, value, upper = sorted(numbers)
    text, bounds = with_error(value, lower, upper)
    if bounds.startswith("±"):
        reach = Fraction(bounds.removeprefix("± "))
        low, high = Fraction(text) - reach, Fraction(text) + reach
    else:
        low, high = map(Fraction, bounds.split(" to "))
    assert low <= Fraction(lower)
    assert Fraction(upper) <= high


@given(st.floats(-1, 10), st.floats(0, 1e-3), st.floats(0, 1))
def test_every_printed_digit_of_a_gap_is_certified(low: float, width: float, part: float) -> None:
    high = low + width
    truth = 100 * Decimal(min(max(low + part * width, low), high))
    text = percent(low, high).removesuffix(" %")
    if " to " in text:
        least, most = map(Decimal, text.split(" to "))
        assert least <= truth <= most
    else:
        assert truth.quantize(Decimal(text)) == Decimal(text)


@pytest.mark.parametrize(
    ("low", "high", "text"),
    [
        (0.0327274984, 0.0327275009, "3.273 %"),
        (0.03272751, 0.03272752, "3.2728 %"),
        (-1e-12, 1e-12, "0.0000 %"),
        (1.25, 1.265625, "125.00 to 126.57 %"),
        (0.0349, 0.0351, "3.5 %"),
        (0.25, 0.25, "25.0000 %"),
    ],
)
def test_a_gap_has_the_digits_that_its_bounds_share(low: float, high: float, text: str) -> None:
    assert percent(low, high) == text


# --- progress -------------------------------------------------------------------------------------


def test_the_bar_moves_with_the_logarithm_of_the_bracket() -> None:
    assert done(1.0, 1.0, 1e-8) == 0
    assert done(1e-2, 1.0, 1e-8) == pytest.approx(0.25)
    assert done(1e-9, 1.0, 1e-8) == 1
    assert done(float("inf"), 1.0, 1e-8) == 0
    assert done(0.0, 0.0, 0.0) == 1


def test_the_bar_shows_iterations_and_bounds() -> None:
    console = Console(force_terminal=True, width=100)
    with console.capture() as shown, progress_bar(1e-8, console) as progress:
        progress(10, float("-inf"), float("inf"))
        progress(20, 1.0, 2.0)
        progress(30, 1.5, 1.75)
    assert "30 iterations, 1.5 to 1.75" in shown.get()


def test_without_a_terminal_a_line_tells_how_far_a_long_solve_is() -> None:
    console = Console(force_terminal=False)
    with console.capture() as shown, progress_bar(1e-8, console) as progress:
        progress(10, 1.0, 2.0)
    assert shown.get() == ""


def test_help_answers_within_its_time() -> None:
    def processor_seconds() -> float:
        before = os.times()
        subprocess.run(
            [sys.executable, "-m", "mdpcloud", "--help"], capture_output=True, check=True
        )
        after = os.times()
        return sum(after[2:4]) - sum(before[2:4])

    assert min(processor_seconds() for _ in range(3)) < 0.6
