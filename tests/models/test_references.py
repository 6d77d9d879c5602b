"""The reference numbers of the models, checked without the engine."""

import numpy as np
import pytest

import mdpcloud as mc
from tests.common import interpreter
from tests.common.exact import exact_optimum
from tests.models import Case, case, cases
from tests.models.restless_arm import A3, NODE, arm
from tests.models.service_rate_control import best_of_all


def sign(one: Case) -> int:
    return -1 if one.rewards else 1


@pytest.fixture(params=cases(), ids=lambda one: one.name, scope="module")
def read(request: pytest.FixtureRequest) -> tuple[Case, interpreter.Interpreted]:
    return request.param, interpreter.interpret_case(request.param)


def test_policy_iteration_on_dense_matrices_finds_the_reference_optimum(
    read: tuple[Case, interpreter.Interpreted],
) -> None:
    one, problem = read
    if one.optimum is None:
        pytest.skip("the case has no optimum")
    gain, values = interpreter.optimum(problem)
    assert sign(one) * gain == pytest.approx(float(one.optimum), abs=one.tolerance, rel=1e-12)
    sides = interpreter.values(problem, values)
    assert np.ptp(sides) <= 1e-9 * max(1, np.ptp(values))


def test_the_stationary_law_gives_the_reference_costs(
    read: tuple[Case, interpreter.Interpreted],
) -> None:
    one, problem = read
    for heuristic in one.heuristics.values():
        if heuristic.cost is not None:
            gain = sign(one) * interpreter.gain(problem, heuristic.rules)
            assert gain == pytest.approx(float(heuristic.cost), abs=one.tolerance, rel=1e-12)
        for name, value in heuristic.measures.items():
            found = interpreter.measure(problem, heuristic.rules, name)
            assert found == pytest.approx(float(value), abs=one.tolerance, rel=1e-12)


@pytest.mark.parametrize(
    "name",
    ["service-rate control", "machine that wears", "taxicab", "replacement, dense", "routing B1"],
)
def test_policy_iteration_in_rationals_finds_the_reference_optimum(name: str) -> None:
    one = case(name)
    exact = sign(one) * exact_optimum(interpreter.interpret_case(one))
    assert float(exact) == pytest.approx(float(one.optimum or 0), rel=1e-15)


def test_the_best_speeds_increase_with_the_queue() -> None:
    _, speeds = best_of_all()
    assert list(speeds) == sorted(speeds)


def test_the_whittle_index_makes_both_modes_of_the_arm_optimal() -> None:
    table = A3["index"]["RB"][0]
    for state in (4, 5, 6, 7, 8):
        problem = interpreter.interpret(arm(NODE, A3["lam"], table[str(state)], 40))
        _, h = interpreter.optimum(problem)
        passive, active = problem.terms[state][0].options
        worth = interpreter.worth
        assert worth(passive, h, state) == pytest.approx(worth(active, h, state), rel=1e-9)


def test_the_systems_of_the_architecture_are_all_there() -> None:
    modules = {one.build.__module__.rpartition(".")[2] for one in cases()}
    assert modules >= {
        "routing",
        "downgrading",
        "two_centres",
        "offloading",
        "jsq",
        "jiq",
        "closed_network",
        "retrial",
        "service_rate_control",
        "tabular",
        "restless_arm",
    }


def test_the_models_use_every_part_of_the_interface() -> None:
    models = [one.build() for one in cases() if not one.arrays]
    assert any(isinstance(m.space, mc.Reachable) for m in models)
    assert any(isinstance(m.space, mc.Lattice) and m.space.where for m in models)
    assert any(isinstance(e, mc.Control) for m in models for e in m.events)
    actions = [a for m in models for e in m.events if isinstance(e, mc.Event) for a in e.actions]
    assert any(callable(a.step) for a in actions)
    assert any(isinstance(a.step, (list, tuple)) for a in actions)
