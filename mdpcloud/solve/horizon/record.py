"""Collects what a backward solve chooses, as a policy in time."""

from __future__ import annotations

from typing import Any

import numpy as np

from mdpcloud.engine.problem import Choice
from mdpcloud.model.policy import policy_of
from mdpcloud.model.timed_policy import Changes, TimedPolicy

__all__ = ["Record"]


class Record:
    """The choices made, from the last piece of time to the first.

    Parameters
    ----------
    problem : Problem
    horizon : float
        Where the last piece ends.
    """

    def __init__(self, problem: Any, horizon: float) -> None:
        self.problem, self.horizon = problem, horizon
        self.choice: Choice | None = None
        self._found: dict[str, list[Changes]] = {
            term.name: [] for term in problem.terms if term.decision
        }

    def add(self, end: float, choice: Choice) -> None:
        """Put a choice in force before the time ``end``, where those so far begin."""
        if self.choice is not None:
            for e, term in enumerate(self.problem.terms):
                if term.decision:
                    self._compare(term.name, end, choice[e], self.choice[e])
        self.choice = choice

    def _compare(self, name: str, time: float, before: Choice, after: Choice) -> None:
        states = np.flatnonzero(before != after)
        if states.size:
            times = np.full(states.size, time)
            self._found[name].append(Changes(times, states, after[states]))

    def policy(self) -> TimedPolicy:
        """What was chosen, from time 0 on."""
        assert self.choice is not None
        changes = {
            name: Changes(*map(np.concatenate, zip(*reversed(parts), strict=True)))
            for name, parts in self._found.items()
            if parts
        }
        return TimedPolicy(policy_of(self.problem, self.choice), changes, self.horizon)
