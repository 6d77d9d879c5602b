"""Infinite state spaces, cut to boxes that grow until the cut no longer matters.

`bracketed`: on every box one model whose optimum is a lower bound of the infinite one, and one
whose optimum is an upper bound (typically: what would leave the box is free, or not allowed). That
they are is the caller's theorem; given it, the bounds are certified. The box grows until
upper - lower <= tolerance |cost|.

`estimated`: one model per box. The box grows until the cost changes by no more than the tolerance
and the long-run fraction of time within one step of the growing edges is below it. *This certifies
nothing*: a chain may look settled in every box that is tried, and spend its life beyond.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from mdpcloud.errors import SolveError
from mdpcloud.model.policy import Policy
from mdpcloud.solve.boxes import (
    LARGEST,
    REASONS,
    Budget,
    Caps,
    Found,
    Growth,
    Work,
    checked_start,
    growth_of,
    near_growing_edges,
    on_growing_boxes,
    with_rule,
)
from mdpcloud.solve.limits import Goal, Progress, Status
from mdpcloud.solve.stationary import stationary

__all__ = ["Truncation", "bracketed", "estimated"]

BRACKET_GROWTH = 1.6
ESTIMATE_GROWTH = 2.0
SHARE = 0.3  # of the tolerance, for each of the two solves of a bracket
FINEST = 3.0  # times the finest width of one solve: that of a bracket


@dataclass(frozen=True, eq=False)
class Truncation:
    """The cost of an infinite model, from a finite one.

    Attributes
    ----------
    kind : {"exact", "bracketed", "estimated"}
        "exact": the last box loses nothing; "bracketed": the bounds are certified, given the
        theorem behind the two models; "estimated": they are an estimate.
    cost : float
        Cost/time.
    bounds : (lower, upper)
        Cost/time.
    error : float
        Width that the cut adds to the bounds: 0, the width of the bracket, or the estimated error
        on either side.
    caps : tuple of int
        The last box, or the one with the best policy.
    states : int
        Number of its states.
    policy : Policy
        On that box; of the upper model, where there are two.
    boundary : float or None
        Long-run fraction of time within one step of the edges that grow; None for brackets, and
        where a solve was cut short.
    status : str
        "converged", or why not: "too_many_states", "time", "stalled", ...
    boxes : int
        How many were tried.
    """

    kind: Literal["exact", "bracketed", "estimated"]
    cost: float
    bounds: tuple[float, float]
    error: float
    caps: Caps
    states: int
    policy: Policy
    boundary: float | None = None
    status: str = "converged"
    boxes: int = 1

    @property
    def converged(self) -> bool:
        """Whether the tolerance was met."""
        return self.status == "converged"


def _status(found: Found) -> str:
    return found.status.name.lower()


def _stopped(work: Work, *results: Found) -> str | None:
    """Why the box grows no further: a solve that ended early, or the time."""
    missed = (_status(found) for found in results if not found.converged)
    return next(missed, "time" if work.budget.over else None)


def _bounds(found: Found) -> tuple[float, float]:
    """Bounds that hold from every state."""
    return float(np.min(found.bounds[0])), float(np.max(found.bounds[1]))


def _insist(found: Truncation, strict: bool) -> Truncation:
    if strict and not found.converged:
        lower, upper = found.bounds
        certified = "certified" if found.kind == "bracketed" else "estimated"
        raise SolveError(
            f"the box did not become large enough ({REASONS.get(found.status, found.status)}): "
            f"{certified} bounds [{lower:.12g}, {upper:.12g}] on {found.states} states",
            found,
        )
    return found


# --- two models per box ---------------------------------------------------------------------------


def bracketed(
    lower: Callable[[Caps], Any],
    upper: Callable[[Caps], Any],
    start: Sequence[int],
    *,
    grow: Growth = BRACKET_GROWTH,
    tolerance: float = 1e-8,
    largest: int = LARGEST,
    time_limit: float | None = None,
    solver: Any = None,
    threads: int = 1,
    progress: Progress | None = None,
    strict: bool = True,
) -> Truncation:
    """The optimum of an infinite model between those of two finite ones.

    Parameters
    ----------
    lower, upper : functions of caps
        Models whose optima are a lower and an upper bound of the infinite one, on the box with
        these caps; or pairs (model, rule), to evaluate a rule instead, of the kind that
        `mdpcloud.policy` takes. ``lower`` may return None: the upper model loses nothing here.
    start : sequence of int
        Caps of the first box.
    grow : float or function of caps
        Factor by which caps grow (and 2), or the next caps.
    tolerance : float
        Relative width of the bounds.
    largest : int
        States of the largest box.
    time_limit : float, optional
        Seconds.
    solver, threads, progress
        As for `mdpcloud.solve`.
    strict : bool
        Raise `SolveError` when the tolerance was not met; it carries the result.

    Returns
    -------
    Truncation

    Raises
    ------
    InputError
        When an argument is wrong, or a model.
    SolveError
        When the box reached its largest size, or a solve its limit, before the tolerance was met.

    Examples
    --------
    Customers of an M/M/1 queue cost 1 per unit of time each, and to refuse one costs 50. To refuse
    all that arrive at a full box is a policy, hence an upper bound; a lower one, by coupling, is to
    refuse them for nothing.

    >>> import mdpcloud as mc
    >>> def queue(cap, price):
    ...     join, refuse = mc.Action("join", mc.step(jobs=+1)), mc.Action("refuse", cost=50.0)
    ...     full = mc.Action("full", cost=price, allowed=lambda x: x.jobs == cap)
    ...     arrival = mc.Event("arrival", 0.5, [join, refuse, full])
    ...     service = mc.Event("service", lambda x: 1.0 * (x.jobs > 0), mc.step(jobs=-1))
    ...     space = mc.Lattice({"jobs": cap})
    ...     return mc.Model(space, [arrival, service], cost_rate=lambda x: x.jobs)
    >>> found = bracketed(lambda caps: queue(*caps, 0.0), lambda caps: queue(*caps, 50.0), [5])
    >>> found.kind, round(found.cost, 6), found.error < 1e-8
    ('bracketed', 1.0, True)
    """
    Goal(tolerance, 0.0)
    work = Work(SHARE * tolerance, solver, threads, progress, Budget(time_limit))
    growth = growth_of(grow)
    attempt = _Bracket(lower, upper, tolerance, work)
    found, status = on_growing_boxes(
        attempt, checked_start(start), lambda caps, _: growth(caps), largest
    )
    return _insist(replace(found, status=status), strict)


class _Bracket:
    """Attempts with two models; the values of each serve the next box."""

    def __init__(
        self,
        lower: Callable[[Caps], Any],
        upper: Callable[[Caps], Any],
        tolerance: float,
        work: Work,
    ) -> None:
        self.lower, self.upper, self.tolerance, self.work = lower, upper, tolerance, work
        self.above: Found | None = None
        self.below: Found | None = None
        self.scale = 0.0

    def __call__(self, caps: Caps, before: Truncation | None) -> tuple[Truncation, str | None]:
        """The bracket on a box, or the better of its ends and those before."""
        model, rule = with_rule(self.upper(caps))
        above, problem = self.work.run(model, rule, self.above)
        self.above = above
        boxes = 1 if before is None else before.boxes + 1
        cheaper, rule = with_rule(self.lower(caps))
        if cheaper is None:
            return _single(above, caps, boxes), _status(above)
        below, _ = self.work.run(cheaper, rule, self.below or above)
        self.below = below
        now = _between(below, above, caps, boxes)
        found = now if before is None else _tighter(before, now)
        if found.caps == caps:
            self.scale = problem.cost_scale
        if found.bounds[1] - found.bounds[0] <= self._wanted(found):
            return found, "converged"
        return found, _stopped(self.work, above, below)

    def _wanted(self, found: Truncation) -> float:
        """The width to reach; the two solves may each end at their finest width."""
        return Goal(self.tolerance, FINEST * self.scale).width(*found.bounds)


def _single(found: Found, caps: Caps, boxes: int) -> Truncation:
    return Truncation(
        kind="exact",
        cost=found.gain,
        bounds=_bounds(found),
        error=0.0,
        caps=caps,
        states=found.values.size,
        policy=found.policy,
        boxes=boxes,
    )


def _between(below: Found, above: Found, caps: Caps, boxes: int) -> Truncation:
    lower, upper = _bounds(below)[0], _bounds(above)[1]
    return Truncation(
        kind="bracketed",
        cost=0.5 * (lower + upper),
        bounds=(lower, upper),
        error=max(0.0, upper - lower),
        caps=caps,
        states=above.values.size,
        policy=above.policy,
        boxes=boxes,
    )


def _tighter(before: Truncation, now: Truncation) -> Truncation:
    """The policy of the smaller upper bound, with the best of both bounds."""
    best = min(now, before, key=lambda found: found.bounds[1])
    lower, upper = max(before.bounds[0], now.bounds[0]), best.bounds[1]
    return replace(
        best,
        cost=0.5 * (lower + upper),
        bounds=(lower, upper),
        error=max(0.0, upper - lower),
        boxes=now.boxes,
    )


# --- one model per box ----------------------------------------------------------------------------


def estimated(
    build: Callable[[Caps], Any],
    start: Sequence[int],
    *,
    grow: Growth = ESTIMATE_GROWTH,
    tolerance: float = 1e-8,
    largest: int = LARGEST,
    time_limit: float | None = None,
    solver: Any = None,
    threads: int = 1,
    progress: Progress | None = None,
    strict: bool = True,
) -> Truncation:
    """The optimum of an infinite model, estimated on growing boxes. It certifies nothing.

    The error is estimated by the change since the box before, or where the changes shrink slowly by
    the sum of those to come, if they go on to shrink by the same factor; the width of the bounds on
    the box is added.

    Parameters
    ----------
    build : function of caps
        The model on the box with these caps, or a pair (model, rule), to evaluate a rule instead,
        of the kind that `mdpcloud.policy` takes.
    start : sequence of int
        Caps of the first box.
    grow : float or function of caps
        Factor by which caps grow (and 2), or the next caps. Edges that do not grow are not cuts.
    tolerance : float
        Largest estimated error, relative to the cost, and largest boundary mass.
    largest : int
        States of the largest box.
    time_limit : float, optional
        Seconds.
    solver, threads, progress
        As for `mdpcloud.solve`.
    strict : bool
        Raise `SolveError` when the tolerance was not met; it carries the result.

    Returns
    -------
    Truncation

    Raises
    ------
    InputError
        When an argument is wrong, or a model.
    SolveError
        When the box reached its largest size, or a solve its limit, before the tolerance was met:
        the model may have no stationary regime.

    Examples
    --------
    An M/M/1 queue with load 1/2 has one customer on average:

    >>> import mdpcloud as mc
    >>> def queue(caps):
    ...     arrival = mc.Event("arrival", lambda x: 0.5 * (x.jobs < caps[0]), mc.step(jobs=+1))
    ...     service = mc.Event("service", lambda x: 1.0 * (x.jobs > 0), mc.step(jobs=-1))
    ...     space = mc.Lattice({"jobs": caps[0]})
    ...     return mc.Model(space, [arrival, service], cost_rate=lambda x: x.jobs)
    >>> found = estimated(queue, [10])
    >>> found.kind, abs(found.cost - 1.0) <= found.error <= 1e-8, found.boundary < 1e-8
    ('estimated', True, True)
    """
    Goal(tolerance, 0.0)
    work = Work(SHARE * tolerance, solver, threads, progress, Budget(time_limit))
    growth = growth_of(grow)
    found, status = on_growing_boxes(
        _Estimate(build, tolerance, work),
        checked_start(start),
        lambda caps, _: growth(caps),
        largest,
    )
    return _insist(replace(found, status=status), strict)


class _Estimate:
    """Attempts with one model, each compared with those before."""

    def __init__(self, build: Callable[[Caps], Any], tolerance: float, work: Work) -> None:
        self.build, self.tolerance, self.work = build, tolerance, work
        self.last: Found | None = None
        self.columns: list[NDArray[Any]] = []
        self.change = np.inf

    def __call__(self, caps: Caps, before: Truncation | None) -> tuple[Truncation, str | None]:
        """The estimate on a box."""
        model, rule = with_rule(self.build(caps))
        found, problem = self.work.run(model, rule, self.last)
        self.last = found
        usable = found.status in (Status.CONVERGED, Status.PRECISION)
        if not usable and before is not None:
            return before, _status(found)
        mass = self._boundary(model, problem, found) if usable else None
        lower, upper = _bounds(found)
        cost = 0.5 * (lower + upper)
        error = self._change(cost, upper - lower, before) + 0.5 * (upper - lower)
        now = Truncation(
            kind="estimated",
            cost=cost,
            bounds=(cost - error, cost + error),
            error=error,
            caps=caps,
            states=found.values.size,
            policy=found.policy,
            boundary=mass,
            boxes=1 if before is None else before.boxes + 1,
        )
        wanted = Goal(self.tolerance, problem.cost_scale).width(lower, upper)
        if mass is not None and mass <= self.tolerance and error <= wanted:
            return now, "converged"
        return now, _stopped(self.work, found)

    def _change(self, cost: float, width: float, before: Truncation | None) -> float:
        """The last change, or all those to come if they go on to shrink as slowly as they did."""
        if before is None:
            return np.inf
        change, earlier = abs(cost - before.cost), self.change
        self.change = change
        if change <= width:
            return change
        ratio = change / earlier
        return change * max(1.0, ratio / (1.0 - ratio)) if ratio < 1.0 else np.inf

    def _boundary(self, model: Any, problem: Any, found: Found) -> float:
        """Long-run fraction of time near the edges that grow."""
        columns = list(problem.columns)
        near = near_growing_edges(self.columns, columns)
        self.columns = columns
        return float(stationary(model, found.policy)[near].sum())
