"""Which solvers to try, in order, where the caller names none, and why.

With compiled sweeps (`mdpcloud.engine.fused`) a sweep costs some nanoseconds per state. On fifteen
models of 3 000 to 70 000 states, sweeps with extrapolation took less time than policy iteration
with BiCGSTAB in all, half to a tenth of it where that converged at all. So value iteration comes
first, and policy iteration where its bounds do not close soon: slow mixing costs sweeps, but a
direct solve nothing. Where direct solves are cheap, policy iteration comes first or soon.
"""

from __future__ import annotations

from typing import Any

from mdpcloud.solve.direct import BAND, direct_limit
from mdpcloud.solve.policy_iteration import PolicyIteration
from mdpcloud.solve.value_iteration import ValueIteration

__all__ = ["candidates"]

SMALL = 1000  # states up to which a direct solve costs less than the sweeps
SOON, LATE = 3000, 50_000  # sweeps before policy iteration, with and without direct solves


def candidates(problem: Any) -> list[tuple[Any, str]]:
    """Solvers for a problem, and why each is tried; each begins with the values of the one before.

    Parameters
    ----------
    problem : Problem
        On a lattice, or of explicit rows.
    """
    n, limit = problem.n, direct_limit(problem)
    if n <= SMALL:
        return _policies_first(f"{n} states are few: policies are evaluated directly")
    if n <= limit == BAND:
        return _policies_first("the states form a narrow band: policies are evaluated directly")
    sweeps, direct = (SOON, "directly") if n <= limit else (LATE, "iteratively")
    return [
        (ValueIteration(most=sweeps), f"sweeps over {n} states cost less than evaluating policies"),
        (
            PolicyIteration(),
            f"{sweeps} sweeps did not close the bounds: policies are evaluated {direct}",
        ),
        (ValueIteration(), "policy iteration did not close the bounds"),
    ]


def _policies_first(reason: str) -> list[tuple[Any, str]]:
    return [
        (PolicyIteration(), reason),
        (ValueIteration(), "policy iteration did not close the bounds"),
    ]
