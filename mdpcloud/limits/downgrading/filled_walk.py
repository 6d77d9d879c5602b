"""The law of the free units of a link that fills up, and where it settles.

The link stays full, and n free units move as a walk on 0, 1, 2, ...: up by A_j at rate mu_j x_j;
down by A_j at rate lambda_j where n >= A_j, and, if jobs that do not fit are downgraded, down by 1
at rate lambda_j, j >= 1, where 0 < n < A_j. With a_j(x) = P(n >= A_j) the jobs settle at

    mu_j x_j = lambda_j a_j(x),  j >= 1,        sum_j A_j x_j = c,

the balance of class 0 following from that of the walk. It is solved for the fractions
f_j = mu_j x_j / lambda_j by implicit steps of f' = a(f) - f, whose length grows from `FIRST_LENGTH`
by `GROWTH` until they are those of Newton's method (Kelley and Keyes, "Convergence analysis of
pseudo-transient continuation", SIAM J. Numer. Anal. 35 (1998) 508-523): where Newton's equations
are singular these are not, and unstable solutions are left. The law of the walk is that of
`mdpcloud.limits.qbd.law` in blocks of max A_j states. It stops when a step of length `LONG` is
below `LAST_STEP`. The error is estimated by the last step and by that of the law, and by the
rounding of the jobs of class 0 (a difference), times the condition of the equations. That the
solution is unique is not proved; where downgrading makes the load larger it need not be, and a
second one is looked for from a link of jobs of class 0.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from mdpcloud.errors import NoLimitError, SolveError
from mdpcloud.limits.downgrading.equilibrium import Equilibrium, Link
from mdpcloud.limits.loss.kelly import link_root
from mdpcloud.limits.qbd.law import Level, quasi_birth_death

__all__ = ["with_downgrading"]

LAST_STEP = 1e-12
MOST_STEPS = 80
FIRST_LENGTH, GROWTH, LONG = 10.0, 10.0, 1e10  # of implicit steps
FEW = 1e-6  # of Kelly's root, where a link begins with jobs of class 0
MOST_HALVINGS = 50
DIFFERENCE = 1e-7  # relative, of the fractions, for derivatives
EPS = float(np.finfo(float).eps)
LARGEST_ERROR = 1e-6  # of fractions that are returned

NOT_PROVED = "that the limit of a filled link is unique is not proved; its error is estimated"

Floats = NDArray[np.float64]


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
        When the steps do not converge, or not accurately, or to no stable solution.
    NoLimitError
        When downgrading makes the load larger, and the link settles at two places.

    Examples
    --------
    >>> found = with_downgrading(Link((0.3, 0.4), (1.0, 1.0), (1, 2), 1.0, 1.0))
    >>> [round(p, 8) for p in found.in_full], [round(p, 8) for p in found.blocking]
    ([0.92396633, 0.88305893], [0.07603367, 0.07603367])
    """
    equations = _Equations(link, downgrades)
    root = link_root(link.rho.tolist(), link.requirements, link.capacity)
    found = _settled(equations, equations.start(root))
    if downgrades and not _relieves(link):
        _check_one_end(equations, found, root)
    return found


def _settled(equations: _Equations, fractions: Floats) -> Equilibrium:
    """Where the fractions move to, by ever longer implicit steps."""
    length = FIRST_LENGTH
    for _ in range(MOST_STEPS):
        law = equations.lack(fractions)
        slopes = equations.slopes(fractions, law)
        moves = slopes[:-1]
        step, length = _step_inside(equations, fractions, moves, law.lack, length)
        last = float(np.abs(step).max())
        if last <= LAST_STEP and length >= LONG:
            _check_stable(equations, moves)
            error = last + _error(equations, fractions, law, slopes)
            return _found(equations, fractions, law.free, error)
        fractions, length = fractions + step, GROWTH * length
    raise SolveError(
        f"the fractions of jobs that fit did not converge in {MOST_STEPS} steps; the last is "
        f"{last:.2g}"
    )


def _step_inside(
    equations: _Equations, fractions: Floats, moves: Floats, lack: Floats, length: float
) -> tuple[Floats, float]:
    """An implicit step of at most this length, and its length; it ends inside."""
    for _ in range(MOST_HALVINGS):
        step = _solved(np.eye(lack.size) / length - moves, lack)
        if np.isfinite(step).all() and equations.is_inside(fractions + step):
            return step, length
        length *= 0.25
    raise SolveError("no step from the fractions of jobs that fit leaves them between 0 and 1")


def _solved(matrix: Floats, right: Floats) -> Floats:
    """Infinite where the matrix is singular."""
    try:
        return np.asarray(np.linalg.solve(matrix, right), float)
    except np.linalg.LinAlgError:
        return np.full(right.shape, np.inf)


def _error(equations: _Equations, fractions: Floats, law: _Law, slopes: Floats) -> float:
    """Of the fractions, of P(n = 0), and of the jobs of class 0 as a part of the largest load."""
    rounding = law.error + equations.rounding(fractions, law)
    each = np.abs(_solved(slopes[:-1], np.eye(fractions.size))).sum(axis=1) * rounding
    link = equations.link
    jobs = float((equations.units * link.rho)[1:] @ each) / max(
        float(link.rho.max()), link.low_load
    )
    return float(max(each.max(), np.abs(slopes[-1]) @ each + rounding, jobs))


def _check_stable(equations: _Equations, moves: Floats) -> None:
    """Refuse fractions that the link leaves: x_j' = lambda_j a_j(x) - mu_j x_j."""
    services = equations.services[1:, None]
    growth = float(np.linalg.eigvals(services * moves).real.max())
    if growth >= 0.0:
        raise SolveError(
            f"the fractions of jobs that fit are not stable: a deviation grows at rate {growth:.3g}"
        )


def _relieves(link: Link) -> bool:
    """Whether downgrading makes the load of no class larger."""
    each = list(zip(link.requirements, link.arrival_rates, link.service_rates, strict=True))[1:]
    first = link.service_rates[0]
    return all(units * first >= service for units, rate, service in each if rate > 0.0)


def _check_one_end(equations: _Equations, found: Equilibrium, root: float) -> None:
    """Refuse a link that settles elsewhere if it begins with jobs of class 0 only."""
    try:
        other = _settled(equations, equations.start(FEW * root))
    except SolveError:
        return
    apart = float(np.abs(np.subtract(found.in_full, other.in_full)).max())
    if apart > LARGEST_ERROR:
        raise NoLimitError(
            "a link that fills up settles at two places, where "
            f"{found.in_full[1]:.6g} or {other.in_full[1]:.6g} of the jobs of class 1 are taken in "
            "full: downgrading makes the load larger, as jobs of class 0 stay longer, and a large "
            "link stays long at both; no service rate may be above its requirement times that of "
            "class 0"
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


class _Law(NamedTuple):
    """a_j(x) less the fractions, the law of 0, ..., max A_j - 1, and a bound of its error."""

    lack: Floats
    free: Floats
    error: float

    def changes(self, other: _Law) -> Floats:
        """Differences of the lack and of P(n = 0)."""
        return np.append(self.lack - other.lack, self.free[0] - other.free[0])


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
        return bool(inside and freed[0] > 0.0 and drift < 0.0)

    def start(self, root: float) -> Floats:
        """Kelly's fractions, moved inside where class 0 would have no jobs."""
        fractions: Floats = root ** self.units[1:].astype(float)
        for halvings in range(MOST_HALVINGS):
            moved = fractions * (1.0 - 2.0 ** (halvings - MOST_HALVINGS) * (halvings > 0))
            if self.is_inside(moved):
                return moved
        raise SolveError("no fractions of jobs that fit are found at which the free units settle")

    def lack(self, fractions: Floats) -> _Law:
        return self._law(fractions, self.departures(fractions))

    def _law(self, fractions: Floats, freed: Floats) -> _Law:
        width = int(self.units.max())
        try:
            law = quasi_birth_death([self._lowest(freed, width)], self._level(freed, width))
        except NoLimitError as error:
            raise SolveError(f"the load is too close to the capacity: {error}") from error
        free = law.boundary[0]
        fit = 1.0 - np.array([free[:units].sum() for units in self.units[1:]])
        return _Law(fit - fractions, free, law.error)

    def rounding(self, fractions: Floats, law: _Law) -> float:
        """What rounding of the jobs of class 0, all that the others leave, does to the law."""
        freed = self.departures(fractions)
        moved = freed.copy()
        moved[0] *= 1.0 - DIFFERENCE
        change = self._law(fractions, moved).changes(law)
        terms = 4.0 * (self.units.size + 2) * EPS * self.services[0] * self.link.capacity
        return float(np.abs(change).max() / (freed[0] - moved[0]) * terms)

    def slopes(self, fractions: Floats, law: _Law) -> Floats:
        """Derivatives of the lack and, last, of P(n = 0), by differences to the inside."""
        columns = []
        for j in range(fractions.size):
            change = np.zeros(fractions.size)
            change[j] = -DIFFERENCE * fractions[j]
            if not self.is_inside(fractions + change):
                change = -change
            if not self.is_inside(fractions + change):
                raise SolveError(
                    "the fractions of jobs that fit are at the edge of what they can be"
                )
            columns.append(self.lack(fractions + change).changes(law) / change[j])
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
