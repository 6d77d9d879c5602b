"""A model under a policy, ready to be simulated event by event."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from functools import cached_property
from threading import Lock
from typing import Any

import numpy as np

from mdpcloud.errors import InputError
from mdpcloud.model.model import Model
from mdpcloud.simulate.columns import Column
from mdpcloud.simulate.decisions import rules_by_event
from mdpcloud.simulate.events_path import EventPath
from mdpcloud.simulate.events_tables import Tables
from mdpcloud.simulate.planning import Planner
from mdpcloud.simulate.protocol import COST
from mdpcloud.simulate.starts import caps_of, start_state
from mdpcloud.simulate.tracing import Touched, grid_over

__all__ = ["EventSimulation", "event_simulation"]

FIRST_SIZE = 64  # values of a coordinate that the first tables hold


class EventSimulation:
    """A model under a policy; implements `mdpcloud.simulate.protocol.Simulation`.

    Attributes
    ----------
    model : Model
    start : tuple of int
        The state in which paths begin.
    caps : tuple of int
        Largest coordinates.
    plan : Planner
        Clocks, columns and averages.
    names : tuple of str
    time_scale : float
        Mean time to the first event.
    """

    def __init__(self, model: Model, policy: Any, start: Mapping[str, Any] | None) -> None:
        self.model = model
        self.axes = model.space.axes
        self.caps = caps_of(model)
        self.start = start_state(model, start)
        self.plan = Planner(model, rules_by_event(model, policy), self.start)
        self.names: tuple[str, ...] = (COST, *model.measures)
        self._lock = Lock()
        self._tables: dict[tuple[int, ...], Tables] = {}
        self.rearrange()
        self.time_scale = self._time_scale()

    @cached_property
    def constants(self) -> frozenset[str]:
        """Averages that are the same in all states, and under all actions."""
        return frozenset(
            name
            for name, parts in zip(self.names, self.plan.averages, strict=True)
            if all(self.plan.is_constant(part) for part in parts)
        )

    @property
    def variables(self) -> tuple[str, ...]:
        """Names of the coordinates, ``"node[0]"`` for members of a family."""
        return tuple(name if k is None else f"{name}[{k}]" for name, k in self.axes.flat)

    def path(self, seed: np.random.SeedSequence, recorded: Sequence[str] = ()) -> EventPath:
        """A new replication; see the protocol."""
        return EventPath(self, seed, recorded)

    def tables(self, sizes: tuple[int, ...]) -> Tables:
        """The tables for coordinates below ``sizes``; paths share them."""
        with self._lock:
            if sizes not in self._tables:
                self._make_tables(sizes)
            return self._tables[sizes]

    @property
    def first_sizes(self) -> tuple[int, ...]:
        """Values of each coordinate that the first tables hold."""
        return tuple(
            min(cap + 1, max(FIRST_SIZE, 2 * x))
            for cap, x in zip(self.caps, self.start, strict=True)
        )

    def rearrange(self) -> None:
        """Arrange the columns; again where one reads more than it seemed to."""
        with self._lock:
            self._tables = {}
            while not self._tables:
                self.plan.columns.arrange()
                with suppress(Touched):
                    self._make_tables(self.first_sizes)

    def _make_tables(self, sizes: tuple[int, ...]) -> None:
        self._tables = {sizes: Tables(self.plan, self.caps, sizes)}

    def _time_scale(self) -> float:
        rates = [self._at_the_start(clock.rate) for clock in self.plan.clocks]
        total = sum(rate for rate in rates if rate > 0)
        if not total > 0 and not np.isnan(rates).any():
            raise InputError(
                f"nothing ever happens: all rates are 0 in the start state "
                f"{self.axes.describe(self.start)}"
            )
        return 1.0 / total if total > 0 else 1.0

    def _at_the_start(self, column: Column) -> float:
        state = np.array([[self.start[k] for k in column.axes]], dtype=np.int64)
        return float(np.max(column.read(grid_over(self.axes, column.axes, state))))


def event_simulation(
    model: Model, policy: Any = None, start: Mapping[str, Any] | None = None
) -> EventSimulation:
    """A model under a policy, ready to be simulated; its states are never enumerated.

    Parameters
    ----------
    model : Model
    policy : what `mdpcloud.policy` takes, a Policy, a Solution, or None
        None where nothing is to be decided.
    start : mapping from axis to a coordinate, optional
        Where paths begin; by default at a Reachable's start, or the first point of a Lattice.

    Raises
    ------
    InputError
        When the policy does not fit the model, the start is no state, or nothing ever happens.
    """
    return EventSimulation(model, policy, start)
