"""Results as tables on standard output."""

from __future__ import annotations

import math
import re
import shutil
import textwrap
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice, zip_longest
from typing import Any

import numpy as np
import typer

from mdpcloud.numbers import percent, with_error, with_half_width
from mdpcloud.policies.family import in_words

__all__ = [
    "cost_of",
    "ends",
    "of_scale",
    "print_comparison",
    "print_evaluations",
    "print_heading",
    "print_measures",
    "print_notes",
    "print_table",
    "status_in_words",
    "status_of",
    "unit",
]

_TRUNCATION = {
    "exact": ", the optimum never leaves this box",
    "restricted": ", caps set by hand: the optimum is an upper bound",
    "bracketed": ", the bounds hold for the unbounded system",
    "estimated": ", the error of the cut is an estimate",
}
_STATUS = {
    "time": "time limit",
    "iterations": "iteration limit",
    "half_width": "interval too wide",
}
_NODE = re.compile(r"(nodes\[\d+\]): (.*)", re.DOTALL)  # a note on a node
WIDEST = 100  # characters of a line of a note
MOST_MEASURES = 60  # of a policy, that are all printed
MOST_NOTES = 20
WIDEST_NAME = 44  # characters of the name of a policy and of its parameter, in one line


def print_comparison(record: Mapping[str, Any]) -> None:
    """Print a comparison, given as the record that is also its JSON."""
    optimum = record["optimum"]
    lines: list[tuple[str, ...]] = [("policy", "cost", "bounds", "gap", "profit gap", "status")]
    lines += [("optimum", *cost_of(optimum), "", "", status_in_words(optimum))]
    for row in record["policies"]:
        gaps = (_gap(row), _profit_gap(row, optimum))
        name, *more = _name_of(row)
        lines.append((name, *cost_of(row), *gaps, status_in_words(row)))
        lines += [(line, *[""] * 5) for line in more]
    if record.get("fluid_bound") is not None:
        lines.append(("fluid bound", f"{record['fluid_bound']:.10g}", "", "", "", "lower bound"))
    print_heading(record)
    typer.echo(f"{record['states']} states{_cut(record)}")
    typer.echo(f"costs in {unit(record)}{of_scale(record)}\n")
    print_table(lines, right={"cost", "gap", "profit gap"}, bold=1)
    print_notes(record)


def print_evaluations(record: Mapping[str, Any]) -> None:
    """Print the cost and the measures of each policy, with their bounds."""
    print_heading(record)
    typer.echo(f"costs in {unit(record)}{of_scale(record)}\n")
    print_measures(record)
    print_notes(record)


def print_measures(record: Mapping[str, Any]) -> None:
    """Print a table of the cost and the measures of each policy."""
    simulated = any("simulation" in row for row in record["policies"])
    lines = [("policy", "measure", "value", "95 %" if simulated else "bounds")]
    hidden = 0
    for row in record["policies"]:
        shown = _shown(row["measures"])
        hidden += len(row["measures"]) - len(shown)
        cells = [("cost", *cost_of(row))]
        cells += [(name, *_cells(row, None, *bounds)) for name, bounds in shown.items()]
        for name, rest in zip_longest(_name_of(row), cells):
            lines.append((name or "", *(rest or ("", "", ""))))
    print_table(lines, right={"value"})
    if hidden:
        typer.echo(f"and {hidden} measures of single nodes and the like, which --json writes")


def _shown(measures: Mapping[str, Any]) -> Mapping[str, Any]:
    """Measures that are printed: where there are very many, those of the whole system."""
    if len(measures) <= MOST_MEASURES:
        return measures
    return {name: bounds for name, bounds in measures.items() if "[" not in name}


def cost_of(row: Mapping[str, Any]) -> tuple[str, str]:
    """Cells of a row's cost and of its bounds or interval."""
    return _cells(row, row["cost"], row["lower"], row["upper"])


def _cells(
    row: Mapping[str, Any], value: float | None, lower: float | None, upper: float | None
) -> tuple[str, str]:
    """A value (by default the middle) with its bounds, or with its interval if simulated.

    None is an infinite bound.
    """
    low = -math.inf if lower is None else lower
    high = math.inf if upper is None else upper
    if value is None:
        if math.isinf(high - low):
            return "-", "unknown"
        value = 0.5 * (low + high)
    return (with_half_width if "simulation" in row else with_error)(value, low, high)


def ends(bounds: tuple[Any, Any]) -> tuple[float, float]:
    """Least lower and largest upper bound, where there is one of each for every state."""
    lower, upper = bounds
    return float(np.min(lower)), float(np.max(upper))


def status_of(result: Any) -> str:
    """How a solution or evaluation ended, in words."""
    return str(getattr(result.status, "value", result.status))


def print_heading(record: Mapping[str, Any]) -> None:
    """Print the names of the scenario and of the system."""
    typer.echo(f"{record['name']} ({record['system']})")


def unit(record: Mapping[str, Any]) -> str:
    """Unit of costs."""
    return f"{record['units']['cost']} per {record['units']['time']}"


def of_scale(record: Mapping[str, Any]) -> str:
    """What costs are of, where a system has a scale."""
    scale = record.get("parameters", {}).get("scale", 1.0)
    return "" if scale == 1.0 else f", of the whole system of scale {scale:g}"


def _cut(record: Mapping[str, Any]) -> str:
    """How the states were chosen, where the system has more of them than were solved."""
    kind = record["truncation"]["kind"]
    finite = kind == "exact" and record["caps"] is None
    return "" if finite else _TRUNCATION.get(kind, f", {kind}")


def print_table(
    lines: Sequence[Sequence[str]], right: Iterable[str], bold: int | None = None
) -> None:
    """Print lines of cells below a heading, without blanks at their ends."""
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    to_right = [heading in right for heading in lines[0]]
    for number, line in enumerate(lines):
        cells = [
            cell.rjust(width) if at_right else cell.ljust(width)
            for cell, width, at_right in zip(line, widths, to_right, strict=True)
        ]
        typer.secho("  ".join(cells).rstrip(), bold=number == bold)


# --- notes ----------------------------------------------------------------------------------------


def print_notes(record: Mapping[str, Any]) -> None:
    """Print what a reader has to know of the system and of single policies, each once."""
    notes = _of_nodes(record.get("notes", ()))
    known = set(notes)
    for row in record["policies"]:
        for note in row["notes"]:
            if note not in known:
                notes.setdefault(note, []).append(row["name"])
    width = min(shutil.get_terminal_size().columns, WIDEST)
    if notes:
        typer.echo()
    for text, places in islice(notes.items(), MOST_NOTES):
        about = f"{', '.join(dict.fromkeys(places))}: " if places else ""
        for line in _wrapped(f"note: {about}{text}", width):
            typer.echo(line)
    if len(notes) > MOST_NOTES:
        typer.echo(f"and {len(notes) - MOST_NOTES} more notes, which --json writes")


def _of_nodes(notes: Iterable[str]) -> dict[str, list[str]]:
    """Text of each note, to the nodes that it is about."""
    found: dict[str, list[str]] = {}
    for note in notes:
        match = _NODE.fullmatch(note)
        node, text = match.groups() if match else (None, note)
        found.setdefault(text, []).extend([node] if node else [])
    return found


def _wrapped(text: str, width: int) -> Iterator[str]:
    yield from textwrap.wrap(
        text, width, subsequent_indent="  ", break_long_words=False, break_on_hyphens=False
    )


# --- cells ----------------------------------------------------------------------------------------


def status_in_words(row: Mapping[str, Any]) -> str:
    """Status of a row or of the optimum, for people."""
    status = str(row["status"])
    return _STATUS.get(status, status.replace("_", " "))


def _name_of(row: Mapping[str, Any]) -> list[str]:
    """Name of a row, with the parameter of the best member of a family, in one line or two.

    Examples
    --------
    >>> _name_of({"name": "best thresholds", "parameter": {"level": 2.0}})
    ['best thresholds (level 2)']
    """
    parameter = row.get("parameter")
    if not parameter:
        return [row["name"]]
    lines = [row["name"], f"({in_words(parameter)})"]
    fits = len(" ".join(lines)) <= WIDEST_NAME
    return [" ".join(lines)] if fits else [lines[0], f"  {lines[1]}"]


def _gap(row: Mapping[str, Any]) -> str:
    ends = (row["gap_lower"], row["gap_upper"])
    return "-" if row["gap"] is None or None in ends else percent(*ends)


def _profit_gap(row: Mapping[str, Any], optimum: Mapping[str, Any]) -> str:
    """The gap as a part of the optimal profit, from the bounds of both costs."""
    if not row["profit_gap"]:
        return "-" if row["profit_gap"] is None else "0 %"
    earned = row["absolute_gap"] / row["profit_gap"] + optimum["cost"]
    if earned <= optimum["upper"]:
        return "-"
    corners = [
        (cost - best) / (earned - best)
        for cost in (row["lower"], row["upper"])
        for best in (optimum["lower"], optimum["upper"])
    ]
    return percent(min(corners), max(corners))
