"""The measures of an allocation system under its own policy: exact, simulated, and in the limit."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from mdpcloud.errors import InputError, NoLimitError, SolveError
from mdpcloud.solve.limits import Status
from mdpcloud.systems.measures import Measures, collect

__all__ = ["exact_measures", "finite_measures", "is_allocation", "limit_measures"]

MOST = 400_000
"""States of the largest system that is evaluated; larger ones are simulated."""

UNFINISHED = (Status.TIME, Status.INTERRUPTED)
MOST_POINTS = 30_000_000  # of the box whose states are listed
COST = "cost"

Progress = Callable[[int, float, float], None]


def is_allocation(system: Any) -> bool:
    """Whether a system names a policy of its own, under which it is evaluated."""
    return hasattr(system, "own_policy")


def finite_measures(
    system: Any,
    *,
    tolerance: float = 1e-10,
    threads: int = 1,
    time_limit: float | None = None,
    progress: Progress | None = None,
    simulate: Any = None,
) -> tuple[Measures, str]:
    """Measures of a finite system under its own policy, and how they were found.

    Parameters
    ----------
    system : object
        An allocation system, see `mdpcloud.systems.base`.
    tolerance : float
        Relative width of the certified bounds of the cost.
    threads : int
    time_limit : float, optional
        Seconds.
    progress : function of (iterations or events, lower, upper), optional
    simulate : mapping or SimulateSettings, optional
        How to simulate what is too large to be evaluated.

    Returns
    -------
    Measures
    str
        "exact" or "simulated"; the errors of simulated measures are half widths of 95 % intervals.

    Raises
    ------
    InputError
        When the system is no allocation system.
    SolveError
        When the cost did not converge to the tolerance.
    """
    exact = exact_measures(
        system, tolerance=tolerance, threads=threads, time_limit=time_limit, progress=progress
    )
    if exact is not None:
        return exact, "exact"
    return _simulated(system, simulate, progress, time_limit), "simulated"


def exact_measures(
    system: Any,
    *,
    tolerance: float = 1e-10,
    threads: int = 1,
    time_limit: float | None = None,
    progress: Progress | None = None,
) -> Measures | None:
    """Exact measures of a finite system under its own policy; None where it is too large.

    The parameters and errors are those of `finite_measures`.
    """
    if not is_allocation(system):
        raise InputError(
            f"{type(system).__name__} has no policy of its own and no large-scale limit: it names "
            "no own_policy"
        )
    for method in ("model", "heuristic"):
        if not callable(getattr(system, method, None)):
            raise InputError(
                f"{type(system).__name__} names own_policy {system.own_policy!r}, but has no "
                f"method {method}; mdpcloud.systems.base says what allocation systems offer"
            )
    if hasattr(system, "exact"):
        known: Measures | None = system.exact()
        return known
    model = system.model()
    if _is_large(model):
        return None
    from mdpcloud.solve import evaluate

    found = evaluate(
        model,
        _own_rule(system),
        tolerance=tolerance,
        time_limit=time_limit,
        threads=threads,
        progress=progress,
        strict=False,
    )
    bounds = {name: _outermost(pair) for name, pair in found.measures.items()}
    measures = _collected(system, _outermost(found.bounds), bounds)
    if found.status in UNFINISHED or not all(map(math.isfinite, measures.errors.values())):
        raise SolveError(f"the measures were not evaluated ({found.status.value})", found)
    if found.converged:
        return measures
    wide = "some bounds are wider than asked for, where float64 tells no more"
    return replace(measures, notes=(*measures.notes, wide))


def limit_measures(system: Any) -> tuple[Measures | None, tuple[str, ...]]:
    """Measures of the large-scale limit, or None; and notes, such as why there is none."""
    if not hasattr(system, "limit"):
        return None, ("no large-scale limit is known for this system",)
    try:
        found: Measures = system.limit()
    except NoLimitError as error:
        return None, (f"no limit: {error}",)
    except SolveError as error:
        return None, (f"the limit was not found: {error}",)
    return found, found.notes


def _own_rule(system: Any) -> Any:
    return system.heuristic(system.own_policy, "first").rule


def _is_large(model: Any) -> bool:
    """Whether there are too many states for an evaluation."""
    points = math.prod(model.space.shape)
    if points > MOST_POINTS:
        return True
    from mdpcloud.engine.lattice import lattice_grid

    inside = lattice_grid(model.space).inside if model.space.where is not None else None
    return (points if inside is None else int(inside.sum())) > MOST


def _outermost(bounds: tuple[Any, Any]) -> tuple[float, float]:
    """Bounds from whatever state."""
    import numpy as np

    return float(np.min(bounds[0])), float(np.max(bounds[1]))


def _collected(system: Any, cost: tuple[float, float], bounds: Mapping[str, Any]) -> Measures:
    derived = system.derived(cost, bounds) if hasattr(system, "derived") else {}
    return replace(
        collect(cost, {**bounds, **derived}),
        notes=tuple(getattr(system, "notes", ())),
    )


def _simulated(
    system: Any, given: Any, progress: Progress | None, time_limit: float | None
) -> Measures:
    from mdpcloud.simulate.settings import SimulateSettings
    from mdpcloud.simulate.simulate import simulate

    settings = SimulateSettings.of(given)
    found = simulate(
        system,
        system.own_policy,
        ties="first",
        **settings.arguments(),
        time_limit=settings.time_limit or time_limit,
        progress=progress,
        strict=False,
    )
    if found.status == "interrupted":
        raise SolveError("the simulation was interrupted", found)
    bounds = {name: (one.lower, one.upper) for name, one in found.measures.items()}
    measures = _collected(system, (found.gain.lower, found.gain.upper), bounds)
    notes = (*measures.notes, *found.notes)
    return replace(measures, certified=False, notes=notes)
