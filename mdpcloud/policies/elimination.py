"""Members of a family evaluated, more and more finely, until the best one is left.

See `mdpcloud.policies.search`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from mdpcloud.errors import InputError, MdpcloudError
from mdpcloud.model.policy import Policy
from mdpcloud.policies.family import Family, in_words
from mdpcloud.policies.members import Chains, policy_of_rules
from mdpcloud.solve.limits import Monitor, Status, Stopped

__all__ = ["FINE", "Elimination", "SearchProgress", "parameter_of"]

SearchProgress: TypeAlias = Callable[[int, int, float, float], None]
"""Called with (members done, members in all, lower, upper): the best cost so far, cost/time."""

COARSE = 1e-5  # relative width of the bounds of all members
FINE = 1e-9  # of those that may be the best, by default
FINEST = 1e-12  # of those that are not told apart by then
FEW = 8  # members at most that are evaluated to the finest tolerance


class Elimination:
    """Bounds of the members' costs, in the order of the grid, and what tells their policies apart.

    Costs are the engine's: rewards negated.

    Parameters
    ----------
    problem : Problem
    sense : int
        1 for costs, -1 for rewards.
    family : Family
    monitor : Monitor
    progress : function of (members done, members in all, lower, upper), or None
    """

    def __init__(
        self,
        problem: Any,
        sense: int,
        family: Family,
        monitor: Monitor,
        progress: SearchProgress | None,
    ) -> None:
        if family.size == 0:
            raise InputError(f"family {family.name!r} has no members; each parameter needs a value")
        self.family, self.sense, self.progress = family, sense, progress
        self.vectors = list(family.members())
        self.chains = Chains(problem, monitor)
        self.bounds = np.full((len(self.vectors), 2), (-np.inf, np.inf))
        self.first: dict[bytes, int] = {}
        self.origin = np.full(len(self.vectors), -1)  # the first member of the same policy

    @property
    def least(self) -> float:
        """Least upper bound."""
        return float(self.bounds[:, 1].min())

    @property
    def path(self) -> Iterator[int]:
        """All members, each after a neighbour."""
        return _snake([len(parameter.values) for parameter in self.family.parameters])

    @property
    def signed_bounds(self) -> NDArray[np.float64]:
        """Bounds of the costs, or rewards, of the members."""
        known = np.where(self.origin >= 0, self.origin, np.arange(self.origin.size))
        return np.sort(self.sense * self.bounds[known], axis=1)

    def run(self, tolerance: float) -> Status:
        """Evaluate members until the best one is known; how it ended."""
        try:
            if self.family.unimodal and len(self.family.parameters) == 1:
                self._bisect()
            else:
                self._evaluate_all(self.path)
            self._separate(tolerance)
        except Stopped as stop:
            return stop.status
        except KeyboardInterrupt:
            return Status.INTERRUPTED
        return Status.CONVERGED

    def policy(self, i: int) -> Policy:
        """Policy of a member."""
        try:
            return policy_of_rules(self.chains.problem, self.family.member(*self.vectors[i]))
        except InputError as error:
            raise InputError(f"{self._named(i)}: {error}") from error

    def _named(self, i: int) -> str:
        parameter = parameter_of(self.family, self.vectors[i])
        return f"member ({in_words(parameter)}) of family {self.family.name!r}"

    def evaluate(self, i: int, tolerance: float, beat: float = np.inf) -> None:
        """Narrow the bounds of a member's cost, unless it is the same policy as an earlier one."""
        fixed, mark = self.chains.under(self.policy(i))
        self.origin[i] = self.first.setdefault(mark, i)
        if self.origin[i] != i:
            self.bounds[i] = self.bounds[self.origin[i]]
            return
        try:
            self.chains.bounds(fixed, tolerance, beat)
        except MdpcloudError as error:
            raise type(error)(f"{self._named(i)}: {error}") from error
        finally:
            low, high = self.chains.known
            self.bounds[i] = max(low, self.bounds[i, 0]), min(high, self.bounds[i, 1])
        self._report()

    def _report(self) -> None:
        monitor = self.chains.monitor
        if monitor.time_limit is not None and monitor.elapsed > monitor.time_limit:
            raise Stopped(Status.TIME)
        if self.progress is not None:
            ends = sorted(self.sense * end for end in self._best_bounds())
            self.progress(int((self.origin >= 0).sum()), len(self.vectors), ends[0], ends[1])

    def _best_bounds(self) -> tuple[float, float]:
        """Bounds of the least cost of the members evaluated."""
        return float(self.bounds[self.origin >= 0, 0].min(initial=np.inf)), self.least

    def _evaluate_all(self, members: Iterable[int]) -> None:
        for i in members:
            self.evaluate(i, COARSE, self.least)

    def _separate(self, tolerance: float) -> None:
        """Evaluate those that may be the best to the tolerance, a few of them more finely."""
        for last, width in enumerate((tolerance, min(tolerance, FINEST))):
            left = self._contenders()
            if last and (len(left) == 1 or len(left) > FEW):
                return
            for i in sorted(left, key=lambda i: self.bounds[i].sum()):
                if self.bounds[i, 0] <= self.least:
                    self.evaluate(i, width, self.least)

    def _contenders(self) -> list[int]:
        """Members that may be the best, the first evaluated of each policy."""
        own = self.origin == np.arange(self.origin.size)
        return np.flatnonzero(own & (self.bounds[:, 0] <= self.least)).tolist()

    def _bisect(self) -> None:
        first, last = 0, len(self.vectors) - 1
        while first < last:
            middle = (first + last) // 2
            cheaper = self._cheaper(middle, middle + 1)
            if cheaper is None:
                return self._evaluate_all(range(first, last + 1))
            first, last = (first, middle) if cheaper == middle else (middle + 1, last)
        return self.evaluate(first, COARSE)

    def _cheaper(self, i: int, j: int) -> int | None:
        """Which of two members costs less; None where their bounds do not tell."""
        for tolerance in (COARSE, FINE, FINEST):
            for k in (i, j):
                self.evaluate(k, tolerance)
            if self.origin[i] == self.origin[j]:
                return None
            if self.bounds[i, 1] < self.bounds[j, 0]:
                return i
            if self.bounds[j, 1] < self.bounds[i, 0]:
                return j
        return None

    def left(self, status: Status) -> list[list[int]]:
        """Members that may be the best, those of one policy together, in the order of the grid.

        Where members were left out, those of the policy of least upper bound.
        """
        found = self._contenders()
        if status is not Status.CONVERGED:
            found = [int(self.origin[np.argmin(self.bounds[:, 1])])]
        return sorted(np.flatnonzero(self.origin == i).tolist() for i in found)


def parameter_of(family: Family, vector: Sequence[float]) -> dict[str, float]:
    """Name of each parameter to its value."""
    names = (parameter.name for parameter in family.parameters)
    return dict(zip(names, vector, strict=True))


def _snake(lengths: Sequence[int]) -> Iterator[int]:
    """Numbers of the points of a grid, each a neighbour of the one before.

    Examples
    --------
    >>> list(_snake([2, 3]))
    [0, 1, 2, 5, 4, 3]
    """
    path = [0]
    for length in lengths:
        steps = range(length)
        path = [
            head * length + k
            for turn, head in enumerate(path)
            for k in (steps if turn % 2 == 0 else reversed(steps))
        ]
    return iter(path)
