"""What is known of an infinite model after each box that is tried.

See `mdpcloud.solve.truncation.truncation` for what is looked for, and what it is worth.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from mdpcloud.errors import InputError
from mdpcloud.model.policy import Policy
from mdpcloud.solve.limits import Goal, Status
from mdpcloud.solve.stationary.stationary import stationary
from mdpcloud.solve.truncation.boxes import Caps, Found, Work, near_growing_edges, with_rule

__all__ = ["Bracket", "Estimate", "Truncation"]

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


class Bracket:
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
        _refuse_crossed(found)
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


def _refuse_crossed(found: Truncation) -> None:
    """Raise `InputError` where the certified bounds refute the theorem behind the two models."""
    lower, upper = found.bounds
    if lower > upper:
        raise InputError(
            f"the lower model costs at least {lower:.12g} and the upper one at most {upper:.12g} "
            f"(caps {found.caps}), so that they do not enclose one optimum; are they exchanged?"
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


class Estimate:
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
        if not hasattr(problem, "columns"):
            raise InputError("a tabular model has no edges: build a mdpcloud.Model on a box")
        columns = list(problem.columns)
        near = near_growing_edges(self.columns, columns)
        self.columns = columns
        return float(stationary(model, found.policy)[near].sum())
