"""`mdpcloud evaluate` of an allocation system: the finite system beside its large-scale limit."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

import typer

from mdpcloud.asymptotics.measures import finite_measures, limit_measures
from mdpcloud.cli import tables
from mdpcloud.cli.border import say
from mdpcloud.cli.progress import progress_bar
from mdpcloud.numbers import with_error
from mdpcloud.scenario import Scenario
from mdpcloud.systems.measures import KINDS, PER_UNIT, Measures, classes

__all__ = ["draw", "evaluate"]


def evaluate(scenario: Scenario, heading: Mapping[str, Any]) -> tuple[dict[str, Any], Measures]:
    """Evaluate the system under its own policy, print it beside the limit; the JSON record."""
    with progress_bar(scenario.solve.tolerance, what="steps") as progress:
        finite, how = finite_measures(
            scenario.system,
            tolerance=min(scenario.solve.tolerance, 1e-9),
            threads=scenario.solve.threads,
            time_limit=scenario.solve.time_limit,
            progress=progress,
            simulate=scenario.simulate,
        )
    limit, notes = limit_measures(scenario.system)
    found = {"exact": None, "simulated": None, "limit": _plain(limit, "unit of the scale")}
    found[how] = _plain(finite, "finite system")
    record = {
        **heading,
        "policy": type(scenario.system).own_policy,
        "scale": getattr(scenario.system, "scale", 1.0),
        "regime": None if limit is None else limit.regime,
        "measures": found,
        "policies": [],
        "notes": list(dict.fromkeys((*finite.notes, *notes))),
    }
    _print(record, finite, how, limit)
    return record, finite


def draw(scenario: Scenario, finite: Measures, folder: Path) -> None:
    """Draw the system beside its limit into a folder; why a picture is missing is told."""
    from mdpcloud.asymptotics import pictures
    from mdpcloud.asymptotics.evaluation import Effort

    effort = Effort(scenario.solve.tolerance, scenario.solve.threads, scenario.simulate)
    paths, notes = pictures.draw(scenario.system, finite, scenario.name, folder, effort)
    for path in paths:
        say(f"picture: {path}")
    for note in notes:
        say(f"note: {note}")


def _plain(measures: Measures | None, per: str) -> dict[str, Any] | None:
    """Measures as JSON, and what mean jobs and cost are of; notes are told once for all."""
    if measures is None:
        return None
    record = asdict(measures)
    del record["notes"]
    return {**record, "per": per}


def _print(record: Mapping[str, Any], finite: Measures, how: str, limit: Measures | None) -> None:
    scale = record["scale"]
    tables.print_heading(record)
    words = [f"policy {record['policy']}", f"scale {scale:g}"]
    words += [f"regime {record['regime']}"] if record["regime"] else []
    typer.echo(", ".join(words))
    typer.echo(f"costs in {tables.unit(record)}; mean jobs and cost are per unit of the scale\n")
    error = "bounds" if how == "exact" else "95 %"
    trust = "bounds" if limit is None or limit.certified else "estimated error"
    lines = [("measure", how, error, "limit", trust)]
    for name, place in dict.fromkeys((*_places(finite), *_places(limit or finite))):
        cells = (*_cell(finite, name, place, scale), *_cell(limit, name, place))
        lines.append((f"{name}{place}", *cells))
    tables.print_table(lines, right={how, "limit"})
    tables.print_notes(record)


def _places(measures: Measures) -> Iterator[tuple[str, str]]:
    """Names of the measures and of the classes, as the table has them."""
    for name in KINDS:
        yield from ((name, place) for place, _ in classes(getattr(measures, name)))
    yield "cost", ""


def _cell(measures: Measures | None, name: str, place: str, scale: float = 1.0) -> tuple[str, str]:
    """A measure and its error as text; empty where it is not known."""
    found = None if measures is None else getattr(measures, name)
    value = dict(classes(found)).get(place) if place else found
    if measures is None or value is None:
        return "", ""
    per = scale if name in PER_UNIT else 1.0
    if name not in measures.errors:
        return f"{value / per:.6g}", "not told"
    error = measures.errors[name] / per
    return with_error(value / per, value / per - error, value / per + error)
