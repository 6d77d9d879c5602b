"""Models that depend on a parameter: functions of it, and fields of systems.

A field of a system is named by its path, such as ``arrival_rate`` or ``nodes[1].service_rate``. All
models of a family have the same states: where a system's exact box depends on the parameter, the
box is the smallest one that is exact for every value that is used.
"""

from __future__ import annotations

import dataclasses
import inspect
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from numbers import Real
from typing import Any

from mdpcloud.errors import InputError
from mdpcloud.model.event import Event
from mdpcloud.model.model import Model
from mdpcloud.plugins import did_you_mean
from mdpcloud.solve.sensitivity.differences import FIRST_STEPS

__all__ = ["Family", "families_of"]

TOKEN = re.compile(r"\.?([A-Za-z_]\w*)|\[(\d+)\]")


@dataclass(frozen=True)
class Family:
    """Models by the value of one parameter.

    Attributes
    ----------
    name : str
    at : float
        The value of interest.
    build : function
        From a value to a model; an `InputError` says that there is none.
    """

    name: str
    at: float
    build: Callable[[float], Any]


def families_of(what: Any, at: Any, caps: Sequence[int] | None) -> list[Family]:
    """One family per parameter; all have the same model at their values of interest.

    Parameters are those of `mdpcloud.sensitivity`.
    """
    if dataclasses.is_dataclass(what) and callable(getattr(what, "model", None)):
        return _of_system(what, _names(at, "fields of the system"), caps)
    if caps is not None:
        raise InputError("caps set the box of a system; a function builds its own")
    if isinstance(what, Model):
        return [_of_event(what, name) for name in _names(at, "events of the model")]
    if not callable(what):
        raise InputError(
            f"{what!r} is neither a function that builds a model, nor a system, nor a Model"
        )
    if isinstance(at, Mapping):
        if not at:
            raise InputError("at is empty; it must name a parameter and its value")
        values = {name: _real(name, value) for name, value in at.items()}
        return [Family(name, v, partial(_one_of, what, values, name)) for name, v in values.items()]
    return [Family("parameter", _real("at", at), what)]


def _one_of(build: Callable[..., Any], values: Mapping[str, float], name: str, value: float) -> Any:
    try:
        inspect.signature(build).bind(**values)
    except TypeError as error:
        raise InputError(f"the function does not take {list(values)}: {error}") from None
    return build(**{**values, name: value})


def _names(at: Any, kind: str) -> list[str]:
    names = [at] if isinstance(at, str) else at
    good = isinstance(names, Iterable) and not isinstance(names, Mapping)
    listed = list(names) if good else []
    if not listed or not all(isinstance(name, str) for name in listed):
        raise InputError(f"at is {at!r}; it must name {kind}: one name, or a list of names")
    return listed


def _real(name: str, value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, Real):
        raise InputError(f"{name} is {value!r}; a parameter must be a real number")
    return float(value)


# --- factors on the rates of events ---------------------------------------------------------------


def _of_event(model: Model, name: str) -> Family:
    """The factor on the rate of one event; 1 is the model itself."""
    events = [event.name for event in model.events if isinstance(event, Event)]
    if name not in events:
        hint = did_you_mean(name, events) or f"; there are {events}"
        raise InputError(f"the model has no event {name!r}{hint}")
    return Family(name, 1.0, partial(_with_factor, model, name))


def _with_factor(model: Model, name: str, factor: float) -> Model:
    events = [
        Event(event.name, _times(event.rate, factor), event.actions)
        if isinstance(event, Event) and event.name == name
        else event
        for event in model.events
    ]
    return Model(model.space, events, cost_rate=model.cost_rate, measures=model.measures)


def _times(rate: Any, factor: float) -> Any:
    return (lambda x: factor * rate(x)) if callable(rate) else factor * rate


# --- fields of systems ----------------------------------------------------------------------------


def _of_system(system: Any, names: Sequence[str], caps: Sequence[int] | None) -> list[Family]:
    paths = {name: _path(name) for name in names}
    values = {name: _real(name, _value(system, name, path)) for name, path in paths.items()}
    box = _common_box(system, paths, values) if caps is None else tuple(caps)
    return [
        Family(name, values[name], partial(_build, system, path, box))
        for name, path in paths.items()
    ]


def _build(
    system: Any, path: Sequence[str | int], box: tuple[int, ...] | None, value: float
) -> Any:
    changed = _replaced(system, path, value)
    return changed.model() if box is None else changed.model(caps=box)


def _common_box(
    system: Any, paths: Mapping[str, Sequence[str | int]], values: Mapping[str, float]
) -> tuple[int, ...] | None:
    """The smallest box that is exact for every value used; None for a system that has no boxes."""
    if not hasattr(system, "exact_caps"):
        return None
    boxes = [system.exact_caps()]
    for name, path in paths.items():
        step = FIRST_STEPS[0] * (abs(values[name]) or 1.0)
        for value in (values[name] - step, values[name] + step):
            try:
                boxes.append(_replaced(system, path, value).exact_caps())
            except ValueError:  # no such system: the differences are one-sided
                continue
    if any(cap is None for box in boxes for cap in box):
        raise InputError(
            "the system has no exact box; give caps, and the derivative is that of the optimum on "
            "this box"
        )
    return tuple(max(caps) for caps in zip(*boxes, strict=True))


def _path(name: str) -> tuple[str | int, ...]:
    """The steps of a path: ``nodes[1].service_rate`` is ``("nodes", 1, "service_rate")``."""
    steps: list[str | int] = []
    place = 0
    while place < len(name):
        found = TOKEN.match(name, place)
        if found is None or (place == 0 and not found[1]):
            raise InputError(f"{name!r} is no path to a field; write for example nodes[1].rate")
        steps.append(found[1] if found[1] else int(found[2]))
        place = found.end()
    return tuple(steps)


def _value(owner: Any, name: str, path: Sequence[str | int]) -> Any:
    for step in path:
        if isinstance(step, int):
            if not isinstance(owner, (tuple, list)) or step >= len(owner):
                raise InputError(f"{name!r}: there is no [{step}] in {owner!r}")
            owner = owner[step]
            continue
        known = (
            [field.name for field in dataclasses.fields(owner)]
            if dataclasses.is_dataclass(owner)
            else []
        )
        if step not in known:
            hint = did_you_mean(step, known) or f"; there are {known}"
            raise InputError(f"{name!r}: {type(owner).__name__} has no field {step!r}{hint}")
        owner = getattr(owner, step)
    return owner


def _replaced(owner: Any, path: Sequence[str | int], value: float) -> Any:
    """A copy in which what the path leads to is the value."""
    if not path:
        return value
    step, rest = path[0], path[1:]
    if isinstance(step, int):
        changed = list(owner)
        changed[step] = _replaced(owner[step], rest, value)
        return type(owner)(changed)
    return dataclasses.replace(owner, **{step: _replaced(getattr(owner, step), rest, value)})
