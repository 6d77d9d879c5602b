"""The cost and measures of each policy of a comparison."""

from __future__ import annotations

import difflib
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from mdpcloud.compare.optimum import Settings
from mdpcloud.engine import compile_model
from mdpcloud.engine.rules import action_numbers, policy_for
from mdpcloud.errors import InputError, SolveError
from mdpcloud.model.policy import Policy
from mdpcloud.solve import Evaluation, evaluate
from mdpcloud.systems.base import Heuristic, Truncated

__all__ = ["Row", "choose_policies", "evaluate_row"]

Bounds = tuple[float, float]
LARGEST = 1_500_000  # states of a box on which a rule is evaluated exactly
LARGEST_ESTIMATE = 300_000  # states of the last box of an estimate
NEGLIGIBLE = 1e-9  # of the cost: an estimated error below it ends the doubling


@dataclass(frozen=True, eq=False)
class Row:
    """One policy of a comparison.

    Attributes
    ----------
    name : str
    cost, lower, upper : float
        Cost/time. Certified bounds where ``status`` is "exact"; relative error 1e-12 where it is
        "closed_form"; an estimate of the error of the cut where it is "estimated".
    status : str
    measures : mapping of name to (lower, upper)
    states : int
        Of the box on which it was evaluated, 0 for a closed form.
    indices : list of lists or None
    notes : tuple of str
    rule : function or None
    """

    name: str
    cost: float
    lower: float
    upper: float
    status: str
    measures: Mapping[str, Bounds] = field(default_factory=dict)
    states: int = 0
    indices: Sequence[Sequence[float]] | None = None
    notes: tuple[str, ...] = ()
    rule: Callable[[Any], Any] | None = None


def choose_policies(system: Any, policies: Any) -> dict[str, Any]:
    """Name to what is to be evaluated: the system's own name of a policy, a rule, or a Policy."""
    known = list(getattr(system, "policy_names", ()))
    if policies is None:
        return {name: name for name in known}
    if isinstance(policies, str):
        policies = [policies]
    named = policies if isinstance(policies, Mapping) else {str(name): name for name in policies}
    for value in named.values():
        if isinstance(value, str) and value not in known:
            near = difflib.get_close_matches(value, known, 1)
            hint = (
                f"; did you mean {near[0]!r}?"
                if near
                else f"; there are {', '.join(known) or 'none'}"
            )
            raise InputError(f"policy {value!r} is unknown{hint}")
    return dict(named)


def evaluate_row(system: Any, name: str, what: Any, ties: str, settings: Settings) -> Row:
    """Evaluate one policy of a system.

    Raises
    ------
    InputError
        When a rule takes an action that is unknown or not allowed; the message names the state.
    """
    heuristic = (
        system.heuristic(what, ties) if isinstance(what, str) else Heuristic(name, rule=what)
    )
    try:
        row = _evaluated(system, name, heuristic, settings)
    except InputError as error:
        raise InputError(f"policy {name!r}: {error}") from error
    return row


def _evaluated(system: Any, name: str, heuristic: Heuristic, settings: Settings) -> Row:
    if heuristic.cost is not None:
        return _closed_form(system, name, heuristic)
    rule = heuristic.rule
    if isinstance(rule, Policy) or not isinstance(system, Truncated):
        caps = settings.caps
        model = system.model() if caps is None else system.model(caps=caps)
        return _row(system, name, _evaluate(model, rule, settings), heuristic, "exact")
    if heuristic.caps is not None and _states(heuristic.caps) <= LARGEST:
        model = system.model(heuristic.caps)
        rules = {"arrival": rule} if callable(rule) else rule
        return _row(system, name, _evaluate(model, rules, settings), heuristic, "exact")
    return _growing(system, name, heuristic, settings)


def _evaluate(model: Any, rule: Any, settings: Settings) -> Evaluation:
    return evaluate(
        model,
        rule,
        tolerance=min(settings.tolerance, 1e-9),
        time_limit=settings.time_limit,
        threads=settings.threads,
        progress=settings.progress,
        strict=False,
    )


def _closed_form(system: Any, name: str, heuristic: Heuristic) -> Row:
    cost = float(heuristic.cost or 0.0)
    error = heuristic.error * abs(cost)
    bounds = (cost - error, cost + error)
    measures = {
        key: (v - heuristic.error * abs(v), v + heuristic.error * abs(v))
        for key, v in heuristic.measures.items()
    }
    measures |= _derived(system, bounds, measures)
    return Row(name, cost, *bounds, "closed_form", measures, notes=tuple(heuristic.notes))


def _row(
    system: Any, name: str, found: Evaluation, heuristic: Heuristic, status: str, error: float = 0.0
) -> Row:
    if not found.converged:
        status = found.status.name.lower()
    lower, upper = float(np.min(found.bounds[0])) - error, float(np.max(found.bounds[1])) + error
    measures = dict(found.measures)
    measures |= _derived(system, (lower, upper), measures)
    return Row(
        name=name,
        cost=found.gain,
        lower=lower,
        upper=upper,
        status=status,
        measures=measures,
        states=found.values.size,
        indices=heuristic.indices,
        notes=tuple(heuristic.notes),
        rule=heuristic.rule if callable(heuristic.rule) else None,
    )


def _derived(system: Any, cost: Bounds, measures: dict[str, Bounds]) -> dict[str, Bounds]:
    derived: dict[str, Bounds] = (
        system.derived(cost, measures) if hasattr(system, "derived") else {}
    )
    return derived


def _states(caps: Sequence[int]) -> int:
    return math.prod(cap + 1 for cap in caps)


# --- rules without a known box --------------------------------------------------------------------


def _growing(system: Any, name: str, heuristic: Heuristic, settings: Settings) -> Row:
    """Evaluate a rule on growing boxes: exact on one that it never leaves, else with an error estimate.

    Where the rule would leave the box, the job is paid for at its largest possible cost instead.
    The error is estimated by the change from box to box.
    """
    caps = tuple(settings.caps or system.start_caps())
    before: float | None = None
    while True:
        model = system.model(caps, "upper")
        policy, leaves = _stopped_at_caps(model, caps, heuristic.rule)
        found = _evaluate(model, policy, settings)
        if not leaves:
            return _row(system, name, found, heuristic, "exact")
        change = math.inf if before is None else abs(found.gain - before)
        grown = _within_rooms(system, tuple(2 * cap + 2 for cap in caps))
        if change <= NEGLIGIBLE * abs(found.gain) or _states(grown) > LARGEST_ESTIMATE:
            note = "it leaves every finite box; its cost is estimated by doubling the box"
            return _row(
                system, name, found, _noted(heuristic, note), "estimated", _finite(change, found)
            )
        before, caps = found.gain, grown


def _finite(change: float, found: Evaluation) -> float:
    if math.isfinite(change):
        return change
    raise SolveError(
        "the rule leaves every box that fits the memory; nothing can be said of its cost", found
    )


def _noted(heuristic: Heuristic, note: str) -> Heuristic:
    from dataclasses import replace

    return replace(heuristic, notes=(*heuristic.notes, note))


def _within_rooms(system: Any, caps: tuple[int, ...]) -> tuple[int, ...]:
    axes = system.model(caps).space.axes.sizes
    return tuple(int(v) for v in axes)


def _stopped_at_caps(model: Any, caps: tuple[int, ...], rule: Any) -> tuple[Policy, bool]:
    """The rule on a box, and whether it would leave it: there it pays "node k at its cap"."""
    problem: Any = compile_model(model)
    e, term = next((e, t) for e, t in enumerate(problem.terms) if t.decision)
    numbers = np.array(action_numbers(problem, term, rule))
    allowed, active = problem.allowed(e)
    leaves = False
    for k in range(len(caps)):
        plain, full = f"node {k}", f"node {k} at its cap"
        if full not in term.actions:
            continue
        at_cap = (
            (numbers == term.actions.index(plain)) & ~allowed[term.actions.index(plain)] & active
        )
        numbers[at_cap] = term.actions.index(full)
        leaves |= bool(at_cap.any())
    return policy_for(problem, {term.name: numbers}), leaves
