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
conditions of the limit are completed in `mdpcloud.limits.cooperation`. The list of known errors of
that text has none for this chapter.

More centres, types and resources are an extension: centre k sends to centre k + 1, the last one to
centre 0, and guards resource k against type k, both counted round (modulo their number).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal, Self

from annotated_types import Ge, Gt, MinLen, Unit

from mdpcloud.errors import InputError
from mdpcloud.model.event import Action, Event, step
from mdpcloud.model.model import Model
from mdpcloud.model.space import Lattice
from mdpcloud.parameters import validate
from mdpcloud.policies.complete_sharing import complete_sharing
from mdpcloud.policies.family import Family, Option, Parameter, Rules, Stream
from mdpcloud.policies.thresholds import thresholds
from mdpcloud.queues.border import checked_choice
from mdpcloud.systems.base import Heuristic
from mdpcloud.systems.measures import per_job, scaled, scaled_count

if TYPE_CHECKING:
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
        Per centre the level of its guarded resource: the guarded type is kept below it.
    rejection_cost, forwarding_cost : float
        Of each job that is lost, or sent to another centre and taken there.
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
        self._check_lengths()
        if not any(map(any, self.arrival_rates)):
            raise InputError("Cooperation: arrival_rates are all 0; one at least must be > 0")
        for j, needs in enumerate(self.requirements):
            if not any(needs):
                raise InputError(
                    f"Cooperation: requirements[{j}] = {needs}; a job needs something at least"
                )
            if not any(self._most(j, k) for k in range(self.centres)):
                raise InputError(
                    f"Cooperation: a job of type {j} needs {needs} and fits in no centre; "
                    f"capacities at scale {self.scale:g} are {self._capacities}"
                )

    def _check_lengths(self) -> None:
        types, resources, centres = self.types, len(self.requirements[0]), self.centres
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

    @property
    def types(self) -> int:
        """Number of job types."""
        return len(self.requirements)

    @property
    def centres(self) -> int:
        """Number of centres."""
        return len(self.capacities)

    @cached_property
    def _counts(self) -> tuple[tuple[tuple[int, ...], ...], tuple[int, ...], tuple[str, ...]]:
        """Capacities and levels at this scale, and notes on their rounding."""
        capacities, notes = [], []
        for k, row in enumerate(self.capacities):
            named = [
                scaled_count(f"capacities[{k}][{m}]", value, self.scale)
                for m, value in enumerate(row)
            ]
            capacities.append(tuple(count for count, _ in named))
            notes += [note for _, note in named if note]
        levels = [
            scaled_count(f"thresholds[{k}]", value, self.scale)
            for k, value in enumerate(self.thresholds)
        ]
        notes += [note for _, note in levels if note]
        return tuple(capacities), tuple(count for count, _ in levels), tuple(notes)

    @property
    def _capacities(self) -> tuple[tuple[int, ...], ...]:
        return self._counts[0]

    @property
    def notes(self) -> tuple[str, ...]:
        """What was rounded."""
        return self._counts[2]

    def _most(self, j: int, k: int) -> int:
        """Jobs of a type that fit in an empty centre."""
        needs = zip(self.requirements[j], self._capacities[k], strict=True)
        return min(capacity // need for need, capacity in needs if need)

    @property
    def _places(self) -> list[tuple[int, int]]:
        """Types and centres, in the order of the coordinates."""
        return [(j, k) for j in range(self.types) for k in range(self.centres)]

    def _place(self, j: int, k: int) -> int:
        return j * self.centres + k

    def _next(self, k: int) -> int:
        return (k + 1) % self.centres

    def _used(self, k: int, m: int) -> Callable[[Any], Any]:
        """Units of a resource in use in a centre, as a function of the state."""
        parts = [
            (self._place(j, k), needs[m]) for j, needs in enumerate(self.requirements) if needs[m]
        ]
        return lambda x: sum(need * x.jobs[i] for i, need in parts)

    def _fits(self, k: int, needs: Sequence[int]) -> Callable[[Any], Any]:
        """Whether there is room for a job in a centre, as a function of the state."""
        limits = [
            (self._used(k, m), capacity - need)
            for m, (capacity, need) in enumerate(zip(self._capacities[k], needs, strict=True))
        ]

        def fits(x: Any) -> Any:
            found: Any = True
            for used, limit in limits:
                found = found & (used(x) <= limit)
            return found

        return fits

    def model(self, caps: Sequence[int] | None = None) -> Model:
        """The model; the number of jobs of type j in centre k is ``x.jobs[j * centres + k]``.

        Raises
        ------
        InputError
            When caps are given: the space is finite.
        """
        if caps is not None:
            raise InputError("cooperation takes no caps: its capacities bound the state space")
        nothing = (0,) * len(self.requirements[0])
        rooms = [self._fits(k, nothing) for k in range(self.centres)]
        events = [*(self._arrival(j, k) for j, k in self._places), *self._departures()]
        return Model(Lattice(self._box(), where=partial(_all, rooms)), events,
                     measures=self._measures())  # fmt: skip

    def _boxed(self) -> Model:
        """The model on the whole box, of which it never leaves what fits.

        Its arrivals look at two centres each, so that a simulation tabulates what becomes of them;
        a condition of the space looks at all centres.
        """
        events = [
            *(self._arrival(j, k, guarded=True) for j, k in self._places),
            *self._departures(),
        ]
        return Model(Lattice(self._box()), events, measures=self._measures())

    def _box(self) -> dict[str, tuple[int, ...]]:
        return {"jobs": tuple(self._most(j, k) for j, k in self._places)}

    def _arrival(self, j: int, k: int, guarded: bool = False) -> Event:
        needs, following = self.requirements[j], self._next(k)
        local, remote = (self._fits(c, needs) if guarded else None for c in (k, following))
        actions = (
            Action("local", step(jobs={self._place(j, k): +1}), allowed=local),
            Action("remote", step(jobs={self._place(j, following): +1}),
                   cost=self.forwarding_cost, allowed=remote),
            Action("reject", cost=self.rejection_cost),
        )  # fmt: skip
        return Event(_arrival(j, k), self.scale * self.arrival_rates[j][k], actions)

    def _departures(self) -> list[Event]:
        return [
            Event(
                f"departure {j} at {k}",
                partial(_rate, self.service_rates[j], self._place(j, k)),
                Action("leave", step(jobs={self._place(j, k): -1})),
            )
            for j, k in self._places
        ]

    def _measures(self) -> dict[str, Any]:
        measures: dict[str, Any] = {}
        for j, k in self._places:
            measures[f"rejection_rate[{j}][{k}]"] = (_arrival(j, k), "reject")
            measures[f"forwarding_rate[{j}][{k}]"] = (_arrival(j, k), "remote")
            measures[f"mean_jobs[{j}][{k}]"] = partial(_rate, 1.0, self._place(j, k))
        return measures

    def derived(
        self, cost: tuple[float, float], measures: Mapping[str, tuple[float, float]]
    ) -> dict[str, tuple[float, float]]:
        """Bounds of the probabilities that an arriving job is lost or sent to another centre."""
        return per_job(measures, [scaled(row, self.scale) for row in self.arrival_rates])

    # --- policies ---------------------------------------------------------------------------------

    def _guarded(self, k: int) -> int:
        return k % len(self.requirements[0])

    def _streams(self) -> list[Stream]:
        return [self._stream(j, k) for j, k in self._places]

    def _stream(self, j: int, k: int) -> Stream:
        fits = self._fits(k, self.requirements[j])
        guarded = j == k % self.types
        used = self._used(k, self._guarded(k)) if guarded else None
        options = [
            Option("local", fits, used=used),
            Option("remote", self._fits(self._next(k), self.requirements[j])),
        ]
        if guarded and self.unfit == "reject":
            options.insert(0, Option("reject", lambda x: ~fits(x), used=used))
        if guarded and self.remote_full == "return":
            options.append(Option("local", fits))
        return Stream(_arrival(j, k), tuple(options))

    def _threshold_rules(self, *levels: float) -> Rules:
        """Rules of the thresholds of the centres."""
        repeats = 2 if self.unfit == "reject" else 1
        each = [levels[k] for j, k in self._places if j == k % self.types for _ in range(repeats)]
        return thresholds(self._streams(), ()).member(*each)

    def _tops(self) -> list[int]:
        """Per centre the least level that holds nothing back."""
        tops = []
        for k in range(self.centres):
            need = self.requirements[k % self.types][self._guarded(k)]
            spare = -1 if self.unfit == "reject" else need - 1
            tops.append(max(self._capacities[k][self._guarded(k)] - spare, 0))
        return tops

    def families(self) -> tuple[Family, ...]:
        """Levels of all centres, and a level common to them."""
        tops = self._tops()
        each = tuple(
            Parameter(f"threshold[{k}]", tuple(range(top + 1))) for k, top in enumerate(tops)
        )
        common = Parameter("threshold", tuple(range(max(tops) + 1)))
        return (
            Family("thresholds", each, self._threshold_rules),
            Family(
                "common_threshold",
                (common,),
                lambda level: self._threshold_rules(*(level,) * self.centres),
            ),
        )

    def heuristic(self, name: str, ties: str = "fastest") -> Heuristic:
        """A policy of ``policy_names``."""
        if checked_choice("policy", name, self.policy_names) == "complete_sharing":
            return Heuristic(name, rule=complete_sharing(self._streams()).member())
        return Heuristic(name, rule=self._threshold_rules(*self._counts[1]))

    def simulation(self, policy: Any, ties: str = "fastest", start: Any = None) -> Simulation:
        """The model under a policy, one of ``policy_names`` or a rule, for `mdpcloud.simulate`."""
        from mdpcloud.simulate.events import event_simulation

        rule = self.heuristic(policy).rule if isinstance(policy, str) else policy
        by_rules = callable(rule) or isinstance(rule, Mapping)
        return event_simulation(self._boxed() if by_rules else self.model(), rule, start)


def _arrival(j: int, k: int) -> str:
    return f"arrival {j} at {k}"


def _rate(each: float, place: int, x: Any) -> Any:
    return each * x.jobs[place]


def _all(conditions: Sequence[Callable[[Any], Any]], x: Any) -> Any:
    found: Any = True
    for holds in conditions:
        found = found & holds(x)
    return found
