"""The walk of free servers under trunk reservation as a quasi-birth-death process, in both ways.

See `mdpcloud.limits.trunk_reservation.regimes` for the walk. By n_1: levels 0 ... a have their own
rates down, and the phase n_0, an M/M/1 queue by itself, is cut where its law is below 1e-17. By
n_0: only level 0 is different, and the phase n_1 is cut; it never exceeds an M/M/1 queue of load
a_1/lambda_1, so that this needs lambda_1 > a_1.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from mdpcloud.errors import SolveError
from mdpcloud.limits.qbd.law import Level, quasi_birth_death

__all__ = [
    "Rates",
    "WalkLaw",
    "check_balance",
    "cut_error",
    "walk_by_first",
    "walk_by_second",
    "walk_law",
]

Array: TypeAlias = NDArray[np.float64]

CUT = 1e-17
"""Phases beyond the cut have less than this probability."""

WORST_CUT = 1e-11
"""The same where `MOST_PHASES` are too few for `CUT`; the error says so."""

MOST_PHASES = 1000
MOST_ENTRIES = 50_000_000
"""Of all matrices of the levels 0 ... a + 1 (400 MB)."""

ROUNDING = 1e-14
"""Of sums of probabilities."""


@dataclass(frozen=True)
class Rates:
    """Arrival rates and service capacities; both centres are saturated."""

    arrivals: tuple[float, float]
    capacities: tuple[float, float]

    def load(self, k: int) -> float:
        """Ratio of the geometric law that n_k has, or would have without the other centre."""
        return self.capacities[k] / self.arrivals[k] if self.arrivals[k] else math.inf

    def phases(self, k: int) -> float:
        """Values of n_k beyond which that law is below the cut."""
        load = self.load(k)
        return 2 + math.ceil(math.log(CUT) / math.log(load)) if load < 1.0 else math.inf

    @property
    def total(self) -> float:
        """Sum of all rates."""
        return math.fsum((*self.arrivals, *self.capacities))

    @property
    def excess(self) -> float:
        """Rate of the jobs that both centres together cannot carry."""
        return math.fsum((*self.arrivals, -self.capacities[0], -self.capacities[1]))

    @property
    def overload(self) -> float:
        """Rate of the jobs that centre 0 cannot carry."""
        return self.arrivals[0] - self.capacities[0]


@dataclass(frozen=True)
class WalkLaw:
    """What is needed of the law of the walk.

    Attributes
    ----------
    blocking : (B_0, B_1)
    full : float
        P(n_0 = 0).
    error : float
        Largest absolute error of these: a bound, but for an estimate of what the cut does.
    phases : int
    """

    blocking: tuple[float, float]
    full: float
    error: float
    phases: int


def walk_law(rates: Rates, reserved: int) -> WalkLaw:
    """Law of the walk, in the way that needs fewer phases.

    Raises
    ------
    SolveError
        When both need too many phases or levels.
    """
    phases = [rates.phases(0), max(rates.phases(1), reserved + 3)]
    if phases[1] < phases[0] and phases[1] <= MOST_PHASES:
        return walk_by_first(rates, reserved, int(phases[1]))
    taken = int(min(phases[0], MOST_PHASES))
    if rates.load(0) ** taken <= WORST_CUT and (reserved + 2) * taken**2 <= MOST_ENTRIES:
        return walk_by_second(rates, reserved, taken)
    raise SolveError(
        f"the walk needs {phases[0]:.6g} phases for the free servers of centre 0 (whose law has "
        f"the ratio {rates.load(0):.9g}) and {reserved + 2} levels, or {phases[1]:.6g} phases for "
        f"those of centre 1; {MOST_PHASES} phases at most are solved, and {MOST_ENTRIES} entries "
        "of all levels"
    )


def walk_by_second(rates: Rates, reserved: int, phases: int) -> WalkLaw:
    """Law of the walk with n_1 as its level and n_0 < phases as its phase."""
    local = _birth_death(rates.capacities[0], rates.arrivals[0], phases)
    higher, lower = rates.capacities[1] * np.eye(phases), rates.arrivals[1] * np.eye(phases)
    helped = lower.copy()
    helped[0, 0] += rates.arrivals[0]
    boundary = [Level(local, higher)] + [Level(local, higher, lower)] * reserved
    law = quasi_birth_death(boundary, Level(local, higher, helped))
    above = law.tail(reserved + 1)
    first = math.fsum(float(one[0]) for one in law.boundary)
    last = math.fsum([*(float(one[-1]) for one in law.boundary), float(above[-1])])
    time = phases / rates.overload * (1.0 + rates.capacities[1] / rates.excess)
    time += law.mean_level / rates.excess
    return WalkLaw(
        (first, float(law.boundary[0].sum())),
        first + float(above[0]),
        law.error + cut_error(rates.capacities[0] * last, time),
        phases,
    )


def walk_by_first(rates: Rates, reserved: int, phases: int) -> WalkLaw:
    """Law of the walk with n_0 as its level and n_1 < phases as its phase."""
    local = _birth_death(rates.capacities[1], rates.arrivals[1], phases)
    helped = local.copy()
    moves = np.arange(reserved + 1, phases)
    helped[moves, moves - 1] += rates.arrivals[0]
    higher, lower = rates.capacities[0] * np.eye(phases), rates.arrivals[0] * np.eye(phases)
    law = quasi_birth_death([Level(helped, higher)], Level(local, higher, lower))
    full, above = law.boundary[0], law.tail(1)
    time = phases / (rates.arrivals[1] - rates.capacities[1]) + law.mean_level / rates.overload
    return WalkLaw(
        (float(full[: reserved + 1].sum()), float(full[0] + above[0])),
        float(full.sum()),
        law.error + cut_error(rates.capacities[1] * float(full[-1] + above[-1]), time),
        phases,
    )


def _birth_death(birth: float, death: float, phases: int) -> Array:
    rates: Array = np.diag(np.full(phases - 1, birth), 1) + np.diag(np.full(phases - 1, death), -1)
    return rates


def cut_error(flow: float, time: float) -> float:
    """Estimate of the error that a cut of the phases makes.

    The law of the cut walk violates the balance equations of the whole one by the flow across the
    cut only, so that its error is at most twice that flow times the mean time to return from both
    sides (see `mdpcloud.limits.qbd.error`), which is taken from the drifts.
    """
    return 4.0 * flow * time


def check_balance(rates: Rates, law: WalkLaw) -> float:
    """What is left of the conservation law; it and the balance of n_0 must hold.

    Raises
    ------
    SolveError
        When one of them does not hold to the accuracy of the law.
    """
    lost = math.fsum(rate * b for rate, b in zip(rates.arrivals, law.blocking, strict=True))
    left = lost - rates.excess
    if abs(left) > sum(rates.arrivals) * law.error + ROUNDING * rates.total:
        raise SolveError(
            f"the law of the walk violates the conservation law: {lost:.17g} jobs are lost per "
            f"unit of time, and {rates.excess:.17g} cannot be carried; its error was to be "
            f"{law.error:.3g} at most",
            partial=law,
        )
    if abs(law.full - rates.overload / rates.arrivals[0]) > law.error + ROUNDING:
        raise SolveError(
            f"centre 0 is full with the probability {law.full:.17g} instead of "
            f"{rates.overload / rates.arrivals[0]:.17g}; the error was to be {law.error:.3g} at "
            "most",
            partial=law,
        )
    return left
