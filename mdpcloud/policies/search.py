"""The best member of a family of policies, found exactly.

Every member is evaluated on one compiled model: first to a coarse tolerance, with certified bounds
(`mdpcloud.policies.members`); those whose bounds reach below the least upper bound are evaluated
again to a finer one, until a single one is left, or those that are left cannot be told apart. Only
where a theorem says that the cost first falls and then rises in the only parameter is it bisected:
of two neighbours the cheaper one tells on which side the best member is, provided that their bounds
are apart; where they are not, all members that are left are evaluated.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mdpcloud.engine import compile_model
from mdpcloud.model.policy import Policy
from mdpcloud.policies.elimination import FINE, Elimination, SearchProgress, parameter_of
from mdpcloud.policies.family import Family, in_words
from mdpcloud.solve.limits import Monitor, Status, check_tolerance
from mdpcloud.solve.reward import sense_of

__all__ = ["BestMember", "best_member", "member_bounds"]


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
        return parameter_of(self.family, self.vector)

    def named(self, vectors: Sequence[tuple[float, ...]]) -> list[str]:
        """Parameter vectors in words."""
        return [in_words(parameter_of(self.family, vector)) for vector in vectors]


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
    problem = compile_model(model, threads=threads)
    search = Elimination(problem, sense_of(model), family, Monitor(None, time_limit), progress)
    return _best(search, search.run(tolerance))


def member_bounds(
    model: Any,
    family: Family,
    *,
    tolerance: float = FINE,
    threads: int = 1,
    progress: Callable[[int, int], None] | None = None,
) -> NDArray[np.float64]:
    """Certified bounds (members, 2) of the cost of every member, in the order of the grid.

    Parameters
    ----------
    model : Model or TabularModel
    family : Family
    tolerance : float
        Relative width of the bounds; they are wider where float64 cannot certify it.
    threads : int
    progress : function of (members done, members), optional

    Raises
    ------
    InputError, MultichainError
        As `best_member`.
    """
    check_tolerance(tolerance)
    problem = compile_model(model, threads=threads)
    search = Elimination(problem, sense_of(model), family, Monitor(), None)
    for done, i in enumerate(search.path):
        if progress is not None:
            progress(done, family.size)
        search.evaluate(i, tolerance)
    return search.signed_bounds


def _best(search: Elimination, status: Status) -> BestMember:
    """The best of the members evaluated."""
    (best, *same), *others = search.left(status)
    bounds = search.signed_bounds
    lower, upper = bounds[best].tolist()
    known = search.origin >= 0
    return BestMember(
        family=search.family,
        vector=search.vectors[best],
        cost=0.5 * (lower + upper),
        lower=lower,
        upper=upper,
        policy=search.policy(best),
        status=status,
        evaluated=int(known.sum()),
        exhaustive=bool(known.all()),
        equals=tuple(search.vectors[group[0]] for group in others),
        same=tuple(search.vectors[i] for i in same),
        bounds=bounds,
    )
