"""What a study does with each instance: a task turns a scenario into rows of a table.

A task is a function of a `Scenario` that returns a mapping with ``"rows"``, a list of flat mappings
from column to a number, a text or None (``"measures"``, where there is one, maps a name to its
bounds), and anything else that JSON can hold. It raises `SolveError` where it did not converge;
where that carries rows (``partial``), they are stored too. `TASKS` names those of this package;
a study file may name one of the user's own, ``my_tasks.py:my_task``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

import mdpcloud as mc
from mdpcloud.errors import InputError, SolveError
from mdpcloud.plugins import did_you_mean, is_reference, load
from mdpcloud.study.index_tasks import index_curves, index_properties

if TYPE_CHECKING:
    from mdpcloud.scenario import Scenario

__all__ = ["TASKS", "Task", "compare", "evaluate", "find_task"]

Result: TypeAlias = Mapping[str, Any]
PER_ROW = ("cost", "lower", "upper", "status", "gap", "gap_lower", "gap_upper", "absolute_gap")


@dataclass(frozen=True)
class Task:
    """A task and its name.

    Attributes
    ----------
    name : str
        As a study file spells it.
    run : function of a Scenario
    """

    name: str
    run: Callable[[Scenario], Result]


def find_task(name: str, folder: Path) -> Task:
    """The task of a name, or of a reference to a function relative to a folder.

    Raises
    ------
    InputError
        If there is no such task.
    """
    if is_reference(name):
        found = load(name, folder)
        if not callable(found):
            raise InputError(f"task {name!r} must be a function of a scenario; it is {found!r}")
        return Task(name, found)
    if name not in TASKS:
        near = did_you_mean(name, TASKS) or f"; there are {', '.join(TASKS)}"
        raise InputError(f"there is no task {name!r}{near}")
    return Task(name, TASKS[name])


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
    record = comparison.to_dict()
    optimum = record["optimum"]
    rows = [{"policy": "optimum", **optimum, "states": record["states"]}] if optimum else []
    rows += [_row(row) for row in record["policies"]]
    return {"rows": rows, "truncation": record["truncation"], "notes": record["notes"]}


def _row(row: Mapping[str, Any]) -> dict[str, Any]:
    """A policy's row without what only its own comparison needs."""
    kept = ("profit_gap", "states", "parameter", "notes", "measures")
    difference = row.get("difference") or {}
    more = {"difference": difference["value"]} if difference else {}
    found = {"policy": row["name"], **{name: row[name] for name in (*PER_ROW, *kept)}, **more}
    return {name: value for name, value in found.items() if value not in ((), [], {})}


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
                **{name: getattr(row, name) for name in ("cost", "lower", "upper", "status")},
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
