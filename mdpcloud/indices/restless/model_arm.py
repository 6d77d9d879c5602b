"""Restless arms from models with one decision between two actions."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mdpcloud.errors import InputError
from mdpcloud.indices.restless.arm import Arm
from mdpcloud.indices.restless.birth_death_arm import BirthDeathArm
from mdpcloud.model.matrices import Floats
from mdpcloud.model.model import Model
from mdpcloud.model.tabular import TabularModel
from mdpcloud.plugins import did_you_mean

__all__ = ["checked_arm", "model_arm"]

DENSE = 0.25  # share of entries from which matrices of a model are kept dense
LARGEST_DENSE = 8000  # states


def model_arm(
    model: Model | TabularModel | Callable[[int], Model | TabularModel],
    *,
    active: str | int = 1,
    room: int | None = None,
    work0: Any = 0.0,
    work1: Any = 1.0,
) -> Arm:
    """Build an arm from a model in which one event, or one control, has two actions.

    Parameters
    ----------
    model : Model or TabularModel, or function from a room to either
        With a function and `room` the arm is a cut of an unbounded one, and `whittle` compares its
        index with that of the arm with twice the room.
    active : str or int
        Name or number of the action that is active; the second one by default.
    room : int, optional
        What the function is called with, >= 1.
    work0, work1 : number, (n,) array or function of the state x
        Work per unit of time, passive and active.

    Returns
    -------
    Arm
        With as many states as the model, in its order. A state with one allowed action, or with an
        event of rate 0, is not free.

    Raises
    ------
    InputError
        If there is not one decision with two actions.

    Examples
    --------
    >>> import mdpcloud as mc
    >>> model = mc.tabular([[[1, 0], [1, 0]], [[0, 1], [0, 1]]], costs=[[1, 2], [3, 0]])
    >>> model_arm(model).costs
    array([[1., 3.],
           [2., 0.]])
    """
    if isinstance(model, Model | TabularModel):
        if room is not None:
            raise InputError("room needs a function from the room to a model")
        return _arm_of(model, active, work0, work1)
    if not callable(model) or room is None:
        raise InputError(
            f"{model!r} is no model; a Model, a TabularModel, or a function from the room to one "
            "together with room is needed"
        )
    if isinstance(room, bool) or not isinstance(room, int | np.integer) or room < 1:
        raise InputError(f"room is {room!r}; it must be a whole number >= 1")
    found = _arm_of(model(int(room)), active, work0, work1)
    larger = partial(model_arm, model, active=active, room=2 * int(room), work0=work0, work1=work1)
    return dataclasses.replace(found, enlarged=larger)


def checked_arm(arm: Any, name: str = "arm") -> Arm | BirthDeathArm:
    """An arm, or the arm of a model whose second action is active.

    Raises
    ------
    InputError
        If it is neither; the message begins with the name.
    """
    if isinstance(arm, Arm | BirthDeathArm):
        return arm
    if isinstance(arm, Model | TabularModel):
        return model_arm(arm)
    raise InputError(
        f"{name} is {arm!r}; it must be an arm (mdpcloud.indices.arm, rate_arm, birth_death_arm, "
        "model_arm), or a model with one decision between two actions"
    )


def _arm_of(model: Any, active: str | int, work0: Any, work1: Any) -> Arm:
    from mdpcloud.engine import compile_model
    from mdpcloud.solve.selection import values_per_state

    problem = compile_model(model)
    e = _decision(problem)
    on = _number(problem.terms[e], active)
    allowed, happens = problem.allowed(e)
    base = problem.greedy(problem.pack(np.zeros(problem.n)), 0.0)
    free = allowed.all(axis=0) & happens
    moves, costs = [], []
    for action in (1 - on, on):
        choice = base.copy()
        choice[e] = np.where(allowed[action] & happens, action, base[e])
        generator, cost = problem.under(choice).chain()
        moves.append(_stored(generator, problem.discrete))
        costs.append(cost)
    work = [values_per_state(w, problem, f"work{a}") for a, w in enumerate((work0, work1))]
    forced: NDArray[np.bool_] = allowed[on] & happens & ~free
    return Arm(
        (moves[0], moves[1]),
        np.stack(costs),
        np.where(free, np.stack(work), np.where(forced, work[1], work[0])),
        problem.discrete,
        free,
        forced,
        problem.label,
    )


def _decision(problem: Any) -> int:
    """Number of the term that decides."""
    found = [e for e, term in enumerate(problem.terms) if term.decision]
    if len(found) != 1:
        names = ", ".join(problem.terms[e].name for e in found) or "none"
        raise InputError(f"an arm has one decision; this model has {len(found)} ({names})")
    actions = problem.terms[found[0]].actions
    if len(actions) != 2:
        raise InputError(
            f"an arm has two actions; {problem.terms[found[0]].name!r} has {len(actions)} "
            f"({', '.join(actions)})"
        )
    return found[0]


def _number(term: Any, active: str | int) -> int:
    """Number of the active action."""
    if isinstance(active, str):
        if active not in term.actions:
            hint = did_you_mean(active, term.actions) or f"; there are {', '.join(term.actions)}"
            raise InputError(f"active: {term.name!r} has no action {active!r}{hint}")
        return int(term.actions.index(active))
    if isinstance(active, bool) or active not in (0, 1):
        raise InputError(f"active is {active!r}; it must be the name of an action, or 0 or 1")
    return int(active)


def _stored(generator: Any, discrete: bool) -> Any:
    """Rates, or probabilities in discrete time, dense where that takes less memory."""
    from scipy import sparse

    n = generator.shape[0]
    matrix = sparse.csr_array(generator)
    if discrete:
        matrix = sparse.csr_array(matrix + sparse.eye_array(n, format="csr"))
    if n <= LARGEST_DENSE and matrix.nnz >= DENSE * n * n:
        dense: Floats = matrix.toarray()
        return dense
    return matrix
