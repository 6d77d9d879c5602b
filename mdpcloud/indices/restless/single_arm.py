"""The single-arm problem at one price, solved afresh by policy iteration.

With c_S and w_S the cost and work under a policy that is active in S,

    alpha h + g = c_S + p w_S + Q_S h,        h = 0 in one state,

where g is the average cost if alpha = 0, and else h + g / alpha are the discounted costs. The
policy is optimal if activity is not worse than passivity in S, nor better elsewhere. The errors of
the advantages are estimated from the residual and from the norm of the inverse matrix.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from mdpcloud.errors import SolveError
from mdpcloud.indices.restless.arm import Arm
from mdpcloud.indices.restless.units import in_units, restored
from mdpcloud.model.matrices import Floats

__all__ = ["SingleArm", "equations", "factored", "solve_single_arm"]

Solve: TypeAlias = Callable[[Floats], Floats]

MOST_IMPROVEMENTS = 200
SEVERAL = "a policy of the single-arm problem has several recurrent classes"
EPSILON = float(np.finfo(np.float64).eps)


@dataclass(frozen=True, eq=False)
class SingleArm:
    """An optimal policy of the single-arm problem at one price.

    Attributes
    ----------
    active : (n,) bool array
        Where the policy is active.
    advantage : (n,) array
        Value of passivity minus value of activity, per unit of time; positive where activity is
        better, 0 in states that are not free.
    error : float
        Estimate of the absolute error of the advantages.
    """

    active: NDArray[np.bool_]
    advantage: Floats
    error: float


def equations(arm: Arm, active: NDArray[np.bool_], alpha: float, reference: int = 0) -> Any:
    """Matrix A of A x = c + p w under a policy.

    Parameters
    ----------
    arm : Arm
    active : (n,) bool array
        Where the policy is active.
    alpha : float
        Discount rate, 0 for the average cost.
    reference : int
        The state with h = 0; x has g in its place.

    Returns
    -------
    (n, n) array or CSC array
        alpha I - Q, with a column of ones for g.
    """
    matrix: Any
    if isinstance(arm.moves[0], np.ndarray):
        matrix = -np.where(active[:, None], arm.moves[1], arm.moves[0])
        matrix.flat[:: arm.n + 1] += alpha + (1.0 if arm.discrete else 0.0)
        matrix[:, reference] = 1.0
        return matrix
    from scipy import sparse

    on = active.astype(np.float64)
    rows = sparse.diags_array(on) @ arm.moves[1] + sparse.diags_array(1.0 - on) @ arm.moves[0]
    shift = alpha + (1.0 if arm.discrete else 0.0)
    matrix = sparse.csc_array(shift * sparse.eye_array(arm.n) - rows)
    keep = np.ones(arm.n)
    keep[reference] = 0.0
    gain = sparse.coo_array(
        (np.ones(arm.n), (np.arange(arm.n), np.full(arm.n, reference))), (arm.n, arm.n)
    )
    return sparse.csc_array(matrix @ sparse.diags_array(keep) + gain)


def solve_single_arm(
    arm: Arm, price: float, alpha: float, active: NDArray[np.bool_] | None = None
) -> SingleArm:
    """Solve the single-arm problem.

    Parameters
    ----------
    arm : Arm
    price : float
        Price of a unit of work.
    alpha : float
        Discount rate, 0 for the average cost.
    active : (n,) bool array, optional
        A policy to begin with; active everywhere by default.

    Raises
    ------
    SolveError
        If a policy on the way has several recurrent classes, policies do not settle, or numbers
        are too far apart for float64.
    """
    arm, alpha, units = in_units(arm, alpha)
    policy = np.where(arm.free, True if active is None else active, arm.forced)
    with np.errstate(over="ignore", invalid="ignore"):
        costs = arm.costs + np.ldexp(price, -units.price) * arm.work
    if not np.isfinite(costs).all():
        raise SolveError(f"price {price:.6g} is too large for float64")
    for _ in range(MOST_IMPROVEMENTS):
        values, error = _values(arm, policy, costs, alpha)
        advantage = _advantage(arm, values, costs)
        better = np.where(policy, advantage < -error, advantage > error) & arm.free
        if not better.any():
            error = float(restored(np.array(error), units.cost))
            return SingleArm(policy, restored(advantage, units.cost), error)
        policy = policy ^ better
    raise SolveError(f"policies did not settle at price {price:.17g}")


def _values(
    arm: Arm, policy: NDArray[np.bool_], costs: Floats, alpha: float
) -> tuple[Floats, float]:
    """Values x of a policy, and an estimate of the error of its advantages."""
    matrix = equations(arm, policy, alpha)
    right = np.where(policy, costs[1], costs[0])
    solve, norm_of_inverse = factored(matrix)
    values = solve(right)
    values = values + solve(right - matrix @ values)
    residual = float(np.max(np.abs(right - matrix @ values)))
    scale = float(np.max(abs(matrix) @ np.abs(values) + np.abs(right)))
    inverse_norm = norm_of_inverse()
    if not np.isfinite(residual + inverse_norm):
        raise SolveError(SEVERAL)
    moved = max(_norm(arm.moves[0]), _norm(arm.moves[1]))
    return values, 2.0 * moved * inverse_norm * (residual + 4.0 * EPSILON * scale)


def _norm(moves: Any) -> float:
    return float(np.max(np.asarray(abs(moves).sum(axis=1))))


def factored(matrix: Any) -> tuple[Solve, Callable[[], float]]:
    """Solutions with a matrix, and on demand an estimate of the largest row sum of its inverse.

    Raises
    ------
    SolveError
        If the matrix is singular.
    """
    return (_dense_factors if isinstance(matrix, np.ndarray) else _sparse_factors)(matrix)


def _dense_factors(matrix: Floats) -> tuple[Solve, Callable[[], float]]:
    from scipy.linalg import get_lapack_funcs

    routines: Any = get_lapack_funcs(("getrf", "getrs", "gecon"), (matrix,))
    factor, solve, condition = routines
    factors, pivots, fault = factor(matrix)
    if fault:
        raise SolveError(SEVERAL)

    def inverse_norm() -> float:
        norm = float(np.abs(matrix).sum(axis=1).max())
        reciprocal = condition(factors, norm, norm="I")[0]
        return float(np.inf if reciprocal == 0.0 else 1.0 / (reciprocal * norm))

    return (lambda right: np.asarray(solve(factors, pivots, right)[0])), inverse_norm


def _sparse_factors(matrix: Any) -> tuple[Solve, Callable[[], float]]:
    from scipy.sparse.linalg import LinearOperator, onenormest, splu

    try:
        factors: Any = splu(matrix)
    except RuntimeError as error:  # exactly singular
        raise SolveError(SEVERAL) from error

    def inverse_norm() -> float:
        transposed = LinearOperator(
            matrix.shape,
            matvec=lambda x: factors.solve(x, trans="T"),
            rmatvec=factors.solve,
            dtype=np.float64,
        )
        return float(onenormest(transposed))

    return factors.solve, inverse_norm


def _advantage(arm: Arm, values: Floats, costs: Floats) -> Floats:
    """Passive minus active value of each state, per unit of time."""
    later = values.copy()
    later[0] = 0.0
    gained = arm.moves[0] @ later - arm.moves[1] @ later
    return np.where(arm.free, costs[0] - costs[1] + gained, 0.0)
