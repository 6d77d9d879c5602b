"""A large link that downgrades jobs only where they do not fit: the threshold is the capacity.

The link stays full, and n free units move as a walk on 0, 1, 2, ...: up by A_j at rate mu_j x_j;
down by A_j at rate lambda_j where n >= A_j, and, if jobs that do not fit are downgraded, down by 1
at rate lambda_j, j >= 1, where 0 < n < A_j. With a_j(x) = P(n >= A_j) the jobs settle at

    mu_j x_j = lambda_j a_j(x),  j >= 1,        sum_j A_j x_j = c,

the balance of class 0 following from that of the walk. It is solved by Newton's method for the
fractions a_j, with the law of the walk from `mdpcloud.limits.qbd` in blocks of max A_j states; it
stops when a step is below `LAST_STEP`. The error is estimated by the last step and by the error of
the law times the condition of the equations. That the solution is unique is not proved.

Where jobs that do not fit are rejected, this is the pure loss system, a_j = b^A_j with Kelly's root
b of sum_j A_j rho_j b^A_j = c (`mdpcloud.limits.kelly`); the search begins there. The limit is not
that of thresholds that tend to the capacity, as single units matter. It is derived here; the source
(see `mdpcloud.limits.downgrading`) has c0 < c.
"""

from __future__ import annotations

from typing import Literal

import numpy as np
from numpy.typing import NDArray

from mdpcloud.errors import SolveError
from mdpcloud.limits.downgrading import Equilibrium, Link
from mdpcloud.limits.kelly import link_root
from mdpcloud.limits.qbd import Level, quasi_birth_death

__all__ = ["is_filled", "limit_when_filled", "pure_loss", "with_downgrading"]

LAST_STEP = 1e-12
MOST_STEPS = 50
DIFFERENCE = 1e-7  # relative, of the fractions, for derivatives
BOUNDARY = 1e-9  # relative, of loads that are the capacity
ROUNDING = 4e-15  # of Kelly's root
LARGEST_ERROR = 1e-6  # of fractions that are returned

NOT_PROVED = "that the limit of a filled link is unique is not proved; its error is estimated"

Floats = NDArray[np.float64]


def is_filled(link: Link) -> bool:
    """Whether the threshold of a link is its capacity, and its load is beyond it."""
    return (
        len(link.requirements) > 1
        and link.threshold >= link.capacity
        and link.full_load > link.capacity * (1.0 + BOUNDARY)
    )


def limit_when_filled(link: Link, unfit: Literal["downgrade", "reject"]) -> Equilibrium:
    """Where a filled link settles; jobs that do not fit are downgraded if a unit is free, or lost.

    Raises
    ------
    SolveError
        See `with_downgrading`.
    """
    return with_downgrading(link) if unfit == "downgrade" else pure_loss(link)


def pure_loss(link: Link) -> Equilibrium:
    """The limit of a filled link on which jobs that do not fit are lost, by Kelly's root.

    Examples
    --------
    >>> found = pure_loss(Link((0.3, 0.4), (1.0, 1.0), (1, 2), 1.0, 1.0))
    >>> [round(p, 12) for p in found.blocking]
    [0.053852678299, 0.104805245638]
    """
    fits = _kelly_root(link) ** np.asarray(link.requirements, float)
    return Equilibrium(
        "filled",
        tuple(fits.tolist()),
        tuple((1.0 - fits).tolist()),
        tuple((link.rho * fits).tolist()),
        error=ROUNDING * max(link.requirements),
    )


def _kelly_root(link: Link) -> float:
    return link_root(link.rho.tolist(), link.requirements, link.capacity)


def with_downgrading(link: Link, *, downgrades: bool = True) -> Equilibrium:
    """The limit of a filled link, by the law of its free units.

    Parameters
    ----------
    link : Link
    downgrades : bool
        Whether jobs that do not fit are downgraded; else this is `pure_loss`, solved the same way.

    Raises
    ------
    SolveError
        When Newton's method does not converge, or not accurately.

    Examples
    --------
    >>> found = with_downgrading(Link((0.3, 0.4), (1.0, 1.0), (1, 2), 1.0, 1.0))
    >>> [round(p, 8) for p in found.in_full], [round(p, 8) for p in found.blocking]
    ([0.92396633, 0.88305893], [0.07603367, 0.07603367])
    """
    equations = _Equations(link, downgrades)
    fractions = _kelly_root(link) ** equations.units[1:].astype(float)
    for _ in range(MOST_STEPS):
        lack, free, error = equations.lack(fractions)
        slopes = equations.slopes(fractions, lack)
        step = -np.linalg.solve(slopes, lack)
        last = float(np.abs(step).max())
        if last <= LAST_STEP:
            error = last + float(np.linalg.norm(np.linalg.inv(slopes), np.inf)) * error
            return _found(equations, fractions, free, error)
        while not equations.is_inside(fractions + step):
            step *= 0.5
        fractions = fractions + step
    raise SolveError(
        f"the fractions of jobs that fit did not converge in {MOST_STEPS} steps; the last is "
        f"{last:.2g}"
    )


def _found(equations: _Equations, fractions: Floats, free: Floats, error: float) -> Equilibrium:
    link = equations.link
    if error > LARGEST_ERROR:
        raise SolveError(
            f"the fractions of jobs that fit have an estimated error of {error:.2g}, and "
            f"{LARGEST_ERROR:g} is allowed: the load {link.full_load:.10g} is close to the "
            f"capacity {link.capacity:.10g}, or rates are far apart"
        )
    in_full = np.append(1.0 - free[0], fractions)
    lost = np.full(in_full.size, free[0]) if equations.downgrades else 1.0 - in_full
    jobs = equations.departures(fractions) / equations.services
    return Equilibrium(
        "filled",
        tuple(in_full.tolist()),
        tuple(lost.tolist()),
        tuple(jobs.tolist()),
        error,
        (NOT_PROVED,),
        certified=False,
    )


class _Equations:
    """The equations of the fractions a_j, j >= 1."""

    def __init__(self, link: Link, downgrades: bool) -> None:
        self.link, self.downgrades = link, downgrades
        self.rates = np.asarray(link.arrival_rates, float)
        self.services = np.asarray(link.service_rates, float)
        self.units = np.asarray(link.requirements)

    def departures(self, fractions: Floats) -> Floats:
        """mu_j x_j, those of class 0 from the capacity that is left."""
        others = self.rates[1:] * fractions
        load = float(self.units[1:] @ (others / self.services[1:]))
        return np.append(self.services[0] * (self.link.capacity - load), others)

    def is_inside(self, fractions: Floats) -> bool:
        """Whether the fractions are probabilities, and the walk is ergodic."""
        freed = self.departures(fractions)
        drift = float(self.units @ (freed - self.rates))
        inside = (fractions >= 0.0).all() and (fractions <= 1.0).all()
        return bool(inside and freed[0] >= 0.0 and drift < 0.0)

    def lack(self, fractions: Floats) -> tuple[Floats, Floats, float]:
        """a_j(x) less the fractions, the law of 0, ..., max A_j - 1, and a bound of its error."""
        freed, width = self.departures(fractions), int(self.units.max())
        law = quasi_birth_death([self._lowest(freed, width)], self._level(freed, width))
        free = law.boundary[0]
        fit = 1.0 - np.array([free[:units].sum() for units in self.units[1:]])
        return fit - fractions, free, law.error

    def slopes(self, fractions: Floats, lack: Floats) -> Floats:
        """Derivatives of the lack, by differences to the side that is inside."""
        columns = []
        for j in range(fractions.size):
            change = np.zeros(fractions.size)
            change[j] = -DIFFERENCE * fractions[j]
            if not self.is_inside(fractions + change):
                change = -change
            columns.append((self.lack(fractions + change)[0] - lack) / change[j])
        return np.stack(columns, axis=1)

    def _level(self, freed: Floats, width: int) -> Level:
        """Rates of ``width`` states of the walk where all jobs fit."""
        local, up, down = np.zeros((3, width, width))
        for rate, back, units in zip(self.rates, freed, self.units, strict=True):
            for n in range(width):
                _add(local, up, n, n + units, back)
                _add(local, down, n, n - units, rate)
        return Level(local, up, down)

    def _lowest(self, freed: Floats, width: int) -> Level:
        """Rates of the states 0, ..., max A_j - 1."""
        local, up = np.zeros((2, width, width))
        for j, (rate, back, units) in enumerate(zip(self.rates, freed, self.units, strict=True)):
            for n in range(width):
                _add(local, up, n, n + units, back)
                if n >= units:
                    local[n, n - units] += rate
                elif n and j and self.downgrades:
                    local[n, n - 1] += rate
        return Level(local, up)


def _add(local: Floats, other: Floats, n: int, target: int, rate: float) -> None:
    """A rate from n to a state of this block, or of the block beside it."""
    block = local if 0 <= target < local.shape[0] else other
    block[n, target % local.shape[0]] += rate
