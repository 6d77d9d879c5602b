"""The command ``simulate``: a scenario's policies with common random numbers."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import mdpcloud as mc
from mdpcloud.cli.border import say
from mdpcloud.cli.progress import simulation_bar
from mdpcloud.cli.simulations import print_simulated
from mdpcloud.cli.work import (
    announce_compilation,
    check_place,
    labelled,
    mistakes_of,
    wanted,
    write,
)
from mdpcloud.scenario import Scenario, read_scenario
from mdpcloud.systems.registry import policy_names

__all__ = ["scenario_of", "simulate"]

UNCONTROLLED = "no decisions"


def scenario_of(file: Path, flags: Mapping[str, Any]) -> Scenario:
    """Scenario of a file, with flags that override its table ``[simulate]`` and are echoed."""
    scenario = read_scenario(file)
    given: dict[str, Any] = {name: value for name, value in flags.items() if value is not None}
    instead: dict[str, Any] = {"time": None} if "events" in given else {}
    try:
        settings = dataclasses.replace(scenario.simulate, **given, **instead)
    except mc.InputError as error:
        raise mc.InputError(_as_flag(str(error).partition(": ")[2])) from None
    for name, value in given.items():
        before = getattr(scenario.simulate, name)
        has = "has none" if before is None else f"has {before}"
        say(f"{_flag(name)} {value} (the file {has})")
    return dataclasses.replace(scenario, simulate=settings)


def simulate(
    scenario: Scenario, names: Sequence[str] | None, json_file: Path | None, folder: Path | None
) -> None:
    """Simulate policies of the scenario, print and write them; partial results as well."""
    with mistakes_of(scenario):
        scenario.solve.for_compare()  # simulations know the average cost only
    policies = _policies(scenario, names)
    check_place("--json", json_file)
    if folder is not None:
        folder.mkdir(parents=True, exist_ok=True)
    comparison, failure = _simulated(scenario, policies)
    record = comparison.to_dict()
    print_simulated(record, measures=True)
    write(record, json_file)
    if folder is not None:
        for picture in comparison.plot(folder):
            say(f"picture: {picture}")
    if failure is not None:
        raise failure


def _policies(scenario: Scenario, names: Sequence[str] | None) -> Mapping[str, Any]:
    """Policies by name; a system without any is simulated as it is, if nothing is to be decided."""
    known = scenario.compare.policies or policy_names(type(scenario.system))
    return wanted(scenario, names) if known or names else {UNCONTROLLED: None}


def _simulated(scenario: Scenario, policies: Mapping[str, Any]) -> tuple[Any, mc.SolveError | None]:
    """The simulated policies, and why they are not finished if they are not."""
    from mdpcloud.compare import simulate_policies

    settings = scenario.simulate
    announce_compilation()
    with (
        mistakes_of(scenario),
        simulation_bar(settings.events, settings.half_width, len(policies)) as progress,
    ):
        try:
            found = simulate_policies(
                scenario.system,
                policies,
                ties=scenario.compare.ties,
                simulate=settings,
                progress=progress,
            )
        except mc.SolveError as error:
            if not hasattr(error.partial, "to_dict"):
                raise
            return labelled(error.partial, scenario), error
    return labelled(found, scenario), None


def _flag(name: str) -> str:
    """Flag of a setting."""
    return "--" + {"n_jobs": "jobs"}.get(name, name).replace("_", "-")


def _as_flag(message: str) -> str:
    """A message that begins with the name of a setting, beginning with its flag."""
    name, space, rest = message.partition(" ")
    return f"{_flag(name)}{space}{rest}"
