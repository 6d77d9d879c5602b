"""Cooperating centres with several resources: a job may be sent to the other centre.

A job of type j needs A_jm units of resource m. Centre k has C_km units, and holds L_jk jobs of type
j: sum_j A_jm L_jk <= C_km for every resource m. Jobs of type j come to centre k at rate lambda_jk,
are taken there, sent to the other centre or rejected, and leave at rate mu_j each.

Under the threshold policy a job of type p at centre p is kept while less than a level of resource p
is in use there, and sent to the other centre else, so that its large jobs leave room for the other
type; a job of the other type goes away only if it does not fit.

Source: G. Thompson, "Stochastic models for resource allocation in large distributed systems" (PhD
thesis, UPMC 2017), chapter 3, with requirements ((R, 1), (1, C)) in two centres. Left open there,
and chosen here: a job that is sent to a centre where it does not fit is rejected (``remote_full``),
a job of type p at centre p below its level that does not fit is sent as well (``unfit``), and the
conditions of the limit are completed in `mdpcloud.limits.cooperation.equilibrium`. The list of
known errors of that text has none for this chapter.

More centres, types and resources are an extension: centre k sends to centre k + 1, the last one to
centre 0, and guards resource k against type k, both counted round (modulo their number).
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal, Self

from annotated_types import Ge, Gt, MinLen, Unit

from mdpcloud.errors import InputError, NoLimitError
from mdpcloud.limits.cooperation.bound import least_cost
from mdpcloud.limits.cooperation.equilibrium import TwoCentres, equilibrium
from mdpcloud.model.model import Model
from mdpcloud.parameters import validate
from mdpcloud.policies.family import Family
from mdpcloud.queues.border import checked_choice
from mdpcloud.systems.base import Heuristic
from mdpcloud.systems.cooperation_centres import Centres, LevelRules
from mdpcloud.systems.cooperation_model import boxed_model, lattice_model, parted_model
from mdpcloud.systems.measures import Measures, per_job, scaled, scaled_count
from mdpcloud.systems.ranges import check_ranges

if TYPE_CHECKING:
    from mdpcloud.limits.trajectory import Trajectory
    from mdpcloud.simulate.protocol import Simulation

__all__ = ["Cooperation"]

Rates = Annotated[
    tuple[Annotated[tuple[Annotated[float, Ge(0), Unit("1/time")], ...], MinLen(2)], ...], MinLen(1)
]
Capacities = Annotated[
    tuple[Annotated[tuple[Annotated[float, Gt(0)], ...], MinLen(1)], ...], MinLen(2)
]
Requirements = Annotated[
    tuple[Annotated[tuple[Annotated[int, Ge(0)], ...], MinLen(1)], ...], MinLen(1)
]


@dataclass(frozen=True)
class Cooperation:
    """Centres with several resources that send jobs to each other.

    Parameters
    ----------
    arrival_rates : tuple of tuples of float
        Row = job type, column = centre, 1/time.
    service_rates : tuple of float
        Per type, 1/time.
    requirements : tuple of tuples of int
        Row = job type, column = resource.
    capacities : tuple of tuples of float
        Row = centre, column = resource.
    thresholds : tuple of float
        Per centre the level of its guarded resource, at most its capacity: the guarded type is kept
        below it.
    rejection_cost : float
        Of each job that is lost.
    forwarding_cost : float
        Of each job that is sent to another centre and taken there.
    remote_full : {"reject", "return"}
        Whether a job above the threshold that does not fit in the other centre is lost, or taken at
        home if it fits.
    unfit : {"forward", "reject"}
        Whether a job of the guarded type that does not fit, below the threshold, is sent or lost.
    scale : float
        Multiplies arrival rates, capacities and thresholds.

    Examples
    --------
    >>> import mdpcloud as mc
    >>> system = Cooperation.example()
    >>> optimum = mc.solve(system.model()).gain
    >>> cost = mc.evaluate(system.model(), system.heuristic("threshold").rule).gain
    >>> round(optimum, 6), round(cost, 6)
    (2.818403, 2.855446)
    """

    arrival_rates: Rates
    service_rates: tuple[Annotated[float, Gt(0), Unit("1/time")], ...]
    requirements: Requirements
    capacities: Capacities
    thresholds: tuple[Annotated[float, Ge(0)], ...]
    rejection_cost: Annotated[float, Ge(0), Unit("cost")] = 1.0
    forwarding_cost: Annotated[float, Ge(0), Unit("cost")] = 0.0
    remote_full: Literal["reject", "return"] = "reject"
    unfit: Literal["forward", "reject"] = "forward"
    scale: Annotated[float, Gt(0)] = 1.0

    policy_names: ClassVar[tuple[str, ...]] = ("threshold", "complete_sharing")
    own_policy: ClassVar[str] = "threshold"

    def __post_init__(self) -> None:
        validate(self)
        check_ranges(self)
        self._check_lengths()
        if not any(map(any, self.arrival_rates)):
            raise InputError("Cooperation: arrival_rates are all 0; one at least must be > 0")
        for k, (level, row) in enumerate(zip(self.thresholds, self.capacities, strict=True)):
            guarded = row[k % len(row)]
            if level > guarded:
                raise InputError(
                    f"Cooperation: thresholds[{k}] must be <= {guarded:g}, the capacity of the "
                    f"resource that centre {k} guards, not {level:g}"
                )
        for j, needs in enumerate(self.requirements):
            if not any(needs):
                raise InputError(
                    f"Cooperation: requirements[{j}] = {needs}; a job must need something"
                )
            centres = self._centres
            if not any(centres.most(j, k) for k in range(centres.count)):
                raise InputError(
                    f"Cooperation: a job of type {j} needs {needs} and fits in no centre; "
                    f"capacities at scale {self.scale:g} are {centres.capacities}"
                )

    def _check_lengths(self) -> None:
        types, resources = len(self.requirements), len(self.requirements[0])
        centres = len(self.capacities)
        wanted = [
            ("arrival_rates", self.arrival_rates, types, "types (rows of requirements)"),
            ("service_rates", self.service_rates, types, "types (rows of requirements)"),
            ("thresholds", self.thresholds, centres, "centres (rows of capacities)"),
            *((f"arrival_rates[{j}]", row, centres, "centres (rows of capacities)")
              for j, row in enumerate(self.arrival_rates)),
            *((f"capacities[{k}]", row, resources, "resources (columns of requirements)")
              for k, row in enumerate(self.capacities)),
            *((f"requirements[{j}]", row, resources, "resources, as requirements[0]")
              for j, row in enumerate(self.requirements)),
        ]  # fmt: skip
        for name, value, count, of in wanted:
            if len(value) != count:
                raise InputError(
                    f"Cooperation: {name} has {len(value)} entries; it must have one for each of "
                    f"the {count} {of}"
                )

    @classmethod
    def example(cls) -> Self:
        """Two symmetric centres with ten units of both resources; sending a job has a price."""
        return cls(
            arrival_rates=((0.5, 0.1), (0.1, 0.5)),
            service_rates=(1.0, 1.0),
            requirements=((2, 1), (1, 2)),
            capacities=((1.0, 1.0), (1.0, 1.0)),
            thresholds=(0.9, 0.9),
            forwarding_cost=0.1,
            scale=10.0,
        )

    # --- the finite system ------------------------------------------------------------------------

    @cached_property
    def _rounded(self) -> tuple[Centres, tuple[int, ...], tuple[str, ...]]:
        """Capacities and levels at this scale, and notes on their rounding."""
        rows = [
            [
                scaled_count(f"capacities[{k}][{m}]", value, self.scale)
                for m, value in enumerate(row)
            ]
            for k, row in enumerate(self.capacities)
        ]
        levels = [
            _scaled_level(f"thresholds[{k}]", value, self.scale)
            for k, value in enumerate(self.thresholds)
        ]
        capacities = tuple(tuple(count for count, _ in row) for row in rows)
        centres = Centres(self.requirements, capacities, self.remote_full, self.unfit)
        notes = tuple(note for row in [*rows, levels] for _, note in row if note)
        return centres, tuple(level for level, _ in levels), notes

    @property
    def _centres(self) -> Centres:
        return self._rounded[0]

    @property
    def notes(self) -> tuple[str, ...]:
        """What was rounded."""
        return self._rounded[2]

    def model(self, caps: Sequence[int] | None = None) -> Model:
        """The model; the number of jobs of type j in centre k is ``x.jobs[j * centres + k]``.

        Raises
        ------
        InputError
            When caps are given: the space is finite.
        """
        if caps is not None:
            raise InputError("cooperation takes no caps: its capacities bound the state space")
        return lattice_model(self, self._centres)

    def derived(
        self, cost: tuple[float, float], measures: Mapping[str, tuple[float, float]]
    ) -> dict[str, tuple[float, float]]:
        """Bounds of the probabilities that an arriving job is lost or sent to another centre."""
        return per_job(measures, [scaled(row, self.scale) for row in self.arrival_rates])

    # --- policies ---------------------------------------------------------------------------------

    def families(self) -> tuple[Family, ...]:
        """A level for each centre, and a level common to all of them."""
        return self._centres.families()

    def heuristic(self, name: str, ties: str = "fastest") -> Heuristic:
        """A policy of ``policy_names``."""
        sharing = checked_choice("policy", name, self.policy_names) == "complete_sharing"
        levels = (math.inf,) * self._centres.count if sharing else self._rounded[1]
        return Heuristic(name, rule=self._centres.rules(*levels))

    def simulation(self, policy: Any, ties: str = "fastest", start: Any = None) -> Simulation:
        """The system under a policy, one of ``policy_names`` or a rule, for `mdpcloud.simulate`."""
        from mdpcloud.simulate.events import event_simulation

        rule = self.heuristic(policy).rule if isinstance(policy, str) else policy
        usual = self.remote_full == "reject" and self.unfit == "forward"
        if isinstance(rule, LevelRules) and usual:
            return event_simulation(*parted_model(self, self._centres, rule.levels), start)
        by_rules = callable(rule) or isinstance(rule, Mapping)
        model = boxed_model(self, self._centres) if by_rules else self.model()
        return event_simulation(model, rule, start)

    # --- large scale ------------------------------------------------------------------------------

    def _two_centres(self) -> TwoCentres:
        """Parameters of the limit.

        Raises
        ------
        NoLimitError
            When the system is not that of the source.
        """
        needs = self.requirements
        two_by_two = len(needs) == len(needs[0]) == len(self.capacities) == 2
        if not two_by_two or needs[0][1] != 1 or needs[1][0] != 1:
            raise NoLimitError(
                "a large-scale limit is known for two centres and requirements ((R, 1), (1, C)) "
                f"only; there are {len(self.capacities)} centres, with requirements {needs}"
            )
        (first, second), (third, fourth) = self.arrival_rates
        return TwoCentres(
            ((first, second), (third, fourth)),
            (self.service_rates[0], self.service_rates[1]),
            (needs[0][0], needs[1][1]),
            (
                (self.capacities[0][0], self.capacities[0][1]),
                (self.capacities[1][0], self.capacities[1][1]),
            ),
            (self.thresholds[0], self.thresholds[1]),
        )

    def limit(self) -> Measures:
        """Measures of the threshold policy per unit of the scale, as the scale grows.

        The ``regime`` says where the guarded resources of centres 0 and 1 are used, such as
        "at_at" or "below_above":

        =====  ====================================================================================
        below  less than the threshold is used: the centre keeps all jobs of its own type
        at     as much as the threshold: part of them is sent to the other centre
        above  more than the threshold, by jobs of the other type: all of them are sent
        =====  ====================================================================================

        Raises
        ------
        NoLimitError
            When there are other than two centres, types and resources, or a condition of
            `mdpcloud.limits.cooperation.equilibrium` is violated.

        Examples
        --------
        >>> found = Cooperation.example().limit()
        >>> found.regime, [[round(p, 9) for p in row] for row in found.forwarded]
        ('at_at', [[0.4, 0.0], [0.0, 0.4]])
        """
        centres = self._two_centres()
        found = equilibrium(centres)
        rates = self.arrival_rates[0][0], self.arrival_rates[1][1]
        sent = found.offloading
        error = found.error * max(self.service_rates)  # of a rate at which jobs are kept
        cost = self.forwarding_cost * (rates[0] * sent[0] + rates[1] * sent[1])
        least = min((rate for rate in rates if rate > 0.0), default=1.0)
        return Measures(
            blocking=((0.0, 0.0), (0.0, 0.0)),
            mean_jobs=found.jobs,
            cost=cost,
            forwarded=((sent[0], 0.0), (0.0, sent[1])),
            errors={
                "blocking": 0.0,
                "mean_jobs": found.error,
                "cost": 2.0 * self.forwarding_cost * error,
                "forwarded": min(error / least, 1.0),
            },
            regime=found.regime,
            notes=found.notes,
        )

    def fluid_bound(self) -> float:
        """A lower bound of the optimal cost, cost/time; see `mdpcloud.limits.cooperation.bound`."""
        centres = self._centres
        return least_cost(
            [scaled(row, self.scale) for row in self.arrival_rates],
            self.service_rates,
            self.requirements,
            centres.capacities,
            (self.rejection_cost, self.forwarding_cost),
            [centres.following(k) for k in range(centres.count)],
        )

    def fluid(
        self,
        horizon: float,
        start: Sequence[float] | None = None,
        times: Sequence[float] | None = None,
    ) -> Trajectory:
        """Fluid trajectory of the threshold policy, per unit of the scale.

        Parameters
        ----------
        horizon : float
        start : sequence of 4 float, optional
            Jobs of type 0 in centres 0 and 1, then of type 1; none by default.
        times : sequence of float, optional

        Raises
        ------
        InputError
            When the start does not fit.
        NoLimitError
            As `limit`; and when a resource is used up on the way.
        """
        from mdpcloud.limits.cooperation.fluid import trajectory

        begin = (0.0,) * 4 if start is None else start
        return trajectory(self._two_centres(), horizon, begin, times)


def _scaled_level(name: str, value: float, scale: float) -> tuple[int, str | None]:
    """A level of the finite system, rounded up, which leaves the same uses below it; and a note."""
    exact = value * scale
    if abs(exact - round(exact)) <= 1e-9 * max(1.0, exact):
        return round(exact), None
    level = math.ceil(exact)
    return level, (
        f"{name} = {value:g} times the scale {scale:g} is {exact:g}; a use below that is one below "
        f"{level}"
    )
