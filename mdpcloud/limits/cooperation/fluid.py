"""Fluid limit of two cooperating centres: a differential equation that slides along thresholds.

The equation is that of `mdpcloud.limits.cooperation.point`, with the state (x_00, x_01, x_10, x_11)
per unit of the scale. A mode is the side on which each centre is of its threshold: below it keeps
all jobs of its type (g_p = 1), above it none, and at it g_p holds the use of its guarded resource
there. With one centre at its threshold its own balance gives g_p; with both at theirs the balances
of Proposition 3.3 (Thompson 2017) do:

    R l_00 g_0 - l_11 g_1 = R m_0 x_00 + m_1 x_10 - l_10 - l_11
    C l_11 g_1 - l_00 g_0 = C m_1 x_11 + m_0 x_01 - l_01 - l_00

A centre leaves its threshold where its g_p comes to 0 or 1. Where thresholds are hit, at once or
one after the other, the next mode is that of the solution of these balances in [0, 1]^2, which
`kept` finds: a centre whose g_p is 1 there falls below, one whose g_p is 0 rises above.

Losses are not part of the equation, so a trajectory that comes to a capacity is refused.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from mdpcloud.errors import InputError, NoLimitError
from mdpcloud.limits.cooperation.equilibrium import conditions
from mdpcloud.limits.cooperation.point import Pair, TwoCentres, balance, inner, kept
from mdpcloud.limits.trajectory import Mode, Trajectory, checked_numbers, integrate

__all__ = ["trajectory"]

Array: TypeAlias = NDArray[np.float64]
Sides: TypeAlias = tuple[str, ...]

SIDES = ("below", "at", "above")
LABELS = tuple(f"mean_jobs[{j}][{k}]" for j in (0, 1) for k in (0, 1))
NEAR = 1e-9  # relative to the capacity: how near to a threshold is at it
EDGE = 1e-8  # of a probability: what counts as 0 or 1
AT_ONCE = 1e-6  # unit of time


def trajectory(
    centres: TwoCentres,
    horizon: float,
    start: Sequence[float] = (0.0, 0.0, 0.0, 0.0),
    times: Sequence[float] | None = None,
) -> Trajectory:
    """The fluid trajectory from a state.

    Parameters
    ----------
    centres : TwoCentres
    horizon : float
        Last time.
    start : sequence of 4 float
        (x_00, x_01, x_10, x_11) per unit of the scale, within the capacities.
    times : sequence of float, optional
        By default 201 at equal distances.

    Raises
    ------
    InputError
        When the start has other than four numbers >= 0, or uses more than there is.
    NoLimitError
        When R C = 1, or a resource is used up on the way.

    Examples
    --------
    >>> rates, room = ((0.5, 0.1), (0.1, 0.5)), ((1.0, 1.0), (1.0, 1.0))
    >>> centres = TwoCentres(rates, (1.0, 1.0), (2.0, 2.0), room, (0.9, 0.9))
    >>> path = trajectory(centres, 4.0, times=[4.0])
    >>> path.states.round(7).tolist()
    [[0.3109894, 0.2780212, 0.2780212, 0.3109894]]
    >>> [(round(time, 7), what) for time, what in path.changes]
    [(1.7047481, 'centre 0 reaches its threshold'), (1.7047481, 'centre 1 reaches its threshold')]
    """
    conditions(centres)  # R C > 1
    fluid = _Fluid(centres)
    fluid.check(start)
    modes = {" ".join(sides): fluid.mode(sides) for sides in itertools.product(SIDES, SIDES)}
    return integrate(modes, fluid.mode_at, start, horizon, labels=LABELS, times=times)


class _Fluid:
    """The equation of two centres."""

    def __init__(self, centres: TwoCentres) -> None:
        self.centres = centres
        self.arrivals = np.array(centres.arrival_rates).ravel()
        self.services = np.repeat(centres.service_rates, 2)
        self.most = centres.arrival_rates[0][0], centres.arrival_rates[1][1]
        self.uses = np.zeros((2, 2, 4))
        for k, m, j in itertools.product((0, 1), (0, 1), (0, 1)):
            self.uses[k, m, 2 * j + k] = centres.requirement(j, m)
        self.guarded = np.array([self.uses[0, 0], self.uses[1, 1]])
        self.levels = np.array(centres.levels)
        self.capacities = np.array(centres.capacities)

    def check(self, start: Sequence[float]) -> None:
        x = checked_numbers("start", start)
        if x.shape != (4,) or not (x >= 0.0).all():
            raise InputError(f"start must be four numbers >= 0, {', '.join(LABELS)}; not {start!r}")
        over = self.uses @ x - self.capacities
        if (over > NEAR * self.capacities).any():
            k, m = np.unravel_index(np.argmax(over), (2, 2))
            raise InputError(
                f"start {start!r} uses {over[k, m]:.3g} more than the capacity of resource {m} in "
                f"centre {k}, {self.capacities[k, m]:.6g}"
            )

    # --- the drift ----------------------------------------------------------------------------

    def _drift(self, sides: Sides, x: Array) -> Array:
        a, b = (most - w for most, w in zip(self.most, self.rates(sides, x), strict=True))
        change: Array = self.arrivals + np.array([-a, a, b, -b]) - self.services * x
        return change

    def _balance(self, x: Array) -> Pair:
        return balance(self.centres, ((x[0], x[1]), (x[2], x[3])))

    def rates(self, sides: Sides, x: Array) -> Pair:
        """Rates (l_00 g_0, l_11 g_1) at which jobs are kept; in a box or not."""
        (r, c), (b0, b1) = self.centres.needs, self._balance(x)
        if sides == ("at", "at"):
            return inner((r, c), (b0, b1))
        w0, w1 = (most * (side == "below") for most, side in zip(self.most, sides, strict=True))
        if sides[0] == "at":
            return (b0 + w1) / r, w1
        return (w0, (b1 + w0) / c) if sides[1] == "at" else (w0, w1)

    # --- modes --------------------------------------------------------------------------------

    def mode(self, sides: Sides) -> Mode:
        """The equation while each centre is on one side of its threshold."""
        gaps: dict[str, Callable[[Array], float]] = {}
        for p in (0, 1):
            gaps |= self._gaps(p, sides)
        for k, m in itertools.product((0, 1), (0, 1)):
            gaps[f"resource {m} of centre {k} is used up"] = partial(self._free, k, m)
        held = [p for p, side in enumerate(sides) if side == "at"]
        return Mode(
            partial(self._drift, sides), gaps, partial(self._project, held) if held else None
        )

    def _gaps(self, p: int, sides: Sides) -> Mapping[str, Callable[[Array], float]]:
        side, level = sides[p], self.levels[p]
        if side == "below":
            return {f"centre {p} reaches its threshold": lambda x: level - self.guarded[p] @ x}
        if side == "above":
            return {f"centre {p} falls to its threshold": lambda x: self.guarded[p] @ x - level}
        most = self.most[p]
        return {
            f"centre {p} falls below its threshold": lambda x: 1.0 - self.rates(sides, x)[p] / most,
            f"centre {p} rises above its threshold": lambda x: self.rates(sides, x)[p] / most,
        }

    def _free(self, k: int, m: int, x: Array) -> float:
        return float(self.capacities[k, m] - self.uses[k, m] @ x)

    def _project(self, held: Sequence[int], x: Array) -> Array:
        """The nearest state at the thresholds of some centres."""
        surfaces = self.guarded[held]
        near: Array = x - np.linalg.pinv(surfaces) @ (surfaces @ x - self.levels[held])
        return near

    def mode_at(self, x: Array) -> str:
        """The mode that follows."""
        use = self.guarded @ x
        sides = tuple(
            "at" if abs(y - level) <= NEAR * capacity else "below" if y < level else "above"
            for y, level, capacity in zip(use, self.levels, np.diag(self.capacities), strict=True)
        )
        settled = self._settled(sides, x)
        self._check_capacity(settled, x)
        return " ".join(settled)

    def _settled(self, sides: Sides, x: Array) -> Sides:
        """The sides that follow, by the solution of the balances of the centres that are at."""
        at = [p for p in (0, 1) if sides[p] == "at"]
        if all(self._stays(p, sides, x) for p in at):
            return sides
        right, w, found = self._balance(x), list(self.rates(sides, x)), list(sides)
        if len(at) == 2:
            w = list(kept(self.centres.needs, right, self.most))
        for p in at:
            w[p] = min(max(w[p], 0.0), self.most[p])
            rise = self.centres.needs[p] * w[p] - w[1 - p] - right[p]
            found[p] = _left(w[p], self.most[p], rise)
        return tuple(found)

    def _stays(self, p: int, sides: Sides, x: Array) -> bool:
        """Whether g_p is in [0, 1] at a threshold, and does not leave it at once."""
        if self.most[p] == 0.0:
            return False
        now = self.rates(sides, x)[p] / self.most[p]
        then = self.rates(sides, x + self._drift(sides, x))[p] / self.most[p]  # affine in x
        return all(
            gap > EDGE or (gap >= 0.0 and gap >= AT_ONCE * fall)
            for gap, fall in ((now, now - then), (1.0 - now, then - now))
        )

    def _check_capacity(self, sides: Sides, x: Array) -> None:
        change = self.uses @ self._drift(sides, x)
        for k, m in itertools.product((0, 1), (0, 1)):
            capacity = self.capacities[k, m]
            if self._free(k, m, x) <= NEAR * capacity and change[k, m] > -EDGE * capacity:
                raise NoLimitError(
                    f"the fluid trajectory uses up resource {m} of centre {k}, capacity "
                    f"{capacity:.6g}, where jobs are lost; it is known below the capacities only"
                )


def _left(rate: float, most: float, rise: float) -> str:
    """Side to which a centre goes from its threshold, where its use rises at this rate."""
    if EDGE * most < rate < (1.0 - EDGE) * most:
        return "at"
    if most == 0.0:
        return "above" if rise > 0.0 else "below"
    return "below" if rate > 0.5 * most else "above"
