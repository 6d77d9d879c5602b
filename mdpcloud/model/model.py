"""A model: a state space, the events on it, and what is paid and measured."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, TypeAlias

from mdpcloud.errors import InputError
from mdpcloud.model.event import Control, Event
from mdpcloud.model.space import Lattice, Reachable
from mdpcloud.plugins import did_you_mean

__all__ = ["Model"]

Rate: TypeAlias = float | Callable[..., Any]
Measure: TypeAlias = Rate | Sequence[Rate] | tuple[str, str]


@dataclass(frozen=True, init=False, eq=False, repr=False)
class Model:
    """A controlled continuous-time Markov chain with costs.

    Parameters
    ----------
    space : Lattice or Reachable
    events : sequence of Event and Control
    cost_rate : float, function of x, or a list of them (their sum)
        Cost per unit of time. A list of functions of few coordinates each needs less memory than
        one function of all.
    measures : mapping
        Name to a cost rate like ``cost_rate``, or to a pair ``("event", "action")``: how often that
        action is taken, per unit of time. `evaluate` reports the long-run average of each.

    Examples
    --------
    An M/M/1 queue with room for two that turns jobs away at a cost:

    >>> import mdpcloud as mc
    >>> join, lost = mc.Action("join", mc.step(jobs=+1)), mc.Action("lost", cost=1.0)
    >>> arrival = mc.Event("arrival", 0.5, [join, lost])
    >>> service = mc.Event("service", lambda x: 1.0 * (x.jobs > 0), mc.step(jobs=-1))
    >>> queue = mc.Model(mc.Lattice({"jobs": 2}), [arrival, service])
    >>> round(mc.solve(queue).gain, 9)
    0.071428571
    """

    space: Lattice | Reachable
    events: tuple[Event | Control, ...]
    cost_rate: tuple[Rate, ...]
    measures: Mapping[str, Measure]

    def __init__(
        self,
        space: Lattice | Reachable,
        events: Event | Control | Sequence[Event | Control],
        *,
        cost_rate: Rate | Sequence[Rate] = 0.0,
        measures: Mapping[str, Measure] | None = None,
    ) -> None:
        if not isinstance(space, (Lattice, Reachable)):
            raise InputError(f"space is {space!r}; it must be a Lattice or a Reachable")
        listed = (events,) if isinstance(events, (Event, Control)) else tuple(events)
        for event in listed:
            if not isinstance(event, (Event, Control)):
                raise InputError(f"{event!r} is neither an Event nor a Control")
        names = [event.name for event in listed]
        for name, count in Counter(names).items():
            if count > 1:
                raise InputError(f"two events are named {name!r}; names must differ")
        if not names:
            raise InputError("a model needs at least one event")
        object.__setattr__(self, "space", space)
        object.__setattr__(self, "events", listed)
        object.__setattr__(self, "cost_rate", _as_sum(cost_rate))
        object.__setattr__(self, "measures", MappingProxyType(dict(measures or {})))
        for name, measure in self.measures.items():
            if is_count(measure):
                self._check_count(name, *measure)  # type: ignore[misc]

    def __repr__(self) -> str:
        names = ", ".join(event.name for event in self.events)
        return f"Model({type(self.space).__name__}; {names})"

    def _check_count(self, name: str, event: str, action: str) -> None:
        choices = {e.name: [a.name for a in choices_of(e)] for e in self.events}
        for word, value, known in (
            ("event", event, list(choices)),
            ("action", action, choices.get(event, [])),
        ):
            if value not in known:
                hint = did_you_mean(value, known) or f"; there are {known}"
                raise InputError(f"measure {name!r} counts an unknown {word} {value!r}{hint}")


def choices_of(event: Event | Control) -> tuple[Any, ...]:
    """The actions of an event or the modes of a control."""
    return event.actions if isinstance(event, Event) else event.modes


def is_count(measure: Measure) -> bool:
    """Whether a measure counts an action: a pair of names."""
    return (
        isinstance(measure, tuple)
        and len(measure) == 2
        and all(isinstance(m, str) for m in measure)
    )


def _as_sum(rate: Rate | Sequence[Rate]) -> tuple[Rate, ...]:
    return tuple(rate) if isinstance(rate, Sequence) else (rate,)
