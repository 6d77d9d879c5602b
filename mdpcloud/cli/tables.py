"""Results as tables on standard output."""

from __future__ import annotations

import decimal
import sys
from collections.abc import Mapping
from typing import Any

import numpy as np
from rich.console import Console
from rich.table import Table

from mdpcloud.scenario import Scenario

__all__ = ["ends", "print_comparison", "print_evaluations", "print_solution", "status_of"]

_TRUNCATION = {
    "exact": "the optimum never leaves this box",
    "restricted": "caps set by hand: the optimum is an upper bound",
    "bracketed": "the bounds hold for the unbounded system",
    "estimated": "the error of the cut is an estimate",
}


def print_comparison(record: Mapping[str, Any]) -> None:
    """Print a comparison, given as the record that is also its JSON."""
    unit = f"{record['units']['cost']} per {record['units']['time']}"
    optimum = record["optimum"]
    kind = record["truncation"]["kind"]
    console = _console()
    console.print(f"{record['name']} ({record['system']})")
    console.print(f"{record['states']} states, {_TRUNCATION.get(kind, kind)}\n")
    table = _table("policy", f"cost, {unit}", "bounds", "gap", "profit gap", "status")
    table.add_row("optimum", *_cost(optimum), "", "", optimum["status"], style="bold")
    for row in record["policies"]:
        gaps = (_percent(row["gap"]), _percent(row["profit_gap"]))
        table.add_row(row["name"], *_cost(row), *gaps, row["status"].replace("_", " "))
    console.print(table)
    _print_notes(console, record)


def print_evaluations(record: Mapping[str, Any]) -> None:
    """Print the cost and the measures of each policy, with their bounds."""
    unit = f"{record['units']['cost']} per {record['units']['time']}"
    table = _table("policy", "measure", "value", "bounds")
    for row in record["policies"]:
        table.add_row(row["name"], f"cost, {unit}", *_cost(row))
        for measure, (lower, upper) in row["measures"].items():
            table.add_row("", measure, _number((lower + upper) / 2), _bounds(lower, upper))
        table.add_section()
    console = _console()
    console.print(f"{record['name']} ({record['system']})")
    console.print(table)
    _print_notes(console, record)


def print_solution(scenario: Scenario, solution: Any) -> None:
    """Print the optimum, its bounds, and how it was found."""
    console = _console()
    console.print(f"{scenario.name} ({scenario.system_name})")
    console.print(f"least {_what(scenario)}: {_bounds(*ends(solution.bounds))}")
    console.print(status_of(solution))
    console.print(f"{solution.solver}: {solution.iterations} iterations, {solution.elapsed:.2f} s")


def ends(bounds: tuple[Any, Any]) -> tuple[float, float]:
    """Least lower and largest upper bound, where there is one of each for every state."""
    lower, upper = bounds
    return float(np.min(lower)), float(np.max(upper))


def status_of(result: Any) -> str:
    """How a solution or evaluation ended, in words."""
    return str(getattr(result.status, "value", result.status))


def _what(scenario: Scenario) -> str:
    if scenario.solve.criterion == "average_cost":
        return f"cost, {scenario.cost_unit} per {scenario.time_unit}"
    return f"discounted cost over all initial states, {scenario.cost_unit}"


def _console() -> Console:
    """Console that takes text as it is; a file or pipe gets lines as long as they need to be."""
    width = None if sys.stdout.isatty() else 140
    return Console(markup=False, highlight=False, width=width)


def _table(*headings: str) -> Table:
    table = Table(box=None, pad_edge=False, padding=(0, 3, 0, 0))
    for heading in headings:
        text = heading in ("policy", "measure", "bounds", "status")
        table.add_column(heading, justify="left" if text else "right", overflow="fold")
    return table


def _print_notes(console: Console, record: Mapping[str, Any]) -> None:
    """Print what a reader has to know of the system and of single policies, each once."""
    about = dict.fromkeys(record.get("notes", ()))
    for row in record["policies"]:
        about |= {f"{row['name']}: {note}": None for note in row["notes"] if note not in about}
    for note in about:
        console.print(f"note: {note}")


def _cost(row: Mapping[str, Any]) -> tuple[str, str]:
    return _number(row["cost"]), _bounds(row["lower"], row["upper"])


def _number(value: float | None) -> str:
    return "-" if value is None else f"{value:.8g}"


def _bounds(lower: float, upper: float) -> str:
    """Bounds rounded outwards, so that what is printed holds as well.

    Examples
    --------
    >>> _bounds(1 / 3, 2 / 3)
    '0.33333333333 to 0.66666666667'
    """
    down = decimal.Context(prec=11, rounding=decimal.ROUND_FLOOR).create_decimal_from_float(lower)
    up = decimal.Context(prec=11, rounding=decimal.ROUND_CEILING).create_decimal_from_float(upper)
    return f"{float(down):.11g} to {float(up):.11g}"


def _percent(part: float | None) -> str:
    return "-" if part is None else f"{100 * part:.4f} %"
