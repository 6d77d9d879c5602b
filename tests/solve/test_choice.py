"""The solvers chosen by size and shape, and the reasons given."""

from dataclasses import replace
from typing import Any

import pytest

import mdpcloud as mc
from mdpcloud.engine import compile_model
from mdpcloud.solve.choice import candidates
from mdpcloud.solve.direct import direct_limit
from mdpcloud.solve.value_iteration import ValueIteration
from tests.admission import admission, two_queues


def idle(*caps: int) -> Any:
    """A problem on a box; what happens in it does not matter."""
    stay = mc.Event("none", 1.0, mc.Action("stay"))
    return compile_model(mc.Model(mc.Lattice({"i": caps}), [stay]))


def test_few_states_are_solved_by_policies_first() -> None:
    (first, why), *_ = candidates(compile_model(admission(20)))
    assert first.name == "policy_iteration"
    assert why == "21 states are few: policies are evaluated directly"


def test_narrow_bands_are_solved_by_policies_first() -> None:
    (first, why), *_ = candidates(idle(4000, 2, 1))
    assert first.name == "policy_iteration"
    assert "narrow band" in why


@pytest.mark.parametrize(("caps", "sweeps"), [((99, 99), 3000), ((14, 14, 14), 50_000)])
def test_others_are_swept_first(caps: tuple[int, ...], sweeps: int) -> None:
    solvers = [solver for solver, _ in candidates(idle(*caps))]
    assert [s.name for s in solvers[:2]] == ["value_iteration", "policy_iteration"]
    assert solvers[0].most == sweeps
    assert solvers[-1] == ValueIteration()


def test_reasons_say_how_policies_are_evaluated() -> None:
    plane, solid = candidates(idle(99, 99)), candidates(idle(14, 14, 14))
    assert plane[1][1] == "3000 sweeps did not close the bounds: policies are evaluated directly"
    assert solid[1][1].endswith("policies are evaluated iteratively")


def test_the_limit_of_direct_solves_depends_on_the_section_of_the_lattice() -> None:
    problem: Any = compile_model(two_queues((40, 40)))
    listed = problem.listed()
    bare = replace(listed, grid=None)
    limits = [direct_limit(p) for p in (idle(5000), problem, listed, idle(9, 9, 9), bare)]
    assert limits == [1_000_000, 100_000, 100_000, 3000, 3000]
