"""Erlang's fixed point in Kelly's form by its unit loads, as a convex problem.

With y_i = -log(1 - E_i) and the units carried U_i = v_i (1 - Erl(v_i, C_i)), both increasing in
v_i, the equations are

    U_i = sum_j A_ij rho_j exp(-(A^T y)_j),

where a strictly convex function of y is least (F. P. Kelly, Adv. Appl. Prob. 18 (1986) 473-505).
Newton's method in log v has all digits of 1 - E_i however small it is, where the same equations in
E have none. It stops when the largest relative residual no longer falls.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from mdpcloud.queues.erlang import erlang_b

__all__ = ["UnitsBlocked", "blocked_by_loads", "erlang_losses"]

STEPS = 400
HALVINGS = 30
LONGEST = 2.0  # step of log v

Floats: TypeAlias = NDArray[np.float64]
Integers: TypeAlias = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class UnitsBlocked:
    """A solution: E_i and y_i per resource, and the largest error in E = T(E)."""

    blocked: Floats
    prices: Floats
    residual: float


def blocked_by_loads(loads: Floats, needs: Integers, room: Integers) -> UnitsBlocked:
    """The probabilities that a unit is blocked; the numbers are taken as checked.

    Examples
    --------
    >>> found = blocked_by_loads(np.array([8.0]), np.array([[1], [1]]), np.array([10, 10]))
    >>> found.blocked.round(9)
    array([0.09014845, 0.09014845])
    """
    blocked, prices = np.zeros(room.size), np.zeros(room.size)
    used = needs @ loads > 0.0
    if not used.any():
        return UnitsBlocked(blocked, prices, 0.0)
    rows, here = needs[used].astype(float), room[used]
    v = np.exp(_solved(loads, rows, here))
    prices[used] = np.log1p(_odds(here, v))
    again = np.exp(prices[used]) * (rows @ (loads * np.exp(-prices @ needs)))
    blocked[used], image = erlang_losses(here, v), erlang_losses(here, again)
    return UnitsBlocked(blocked, prices, float(np.abs(blocked[used] - image).max()))


def erlang_losses(room: Integers, loads: Floats) -> Floats:
    """Erlang's formula for every resource."""
    return np.array([erlang_b(c, a) for c, a in zip(room.tolist(), loads.tolist(), strict=True)])


def _odds(room: Integers, v: Floats) -> Floats:
    """B / (1 - B), without the difference: v B(C-1) / C."""
    found: Floats = v * erlang_losses(room - 1, v) / room
    return found


def _solved(loads: Floats, needs: Floats, room: Integers) -> Floats:
    """Logarithms of the unit loads v."""
    logs = np.log(np.minimum(needs @ loads, room))
    gap, slope = _equations(loads, needs, room, logs)
    for _ in range(STEPS):
        step = np.linalg.lstsq(slope, -gap, rcond=None)[0]
        step *= min(1.0, LONGEST / max(float(np.abs(step).max()), 1e-300))
        for halving in range(HALVINGS):
            other = logs + 0.5**halving * step
            after, steeper = _equations(loads, needs, room, other)
            if np.abs(after).max() < np.abs(gap).max():
                break
        else:
            return logs
        logs, gap, slope = other, after, steeper
    return logs


def _equations(loads: Floats, needs: Floats, room: Integers, logs: Floats) -> tuple[Floats, Floats]:
    """log U - log(A x), and its derivative in log v."""
    v = np.exp(logs)
    ratio = _odds(room, v)
    prices, carried = np.log1p(ratio), v / (1.0 + ratio)
    jobs = loads * np.exp(-prices @ needs)
    units = needs @ jobs
    free = np.maximum(room - carried, 0.0)
    rise = ratio * free  # dy / dlog v
    own = np.maximum(1.0 - rise, 0.0)  # dlog U / dlog v
    slope = np.diag(own) + (needs * jobs) @ needs.T * rise / units[:, None]
    return np.log(carried / units), slope
