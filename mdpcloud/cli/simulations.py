"""Simulated policies: their costs, and their differences from the least one, on standard output."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import typer

from mdpcloud.cli.tables import (
    cost_of,
    of_scale,
    print_heading,
    print_measures,
    print_notes,
    print_table,
    status_in_words,
    unit,
)
from mdpcloud.numbers import with_half_width

__all__ = ["print_simulated"]


def print_simulated(record: Mapping[str, Any], *, measures: bool) -> None:
    """Print policies that were simulated, given as the record that is also their JSON.

    Parameters
    ----------
    record : mapping
        `mdpcloud.compare.Comparison.to_dict` of a comparison without an optimum.
    measures : bool
        Whether the measures of each policy are printed, too.
    """
    print_heading(record)
    for line in _lengths(record):
        typer.echo(line)
    typer.echo(f"costs in {unit(record)}{of_scale(record)}\n")
    lines = [("policy", "cost", "95 %", "above the best", "95 %", "events", "warm-up", "status")]
    for row in record["policies"]:
        run = row.get("simulation")
        work = (f"{run['events']}", f"{run['warm_up']:.4g}") if run else ("", "")
        lines.append((row["name"], *cost_of(row), *_above(row), *work, status_in_words(row)))
    print_table(lines, right={"cost", "above the best", "events", "warm-up"})
    if record.get("fluid_bound") is not None:
        typer.echo(f"fluid bound {record['fluid_bound']:.10g}: no policy costs less")
    if measures:
        typer.echo()
        print_measures(record)
    print_notes(record)


def _lengths(record: Mapping[str, Any]) -> Iterator[str]:
    """What was simulated, once for all policies if it is the same for all."""
    runs = [row["simulation"] for row in record["policies"] if "simulation" in row]
    same = dict.fromkeys((run["replications"], run["time"]) for run in runs)
    for replications, time in same:
        yield (
            f"{replications} replications of {time:.6g} {record['units']['time']}s, "
            f"seed {record['simulate']['seed']}"
        )


def _above(row: Mapping[str, Any]) -> tuple[str, str]:
    """Cells of the difference from the policy of least cost."""
    found = row["difference"]
    if found["kind"] == "best":
        return "best", ""
    if None in found.values():
        return "-", "unknown"
    return with_half_width(found["value"], found["lower"], found["upper"], sign="+")
