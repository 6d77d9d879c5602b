"""Policies simulated with common random numbers, instead of being evaluated.

All policies get the same seed and are run for the same time, so that what happens at random happens
in the same way under each of them: the interval of a difference of two costs is then narrower than
that of independent runs. A number of events is turned into a time by the first policy's run; where
a half width is asked for, all are run for as long as the slowest of them needs.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from mdpcloud.compare.plan import Plan
from mdpcloud.compare.row import (
    GOOD,
    Difference,
    Row,
    closed_form_row,
    heuristic_of,
    row_from_bounds,
)
from mdpcloud.errors import InputError, SolveError
from mdpcloud.policies.family import Family
from mdpcloud.simulate.result import SimulationResult
from mdpcloud.simulate.settings import SimulateSettings
from mdpcloud.systems.base import Heuristic

__all__ = ["Simulated", "check_simulated", "how", "simulate_rows"]

DONE = "done"
INTERRUPTED = "interrupted"
NOT_SEARCHED = "left out: {}: members are compared by their exact costs, not by simulations"


@dataclass(frozen=True, eq=False)
class Simulated:
    """What was simulated.

    Attributes
    ----------
    rows : tuple of Row
    left_out : tuple of str
        Why policies that were not asked for by name are left out.
    interrupted : bool
        Whether policies are missing, or shorter than planned, since the user interrupted.
    """

    rows: tuple[Row, ...]
    left_out: tuple[str, ...]
    interrupted: bool


def simulate_rows(
    system: Any, chosen: Mapping[str, Any], plan: Plan, *, asked: bool, closed_forms: bool
) -> Simulated:
    """Simulate policies with common random numbers, up to an interrupt.

    Parameters
    ----------
    system : object
    chosen : mapping of name to the system's own name of a policy, a rule, or a Policy
        A `Family` is left out, with a note.
    plan : Plan
    asked : bool
        Whether the policies were asked for by name.
    closed_forms : bool
        Whether costs that are known in closed form are not simulated.
    """
    rows: list[Row] = []
    left_out = [NOT_SEARCHED.format(name) for name, what in chosen.items() if _is_family(what)]
    chosen = {name: what for name, what in chosen.items() if not _is_family(what)}
    interrupted = False
    for position, (name, what) in enumerate(chosen.items()):
        left = len(chosen) - position
        try:
            rows.append(_row(system, name, what, plan, _first(rows), left, closed_forms))
        except InputError as error:
            if asked:
                raise
            left_out.append(f"left out: {error}")
            if left == 1 and not rows:
                raise
        except KeyboardInterrupt:
            if not rows:
                raise
            interrupted = True
        if interrupted or (rows and rows[-1].status == INTERRUPTED):
            return Simulated(_compared(rows), tuple(left_out), True)
    rows, interrupted = _of_equal_time(system, chosen, plan, rows)
    return Simulated(_compared(rows), tuple(left_out), interrupted)


def _is_family(what: Any) -> bool:
    return isinstance(what, Family)


def _first(rows: Sequence[Row]) -> SimulationResult | None:
    return next((row.simulation for row in rows if row.simulation is not None), None)


def _row(
    system: Any,
    name: str,
    what: Any,
    plan: Plan,
    after: SimulationResult | None,
    left: int,
    closed_forms: bool,
) -> Row:
    try:
        heuristic = heuristic_of(system, name, what, plan.ties)
        if heuristic.cost is not None and (closed_forms or not _offers_simulation(system)):
            row = closed_form_row(system, heuristic)
        else:
            found = plan.run(system, _policy(system, what, heuristic), after, left)
            row = _simulated_row(system, heuristic, found)
    except InputError as error:
        raise InputError(f"policy {name!r}: {error}") from error
    return replace(row, name=name, heuristic=what if isinstance(what, str) else None)


def _offers_simulation(system: Any) -> bool:
    return hasattr(system, "simulation")


def _policy(system: Any, what: Any, heuristic: Heuristic) -> Any:
    """What to simulate: a name where the system simulates its policies itself, else the rule."""
    return what if _offers_simulation(system) else heuristic.rule


def _simulated_row(system: Any, heuristic: Heuristic, found: SimulationResult) -> Row:
    named = {"cost": found.gain, **found.measures}
    bounds = {name: (one.lower, one.upper) for name, one in named.items()}
    status = "simulated" if found.status == DONE else found.status
    row = row_from_bounds(system, heuristic, bounds, found.gain.value, status, 0)
    notes = (*row.notes, *found.notes, *_until_absorption(found))
    return replace(row, notes=notes, simulation=found)


def _until_absorption(found: SimulationResult) -> list[str]:
    """What a replication took until it ended, where all of them did."""
    parts = [
        f"{name} {one.value:.6g} ± {one.half_width:.2g}" for name, one in found.absorption.items()
    ]
    return [f"until it ended a replication took on average {', '.join(parts)}"] if parts else []


def _of_equal_time(
    system: Any, chosen: Mapping[str, Any], plan: Plan, rows: Sequence[Row]
) -> tuple[list[Row], bool]:
    """Runs of as long as the longest one that a half width took, and whether it was interrupted.

    A run that is wider than the half width then, by chance, is left as it was.
    """
    target = plan.settings.half_width
    runs = [row.simulation for row in rows if row.simulation is not None]
    if target is None or len(runs) < 2 or any(run.status != DONE for run in runs):
        return list(rows), False
    longest = max(runs, key=lambda run: run.time)
    same = replace(plan, settings=replace(plan.settings, half_width=None))
    made: list[Row] = []
    try:
        for row in rows:
            again = row
            if row.simulation is not None:
                again = _row(system, row.name, chosen[row.name], same, longest, len(rows), False)
            met = again.simulation is not None and again.simulation.gain.half_width <= target
            made.append(again if met else row)
    except KeyboardInterrupt:
        return [*made, *rows[len(made) :]], True
    return made, False


def how(found: Simulated) -> str:
    """What a reader of the intervals has to know, in a sentence."""
    runs = [row.simulation for row in found.rows if row.simulation is not None]
    if not runs:
        return "nothing was simulated: there is no policy, or all costs are known in closed form"
    events = sum(run.events for run in runs)
    pairs = len(runs) > 1 and all(run.is_coupled_with(runs[0]) for run in runs)
    coupled = ", with common random numbers" if pairs else ""
    return (
        f"{events} events in {runs[0].replications} replications of each policy{coupled}; every "
        "interval holds with 95 % confidence, each for itself"
    )


# --- differences ----------------------------------------------------------------------------------


def _compared(rows: Sequence[Row]) -> tuple[Row, ...]:
    """Rows with their differences to the one of least cost, or largest reward."""
    if not rows:
        return ()
    first = _first(rows)
    sense = 1 if first is None else first.sense
    best = min(rows, key=lambda row: sense * row.cost)
    return tuple(replace(row, difference=_difference(row, best)) for row in rows)


def _difference(row: Row, best: Row) -> Difference:
    if row is best:
        return Difference(0.0, 0.0, 0.0, "best")
    if row.simulation is not None and best.simulation is not None:
        found = row.simulation.difference(best.simulation)
        kind = "paired" if row.simulation.is_coupled_with(best.simulation) else "independent"
        return Difference(found.value, found.lower, found.upper, kind)
    return Difference(
        row.cost - best.cost, row.lower - best.upper, row.upper - best.lower, "closed_form"
    )


# --- what did not end well ------------------------------------------------------------------------


def check_simulated(found: Simulated, settings: SimulateSettings, comparison: Any) -> None:
    """Raise `SolveError` with the comparison when a run did not do what was asked."""
    unmet = [_failure(row, settings) for row in found.rows if row.status not in GOOD]
    if found.interrupted:
        last = found.rows[-1].name
        unmet = [f"interrupted at {last}; the results are of what was simulated so far"]
    if unmet:
        raise SolveError(f"the simulation did not converge: {'; '.join(unmet)}", comparison)


def _failure(row: Row, settings: SimulateSettings) -> str:
    assert row.simulation is not None
    half, events = row.simulation.gain.half_width, row.simulation.events
    if row.status == "half_width" and half <= (settings.half_width or 0.0):
        return f"{row.name} is known to ± {half:.3g}, but the run is too short to trust it"
    if row.status == "half_width":
        return (
            f"{row.name} is known to ± {half:.3g} after {events} events, and half_width is "
            f"{settings.half_width:g}; allow more events or time"
        )
    return f"{row.name} was stopped at the time limit after {events} events, ± {half:.3g}"
