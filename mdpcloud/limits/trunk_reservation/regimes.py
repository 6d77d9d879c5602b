"""Limit of trunk reservation between two large centres.

Centre k has jobs of rate lambda_k and serves at most a_k = mu_k c_k jobs per unit of time, all per
unit of the scale. Where centre 0 overflows and both together cannot carry all jobs,

    lambda_0 > a_0    and    lambda_0 + lambda_1 > a_0 + a_1,

both are full up to a few servers, and in the limit the numbers (n_0, n_1) of free servers are a
random walk on N^2, in the time scale of single jobs, with the rates

    n_0 + 1: a_0,    n_0 - 1: lambda_0,
    n_1 + 1: a_1,    n_1 - 1: lambda_1 + lambda_0 1{n_0 = 0, n_1 > a}.

Jobs are lost with the probabilities B_0 = P(n_0 = 0, n_1 <= a) and B_1 = P(n_1 = 0). As n_0 is an
M/M/1 queue by itself, P(n_0 = 0) = 1 - a_0/lambda_0; the balance of n_1 is the conservation law
(5.6),

    lambda_0 B_0 + lambda_1 B_1 = lambda_0 + lambda_1 - a_0 - a_1.

Both must hold for the numbers found, to the accuracy that they claim. Cuts between n_1 = n and
n + 1 <= a give P(n_1 = n) = B_1 (a_1/lambda_1)^n for n <= a, hence the bracket

    (1 - a_1/lambda_1)^+ <= B_1 <= 1 / sum_{n <= a} (a_1/lambda_1)^n,

within which large a leave nothing open (`mdpcloud.limits.trunk_reservation.bracket`). Otherwise
the walk is solved as a quasi-birth-death process, see `mdpcloud.limits.trunk_reservation.levels`;
where that has too many phases, the bracket is the result if it is narrower than `NARROW`.

Source: G. Thompson, "Stochastic models for resource allocation in large distributed systems" (PhD
thesis, Universite Pierre et Marie Curie, 2017), chapter 5, whose classes 1 and 2 are 0 and 1 here;
for a = 0 the walk is that of its chapter 4 with p_1 = 1, p_2 = 0. The regimes without overflow or
with room for it are derived here.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from mdpcloud.errors import InputError, NoLimitError, SolveError
from mdpcloud.limits.trunk_reservation.bracket import Bracket, bracket
from mdpcloud.limits.trunk_reservation.levels import Rates, check_balance, walk_law
from mdpcloud.queues.border import checked_count, checked_number

__all__ = [
    "LargeReserve",
    "TrunkReservationLimit",
    "large_reserve",
    "trunk_reservation_limit",
]

BOUNDARY = 1e-12
"""Nearer to the boundary of a regime, relative to the rates, its value there is returned."""

CLOSED = 1e-15
"""Brackets that are narrower need no walk; also what rounding does to a probability."""

NARROW = 2e-3
"""Brackets that are narrower are the result where the walk has too many phases."""

UNSATURATED = "none_saturated"
SECOND = "class_1_saturated"
CARRIED = "overflow_carried"
SHARED = "both_saturated"


@dataclass(frozen=True)
class TrunkReservationLimit:
    """What becomes of the jobs in the limit.

    Attributes
    ----------
    blocking : (B_0, B_1)
        Probability that a job of each class is lost.
    overflow : float
        Probability that a job of class 0 finds centre 0 full.
    regime : str
        "none_saturated": both centres serve their own jobs; "class_1_saturated": centre 1 is full
        and loses its own jobs, centre 0 is not; "overflow_carried": centre 0 is full, and centre 1
        takes all that it overflows; "both_saturated": both are full, the threshold matters.
    error : float
        Largest absolute error of the probabilities: a bound, but for an estimate of what the cut
        of the phases does.
    conservation : float
        What is left of the conservation law, relative to all rates.
    phases : int
        Of the walk; 0 where none was solved.
    notes : tuple of str
        Where the rates are on the boundary of a regime, or no walk was solved near it.
    """

    blocking: tuple[float, float]
    overflow: float
    regime: str
    error: float = 0.0
    conservation: float = 0.0
    phases: int = 0
    notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class LargeReserve:
    """Blocking for a large threshold a.

    Attributes
    ----------
    blocking : (B_0, B_1)
        Their limits as a grows.
    ratio : float
        Their distances from these shrink like ratio^a; like 1/a where it is 1.
    """

    blocking: tuple[float, float]
    ratio: float


def trunk_reservation_limit(
    arrival_rates: Sequence[float], capacities: Sequence[float], reserved: int
) -> TrunkReservationLimit:
    """Blocking in the limit.

    Parameters
    ----------
    arrival_rates : (lambda_0, lambda_1)
        >= 0, 1/time, per unit of the scale.
    capacities : (a_0, a_1)
        Servers times service rate of each centre, > 0, 1/time, per unit of the scale.
    reserved : int
        The threshold a.

    Raises
    ------
    InputError
        When a number is out of range.
    SolveError
        When the walk needs too many phases or levels and the bracket is wide, or when its law
        violates the conservation law.

    Notes
    -----
    Where a_0 < lambda_0, but both centres can carry all jobs, the overflow finds room whatever a
    is, and no job is lost. On the boundaries of the regimes the probabilities are continuous.

    Examples
    --------
    >>> found = trunk_reservation_limit((2.0, 3.0), (1.0, 2.0), 2)
    >>> [round(b, 12) for b in found.blocking], found.regime
    ([0.421361650989, 0.385758899341], 'both_saturated')
    """
    rates = _rates(arrival_rates, capacities)
    reserved = checked_count("reserved", reserved, least=0)
    if rates.overload <= BOUNDARY * rates.arrivals[0]:
        return _without_overflow(rates)
    if rates.excess <= BOUNDARY * rates.total:
        return _carried(rates)
    if rates.arrivals[1] == 0.0:
        return _alone(rates, reserved)
    return _shared(rates, reserved)


def large_reserve(arrival_rates: Sequence[float], capacities: Sequence[float]) -> LargeReserve:
    """Blocking for a large threshold, where both centres are saturated.

    The parameters and errors are those of `trunk_reservation_limit`.

    Raises
    ------
    NoLimitError
        When they are not both saturated: the threshold does not matter then.

    Examples
    --------
    >>> large_reserve((2.0, 1.5), (1.0, 2.0))
    LargeReserve(blocking=(0.25, 0.0), ratio=0.75)
    """
    rates = _rates(arrival_rates, capacities)
    for what, value, other in (
        ("arrival_rates[0] to capacities[0]", rates.arrivals[0], rates.capacities[0]),
        (
            "the sum of arrival_rates to that of capacities",
            sum(rates.arrivals),
            sum(rates.capacities),
        ),
    ):
        if value <= other:
            raise NoLimitError(
                f"the ratio of {what} is {value / other:.6g}; only where it exceeds 1 both centres "
                "are saturated, and the threshold matters"
            )
    if rates.arrivals[1] == 0.0:
        return LargeReserve((rates.excess / rates.arrivals[0], 0.0), 0.0)
    known, load = bracket(rates, 0), rates.load(1)
    return LargeReserve((known.first[1], known.second[0]), min(load, 1.0 / load))


def _rates(arrivals: Sequence[float], capacities: Sequence[float]) -> Rates:
    """Checked rates, in the unit of time in which the largest is near 1."""
    pairs = _checked("arrival_rates", arrivals, zero=True), _checked("capacities", capacities)
    _, exponent = math.frexp(max(map(max, pairs)))
    (l0, l1), (a0, a1) = pairs
    return Rates(
        (math.ldexp(l0, -exponent), math.ldexp(l1, -exponent)),
        (math.ldexp(a0, -exponent), math.ldexp(a1, -exponent)),
    )


def _checked(name: str, values: Sequence[float], *, zero: bool = False) -> tuple[float, float]:
    if len(values) != 2:
        raise InputError(
            f"{name} has {len(values)} numbers; one for each of the 2 centres is needed"
        )
    first, second = (
        checked_number(f"{name}[{k}]", value, zero=zero) for k, value in enumerate(values)
    )
    return first, second


# --- regimes without a walk -----------------------------------------------------------------------


def _without_overflow(rates: Rates) -> TrunkReservationLimit:
    (first, second), (_, capacity) = rates.arrivals, rates.capacities
    notes: tuple[str, ...] = ()
    error = 0.0
    if abs(rates.overload) <= BOUNDARY * first:
        notes = (_on_boundary("arrival_rates[0] and the capacity of centre 0"),)
        error = max(rates.overload, 0.0) / min(first, second or math.inf)
    elif abs(second - capacity) <= BOUNDARY * second:
        notes = (_on_boundary("arrival_rates[1] and the capacity of centre 1"),)
    return TrunkReservationLimit(
        (0.0, 1.0 - capacity / second if second > capacity else 0.0),
        0.0,
        SECOND if second > capacity else UNSATURATED,
        error=min(max(error, CLOSED if second > capacity else 0.0), 1.0),
        notes=notes,
    )


def _carried(rates: Rates) -> TrunkReservationLimit:
    (first, second), overflow = rates.arrivals, rates.overload / rates.arrivals[0]
    if rates.excess < -BOUNDARY * rates.total:
        return TrunkReservationLimit((0.0, 0.0), overflow, CARRIED)
    error = max(rates.excess, 0.0) / min(first, second or math.inf)
    notes = (_on_boundary("the sum of arrival_rates and that of the capacities"),)
    return TrunkReservationLimit((0.0, 0.0), overflow, CARRIED, min(error, 1.0), notes=notes)


def _on_boundary(what: str) -> str:
    return f"{what} are equal: this is the boundary of two regimes, on which blocking is continuous"


def _alone(rates: Rates, reserved: int) -> TrunkReservationLimit:
    """Without jobs of class 1: n_1 never falls below a, the walk is that for a = 0, moved up."""
    law = walk_law(rates, 0)
    return TrunkReservationLimit(
        (rates.excess / rates.arrivals[0], law.blocking[1] if reserved == 0 else 0.0),
        rates.overload / rates.arrivals[0],
        SHARED,
        error=law.error,
        phases=law.phases,
    )


# --- both centres are saturated -------------------------------------------------------------------


def _shared(rates: Rates, reserved: int) -> TrunkReservationLimit:
    known = bracket(rates, reserved)
    overflow = rates.overload / rates.arrivals[0]
    if known.width <= CLOSED:
        return TrunkReservationLimit(known.middle, overflow, SHARED, known.error)
    try:
        law = walk_law(rates, reserved)
        left = check_balance(rates, law)
    except SolveError as refusal:
        return _bracketed(rates, known, refusal)
    blocking, error = known.nearest(law.blocking), min(law.error, known.width + CLOSED)
    if known.error < error:
        blocking, error = known.middle, known.error
    return TrunkReservationLimit(
        blocking,
        overflow,
        SHARED,
        error=error,
        conservation=left / rates.total,
        phases=law.phases,
    )


def _bracketed(rates: Rates, known: Bracket, error: SolveError) -> TrunkReservationLimit:
    """The middle of the bracket where the walk is too large, if that says enough."""
    bounds = " and ".join(
        f"{low:.6g} <= B_{k} <= {high:.6g}" for k, (low, high) in enumerate(known.bounds)
    )
    overflow = rates.overload / rates.arrivals[0]
    if known.width <= NARROW:
        note = f"{error}; the blocking is in the middle of the bounds {bounds}, which hold anyway"
        return TrunkReservationLimit(known.middle, overflow, SHARED, known.error, notes=(note,))
    raise SolveError(
        f"{error}. Known is {bounds}. The walk is large near the boundaries of the regimes and "
        f"where much is reserved: raise arrival_rates[0] ({overflow:.3g} of it is more than the "
        f"capacity of centre 0) or arrival_rates[1] ({rates.excess / sum(rates.arrivals):.3g} of "
        "both is more than all capacity), or lower reserved; or evaluate the finite system at "
        "large scales, which takes no walk",
        partial=known,
    ) from error
