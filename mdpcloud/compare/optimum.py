"""The optimum of a system: exact, or bracketed between two finite boxes.

On a box the optimum without routing at the caps is an upper bound of the true optimum (it is a
policy of the true system); the optimum of the model in which a full node takes jobs at their least
possible cost is a lower bound. The box grows until both agree.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from mdpcloud.errors import SolveError
from mdpcloud.model.model import Model
from mdpcloud.model.policy import Policy
from mdpcloud.solve import Solution, solve
from mdpcloud.systems.base import Truncated

__all__ = ["Optimum", "Settings", "find_optimum"]

SMALL = 60_000  # states up to which an exact box is solved as it is
LARGEST = 5_000_000  # states beyond which the box no longer grows
GROWTH = 1.6


@dataclass(frozen=True)
class Settings:
    """How to solve: arguments of `mdpcloud.solve`, and caps set by hand."""

    tolerance: float = 1e-8
    threads: int = 1
    caps: tuple[int, ...] | None = None
    solver: Any = None
    time_limit: float | None = None
    progress: Any = None

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
            time_limit=self.time_limit,
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
    model : Model
        Of the policy's box.
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
    model: Model


def find_optimum(system: Any, settings: Settings) -> Optimum:
    """The optimum of a system, on the smallest box that is good enough."""
    if not isinstance(system, Truncated):
        model = system.model() if settings.caps is None else system.model(caps=settings.caps)
        kind = "exact" if settings.caps is None else "restricted"
        return _single(settings.solve(model), model, kind, settings.caps)
    exact = system.exact_caps()
    if settings.caps is not None:
        inside = all(e is not None and c >= e for c, e in zip(settings.caps, exact, strict=True))
        model = system.model(settings.caps)
        return _single(
            settings.solve(model), model, "exact" if inside else "restricted", settings.caps
        )
    caps = tuple(cap for cap in exact if cap is not None)
    if len(caps) == len(exact) and _states(caps) <= SMALL:
        model = system.model(caps)
        return _single(settings.solve(model), model, "exact", caps)
    return _bracketed(system, settings, exact)


def _single(solution: Solution, model: Model, kind: str, caps: Any) -> Optimum:
    lower, upper = (float(np.min(solution.bounds[0])), float(np.max(solution.bounds[1])))
    return Optimum(
        cost=solution.gain,
        lower=lower,
        upper=upper,
        status=solution.status.name.lower(),
        kind=kind,
        error=0.0 if kind == "exact" else None,
        states=solution.values.size,
        caps=None if caps is None else tuple(caps),
        policy=solution.policy,
        model=model,
    )


def _bracketed(system: Truncated, settings: Settings, exact: Sequence[int | None]) -> Optimum:
    caps = system.start_caps()
    above: Solution | None = None
    below: Solution | None = None
    while True:
        model = system.model(caps)
        above = settings.solve(model, _extended(above, caps), 0.3)
        if tuple(exact) == caps:
            return _single(above, model, "exact", caps)
        below = settings.solve(system.model(caps, "lower"), _extended(below or above, caps), 0.3)
        found = _between(below, above, model, caps)
        grown = _grown(caps, exact)
        if found.upper - found.lower <= settings.tolerance * abs(found.lower):
            return found
        stopped = next((s for s in (above, below) if not s.converged), None)
        if stopped is not None or _states(grown) > LARGEST:
            return _unfinished(found, stopped)
        caps = grown


def _between(below: Solution, above: Solution, model: Model, caps: tuple[int, ...]) -> Optimum:
    lower, upper = float(below.bounds[0]), float(above.bounds[1])
    return Optimum(
        cost=0.5 * (lower + upper),
        lower=lower,
        upper=upper,
        status="converged",
        kind="bracketed",
        error=max(0.0, float(above.bounds[1]) - float(below.bounds[0])),
        states=above.values.size,
        caps=caps,
        policy=above.policy,
        model=model,
    )


def _unfinished(found: Optimum, stopped: Solution | None) -> Optimum:
    from dataclasses import replace

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
        f"the optimum did not converge ({optimum.status}): certified bounds "
        f"[{optimum.lower:.12g}, {optimum.upper:.12g}] on {optimum.states} states",
        partial,
    )
