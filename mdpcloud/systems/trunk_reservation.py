"""Two centres, the first of which may send jobs to the second: trunk reservation.

Centre k has C_k servers and its own jobs, of rate lambda_k, each served at the rate mu_k of the
centre that takes it. With the numbers of busy servers n_0 and n_1 as the state,

    n_0 -> n_0 + 1  at rate lambda_0 if n_0 < C_0,           n_k -> n_k - 1  at rate mu_k n_k,
    n_1 -> n_1 + 1  at rate (lambda_1 + lambda_0 1{n_0 = C_0, C_1 - n_1 > a}) 1{n_1 < C_1}.

Source: G. Thompson, "Stochastic models for resource allocation in large distributed systems" (PhD
thesis, UPMC 2017), chapter 5, where the classes and centres 0 and 1 are called 1 and 2. Known
errors of the text: its prose asks for "at least a" free servers, its formulas for n_2 > a, that is
a + 1 at least; the formulas hold here. N_i counts busy servers in the prose, and free ones in the
definition of B_1. The two queues are said to be in tandem; they are coupled. The h_1 of its chapter
4 is the -K of chapter 5. What it leaves open are the decisions that an optimum may take: see
``freedom``.

V. Nguyen, "On the optimality of trunk reservation in overflow processes", Prob. Eng. Inf. Sci. 5
(1991) 369-390, shows for equal service times that jobs which pay more are taken whenever there is
room, others below a threshold that depends on the busy servers of the overflowing centre. Where
jobs of class 0 pay less, that centre is full whenever they are redirected, so that it is a single
threshold, the best a. It grows like sqrt N in a critically loaded system: M. Reiman,
"Asymptotically optimal trunk reservation for large trunk groups", 28th IEEE Conf. Decision and
Control (1989).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal, Self, TypeAlias

from annotated_types import Ge, Gt, Unit

from mdpcloud.errors import InputError
from mdpcloud.model.event import Action, Event, step
from mdpcloud.model.model import Model
from mdpcloud.model.space import Lattice
from mdpcloud.parameters import validate
from mdpcloud.plugins import did_you_mean
from mdpcloud.policies.complete_sharing import complete_sharing
from mdpcloud.policies.family import Family, Option, Parameter, Stream
from mdpcloud.policies.redirect_threshold import RedirectThreshold, redirect_threshold
from mdpcloud.policies.trunk_reservation import trunk_reservation
from mdpcloud.systems.base import Heuristic
from mdpcloud.systems.measures import Bounds, Measures, per_job, scaled, scaled_count
from mdpcloud.systems.ranges import check_ranges

if TYPE_CHECKING:
    from mdpcloud.limits.trajectory import Trajectory
    from mdpcloud.limits.trunk_reservation.thresholds import ThresholdCosts

__all__ = ["TrunkReservation"]

Rate: TypeAlias = Annotated[float, Ge(0), Unit("1/time")]
ServiceRate: TypeAlias = Annotated[float, Gt(0), Unit("1/time")]
Servers: TypeAlias = Annotated[float, Gt(0)]
Cost: TypeAlias = Annotated[float, Ge(0), Unit("cost")]
Freedom: TypeAlias = Literal["redirect", "rejection", "offload", "mutual"]

ROUNDING = 1e-15  # of sums and products, relative
SHOWN = 3  # states in which an optimum differs from trunk reservation


@dataclass(frozen=True)
class TrunkReservation:
    """Two loss systems; jobs that find the first full may go to the second if more than a are free.

    Classes and centres are 0 and 1 here, 1 and 2 in the source.

    Parameters
    ----------
    arrival_rates : (lambda_0, lambda_1)
        Of the jobs of each centre, per unit of the scale.
    service_rates : (mu_0, mu_1)
        Of one server of each centre; a job that is sent to centre 1 is served at its rate mu_1.
    servers : (c_0, c_1)
        Of each centre, per unit of the scale.
    reserved : int
        The threshold a: a job of class 0 that finds centre 0 full goes to centre 1 if more than a
        servers are free there, so that a stay free once it is in. It counts servers at every scale:
        unlike ``servers`` it is not multiplied by it.
    rejection_costs : (w_0, w_1), optional
        Of a lost job of each class; 1 each by default.
    freedom : {"redirect", "rejection", "offload", "mutual"}
        What the optimum may decide. redirect: whether a job of class 0 that finds centre 0 full is
        redirected or lost. rejection: besides, whether a job of class 1 is refused although there
        is room. offload: besides, whether one of class 0 is redirected or refused while centre 0
        has room. mutual: besides, whether one of class 1 goes to centre 0.
    scale : float
        Multiplies arrival rates and servers.

    Notes
    -----
    As ``reserved`` does not grow with the scale, it may exceed the servers of centre 1 at small
    scales, where no job is redirected then; ``notes`` says so.

    With "redirect" the optimum was a threshold in n_1 in every instance that was tried, also with
    unequal service rates. The cost first fell and then rose in the threshold in 4000 random
    instances, but that is not proved, and all thresholds are tried (`best_reserved` finds the costs
    of all of them at once). With "rejection" the optimum is no threshold where jobs of class 1 are
    the cheaper ones, with "offload" where service rates differ: `threshold_of` says in which
    states.

    Examples
    --------
    >>> import mdpcloud as mc
    >>> system = TrunkReservation((6.0, 7.0), (1.0, 1.0), (4, 8), 2, (1.0, 2.0))
    >>> round(mc.solve(system.model()).gain, 9)
    5.146144226
    """

    arrival_rates: tuple[Rate, Rate]
    service_rates: tuple[ServiceRate, ServiceRate]
    servers: tuple[Servers, Servers]
    reserved: Annotated[int, Ge(0)]
    rejection_costs: tuple[Cost, Cost] | None = None
    freedom: Freedom = "redirect"
    scale: Annotated[float, Gt(0)] = 1.0

    policy_names: ClassVar[tuple[str, ...]] = (
        "trunk_reservation",
        "complete_sharing",
        "no_cooperation",
    )
    own_policy: ClassVar[str] = "trunk_reservation"

    def __post_init__(self) -> None:
        validate(self)
        check_ranges(self)
        _ = self._finite

    @classmethod
    def example(cls) -> Self:
        """A small first centre, overloaded, whose jobs are worth half of those of the second."""
        return cls((6.0, 7.0), (1.0, 1.0), (4.0, 8.0), reserved=2, rejection_costs=(1.0, 2.0))

    @property
    def costs(self) -> tuple[float, float]:
        """Cost of a lost job of each class."""
        return (1.0, 1.0) if self.rejection_costs is None else self.rejection_costs

    @cached_property
    def _finite(self) -> tuple[tuple[int, int], tuple[str, ...]]:
        """Servers of the finite system, and notes on rounding."""
        counts, notes = zip(
            *(
                scaled_count(f"servers[{k}]", servers, self.scale, least=1)
                for k, servers in enumerate(self.servers)
            ),
            strict=True,
        )
        return counts, tuple(note for note in notes if note)

    @property
    def notes(self) -> tuple[str, ...]:
        """Where servers were rounded, and where nothing is ever redirected."""
        servers, notes = self._finite
        if self.reserved >= servers[1]:
            notes += (
                f"reserved = {self.reserved} is not less than the {servers[1]} servers of centre "
                f"1 at scale {self.scale:g}, so that no job is redirected; reserved counts servers "
                "at every scale and is not multiplied by it",
            )
        return notes

    # --- the model --------------------------------------------------------------------------------

    def model(self, caps: Sequence[int] | None = None) -> Model:
        """The finite system.

        Raises
        ------
        InputError
            When caps are given: the state space is finite.
        """
        if caps is not None:
            raise InputError("caps are not for trunk_reservation: its state space is finite")
        servers, _ = self._finite
        rates = scaled(self.arrival_rates, self.scale)
        arrivals = [
            Event(f"arrival {k}", rates[k], actions)
            for k, actions in enumerate((self._first(servers[0]), self._second(servers[1])))
        ]
        departures = [
            Event(f"departure {k}", _busy(k, rate), step(busy={k: -1}))
            for k, rate in enumerate(self.service_rates)
        ]
        return Model(
            Lattice({"busy": servers}), [*arrivals, *departures], measures=self._measures()
        )

    def _first(self, servers: int) -> list[Action]:
        """What may be done with a job of class 0."""
        free = self.freedom in ("offload", "mutual")
        allowed = None if free else lambda x: x.busy[0] == servers
        return [
            Action("local", step(busy={0: +1})),
            Action("redirect", step(busy={1: +1}), allowed=allowed),
            Action("reject", cost=self.costs[0], allowed=allowed),
        ]

    def _second(self, servers: int) -> list[Action]:
        """What may be done with a job of class 1."""
        free = self.freedom != "redirect"
        allowed = None if free else lambda x: x.busy[1] == servers
        actions = [
            Action("local", step(busy={1: +1})),
            Action("reject", cost=self.costs[1], allowed=allowed),
        ]
        if self.freedom == "mutual":
            actions.insert(1, Action("redirect", step(busy={0: +1})))
        return actions

    def _measures(self) -> dict[str, Any]:
        measures: dict[str, Any] = {
            f"rejection_rate[{k}]": (f"arrival {k}", "reject") for k in (0, 1)
        }
        measures["forwarding_rate[0]"] = ("arrival 0", "redirect")
        measures["forwarding_rate[1]"] = (
            ("arrival 1", "redirect") if self.freedom == "mutual" else 0.0
        )
        return measures | {f"mean_jobs[{k}]": _busy(k, 1.0) for k in (0, 1)}

    def derived(self, cost: Bounds, measures: Mapping[str, Bounds]) -> dict[str, Bounds]:
        """Bounds of the probabilities that a job is lost, or redirected."""
        return per_job(measures, scaled(self.arrival_rates, self.scale))

    # --- the limit --------------------------------------------------------------------------------

    @property
    def capacities(self) -> tuple[float, float]:
        """Jobs that each centre can serve per unit of time, per unit of the scale."""
        (first, second), (c0, c1) = self.service_rates, self.servers
        return first * c0, second * c1

    def limit(self) -> Measures:
        """What becomes of the jobs in the large-scale limit, per unit of the scale.

        With lambda the arrival rates and a the ``capacities``, the ``regime`` is

        =================  ========================================================================
        none_saturated     lambda_0 <= a_0, lambda_1 <= a_1: no job is lost or redirected
        class_1_saturated  lambda_0 <= a_0, lambda_1 > a_1: centre 1 is full and loses jobs of
                           class 1, no job is redirected
        overflow_carried   lambda_0 > a_0, lambda_0 + lambda_1 <= a_0 + a_1: centre 0 is full,
                           centre 1 takes what it overflows, no job is lost
        both_saturated     lambda_0 > a_0, lambda_0 + lambda_1 > a_0 + a_1: both centres are full up
                           to a few servers, jobs of both classes are lost
        =================  ========================================================================

        On the boundary of two of them blocking is continuous; ``notes`` of the result say so.

        Raises
        ------
        SolveError
            When the walk of the free servers needs too many phases, near the boundaries of the
            regimes, and bounds that need no walk are too wide; the message says what to change.

        Examples
        --------
        >>> limit = TrunkReservation((2.0, 3.0), (1.0, 1.0), (1.0, 2.0), 2).limit()
        >>> limit.regime, [round(b, 12) for b in limit.blocking]
        ('both_saturated', [0.421361650989, 0.385758899341])
        """
        from mdpcloud.limits.trunk_reservation.regimes import trunk_reservation_limit

        found = trunk_reservation_limit(self.arrival_rates, self.capacities, self.reserved)
        prices = [w * rate for w, rate in zip(self.costs, self.arrival_rates, strict=True)]
        cost = sum(price * b for price, b in zip(prices, found.blocking, strict=True))
        error = min(found.error + self._rounding(found.overflow), 1.0)
        jobs = sum(self.arrival_rates) / min(self.service_rates)
        return Measures(
            blocking=found.blocking,
            mean_jobs=self._fluid_jobs(),
            cost=cost,
            forwarded=(max(found.overflow - found.blocking[0], 0.0), 0.0),
            errors={
                "blocking": error,
                "forwarded": error + (ROUNDING if found.overflow else 0.0),
                "mean_jobs": ROUNDING * jobs,
                "cost": sum(prices) * error + ROUNDING * cost,
            },
            certified=found.phases == 0,
            regime=found.regime,
            notes=found.notes,
        )

    def _rounding(self, overflow: float) -> float:
        """What the rounding of the capacities may change of the probabilities that jobs are lost.

        By the conservation law lambda_0 B_0 + lambda_1 B_1 changes by no more than the capacities,
        and both probabilities fall in them.
        """
        if overflow == 0.0:
            return 0.0
        off = sum(
            abs(Fraction(rate) * Fraction(count) - Fraction(rounded))
            for rate, count, rounded in zip(
                self.service_rates, self.servers, self.capacities, strict=True
            )
        )
        return float(off / Fraction(min(rate for rate in self.arrival_rates if rate > 0.0)))

    def _fluid_jobs(self) -> tuple[float, float]:
        (l0, l1), (a0, a1), (mu0, mu1) = self.arrival_rates, self.capacities, self.service_rates
        return min(l0, a0) / mu0, min(l1 + max(l0 - a0, 0.0), a1) / mu1

    def fluid(
        self,
        horizon: float,
        start: Sequence[float] | None = None,
        times: Sequence[float] | None = None,
    ) -> Trajectory:
        """Busy servers of each centre in the fluid limit, per unit of the scale.

        It does not depend on the threshold, which is lost in the scale: the overflow of a full
        centre 0 is taken as long as centre 1 is not full.

        Parameters
        ----------
        horizon : float
        start : sequence of float, optional
            Busy servers at time 0, at most ``servers``; none by default.
        times : sequence of float, optional
        """
        from mdpcloud.limits.offloading.fluid import fluid_path

        return fluid_path(
            self.arrival_rates,
            self.service_rates,
            self.servers,
            (0.5, 0.0),  # to each neighbour; of two centres both neighbours are the same one
            horizon,
            start=start,
            times=times,
        )

    def fluid_bound(self) -> float:
        """Lower bound of the cost of every policy of the finite system: servers are busy at most.

        Examples
        --------
        >>> system = TrunkReservation((2.0, 1.5), (1.0, 1.0), (1.0, 2.0), 0, (1.0, 2.0))
        >>> round(system.fluid_bound(), 12)
        0.5
        """
        from mdpcloud.limits.offloading.bound import least_loss

        servers, _ = self._finite
        capacities = [mu * count for mu, count in zip(self.service_rates, servers, strict=True)]
        reach = ((0, 1), (0, 1) if self.freedom == "mutual" else (1,))
        rates = scaled(self.arrival_rates, self.scale)
        return least_loss(rates, capacities, self.costs, reach)

    # --- thresholds -------------------------------------------------------------------------------

    def best_reserved(self, scale: float | None = None) -> ThresholdCosts:
        """Costs of trunk reservation with every threshold, and the best of them.

        In the limit of both centres saturated the cost falls in the threshold where class 1 is the
        dearer one, by the conservation law; it is the finite scale that bounds the best one.

        Parameters
        ----------
        scale : float, optional
            By default that of the system.

        Examples
        --------
        >>> system = TrunkReservation((2.0, 1.5), (1.0, 1.0), (1.0, 2.0), 0, (1.0, 2.0))
        >>> [system.best_reserved(scale).best for scale in (5, 10, 20, 40)]
        [2, 3, 4, 5]
        """
        from mdpcloud.limits.trunk_reservation.thresholds import threshold_costs

        system = self if scale is None else replace(self, scale=scale)
        servers, _ = system._finite
        rates = scaled(system.arrival_rates, system.scale)
        return threshold_costs(rates, system.service_rates, servers, system.costs)

    def threshold_of(self, policy: Any) -> RedirectThreshold:
        """The threshold of a policy of the model, if it has one, and where it differs from it.

        Parameters
        ----------
        policy : Policy, Solution or Evaluation

        Examples
        --------
        >>> import mdpcloud as mc
        >>> system = TrunkReservation.example()
        >>> system.threshold_of(mc.solve(system.model())).reserved
        2
        """
        return redirect_threshold(policy, self._finite[0])

    def about_optimum(self, policy: Any) -> tuple[str, ...]:
        """Whether the optimal policy is trunk reservation, in words.

        Parameters
        ----------
        policy : Policy, Solution or Evaluation

        Examples
        --------
        >>> import mdpcloud as mc
        >>> system = TrunkReservation.example()
        >>> system.about_optimum(mc.solve(system.model()))
        ('the optimum is trunk reservation with reserved = 2',)
        """
        found = self.threshold_of(policy)
        if found.reserved is not None:
            never = found.reserved >= self._finite[0][1]
            tail = ": no job is redirected" if never else ""
            return (f"the optimum is trunk reservation with reserved = {found.reserved}{tail}",)
        shown = "; ".join(
            f"in state busy = ({n}, {m}) it answers {event!r} with {action!r}"
            for (n, m), event, action in found.exceptions[:SHOWN]
        )
        more = len(found.exceptions) - SHOWN
        rest = f"; and in {more} more" if more > 0 else ""
        return (
            f"the optimum is no trunk reservation; the nearest is that with reserved = "
            f"{found.nearest}, from which it differs in {len(found.exceptions)} decisions: "
            f"{shown}{rest}",
        )

    # --- policies ---------------------------------------------------------------------------------

    def heuristic(self, name: str, ties: str = "fastest") -> Heuristic:
        """A policy by name.

        Parameters
        ----------
        name : str
            "trunk_reservation" with a = ``reserved``; "complete_sharing", a = 0; or
            "no_cooperation", where no job is redirected.
        ties : str
            Not used: the policies know no ties.
        """
        levels = {
            "trunk_reservation": self.reserved,
            "complete_sharing": 0,
            "no_cooperation": self._finite[0][1],
        }
        if name not in levels:
            near = did_you_mean(name, self.policy_names)
            known = ", ".join(self.policy_names)
            raise InputError(f"policy {name!r} is unknown; there are {known}{near}")
        if name == "complete_sharing":
            return Heuristic(name, rule=complete_sharing(self._streams()).member())
        return Heuristic(name, rule=self._family().member(levels[name]))

    def families(self) -> tuple[Family, ...]:
        """Trunk reservation with every threshold from 0 to the servers of centre 1."""
        return (self._family(),)

    def _family(self) -> Family:
        grid = tuple(range(self._finite[0][1] + 1))
        return trunk_reservation(self._streams(), [Parameter("reserved", grid)])

    def _streams(self) -> list[Stream]:
        first, second = self._finite[0]
        redirect = Option(
            "redirect",
            fits=lambda x: (x.busy[0] == first) & (x.busy[1] < second),
            spare=lambda x: second - x.busy[1] - 1,
        )
        return [
            Stream("arrival 0", (Option("local", fits=lambda x: x.busy[0] < first), redirect)),
            Stream("arrival 1", (Option("local", fits=lambda x: x.busy[1] < second),)),
        ]


def _busy(k: int, rate: float) -> Any:
    return lambda x: rate * x.busy[k]
