"""Instances that stand at one place of a figure of lines, found before anything is computed."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from typing import Any

from mdpcloud.study.known_names import WITH_POLICIES
from mdpcloud.study.outputs import Figure
from mdpcloud.study.reports.where import is_among
from mdpcloud.study.study import Instance

__all__ = ["collisions"]

ALWAYS = ("cost", "lower", "upper", "gap", "absolute_gap")  # of policies that need no simulation


def collisions(figure: Figure, instances: Collection[Instance]) -> Iterator[str]:
    """What is wrong with a figure whose curves would have two points at the same place."""
    if not _is_known(figure, instances):
        return
    first: dict[Any, Instance] = {}
    for one in instances:
        if figure.x in one.labels and _counts(figure, one.labels):
            other = first.setdefault(_place(figure, one), one)
            if other is not one:
                yield _told(figure, other, one)
                return


def _is_known(figure: Figure, instances: Collection[Instance]) -> bool:
    """Whether an instance has a point of each of its policies, whose place is known."""
    return (
        figure.kind == "lines"
        and figure.curves == "policy"
        and figure.y in ALWAYS
        and all(one.task.name in WITH_POLICIES for one in instances)
        and all(any(name in one.labels for one in instances) for name in _named(figure))
    )


def _named(figure: Figure) -> tuple[str, ...]:
    """Columns that have to be labels."""
    conditions = (name for name in figure.where or {} if name != "policy")
    return (figure.x or "", *figure.panels, *conditions)


def _counts(figure: Figure, labels: Mapping[str, Any]) -> bool:
    conditions = (figure.where or {}).items()
    return all(is_among(labels.get(name), one) for name, one in conditions if name != "policy")


def _place(figure: Figure, instance: Instance) -> Any:
    """What tells places apart, and the system with the policies that it has."""
    policies = instance.scenario.compare.policies
    names = None if policies is None else tuple(policies)
    labels = instance.labels
    where = tuple(labels.get(name) for name in (figure.x or "", *figure.panels))
    return (where, type(instance.scenario.system), names)


def _told(figure: Figure, one: Instance, other: Instance) -> str:
    begin = f"several instances stand at {figure.x} = {one.labels[figure.x or '']!r}"
    names = dict.fromkeys([*one.labels, *other.labels])
    pairs = {name: (one.labels.get(name), other.labels.get(name)) for name in names}
    free = [f"{name} ({a!r}, {b!r}, ...)" for name, (a, b) in pairs.items() if a != b]
    if not free:
        return f"{begin}; their labels are the same"
    return (
        f"{begin}; they differ in {' and '.join(free)}: name it in panels or curves, or a value in "
        "where"
    )
