"""Laws of a chain at given times, and the costs accumulated by then.

p(t) = p(0) exp(t Q), or p(0) P^t in steps: by uniformisation (`mdpcloud.solve.transient.products`),
small stiff chains by squaring (`mdpcloud.solve.transient.doubling`). Nothing is subtracted on the
way, and what is left out is bounded by proof.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from mdpcloud.engine.problem import Floats
from mdpcloud.engine.structure import reachable
from mdpcloud.errors import InputError, SolveError
from mdpcloud.model.chain import MarkovChain
from mdpcloud.model.matrices import as_floats
from mdpcloud.solve.limits import check_tolerance
from mdpcloud.solve.stationary.stationary import initial_law
from mdpcloud.solve.transient.chain import costed_chain
from mdpcloud.solve.transient.method import method_sums
from mdpcloud.solve.transient.products import Sums
from mdpcloud.solve.transient.steps import Steps

__all__ = [
    "Transient",
    "check_times",
    "insist_on",
    "start_law",
    "transient",
]


@dataclass(frozen=True, eq=False)
class Transient:
    """Laws of a chain at several times.

    Attributes
    ----------
    times : (T,) array
        As given.
    laws : (T, n) array
        Probability of each state at each time; a row sums to 1 up to its error.
    error : (T,) array
        Certified: sum over the states of the distance to the exact law is at most this, truncation
        and rounding included. In uniformisation entries smaller than that may be 0; by doubling
        also entries far below it are accurate relatively.
    costs : (T,) array or None
        Expected cost over [0, t] (reward, for a model given by rewards).
    cost_bounds : (lower, upper) or None
        Certified, each (T,), rounding included.
    measures : mapping
        Name to certified bounds (lower, upper), each (T,), of the model's measures over [0, t].
    method : str
        "uniformisation" or "doubling".
    products : int
        Products with a matrix.
    """

    times: Floats
    laws: Floats = field(repr=False)
    error: Floats
    costs: Floats | None
    cost_bounds: tuple[Floats, Floats] | None
    method: str
    products: int
    measures: Mapping[str, tuple[Floats, Floats]] = field(default_factory=dict)


def transient(
    chain_or_model: Any,
    initial: int | ArrayLike,
    times: float | ArrayLike,
    policy: Any = None,
    *,
    tolerance: float = 1e-10,
    cost_rate: ArrayLike | None = None,
) -> Transient:
    """Laws at given times, and the costs accumulated by then.

    Parameters
    ----------
    chain_or_model : MarkovChain, square array or sparse matrix, Model or TabularModel
        A matrix is a generator if its rows sum to 0, a transition matrix if they sum to 1; rows are
        origins.
    initial : int or (n,) array
        The state at time 0 or its probabilities.
    times : number or (T,) array
        >= 0, in any order; whole numbers of steps in discrete time.
    policy : Policy, or what `mdpcloud.policy` takes, optional
        For a model with decisions.
    tolerance : float
        Largest error of a law, summed over the states.
    cost_rate : number or (n,) array, optional
        Cost per unit of time (per step), in the place of the model's own.

    Returns
    -------
    Transient

    Raises
    ------
    InputError
        Wrong initial law, times or costs; a model with decisions and no policy.
    SolveError
        The tolerance cannot be met: more than 1000 states, and too many products, which the message
        counts.

    Examples
    --------
    >>> found = transient([[-2.0, 2.0], [1.0, -1.0]], 0, [0.0, 0.5, 10.0], cost_rate=[1.0, 0.0])
    >>> found.laws.round(6)
    array([[1.      , 0.      ],
           [0.482087, 0.517913],
           [0.333333, 0.666667]])
    >>> found.costs.round(6)
    array([0.      , 0.339304, 3.555556])
    """
    check_tolerance(tolerance)
    found = costed_chain(chain_or_model, policy, cost_rate)
    start = start_law(initial, found.chain)
    moments = check_times(times, found.chain.discrete)
    rates = [found.cost] if found.cost is not None else []
    priced = np.array([*rates, *found.measures.values()]).reshape(-1, found.chain.n)
    method, sums = _on_reachable(found.chain, start, moments, priced, tolerance)
    lower, upper = sums.costs - sums.cost_error, sums.costs + sums.cost_error
    own = len(rates)
    result = Transient(
        times=moments,
        laws=np.minimum(sums.values, 1.0, out=sums.values),
        error=sums.error,
        costs=sums.costs[0] if own else None,
        cost_bounds=(lower[0], upper[0]) if own else None,
        method=method,
        products=sums.products,
        measures={name: (lower[m], upper[m]) for m, name in enumerate(found.measures, start=own)},
    )
    insist_on(tolerance, moments, result.error, result)
    return result


def _on_reachable(
    chain: MarkovChain, start: Floats, times: Floats, costs: Floats, tolerance: float
) -> tuple[str, Sums]:
    """Sums on the states that can be reached, so that no other rate matters."""
    there = reachable(chain.rates, np.flatnonzero(start))
    if there.all():
        return method_sums(Steps.of(chain), start, times, costs, tolerance)
    states = np.flatnonzero(there)
    rates = chain.rates[states][:, states]
    part = MarkovChain(states.size, rates, chain.stay[states], chain.discrete)
    method, sums = method_sums(Steps.of(part), start[states], times, costs[:, states], tolerance)
    values = np.zeros((times.size, chain.n))
    values[:, states] = sums.values
    return method, Sums(values, sums.error, sums.costs, sums.cost_error, sums.products)


def start_law(initial: int | ArrayLike, chain: MarkovChain) -> Floats:
    """Return the law (n,) at time 0, scaled to sum to 1."""
    law = initial_law(initial, chain)
    return np.asarray(law / law.sum(), np.float64)


def check_times(times: float | ArrayLike, discrete: bool) -> Floats:
    """Return times (T,) as floats if they are >= 0, and whole in discrete time."""
    moments = np.array(np.atleast_1d(as_floats(times, "times")))
    if moments.ndim != 1 or moments.size == 0:
        raise InputError(f"times has shape {moments.shape}; give a number or at least one in a row")
    _refuse(moments, ~((moments >= 0.0) & np.isfinite(moments)), "finite and >= 0")
    if discrete:
        _refuse(moments, moments != np.floor(moments), "whole numbers of steps in discrete time")
    return moments


def _refuse(times: Floats, wrong: NDArray[np.bool_], allowed: str) -> None:
    if wrong.any():
        k = int(np.argmax(wrong))
        raise InputError(f"times[{k}] is {times[k]:g}; times must be {allowed}")


def insist_on(tolerance: float, times: Floats, error: Floats, partial: object) -> None:
    """Raise `SolveError`, which carries the result, where an error is above the tolerance."""
    worst = int(np.argmax(error))
    if not error[worst] <= tolerance:
        raise SolveError(
            f"the error at time {times[worst]:g} may reach {error[worst]:.2g}, above the tolerance "
            f"{tolerance:g}",
            partial=partial,
        )
