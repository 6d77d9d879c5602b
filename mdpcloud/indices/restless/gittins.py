"""Gittins' index: of an arm that stays where it is while it is passive.

The index of state i is the largest mean reward per unit of time, discounted, that one can have by
playing the arm from i until some stopping time tau > 0,

    max over tau of  E [ int_0^tau exp(-alpha t) r dt ] / E [ int_0^tau exp(-alpha t) dt ],

which is the reward per unit of time for which one would give the arm up (in discrete time: sums,
and rewards per step). States are found in the order of the index, the largest first (Varaiya,
Walrand and Buyukkoc 1985), and each is eliminated as soon as it is found (Sonin 2008): with s gone,
a visit to s belongs to the stay before it,

    q_ij += q_is q_sj / D_s,   r_i += q_is r_s / D_s,   d_i += q_is d_s / D_s,
    D_s = alpha d_s + sum_j q_sj,

with rates q, rewards r and times d (at first 1), and the next state has the largest r_i / d_i of
those left. It is Gaussian elimination of (2/3) n^3 operations, n^3 being multiplied in blocks, and
no number is ever subtracted (rewards count from the least one), so that rounding is bounded without
regard to the discount rate; see `_bounds`.

Sources: Gittins, "Bandit processes and dynamic allocation indices", Journal of the Royal
Statistical Society B 41 (1979) 148-177; Varaiya, Walrand, Buyukkoc, "Extensions of the multiarmed
bandit problem: the discounted case", IEEE Transactions on Automatic Control 30 (1985) 426-439;
Sonin, "A generalized Gittins index for a Markov chain and its recursive calculation", Statistics
and Probability Letters 78 (2008) 1526-1533; the order of operations: Nino-Mora, "A (2/3)n^3
fast-pivoting algorithm for the Gittins index and optimal stopping of a Markov chain", INFORMS
Journal on Computing 19 (2007) 596-606.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from mdpcloud.errors import InputError, SolveError
from mdpcloud.indices.restless.arm import check_moves, per_state
from mdpcloud.indices.restless.result import ArmIndex, Verdict
from mdpcloud.model.matrices import Floats, as_floats, as_matrix

__all__ = ["gittins", "gittins_rates"]

UNDERFLOW = 2.0**-1040  # more than products and quotients that underflow lose


def gittins(
    P: Any, rewards: ArrayLike | None = None, *, costs: ArrayLike | None = None, criterion: Any
) -> ArmIndex:
    """Gittins' index of an arm in discrete time.

    Parameters
    ----------
    P : (n, n) array or sparse matrix
        Probabilities of the next state when the arm is played; otherwise it stays where it is.
    rewards : (n,) array or number
        Per step played.
    costs : (n,) array or number, optional
        Instead of rewards.
    criterion : Discounted
        ``Discounted(factor=...)``. The error bound does not depend on how near 1 the factor is.

    Returns
    -------
    ArmIndex
        Always indexable; the larger the index, the earlier the arm is to be played. With rewards
        the index is the reward per step, forever, that is as good as the arm. With costs it is the
        negative of the least mean cost per step: the index of the rewards ``-costs``. Its
        ``error`` is a bound, rounding included.

    Raises
    ------
    InputError
        If the matrix is wrong, or the criterion is not ``Discounted(factor=...)``.

    Notes
    -----
    Gittins (1979), Journal of the Royal Statistical Society B 41, 148-177.

    Examples
    --------
    From state 1 the better state 0 can be reached, with probability 1/2:

    >>> import mdpcloud as mc
    >>> found = gittins([[1, 0], [0.5, 0.5]], [1.0, 0.0], criterion=mc.Discounted(factor=0.5))
    >>> found.index.round(12)
    array([1.        , 0.33333333])
    """
    return _index(_checked(P, "P", True), _earned(rewards, costs), True, criterion)


def gittins_rates(
    Q: Any, rewards: ArrayLike | None = None, *, costs: ArrayLike | None = None, criterion: Any
) -> ArmIndex:
    """Gittins' index of an arm in continuous time.

    Parameters
    ----------
    Q : (n, n) array or sparse matrix
        Generator while the arm is played (rates, 1/time); otherwise it stays where it is.
    rewards, costs : (n,) array or number
        As in `gittins`, per unit of time.
    criterion : Discounted
        ``Discounted(rate=...)``.

    Returns
    -------
    ArmIndex
        As `gittins`, in reward per unit of time.

    Raises
    ------
    InputError
        If the matrix is wrong, or the criterion is not ``Discounted(rate=...)``.

    Examples
    --------
    >>> import mdpcloud as mc
    >>> found = gittins_rates([[0, 0], [2, -2]], [1.0, 0.0], criterion=mc.Discounted(rate=1.0))
    >>> found.index.round(12)
    array([1.        , 0.66666667])
    """
    return _index(_checked(Q, "Q", False), _earned(rewards, costs), False, criterion)


def _checked(matrix: Any, name: str, discrete: bool) -> Any:
    """A square dense or CSR matrix whose entries and row sums are right."""
    checked: Any = as_matrix(matrix, name) if hasattr(matrix, "tocsr") else as_floats(matrix, name)
    if checked.ndim != 2 or checked.shape[0] != checked.shape[1] or checked.shape[0] == 0:
        raise InputError(f"{name} has shape {checked.shape}; it must be square and not empty")
    check_moves(checked, name, discrete)
    return checked


def _earned(rewards: Any, costs: Any) -> tuple[str, Any, float]:
    """Name, values and sign of what is given."""
    if (rewards is None) == (costs is None):
        raise InputError("give either rewards or costs")
    return ("costs", costs, -1.0) if rewards is None else ("rewards", rewards, 1.0)


def _index(moves: Any, earned: tuple[str, Any, float], discrete: bool, criterion: Any) -> ArmIndex:
    from mdpcloud.criteria import Discounted
    from mdpcloud.indices.restless.elimination import eliminate

    if not isinstance(criterion, Discounted):
        raise InputError(
            f"criterion is {criterion!r}; Gittins' index is that of a discounted arm: give "
            "Discounted(factor=...) in discrete time or Discounted(rate=...) in continuous time"
        )
    alpha = criterion.rate_for(discrete)
    name, values, sign = earned
    rewards = sign * per_state(values, name, moves.shape[0])
    least = float(rewards.min())
    with np.errstate(over="ignore", invalid="ignore"):
        found = eliminate(moves, rewards - least, alpha)
        above = found.reward / found.time
        index, error = above + least, _bounds(above, least, found.relative)
    if not np.isfinite(index + error).all():
        raise SolveError("the numbers of the arm are too large or too small for float64")
    return ArmIndex(
        Verdict.INDEXABLE,
        "an arm that stays where it is while passive has an index (Gittins 1979)",
        values=index,
        error=error,
        error_kind="bound",
        marginal_cost=found.reward + least * found.time,
        marginal_work=found.time,
    )


def _bounds(above: Floats, least: float, relative: Floats) -> Floats:
    """Errors of above + least, where `above` has relative errors, `least` none."""
    unit = float(np.finfo(np.float64).eps)
    wide = relative / np.maximum(1.0 - relative, 0.0)  # of the exact number
    bound = (1.0 + 8.0 * unit) * (wide * above + unit * (np.abs(above + least) + above))
    largest = float(above.max())
    return bound + UNDERFLOW * max(1.0, largest) if largest > 0.0 else bound
