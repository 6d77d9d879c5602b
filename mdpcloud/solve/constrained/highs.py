"""Linear programs through cvxpy and HiGHS: minimise c x, A x = b, G x <= d, x >= 0.

The simplex method at the finest tolerances that HiGHS has, 1e-10: at its default ones, long-run
averages came out wrong in the fifth digit, and interior points name no basis. Where a good basis is
known, a tenth of the iterations may do; cvxpy has no way to give one, but HiGHS reads it from a
file that an option names.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from mdpcloud.engine.problem import Floats
from mdpcloud.engine.row_table import Matrix
from mdpcloud.solve.limits import Monitor, Status, Stopped

__all__ = ["ATTEMPTS", "WARM", "Attempts", "Basis", "LinearSolution", "Unsolved", "linear_program"]

FINEST = 1e-10  # the finest tolerance of HiGHS, absolute
LEAST_ENTRY = 1e-12  # of a matrix: HiGHS takes smaller ones for 0, and cannot be told a finer value
DEVEX = {"simplex_dual_edge_weight_strategy": 1}
Attempts: TypeAlias = tuple[tuple[bool, float, dict[str, Any]], ...]

ATTEMPTS: Attempts = (
    (True, 10.0 * FINEST, DEVEX),
    (True, 100.0 * FINEST, DEVEX),
    (False, FINEST, {}),
    (False, 10.0 * FINEST, {}),
    (False, 10.0 * FINEST, {"presolve": "off"}),
)
WARM = ATTEMPTS[:2]
"""Whether from the basis, tolerance, further options: HiGHS gives up on some programs in some ways.

From a basis, iterations at 1e-10 went on for long after the solution had been found, and with
weights of steepest edges it gave up on programs of seven thousand equations.
"""

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
class Basis:
    """Where the simplex method is to start; as many are in the basis as equations and inequalities.

    Parameters
    ----------
    variables : (N,) bool array
        Which variables are in the basis.
    equal, below : bool arrays
        Which equations and inequalities are: whose slack is.
    """

    variables: NDArray[np.bool_]
    equal: NDArray[np.bool_]
    below: NDArray[np.bool_]

    def write(self, path: Path) -> None:
        """Write a basis file of HiGHS: 0 at the lower bound, 1 in the basis, 2 at the upper one."""
        columns = [f"c{k} {int(b)}" for k, b in enumerate(self.variables.tolist())]
        codes = [int(b) for b in self.equal.tolist()] + [2 - int(b) for b in self.below.tolist()]
        rows = [f"r{k} {code}" for k, code in enumerate(codes)]
        head = "HiGHS_basis_file v2", "Valid"
        lines = *head, f"# Columns {len(columns)}", *columns, f"# Rows {len(rows)}", *rows
        path.write_text("\n".join(lines) + "\n", encoding="ascii")


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
    basis: Basis | None = None,
    attempts: Attempts = ATTEMPTS,
) -> LinearSolution:
    """Solve a linear program in x >= 0.

    Parameters
    ----------
    objective : (N,) array
    equal, below : matrix and right-hand side
    monitor : Monitor
        Counts the iterations of the simplex method.
    basis : Basis, optional
    attempts : sequence of `ATTEMPTS`
        In this order, until one succeeds.

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
    with TemporaryDirectory() as folder:
        file = None if basis is None else Path(folder) / "basis.txt"
        if basis is not None and file is not None:
            basis.write(file)
        _run(program, monitor, file, attempts)
    duals = [np.asarray(one.dual_value, np.float64).ravel() for one in constraints]
    monitor.count(int(program.solver_stats.num_iters or 0))
    return LinearSolution(
        x=np.maximum(np.asarray(x.value, np.float64), 0.0),
        equal=duals[0],
        below=np.maximum(duals[-1], 0.0) if below[1].size else np.zeros(0),
    )


def _run(program: Any, monitor: Monitor, basis: Path | None, attempts: Attempts) -> None:
    """Solve, and put the solution into the program."""
    import cvxpy as cp

    content, chain, inverse = program.get_problem_data(cp.HIGHS)
    status = ""
    for from_basis, tolerance, extra in attempts:
        if from_basis and basis is None:
            continue
        options = {
            "solver": "simplex",
            "primal_feasibility_tolerance": tolerance,
            "dual_feasibility_tolerance": tolerance,
            "small_matrix_value": LEAST_ENTRY,
            **({"read_basis_file": str(basis)} if from_basis else {}),
            **_limits(monitor),
            **extra,
        }
        try:
            found = chain.solve_via_data(program, content, solver_opts={"highs_options": options})
        except ValueError:  # an older HiGHS without that option
            continue
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
