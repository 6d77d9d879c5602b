"""The optimum of a system: exact, or bracketed between two finite boxes.

On a box the optimum without routing at the caps is an upper bound of the true optimum (it is a
policy of the true system); the optimum of the model in which a full node takes jobs at their least
possible cost is a lower bound. The box grows until both agree.
"""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from mdpcloud.engine import compile_model
from mdpcloud.errors import SolveError
from mdpcloud.model.model import Model
from mdpcloud.model.policy import Policy
from mdpcloud.solve import Solution, solve
from mdpcloud.solve.limits import Goal
from mdpcloud.systems.base import Truncated

__all__ = ["Optimum", "Settings", "find_optimum"]

SMALL = 60_000  # states up to which an exact box is solved as it is
LARGEST = 5_000_000  # states beyond which the box no longer grows
GROWTH = 1.6
SHARE = 0.3  # of the tolerance, for each of the two solves of a bracket
REASONS = {
    "time": "time limit",
    "iterations": "iteration limit",
    "interrupted": "interrupted",
    "precision": "finer than float64 can certify",
    "stalled": "the bounds stopped closing",
    "too_many_states": f"the next box has more than {LARGEST} states",
}
LEAST_SHARE = 0.1  # of the time limit, for every solve: what is quick is not left out
FINEST = 3.0  # times the finest width of one solve: that of a bracket


@dataclass(frozen=True)
class Settings:
    """How to solve: arguments of `mdpcloud.solve`, and caps set by hand.

    ``time_limit`` (seconds) counts from the making of the settings, for all that follows.
    """

    tolerance: float = 1e-8
    threads: int = 1
    caps: tuple[int, ...] | None = None
    solver: Any = None
    time_limit: float | None = None
    progress: Any = None
    started: float = field(default_factory=time.perf_counter)

    @property
    def time_left(self) -> float | None:
        """Seconds until the limit, a tenth of it where it is near or past; None without one."""
        if self.time_limit is None:
            return None
        left = self.time_limit - (time.perf_counter() - self.started)
        return max(left, LEAST_SHARE * self.time_limit)

    def to_dict(self) -> dict[str, Any]:
        """Plain data for results."""
        return {
            "criterion": "average_cost",
            "tolerance": self.tolerance,
            "solver": getattr(self.solver, "name", self.solver),
            "threads": self.threads,
            "caps": None if self.caps is None else list(self.caps),
            "time_limit": self.time_limit,
        }

    def solve(self, model: Model, start: Any = None, share: float = 1.0) -> Solution:
        """Solve a model to a share of the tolerance; a partial result is returned, not raised."""
        return solve(
            model,
            solver=self.solver,
            tolerance=share * self.tolerance,
            start=start,
            time_limit=self.time_left,
            threads=self.threads,
            progress=self.progress,
            strict=False,
        )


@dataclass(frozen=True, eq=False)
class Optimum:
    """The optimal cost rate and a policy.

    Attributes
    ----------
    cost, lower, upper : float
        Cost/time; the bounds are certified. With hand-set caps they are those of the restricted
        problem, whose optimum is an upper bound of the true one.
    status : str
        "converged", or why not.
    kind : {"exact", "restricted", "bracketed", "estimated"}
        How the state space was cut.
    error : float or None
        Width that the cut adds to the bounds; None where it is not known.
    states : int
    caps : tuple of int or None
    policy : Policy
        On the box.
    system : object
    """

    cost: float
    lower: float
    upper: float
    status: str
    kind: str
    error: float | None
    states: int
    caps: tuple[int, ...] | None
    policy: Policy
    system: Any

    @property
    def model(self) -> Model:
        """The model of the policy's box."""
        return model_of(self.system, self.caps)


def model_of(system: Any, caps: Sequence[int] | None) -> Model:
    """The model of a system, on a box where one is given."""
    model: Model = system.model() if caps is None else system.model(caps=caps)
    return model


def find_optimum(system: Any, settings: Settings) -> Optimum:
    """The optimum of a system, on the smallest box that is good enough."""
    if not isinstance(system, Truncated):
        kind = "exact" if settings.caps is None else "restricted"
        return _on_box(system, settings, settings.caps, kind)
    exact = system.exact_caps()
    if settings.caps is not None:
        caps = box_of(system.model(settings.caps))
        inside = all(e is not None and cap >= e for cap, e in zip(caps, exact, strict=True))
        return _on_box(system, settings, caps, "exact" if inside else "restricted")
    finite = tuple(cap for cap in exact if cap is not None)
    if len(finite) == len(exact) and _states(finite) <= SMALL:
        return _on_box(system, settings, finite, "exact")
    return _bracketed(system, settings, exact)


def box_of(model: Model) -> tuple[int, ...]:
    """The caps of a model's lattice."""
    return tuple(model.space.axes.sizes)


def _on_box(system: Any, settings: Settings, caps: tuple[int, ...] | None, kind: str) -> Optimum:
    return _single(system, settings.solve(model_of(system, caps)), caps, kind)


def _single(system: Any, solution: Solution, caps: tuple[int, ...] | None, kind: str) -> Optimum:
    lower, upper = (float(np.min(solution.bounds[0])), float(np.max(solution.bounds[1])))
    return Optimum(
        cost=solution.gain,
        lower=lower,
        upper=upper,
        status=solution.status.name.lower(),
        kind=kind,
        error=0.0 if kind == "exact" else None,
        states=solution.values.size,
        caps=caps,
        policy=solution.policy,
        system=system,
    )


def _bracketed(system: Truncated, settings: Settings, exact: Sequence[int | None]) -> Optimum:
    caps = tuple(system.start_caps())
    above: Solution | None = None
    below: Solution | None = None
    found: Optimum | None = None
    while True:
        above = settings.solve(system.model(caps), _extended(above, caps), SHARE)
        if tuple(exact) == caps:
            return _single(system, above, caps, "exact")
        below = settings.solve(system.model(caps, "lower"), _extended(below or above, caps), SHARE)
        found = _tighter(found, _between(system, below, above, caps))
        if found.upper - found.lower <= _wanted(settings, found):
            return found
        grown = _grown(caps, exact)
        stopped = next((s for s in (above, below) if not s.converged), None)
        if stopped is not None or _states(grown) > LARGEST:
            return _unfinished(found, stopped)
        caps = grown


def _wanted(settings: Settings, found: Optimum) -> float:
    """The width of the bracket to reach; its two solves may each end at their finest width."""
    scale = FINEST * compile_model(found.model).cost_scale
    return Goal(settings.tolerance, scale).width(found.lower, found.upper)


def _between(system: Any, below: Solution, above: Solution, caps: tuple[int, ...]) -> Optimum:
    lower, upper = float(below.bounds[0]), float(above.bounds[1])
    return Optimum(
        cost=0.5 * (lower + upper),
        lower=lower,
        upper=upper,
        status="converged",
        kind="bracketed",
        error=max(0.0, upper - lower),
        states=above.values.size,
        caps=caps,
        policy=above.policy,
        system=system,
    )


def _tighter(before: Optimum | None, now: Optimum) -> Optimum:
    """The policy of the smaller upper bound, with the best of both bounds."""
    if before is None:
        return now
    lower, best = max(before.lower, now.lower), min(now, before, key=lambda o: o.upper)
    return replace(
        best,
        cost=0.5 * (lower + best.upper),
        lower=lower,
        error=max(0.0, best.upper - lower),
    )


def _unfinished(found: Optimum, stopped: Solution | None) -> Optimum:
    return replace(
        found, status="too_many_states" if stopped is None else stopped.status.name.lower()
    )


def _grown(caps: tuple[int, ...], exact: Sequence[int | None]) -> tuple[int, ...]:
    grown = [math.ceil(GROWTH * cap) + 2 for cap in caps]
    return tuple(c if e is None else min(c, e) for c, e in zip(grown, exact, strict=True))


def _states(caps: Sequence[int]) -> int:
    return math.prod(cap + 1 for cap in caps)


def _extended(solution: Solution | None, caps: tuple[int, ...]) -> Any:
    """Relative values of a smaller box, continued at their edges."""
    if solution is None:
        return None
    values = solution.values.reshape(solution.policy.shape)
    pad = [(0, cap + 1 - n) for cap, n in zip(caps, values.shape, strict=True)]
    return np.pad(values, pad, mode="edge").ravel()


def check(optimum: Optimum, partial: Any) -> None:
    """Raise `SolveError` when the optimum was not found to the tolerance."""
    if optimum.status == "converged":
        return
    raise SolveError(
        f"the optimum did not converge ({REASONS.get(optimum.status, optimum.status)}): certified "
        f"bounds [{optimum.lower:.12g}, {optimum.upper:.12g}] on {optimum.states} states",
        partial,
    )
