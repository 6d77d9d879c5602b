"""Loss centres that offload to each other: two of them, or a ring.

Centre k has C_k servers and no queue. Jobs of class k come at rate lambda_k to centre k, are served
there at rate mu_k, offloaded to a neighbour and served there at the neighbour's rate, or rejected
at cost w_k. The optimality equation is

    g = sum_k lambda_k min{ w_k, min_j [h(x + e_j) - h(x)] } + sum_k mu_k x_k [h(x - e_k) - h(x)],

where j runs over centre k and its neighbours that have a free server. Under the policy of the
source a job that finds its centre full is sent to each neighbour with probability p_k, and is lost
if that one is full; it is not sent on.

Source: G. Thompson, "Stochastic models for resource allocation in large distributed systems" (PhD
thesis, UPMC 2017), chapter 4; C. Fricker, F. Guillemin, P. Robert, G. Thompson, "Analysis of an
offloading scheme for data centers in the framework of fog computing" (arXiv 1507.05746). It leaves
nothing open. Known errors of the text: p1 = 0 and p1 = 0.35 in figure 4.4 are said to be in regime
E, but are in B2 for l1 <= 5; "lambda2 = 12" belongs to figure 4.5; the blocking of class 1 is said
to be positive in B2, but is 0 for p1 = 1; both parts of figure 4.6 are captioned class 2, the left
one is class 1, and its legend says 11 where the text says 11.1; four values of p1 are plotted where
one is announced; that class 2 hardly suffers is contradicted by figure 4.5 (from 0.1667 to 0.3706
at l1 = 5, p1 = 1); conjugation bars are missing in alpha_Y = conj(a_Y)/a_Y, and "Re(i ...)" is
printed as "< i".
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Annotated, Any, ClassVar, Self

from annotated_types import Ge, Gt, Le, MinLen, Unit

from mdpcloud.errors import InputError
from mdpcloud.limits.offloading.bound import least_loss
from mdpcloud.limits.offloading.fluid import fluid_path
from mdpcloud.limits.offloading.regimes import PairLimit, pair_limit
from mdpcloud.limits.offloading.ring import Overflow, ring_limit
from mdpcloud.limits.trajectory import Trajectory
from mdpcloud.model.event import Action, Event, step
from mdpcloud.model.model import Model
from mdpcloud.model.space import Lattice
from mdpcloud.parameters import validate
from mdpcloud.plugins import did_you_mean
from mdpcloud.policies.bernoulli_offloading import bernoulli_offloading
from mdpcloud.policies.complete_sharing import complete_sharing
from mdpcloud.policies.family import Family, Option, Parameter, Stream
from mdpcloud.systems.base import Heuristic
from mdpcloud.systems.measures import Measures, per_job, scaled, scaled_count
from mdpcloud.systems.ranges import check_ranges

__all__ = ["Offloading"]

MOST_MEMBERS = 500  # of the grid of probabilities
ROUNDING = 1e-15  # of sums and products, relative


@dataclass(frozen=True)
class Offloading:
    """Loss centres that offload to each other: two of them, or a ring.

    All parameters are per unit of ``scale``: with scale N, centre k has N times its servers and
    arrivals. Centres are numbered from 0; on a ring the neighbours of centre k are k - 1 ("left")
    and k + 1 ("right"), the last centre and the first being neighbours.

    Parameters
    ----------
    arrival_rates : tuple of float
        At each centre; two or more.
    service_rates : tuple of float
        Of a server of each centre.
    servers : tuple of float
        Servers of each centre; rounded once they are multiplied by the scale.
    offload_probabilities : tuple of float
        Of a job that finds its centre full to be sent to a neighbour, to each of them on a ring: at
        most 1 for two centres, at most 1/2 for more.
    rejection_costs : tuple of float, optional
        Of a job of each class; 1 by default.
    scale : float
        What arrival rates and servers are multiplied by.

    Examples
    --------
    >>> import mdpcloud as mc
    >>> system = mc.systems.Offloading((1.0, 2.0), (1.0, 1.0), (1.0, 1.0), (0.5, 0.25))
    >>> own = mc.compare(system, ["bernoulli_offloading"]).rows[0]
    >>> round(own.cost, 12), round(283 / 163, 12)
    (1.736196319018, 1.736196319018)
    """

    arrival_rates: Annotated[tuple[Annotated[float, Gt(0), Unit("1/time")], ...], MinLen(2)]
    service_rates: Annotated[tuple[Annotated[float, Gt(0), Unit("1/time")], ...], MinLen(2)]
    servers: Annotated[tuple[Annotated[float, Gt(0)], ...], MinLen(2)]
    offload_probabilities: Annotated[tuple[Annotated[float, Ge(0), Le(1)], ...], MinLen(2)]
    rejection_costs: (
        Annotated[tuple[Annotated[float, Ge(0), Unit("cost")], ...], MinLen(2)] | None
    ) = None
    scale: Annotated[float, Gt(0)] = 1.0

    policy_names: ClassVar[tuple[str, ...]] = (
        "bernoulli_offloading",
        "complete_sharing",
        "no_cooperation",
    )
    own_policy: ClassVar[str] = "bernoulli_offloading"

    def __post_init__(self) -> None:
        validate(self)
        check_ranges(self)
        for name in ("service_rates", "servers", "offload_probabilities", "rejection_costs"):
            given = getattr(self, name)
            if given is not None and len(given) != self.centres:
                raise InputError(
                    f"Offloading: {name} has {len(given)} numbers, arrival_rates {self.centres}; "
                    "both must have one for each centre"
                )
        for k, probability in enumerate(self.offload_probabilities):
            if self.centres > 2 and probability > 0.5:
                raise InputError(
                    f"Offloading: offload_probabilities[{k}] must be at most 0.5, not "
                    f"{probability:g}: a job goes to each of two neighbours with it"
                )
        _ = self.counts

    @classmethod
    def example(cls) -> Self:
        """A small centre at load 1.5 and a large one that sends it half of what it overflows."""
        return cls((6.0, 7.0), (1.0, 1.0), (4.0, 8.0), (1.0, 0.5))

    @property
    def centres(self) -> int:
        """Number of centres."""
        return len(self.arrival_rates)

    @property
    def costs(self) -> tuple[float, ...]:
        """Cost of a rejected job of each class."""
        return self.rejection_costs or (1.0,) * self.centres

    @cached_property
    def _rounded(self) -> list[tuple[int, str | None]]:
        return [
            scaled_count(f"servers[{k}]", count, self.scale, least=1)
            for k, count in enumerate(self.servers)
        ]

    @property
    def counts(self) -> tuple[int, ...]:
        """Servers of each centre of the finite system."""
        return tuple(count for count, _ in self._rounded)

    @property
    def notes(self) -> tuple[str, ...]:
        """What rounding did to the numbers of servers."""
        return tuple(note for _, note in self._rounded if note)

    # --- the model --------------------------------------------------------------------------------

    def _neighbours(self, k: int) -> dict[str, int]:
        """Action that offloads to each neighbour of a centre."""
        if self.centres == 2:
            return {"offload": 1 - k}
        return {"offload left": (k - 1) % self.centres, "offload right": (k + 1) % self.centres}

    def model(self, caps: Any = None) -> Model:
        """The finite system: every job is served locally, offloaded or rejected.

        Raises
        ------
        InputError
            When caps are given; the servers are the caps.
        """
        if caps is not None:
            raise InputError("caps: the space is finite, with the numbers of servers as its caps")
        rates = scaled(self.arrival_rates, self.scale)
        arrivals = [Event(f"arrival {k}", rate, self._answers(k)) for k, rate in enumerate(rates)]
        departures = [
            Event(f"departure {k}", _busy(k, rate), step(busy={k: -1}))
            for k, rate in enumerate(self.service_rates)
        ]
        return Model(
            Lattice({"busy": self.counts}), [*arrivals, *departures], measures=self._measures()
        )

    def _answers(self, k: int) -> list[Action]:
        away = [Action(name, step(busy={j: +1})) for name, j in self._neighbours(k).items()]
        return [
            Action("local", step(busy={k: +1})),
            *away,
            Action("reject", cost=self.costs[k]),
        ]

    def _measures(self) -> dict[str, Any]:
        found: dict[str, Any] = {}
        for k in range(self.centres):
            found[f"rejection_rate[{k}]"] = (f"arrival {k}", "reject")
            for name in self._neighbours(k):
                found[f"{_rate_of(name)}[{k}]"] = (f"arrival {k}", name)
            found[f"mean_jobs[{k}]"] = _busy(k)
        return found

    def derived(
        self, cost: tuple[float, float], measures: Mapping[str, tuple[float, float]]
    ) -> dict[str, tuple[float, float]]:
        """Bounds of probabilities per job; on a ring also of forwarding to either side together."""
        found: dict[str, tuple[float, float]] = {}
        for k in range(self.centres if self.centres > 2 else 0):
            sides = [measures.get(f"{_rate_of(name)}[{k}]") for name in self._neighbours(k)]
            if None not in sides:
                low, high = zip(*(side for side in sides if side), strict=True)
                found[f"forwarding_rate[{k}]"] = sum(low), sum(high)
        rates = scaled(self.arrival_rates, self.scale)
        return {**found, **per_job({**measures, **found}, rates)}

    # --- policies ---------------------------------------------------------------------------------

    @cached_property
    def _streams(self) -> tuple[Stream, ...]:
        return tuple(
            Stream(
                f"arrival {k}",
                tuple(
                    Option(name, _has_room(j, self.counts[j]))
                    for name, j in {"local": k, **self._neighbours(k)}.items()
                ),
            )
            for k in range(self.centres)
        )

    def heuristic(self, name: str, ties: str = "fastest") -> Heuristic:
        """A policy by name.

        ``bernoulli_offloading`` has the given probabilities; ``complete_sharing`` offloads whenever
        a neighbour has room, on a ring to the left first; ``no_cooperation`` never does.

        Parameters
        ----------
        name : str
            One of ``policy_names``.
        ties : str
            Of no effect.
        """
        if name not in self.policy_names:
            near = did_you_mean(str(name), self.policy_names)
            known = ", ".join(self.policy_names)
            raise InputError(f"policy {name!r} is unknown; there are {known}{near}")
        if name == "complete_sharing":
            return Heuristic(name, rule=complete_sharing(self._streams).member())
        if name == "no_cooperation":
            return Heuristic(name, rule=self._without_cooperation.member())
        given = self.offload_probabilities
        own = [Parameter(f"p[{k}]", (p,)) for k, p in enumerate(given)]
        return Heuristic(name, rule=bernoulli_offloading(self._streams, own).member(*given))

    def families(self) -> tuple[Family, ...]:
        """Bernoulli offloading on a grid of probabilities, complete sharing and no cooperation.

        The grid has a step of 0.05 for two centres, and a coarser one for more, so that it has at
        most `MOST_MEMBERS` members; beyond eight centres all have the same probability.
        """
        most = 1.0 if self.centres == 2 else 0.5
        steps = int(MOST_MEMBERS ** (1.0 / self.centres)) - 1
        common = steps < 1
        steps = 20 if common or self.centres == 2 else steps
        values = tuple(most * i / steps for i in range(steps + 1))
        parameters = tuple(Parameter(f"p[{k}]", values) for k in range(self.centres))
        note = f"the probabilities are searched for on a grid with a step of {most / steps:g}"
        each = bernoulli_offloading(self._streams, parameters, notes=(note,))
        return (
            _in_common(each) if common else each,
            complete_sharing(self._streams),
            self._without_cooperation,
        )

    @property
    def _without_cooperation(self) -> Family:
        alone = [Stream(one.decision, one.options[:1], one.otherwise) for one in self._streams]
        return complete_sharing(alone, "no_cooperation")

    # --- large scale ------------------------------------------------------------------------------

    @property
    def capacities(self) -> tuple[float, ...]:
        """Jobs per unit of time and scale that each centre can serve, a_k = mu_k c_k."""
        return _products(self.service_rates, self.servers)

    @property
    def _to_each_neighbour(self) -> tuple[float, ...]:
        """Probabilities as a ring has them, where two centres are neighbours on both sides."""
        if self.centres > 2:
            return self.offload_probabilities
        return tuple(0.5 * p for p in self.offload_probabilities)

    def limit(self) -> Measures:
        """What becomes of the jobs in the large-scale limit, per unit of the scale.

        The ``regime`` of two centres is one of the source, where centres 0 and 1 are called 1 and
        2; with l arrival rates, a ``capacities``, and p offload probabilities of the centres:

        ====  =====================================================================================
        A     no centre is full: l[0] < a[0] and l[1] < a[1]; no job is lost or offloaded
        B1    centre 1 is full and centre 0 takes what is offloaded:
              l[1] > a[1] and l[0] + p[1] l[1] < a[0] + p[1] a[1]
        B2    centre 0 is full and centre 1 takes what is offloaded:
              l[0] > a[0] and l[1] + p[0] l[0] < a[1] + p[0] a[0]
        E     both are full: l[0] + p[1] l[1] > a[0] + p[1] a[1] and
              l[1] + p[0] l[0] > a[1] + p[0] a[0]
        B2/E  and alike: on the boundary of these regimes, up to rounding, where all their formulas
              agree; the errors count what rounding hides
        ====  =====================================================================================

        That of a ring names the centres that are full a positive part of the time, such as "full:
        0, 2", or is "none full".

        Raises
        ------
        NoLimitError
            When three or more neighbours of a ring are full, where no limit is known.

        Examples
        --------
        >>> limit = Offloading((4.0, 8.0), (1.0, 1.0), (1.0, 10.0), (1.0, 0.0)).limit()
        >>> limit.regime, [round(x, 12) for x in limit.blocking]
        ('E', [0.073020981581, 0.088489509209])
        """
        if self.centres > 2:
            ring = ring_limit(self.arrival_rates, self.capacities, self.offload_probabilities)
            regime = (
                f"full: {', '.join(map(str, ring.saturated))}" if ring.saturated else "none full"
            )
            return self._measures_of(ring.jobs, ring.served, ring.jobs.error, regime, ring.notes)
        (l1, l2), (a1, a2) = self.arrival_rates, self.capacities
        p1, p2 = self.offload_probabilities
        pair = pair_limit((l1, l2), (a1, a2), (p1, p2))
        return self._measures_of(pair, pair.served, pair.full.error, pair.regime, pair.notes)

    def _measures_of(
        self,
        jobs: PairLimit | Overflow,
        served: tuple[float, ...],
        error: float,
        regime: str,
        notes: tuple[str, ...],
    ) -> Measures:
        prices = _products(self.costs, self.arrival_rates)
        return Measures(
            blocking=jobs.blocking,
            mean_jobs=tuple(a / rate for a, rate in zip(served, self.service_rates, strict=True)),
            cost=sum(_products(prices, jobs.blocking)),
            forwarded=jobs.forwarded,
            errors={
                "blocking": error,
                "mean_jobs": sum(self.arrival_rates) * (error + ROUNDING) / min(self.service_rates),
                "cost": sum(prices) * (error + ROUNDING) if any(jobs.blocking) else 0.0,
                "forwarded": error,
            },
            certified=False,
            regime=regime,
            notes=notes,
        )

    def fluid(
        self,
        horizon: float,
        start: Sequence[float] | None = None,
        times: Sequence[float] | None = None,
    ) -> Trajectory:
        """Busy servers of each centre in the fluid limit, per unit of the scale.

        Parameters
        ----------
        horizon : float
        start : sequence of float, optional
            Busy servers at time 0, at most ``servers``; none by default.
        times : sequence of float, optional

        Raises
        ------
        NoLimitError
            When three or more neighbours of a ring become full.
        """
        return fluid_path(
            self.arrival_rates,
            self.service_rates,
            self.servers,
            self._to_each_neighbour,
            horizon,
            start=start,
            times=times,
        )

    def fluid_bound(self) -> float:
        """Lower bound of the cost of every policy of the finite system: servers are busy at most.

        Examples
        --------
        >>> system = Offloading((6.0, 7.0), (1.0, 1.0), (4.0, 8.0), (1.0, 1.0), (1.0, 3.0))
        >>> round(system.fluid_bound(), 12)
        1.0
        """
        return least_loss(
            scaled(self.arrival_rates, self.scale),
            _products(self.service_rates, self.counts),
            self.costs,
            [(k, *self._neighbours(k).values()) for k in range(self.centres)],
        )


def _products(left: Sequence[float], right: Sequence[float]) -> tuple[float, ...]:
    return tuple(a * b for a, b in zip(left, right, strict=True))


def _in_common(each: Family) -> Family:
    """Members with the same probability at every centre."""
    first, *others = each.parameters
    return Family(
        each.name,
        (Parameter("p", first.values),),
        lambda p: each.member(p, *(p for _ in others)),
        notes=(*each.notes, "all centres have the same probability"),
    )


def _rate_of(action: str) -> str:
    """Name of the measure that counts an action: forwarding_rate, or that of a side."""
    side = action.removeprefix("offload").strip()
    return f"forwarding_{side}_rate" if side else "forwarding_rate"


def _busy(k: int, rate: float = 1.0) -> Any:
    return lambda x: rate * x.busy[k]


def _has_room(k: int, servers: int) -> Any:
    return lambda x: x.busy[k] < servers
