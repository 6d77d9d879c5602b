r"""Index of a birth-death arm in O(n) operations, where threshold policies are optimal.

Model. In state i of 0..n-1 the arm moves up at rate b_a(i) and down at rate d_a(i), costs c_a(i)
and works w_a(i) per unit of time, under action a, 0 passive or 1 active. A policy's values v solve

    G_i = c(i) + p w(i) + b(i) eta_i - d(i) eta_{i-1},    eta_i = v(i+1) - v(i),

where G_i = alpha v(i) if discounted at rate alpha, and the gain if alpha = 0. Let T_k be active in
the states before k and passive from k on. (Where arms are active in high states, the states are
counted from above: births and deaths change places.)

Elimination. From below under the active action G_{i+1} = c_i + p w_i + rho_i eta_i, from above
under the passive one G_{i-1} = c_i + p w_i - rho_i eta_{i-1}. With u for the rate onward, s for the
rate back, rho the rate of the states before, 1 - o = rho / (rho + s),

    rho_i = alpha + u (1 - o),    c_i = (1 - o) c(i) + o c_{i-1},    w_i likewise.

These are averages. Kept are their differences from the next state, Q_i = c(i+1) - c_i = [c(i+1) -
c(i)] + o Q_{i-1}, and V_i for work. In state k, D being passive minus active, what activity saves
there under T_k is a_k - p m_k with

    Z a_k = X (QL + Dc + QR) + Db rhoL QR - Dd rhoR QL + (d1 rhoR + b0 rhoL + rhoL rhoR) Dc,
    -Z m_k the same of V and Dw,      X = d1 b0 - b1 d0,      Z = d0 rhoR + b0 rhoL + rhoL rhoR,

and with b1, d1 instead of b0, d0 in Z under T_{k+1}. W_k = a_k / m_k.

Theorem. If all T_k are unichain, W_k is nonincreasing in k, and the marginal work m_i under T_i,
under the all-active and under the all-passive policy is positive in every state i, but for those
whose actions are the same, then the arm is indexable, W is its index, and T_k is optimal at the
prices from W_k to W_{k-1}.

Proof. Let m_i(k) be the marginal work of i under T_k, and y(k) the values of work, i.e. the slopes
of v in p. The policies T_{k+1} and T_k differ in k alone, so y(k+1) - y(k) is m_k(k) > 0 times the
mean time spent in k, in total until discounting or a visit to a fixed recurrent state. Below k it
solves the homogeneous equations of the active action, which have one solution up to a factor: with
eta_{i-1} = G_i / rho_{i-1} and b1 eta_i = G_i + d1 eta_{i-1}, of one sign, as is G. Hence for all k
> i the difference m_i(k+1) - m_i(k) is a factor >= 0 times -[Db (rhoL + d1) - Dd b1] of state i:
m_i(k) is monotone in k > i, and lies between m_i(i+1), a positive multiple of m_i(i), and m_i(n).
In the same way for k <= i the sign is that of Db d0 - Dd (rhoR + b0), and m_i(k) lies between
m_i(0) and m_i(i). So all m_i(k) are positive. Now follow T_k at the prices from W_k to W_{k-1}: at
W_k the policies T_k and T_{k+1} have the same values, so what activity saves in i is a continuous
function of p with the slopes -m_i(k) < 0, and 0 at p = W_i. Each T_k satisfies the optimality
equation on its interval. []

The all-active and all-passive policies need no look where their work is the same in every state, or
where the signs above say that marginal work grows on the way to them.

End states. If both actions move alike in the first or the last state, as where jobs are refused
and no room is left, its index W_e = Dc / -Dw depends on nothing and may lie out of order. The other
states then have two indices each, for either action there; both are on the same side of W_e, and
the one counts whose action is right on that side. The proof is the same, for both actions.

Certificate. All error bounds are carried along (`mdpcloud.indices.birth_death.block_kernels`): rho
with a relative one, which o < 1 damps, Q and V with absolute ones. Differences that cancel are not
formed: with sigma = rho + s - u, seen from the next state (rates s and u are its own), which
follows the recursion of Q with the fall of u - s in place of the rise of costs, plus alpha, the
factor of Dc and Dw is X + d1 rhoR + b0 rhoL + rhoL rhoR = b1 sigmaR + d0 sigmaL + sigmaL sigmaR.

Margins must be positive, and the order right, beyond or within the errors, respectively; values out
of order within them are levelled. Where the order fails, it is tried again with errors that allow
for one rounding of every number of the arm: decimals such as 0.3 i have indices that are out of
order in the last digits.

Sources: marginal productivity and threshold policies: Nino-Mora, "Dynamic priority allocation via
restless bandit marginal productivity indices", TOP 15 (2007) 161-198. The elimination is that of
Grassmann, Taksar and Heyman, Operations Research 33 (1985) 1107-1116, for a line of states.
"""

from __future__ import annotations

import dataclasses
import itertools
import math
from dataclasses import dataclass

import numpy as np

from mdpcloud.indices.birth_death.block_kernels import UNIT, far_blocks
from mdpcloud.indices.birth_death.kernels import (
    CERTIFIED,
    DISORDER,
    put_in_order,
    threshold_indices,
    work_is_marginal,
)
from mdpcloud.indices.restless.birth_death_arm import BirthDeathArm
from mdpcloud.indices.restless.result import ArmIndex, Verdict
from mdpcloud.model.matrices import Floats

__all__ = ["birth_death_index"]

LEAST_RATE = 2.0**-480  # of the positive rates, where the largest is near 1: products must not
LARGEST_COST = 2.0**600  # underflow or overflow
NEAR = (-20, 100)  # binary exponents of a largest rate that is near enough to 1
SLIGHT = 2.0**-30  # of the scale of indices, the most that counts as rounding


@dataclass(frozen=True, eq=False)
class _Line:
    """An arm seen from the end whose states stay active longest."""

    alpha: float
    onward: Floats
    back: Floats
    costs: Floats
    work: Floats
    step: int
    given: float
    """Rounding errors that every number may have itself."""

    @property
    def first(self) -> int:
        """The state that stays active longest."""
        return 0 if self.step > 0 else int(self.costs.shape[1]) - 1

    @property
    def last(self) -> int:
        """The state at the other end."""
        return int(self.costs.shape[1]) - 1 - self.first

    def held(self, state: int, action: int) -> _Line:
        """The line with one action in a state in which both move alike."""
        costs, work = self.costs.copy(), self.work.copy()
        costs[:, state], work[:, state] = costs[action, state], work[action, state]
        return dataclasses.replace(self, costs=costs, work=work)


def birth_death_index(arm: BirthDeathArm, alpha: float) -> ArmIndex | None:
    """Index of a birth-death arm, if policies with a threshold are optimal at every price.

    Parameters
    ----------
    arm : BirthDeathArm
    alpha : float
        Discount rate >= 0 (1/time); 0 for the average cost.

    Returns
    -------
    ArmIndex or None
        With bounds of the rounding errors. None if it cannot be certified that thresholds are
        optimal; this does not say that the arm has no index. States in which both actions are the
        same, where every number is an index, have that of a neighbour.

    Examples
    --------
    A queue that refuses jobs at a price of work 0.8 per unit of time, the rate of arrivals:

    >>> from mdpcloud.indices.restless.birth_death_arm import birth_death_arm
    >>> jobs = lambda i: i
    >>> arm = birth_death_arm(0.8, 0.0, 1.0, 1.0, jobs, jobs, work1=0.8, room=30)
    >>> birth_death_index(arm, 0.0).index[:3]
    array([1.  , 2.8 , 5.24])
    """
    for low, given in itertools.product(_directions(arm), (0.0, 1.0)):
        line = _line(arm, alpha, low, given)
        if line is None:
            return None
        found = _index(line)
        if found is not None:
            return _with_top(found, arm.top)
    return None


def _directions(arm: BirthDeathArm) -> tuple[bool, bool]:
    """Whether low states stay active longest, the likelier case first.

    An arm that activity pushes down is usually active in high states.
    """
    with np.errstate(over="ignore"):
        down = arm.births[0].mean() + arm.deaths[1].mean()
        up = arm.births[1].mean() + arm.deaths[0].mean()
    return (True, False) if up > down else (False, True)


def _with_top(found: ArmIndex, top: int | None) -> ArmIndex:
    if top is not None:
        assert found.values is not None
        assert found.error is not None
        found.values[-1], found.error[-1] = (np.inf if top == 1 else -np.inf), 0.0
    return found


def _line(arm: BirthDeathArm, alpha: float, low: bool, given: float) -> _Line | None:
    """The arm, with rates times a power of two if need be; None if they are too far apart."""
    largest = max(float(arm.births.max()), float(arm.deaths.max()), alpha)
    exponent = int(np.frexp(largest)[1])
    births, deaths, rate = arm.births, arm.deaths, alpha
    if not NEAR[0] <= exponent <= NEAR[1]:
        births, deaths = np.ldexp(births, -exponent), np.ldexp(deaths, -exponent)
        rate = math.ldexp(alpha, -exponent)
    if any(_underflows(rates) for rates in (births, deaths, np.array(rate))):
        return None
    if any(max(x.max(), -x.min()) > LARGEST_COST for x in (arm.costs, arm.work)):
        return None
    onward, back = (births, deaths) if low else (deaths, births)
    return _Line(rate, onward, back, arm.costs, arm.work, 1 if low else -1, given)


def _underflows(rates: Floats) -> bool:
    return bool(np.min(rates, where=rates > 0.0, initial=np.inf) < LEAST_RATE)


def _index(line: _Line) -> ArmIndex | None:
    """The index, if states leave the active set one after the other from the last one on."""
    beyond = _far_blocks(line, 0)
    status, found, turns = _swept(line, beyond, ordered=True)
    if status == DISORDER and line.given == 0.0 and _is_slight(line, found[0]):
        return None  # the next attempt allows for rounded numbers
    return (
        _result(line, _certified(line, beyond, status, found, turns))
        or _with_free_end(line, line.first, beyond)
        or _with_free_end(line, line.last, None)
    )


def _is_slight(line: _Line, values: Floats) -> bool:
    """Whether the first index out of order, the last one found, is so by ever so little."""
    known = values[np.isfinite(values)][:: line.step]
    return bool(known.size and known[-1] - known.min() <= _allowance(line, known))


def _far_blocks(line: _Line, action: int) -> Floats:
    found = np.empty((line.costs.shape[1], 9))
    rows = (values[action] for values in (line.onward, line.back, line.costs, line.work))
    far_blocks(line.alpha, *rows, line.step, line.given, found)
    return found


def _swept(line: _Line, beyond: Floats, ordered: bool) -> tuple[int, Floats, tuple[bool, bool]]:
    """Status, indices, errors, marginal costs and work (4, n), and which marginal work may turn."""
    found = np.full((4, line.costs.shape[1]), np.nan)
    status, *turns = threshold_indices(
        *(line.alpha, line.onward, line.back, line.costs, line.work, line.step),
        *(line.given, beyond, ordered, found),
    )
    return status, found, (turns[0], turns[1])


def _certified(
    line: _Line, beyond: Floats, status: int, found: Floats, turns: tuple[bool, bool]
) -> Floats | None:
    """What was found, if all marginal work is positive."""
    if status != CERTIFIED:
        return None
    for action, turn in zip((1, 0), turns, strict=True):
        if turn and not _work_is_marginal(line, action, beyond):
            return None
    return found


def _work_is_marginal(line: _Line, action: int, passive_blocks: Floats) -> bool:
    """Whether marginal work is positive under the policy that always takes one action."""
    if np.ptp(line.work[action]) == 0.0 and bool(np.all(line.work[0] < line.work[1])):
        return True
    beyond = _far_blocks(line, 1) if action == 1 else passive_blocks
    return bool(
        work_is_marginal(
            *(line.alpha, line.onward, line.back, line.work, line.step, line.given), action, beyond
        )
    )


def _result(line: _Line, found: Floats | None) -> ArmIndex | None:
    """The index, if it is in order."""
    if found is None:
        return None
    values, errors, marginal_cost, marginal_work = found
    moved = int(put_in_order(values, errors, line.step, _allowance(line, values)))
    if moved < 0:
        return None
    reason = "policies with a threshold are optimal at every price"
    if line.given > 0.0:
        reason += " within the rounding of the arm's numbers"
    if moved:
        reason += f"; the order of {moved} states is decided within the errors of their indices"
    return ArmIndex(
        Verdict.INDEXABLE, reason, values, errors, "bound", marginal_cost, marginal_work
    )


def _allowance(line: _Line, values: Floats) -> float:
    """How far indices that are out of order may be apart: ever so little of those there are."""
    finite = np.abs(values[np.isfinite(values)])
    effort = float(np.ptp(line.work))
    usual = float(np.ptp(line.costs)) / effort if effort > 0.0 else 0.0
    return SLIGHT * max(usual, float(finite.max(initial=0.0)))


# --- ends in which both actions move alike --------------------------------------------------------


def _with_free_end(line: _Line, end: int, passive_blocks: Floats | None) -> ArmIndex | None:
    """The index, if it is in order but for an end state in which both actions move alike.

    `passive_blocks` may be given for the first state, which they do not depend on.
    """
    alike = all(rates[0, end] == rates[1, end] for rates in (line.onward, line.back))
    saved = float(line.costs[0, end] - line.costs[1, end])
    done = float(line.work[1, end] - line.work[0, end])
    if not alike or done < 0.0 or saved == done == 0.0:
        return None
    own = saved / done if done > 0.0 else math.copysign(math.inf, saved)
    halves = []
    for action, never in ((0, math.inf), (1, -math.inf)):
        if own != never:
            held = line.held(end, action)
            beyond = _far_blocks(held, 0) if passive_blocks is None else passive_blocks
            half = _certified(held, beyond, *_swept(held, beyond, ordered=False))
            if half is None:
                return None
            halves.append(half)
    own_error = _end_error(line, end, own, done)
    merged = _on_their_sides(halves[0], halves[-1], own, own_error)
    found = _result(line, merged)
    if found is not None:
        merged[:, end] = own, own_error, saved, done
    return found


def _end_error(line: _Line, end: int, own: float, done: float) -> float:
    """Error of the quotient of gaps in cost and work, and of the numbers given."""
    if done == 0.0:
        return 0.0
    cost, work = (float(np.abs(values[:, end]).sum()) for values in (line.costs, line.work))
    return UNIT * (4.0 * abs(own) + line.given * (cost + abs(own) * work) / done)


def _on_their_sides(passive: Floats, active: Floats, own: float, error: float) -> Floats:
    """Of each state the column whose action in the end state is right at its index."""
    with np.errstate(invalid="ignore"):  # inf - inf
        unsure = np.abs(passive[0] - own) <= passive[1] + error
        apart = np.abs(passive[0] - active[0])
    merged: Floats = np.where(passive[0] >= own, passive, active)
    unsure &= (apart > 0.0) & (merged[1] >= 0.0)
    merged[1, unsure] = np.maximum(passive[1], active[1])[unsure] + apart[unsure]
    return merged
