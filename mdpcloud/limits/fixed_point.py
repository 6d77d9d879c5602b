"""Erlang's fixed point: a loss network as links that block independently, in two forms.

Kelly's form treats the A_ij units of a job as A_ij calls that are blocked one by one. With Erl(v,
C) Erlang's formula, the probabilities E_i that a unit of resource i is blocked solve

    E_i = Erl(v_i, C_i),   v_i = (1 - E_i)^{-1} sum_j A_ij rho_j prod_l (1 - E_l)^{A_lj},

and class j is lost with probability 1 - prod_i (1 - E_i)^{A_ij}. There is exactly one solution
(F. P. Kelly, "Blocking probabilities in large circuit-switched networks", Adv. Appl. Prob. 18
(1986) 473-505). The right-hand side T falls in every E_l, so that T maps a box [E - w, E + w] into
itself if T(E - w) <= E + w and T(E + w) >= E - w; then the solution is in the box (Brouwer), and w
is a certified error.

The knapsack form (Z. Dziong and J. W. Roberts, "Congestion probabilities in a circuit-switched
integrated services network", Performance Evaluation 7 (1987) 267-284) takes the A_ij units of a job
as one request: K_ij is the blocking of class j on resource i alone, by Kaufman and Roberts, with
the loads rho_l prod_{k != i} (1 - K_kl), and class j is lost with probability 1 - prod_i (1 -
K_ij). It is better where A_ij >= 2; it may have several solutions (S.-P. Chung and K. W. Ross,
"Reduced load approximations for multirate loss networks", IEEE Trans. Commun. 41 (1993) 1222-1231).

Kelly's form is solved by Newton's method, or where that does not halve the residual by solving for
one E_i after the other, which is coordinate descent in a convex function; the knapsack form by
repeated substitution, damped where its residual grows. Both stop when the residual does not fall.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from mdpcloud.errors import InputError, SolveError
from mdpcloud.queues.border import checked_count
from mdpcloud.queues.erlang import erlang_b
from mdpcloud.queues.knapsack import kaufman_roberts
from mdpcloud.queues.occupancy import checked_loads, checked_row

__all__ = ["FixedPoint", "erlang_fixed_point", "knapsack_fixed_point"]

ROUNDING = 2.0**-53
STEPS = 500
PATIENCE = 30  # steps that do not halve the residual
SHARES = (1.0, 0.5, 0.25, 0.125, 0.0625)  # of a step of Newton's method
SMALL = 1e-13  # residual at which Newton's method has nothing more to gain
GOOD = 1e-9  # residual above which a solution is none

Floats: TypeAlias = NDArray[np.float64]
Integers: TypeAlias = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class FixedPoint:
    """A solution of the fixed-point equations.

    Attributes
    ----------
    blocking : tuple of float
        Per class the approximate probability that a job is lost.
    by_resource : tuple
        E_i per resource in Kelly's form; one row of K_ij per resource in the knapsack form, with 0
        where a class needs nothing.
    residual : float
        Largest absolute error in the equations.
    error : float
        Absolute error of the blocking probabilities as functions of a solution of the equations.
    certified : bool
        Whether the error is a bound; else it is an estimate.
    notes : tuple of str
        What is known of other solutions.
    """

    blocking: tuple[float, ...]
    by_resource: tuple[float, ...] | tuple[tuple[float, ...], ...]
    residual: float
    error: float
    certified: bool
    notes: tuple[str, ...]


@dataclass(frozen=True, eq=False)
class _Network:
    loads: Floats
    needs: Integers
    room: Integers


def erlang_fixed_point(
    loads: Sequence[float], requirements: Sequence[Sequence[int]], capacities: Sequence[int]
) -> FixedPoint:
    """Kelly's form of the Erlang fixed point.

    Parameters
    ----------
    loads : sequence of float
        rho_j >= 0 of each class.
    requirements : sequence of sequences of int
        One row per resource: A_ij >= 0.
    capacities : sequence of int
        C_i >= 1 of each resource.

    Raises
    ------
    InputError
        When a number is out of range, or the lists do not match.
    SolveError
        When the residual stays above 1e-9.

    Examples
    --------
    >>> found = erlang_fixed_point([8.0], [[1], [1]], [10, 10])  # two links in series
    >>> [round(e, 12) for e in found.by_resource], round(found.blocking[0], 12)
    ([0.090148453283, 0.090148453283], 0.172170162938)
    """
    network = _checked(loads, requirements, capacities)
    found = _solved_kelly(network)
    residual = float(np.abs(found - _units_blocked(network, found)).max())
    _refuse_unsolved(residual, found)
    width, certified = _enclosed(network, found)
    accepted = np.exp(np.log1p(-found) @ network.needs)
    change = accepted * np.expm1((width / (1.0 - found)) @ network.needs) + 4.0 * ROUNDING
    return FixedPoint(
        tuple((1.0 - accepted).tolist()),
        tuple(found.tolist()),
        residual,
        float(change.max()),
        certified,
        ("the solution of the equations in Kelly's form is unique (Kelly 1986)",),
    )


def knapsack_fixed_point(
    loads: Sequence[float], requirements: Sequence[Sequence[int]], capacities: Sequence[int]
) -> FixedPoint:
    """The knapsack form of the Erlang fixed point; parameters and errors as in Kelly's form.

    Examples
    --------
    >>> found = knapsack_fixed_point([3.0, 2.5], [[2, 1], [1, 3]], [12, 15])
    >>> [round(b, 9) for b in found.blocking]
    [0.165651806, 0.207644633]
    """
    network = _checked(loads, requirements, capacities)
    starts = np.zeros(network.needs.shape), np.where(network.needs > 0, 0.9, 0.0)
    one, other = (_substituted(network, start) for start in starts)
    lost, other_lost = (_lost(found.point) for found in (one, other))
    apart = float(np.abs(lost - other_lost).max())
    error = max(one.error, other.error) * network.needs.shape[0]
    same = (
        "came to the same solution" if apart <= 10.0 * error + 1e-12 else f"differ by {apart:.1e}"
    )
    return FixedPoint(
        tuple(lost.tolist()),
        tuple(map(tuple, one.point.tolist())),
        one.residual,
        error,
        False,
        (
            "the equations in the knapsack form may have several solutions (Chung and Ross 1993); "
            f"starts from no blocking and from blocking 0.9 {same}",
        ),
    )


# --- Kelly's form ---------------------------------------------------------------------------------


def _solved_kelly(network: _Network) -> Floats:
    point = np.full(network.room.size, 0.1)
    best, residual, idle = point, math.inf, 0
    for _ in range(STEPS):
        image = _units_blocked(network, point)
        now = float(np.abs(point - image).max())
        idle = 0 if now < 0.5 * residual else idle + 1
        if now < residual:
            best, residual = point, now
        if idle == PATIENCE or (idle == 2 and residual <= SMALL):
            break
        step = np.linalg.solve(np.eye(point.size) - _slope(network, point, image), image - point)
        point = _stepped(network, point, step, now)
    return best


def _stepped(network: _Network, point: Floats, step: Floats, before: float) -> Floats:
    """The point after so much of a step that the residual falls, or after a round of its own."""
    for share in SHARES:
        other = np.clip(point + share * step, 0.0, 1.0 - ROUNDING)
        after = float(np.abs(other - _units_blocked(network, other)).max())
        if after <= (1.0 - 0.5 * share) * before or before <= SMALL:
            return other
    return _one_by_one(network, point)


def _unit_loads(network: _Network, point: Floats) -> Floats:
    """The loads v_i, whose own factor 1 - E_i is left out rather than divided by."""
    logs = np.log1p(-point)
    passing = np.exp(logs @ network.needs - logs[:, None])
    found: Floats = (network.needs * passing) @ network.loads
    return found


def _units_blocked(network: _Network, point: Floats) -> Floats:
    """T(E)."""
    return _erlang(network.room, _unit_loads(network, point))


def _erlang(room: Integers, loads: Floats) -> Floats:
    pairs = zip(room.tolist(), loads.tolist(), strict=True)
    return np.array([erlang_b(c, v) for c, v in pairs])


def _slope(network: _Network, point: Floats, image: Floats) -> Floats:
    """Derivative of T, with d Erl / dv = Erl (C / v - 1 + Erl)."""
    loads = _unit_loads(network, point)
    logs = np.log1p(-point)
    passing = network.needs * np.exp(logs @ network.needs - logs[:, None]) * network.loads
    moved = -(passing @ network.needs.T - np.diag(loads)) / (1.0 - point)
    steep = image * (network.room / np.maximum(loads, 1e-300) - 1.0 + image)
    found: Floats = np.where(loads > 0.0, steep, 0.0)[:, None] * moved
    return found


def _one_by_one(network: _Network, point: Floats) -> Floats:
    """Solve for one E_i after the other."""
    from scipy.optimize import brentq

    point = point.copy()
    for i in range(point.size):

        def excess(e: float, i: int = i) -> float:
            trial = np.array([*point[:i], e, *point[i + 1 :]])
            return e - erlang_b(int(network.room[i]), float(_unit_loads(network, trial)[i]))

        if excess(0.0) < 0.0:
            point[i] = brentq(excess, 0.0, 1.0 - ROUNDING, xtol=1e-16)
        else:
            point[i] = 0.0
    return point


def _enclosed(network: _Network, point: Floats) -> tuple[Floats, bool]:
    """A certified bound of the errors of E, or an estimate."""
    image = _units_blocked(network, point)
    loads = _unit_loads(network, point)
    free = np.maximum(network.room - loads * (1.0 - image), 0.0)
    noise = ROUNDING * (image * (20.0 + 8.0 * free) + 1.0)
    slope = _slope(network, point, image)
    off = np.abs(point - image) + noise
    if np.abs(np.linalg.eigvals(np.abs(slope))).max() < 1.0:
        width: Floats = np.asarray(np.linalg.solve(np.eye(point.size) - np.abs(slope), 4.0 * off))
        below, above = np.maximum(point - width, 0.0), np.minimum(point + width, 1.0 - ROUNDING)
        highest, lowest = _units_blocked(network, below), _units_blocked(network, above)
        if (highest + noise <= above).all() and (lowest - noise >= below).all():
            return width, True
    estimate: Floats = np.abs(np.linalg.inv(np.eye(point.size) - slope)) @ off
    return estimate, False


# --- the knapsack form ----------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class _Substitution:
    point: Floats
    residual: float
    error: float


def _substituted(network: _Network, start: Floats) -> _Substitution:
    """Repeated substitution, damped where the residual grows."""
    point, share, best = start, 1.0, math.inf
    rate, idle = 0.5, 0
    kept = start
    for _ in range(STEPS):
        change = _requests_blocked(network, point) - point
        residual = float(np.abs(change).max())
        if residual < best:
            rate = min(max(residual / best, 0.1), 0.99) if best < math.inf else rate
            kept, best, idle = point, residual, 0
        else:
            share, idle = max(0.5 * share, 0.05), idle + 1
        if idle == 5 or best == 0.0:
            break
        point = point + share * change
    _refuse_unsolved(best, kept)
    return _Substitution(kept, best, (best + 8.0 * ROUNDING) / (1.0 - rate))


def _requests_blocked(network: _Network, point: Floats) -> Floats:
    """The right-hand side of the knapsack form."""
    found = np.zeros(point.shape)
    for i, needs in enumerate(network.needs):
        others = np.delete(point, i, axis=0)
        thinned = network.loads * np.prod(1.0 - others, axis=0)
        here = needs > 0
        if here.any():
            law = kaufman_roberts(
                int(network.room[i]), thinned[here].tolist(), needs[here].tolist()
            )
            found[i, here] = law.blocking
    return found


def _lost(point: Floats) -> Floats:
    """Probability per class that some resource blocks."""
    found: Floats = -np.expm1(np.log1p(-np.minimum(point, 1.0 - ROUNDING)).sum(axis=0))
    return found


# --- border ---------------------------------------------------------------------------------------


def _refuse_unsolved(residual: float, point: Floats) -> None:
    if not residual <= GOOD:
        raise SolveError(
            f"the fixed-point equations were solved to {residual:.1e} only, not {GOOD:g}",
            partial=point,
        )


def _checked(
    loads: Sequence[float], requirements: Sequence[Sequence[int]], capacities: Sequence[int]
) -> _Network:
    rho = checked_loads(loads)
    if len(requirements) != len(capacities) or not len(capacities):
        raise InputError(
            f"requirements has {len(requirements)} rows for {len(capacities)} capacities; one row "
            "per resource is needed, and one resource at least"
        )
    rows = [checked_row(f"requirements[{i}]", row, rho.size) for i, row in enumerate(requirements)]
    room = [checked_count(f"capacities[{i}]", c) for i, c in enumerate(capacities)]
    return _Network(rho, np.array(rows), np.array(room))
