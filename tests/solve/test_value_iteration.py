"""Relative value iteration as a solver by itself, with and without extrapolation."""

from typing import Any

import numpy as np

import mdpcloud as mc
from mdpcloud.engine import compile_model
from mdpcloud.solve.limits import Goal, Monitor, Status
from mdpcloud.solve.value_iteration import ValueIteration
from tests.admission import two_queues
from tests.models.routing import Node, routing

GOAL = Goal(1e-8, 10.0)


def run(model: Any, start: Any = None, **settings: Any) -> tuple[Any, Monitor]:
    problem: Any = compile_model(model)
    monitor = Monitor()
    h = problem.pack(np.zeros(problem.n) if start is None else start)
    return ValueIteration(**settings).run(problem, GOAL, monitor, h), monitor


def test_it_hands_over_after_its_most_sweeps() -> None:
    outcome, monitor = run(two_queues((12, 12)), most=20)
    assert outcome.handed_over
    assert outcome.status is Status.STALLED
    assert 20 <= monitor.iterations < 40


def test_it_does_not_hand_over_what_is_solved() -> None:
    outcome, _ = run(two_queues((12, 12)), most=100_000)
    assert not outcome.handed_over
    assert outcome.status is Status.CONVERGED


def test_bounds_that_stop_closing_are_no_handing_over() -> None:
    islands = mc.tabular([np.eye(2)], costs=[0.0, 1.0])
    outcome, monitor = run(islands, stall=50, most=10_000)
    assert outcome.status is Status.STALLED
    assert not outcome.handed_over
    assert monitor.iterations < 200


def test_the_solution_is_a_fixed_point_that_takes_one_sweep() -> None:
    model = two_queues((12, 12))
    outcome, _ = run(model)
    problem: Any = compile_model(model)
    _, monitor = run(model, problem.unpack(outcome.h))
    assert monitor.iterations <= 2


def test_extrapolation_saves_most_sweeps_of_a_slow_chain() -> None:
    model = routing((Node(4, 1.0, 0.05), Node(2, 2.0, 0.05)), 7.5, 2.0, (40, 40))
    plain, without = run(model, depth=0)
    outcome, monitor = run(model)
    assert monitor.iterations < 0.3 * without.iterations
    assert outcome.status is plain.status is Status.CONVERGED
    assert outcome.certificate.low <= plain.certificate.high
    assert plain.certificate.low <= outcome.certificate.high


def test_every_form_extrapolates_to_the_same_optimum() -> None:
    model = two_queues((14, 14))
    solved = []
    for form in ("lattice", "indexed"):
        problem: Any = compile_model(model, form=form)
        start = problem.pack(np.zeros(problem.n))
        solved.append(ValueIteration().run(problem, GOAL, Monitor(), start).certificate)
    assert max(s.low for s in solved) <= min(s.high for s in solved)


def test_values_alone_meet_the_goal_or_stop_at_the_limit() -> None:
    problem: Any = compile_model(two_queues((12, 12)))

    def width(limit: int | None) -> float:
        start = problem.pack(np.zeros(problem.n))
        h = ValueIteration().values(problem, GOAL, Monitor(limit), start)
        low, high = problem.certify(h)
        return high - low

    assert width(None) <= 1e-7 < width(20)
