"""What the commands do, between the scenario and the screen."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import mdpcloud as mc
from mdpcloud.cli import simulations, solutions, tables
from mdpcloud.cli.border import say
from mdpcloud.cli.progress import progress_bar
from mdpcloud.plugins import did_you_mean
from mdpcloud.policies.family import best_members
from mdpcloud.scenario import Scenario, read_scenario
from mdpcloud.systems.registry import find_system, policy_names, summary_of, system_names

__all__ = [
    "announce_compilation",
    "check_place",
    "compare",
    "evaluate",
    "labelled",
    "mistakes_of",
    "new",
    "scenario_of",
    "solve",
    "systems",
    "wanted",
    "write",
]

STUDY = "study"
STEPS = "steps"  # iterations, or events where it is simulated


def scenario_of(file: Path, tolerance: float | None, threads: int | None) -> Scenario:
    """Scenario of a file, with the flags that were given; they override the file and are echoed."""
    scenario = read_scenario(file)
    given = {"tolerance": tolerance, "threads": threads}
    flags: dict[str, Any] = {name: value for name, value in given.items() if value is not None}
    try:
        settings = dataclasses.replace(scenario.solve, **flags)
    except mc.InputError as error:
        raise mc.InputError(f"--{str(error).partition(': ')[2]}") from None
    for name, value in flags.items():
        say(f"--{name} {value:g} (the file has {getattr(scenario.solve, name):g})")
    return dataclasses.replace(scenario, solve=settings)


def compare(scenario: Scenario, json_file: Path | None, folder: Path | None) -> None:
    """Compare, print, write; a comparison that did not converge is printed and written as well."""
    check_place("--json", json_file)
    if folder is not None:
        folder.mkdir(parents=True, exist_ok=True)
    comparison, failure = _compared(scenario)
    record = comparison.to_dict()
    if record["optimum"] is None:
        simulations.print_simulated(record, measures=False)
    else:
        tables.print_comparison(record)
    write(record, json_file)
    if folder is not None:
        for picture in comparison.plot(folder):
            say(f"picture: {picture}")
    if failure is not None:
        raise failure


def _compared(scenario: Scenario) -> tuple[Any, mc.SolveError | None]:
    """The comparison, and why it is not finished if it is not."""
    with mistakes_of(scenario):
        settings = scenario.solve.for_compare()
        announce_compilation()
        with progress_bar(scenario.solve.tolerance, what=STEPS) as progress:
            try:
                comparison: Any = mc.compare(
                    scenario.system,
                    scenario.compare.policies,
                    ties=scenario.compare.ties,
                    progress=progress,
                    simulate=scenario.simulate,
                    **settings,
                )
            except mc.SolveError as error:
                if not hasattr(error.partial, "to_dict"):
                    raise
                return labelled(error.partial, scenario), error
    return labelled(comparison, scenario), None


@contextmanager
def mistakes_of(scenario: Scenario) -> Iterator[None]:
    """Name the scenario's file before what turns out to be wrong with it only when it is used."""
    try:
        yield
    except mc.InputError as error:
        text = str(error)
        place = "solve." if text.startswith("caps") else ""
        raise mc.InputError(f"scenario {scenario.path}: {place}{text}") from error


def check_place(flag: str, file: Path | None) -> None:
    """Refuse a file in a folder that does not exist, before anything is solved."""
    if file is not None and not file.parent.is_dir():
        raise mc.InputError(f"{flag} {file}: there is no folder {file.parent}")


def write(record: Mapping[str, Any], file: Path | None) -> None:
    """Write results as JSON, where a file was asked for."""
    if file is not None:
        file.write_text(_json(record), encoding="utf-8")
        say(f"results: {file}")


def labelled(comparison: Any, scenario: Scenario) -> Any:
    """Comparison with what only the scenario knows."""
    return dataclasses.replace(
        comparison,
        name=scenario.name,
        time_unit=scenario.time_unit,
        cost_unit=scenario.cost_unit,
        scenario_sha256=scenario.sha256,
        system_name=scenario.system_name,
    )


def evaluate(
    scenario: Scenario,
    names: Sequence[str] | None,
    json_file: Path | None,
    folder: Path | None = None,
) -> None:
    """Evaluate the system under its own policy beside its limit, or policies of the scenario."""
    check_place("--json", json_file)
    if names or not hasattr(scenario.system, "own_policy"):
        if folder is not None:
            raise mc.InputError(
                "--plots: evaluate draws an allocation system under its own policy beside its "
                "large-scale limit; mdpcloud compare --plots draws policies"
            )
        _evaluate_policies(scenario, names, json_file)
        return
    from mdpcloud.cli import measures

    with mistakes_of(scenario):
        announce_compilation()
        record, finite = measures.evaluate(scenario, _heading(scenario))
        write(record, json_file)
        if folder is not None:
            measures.draw(scenario, finite, folder)


def _evaluate_policies(
    scenario: Scenario, names: Sequence[str] | None, json_file: Path | None
) -> None:
    policies = wanted(scenario, names)
    with mistakes_of(scenario):
        settings = scenario.solve.for_compare()
        settings.pop("solver", None)
        announce_compilation()

        from mdpcloud.compare import evaluate_policies
        from mdpcloud.compare.row import GOOD

        failure: mc.SolveError | None = None
        with progress_bar(scenario.solve.tolerance, what=STEPS) as progress:
            try:
                rows = evaluate_policies(
                    scenario.system,
                    policies,
                    ties=scenario.compare.ties,
                    progress=progress,
                    simulate=scenario.simulate,
                    **settings,
                )
            except mc.SolveError as error:
                if not isinstance(error.partial, list):
                    raise
                rows, failure = error.partial, error
    record = {**_heading(scenario), "policies": [_row(row) for row in rows]}
    tables.print_evaluations(record)
    write(record, json_file)
    if failure is not None:
        raise failure
    unfinished = [row.name for row in rows if row.status not in GOOD]
    if unfinished:
        raise mc.SolveError(f"the cost of {', '.join(unfinished)} did not converge")


def _row(row: Any) -> dict[str, Any]:
    names = ("name", "cost", "lower", "upper", "status", "states")
    from mdpcloud.compare.row import family_record, simulation_record

    record = {name: getattr(row, name) for name in names}
    record["measures"] = {name: list(bounds) for name, bounds in row.measures.items()}
    record["notes"] = list(row.notes)
    return {**record, **family_record(row), **simulation_record(row)}


def wanted(scenario: Scenario, names: Sequence[str] | None) -> Mapping[str, Any]:
    """Policies by name, as the file spells it or as results have it; all of them by default."""
    known: Mapping[str, Any] = scenario.compare.policies or {
        name: name
        for name in (*policy_names(type(scenario.system)), *best_members(scenario.system))
    }
    if not known:
        raise mc.InputError(
            f"scenario {scenario.path} has no policies, and its system knows none; name a rule of "
            'your own, such as policies = ["my_rules.py:my_rule"], in [compare]'
        )
    labels = [scenario.compare.spellings.get(name, name) for name in names or known]
    for label in labels:
        if label not in known:
            near = did_you_mean(label, known) or f"; there are {', '.join(known)}"
            raise mc.InputError(f"--policy: the scenario has no policy {label!r}{near}")
    return {label: known[label] for label in labels}


def _heading(scenario: Scenario) -> dict[str, Any]:
    return {
        "format": 1,
        "system": scenario.system_name,
        "name": scenario.name,
        "parameters": scenario.parameters,
        "units": {"time": scenario.time_unit, "cost": scenario.cost_unit},
    }


def solve(scenario: Scenario, save: Path | None, json_file: Path | None) -> None:
    """Solve, print and write the optimum, save the solution; a partial one as well."""
    check_place("--save", save)
    check_place("--json", json_file)
    announce_compilation()
    solution, error = _solved(scenario)
    if solution is not None:
        solutions.print_solution(scenario, solution)
        write({**_heading(scenario), **solutions.record_of(scenario, solution)}, json_file)
        if save is not None:
            solution.save(save)
            say(f"solution: {save}")
    if error is not None:
        raise error


def _solved(scenario: Scenario) -> tuple[Any, mc.SolveError | None]:
    """The solution, or the partial one with the error that carries it."""
    with mistakes_of(scenario):
        model = scenario.system.model(caps=scenario.solve.caps)
        with progress_bar(scenario.solve.tolerance) as progress:
            try:
                return mc.solve(model, progress=progress, **scenario.solve.for_solve()), None
            except mc.SolveError as error:
                partial = error.partial if hasattr(error.partial, "save") else None
                return partial, error


def systems() -> str:
    """Name and summary of each system, one a line."""
    lines = {}
    for name in system_names():
        try:
            lines[name] = summary_of(find_system(name))
        except mc.InputError as error:
            lines[name] = f"(not usable: {error})"
    width = max(map(len, lines), default=0)
    return "".join(f"{name:{width}}  {text}\n" for name, text in lines.items())


def _json(record: Mapping[str, Any]) -> str:
    return json.dumps(record, indent=2, allow_nan=False, default=_plain) + "\n"


def _plain(value: Any) -> Any:
    """Arrays and scalars of numpy as lists and numbers."""
    return value.tolist()


def announce_compilation() -> None:
    """Say that the first run takes longer, if this is the first."""
    from mdpcloud.engine.jit import kernels_are_cached

    if not kernels_are_cached():
        say(
            "first run: numba compiles the kernels, ten to twenty seconds; later runs use its cache"
        )


def new(what: str) -> str:
    """Text of a file to start from: a scenario for a system, or a study."""
    if what == STUDY:
        from mdpcloud.study.template import new_study

        return new_study()
    from mdpcloud.scenario import new_scenario

    return new_scenario(what)
