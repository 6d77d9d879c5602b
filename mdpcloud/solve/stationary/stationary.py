"""Long-run behaviour of Markov chains: recurrent classes, stationary laws, limits from a start.

pi Q = 0 in each recurrent class. Only rates off the diagonal are used. What is accurate: classes up
to about 700 states, and larger ones of small bandwidth (birth-death chains of any size), are
reduced without subtraction, so that every entry has a relative error near the unit roundoff however
stiff the chain is. Larger ones are solved by multilevel aggregation to the stated residual. The
residual bounds no error by itself: the sum of |error| is at most the residual times a condition
number, which is about the number of events in which the chain forgets where it started. Beyond the
residual, the method goes on until a cycle moves less than 1e-8 of all flow between groups of
states, which finds errors that no residual shows (shares of parts that hardly communicate); that is
an estimate. Entries that add up to less than the tolerance are estimates too.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse

from mdpcloud.engine.generator import rates_under
from mdpcloud.engine.problem import Floats
from mdpcloud.engine.rows import Matrix, RowsProblem
from mdpcloud.engine.structure import closed_classes, components, period
from mdpcloud.errors import InputError, MultichainError, SolveError
from mdpcloud.model.chain import MarkovChain, markov_chain
from mdpcloud.model.matrices import as_matrix
from mdpcloud.solve.stationary.irreducible import factor, law_of, scaled
from mdpcloud.solve.stationary.kernels import push_mass

__all__ = [
    "RecurrentClass",
    "chain_of",
    "chain_of_generator",
    "decided",
    "initial_law",
    "long_run",
    "recurrent_classes",
    "stationary",
]

DENSE_TRANSIENT = 600
"""Up to so many transient states are eliminated without subtraction."""

STAY_TOLERANCE = 1e-12
"""Discrete time: a chain that leaves a state with probability above 1 minus this cannot stay."""


@dataclass(frozen=True, eq=False)
class RecurrentClass:
    """A closed class of states that communicate.

    Parameters
    ----------
    states : (m,) int32 array
        Its states, increasing.
    stationary : (m,) array
        Their long-run fractions of time once the chain is in the class; they sum to 1.
    period : int
        Period in discrete time; 1 in continuous time.
    """

    states: NDArray[np.int32]
    stationary: Floats
    period: int


def stationary(chain_or_model: Any, policy: Any = None, *, tolerance: float = 1e-12) -> Floats:
    """Return the stationary law of a chain, or of a model under a policy.

    Parameters
    ----------
    chain_or_model : MarkovChain, square array or sparse matrix, Model or TabularModel
        A matrix is a generator if its rows sum to 0, a transition matrix if they sum to 1; rows are
        origins.
    policy : Policy, or what `mdpcloud.policy` takes, optional
        For a model with decisions.
    tolerance : float
        Largest relative residual sum_y |inflow(y) - outflow(y)| / sum_y outflow(y) of the law. It
        bounds no error by itself: up to about 700 states every entry is right to many digits, on
        larger chains errors may exceed the residual by the number of events in which the chain
        forgets its start.

    Returns
    -------
    (n,) array
        Long-run fraction of time in each state, >= 0, summing to 1; 0 in transient states. Periodic
        chains are fine.

    Raises
    ------
    MultichainError
        There are several closed classes; the message names them.
    SolveError
        The residual exceeds the tolerance.

    Examples
    --------
    >>> stationary([[-2.0, 2.0], [1.0, -1.0]]).round(3)
    array([0.333, 0.667])
    """
    chain = chain_of(chain_or_model, policy)
    states = _only_class(chain)
    inflows = _inflows(chain.rates, states)
    if states is None:
        del chain  # the rates of a model are in nobody else's hands, and as large as the inflows
        return law_of(inflows, tolerance)
    law = np.zeros(chain.n)
    law[states] = law_of(inflows, tolerance)
    return law


def recurrent_classes(
    chain_or_model: Any, policy: Any = None, *, tolerance: float = 1e-12
) -> list[RecurrentClass]:
    """Return the closed classes with their laws and periods, in the order of their first states.

    Parameters are those of `stationary`.
    """
    chain = chain_of(chain_or_model, policy)
    return [
        RecurrentClass(
            states,
            law_of(_inflows(chain.rates, states), tolerance),
            period(chain.rates, states, chain.stay),
        )
        for states in closed_classes(chain.rates)
    ]


def long_run(
    chain_or_model: Any, initial: int | ArrayLike, policy: Any = None, *, tolerance: float = 1e-12
) -> Floats:
    """Return the long-run fractions of time (n,) from a start, whatever the classes and periods.

    Parameters
    ----------
    chain_or_model, policy, tolerance
        As for `stationary`.
    initial : int or (n,) array
        The state at time 0 or its probabilities.

    Returns
    -------
    (n,) array
        Cesaro limit of the law: the laws of the classes, weighted with the probabilities of ending
        in them. With up to 600 transient states these are computed without subtraction.

    Examples
    --------
    >>> long_run([[-2, 1, 1], [0, 0, 0], [0, 0, 0]], 0)
    array([0. , 0.5, 0.5])
    """
    chain = chain_of(chain_or_model, policy)
    start = initial_law(initial, chain)
    classes = closed_classes(chain.rates)
    law = np.zeros(chain.n)
    for states, weight in zip(classes, _absorbed(chain, classes, start), strict=True):
        if weight > 0.0:
            law[states] = weight * law_of(_inflows(chain.rates, states), tolerance)
    law /= law.sum()
    return law


def chain_of(chain_or_model: Any, policy: Any = None) -> MarkovChain:
    """Return the chain that a chain, a matrix, or a model under a policy stands for."""
    if isinstance(chain_or_model, MarkovChain):
        return _without_policy(chain_or_model, policy)
    if isinstance(chain_or_model, np.ndarray | list | tuple) or sparse.issparse(chain_or_model):
        return _without_policy(_chain_of_matrix(chain_or_model), policy)
    problem, choice = decided(chain_or_model, policy)
    if isinstance(problem, RowsProblem):
        explicit = problem.chain() if choice is None else problem.generator(choice)
        return chain_of_generator(explicit[0], problem)
    rates = rates_under(problem, choice)
    return MarkovChain(problem.n, rates, np.ones(problem.n, np.bool_), False, problem.label)


def decided(model: Any, policy: Any) -> tuple[Any, Any]:
    """Compile a model, and return the problem and what its policy chooses; None without one.

    Raises
    ------
    InputError
        When the policy does not fit, or is missing where the model has decisions.
    """
    from mdpcloud.engine import compile_model
    from mdpcloud.engine.rules import policy_for

    problem: Any = compile_model(model)
    if policy is not None:
        return problem, policy_for(problem, policy).choice(problem)
    if any(term.decision for term in problem.terms):
        raise InputError("the model has decisions; give the policy that takes them")
    return problem, None


def _without_policy(chain: MarkovChain, policy: Any) -> MarkovChain:
    if policy is not None:
        raise InputError("a chain has no decisions; a policy needs a model")
    return chain


def _chain_of_matrix(value: Any) -> MarkovChain:
    matrix = as_matrix(value, "the chain")
    total = np.asarray(matrix.sum(axis=1), np.float64).ravel()
    if (matrix.data < 0).any() or not total.any():
        return markov_chain(generator=matrix)
    return markov_chain(transition_matrix=matrix)


def chain_of_generator(generator: Matrix, problem: Any) -> MarkovChain:
    """Return the chain with a generator (n, n), its states those of a problem."""
    out = -generator.diagonal()
    rates = sparse.csr_array(generator + sparse.diags_array(out, format="csr"))
    rates.data[rates.data < 0] = 0
    rates.eliminate_zeros()
    stay = out < 1.0 - STAY_TOLERANCE if problem.discrete else np.ones(out.size, np.bool_)
    return MarkovChain(out.size, rates, stay, bool(problem.discrete), labels=problem.label)


def _only_class(chain: MarkovChain) -> NDArray[np.int32] | None:
    """The closed class of a chain that has only one; None if it consists of all states."""
    if components(chain.rates)[0] == 1:
        return None
    classes = closed_classes(chain.rates)
    if len(classes) > 1:
        raise MultichainError(
            f"the chain has {len(classes)} closed classes: {_listing(chain, classes)}; "
            "recurrent_classes gives the law of each, long_run the law from a start"
        )
    return classes[0]


def _inflows(rates: Matrix, states: NDArray[Any] | None) -> Matrix:
    """Rates within a class (all states by default) by target: rows are targets."""
    inside = rates if states is None else rates[states][:, states]
    return inside.T.tocsr()


def _listing(chain: MarkovChain, classes: list[NDArray[np.int32]]) -> str:
    def name(states: NDArray[np.int32]) -> str:
        shown = ", ".join(chain.label(int(x)) for x in states[:4])
        return f"{{{shown}{f', ... ({states.size} states)' if states.size > 4 else ''}}}"

    return ", ".join(map(name, classes[:4])) + (", ..." if len(classes) > 4 else "")


def initial_law(initial: int | ArrayLike, chain: MarkovChain) -> Floats:
    """Law (n,) at time 0, from a state or probabilities.

    Raises
    ------
    InputError
        When it is neither.
    """
    wanted = f"initial must be a state, 0 to {chain.n - 1}, or {chain.n} probabilities"
    try:
        law = np.array(initial, np.float64)
    except (TypeError, ValueError):
        raise InputError(f"{wanted}; it is {initial!r}") from None
    if law.ndim == 0:
        if isinstance(initial, bool) or not (law == np.floor(law) and 0 <= law < chain.n):
            raise InputError(f"{wanted}; it is {initial!r}")
        return np.asarray(np.arange(chain.n) == int(law), np.float64)
    if law.shape != (chain.n,) or not (law >= 0).all() or not abs(law.sum() - 1.0) <= 1e-9:
        raise InputError(
            f"{wanted} >= 0 that sum to 1; it has shape {law.shape} and sum {law.sum():g}"
        )
    return law


def _absorbed(chain: MarkovChain, classes: list[NDArray[np.int32]], start: Floats) -> Floats:
    """Probability of ending in each class."""
    home = np.full(chain.n, -1)
    for k, states in enumerate(classes):
        home[states] = k
    mass = np.bincount(home + 1, start, minlength=len(classes) + 1)[1:]
    transient = np.flatnonzero(home < 0)
    if len(classes) == 1 or not start[transient].any():
        return np.asarray(mass, np.float64) if len(classes) > 1 else np.ones(1)
    rates = scaled(chain.rates[transient])
    collect = sparse.csr_array(
        (np.ones(chain.n - transient.size), (np.flatnonzero(home >= 0), home[home >= 0])),
        shape=(chain.n, len(classes)),
    )
    inside, exits = rates[:, transient], rates @ collect
    if transient.size <= DENSE_TRANSIENT:
        everything = np.hstack([inside.toarray(), exits.toarray()])
        weight = np.concatenate([start[transient], mass])
        if not push_mass(everything, weight):
            raise SolveError("rates underflow while transient states are eliminated")
        return weight[transient.size :]
    out = np.asarray(rates.sum(axis=1), np.float64).ravel()
    time = factor(sparse.csr_array(sparse.diags_array(out, format="csr") - inside.T))(
        start[transient]
    )
    return np.asarray(mass + exits.T @ np.maximum(time, 0.0), np.float64)
