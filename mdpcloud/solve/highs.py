"""Linear programs through cvxpy and HiGHS: minimise c x, A x = b, G x <= d, x >= 0.

The simplex method at the finest tolerances that HiGHS has, 1e-10: at its default ones, long-run
averages came out wrong in the fifth digit, and interior points name no basis.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np

from mdpcloud.engine.problem import Floats
from mdpcloud.engine.row_table import Matrix
from mdpcloud.solve.limits import Monitor, Status, Stopped

__all__ = ["LinearSolution", "Unsolved", "linear_program"]

FINEST = 1e-10  # the finest tolerance of HiGHS, absolute
LEAST_ENTRY = 1e-12  # of a matrix: HiGHS takes smaller ones for 0, and cannot be told a finer value
ATTEMPTS: tuple[tuple[float, dict[str, Any]], ...] = (
    (FINEST, {}),
    (10.0 * FINEST, {}),
    (10.0 * FINEST, {"presolve": "off"}),
)
"""Tolerance and further options; it gives up on some programs that it solves in another way."""

INFEASIBLE = "kInfeasible"
LIMITS = {"kTimeLimit": Status.TIME, "kIterationLimit": Status.ITERATIONS}


class Unsolved(Exception):
    """HiGHS found no optimal solution.

    Attributes
    ----------
    infeasible : bool
        Whether it says that there is none.
    """

    def __init__(self, status: str, infeasible: bool) -> None:
        super().__init__(f"HiGHS did not solve the linear program: {status}")
        self.infeasible = infeasible


@dataclass(frozen=True, eq=False)
class LinearSolution:
    """A basic optimal solution.

    Attributes
    ----------
    x : array
        Variables that are not in the basis are exactly 0.
    equal, below : arrays
        Dual variables: c + equal A + below G >= 0, below >= 0.
    """

    x: Floats
    equal: Floats
    below: Floats


def linear_program(
    objective: Floats,
    equal: tuple[Matrix, Floats],
    below: tuple[Matrix, Floats],
    monitor: Monitor,
) -> LinearSolution:
    """Solve a linear program in x >= 0.

    Parameters
    ----------
    objective : (N,) array
    equal, below : matrix and right-hand side
    monitor : Monitor
        Counts the iterations of the simplex method.

    Raises
    ------
    Unsolved
    Stopped
        At a limit of the monitor.
    """
    import cvxpy as cp

    _greet()
    x = cp.Variable(objective.size, nonneg=True)
    left: Any = equal[0] @ x
    lower: Any = below[0] @ x
    constraints = [left == equal[1]] + ([lower <= below[1]] if below[1].size else [])
    program: Any = cp.Problem(cp.Minimize(objective @ x), constraints)
    _run(program, monitor)
    duals = [np.asarray(one.dual_value, np.float64).ravel() for one in constraints]
    monitor.count(int(program.solver_stats.num_iters or 0))
    return LinearSolution(
        x=np.maximum(np.asarray(x.value, np.float64), 0.0),
        equal=duals[0],
        below=np.maximum(duals[-1], 0.0) if below[1].size else np.zeros(0),
    )


def _run(program: Any, monitor: Monitor) -> None:
    """Solve, and put the solution into the program."""
    import cvxpy as cp

    content, chain, inverse = program.get_problem_data(cp.HIGHS)
    status = ""
    for tolerance, extra in ATTEMPTS:
        options = {
            "solver": "simplex",
            "primal_feasibility_tolerance": tolerance,
            "dual_feasibility_tolerance": tolerance,
            "small_matrix_value": LEAST_ENTRY,
            **_limits(monitor),
            **extra,
        }
        found = chain.solve_via_data(program, content, solver_opts={"highs_options": options})
        status = str(found["model_status"])
        if status == "kOptimal":
            program.unpack_results(found, chain, inverse)
            return
        if status in LIMITS:
            raise Stopped(LIMITS[status])
        if status == INFEASIBLE:
            break
    raise Unsolved(status, status == INFEASIBLE)


def _limits(monitor: Monitor) -> dict[str, Any]:
    limits: dict[str, Any] = {"simplex_iteration_limit": monitor.room()}
    if monitor.time_limit is not None:
        limits["time_limit"] = max(monitor.time_limit - monitor.elapsed, 1e-3)
    return limits


@cache
def _greet() -> None:
    """Let HiGHS print its banner, once per process, to nowhere instead of standard output."""
    import highspy

    make: Any = highspy.Highs
    kept, nowhere = os.dup(1), os.open(os.devnull, os.O_WRONLY)
    try:
        os.dup2(nowhere, 1)
        make()
    finally:
        os.dup2(kept, 1)
        os.close(kept)
        os.close(nowhere)
