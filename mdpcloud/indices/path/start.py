"""The optimal policy of a single arm below all prices.

Below all prices the optimal policy does the most work and, among those that do, costs least: with
delta = a - p m (`mdpcloud.indices.path.equations`), the signs of (m, a), compared in this order,
are those of the policy. Policy iteration reaches it.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from mdpcloud.errors import MultichainError, SolveError
from mdpcloud.indices.path.equations import Basis, Bools, Equations, Singular

__all__ = ["TOO_ILL", "MultichainPolicy", "check_chain", "explained", "factored", "first_policy"]

TOO_ILL = "the equations of a policy of the single-arm problem are too ill-conditioned"
MOST_IMPROVEMENTS = 200
ROUNDING = 64.0 * float(np.finfo(np.float64).eps)


class MultichainPolicy(MultichainError):
    """A policy on the way has several recurrent classes, so that its average is no number.

    Attributes
    ----------
    policy : (n,) bool array
        Where it is active.
    classes : list of integer arrays
        Its recurrent classes.
    """

    def __init__(self, message: str, policy: Bools, classes: list[Any]) -> None:
        super().__init__(message)
        self.policy = policy
        self.classes = classes


# --- policies with several recurrent classes ------------------------------------------------------


def check_chain(equations: Equations, policy: Bools) -> None:
    """Raise `MultichainPolicy` if the average is asked of a policy with several classes."""
    if equations.alpha > 0.0:
        return
    from scipy import sparse

    from mdpcloud.engine.structure import closed_classes

    passive, active = equations.arm.moves
    if equations.arm.is_sparse:
        on = policy.astype(np.float64)
        graph = sparse.diags_array(on) @ active + sparse.diags_array(1.0 - on) @ passive
    else:
        positive = np.where(policy[:, None], active > 0.0, passive > 0.0)
        np.fill_diagonal(positive, True)
        if positive.all(axis=0).any():
            return
        graph = positive
    graph = sparse.csr_array(graph)
    graph.eliminate_zeros()
    classes = closed_classes(graph)
    if len(classes) > 1:
        label = equations.arm.label
        raise MultichainPolicy(
            f"a policy has {len(classes)} recurrent classes, one around state "
            f"{label(int(classes[0][0]))} and one around state {label(int(classes[1][0]))}",
            policy,
            classes,
        )


# --- the policy below all prices ------------------------------------------------------------------


def first_policy(equations: Equations) -> tuple[Bools, Basis]:
    """The optimal policy below all prices, and its factors.

    Raises
    ------
    MultichainPolicy
        If a policy on the way has several recurrent classes.
    SolveError
        If its matrix is singular, or policies do not settle.
    """
    arm = equations.arm
    policy = np.where(arm.free, True, arm.forced)
    if _does_most(equations, policy):
        return policy, factored(equations, policy)
    for _ in range(MOST_IMPROVEMENTS):
        basis = factored(equations, policy)
        better = _improved(equations, basis)
        if (better == policy).all():
            return policy, basis
        policy = better
    raise SolveError("policies that do the most work do not settle")


def _does_most(equations: Equations, policy: Bools) -> bool:
    """Whether the work is the same in all states, so that any passivity lowers it."""
    work, free = equations.chosen(policy)[:, 1], equations.free
    return bool((work == work[0]).all() and (equations.arm.work[0, free] < work[0]).all())


def factored(equations: Equations, policy: Bools) -> Basis:
    """Factors of a policy whose chain has one recurrent class."""
    with explained(equations, policy):
        return equations.basis(policy)


@contextmanager
def explained(equations: Equations, policy: Bools) -> Iterator[None]:
    """Say why the matrix of a policy has no factors."""
    try:
        yield
    except Singular as error:
        check_chain(equations, policy)
        raise SolveError(TOO_ILL) from error


def _improved(equations: Equations, basis: Basis) -> Bools:
    """The better action in every state, where work counts first and cost second."""
    x = basis.solve(equations.chosen(basis.policy))
    change = equations.differences(equations.images(x), x)[:-1]
    slack = ROUNDING * equations.sizes(x)[equations.free]
    cost, work = change[:, 0], -change[:, 1]
    sign = np.where(np.abs(work) > slack[:, 1], work, np.where(np.abs(cost) > slack[:, 0], cost, 0))
    policy = basis.policy.copy()
    policy[equations.free[sign > 0.0]] = True
    policy[equations.free[sign < 0.0]] = False
    return policy
