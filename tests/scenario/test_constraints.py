"""The table [solve.constraints] of a scenario."""

from pathlib import Path
from typing import Any

import pytest

import mdpcloud as mc
from mdpcloud.model.limit import Limit
from mdpcloud.scenario import SolveSettings, new_scenario, read_scenario
from mdpcloud.solve.linear_programming import LinearProgramming

ROOT = Path(__file__).parents[2]
SCENARIO = """
format = 1
system = "cloud_routing"
[parameters]
arrival_rate = 3.0
outside_cost = 0.4
[[parameters.nodes]]
servers = 1
service_rate = 2.0
abandonment_rate = 0.5
[solve]
caps = [4]
"""


def read(folder: Path, table: str) -> Any:
    file = folder / "limits.toml"
    file.write_text(SCENARIO + table, encoding="utf-8")
    return read_scenario(file)


def test_limits_are_numbers_or_tables(tmp_path: Path) -> None:
    scenario = read(
        tmp_path,
        '[solve.constraints]\n"abandonment_rate[0] / routing_rate[0]" = 0.02\n'
        "mean_jobs = { at_least = 0.1, at_most = 3 }\n",
    )
    assert scenario.solve.for_solve()["constraints"] == {
        "abandonment_rate[0] / routing_rate[0]": 0.02,
        "mean_jobs": Limit(at_most=3.0, at_least=0.1),
    }


def test_no_limits_are_no_argument_of_solve(tmp_path: Path) -> None:
    assert "constraints" not in read(tmp_path, "").solve.for_solve()
    assert "constraints" not in read(tmp_path, "[solve.constraints]\n").solve.for_solve()


@pytest.mark.parametrize(
    ("table", "message"),
    [
        (
            'constraints = { mean_jobs = "few" }',
            "solve.constraints.mean_jobs must be a finite number or a Limit (at_most, at_least), "
            "not 'few'",
        ),
        (
            'constraints = { "a / b" = true }',
            'solve.constraints."a / b" must be a finite number or a Limit (at_most, at_least), '
            "not True",
        ),
        (
            "constraints = { a = { at_leest = 1 } }",
            "solve.constraints.a.at_leest is not known; did you mean 'at_least'?",
        ),
        (
            "constraints = { a = {} }",
            "solve.constraints.a: a limit needs at_most, at_least, or both",
        ),
        (
            "constraints = { a = { at_least = 2, at_most = 1 } }",
            "solve.constraints.a: at_least is 2 and at_most 1; at_least must be <= at_most",
        ),
        ("constraints = 3", "solve.constraints must be a table, not 3"),
    ],
)
def test_a_wrong_limit_is_named_with_its_place(tmp_path: Path, table: str, message: str) -> None:
    with pytest.raises(mc.InputError) as error:
        read(tmp_path, table)
    assert str(error.value).endswith(f"limits.toml has a mistake:\n  {message}")


def test_policies_are_not_compared_within_limits() -> None:
    with pytest.raises(mc.InputError, match=r"without solve\.constraints; solve finds"):
        SolveSettings(constraints={"mean_jobs": 1.0}).for_compare()


def test_linear_programming_is_a_solver_of_scenarios() -> None:
    settings = SolveSettings(solver="linear_programming")
    assert settings.for_solve()["solver"] == LinearProgramming()


def test_a_new_scenario_shows_limits_that_can_be_used(tmp_path: Path) -> None:
    lines = new_scenario("cloud_routing").splitlines()
    first = lines.index(next(line for line in lines if "solve.constraints" in line))
    shown = [line.removeprefix("# ") for line in lines[first : first + 3]]
    scenario = read(tmp_path, "\n".join(shown))
    model = scenario.system.model(caps=scenario.solve.caps)
    found: Any = mc.solve(model, tolerance=1e-6, constraints=scenario.solve.constraints)
    assert found.converged


def test_the_experiment_keeps_the_probability_of_abandonment_at_every_node() -> None:
    scenario = read_scenario(ROOT / "experiments" / "constrained_routing.toml")
    model = scenario.system.model(caps=scenario.solve.caps)
    found: Any = mc.solve(model, **scenario.solve.for_solve())
    free = mc.solve(model).gain
    assert found.gain > free
    measures = mc.evaluate(model, found.policy).measures
    for k in range(2):
        lost, routed = measures[f"abandonment_rate[{k}]"], measures[f"routing_rate[{k}]"]
        assert lost[1] <= 0.02 * routed[0] * (1 + 1e-9)
    assert found.gain == pytest.approx(measures["outsourcing_rate"][0], rel=1e-6)
    assert len(found.randomised) <= 2
