"""The best member of a family of policies, found exactly.

Every member is evaluated on one compiled model: first to a coarse tolerance, with certified bounds
(`mdpcloud.policies.members`); those whose bounds reach below the least upper bound are evaluated
again to a finer one, until a single one is left, or those that are left cannot be told apart. Only
where a theorem says that the cost first falls and then rises in the only parameter is it bisected:
of two neighbours the cheaper one tells on which side the best member is, provided that their bounds
are apart; where they are not, all members that are left are evaluated.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from mdpcloud.engine import compile_model
from mdpcloud.errors import InputError, MdpcloudError
from mdpcloud.model.policy import Policy
from mdpcloud.policies.family import Family, in_words
from mdpcloud.policies.members import Chains, policy_of_rules
from mdpcloud.solve.limits import Monitor, Status, Stopped, check_tolerance
from mdpcloud.solve.reward import sense_of

__all__ = ["BestMember", "SearchProgress", "best_member", "member_bounds"]

SearchProgress: TypeAlias = Callable[[int, int, float, float], None]
"""Called with (members done, members in all, lower, upper): the best cost so far, cost/time."""

COARSE = 1e-5  # relative width of the bounds of all members
FINE = 1e-9  # of those that may be the best, by default
FINEST = 1e-12  # of those that are not told apart by then
FEW = 8  # members at most that are evaluated to the finest tolerance


@dataclass(frozen=True, eq=False)
class BestMember:
    """The best member of a family of policies.

    Attributes
    ----------
    family : Family
    vector : tuple of float
        Its parameters; the first in the order of the grid where several are equally good.
    cost, lower, upper : float
        Cost/time; the bounds are certified.
    policy : Policy
    status : Status
        Converged, or why members were left out.
    evaluated : int
        Number of members whose cost was evaluated, or that are the same policy as one of them.
    exhaustive : bool
        Whether all were, so that unimodality was not used.
    equals : tuple of vectors
        Members whose costs are not separable from that of the best one by their bounds.
    same : tuple of vectors
        Members that are the same policy as the best one on this model.
    bounds : (members, 2) array
        Bounds of the cost of every member, in the order of `Family.members`; infinite where it
        was not evaluated, and wide where it was evaluated only until it was known not to be best.
    """

    family: Family
    vector: tuple[float, ...]
    cost: float
    lower: float
    upper: float
    policy: Policy
    status: Status
    evaluated: int
    exhaustive: bool
    equals: tuple[tuple[float, ...], ...]
    same: tuple[tuple[float, ...], ...]
    bounds: NDArray[np.float64]

    @property
    def parameter(self) -> dict[str, float]:
        """Name of each parameter to its value."""
        return _parameter(self.family, self.vector)

    def named(self, vectors: Sequence[tuple[float, ...]]) -> list[str]:
        """Parameter vectors in words."""
        return [in_words(_parameter(self.family, vector)) for vector in vectors]


def best_member(
    model: Any,
    family: Family,
    *,
    tolerance: float = FINE,
    threads: int = 1,
    time_limit: float | None = None,
    progress: SearchProgress | None = None,
) -> BestMember:
    """Search a family for its member of least cost.

    Parameters
    ----------
    model : Model or TabularModel
    family : Family
    tolerance : float
        Relative width of the bounds of the best member's cost, and of those that come near it.
    threads : int
    time_limit : float, optional
        Seconds.
    progress : function of (members done, members in all, lower, upper), optional

    Returns
    -------
    BestMember
        Where it was interrupted, or reached the time limit, that of the members evaluated by then;
        its ``status`` says so.

    Raises
    ------
    InputError
        When a member takes an action that is not allowed; the message names its parameters.
    MultichainError
        When the cost of a member depends on the initial state.

    Examples
    --------
    >>> import mdpcloud as mc
    >>> from mdpcloud.policies.family import Family, Parameter
    >>> join, lost = mc.Action("join", mc.step(jobs=+1)), mc.Action("lost", cost=2.0)
    >>> arrival = mc.Event("arrival", 1.5, [join, lost])
    >>> service = mc.Event("service", lambda x: 1.0 * (x.jobs > 0), mc.step(jobs=-1))
    >>> queue = mc.Model(mc.Lattice({"jobs": 5}), [arrival, service], cost_rate=lambda x: x.jobs)
    >>> def member(limit):
    ...     return {"arrival": lambda x: np.where(x.jobs < limit, "join", "lost")}
    >>> found = best_member(queue, Family("limits", (Parameter("limit", (0, 1, 2, 3)),), member))
    >>> found.parameter, round(found.cost, 9)
    ({'limit': 1}, 2.4)
    """
    check_tolerance(tolerance)
    search = _Search(
        compile_model(model, threads=threads),
        sense_of(model),
        family,
        Monitor(None, time_limit),
        progress,
    )
    return search.result(search.run(tolerance))


def member_bounds(
    model: Any, family: Family, *, tolerance: float = FINE, threads: int = 1
) -> NDArray[np.float64]:
    """Certified bounds (members, 2) of the cost of every member, in the order of the grid.

    Parameters
    ----------
    model : Model or TabularModel
    family : Family
    tolerance : float
        Relative width of the bounds; they are wider where float64 cannot certify it.
    threads : int

    Raises
    ------
    InputError, MultichainError
        As `best_member`.
    """
    check_tolerance(tolerance)
    problem = compile_model(model, threads=threads)
    search = _Search(problem, sense_of(model), family, Monitor(), None)
    for i in search.path:
        search.evaluate(i, tolerance)
    return search.signed_bounds


class _Search:
    """Bounds of the members' costs, in the order of the grid, and what tells their policies apart.

    Costs are the engine's: rewards negated.
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
        return np.sort(self.sense * self.bounds, axis=1)

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
        parameter = _parameter(self.family, self.vectors[i])
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
        """Members that may be the best, one of each policy, in the order of the grid."""
        own = self.origin == np.arange(len(self.origin))
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

    def result(self, status: Status) -> BestMember:
        """The best of the members evaluated."""
        left = self._contenders() if status is Status.CONVERGED else []
        best = left[0] if left else int(np.argmin(self.bounds[:, 1]))
        lower, upper = sorted((self.sense * self.bounds[best]).tolist())
        known = self.origin >= 0
        same = np.flatnonzero(known & (self.origin == self.origin[best]))
        return BestMember(
            family=self.family,
            vector=self.vectors[best],
            cost=0.5 * (lower + upper),
            lower=lower,
            upper=upper,
            policy=self.policy(best),
            status=status,
            evaluated=int(known.sum()),
            exhaustive=bool(known.all()),
            equals=tuple(self.vectors[i] for i in left[1:]),
            same=tuple(self.vectors[i] for i in same if i != best),
            bounds=self.signed_bounds,
        )


def _parameter(family: Family, vector: Sequence[float]) -> dict[str, float]:
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
