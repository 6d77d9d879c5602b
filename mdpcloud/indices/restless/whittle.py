"""Whittle's index of any restless arm, with a verdict on whether it has one.

Birth-death arms whose optimal policies are thresholds take O(n) operations
(`mdpcloud.indices.birth_death`); any other arm is followed along its optimal policies as the price
of work grows (`mdpcloud.indices.path`), which also tells whether there is an index.
"""

from __future__ import annotations

import dataclasses
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mdpcloud.errors import InputError, SolveError
from mdpcloud.indices.restless.arm import Arm
from mdpcloud.indices.restless.birth_death_arm import BirthDeathArm
from mdpcloud.indices.restless.model_arm import checked_arm
from mdpcloud.indices.restless.result import ArmIndex, IndexWarning, Verdict

__all__ = ["whittle"]

Progress = Callable[[int, int], object]

MOST_STATES = 20_000  # of a birth-death arm that is followed along its policies
SETTLED = 1e-9  # relative difference up to which the index at twice the room is the same


def whittle(arm: Any, criterion: Any = None, *, progress: Progress | None = None) -> ArmIndex:
    """Whittle's index of a restless arm, or a reason why there is none.

    Parameters
    ----------
    arm : Arm, BirthDeathArm, Model or TabularModel
        A model must have one decision with two actions, of which the second is active; `model_arm`
        says more.
    criterion : AverageCost or Discounted, optional
        The average cost by default.
    progress : function of (changes done, changes expected), optional

    Returns
    -------
    ArmIndex
        ``verdict``, and ``index`` (n,) where the verdict is `indexable`; asking another arm for its
        index raises `NoIndexError`. For an arm given by rewards it is the subsidy for passivity.

    Raises
    ------
    InputError
        If the arm or the criterion is none.

    Warns
    -----
    IndexWarning
        If the arm is a cut of an unbounded one, and near its boundary the index differs from that
        at twice the room; ``settled`` says where.

    Notes
    -----
    Whittle (1988), Journal of Applied Probability 25A, 287-298.

    Examples
    --------
    >>> import mdpcloud as mc
    >>> stay, move = [[0.9, 0.1], [0.3, 0.7]], [[0.5, 0.5], [0.8, 0.2]]
    >>> arm = mc.indices.arm(stay, move, rewards1=[1.0, 3.0])
    >>> found = mc.indices.whittle(arm, mc.Discounted(factor=0.9))
    >>> found.verdict
    <Verdict.INDEXABLE: 'indexable'>
    >>> found.index.round(6)
    array([1.566929, 3.      ])
    """
    found = checked_arm(arm)
    alpha = _discount_rate(criterion, found.discrete)
    result = _verdict(found, alpha, progress)
    if found.enlarged is None or result.values is None:
        return result
    return _compared(found, result, alpha, progress)


def _discount_rate(criterion: Any, discrete: bool) -> float:
    from mdpcloud.criteria import AverageCost, Discounted

    criterion = AverageCost() if criterion is None else criterion
    if not isinstance(criterion, AverageCost | Discounted):
        raise InputError(
            f"criterion is {criterion!r}; an index has AverageCost() or Discounted(...)"
        )
    return criterion.rate_for(discrete)


def _verdict(arm: Arm | BirthDeathArm, alpha: float, progress: Progress | None) -> ArmIndex:
    if isinstance(arm, BirthDeathArm):
        from mdpcloud.indices.birth_death.birth_death import birth_death_index

        found = birth_death_index(arm, alpha)
        if found is not None:
            return found
        if arm.n > MOST_STATES:
            return ArmIndex(
                Verdict.UNDECIDED,
                f"no threshold policies are optimal, and {arm.n} states are too many to follow "
                f"other policies (at most {MOST_STATES})",
            )
        arm = arm.general()
    from mdpcloud.indices.path.path import MultichainPolicy, price_path
    from mdpcloud.indices.restless.verdict import verdict_of

    try:
        path = price_path(arm, alpha, progress=progress)
    except MultichainPolicy as error:
        return ArmIndex(Verdict.MULTICHAIN, str(error), offender=error.policy)
    except SolveError as error:
        return ArmIndex(Verdict.UNDECIDED, str(error))
    return verdict_of(arm, path, alpha)


# --- cuts of unbounded arms -----------------------------------------------------------------------


def _compared(
    arm: Arm | BirthDeathArm, result: ArmIndex, alpha: float, progress: Progress | None
) -> ArmIndex:
    """The index, with where it is the same at twice the room, and a warning where it is not."""
    assert arm.enlarged is not None
    larger = arm.enlarged()
    twice = _verdict(larger, alpha, progress)
    if twice.values is None:
        settled = np.zeros(arm.n, np.bool_)
        _warn(f"with twice the room the arm is {twice.verdict} ({twice.reason})")
    else:
        settled = _same(result, twice, _places(arm, larger))
        changed = np.flatnonzero(~settled & np.isfinite(result.index))  # inf: forced by the cut
        if changed.size:
            first = arm.label(int(changed[0]))
            _warn(
                f"the index of {changed.size} of {arm.n} states, the first of them "
                f"{first}, is not the same with twice the room: there it is an artefact of the cut"
            )
    return dataclasses.replace(result, settled=settled)


def _warn(text: str) -> None:
    warnings.warn(text, IndexWarning, stacklevel=4)


def _places(arm: Any, larger: Any) -> NDArray[np.intp]:
    """Number in the larger arm of every state."""
    if arm.label is str:
        return np.arange(arm.n)
    numbers = {larger.label(j): j for j in range(larger.n)}
    missing = [i for i in range(arm.n) if arm.label(i) not in numbers]
    if missing:
        raise InputError(f"with twice the room there is no state {arm.label(missing[0])}")
    return np.array([numbers[arm.label(i)] for i in range(arm.n)])


def _same(result: ArmIndex, twice: ArmIndex, places: NDArray[np.intp]) -> NDArray[np.bool_]:
    """Where two indices agree within their errors."""
    assert result.error is not None
    assert twice.error is not None
    own, other = result.index, twice.index[places]
    size = np.maximum(np.abs(own), np.abs(other))
    finite = np.isfinite(size)
    allowed = result.error + twice.error[places] + SETTLED * np.where(finite, size, 0.0)
    apart = np.abs(np.subtract(own, other, where=finite, out=np.zeros(own.size)))
    same: NDArray[np.bool_] = np.where(finite, apart <= allowed, own == other)
    return same
