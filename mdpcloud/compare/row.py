"""One policy of a comparison: its cost and measures, however they were found."""

from __future__ import annotations

import pickle
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from mdpcloud.errors import InputError
from mdpcloud.plugins import did_you_mean
from mdpcloud.policies.family import best_members, families_of
from mdpcloud.simulate.result import SimulationResult
from mdpcloud.systems.base import Heuristic

__all__ = [
    "COST",
    "GOOD",
    "Bounds",
    "Difference",
    "Row",
    "choose_policies",
    "closed_form_row",
    "family_record",
    "heuristic_of",
    "row_from_bounds",
    "simulation_record",
]

Bounds = tuple[float, float]
COST = "cost"
GOOD = ("exact", "closed_form", "estimated", "simulated", "absorbed")
"""Statuses of rows that are as exact as was asked."""


@dataclass(frozen=True)
class Difference:
    """Cost of a policy less that of the policy of least cost.

    Attributes
    ----------
    value, lower, upper : float
        Cost/time, and its 95 % confidence interval.
    kind : {"paired", "independent", "closed_form", "best"}
        From common random numbers, from independent ones, from a cost in closed form, or of the
        policy of least cost itself.
    """

    value: float
    lower: float
    upper: float
    kind: str


@dataclass(frozen=True, eq=False)
class Row:
    """One policy of a comparison.

    Attributes
    ----------
    name : str
    cost, lower, upper : float
        Cost/time. Certified bounds where ``status`` is "exact"; relative error 1e-12 where it is
        "closed_form"; where it is "estimated" they hold an estimate of the error of the cut; where
        it is "simulated" they are a 95 % confidence interval.
    status : str
        "exact", "closed_form", "estimated", "simulated", "absorbed" (simulated until nothing
        happened any more), or why it is not as exact as asked.
    measures : mapping of name to (lower, upper)
        As the bounds of the cost.
    states : int
        Of the box on which it was evaluated, 0 for a closed form and a simulation.
    indices : list of lists or None
    notes : tuple of str
    rule : function or None
        It is lost when the row is pickled, if it cannot be.
    heuristic : str or None
        The system's own name of the policy.
    difference : Difference or None
        From the policy of least cost, where policies were simulated.
    simulation : SimulationResult or None
    family : str or None
        Name of the family of policies whose best member it is.
    parameter : mapping of name to float, or None
        Of the best member; empty for a family of one.
    members : int or None
        Number of members of the family.
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
    heuristic: str | None = None
    difference: Difference | None = None
    simulation: SimulationResult | None = None
    family: str | None = None
    parameter: Mapping[str, float] | None = None
    members: int | None = None

    def __getstate__(self) -> dict[str, Any]:
        state = dict(vars(self))
        try:
            pickle.dumps(self.rule)
        except (pickle.PicklingError, AttributeError, TypeError):
            state["rule"] = None
        return state


def choose_policies(system: Any, policies: Any) -> dict[str, Any]:
    """Name to what is to be evaluated: the system's own name of a policy, a rule, or a Policy.

    For the best member of a family, it is the `Family`.
    """
    known = list(getattr(system, "policy_names", ()))
    if policies is None:
        return {name: name for name in known} | best_members(system)
    families = families_of(system)
    if isinstance(policies, str):
        policies = [policies]
    named = policies if isinstance(policies, Mapping) else {name: name for name in policies}
    for name, value in named.items():
        if not isinstance(name, str):
            raise InputError(f"{name!r} is no name of a policy; give rules as {{name: rule}}")
        if isinstance(value, str) and value not in known and value not in families:
            there = [*known, *families]
            near = did_you_mean(value, there) or f"; there are {', '.join(there) or 'none'}"
            raise InputError(f"policy {value!r} is unknown{near}")
    return {
        name: families.get(value, value) if isinstance(value, str) else value
        for name, value in named.items()
    }


def heuristic_of(system: Any, name: str, what: Any, ties: str) -> Heuristic:
    """The system's own policy of a name, or a rule of the user's as one."""
    found: Heuristic = (
        system.heuristic(what, ties) if isinstance(what, str) else Heuristic(name, rule=what)
    )
    return found


def closed_form_row(system: Any, heuristic: Heuristic) -> Row:
    """Row of a cost that is known in closed form."""
    values = {COST: float(heuristic.cost or 0.0), **heuristic.measures}
    width = {name: heuristic.error * abs(v) for name, v in values.items()}
    bounds = {name: (v - width[name], v + width[name]) for name, v in values.items()}
    return row_from_bounds(system, heuristic, bounds, values[COST], "closed_form", 0)


def row_from_bounds(
    system: Any,
    heuristic: Heuristic,
    bounds: Mapping[str, Bounds],
    cost: float,
    status: str,
    states: int,
) -> Row:
    """Row from bounds of the cost and of the model's measures; the system derives others."""
    measures = {name: pair for name, pair in bounds.items() if name != COST}
    if hasattr(system, "derived"):
        measures |= system.derived(bounds[COST], measures)
    return Row(
        heuristic.name,
        cost,
        *bounds[COST],
        status,
        measures,
        states,
        heuristic.indices,
        tuple(heuristic.notes),
        heuristic.rule if callable(heuristic.rule) else None,
    )


def family_record(row: Row) -> dict[str, Any]:
    """What the JSON of a row says of the family whose best member it is; null for other rows."""
    return {"family": row.family, "parameter": row.parameter, "members": row.members}


def simulation_record(row: Row) -> dict[str, Any]:
    """What the JSON of a row says of its simulation; nothing where policies were not simulated."""
    found: dict[str, Any] = {}
    if row.difference is not None:
        found["difference"] = asdict(row.difference)
    if row.simulation is None:
        return found
    run = row.simulation
    return {
        **found,
        "simulation": {
            "status": run.status,
            "replications": run.replications,
            "events": run.events,
            "time": run.time,
            "warm_up": run.warm_up,
            "segment": run.segment,
            "elapsed": run.elapsed,
            "estimates": {
                name: asdict(estimate)
                for name, estimate in {COST: run.gain, **run.measures}.items()
            },
            "absorption": {name: asdict(one) for name, one in run.absorption.items()},
        },
    }
