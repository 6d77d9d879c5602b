"""The optimal policies of a single arm, from price -inf to inf.

`mdpcloud.indices.path.walk` has the equations; dense arms of n states take 14/3 n^3 operations.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mdpcloud.indices.path.equations import Bools, equations_of
from mdpcloud.indices.path.start import MultichainPolicy, first_policy
from mdpcloud.indices.path.walk import Walk
from mdpcloud.indices.restless.arm import Arm
from mdpcloud.indices.restless.result import PricePath
from mdpcloud.indices.restless.units import Units, in_units, restored
from mdpcloud.model.matrices import Floats

__all__ = ["MultichainPolicy", "price_path"]

Progress = Callable[[int, int], object]

FEW, MOST_DENSE = 200, 4000  # states between which sparse moves are made dense where factors
FULL = 0.05  # fill so much of a dense matrix
LEAST_NUMBER = 2.0**-1074  # more than a price loses when it underflows
SURE = 1e-10  # error of a price relative to prices and costs


def price_path(
    arm: Arm, alpha: float, *, start: Any = None, progress: Progress | None = None
) -> PricePath:
    """Follow the optimal policies of the single-arm problem from price -inf to inf.

    Parameters
    ----------
    arm : Arm
    alpha : float
        Discount rate (in discrete time (1 - b) / b of a factor b); 0 for the average cost.
    start : (n,) array or int, optional
        Probabilities of the first state, or its number, for discounted costs and work; uniform by
        default.
    progress : function of (changes done, changes expected), optional

    Returns
    -------
    PricePath

    Raises
    ------
    MultichainPolicy
        If the average is asked and a policy on the way has several recurrent classes.
    SolveError
        If rounding errors hide the policies.

    Examples
    --------
    >>> from mdpcloud.indices.restless.arm import arm
    >>> stay, move = [[0.9, 0.1], [0.3, 0.7]], [[0.5, 0.5], [0.8, 0.2]]
    >>> price_path(arm(stay, move, rewards1=[1.0, 3.0]), 0.0).states
    array([0, 1])
    """
    one, rate, units = in_units(arm, alpha)
    equations = equations_of(one, rate, start)
    policy, basis = first_policy(equations)
    if FEW < arm.n <= MOST_DENSE and basis.fill > FULL:
        equations = equations_of(_dense(arm), alpha, start)
        policy, basis = first_policy(equations)
    walk = Walk(equations, policy, basis)
    expected = equations.free.size
    while walk.step():
        if progress is not None:
            progress(min(len(walk.prices), expected), expected)
    return _restored(_path(walk), units, discounted=alpha > 0.0)


def _dense(arm: Arm) -> Arm:
    """The arm with dense moves."""
    passive, active = (moves.toarray() for moves in arm.moves)
    return dataclasses.replace(arm, moves=(passive, active))


def _path(walk: Walk) -> PricePath:
    """The path that was walked."""
    prices, errors = np.array(walk.prices), np.array(walk.errors)
    states = walk.equations.free[np.array(walk.places, np.intp)]
    costs, work = np.abs(walk.equations.arm.costs).max(), np.abs(walk.equations.arm.work).max()
    sure = errors * work <= SURE * (np.abs(prices) * work + costs)
    kept = _apart(states, prices, np.where(sure, errors, 0.0))
    marginal = np.array(walk.marginal).reshape(-1, 2)[kept]
    totals = np.array(walk.totals)[np.append(kept, prices.size)]
    return PricePath(
        prices=prices[kept],
        states=states[kept],
        active=_actions(walk.first, states[kept]),
        first=walk.first,
        costs=totals[:, 0],
        work=totals[:, 1],
        marginal_cost=marginal[:, 0],
        marginal_work=marginal[:, 1],
        errors=errors[kept],
        complete=walk.complete,
    )


def _restored(path: PricePath, units: Units, discounted: bool) -> PricePath:
    """The path in the units of the arm that was given."""
    if units == Units():
        return path
    total = units.time if discounted else 0
    return replace(
        path,
        prices=restored(path.prices, units.price),
        errors=restored(path.errors, units.price) + LEAST_NUMBER,
        costs=restored(path.costs, units.cost - total),
        work=restored(path.work, units.work - total),
        marginal_cost=restored(path.marginal_cost, units.cost),
        marginal_work=restored(path.marginal_work, units.work),
    )


def _apart(states: NDArray[np.intp], prices: Floats, errors: Floats) -> NDArray[np.intp]:
    """Changes without those that are taken back at the same price, up to errors.

    Where several states change at one price, one of them may do so on the way, and back. Errors
    are those of prices known so well that a real change back would hardly be hidden by them.
    """
    last: dict[int, list[int]] = {}
    kept = np.ones(states.size, np.bool_)
    for k, state in enumerate(states.tolist()):
        own = last.setdefault(state, [])
        if own and prices[k] - prices[own[-1]] <= errors[k] + errors[own[-1]]:
            kept[[k, own.pop()]] = False
        else:
            own.append(k)
    return np.flatnonzero(kept)


def _actions(first: Bools, states: NDArray[np.intp]) -> Bools:
    """Whether each change makes its state active."""
    now, active = first.copy(), np.zeros(states.size, np.bool_)
    for k, state in enumerate(states.tolist()):
        now[state] ^= True
        active[k] = now[state]
    return active
