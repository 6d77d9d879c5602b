"""Bounds on total costs that hold whatever the rounding.

If c + Q u <= 0 for a proper policy, u is above its cost; if c + Q u >= 0 for every choice, u is
below the cost of every proper policy, whatever the other policies cost (Bertsekas and Tsitsiklis,
An analysis of stochastic shortest path problems, 1991, Proposition 1). Two sources of such u:

- the values for cost rates that are a rounding error larger or smaller (`policy_bounds`);
- where every choice costs something, any values of which f c + Q u has the right sign: u / f then
  serves for c (`scaled_lower`, `scaled_upper`), and f is close to 1 if u is close to the solution.
"""

from __future__ import annotations

from fractions import Fraction

import numpy as np

from mdpcloud.engine.problem import Floats
from mdpcloud.solve.total.chains import ChainSolver, refined
from mdpcloud.solve.total.paths import Pair, Paths

__all__ = [
    "above_policy",
    "below_policy",
    "exactly_below",
    "margins",
    "scaled",
    "scaled_lower",
    "scaled_upper",
    "shortfall",
    "trivial",
    "wider",
]

MAX_WIDENINGS = 40
"""Each at least doubles the change of the cost rates."""

PAIR = 2.0**-100
"""What a pair resolves, relative to its size, with room to spare."""

FLOAT = 2.0**-50
"""What a float resolves."""

EXACT = 20_000
"""Moves up to which rational arithmetic is tried (a tenth of a second)."""

LEAST = 1e-250
"""Smallest change of a cost rate: its products do not underflow."""


def margins(paths: Paths, u: Pair) -> Floats:
    """Changes (n,) of the cost rates that outweigh the residual of u and its rounding."""
    lower, upper = paths.bounds(u, np.zeros(paths.n))
    change = 2.0 * (upper - lower) + 2.0 * np.maximum(np.abs(lower), np.abs(upper)) + LEAST
    return np.where(paths.terminal, 0.0, change + _resolved(paths, u.high, PAIR))


def wider(paths: Paths, margin: Floats, moved: Floats, wrong: Floats) -> Floats:
    """Larger margins than those that did not do.

    Parameters
    ----------
    margin : (n,) array
    moved : (n,) array
        By how much they moved the values.
    wrong : (n,) array
        By how much the inequalities do not hold.
    """
    return 2.0 * margin + 2.0 * np.maximum(wrong, 0.0) + _resolved(paths, moved, FLOAT)


def _resolved(paths: Paths, values: Floats, unit: float) -> Floats:
    """What the rounding of values to a relative unit may do to the equation of each state."""
    finest = unit * float(np.abs(values).max(initial=0.0))
    return np.asarray(finest * paths.table.largest_per_state(paths.leaving))


def above_policy(fixed: Paths, solve: ChainSolver, u: Pair) -> Floats | None:
    """A bound above the cost (n,) of a proper policy, from values close to it."""
    return _moved(fixed, solve, u, 1.0)


def below_policy(fixed: Paths, solve: ChainSolver, u: Pair) -> Floats | None:
    """A bound below the cost (n,) of a proper policy, from values close to it."""
    return _moved(fixed, solve, u, -1.0)


def _moved(fixed: Paths, solve: ChainSolver, u: Pair, sign: float) -> Floats | None:
    zero, margin = np.zeros(fixed.n), margins(fixed, u)
    for _ in range(MAX_WIDENINGS):
        moved = refined(fixed, solve, u, sign * margin)
        if not np.isfinite(moved.high).all():
            return None
        lower, upper = fixed.bounds(moved, zero)
        wrong = upper if sign > 0.0 else -lower
        if wrong.max(initial=0.0) <= 0.0:
            return moved.above() if sign > 0.0 else moved.below()
        margin = wider(fixed, margin, moved.high - u.high, wrong)
    return None


def shortfall(paths: Paths, u: Pair) -> Floats:
    """By how much c + Q u may be below 0 for some choice, (n,); if nowhere, u is a bound."""
    lower, _ = paths.bounds(u, np.zeros(paths.n))
    return -lower


def exactly_below(paths: Paths, u: Pair) -> bool:
    """Whether c + Q u >= 0 for every choice in rational arithmetic; False where that takes long.

    It proves bounds where the process can go round at a mean cost of exactly 0 whose parts are not
    0, so that no margin is left for rounding; the values have to be floats then.
    """
    table = paths.table
    if table.roundings > 0 or table.transitions.nnz > EXACT or not np.isfinite(u.high).all():
        return False
    values = [Fraction(h) + Fraction(l) for h, l in zip(u.high, u.low, strict=True)]
    indptr, indices, weights = paths.moves
    least: dict[int, Fraction] = {}
    for row in range(table.state.size):
        here, moves = values[table.state[row]], range(indptr[row], indptr[row + 1])
        value = sum((Fraction(weights[j]) * (values[indices[j]] - here) for j in moves), Fraction())
        group = int(table.group[row])
        value += Fraction(table.cost[row])
        least[group] = min(least.get(group, value), value)
    total = [Fraction(c) for c in table.cost_rate]
    for group, value in least.items():
        total[table.state[table.groups[group]]] += value
    return min(total, default=Fraction()) >= 0


def trivial(paths: Paths) -> Floats:
    """The bound below that needs no values: 0 where nothing is earned, else -infinity."""
    least = _least_cost(paths)
    return np.where(paths.terminal | (least.min(initial=0.0) >= 0.0), 0.0, -np.inf)


def scaled(paths: Paths, fixed: Paths, u: Pair, tolerance: float) -> tuple[Floats, Floats] | None:
    """Bounds below the optimum and above the policy ``fixed`` without a further solve.

    None where some choice is free, or where they miss a relative tolerance.
    """
    lower = scaled_lower(paths, u)
    upper = None if lower is None else scaled_upper(fixed, u)
    if lower is None or upper is None:
        return None
    narrow = (upper - lower).max(initial=0.0) <= 0.5 * tolerance * np.abs(lower).max(initial=0.0)
    return (lower, upper) if narrow else None


def scaled_lower(paths: Paths, u: Pair) -> Floats | None:
    """A bound below the optimum from any values close to it; None where some choice is free."""
    return _scaled(paths, u, 1.0)


def scaled_upper(fixed: Paths, u: Pair) -> Floats | None:
    """A bound above the cost of a proper policy from any values close to it."""
    return _scaled(fixed, u, -1.0)


def _scaled(paths: Paths, u: Pair, sign: float) -> Floats | None:
    least, inner, zero = _least_cost(paths), ~paths.terminal, np.zeros(paths.n)
    if not (least[inner] > 0.0).all() or not np.isfinite(u.high).all():
        return None
    lower, upper = paths.bounds(u, zero)
    wrong = -lower if sign > 0.0 else upper
    share = 1.001 * float((wrong[inner] / least[inner]).max(initial=0.0)) + 1e-15
    for _ in range(3):
        f = 1.0 + sign * share
        if not 0.0 < f < np.inf:
            return None
        lower, upper = paths.bounds(u, zero, f)
        if sign > 0.0 and lower.min(initial=0.0) >= 0.0:
            return np.maximum(np.nextafter(u.below() / f, -np.inf), 0.0)
        if sign < 0.0 and upper.max(initial=0.0) <= 0.0:
            above = np.nextafter(u.above() / f, np.inf)
            return np.where(paths.terminal, 0.0, above)
        share *= 2.0
    return None


def _least_cost(paths: Paths) -> Floats:
    """A bound below the cost rate (n,) of every choice."""
    lower, _ = paths.bounds(Pair.of(np.zeros(paths.n)), np.zeros(paths.n))
    return lower
