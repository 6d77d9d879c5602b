"""Which solvers to try, in order, where the caller names none.

With compiled sweeps (`mdpcloud.engine.fused`) a sweep costs some nanoseconds per state, so value
iteration comes first there, and policy iteration where its bounds do not close soon: slow mixing
costs sweeps in proportion, products of a Krylov method with its root, and a direct solve nothing.
On small models a direct solve costs less than the sweeps.
"""

from __future__ import annotations

from typing import Any

from mdpcloud.solve.policy_iteration import PolicyIteration
from mdpcloud.solve.value_iteration import ValueIteration

__all__ = ["default_solvers"]

SMALL = 1000  # states up to which policy iteration comes first
SWEEPS = 5000  # of value iteration before policy iteration takes over


def default_solvers(problem: Any) -> list[Any]:
    """Solvers for a problem; each begins with the values of the one before."""
    if problem.n <= SMALL:
        return [PolicyIteration(), ValueIteration()]
    return [ValueIteration(most=SWEEPS), PolicyIteration(), ValueIteration()]
