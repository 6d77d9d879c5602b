"""Erlang's fixed point in Kelly's form: a loss network as links that block independently.

The A_ij units of a job are treated as A_ij calls that are blocked one by one. With Erl(v, C)
Erlang's formula, the probabilities E_i that a unit of resource i is blocked solve E = T(E),

    T_i(E) = Erl(v_i, C_i),   v_i = (1 - E_i)^{-1} sum_j A_ij rho_j prod_l (1 - E_l)^{A_lj},

and class j is lost with probability 1 - prod_i (1 - E_i)^{A_ij}. There is exactly one solution
(F. P. Kelly, "Blocking probabilities in large circuit-switched networks", Adv. Appl. Prob. 18
(1986) 473-505). It is poor where A_ij >= 2; see `mdpcloud.limits.loss.knapsack_fixed_point` there.

It is solved by the unit loads v, see `mdpcloud.limits.loss.fixed_point_loads`. The error is
certified by Krawczyk's operator: with F(E) = E - T(E) and Y about F'(E)^{-1}, a box E +- w with

    |Y| |F(E)| + sup |1 - Y F'| w <= w,   the supremum over the box,

holds a solution (R. E. Moore, SIAM J. Numer. Anal. 14 (1977) 611-615). All factors of T' are
monotone in E, so that their values at the corners bound them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from mdpcloud.errors import InputError, SolveError
from mdpcloud.limits.loss.fixed_point_loads import blocked_by_loads, erlang_losses
from mdpcloud.queues.border import checked_count
from mdpcloud.queues.occupancy import checked_loads, checked_row

__all__ = ["FixedPoint", "Network", "checked_network", "erlang_fixed_point", "refuse_unsolved"]

ROUNDING = 2.0**-53
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
        Absolute error of the blocking probabilities, as those of a solution of the equations.
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
class Network:
    """Loads (c,), requirements (k, c) and capacities (k,)."""

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
    network = checked_network(loads, requirements, capacities)
    solved = blocked_by_loads(network.loads, network.needs, network.room)
    found, residual = solved.blocked, solved.residual
    refuse_unsolved(residual, found)
    width, certified = _enclosed(network, np.minimum(found, 1.0 - ROUNDING))
    logs = -solved.prices @ network.needs
    moved = np.minimum((width * np.exp(solved.prices)) @ network.needs, 700.0)
    change = np.minimum(np.exp(logs) * np.expm1(moved), 1.0) + 4.0 * ROUNDING
    return FixedPoint(
        tuple((0.0 - np.expm1(logs)).tolist()),
        tuple(found.tolist()),
        residual,
        float(change.max()),
        certified,
        ("the solution of the equations in Kelly's form is unique (Kelly 1986)",),
    )


# --- Kelly's form ---------------------------------------------------------------------------------


def _passing(network: Network, point: Floats) -> Floats:
    """Probability that all other units of a job pass, per unit of a resource (row) and class."""
    logs = np.log1p(-point)
    found: Floats = np.exp(logs @ network.needs - logs[:, None])
    return found


def _unit_loads(network: Network, point: Floats) -> Floats:
    """The loads v_i."""
    found: Floats = (network.needs * _passing(network, point)) @ network.loads
    return found


def _units_blocked(network: Network, point: Floats) -> Floats:
    """T(E)."""
    return erlang_losses(network.room, _unit_loads(network, point))


def _slope(network: Network, point: Floats, image: Floats) -> Floats:
    """Derivative of T."""
    low, high = _slopes(network, point, point, image, image)
    return 0.5 * (low + high)


def _slopes(
    network: Network, below: Floats, above: Floats, lowest: Floats, highest: Floats
) -> tuple[Floats, Floats]:
    """Bounds of the derivative of T between two points, and of T itself there.

    dT_i / dE_l = -B (C / v - 1 + B) sum_j A_ij (A_lj - 1{l = i}) rho_j prod (1 - E)^A / ((1 - E_i)
    (1 - E_l)) with B = Erl(v_i, C_i); every factor is at least 0.
    """
    passing = [_passing(network, point) for point in (above, below)]
    loads = [(network.needs * part) @ network.loads for part in passing]
    steep = [
        np.where(v > 0.0, b * np.maximum(network.room / np.maximum(v, 1e-300) - 1.0 + b, 0.0), 0.0)
        for v, b in ((loads[1], lowest), (loads[0], highest))
    ]
    needed = [(network.needs * part * network.loads) @ network.needs.T for part in passing]
    units = [(part - np.diag(v)) for part, v in zip(needed, loads, strict=True)]
    low = steep[0][:, None] * units[0] / (1.0 - below)
    high = steep[1][:, None] * units[1] / (1.0 - above)
    return -high, -low


def _enclosed(network: Network, point: Floats) -> tuple[Floats, bool]:
    """A certified bound of the errors of E, or an estimate."""
    image = _units_blocked(network, point)
    noise = _noise(network, point, image)
    unit = np.eye(point.size)
    inverse = np.linalg.inv(unit - _slope(network, point, image))
    near = np.abs(inverse) @ (np.abs(point - image) + noise)
    width = 2.0 * near
    below, above = np.maximum(point - width, 0.0), np.minimum(point + width, 1.0 - ROUNDING)
    ends = _units_blocked(network, above), _units_blocked(network, below)
    low, high = _slopes(network, below, above, ends[0] - noise, ends[1] + noise)
    middle = np.abs(unit - inverse @ (unit - 0.5 * (low + high)))
    spread = middle + np.abs(inverse) @ (0.5 * (high - low)) + 4.0 * ROUNDING
    certified = bool((near + spread @ width <= width).all())
    return width, certified


def _noise(network: Network, point: Floats, image: Floats) -> Floats:
    """Bound of the rounding error of T, in the load and in Erlang's formula."""
    free = np.maximum(network.room - _unit_loads(network, point) * (1.0 - image), 0.0)
    roundings = 8.0 + sum(network.needs.shape)  # of the load and of each step of the recursion
    return ROUNDING * (2.0 * roundings * image * (free + 1.0) + 1.0)


# --- border ---------------------------------------------------------------------------------------


def refuse_unsolved(residual: float, point: Floats) -> None:
    """SolveError unless the residual is small."""
    if not residual <= GOOD:
        raise SolveError(
            f"the fixed-point equations were solved to {residual:.1e} only, not {GOOD:g}",
            partial=point,
        )


def checked_network(
    loads: Sequence[float], requirements: Sequence[Sequence[int]], capacities: Sequence[int]
) -> Network:
    """The numbers as arrays; InputError unless they are in range and match."""
    rho = checked_loads(loads)
    if len(requirements) != len(capacities) or not len(capacities):
        raise InputError(
            f"requirements has {len(requirements)} rows for {len(capacities)} capacities; one row "
            "per resource is needed, and one resource at least"
        )
    rows = [checked_row(f"requirements[{i}]", row, rho.size) for i, row in enumerate(requirements)]
    room = [checked_count(f"capacities[{i}]", c) for i, c in enumerate(capacities)]
    return Network(rho, np.array(rows), np.array(room))
