"""The optimum of a system: exact, or bracketed between two finite boxes.

On a box the optimum without routing at the caps is an upper bound of the true optimum (it is a
policy of the true system); the optimum of the model in which a full node takes jobs at their least
possible cost is a lower bound. The box grows until both agree.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from mdpcloud.criteria import AverageCost
from mdpcloud.engine import compile_model
from mdpcloud.errors import SolveError
from mdpcloud.model.model import Model
from mdpcloud.model.policy import Policy
from mdpcloud.solve import Solution
from mdpcloud.solve.limits import Monitor
from mdpcloud.solve.optimise import solve_compiled
from mdpcloud.solve.reward import signed_progress
from mdpcloud.solve.truncation.boxes import REASONS, Budget, growth_of, states_of
from mdpcloud.solve.truncation.truncation import BRACKET_GROWTH, bracketed
from mdpcloud.systems.base import Truncated

__all__ = ["Optimum", "Settings", "compiled_model", "find_optimum"]

SMALL = 60_000  # states up to which an exact box is solved as it is, and a compiled model kept


@dataclass(frozen=True)
class Settings:
    """How to solve: arguments of `mdpcloud.solve`, and caps set by hand.

    ``time_limit`` (seconds) counts from the making of the settings, for all that follows. Models of
    the system under comparison, by their caps, are kept in ``compiled``.
    """

    tolerance: float = 1e-8
    threads: int = 1
    caps: tuple[int, ...] | None = None
    solver: Any = None
    time_limit: float | None = None
    progress: Any = None
    started: float = field(default_factory=time.perf_counter)
    compiled: dict[Any, tuple[Model, Any]] = field(default_factory=dict, repr=False, compare=False)

    @property
    def time_left(self) -> float | None:
        """Seconds until the limit, see `mdpcloud.solve.truncation.boxes.Budget`."""
        return Budget(self.time_limit, self.started).left

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

    def solve(self, model: Model, problem: Any) -> Solution:
        """Solve a compiled model; a partial result is returned, not raised."""
        monitor = Monitor(None, self.time_left, signed_progress(model, self.progress))
        how = self.solver, self.tolerance, monitor, self.threads
        return solve_compiled(model, problem, AverageCost(), *how)


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


def compiled_model(
    system: Any, caps: Sequence[int] | None, settings: Settings
) -> tuple[Model, Any]:
    """The model of a system on a box, also compiled; small ones once in a comparison."""
    key = None if caps is None else tuple(caps)
    if key in settings.compiled:
        return settings.compiled[key]
    model = model_of(system, caps)
    problem = compile_model(model, threads=settings.threads)
    if problem.n <= SMALL:
        settings.compiled[key] = model, problem
    return model, problem


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
    if len(finite) == len(exact) and states_of(finite) <= SMALL:
        return _on_box(system, settings, finite, "exact")
    return _bracketed(system, settings, exact)


def box_of(model: Model) -> tuple[int, ...]:
    """The caps of a model's lattice."""
    return tuple(model.space.axes.sizes)


def _on_box(system: Any, settings: Settings, caps: tuple[int, ...] | None, kind: str) -> Optimum:
    solution = settings.solve(*compiled_model(system, caps, settings))
    return Optimum(
        cost=solution.gain,
        lower=float(np.min(solution.bounds[0])),
        upper=float(np.max(solution.bounds[1])),
        status=solution.status.name.lower(),
        kind=kind,
        error=0.0 if kind == "exact" else None,
        states=solution.values.size,
        caps=caps,
        policy=solution.policy,
        system=system,
    )


def _bracketed(system: Truncated, settings: Settings, exact: Sequence[int | None]) -> Optimum:
    """The optimum between boxes that grow, but never beyond the exact one."""
    grown = growth_of(BRACKET_GROWTH)
    found = bracketed(
        lambda caps: None if caps == tuple(exact) else system.model(caps, "lower"),
        system.model,
        system.start_caps(),
        grow=lambda caps: [
            cap if e is None else min(cap, e) for cap, e in zip(grown(caps), exact, strict=True)
        ],
        tolerance=settings.tolerance,
        time_limit=settings.time_left,
        solver=settings.solver,
        threads=settings.threads,
        progress=settings.progress,
        strict=False,
    )
    return Optimum(
        cost=found.cost,
        lower=found.bounds[0],
        upper=found.bounds[1],
        status=found.status,
        kind=found.kind,
        error=found.error,
        states=found.states,
        caps=found.caps,
        policy=found.policy,
        system=system,
    )


def check(optimum: Optimum, partial: Any) -> None:
    """Raise `SolveError` when the optimum was not found to the tolerance."""
    if optimum.status == "converged":
        return
    raise SolveError(
        f"the optimum did not converge ({REASONS.get(optimum.status, optimum.status)}): certified "
        f"bounds [{optimum.lower:.12g}, {optimum.upper:.12g}] on {optimum.states} states",
        partial,
    )
