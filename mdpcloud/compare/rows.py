"""The cost and measures of each policy of a comparison, by evaluation on a lattice."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from mdpcloud.compare.optimum import Settings, box_of, compiled_model
from mdpcloud.compare.row import (
    COST,
    Bounds,
    Row,
    closed_form_row,
    heuristic_of,
    row_from_bounds,
)
from mdpcloud.criteria import AverageCost
from mdpcloud.engine import TermInfo, compile_model
from mdpcloud.engine.rules import action_numbers, policy_for
from mdpcloud.errors import InputError
from mdpcloud.model.policy import Policy
from mdpcloud.solve import Evaluation, Status
from mdpcloud.solve.evaluate import evaluate_compiled
from mdpcloud.solve.limits import Monitor
from mdpcloud.solve.reward import signed_progress
from mdpcloud.solve.truncation.boxes import on_growing_boxes, states_of
from mdpcloud.systems.base import AT_CAP, Edge, Heuristic, Truncated

__all__ = ["ROW", "evaluate_policy", "evaluate_row", "row_of"]

ROW = 1e-9  # relative width of the bounds of a row's cost, or less
LARGEST = 60_000  # states of a box on which a rule is evaluated exactly at once
LARGEST_EXACT = 300_000  # the same, where estimates on smaller boxes are too coarse
LARGEST_ESTIMATE = 100_000  # states of the last box of an estimate
NEGLIGIBLE = 1e-9  # of the cost: an estimated error below it ends the doubling
UNFINISHED = (Status.TIME, Status.INTERRUPTED, Status.STALLED)


def evaluate_row(system: Any, name: str, what: Any, ties: str, settings: Settings) -> Row:
    """Evaluate one policy of a system.

    Raises
    ------
    InputError
        When a rule takes an action that is unknown or not allowed; the message names the state.
    """
    try:
        row = _evaluated(system, heuristic_of(system, name, what, ties), settings)
    except InputError as error:
        raise InputError(f"policy {name!r}: {error}") from error
    return replace(row, name=name, heuristic=what if isinstance(what, str) else None)


def _evaluated(system: Any, heuristic: Heuristic, settings: Settings) -> Row:
    rule, caps = heuristic.rule, settings.caps
    if heuristic.cost is not None:
        return closed_form_row(system, heuristic)
    if callable(rule) and isinstance(system, Truncated):
        if heuristic.caps is None or states_of(heuristic.caps) > LARGEST:
            return _growing(system, heuristic, settings)
        caps = heuristic.caps
    elif isinstance(rule, Policy) and isinstance(system, Truncated):
        caps = tuple(size - 1 for size in rule.shape)
    model, problem = compiled_model(system, caps, settings)
    found = evaluate_policy(model, _policy(problem, rule), settings, problem)
    return row_of(system, found, heuristic, settings)


def _policy(problem: Any, rule: Any) -> Policy:
    """A rule as a policy; where nothing is to be decided it is not asked."""
    decides = isinstance(rule, Policy) or any(term.decision for term in problem.terms)
    return policy_for(problem, rule if decides else {})


def evaluate_policy(
    model: Any, policy: Policy, settings: Settings, problem: Any = None
) -> Evaluation:
    """Cost and measures of a policy; a partial result is returned, not raised.

    ``problem`` is the compiled model, where the policy was made for it.
    """
    if problem is None:
        problem = compile_model(model, threads=settings.threads)
        policy = policy_for(problem, policy)
    monitor = Monitor(None, settings.time_left, signed_progress(model, settings.progress))
    tolerance = min(settings.tolerance, ROW)
    return evaluate_compiled(model, problem, policy, AverageCost(), tolerance, monitor)


def row_of(system: Any, found: Evaluation, heuristic: Heuristic, settings: Settings) -> Row:
    """Row of an evaluation."""
    bounds = _bounds(found)
    lower, upper = bounds[COST]
    good = found.converged or upper - lower <= settings.tolerance * min(abs(lower), abs(upper))
    status = "exact" if good else found.status.name.lower()
    return row_from_bounds(system, heuristic, bounds, found.gain, status, found.values.size)


def _bounds(found: Evaluation) -> dict[str, Bounds]:
    """Bounds of the cost and of every measure, from whatever state."""
    pairs = {COST: found.bounds, **found.measures}
    return {name: (float(np.min(low)), float(np.max(high))) for name, (low, high) in pairs.items()}


# --- rules without a known box --------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class _Estimate:
    """A rule on a box.

    Attributes
    ----------
    caps : tuple of int
    below : Evaluation
        At the least costs of what would leave the box.
    leaves : list of bool
        Along which axes the rule would leave the box.
    hull : mapping
        Bounds at the least and the largest costs.
    bounds : mapping
        The hull, widened by its change since the box before.
    first : bool
        Whether there was no box before.
    """

    caps: tuple[int, ...]
    below: Evaluation
    leaves: list[bool]
    hull: dict[str, Bounds]
    bounds: dict[str, Bounds]
    first: bool

    @property
    def states(self) -> int:
        """Number of states of the box."""
        return self.below.values.size


def _growing(system: Truncated, heuristic: Heuristic, settings: Settings) -> Row:
    """Evaluate a rule on growing boxes: exact on one that it never leaves, else an estimate.

    A known box of that kind is the last one that is tried, if it is not too large. Where the rule
    would leave the box, the job is paid for at its least possible cost, and at its largest,
    instead. The error is estimated by the difference and by the change from box to box.
    """
    found, status = on_growing_boxes(
        partial(_attempt, system, heuristic, settings),
        tuple(settings.caps or system.start_caps()),
        lambda caps, now: _grown(system, heuristic, caps, now.leaves),
        LARGEST_EXACT if _has_last_box(heuristic) else LARGEST_ESTIMATE,
    )
    if status == "exact":
        return row_of(system, found.below, heuristic, settings)
    if status == "too_many_states" and not found.first:
        status = "estimated"
    return _estimated(system, heuristic, found.bounds, found.states, status)


def _attempt(
    system: Truncated,
    heuristic: Heuristic,
    settings: Settings,
    caps: tuple[int, ...],
    before: _Estimate | None,
) -> tuple[_Estimate, str | None]:
    """The rule on one box, and the status with which the doubling ends there, or None."""
    below, leaves = _stopped(system, caps, "lower", heuristic, settings)
    if not any(leaves):
        if before is not None and not below.converged and below.values.size > LARGEST_ESTIMATE:
            return before, "estimated"
        return _Estimate(caps, below, leaves, {}, {}, before is None), "exact"
    above = _dearest(system, caps, heuristic, settings) or below
    hull = _hull(_bounds(below), _bounds(above))
    bounds = hull if before is None else _widened(hull, before.hull)
    found = _Estimate(caps, below, leaves, hull, bounds, before is None)
    for evaluation in (below, above):
        if evaluation.status in UNFINISHED:
            return found, evaluation.status.name.lower()
    known = before is not None and _is_negligible(bounds[COST], _bounds(below)[COST])
    return found, "estimated" if known else None


def _stopped(
    system: Truncated, caps: tuple[int, ...], edge: Edge, heuristic: Heuristic, settings: Settings
) -> tuple[Evaluation, list[bool]]:
    """The rule on a box, paying at the caps, and along which axes it would leave."""
    model = system.model(caps, edge)
    problem = compile_model(model, threads=settings.threads)
    policy, leaves = _paying_at_caps(model, problem, heuristic.rule)
    return evaluate_policy(model, policy, settings, problem), leaves


def _dearest(
    system: Truncated, caps: tuple[int, ...], heuristic: Heuristic, settings: Settings
) -> Evaluation | None:
    """As `_stopped` at the largest costs; None where they are infinite."""
    try:
        return _stopped(system, caps, "upper", heuristic, settings)[0]
    except InputError:  # there is no action that pays an infinite cost
        return None


def _paying_at_caps(model: Any, problem: Any, rule: Any) -> tuple[Policy, list[bool]]:
    e, term = next((e, t) for e, t in enumerate(problem.terms) if t.decision)
    plain = TermInfo(term.name, tuple(a for a in term.actions if not a.endswith(AT_CAP)), True)
    numbers = np.array(action_numbers(problem, plain, rule))
    allowed, active = problem.allowed(e)
    leaves = np.zeros(len(box_of(model)), dtype=bool)
    for a, action in enumerate(plain.actions):
        stopped = active & (numbers == a) & ~allowed[a]
        if f"{action}{AT_CAP}" in term.actions and stopped.any():
            numbers[stopped] = term.actions.index(f"{action}{AT_CAP}")
            at_cap = [
                (x[stopped] == cap).all()
                for x, cap in zip(problem.columns, box_of(model), strict=True)
            ]
            leaves |= np.array(at_cap)
    return policy_for(problem, {term.name: numbers}), leaves.tolist()


def _has_last_box(heuristic: Heuristic) -> bool:
    return heuristic.caps is not None and states_of(heuristic.caps) <= LARGEST_EXACT


def _grown(
    system: Truncated, heuristic: Heuristic, caps: tuple[int, ...], leaves: Sequence[bool]
) -> tuple[int, ...]:
    """The box doubled where the rule leaves it; the known one where that is too large."""
    doubled = [2 * cap + 2 if leave else cap for cap, leave in zip(caps, leaves, strict=True)]
    grown = box_of(system.model(doubled))
    if _has_last_box(heuristic) and states_of(grown) > LARGEST_ESTIMATE:
        return heuristic.caps or grown
    return grown


def _hull(one: dict[str, Bounds], other: dict[str, Bounds]) -> dict[str, Bounds]:
    return {
        name: (min(low, other[name][0]), max(high, other[name][1]))
        for name, (low, high) in one.items()
    }


def _widened(now: dict[str, Bounds], before: dict[str, Bounds]) -> dict[str, Bounds]:
    """Bounds widened by their change since the box before."""
    change = {
        name: max(abs(a - b) for a, b in zip(pair, before[name], strict=True))
        for name, pair in now.items()
    }
    return {name: (low - change[name], high + change[name]) for name, (low, high) in now.items()}


def _is_negligible(bounds: Bounds, certified: Bounds) -> bool:
    """Whether the error is small beside the cost, or beside the width of the evaluation itself."""
    width, own = bounds[1] - bounds[0], certified[1] - certified[0]
    return width <= max(NEGLIGIBLE * min(map(abs, bounds)), 4.0 * own)


def _estimated(
    system: Any, heuristic: Heuristic, bounds: dict[str, Bounds], states: int, status: str
) -> Row:
    note = "it leaves the largest box tried; its cost is estimated by doubling the box"
    noted = replace(heuristic, notes=(*heuristic.notes, note))
    return row_from_bounds(system, noted, bounds, sum(bounds[COST]) / 2, status, states)
