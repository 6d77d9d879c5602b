"""Loss networks: jobs that need several units of several resources, or are lost.

Class-j jobs arrive at rate lambda_j and stay for a mean time 1/mu_j; one of them takes A_ij units
of resource i, which has C_i. The state is the number n_j of jobs of each class, with A n <= C:

    n -> n + e_j  at rate lambda_j, if it is accepted and A (n + e_j) <= C,
    n -> n - e_j  at rate mu_j n_j.

With everything accepted that fits, pi(n) is proportional to prod_j rho_j^{n_j} / n_j! with rho_j =
lambda_j / mu_j, and the blocking probabilities depend on the loads rho_j only, whatever the laws of
the times. On one link: the recursion of Kaufman and Roberts, see `mdpcloud.queues.kaufman_roberts`.

Source: G. Thompson, "Stochastic models for resource allocation in large distributed systems" (PhD
thesis, Universite Pierre et Marie Curie, 2017), chapter 1; F. P. Kelly, "Loss networks", Annals of
Applied Probability 1 (1991) 319-378.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal, Self, TypeAlias, get_args

import numpy as np
from annotated_types import Ge, Gt, MinLen, Unit

from mdpcloud.errors import InputError, NoLimitError, SolveError
from mdpcloud.model.event import Action, Event, step
from mdpcloud.model.model import Model
from mdpcloud.model.space import Lattice
from mdpcloud.parameters import validate
from mdpcloud.plugins import did_you_mean
from mdpcloud.policies.family import Family
from mdpcloud.queues.border import checked_choice
from mdpcloud.queues.occupancy import LossLaw
from mdpcloud.queues.product_form import LARGEST_LATTICE, points, product_form_law
from mdpcloud.systems.base import Heuristic
from mdpcloud.systems.loss_network_policies import fits, reservation_families, sharing_rules
from mdpcloud.systems.measures import Bounds, Measures, per_job, scaled, scaled_count

if TYPE_CHECKING:
    from mdpcloud.limits.loss.fixed_point import FixedPoint
    from mdpcloud.limits.trajectory import Trajectory
    from mdpcloud.simulate.protocol import Simulation

__all__ = ["LossNetwork"]

ROUNDING = 2.0**-53
TINY = 1e-300  # probabilities below have fewer digits, or none
SMALLEST, LARGEST = 1e-290, 1e290  # of rates, loads and costs
LARGEST_NOTED = 1000  # capacity up to which the limit notes the fixed points
ON_BOUNDARY = 1e-12  # of a capacity: what is spare there may be a rounding error

Rate: TypeAlias = Annotated[float, Ge(0), Unit("1/time")]
ServiceRate: TypeAlias = Annotated[float, Gt(0), Unit("1/time")]
Units: TypeAlias = Annotated[int, Ge(0)]
Cost: TypeAlias = Annotated[float, Ge(0), Unit("cost")]
Form: TypeAlias = Literal["kelly", "knapsack"]
FORMS: tuple[Form, ...] = get_args(Form)


@dataclass(frozen=True)
class LossNetwork:
    """Jobs of several classes share resources, and those that do not fit are lost.

    Parameters
    ----------
    arrival_rates : tuple of float
        Rates lambda_j at which jobs of each class arrive, per unit of the scale.
    service_rates : tuple of float
        Rates mu_j of one job of each class; it stays for a mean time 1/mu_j.
    requirements : tuple of tuples of int
        One row per resource: the units A_ij of it that a job of each class needs.
    capacities : tuple of float
        Units of each resource, per unit of the scale.
    rejection_costs : tuple of float, optional
        Cost w_j of a lost job of each class; 1 each by default.
    scale : float
        Multiplies arrival rates and capacities.

    Notes
    -----
    Errors of the source: it lets a class have rate mu^-1 where the mean is 1/mu_j, and lists the
    states of a link from 1; they begin with 0. Its remark that many circuits are out of reach of
    exact formulas does not hold for one link.

    Examples
    --------
    >>> import mdpcloud as mc
    >>> link = LossNetwork((3.0, 1.5), (1.0, 1.0), ((1, 2),), (6,))
    >>> round(link.exact().cost, 10), round(mc.solve(link.model()).gain, 10)
    (1.3100739372, 1.303453537)
    """

    arrival_rates: Annotated[tuple[Rate, ...], MinLen(1)]
    service_rates: Annotated[tuple[ServiceRate, ...], MinLen(1)]
    requirements: Annotated[tuple[tuple[Units, ...], ...], MinLen(1)]
    capacities: Annotated[tuple[Annotated[float, Gt(0)], ...], MinLen(1)]
    rejection_costs: tuple[Cost, ...] | None = None
    scale: Annotated[float, Gt(0)] = 1.0

    policy_names: ClassVar[tuple[str, ...]] = ("complete_sharing",)
    own_policy: ClassVar[str] = "complete_sharing"

    def __post_init__(self) -> None:
        validate(self)
        self._check_lengths()
        self._check_range()
        capacities, _ = self._finite
        for j, needs in enumerate(zip(*self.requirements, strict=True)):
            if not any(needs):
                raise InputError(
                    f"LossNetwork: class {j} needs nothing of any resource; requirements must be "
                    ">= 1 for at least one"
                )
            for i, (need, capacity) in enumerate(zip(needs, capacities, strict=True)):
                if need > capacity:
                    raise InputError(
                        f"LossNetwork: requirements[{i}][{j}] is {need}, more than the {capacity} "
                        f"units of resource {i}: class {j} never fits; leave it out"
                    )

    def _check_lengths(self) -> None:
        classes = len(self.arrival_rates)
        lists = {"service_rates": self.service_rates, "rejection_costs": self.costs}
        lists |= {f"requirements[{i}]": row for i, row in enumerate(self.requirements)}
        for name, values in lists.items():
            if len(values) != classes:
                raise InputError(
                    f"LossNetwork: {name} has {len(values)} numbers for the {classes} classes of "
                    "arrival_rates; one each is needed"
                )
        if len(self.requirements) != len(self.capacities):
            raise InputError(
                f"LossNetwork: requirements has {len(self.requirements)} rows for "
                f"{len(self.capacities)} capacities; one row per resource is needed"
            )

    def _check_range(self) -> None:
        """Loads and costs within the range of floats, where they have all their digits."""
        rates = scaled(self.arrival_rates, self.scale)
        for j, (rate, mu) in enumerate(zip(rates, self.service_rates, strict=True)):
            held = all(SMALLEST <= size <= LARGEST for size in (rate, rate / mu))
            if self.arrival_rates[j] and not held:
                raise InputError(
                    f"LossNetwork: arrival_rates[{j}] times scale is {rate:g}, and over "
                    f"service_rates[{j}] {rate / mu:g}; both must be 0, or within {SMALLEST:g} to "
                    f"{LARGEST:g}, as floats have fewer digits or none beyond"
                )
            if not rate * self.costs[j] <= LARGEST:
                raise InputError(
                    f"LossNetwork: arrival_rates[{j}] times scale times rejection_costs[{j}] is "
                    f"{rate * self.costs[j]:g}; it must be <= {LARGEST:g}"
                )

    @classmethod
    def example(cls) -> Self:
        """A link with narrow and wide jobs, where the optimum turns away wide ones at times."""
        return cls((10.0, 4.0, 1.0), (1.0, 1.0, 1.0), ((1, 2, 5),), (25.0,))

    @property
    def costs(self) -> tuple[float, ...]:
        """Cost of a lost job of each class."""
        given = self.rejection_costs
        return (1.0,) * len(self.arrival_rates) if given is None else given

    @property
    def notes(self) -> tuple[str, ...]:
        """Where capacities were rounded."""
        return self._finite[1]

    @cached_property
    def _finite(self) -> tuple[tuple[int, ...], tuple[str, ...]]:
        """Capacities of the finite system, and notes on rounding."""
        counts, notes = zip(
            *(
                scaled_count(f"capacities[{i}]", capacity, self.scale, least=1)
                for i, capacity in enumerate(self.capacities)
            ),
            strict=True,
        )
        return counts, tuple(note for note in notes if note)

    # --- the model --------------------------------------------------------------------------------

    def model(self, caps: Sequence[int] | None = None) -> Model:
        """The finite system, in which every job may be accepted or rejected.

        Raises
        ------
        InputError
            When caps are given: the state space is finite.
        """
        if caps is not None:
            raise InputError("caps are not for loss_network: its state space is finite")
        arrivals = [
            Event(
                f"arrival {j}",
                rate,
                [Action("accept", step(jobs={j: +1})), Action("reject", cost=self.costs[j])],
            )
            for j, rate in enumerate(scaled(self.arrival_rates, self.scale))
        ]
        departures = [
            Event(f"departure {j}", _jobs(j, rate), step(jobs={j: -1}))
            for j, rate in enumerate(self.service_rates)
        ]
        measures: dict[str, Any] = {}
        for j in range(len(self.arrival_rates)):
            measures[f"rejection_rate[{j}]"] = (f"arrival {j}", "reject")
            measures[f"mean_jobs[{j}]"] = _jobs(j, 1.0)
        capacities = self._finite[0]
        space = Lattice(
            {"jobs": self._largest_jobs},
            where=fits(self.requirements, capacities, [0] * len(capacities)),
        )
        return Model(space, [*arrivals, *departures], measures=measures)

    @property
    def _largest_jobs(self) -> tuple[int, ...]:
        """Largest number of jobs of each class."""
        return tuple(
            min(c // a for a, c in zip(needs, self._finite[0], strict=True) if a)
            for needs in zip(*self.requirements, strict=True)
        )

    def derived(self, cost: Bounds, measures: Mapping[str, Bounds]) -> dict[str, Bounds]:
        """Bounds of the probability that a job is lost, per class."""
        return per_job(measures, scaled(self.arrival_rates, self.scale))

    # --- policies ---------------------------------------------------------------------------------

    def heuristic(self, name: str, ties: str = "fastest") -> Heuristic:
        """A policy by name.

        Parameters
        ----------
        name : str
            "complete_sharing", which accepts whatever fits.
        ties : str
            Not used: the policy knows no ties.
        """
        if name not in self.policy_names:
            near = did_you_mean(name, self.policy_names)
            known = ", ".join(self.policy_names)
            raise InputError(f"policy {name!r} is unknown; there are {known}{near}")
        return Heuristic(name, rule=sharing_rules(self.requirements, self._finite[0]))

    def simulation(self, policy: Any, ties: str = "fastest", start: Any = None) -> Simulation:
        """The model under a policy, for `mdpcloud.simulate`.

        Complete sharing, by its name and from the empty system, has a kernel of its own.

        Raises
        ------
        InputError
            When the policy is unknown, or does not fit the system.
        """
        from mdpcloud.simulate.events import event_simulation
        from mdpcloud.simulate.loss import LossSimulation, Network

        rule = self.heuristic(policy).rule if isinstance(policy, str) else policy
        if not isinstance(policy, str) or start is not None:
            return event_simulation(self.model(), rule, start)
        rates = scaled(self.arrival_rates, self.scale)
        network = Network.of(rates, self.service_rates, self.requirements, self._finite[0])
        general = partial(event_simulation, self.model(), rule)
        return LossSimulation(network, np.array(self.costs), general)

    def families(self) -> tuple[Family, ...]:
        """Reservation by one level of free capacity for all classes, and by one for each class."""
        return reservation_families(self.requirements, self._finite[0])

    # --- closed forms -----------------------------------------------------------------------------

    def exact(self) -> Measures | None:
        """Measures of the finite system under complete sharing; None where it is too large.

        See `mdpcloud.queues.product_form_law`. The errors are bounds: those of the law, and those
        of the two roundings of each load; a relative change of it changes a probability by at most
        the largest number of jobs of that class times as much. A class without arrivals has
        blocking 0: it has no job to be lost.
        """
        capacities, notes = self._finite
        sizes = points(np.array(capacities), np.array(self.requirements))
        if min(sizes) > LARGEST_LATTICE:
            return None
        rates = scaled(self.arrival_rates, self.scale)
        law = product_form_law(capacities, self._loads(self.scale), self.requirements)
        error = law.error + 2.1 * ROUNDING * (sum(self._largest_jobs) + 2.0)
        prices = [w * rate for w, rate in zip(self.costs, rates, strict=True)]
        blocking = self._of_arrivals(law.blocking)
        losses = [price * b for price, b in zip(prices, blocking, strict=True)]
        cost = sum(losses)
        return Measures(
            blocking,
            law.mean_jobs,
            cost,
            errors={
                "blocking": error * max(blocking) + TINY,
                "mean_jobs": error * max(law.mean_jobs),
                "cost": (error + len(losses) * ROUNDING) * cost + TINY * sum(prices),
            },
            notes=(*notes, *_underflows(law, self.arrival_rates)),
        )

    def fixed_point(self, form: Form = "kelly") -> FixedPoint:
        """Erlang's fixed point of the finite system, which takes resources as independent.

        Parameters
        ----------
        form : {"kelly", "knapsack"}
            Units blocked one by one, with a unique solution; or jobs as one request, which is
            better where they need several units. See `mdpcloud.limits.loss.fixed_point` and
            `mdpcloud.limits.loss.knapsack_fixed_point`.

        Examples
        --------
        >>> series = LossNetwork((8.0,), (1.0,), ((1,), (1,)), (10.0, 10.0))
        >>> round(series.fixed_point().blocking[0], 9), round(series.exact().blocking[0], 9)
        (0.172170163, 0.121661064)
        """
        from mdpcloud.limits.loss.fixed_point import erlang_fixed_point
        from mdpcloud.limits.loss.knapsack_fixed_point import knapsack_fixed_point

        forms = {"kelly": erlang_fixed_point, "knapsack": knapsack_fixed_point}
        solve = forms[checked_choice("form", form, FORMS)]
        return solve(self._loads(self.scale), self.requirements, self._finite[0])

    def _approximations(self) -> list[str]:
        """What the fixed points say of a finite network, where they take no more than a moment."""
        if len(self.capacities) == 1 or max(self._finite[0]) > LARGEST_NOTED:
            return []
        notes = []
        for form in FORMS:
            try:
                blocking = self._of_arrivals(self.fixed_point(form).blocking)
            except SolveError:
                continue
            numbers = ", ".join(f"{b:.6g}" for b in blocking)
            notes.append(f"Erlang's fixed point at scale {self.scale:g}, {form} form: {numbers}")
        return notes

    def _of_arrivals(self, blocking: Sequence[float]) -> tuple[float, ...]:
        """The probabilities of classes that have arrivals, and 0 for others."""
        return tuple(
            b if rate else 0.0 for b, rate in zip(blocking, self.arrival_rates, strict=True)
        )

    def _loads(self, scale: float) -> list[float]:
        rates = scaled(self.arrival_rates, scale)
        return [rate / mu for rate, mu in zip(rates, self.service_rates, strict=True)]

    # --- the limit --------------------------------------------------------------------------------

    def limit(self) -> Measures:
        """Kelly's large-scale limit under complete sharing, per unit of the scale.

        See `mdpcloud.limits.loss.kelly`; the errors are certified. A class without arrivals has
        blocking 0, as in `exact`.

        Examples
        --------
        >>> limit = LossNetwork((0.8, 0.4), (1.0, 1.0), ((1, 2),), (1.0,), scale=100).limit()
        >>> limit.regime, [round(b, 12) for b in limit.blocking]
        ('overload', [0.275255128608, 0.474744871392])
        """
        from mdpcloud.limits.loss.kelly import kelly_limit

        found = kelly_limit(self._loads(1.0), self.requirements, self.capacities)
        prices = [w * rate for w, rate in zip(self.costs, self.arrival_rates, strict=True)]
        critical = [
            i
            for i, (spare, c) in enumerate(zip(found.spare, self.capacities, strict=True))
            if i not in found.saturated and spare <= ON_BOUNDARY * c
        ]
        regime = "overload" if found.saturated else "critical" if critical else "underload"
        notes = [f"resource {i} is saturated" for i in found.saturated]
        notes += [
            f"resource {i} is loaded to its capacity: the limit is continuous there, and is "
            "approached as one over the square root of the scale"
            for i in critical
        ]
        notes += self._approximations()
        blocking = self._of_arrivals(found.blocking)
        return Measures(
            blocking,
            found.jobs,
            sum(p * b for p, b in zip(prices, blocking, strict=True)),
            errors={
                "blocking": found.error,
                "mean_jobs": found.jobs_error,
                "cost": sum(prices) * (found.error + ROUNDING * (len(prices) + 2)),
            },
            regime=regime,
            notes=tuple(notes),
        )

    def fluid(
        self,
        horizon: float,
        start: Sequence[float] | None = None,
        times: Sequence[float] | None = None,
    ) -> Trajectory:
        """Jobs of each class in the fluid limit of a link, per unit of the scale.

        Parameters
        ----------
        horizon : float
        start : sequence of float, optional
            Jobs at time 0, within the capacity; none by default.
        times : sequence of float, optional

        Raises
        ------
        NoLimitError
            When there are several resources.
        """
        from mdpcloud.limits.loss.fluid import link_fluid

        if len(self.capacities) > 1:
            raise NoLimitError(
                f"requirements has {len(self.capacities)} rows: the fluid trajectory is known for "
                "one resource only, as the free capacities of several are one walk in as many "
                "dimensions"
            )
        return link_fluid(
            self.arrival_rates,
            self.service_rates,
            self.requirements[0],
            self.capacities[0],
            horizon,
            start,
            times,
        )

    def fluid_bound(self) -> float:
        """Lower bound of the cost of every policy of the finite system.

        See `mdpcloud.limits.loss.bound`: accepted jobs are within the capacities on average.
        """
        from mdpcloud.limits.loss.bound import least_rejection_cost

        return least_rejection_cost(
            scaled(self.arrival_rates, self.scale),
            self.service_rates,
            self.requirements,
            self._finite[0],
            self.costs,
        )


def _underflows(law: LossLaw, rates: Sequence[float]) -> list[str]:
    """Logarithms of probabilities that floats hardly hold."""
    return [
        f"log10 of the blocking probability of class {j} is {log / math.log(10.0):.6f}"
        for j, (b, log) in enumerate(zip(law.blocking, law.log_blocking, strict=True))
        if b < TINY and rates[j] and math.isfinite(log)
    ]


def _jobs(j: int, rate: float) -> Any:
    return lambda x: rate * x.jobs[j]
