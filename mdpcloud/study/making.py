"""Studies of systems made in Python."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from mdpcloud.errors import InputError
from mdpcloud.scenario import CompareSettings, Scenario, SolveSettings
from mdpcloud.study.outputs import Outputs
from mdpcloud.study.study import Instance, Label, Study
from mdpcloud.study.tasks import find_task
from mdpcloud.systems.registry import is_system, name_of

__all__ = ["study_of"]


def study_of(
    points: Iterable[tuple[Mapping[str, Label], Any]],
    policies: Mapping[str, Any] | Iterable[str] | None,
    task: str,
    name: str,
    ties: Any,
    tolerance: float,
    outputs: Outputs | None,
) -> Study:
    """See `mdpcloud.study.Study.of`."""
    chosen = _chosen(policies)
    settings = (CompareSettings(chosen, ties), SolveSettings(tolerance))
    does = find_task(task, Path())
    instances = tuple(
        Instance(number, dict(labels), _scenario(system, name, *settings), does)
        for number, (labels, system) in enumerate(points)
    )
    if not instances:
        raise InputError("a study needs at least one point; there is none")
    return Study(name, instances, does, outputs or Outputs())


def _chosen(policies: Mapping[str, Any] | Iterable[str] | None) -> dict[str, Any] | None:
    if policies is None or isinstance(policies, Mapping):
        return None if policies is None else dict(policies)
    return {one: one for one in ([policies] if isinstance(policies, str) else policies)}


def _scenario(system: Any, name: str, compare: CompareSettings, solve: SolveSettings) -> Scenario:
    if not is_system(type(system)):
        raise InputError(
            f"{system!r} is no system; it must be an instance of a dataclass with a method model()"
        )
    return Scenario(
        format=1,
        system=system,
        system_name=name_of(type(system)),
        name=name,
        time_unit="time",
        cost_unit="cost",
        solve=solve,
        compare=compare,
    )
