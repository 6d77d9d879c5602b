"""Names of policies and measures that results will have, as far as systems tell them."""

from __future__ import annotations

import contextlib
import dataclasses
from collections.abc import Collection, Hashable, Mapping
from typing import Any

from mdpcloud.study.records.plain import is_own
from mdpcloud.study.study import Instance

__all__ = ["names_of_measures", "names_of_policies"]

WITH_POLICIES = ("compare", "evaluate")  # tasks with rows of policies, and their measures
OPTIMUM = "optimum"
LOOKED_AT = 100  # systems of different shapes


def names_of_policies(instances: Collection[Instance]) -> list[str] | None:
    """Policies that have rows; None where that is not known.

    Raises
    ------
    InputError
        When there is no such policy.
    """
    if not _have_policies(instances):
        return None
    from mdpcloud.compare.row import choose_policies

    found: dict[Any, Mapping[str, Any]] = {}
    for one in instances:
        policies = one.scenario.compare.policies
        rules = [(name, id(rule)) for name, rule in (policies or {}).items()]
        what = (type(one.scenario.system), *rules)
        if what not in found:
            found[what] = choose_policies(one.scenario.system, policies)
    names = [OPTIMUM] if next(iter(instances)).task.name == "compare" else []
    return [*dict.fromkeys(names + [name for chosen in found.values() for name in chosen])]


def names_of_measures(instances: Collection[Instance], wanted: Collection[str]) -> list[str] | None:
    """Measures of the package's own systems; None where they are not known, or none is wanted."""
    if not wanted or not all(one.task.columns for one in instances):
        return None
    if not _have_policies(instances):
        return []
    if any(is_own(type(one.scenario.system).__module__) for one in instances):
        return None
    systems = {_shape(one.scenario.system): one.scenario.system for one in instances}
    found: dict[str, None] = {}
    for number, system in enumerate(systems.values()):
        names = _names(system)
        if not names or number == LOOKED_AT:
            return None
        found |= dict.fromkeys(names)
        if found.keys() >= {*wanted}:
            break
    return list(found)


def _have_policies(instances: Collection[Instance]) -> bool:
    return all(one.task.name in WITH_POLICIES for one in instances)


def _shape(system: Any) -> Hashable:
    """What may decide which measures a system of this package has: all but its numbers."""
    sizes = (_size(getattr(system, one.name)) for one in dataclasses.fields(system))
    return (type(system), *sizes)


def _size(value: Any) -> Hashable:
    if isinstance(value, tuple | list):
        return tuple(map(_size, value))
    return value if isinstance(value, str | int) else None


def _names(system: Any) -> list[str]:
    """Names of the measures of a model and of those derived from them; empty where it has none."""
    found: dict[str, tuple[float, float]] = {}
    with contextlib.suppress(Exception):  # as of a model that cannot be made without being solved
        found = dict.fromkeys(system.model().measures, (1.0, 1.0))
        found |= system.derived((1.0, 1.0), found)
    return list(found)
