"""From the optimal policies at every price to a verdict on the index.

An arm is indexable if the set of states in which activity is optimal only shrinks as the price of
work grows (Whittle 1988); the index of a state is the price at which it leaves the set. A state
that enters the set again is shown by two prices, one at which it is passive and a higher one at
which it is active, and both single-arm problems are solved afresh before anything is said.
"""

from __future__ import annotations

import numpy as np

from mdpcloud.errors import SolveError
from mdpcloud.indices.restless.arm import Arm
from mdpcloud.indices.restless.result import ArmIndex, PricePath, Verdict, Witness
from mdpcloud.indices.restless.single_arm import SingleArm, solve_single_arm
from mdpcloud.model.matrices import Floats

__all__ = ["verdict_of"]

LARGEST_ERROR = 1e-3  # of an index, relative to the largest one or to the costs per work
MOST_TRIALS = 20  # states that enter again, whose witness is tried


def verdict_of(arm: Arm, path: PricePath, alpha: float) -> ArmIndex:
    """Verdict and index from the path of optimal policies.

    Parameters
    ----------
    arm : Arm
    path : PricePath
    alpha : float
        Discount rate, 0 for the average cost.
    """
    entering = np.flatnonzero(path.active)
    for k in entering[:MOST_TRIALS]:
        witness = _witness(arm, path, int(k), alpha)
        if witness is not None:
            return ArmIndex(
                Verdict.NOT_INDEXABLE, _sentence(arm, witness), witness=witness, path=path
            )
    if not path.complete:
        return _undecided(path, "the path of prices was cut short")
    spread = _spread(path, arm.n)
    if entering.size and not _negligible(path, spread):
        state = int(path.states[entering[0]])
        return _undecided(
            path,
            f"state {arm.label(state)} seems to become active again at price "
            f"{path.prices[entering[0]]:.6g}, by less than rounding errors",
        )
    found = _indexed(arm, path, spread)
    doubtful = _doubtful(arm, found)
    if doubtful is not None:
        return _undecided(path, f"the index of state {arm.label(doubtful)} is lost in rounding")
    return found


def _undecided(path: PricePath, reason: str) -> ArmIndex:
    return ArmIndex(Verdict.UNDECIDED, reason, path=path)


def _sentence(arm: Arm, witness: Witness) -> str:
    return (
        f"in state {arm.label(witness.state)} passivity is optimal at price {witness.lower:.6g} "
        f"and activity again at the higher price {witness.upper:.6g}"
    )


# --- the index ------------------------------------------------------------------------------------


def _spread(path: PricePath, n: int) -> Floats:
    """Largest minus smallest price at which each state changes.

    It is infinite where a state is active after it was passive and stays so, or was passive below
    all prices and becomes active.
    """
    low, high = np.full(n, np.inf), np.full(n, -np.inf)
    np.minimum.at(low, path.states, path.prices)
    np.maximum.at(high, path.states, path.prices)
    last = path.policy(path.states.size)
    entered = np.zeros(n, np.bool_)
    entered[path.states[path.active]] = True
    endless = entered & (last | ~path.first)
    return np.where(endless, np.inf, np.where(high > low, high - low, 0.0))


def _negligible(path: PricePath, spread: Floats) -> bool:
    """Whether every state that changes more than once does so within the errors of its prices."""
    error = np.zeros(spread.size)
    np.maximum.at(error, path.states, path.errors)
    return bool(np.isfinite(spread).all() and (spread <= 2.0 * error).all())


def _indexed(arm: Arm, path: PricePath, spread: Floats) -> ArmIndex:
    """The prices at which the states become passive for good."""
    last = np.where(arm.free, np.where(path.first, np.inf, -np.inf), -np.inf)
    last[arm.forced] = np.inf
    filled = [last, np.zeros(arm.n), np.zeros(arm.n), np.zeros(arm.n)]
    leaving = ~path.active
    states = path.states[leaving]
    parts = (path.prices, path.errors, path.marginal_cost, path.marginal_work)
    for array, part in zip(filled, parts, strict=True):
        array[states] = part[leaving]
    values, error, cost, work = filled
    return ArmIndex(
        Verdict.INDEXABLE,
        "every state becomes passive at most once as the price of work grows",
        values=values,
        error=error + spread,
        marginal_cost=cost,
        marginal_work=work,
        path=path,
    )


def _doubtful(arm: Arm, found: ArmIndex) -> int | None:
    """A state whose index has no digits, None if there is none."""
    assert found.values is not None
    assert found.error is not None
    finite = np.isfinite(found.values)
    largest = np.max(np.abs(found.values), where=finite, initial=0.0)
    effort = float(np.max(np.abs(arm.work[1] - arm.work[0])))
    earned = float(np.max(np.abs(arm.costs))) / effort if effort > 0.0 else 0.0
    scale = max(float(largest), earned)
    hopeless = finite & ~(found.error <= LARGEST_ERROR * scale)
    return int(np.argmax(hopeless)) if scale > 0.0 and hopeless.any() else None


# --- witnesses ------------------------------------------------------------------------------------


def _witness(arm: Arm, path: PricePath, k: int, alpha: float) -> Witness | None:
    """Two prices, confirmed, for the state that becomes active at the k-th change; None if none."""
    state = int(path.states[k])
    own = np.flatnonzero(path.states == state)
    place = int(np.searchsorted(own, k))
    before = int(own[place - 1]) if place else -1
    after = int(own[place + 1]) if place + 1 < own.size else path.states.size
    lower = _confirmed(arm, path, state, (before + 1, k), False, alpha)
    upper = _confirmed(arm, path, state, (k + 1, after), True, alpha)
    if lower is None or upper is None:
        return None
    (low, passive), (high, active) = lower, upper
    return Witness(
        state,
        low,
        high,
        (-float(passive.advantage[state]), float(active.advantage[state])),
        (passive.active, active.active),
    )


def _confirmed(
    arm: Arm, path: PricePath, state: int, intervals: tuple[int, int], on: bool, alpha: float
) -> tuple[float, SingleArm] | None:
    """A price in intervals first..last at which the state's action is strictly `on`."""
    first, last = intervals
    ends = np.concatenate([[-np.inf], path.prices, [np.inf]])
    low, high = ends[first : last + 1], ends[first + 1 : last + 2]
    widest = int(np.argmax(high - low))
    for price in (_inside(float(low[0]), float(high[-1])), _inside(low[widest], high[widest])):
        number = int(np.searchsorted(path.prices, price))
        try:
            found = solve_single_arm(arm, price, alpha, path.policy(number))
        except SolveError:
            continue
        margin = float(found.advantage[state])
        if (margin > 2.0 * found.error) if on else (margin < -2.0 * found.error):
            return price, found
    return None


def _inside(low: float, high: float) -> float:
    """A price between two, either of which may be infinite."""
    if np.isinf(low) and np.isinf(high):
        return 0.0
    if np.isinf(low):
        return high - max(1.0, abs(high))
    if np.isinf(high):
        return low + max(1.0, abs(low))
    return 0.5 * (low + high)
