"""Quasi-birth-death processes: chains on levels 0, 1, 2, ... that move one level at a time.

Level k has m_k phases. From level b on (after the boundary) all levels have the rates A0 up, A1
within the level and A2 down. Then, with pi_k the law of level k,

    G = (-(A1 + A0 G))^-1 A2           phases in which the level below is first entered,
    R = A0 (-(A1 + A0 G))^-1           pi_{k+1} = pi_k R for k >= b,
    S_k = local_k + up_k G_{k+1},  G_k = (-S_k)^-1 down_k,  pi_{k+1} = pi_k up_k (-S_{k+1})^-1

for k < b, pi_0 is the null vector of S_0, and sums over all levels are those of
(I - R)^-1 = I + R + R^2 + ...

G is found by logarithmic reduction (Latouche and Ramaswami, "A logarithmic reduction algorithm for
quasi-birth-death processes", J. Appl. Prob. 30 (1993) 650-674), which stops when an update changes
no entry of G; its row sums need not reach 1 to the last digit, so that a test of them may never
stop. Every matrix that is inverted is minus the generator of a chain with known rates out of it,
and is factored without subtraction (Grassmann, Taksar and Heyman, Oper. Res. 33 (1985) 1107-1116;
error bounds by O'Cinneide, Numer. Math. 73 (1996) 507-519); powers of R are summed by squaring,
from positive terms.

Every law is checked: what flows in and out of its states differs by r = pi Q, and with tau(x) the
mean time from x to a reference state, sum |pi - exact| <= 2 sum_x |r(x)| tau(x), see
`mdpcloud.limits.qbd.error`. Book: Latouche and Ramaswami, "Introduction to matrix analytic methods
in stochastic modeling", SIAM 1999, chapters 6-8 and 12.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from mdpcloud.errors import InputError, NoLimitError
from mdpcloud.limits.qbd.algebra import Factored, dot
from mdpcloud.limits.qbd.error import mean_times, residual_of
from mdpcloud.limits.qbd.levels import Level, check_levels, in_a_near_unit
from mdpcloud.limits.qbd.passage import (
    Passage,
    first_entries,
    passage,
    powers_sum,
)
from mdpcloud.solve.stationary.kernels import reduce_states
from mdpcloud.solve.stationary.stationary import recurrent_classes

__all__ = ["Level", "QBDLaw", "quasi_birth_death"]

Array: TypeAlias = NDArray[np.float64]

CRITICAL = 1e-13
"""Drifts that are smaller, relative to the rates up and down, are rounding errors."""


@dataclass(frozen=True, eq=False)
class QBDLaw:
    """The stationary law of a quasi-birth-death process.

    Attributes
    ----------
    boundary : tuple of (m_k,) arrays
        Laws of the levels of the boundary.
    first : (m,) array
        Law of the first level that repeats, b = ``len(boundary)``.
    ratio : (m, m) array
        R: the law of level k + 1 is that of level k times R, for k >= b.
    entries : (m, m) array
        G: probabilities of the phases in which level k - 1 is first entered from level k > b.
    sums : (m, m) array
        (I - R)^-1.
    drift : float
        Mean change of the level per unit of time in the levels that repeat; < 0.
    error : float
        Bound of the sum of the absolute errors of all probabilities, rounding included.
    residual : float
        Sum over all states of |inflow - outflow|, over that of the outflows.
    steps : int
        Doublings of the logarithmic reduction.
    """

    boundary: tuple[Array, ...]
    first: Array
    ratio: Array
    entries: Array
    sums: Array
    drift: float
    error: float
    residual: float
    steps: int

    def level(self, k: int) -> Array:
        """Law of level k, (m_k,)."""
        if k < len(self.boundary):
            return self.boundary[k]
        law, power, left = self.first, self.ratio, k - len(self.boundary)
        while left:
            if left % 2:
                law = dot(law, power)
            left //= 2
            if left:
                power = dot(power, power)
        return law

    def tail(self, k: int) -> Array:
        """Phases (m,) of all levels from k >= b on, together."""
        if k < len(self.boundary):
            raise InputError(
                f"levels have the same phases from {len(self.boundary)} on; there is no tail of "
                f"phases from level {k}"
            )
        law: Array = dot(self.level(k), self.sums)
        return law

    def tail_probability(self, k: int) -> float:
        """Probability of the levels from k on."""
        b = len(self.boundary)
        return float(sum(law.sum() for law in self.boundary[k:]) + self.tail(max(k, b)).sum())

    @property
    def mean_level(self) -> float:
        """Mean of the level."""
        b = len(self.boundary)
        above = self.tail(b)
        beyond = dot(dot(above, self.ratio), self.sums)
        below = sum(k * float(law.sum()) for k, law in enumerate(self.boundary))
        return below + b * float(above.sum()) + float(beyond.sum())


def quasi_birth_death(boundary: Sequence[Level], repeating: Level) -> QBDLaw:
    """Stationary law of a quasi-birth-death process.

    Parameters
    ----------
    boundary : sequence of Level
        Levels 0 ... b-1, at least one, with any numbers of phases; the last has as many as the
        levels that repeat. The first has no rates down.
    repeating : Level
        Of all levels from b on.

    Returns
    -------
    QBDLaw

    Raises
    ------
    InputError
        When shapes do not fit, a rate is negative or not finite, or the chain is not irreducible.
    NoLimitError
        When the levels do not drift downwards: there is no stationary law.
    SolveError
        When numbers differ too much for floating point.

    Examples
    --------
    The M/M/1 queue with arrivals at rate 1 and services at rate 2:

    >>> law = quasi_birth_death([Level([[0.0]], [[1.0]])], Level([[0.0]], [[1.0]], [[2.0]]))
    >>> float(law.boundary[0][0]), law.mean_level, law.tail_probability(3)
    (0.5, 1.0, 0.125)
    """
    check_levels(boundary, repeating)
    drift = _drift(repeating)
    levels = in_a_near_unit((*boundary, repeating))
    *boundary, repeating = levels
    entries, steps = first_entries(repeating.up, repeating.local, repeating.down)
    ratio, sums, last = _repeated(repeating, entries)
    down = _passages(boundary, last)
    laws = _laws(levels, down, sums)
    residual = residual_of(levels, laws, ratio, sums)
    reference = max(range(len(laws)), key=lambda k: float(laws[k].sum()))
    times = mean_times(levels, down, reference, int(np.argmax(laws[reference])))
    return QBDLaw(
        boundary=tuple(laws[:-1]),
        first=laws[-1],
        ratio=ratio,
        sums=sums,
        entries=entries,
        drift=drift,
        error=residual.error(times, float(last.time.max())),
        residual=residual.relative,
        steps=steps,
    )


def _drift(level: Level) -> float:
    """Mean change of the level, weighted by the law of the phases; it must be negative."""
    rates = level.local + level.up + level.down
    np.fill_diagonal(rates, 0.0)
    np.fill_diagonal(rates, -rates.sum(axis=1))
    found = [
        (
            float(one.stationary @ level.up.sum(axis=1)[one.states]),
            float(one.stationary @ level.down.sum(axis=1)[one.states]),
        )
        for one in recurrent_classes(rates)
    ]
    up, down = max(found, key=lambda pair: pair[0] - pair[1])
    if up - down > -CRITICAL * (up + down):
        raise NoLimitError(
            "there is no stationary law: the levels do not drift downwards, the mean rate up is "
            f"{up:.9g} and the mean rate down {down:.9g}, above it by {down - up:.3g}"
        )
    return up - down


def _repeated(level: Level, entries: Array) -> tuple[Array, Array, Passage]:
    """R, (I - R)^-1, and the passage from a repeating level to the one below."""
    factored = Factored.of(level.local + dot(level.up, entries), level.down.sum(axis=1))
    ratio = factored.solve_left(level.up)
    sums = powers_sum(ratio)
    return ratio, sums, Passage(factored, entries, factored.solve(sums.sum(axis=1)))


def _passages(boundary: Sequence[Level], last: Passage) -> list[Passage]:
    """Passages from levels 1 ... b and b + 1 to the level below."""
    down = [last, last]
    for level in reversed(boundary[1:]):
        down.insert(0, passage(level.local, level.down, level.up, down[0]))
    return down


def _laws(levels: Sequence[Level], down: Sequence[Passage], sums: Array) -> list[Array]:
    """Laws of levels 0 ... b."""
    laws = [null_vector(levels[0].local + dot(levels[0].up, down[0].entries))]
    for k, level in enumerate(levels[:-1]):
        laws.append(down[k].factored.solve_left(dot(laws[k], level.up)))
    total = sum(float(law.sum()) for law in laws[:-1]) + float(dot(laws[-1], sums).sum())
    return [law / total for law in laws]


def null_vector(rates: Array) -> Array:
    """Stationary law of an irreducible chain, up to a factor, without subtraction."""
    phases = rates.shape[0]
    band, law = np.zeros((phases, 2 * phases - 1)), np.ones(phases)
    for i in range(phases):
        band[i, phases - 1 - i : 2 * phases - 1 - i] = rates[i]
    if not reduce_states(band, law):
        raise InputError(
            "level 0 has phases that do not communicate; the chain must be irreducible"
        )
    total: float = law.sum()
    return np.asarray(law / total)
