"""The optimum alone, within limits or without: on standard output, and as a record for JSON."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import typer

from mdpcloud.cli.tables import ends, print_table, status_of
from mdpcloud.model.limit import limit_of
from mdpcloud.numbers import interval, with_error
from mdpcloud.scenario import Scenario

__all__ = ["print_solution", "record_of"]

SHOWN = 8  # randomised states that are printed; the record has all of them


def print_solution(scenario: Scenario, solution: Any) -> None:
    """Print the optimum, its bounds, and how it was found."""
    typer.echo(f"{scenario.name} ({scenario.system_name})")
    typer.echo(f"least {_what(scenario)}: {interval(*ends(solution.bounds))}")
    if scenario.solve.constraints:
        _print_constraints(scenario.solve.constraints, solution)
        _print_randomised(solution.randomised)
        if (caps := _caps(scenario)) is not None:
            typer.echo(f"best of the policies that stay within the caps {_listed(caps)}")
    typer.echo(status_of(solution))
    reason = f" ({solution.reason})" if getattr(solution, "reason", "") else ""
    typer.echo(
        f"{solution.solver}{reason}: {solution.iterations} iterations, {solution.elapsed:.2f} s"
    )


def _what(scenario: Scenario) -> str:
    within = " within the constraints" if scenario.solve.constraints else ""
    if scenario.solve.criterion == "average_cost":
        return f"cost{within}, {scenario.cost_unit} per {scenario.time_unit}"
    return f"discounted cost over all initial states, {scenario.cost_unit}"


def _caps(scenario: Scenario) -> Any:
    """The box that was solved, of a system that has a larger or an infinite one.

    A box that loses nothing without constraints may lose something with them.
    """
    exact = getattr(scenario.system, "exact_caps", None)
    return scenario.solve.caps or (None if exact is None else exact())


def _listed(caps: Any) -> str:
    return ", ".join(map(str, caps))


def _print_constraints(constraints: Mapping[str, Any], solution: Any) -> None:
    lines = [("constraint", "limit", "average", "bounds", "multiplier")]
    for name, value in constraints.items():
        shown = ("-", "")
        if name in solution.measures:
            lower, upper = solution.measures[name]
            shown = with_error(0.5 * (lower + upper), lower, upper)
        lines.append((name, _limit(value), *shown, f"{solution.multipliers[name]:.6g}"))
    typer.echo()
    print_table(lines, right={"average", "multiplier"})
    typer.echo()


def _limit(value: Any) -> str:
    limit = limit_of(value, "limit")
    ends = ((">=", limit.at_least), ("<=", limit.at_most))
    return ", ".join(f"{sign} {end:g}" for sign, end in ends if end is not None)


def _print_randomised(states: Any) -> None:
    typer.echo(f"randomised in {len(states)} {'state' if len(states) == 1 else 'states'}")
    for one in states[:SHOWN]:
        shares = ", ".join(f"{action} {p:.6g}" for action, p in one.probabilities.items())
        typer.echo(f"  {one.decision} in {one.label}: {shares}")
    if len(states) > SHOWN:
        typer.echo(f"  and {len(states) - SHOWN} more")


def record_of(scenario: Scenario, solution: Any) -> dict[str, Any]:
    """What the JSON of a solution holds beside its heading."""
    lower, upper = ends(solution.bounds)
    record: dict[str, Any] = {
        "optimum": {"lower": lower, "upper": upper},
        "status": getattr(solution.status, "name", str(solution.status)).lower(),
        "solver": solution.solver,
        "reason": getattr(solution, "reason", ""),
        "iterations": solution.iterations,
        "elapsed": solution.elapsed,
    }
    if scenario.solve.constraints:
        caps = _caps(scenario)
        record["caps"] = None if caps is None else list(caps)
        record["constraints"] = dict(_constraints(scenario, solution))
        record["randomised"] = [
            {
                "decision": one.decision,
                "state": one.state,
                "label": one.label,
                "probabilities": dict(one.probabilities),
            }
            for one in solution.randomised
        ]
    return record


def _constraints(scenario: Scenario, solution: Any) -> Iterator[tuple[str, dict[str, Any]]]:
    for name, value in (scenario.solve.constraints or {}).items():
        limit = limit_of(value, "limit")
        yield (
            name,
            {
                "at_most": limit.at_most,
                "at_least": limit.at_least,
                "bounds": list(solution.measures[name]) if name in solution.measures else None,
                "slack": solution.slack[name],
                "multiplier": solution.multipliers[name],
            },
        )
