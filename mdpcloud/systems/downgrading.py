"""A link on which jobs may be downgraded, D(C0).

The state L counts the jobs of each class; u = sum_j A_j L_j <= C units are in use. Jobs of class j
arrive at rate lambda_j and are taken in full (A_j units, served at rate mu_j), downgraded to class
0 (one unit, rate mu_0, whatever they were) or rejected:

    g = sum_j lambda_j min{ h(L + e_j) - h(L), w_j + h(L + e_0) - h(L), v_j }
        + sum_j mu_j L_j [h(L - e_j) - h(L)],

with downgrading costs w_j and rejection costs v_j. The policy D(C0) of the source takes jobs in
full while u < C0, downgrades them while C0 <= u < C and rejects them at u = C; its limit is that of
`mdpcloud.limits.downgrading.equilibrium`.

Sources: C. Fricker, F. Guillemin, P. Robert and G. Thompson, "Allocation schemes of resources with
downgrading", Adv. Appl. Prob. 49 (2017) (arXiv 1604.00894); G. Thompson, "Stochastic models for
resource allocation in large distributed systems", thesis, UPMC 2017, chapter 2. Costs and the
optimum are extensions. Lemma 1 of the paper states l_j <= rho_j from the first class on; it is
false for that one, l_0 > rho_0, and its proof and use are for the others. "Proposition 11" in its
Corollary 1 is Proposition 3.

The source does not say what happens when a job finds u < C0 but less than A_j units free, which
needs C - C0 < A_j - 1: ``unfit`` says whether it is then downgraded or rejected.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Annotated, Any, ClassVar, Literal, Self

import numpy as np
from annotated_types import Ge, Gt, MinLen, Unit

from mdpcloud.errors import InputError
from mdpcloud.limits.downgrading.bound import fluid_bound
from mdpcloud.limits.downgrading.equilibrium import Link, equilibrium
from mdpcloud.limits.downgrading.filled import is_filled, limit_when_filled
from mdpcloud.limits.downgrading.fluid import fluid_trajectory
from mdpcloud.limits.downgrading.wiener_hopf import WalkLaw, walk_law
from mdpcloud.limits.trajectory import Trajectory
from mdpcloud.model.event import Action, Event, step
from mdpcloud.model.model import Model
from mdpcloud.model.space import Lattice
from mdpcloud.parameters import validate
from mdpcloud.policies.family import Family
from mdpcloud.systems.base import Heuristic
from mdpcloud.systems.downgrading_policies import ThresholdPolicies, used
from mdpcloud.systems.measures import Measures, per_job, scaled, scaled_count
from mdpcloud.systems.ranges import check_ranges

__all__ = ["Downgrading"]


@dataclass(frozen=True)
class Downgrading:
    """Jobs on a link taken in full, downgraded to one unit, or rejected.

    Parameters
    ----------
    arrival_rates : tuple of float
        Per class, 1/time, per unit of the scale.
    service_rates : tuple of float
        Per class, 1/time. The source assumes that class 0 has the smallest.
    requirements : tuple of int
        Units that a job of each class needs in full; 1 for class 0, more for the others.
    capacity : float
        Units of the link, per unit of the scale.
    threshold : float
        From so many units in use on jobs are downgraded; per unit of the scale.
    rejection_costs : tuple of float, optional
        Per class, cost of a lost job; 1 by default.
    downgrading_costs : tuple of float, optional
        Per class, cost of a downgraded job; 0 by default, and always for class 0.
    unfit : {"downgrade", "reject"}
        What happens to a job that is to be taken in full where less than it needs is free.
    scale : float
        Multiplies the arrival rates, the capacity and the threshold.

    Examples
    --------
    >>> import mdpcloud as mc
    >>> link = Downgrading((3.0, 4.0), (1.0, 1.0), (1, 2), 10, 8, downgrading_costs=(0.0, 0.5))
    >>> round(mc.solve(link.model()).gain, 9)
    2.024585322
    """

    arrival_rates: Annotated[tuple[Annotated[float, Ge(0), Unit("1/time")], ...], MinLen(1)]
    service_rates: Annotated[tuple[Annotated[float, Gt(0), Unit("1/time")], ...], MinLen(1)]
    requirements: Annotated[tuple[Annotated[int, Ge(1)], ...], MinLen(1)]
    capacity: Annotated[float, Gt(0)]
    threshold: Annotated[float, Ge(0)]
    rejection_costs: tuple[Annotated[float, Ge(0), Unit("cost")], ...] | None = None
    downgrading_costs: tuple[Annotated[float, Ge(0), Unit("cost")], ...] | None = None
    unfit: Literal["downgrade", "reject"] = "downgrade"
    scale: Annotated[float, Gt(0)] = 1.0

    policy_names: ClassVar[tuple[str, ...]] = (
        "downgrade_threshold",
        "always_downgrade",
        "pure_loss",
    )
    own_policy: ClassVar[str] = "downgrade_threshold"

    def __post_init__(self) -> None:
        validate(self)
        check_ranges(self)
        self._check_lengths()
        self._check_requirements()
        if self.threshold > self.capacity:
            raise InputError(
                f"Downgrading: threshold is {self.threshold:g}, beyond the capacity "
                f"{self.capacity:g}; it must be between 0 and the capacity"
            )
        if self.downgrading_costs is not None and self.downgrading_costs[0] > 0.0:
            raise InputError(
                f"Downgrading: downgrading_costs[0] is {self.downgrading_costs[0]:g}; class 0 is "
                "never downgraded, so it must be 0"
            )
        if not any(self.arrival_rates):
            raise InputError("Downgrading: arrival_rates are all 0; one must be > 0")

    def _check_lengths(self) -> None:
        classes = len(self.arrival_rates)
        for name in ("service_rates", "requirements", "rejection_costs", "downgrading_costs"):
            given = getattr(self, name)
            if given is not None and len(given) != classes:
                raise InputError(
                    f"Downgrading: {name} has {len(given)} entries and arrival_rates has "
                    f"{classes}; there must be one for each class"
                )

    def _check_requirements(self) -> None:
        if self.requirements[0] != 1:
            raise InputError(
                f"Downgrading: requirements[0] is {self.requirements[0]}; class 0 is what jobs are "
                "downgraded to, and must need 1 unit (measure the capacity in its unit)"
            )
        for j, units in enumerate(self.requirements[1:], 1):
            if not 1 < units <= self.units:
                raise InputError(
                    f"Downgrading: requirements[{j}] is {units}; it must be an integer from 2, as "
                    f"class 0 needs 1, to the {self.units} units of the link at scale "
                    f"{self.scale:g}"
                )

    @classmethod
    def example(cls) -> Self:
        """Three classes at a load of 1.4, where one threshold for both is not the best."""
        return cls((2.0, 2.0, 2.0), (1.0, 1.0, 1.0), (1, 2, 4), 10.0, 6.0, None, (0.0, 0.2, 0.4))

    # --- the finite system ------------------------------------------------------------------------

    @property
    def units(self) -> int:
        """Units of the finite link."""
        return self._counts[0][0]

    @property
    def level(self) -> int:
        """Threshold of the finite link."""
        return self._counts[1][0]

    @cached_property
    def _counts(self) -> tuple[tuple[int, str | None], tuple[int, str | None]]:
        return (
            scaled_count("capacity", self.capacity, self.scale, least=1),
            scaled_count("threshold", self.threshold, self.scale),
        )

    @property
    def _rejection_costs(self) -> tuple[float, ...]:
        return self.rejection_costs or (1.0,) * len(self.arrival_rates)

    @property
    def _downgrading_costs(self) -> tuple[float, ...]:
        return self.downgrading_costs or (0.0,) * len(self.arrival_rates)

    @property
    def notes(self) -> tuple[str, ...]:
        """What was rounded, and where jobs below the threshold may not fit."""
        found = [note for _, note in self._counts if note is not None]
        if self.level + max(self.requirements) - 1 > self.units:
            found.append(
                f"below the threshold {self.level} of {self.units} units a job may not fit; it is "
                + ("downgraded then" if self.unfit == "downgrade" else "rejected then")
            )
        return tuple(found)

    def model(self, caps: Sequence[int] | None = None) -> Model:
        """The model of the finite link; events "arrival j" and "departure j".

        Raises
        ------
        InputError
            When caps are given.
        """
        if caps is not None:
            raise InputError("caps are given, but the states of a link are finite: leave them out")
        sizes = tuple(self.units // units for units in self.requirements)
        space = Lattice({"jobs": sizes}, where=lambda x: used(x, self.requirements) <= self.units)
        rates = scaled(self.arrival_rates, self.scale)
        arrivals = [Event(f"arrival {j}", rate, self._actions(j)) for j, rate in enumerate(rates)]
        departures = [
            Event(f"departure {j}", _departures(j, rate), step(jobs={j: -1}))
            for j, rate in enumerate(self.service_rates)
        ]
        return Model(space, (*arrivals, *departures), measures=self._measures())

    def _actions(self, j: int) -> list[Action]:
        full = Action("full", step(jobs={j: +1}))
        reject = Action("reject", cost=self._rejection_costs[j])
        if j == 0:
            return [full, reject]
        cost = self._downgrading_costs[j]
        return [full, Action("downgrade", step(jobs={0: +1}), cost=cost), reject]

    def _measures(self) -> dict[str, Any]:
        classes = range(len(self.arrival_rates))
        rejected = {f"rejection_rate[{j}]": (f"arrival {j}", "reject") for j in classes}
        downgraded: dict[str, Any] = {
            f"downgrading_rate[{j}]": (f"arrival {j}", "downgrade") if j else 0.0 for j in classes
        }
        jobs = {f"mean_jobs[{j}]": _jobs(j) for j in classes}
        return rejected | downgraded | jobs

    def derived(
        self, cost: tuple[float, float], measures: Mapping[str, tuple[float, float]]
    ) -> dict[str, tuple[float, float]]:
        """Probabilities ``blocking[j]`` and ``downgraded[j]`` of an arriving job."""
        return per_job(measures, scaled(self.arrival_rates, self.scale))

    # --- large systems ----------------------------------------------------------------------------

    @property
    def _link(self) -> Link:
        return Link(
            self.arrival_rates,
            self.service_rates,
            self.requirements,
            self.capacity,
            self.threshold,
        )

    def limit(self) -> Measures:
        """Limit of D(C0) for a large scale, per unit of it.

        Where the threshold is the capacity and the load is beyond it, that of a link which fills up
        and on which only jobs that do not fit are downgraded, or rejected (regime "filled").

        Raises
        ------
        NoLimitError
            See `mdpcloud.limits.downgrading.equilibrium`.
        SolveError
            See `mdpcloud.limits.downgrading.filled`.
        """
        link = self._link
        found = limit_when_filled(link, self.unfit) if is_filled(link) else equilibrium(link)
        rates = np.asarray(self.arrival_rates)
        lost, lower = rates * self._rejection_costs, rates * self._downgrading_costs
        errors = dict.fromkeys(("blocking", "downgraded"), found.error) | {
            "mean_jobs": found.error * max(float(link.rho.max()), link.low_load),
            "cost": found.error * float(lost.sum() + lower.sum()),
        }
        return Measures(
            blocking=found.blocking,
            mean_jobs=found.jobs,
            cost=float(lost @ found.blocking + lower @ found.downgraded),
            downgraded=found.downgraded,
            errors=errors,
            certified=found.certified,
            regime=found.regime,
            notes=found.notes,
        )

    def fluid(
        self,
        horizon: float,
        start: Sequence[float] | None = None,
        times: Sequence[float] | None = None,
    ) -> Trajectory:
        """The fluid limit of D(C0), see `mdpcloud.limits.downgrading.fluid.fluid_trajectory`."""
        return fluid_trajectory(self._link, horizon, start, times)

    def walk(self) -> WalkLaw:
        """The walk m = u - C0 of the units in use around the threshold of a large link.

        Raises
        ------
        NoLimitError
            When the link does not stay at its threshold.
        SolveError
            See `mdpcloud.limits.downgrading.wiener_hopf.walk_law`.
        """
        freed = np.multiply(self.service_rates, equilibrium(self._link).jobs)
        return walk_law(self.arrival_rates, freed.tolist(), self.requirements)

    def fluid_bound(self) -> float:
        """Lower bound of the optimal cost of the finite link, cost/time.

        See `mdpcloud.limits.downgrading.bound`.
        """
        return fluid_bound(
            scaled(self.arrival_rates, self.scale),
            self.service_rates,
            self.requirements,
            self.units,
            self._rejection_costs,
            self._downgrading_costs,
        )

    # --- policies ---------------------------------------------------------------------------------

    def heuristic(self, name: str, ties: str = "fastest") -> Heuristic:
        """A policy by name.

        ``downgrade_threshold`` is D(C0) at the system's threshold, ``always_downgrade`` is D(0),
        and ``pure_loss`` takes in full what fits and rejects the rest.
        """
        if name == "pure_loss":
            return Heuristic(name, rule=self._policies.pure_loss().member())
        level = {"downgrade_threshold": self.level, "always_downgrade": 0}.get(name)
        if level is None:
            raise InputError(
                f"policy {name!r} is unknown; there are {', '.join(self.policy_names)}"
            )
        return Heuristic(name, rule=self._policies.common().member(level))

    def families(self) -> tuple[Family, ...]:
        """D(C0) for C0 = 0 ... C, and a threshold per class where there are several."""
        found = (self._policies.common(),) if len(self.requirements) > 1 else ()
        return (*found, self._policies.per_class()) if len(self.requirements) > 2 else found

    @property
    def _policies(self) -> ThresholdPolicies:
        return ThresholdPolicies(self.requirements, self.units, self.unfit)


def _departures(j: int, rate: float) -> Callable[[Any], Any]:
    return lambda x: rate * x.jobs[j]


def _jobs(j: int) -> Callable[[Any], Any]:
    return lambda x: 1.0 * x.jobs[j]
