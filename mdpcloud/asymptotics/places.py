"""Places in a system and in its measures, such as ``arrival_rates[0]`` and ``blocking[1]``."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Sequence
from typing import Any

from mdpcloud.errors import InputError
from mdpcloud.plugins import did_you_mean
from mdpcloud.systems.measures import KINDS, Measures

__all__ = ["check_measure", "measure_at", "with_value"]

MEASURES = (*KINDS, "cost")


def with_value(system: Any, path: str, value: float) -> Any:
    """A system with another value of one parameter.

    Parameters
    ----------
    system : dataclass
    path : str
        Name of the parameter, with the places in it where it is a list.
    value : float
        A whole number where the parameter is one.

    Raises
    ------
    InputError
        When there is no such parameter, or the system does not allow the value.

    Examples
    --------
    >>> from mdpcloud.systems import CloudRouting
    >>> with_value(CloudRouting.example(), "arrival_rate", 12.0).arrival_rate
    12.0
    """
    known = [field.name for field in dataclasses.fields(system)]
    name, places = _parsed(path)
    if name not in known:
        near = did_you_mean(name, known) or f"; there are {', '.join(known)}"
        raise InputError(f"the system has no parameter {name!r}{near}")
    changed = _set(getattr(system, name), places, value, path)
    try:
        return dataclasses.replace(system, **{name: changed})
    except InputError as error:
        raise InputError(f"{path} = {value:g}: {error}") from None


def check_measure(name: str) -> None:
    """Refuse a name that no system has as a measure.

    Raises
    ------
    InputError
    """
    kind, _ = _parsed(name)
    if kind not in MEASURES:
        near = did_you_mean(kind, MEASURES) or f"; there are {', '.join(MEASURES)}"
        raise InputError(f"there is no measure {name!r}{near}")


def measure_at(measures: Measures, name: str) -> tuple[float, float]:
    """A measure of one class, and its absolute error.

    Raises
    ------
    InputError
        When the measures do not have it.

    Examples
    --------
    >>> measure_at(Measures((0.1, 0.2), (3.0,), 1.0, errors={"blocking": 1e-9}), "blocking[1]")
    (0.2, 1e-09)
    """
    check_measure(name)
    kind, places = _parsed(name)
    value = getattr(measures, kind)
    if value is None:
        raise InputError(f"the system has no measure {name!r}")
    for place in places:
        value = _item(value, place, name)
    if isinstance(value, tuple):
        shown = f"{kind}{''.join(f'[{place}]' for place in places)}"
        raise InputError(f"measure {name!r} is of several classes; name one, such as {shown}[0]")
    return value, measures.errors.get(kind, 0.0)


def _parsed(path: str) -> tuple[str, list[int]]:
    if not re.fullmatch(r"\w+(\[\d+\])*", path):
        raise InputError(f"{path!r} must be a name, or a name and places, such as {'rates[0]'!r}")
    name, _, rest = path.partition("[")
    return name, [int(place) for place in re.findall(r"\d+", rest)]


def _set(before: Any, places: Sequence[int], value: float, path: str) -> Any:
    """What was there before, with the value at a place in it."""
    if not places:
        if isinstance(before, tuple):
            raise InputError(f"{path} is a list of {len(before)}; name a place, such as {path}[0]")
        whole = isinstance(before, int) and not isinstance(before, bool) and value == int(value)
        return int(value) if whole else value
    first, *others = places
    inner = _set(_item(before, first, path), others, value, path)
    return (*before[:first], inner, *before[first + 1 :])


def _item(values: Any, place: int, path: str) -> Any:
    if not isinstance(values, tuple) or place >= len(values):
        size = f"a list of {len(values)}" if isinstance(values, tuple) else "no list"
        raise InputError(f"{path} has no place {place}: it is {size}")
    return values[place]
