"""Whether and when a chain reaches some states.

With out(x) the total rate out of x, the probability h of ever reaching the targets A and the mean
time m until then are the least solutions >= 0 of

    out(x) h(x) = sum_y q(x, y) h(y),        h = 1 on A,
    out(x) m(x) = 1 + sum_y q(x, y) m(y),    m = 0 on A

(Norris, Markov Chains, 1997, theorems 1.3.2, 1.3.5, 3.3.1 and 3.3.3). The graph decides where h is
exactly 0, exactly 1, and where m is infinite; what is left are equations with an M-matrix, enclosed
by `mdpcloud.solve.transient.passage_systems`. The law of the time comes from the chain that stays
in A.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse

from mdpcloud.engine import compile_model
from mdpcloud.engine.problem import Floats
from mdpcloud.engine.rounding import gamma
from mdpcloud.engine.structure import reachable
from mdpcloud.errors import InputError
from mdpcloud.model.chain import MarkovChain
from mdpcloud.model.model import Model
from mdpcloud.model.tabular import TabularModel
from mdpcloud.solve.limits import check_tolerance
from mdpcloud.solve.selection import selected_states
from mdpcloud.solve.stationary.stationary import chain_of
from mdpcloud.solve.transient.method import method_sums
from mdpcloud.solve.transient.passage_systems import Enclosed, PassageSystem
from mdpcloud.solve.transient.steps import Steps
from mdpcloud.solve.transient.transient import (
    check_times,
    insist_on,
    start_law,
    transient,
)

__all__ = ["FirstPassage", "PassageLaw", "first_passage"]

SUMMING = 256
"""Roundings of a sum over the targets, pair by pair, at most."""

Bools = NDArray[np.bool_]
Bounds = tuple[Floats, Floats]


@dataclass(frozen=True, eq=False)
class PassageLaw:
    """The probability of having reached the targets by some times.

    Attributes
    ----------
    times : (T,) array
        As given.
    probability : (T, n) array from every state, or (T,) from an initial law
    error : (T,) array
        Certified bound of the error of each of them, truncation and rounding included.
    method : str
        "uniformisation" or "doubling".
    products : int
        Products with a matrix.
    """

    times: Floats
    probability: Floats = field(repr=False)
    error: Floats
    method: str
    products: int


@dataclass(frozen=True, eq=False)
class FirstPassage:
    """Probability and time of reaching the targets, from each state.

    Attributes
    ----------
    targets : (n,) bool array
    probability : (n,) array
        Of ever being in a target; 1 in the targets.
    probability_bounds : (lower, upper)
        Certified, each (n,), rounding included; equal where the graph decides.
    mean : (n,) array
        Mean time (steps, in discrete time) until the first target; infinite where the probability
        is below 1, 0 in the targets.
    mean_bounds : (lower, upper)
        Certified, each (n,), rounding included.
    law : PassageLaw or None
        Where times were asked for.
    """

    targets: Bools = field(repr=False)
    probability: Floats
    probability_bounds: Bounds = field(repr=False)
    mean: Floats = field(repr=False)
    mean_bounds: Bounds = field(repr=False)
    law: PassageLaw | None = None


def first_passage(
    chain_or_model: Any,
    targets: Any,
    policy: Any = None,
    *,
    times: float | ArrayLike | None = None,
    initial: int | ArrayLike | None = None,
    tolerance: float = 1e-10,
) -> FirstPassage:
    """Probability, mean time, and law of the time until some states are reached.

    Parameters
    ----------
    chain_or_model : MarkovChain, square array or sparse matrix, Model or TabularModel
        As for `transient`.
    targets : (n,) booleans, sequence of state numbers, or function of x returning booleans
        At least one state; a function needs a model.
    policy : Policy, or what `mdpcloud.policy` takes, optional
        For a model with decisions.
    times : number or (T,) array, optional
        When the probability of having arrived is asked for; >= 0, whole in discrete time.
    initial : int or (n,) array, optional
        State or law at time 0 for the probabilities at these times; by default they are given from
        every state.
    tolerance : float
        Largest error of the probabilities at these times.

    Returns
    -------
    FirstPassage

    Raises
    ------
    InputError
        No targets, wrong times or initial law, a model with decisions and no policy.
    SolveError
        Where no bounds can be proved, or a time needs too many products (see `transient`).

    Examples
    --------
    A gambler with 0 to 3 coins who wins a coin with probability 0.4:

    >>> game = [[1, 0, 0, 0], [0.6, 0, 0.4, 0], [0, 0.6, 0, 0.4], [0, 0, 0, 1]]
    >>> found = first_passage(game, [3], times=[1, 2, 9])
    >>> found.probability.round(6)
    array([0.      , 0.210526, 0.526316, 1.      ])
    >>> found.law.probability[:, 1].round(6)
    array([0.      , 0.16    , 0.209828])
    """
    check_tolerance(tolerance)
    chain = chain_of(chain_or_model, policy)
    wanted = _selected(chain_or_model, targets, chain)
    never, surely = _decided(chain, wanted)
    probability, probability_bounds = _probability(chain, wanted, never, surely)
    mean, mean_bounds = _mean(chain, wanted, surely)
    law = None
    if times is not None:
        law = _law(chain, wanted, check_times(times, chain.discrete), initial, tolerance)
    return FirstPassage(wanted, probability, probability_bounds, mean, mean_bounds, law)


def _selected(chain_or_model: Any, targets: Any, chain: MarkovChain) -> Bools:
    if not callable(targets):
        return selected_states(targets, chain, "targets")
    if not isinstance(chain_or_model, Model | TabularModel):
        raise InputError("targets is a function; without a model give state numbers or booleans")
    return selected_states(targets, compile_model(chain_or_model), "targets")


def _decided(chain: MarkovChain, targets: Bools) -> tuple[Bools, Bools]:
    """Where the targets are reached with probability 0, and where with probability 1."""
    back = _staying(chain, targets).rates.T.tocsr()
    never = ~reachable(back, np.flatnonzero(targets))
    if not never.any():
        return never, ~never
    return never, ~reachable(back, np.flatnonzero(never))


def _staying(chain: MarkovChain, targets: Bools) -> MarkovChain:
    """The chain that never leaves the targets."""
    rates = chain.rates.copy()
    rates.data[np.repeat(targets, np.diff(rates.indptr))] = 0.0
    rates.eliminate_zeros()
    return MarkovChain(chain.n, sparse.csr_array(rates), chain.stay | targets, chain.discrete)


def _probability(
    chain: MarkovChain, targets: Bools, never: Bools, surely: Bools
) -> tuple[Floats, Bounds]:
    states = np.flatnonzero(~never & ~surely)
    value = surely.astype(np.float64)
    if not states.size:
        return value, (value.copy(), value.copy())
    system = PassageSystem.of(chain.rates, states)
    found = system.solve(system.total_to(chain.rates[states], surely))
    return _spread(value, states, found, 1.0)


def _mean(chain: MarkovChain, targets: Bools, surely: Bools) -> tuple[Floats, Bounds]:
    states = np.flatnonzero(surely & ~targets)
    value = np.where(surely, 0.0, np.inf)
    if not states.size:
        return value, (value.copy(), value.copy())
    system = PassageSystem.of(chain.rates, states)
    return _spread(value, states, system.solve(system.ones()), np.inf)


def _spread(
    value: Floats, states: NDArray[Any], found: Enclosed, most: float
) -> tuple[Floats, Bounds]:
    """Values and bounds of all states from those of some."""
    lower, upper = value.copy(), value.copy()
    value[states] = np.minimum(found.values, most)
    lower[states] = np.maximum(found.values - found.error, 0.0)
    upper[states] = np.minimum(found.values + found.error, most)
    return value, (lower, upper)


def _law(
    chain: MarkovChain,
    targets: Bools,
    times: Floats,
    initial: int | ArrayLike | None,
    tolerance: float,
) -> PassageLaw:
    staying = _staying(chain, targets)
    if initial is not None:
        found = transient(staying, start_law(initial, chain), times, tolerance=tolerance)
        arrived = np.minimum(found.laws[:, targets].sum(axis=1), 1.0)
        error = found.error + gamma(SUMMING)
        return PassageLaw(times, arrived, error, found.method, found.products)
    start, none = targets.astype(np.float64), np.zeros((0, chain.n))
    steps = Steps.of(staying)
    method, sums = method_sums(steps, start, times, none, tolerance, forward=False)
    law = PassageLaw(times, np.minimum(sums.values, 1.0), sums.error, method, sums.products)
    insist_on(tolerance, times, law.error, law)
    return law
