"""What a study does with each instance: a task turns a scenario into rows of a table.

A task is a function of a `Scenario` that returns a mapping with ``"rows"``, a list of flat mappings
from column to a number, a text or None (``"measures"``, where there is one, maps a name to its
bounds), and anything else that JSON can hold. It raises `SolveError` where it did not converge;
where that carries rows (``partial``), they are stored too. `TASKS` names those of this package,
and `COLUMNS` what their rows hold; a study file may name one of the user's own,
``my_tasks.py:my_task``.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

import mdpcloud as mc
from mdpcloud.errors import InputError, SolveError
from mdpcloud.numbers import enclosing
from mdpcloud.plugins import did_you_mean, is_reference, load
from mdpcloud.study.index_tasks import CURVES, PROPERTIES, index_curves, index_properties
from mdpcloud.study.records.own import identity_of

if TYPE_CHECKING:
    from mdpcloud.scenario import Scenario

__all__ = ["COLUMNS", "TASKS", "Task", "compare", "evaluate", "find_task"]

Result: TypeAlias = Mapping[str, Any]
ENDS = ("lower", "upper")
COST = ("cost", *ENDS)


def _with_ends(name: str) -> tuple[str, ...]:
    """Names of a number and of its bounds."""
    return (name, *(f"{name}_{end}" for end in ENDS))


GAPS = tuple(
    column for name in ("gap", "absolute_gap", "profit_gap") for column in _with_ends(name)
)


@dataclass(frozen=True)
class Task:
    """A task and its name.

    Attributes
    ----------
    name : str
        As a study file spells it; of a function of Python, as a rule's (``module:name``).
    run : function of a Scenario
    columns : mapping of str to type
        Columns that its rows may have, and what stands there; empty where that is not known.
    """

    name: str
    run: Callable[[Scenario], Result]
    columns: Mapping[str, type] = field(default_factory=dict)


def find_task(task: str | Callable[[Scenario], Result], folder: Path) -> Task:
    """The task of a name, of a reference to a function relative to a folder, or of a function.

    Raises
    ------
    InputError
        If there is no such task.
    """
    if not isinstance(task, str):
        return _own(task)
    if is_reference(task):
        found = load(task, folder)
        if not callable(found):
            raise InputError(f"task {task!r} must be a function of a scenario; it is {found!r}")
        return Task(task, found)
    if task not in TASKS:
        near = did_you_mean(task, TASKS) or f"; there are {', '.join(TASKS)}"
        raise InputError(f"there is no task {task!r}{near}")
    return Task(task, TASKS[task], COLUMNS[task])


def _own(task: Any) -> Task:
    """The task that a function is."""
    for name, run in TASKS.items():
        if task is run:
            return Task(name, run, COLUMNS[name])
    if not callable(task):
        raise InputError(
            f"task must be a name ({', '.join(TASKS)}, 'my_tasks.py:my_task') or a function of a "
            f"scenario, not {task!r}"
        )
    try:
        name = identity_of(task)
    except InputError as error:
        raise InputError(f"task: {error}") from None
    return Task(name if is_reference(name) else f"mdpcloud:{name}", task)


def compare(scenario: Scenario) -> Result:
    """Policies beside the optimum: a row per policy, and one of the optimum itself.

    Raises
    ------
    SolveError
        When something did not converge; ``partial`` is the result so far.
    """
    arguments = {
        "ties": scenario.compare.ties,
        "simulate": scenario.simulate,
        **scenario.solve.for_compare(),
    }
    try:
        found: Any = mc.compare(scenario.system, scenario.compare.policies, **arguments)
    except SolveError as error:
        if not hasattr(error.partial, "to_dict"):
            raise
        raise SolveError(str(error), _compared(error.partial)) from error
    return _compared(found)


def _compared(comparison: Any) -> Result:
    """Rows that all tell of the optimum, so that each can be read by itself."""
    record = comparison.to_dict()
    best, kind = record["optimum"], record["truncation"]["kind"]
    about = {"truncation": kind}
    if best:
        about |= {"optimum": best["cost"]} | {f"optimum_{end}": best[end] for end in ENDS}
    earned = getattr(comparison.system, "profit_rate", None)
    rows = [_row(row, best, earned, about) for row in record["policies"]]
    if best:
        first = {"policy": "optimum", **{name: best[name] for name in COST}, **dict.fromkeys(GAPS)}
        rows.insert(0, {**first, **about, "states": record["states"], "status": best["status"]})
    return {"rows": rows, "truncation": record["truncation"], "notes": record["notes"]}


def _row(
    row: Mapping[str, Any], best: Any, earned: float | None, about: Mapping[str, Any]
) -> dict[str, Any]:
    """A policy's row without what only its own comparison needs; with bounds of every gap."""
    difference = row.get("difference") or {}
    names = {"value": "difference"} | {end: f"difference_{end}" for end in ENDS}
    more = {name: row[name] for name in ("parameter", "notes", "measures") if row[name]}
    return {
        "policy": row["name"],
        **{name: row[name] for name in COST},
        **_gaps(row, best, earned),
        **{column: difference[name] for name, column in names.items() if difference},
        **about,
        "states": row["states"],
        **more,
        "status": row["status"],
    }


def _gaps(row: Mapping[str, Any], best: Any, earned: float | None) -> dict[str, float | None]:
    gaps = {name: row.get(name) for name in GAPS}
    for name in ("absolute_gap", "profit_gap"):
        pair = _ends(name, row, best, earned)
        gaps |= {f"{name}_{end}": value for end, value in zip(ENDS, pair, strict=True)}
    return gaps


def _ends(
    name: str, row: Mapping[str, Any], best: Any, earned: float | None
) -> tuple[float | None, float | None]:
    """Bounds of the absolute gap, cost - optimum, or of its part of the optimal profit.

    The latter is monotone in the cost, and in the optimum for any cost: it is extreme at ends of
    their bounds.
    """
    if best is None or None in (row[name], row["lower"], row["upper"]):
        return None, None
    if not math.isfinite(best["upper"] - best["lower"]):
        return None, None
    part = name == "profit_gap"
    if part and (earned is None or earned <= best["upper"]):
        return None, None
    corners = [
        (cost - optimum) / (Fraction(earned or 0.0) - optimum if part else 1)
        for cost in map(Fraction, (row["lower"], row["upper"]))
        for optimum in map(Fraction, (best["lower"], best["upper"]))
    ]
    return enclosing(min(corners), -math.inf), enclosing(max(corners), math.inf)


def evaluate(scenario: Scenario) -> Result:
    """Policies alone, without the optimum: a row per policy.

    Raises
    ------
    SolveError
        When something did not converge; ``partial`` is the result so far.
    """
    from mdpcloud.compare import evaluate_policies
    from mdpcloud.compare.row import GOOD

    settings = scenario.solve.for_compare()
    settings.pop("solver", None)
    arguments = {"ties": scenario.compare.ties, "simulate": scenario.simulate, **settings}
    try:
        rows = evaluate_policies(scenario.system, scenario.compare.policies, **arguments)
    except SolveError as error:
        rows = error.partial if isinstance(error.partial, list) else []
        raise SolveError(str(error), _evaluated(rows)) from error
    unfinished = [row.name for row in rows if row.status not in GOOD]
    if unfinished:
        reason = f"the cost of {', '.join(unfinished)} did not converge"
        raise SolveError(reason, _evaluated(rows))
    return _evaluated(rows)


def _evaluated(rows: list[Any]) -> Result:
    return {
        "rows": [
            {
                "policy": row.name,
                **{name: getattr(row, name) for name in (*COST, "status")},
                "states": row.states,
                "measures": {name: list(bounds) for name, bounds in row.measures.items()},
                "notes": list(row.notes),
            }
            for row in rows
        ]
    }


TASKS: Mapping[str, Callable[[Scenario], Result]] = {
    "compare": compare,
    "evaluate": evaluate,
    "index_properties": index_properties,
    "index_curves": index_curves,
}

_POLICY: Mapping[str, type] = {"policy": str, **dict.fromkeys(COST, float)}
_TOLD: Mapping[str, type] = {"states": int, "notes": str, "status": str}
COLUMNS: Mapping[str, Mapping[str, type]] = {
    "compare": {
        **_POLICY,
        **dict.fromkeys(GAPS, float),
        **dict.fromkeys(_with_ends("difference"), float),
        "truncation": str,
        **dict.fromkeys(_with_ends("optimum"), float),
        "parameter": str,
        **_TOLD,
    },
    "evaluate": {**_POLICY, **_TOLD},
    "index_properties": PROPERTIES,
    "index_curves": CURVES,
}
