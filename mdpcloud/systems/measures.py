"""What becomes of the jobs of an allocation system: the same measures for every system and limit.

Models of allocation systems name their measures by class or centre: ``rejection_rate[j]``,
``downgrading_rate[j]``, ``forwarding_rate[j]`` (jobs per unit of time) and ``mean_jobs[k]``; with
two indices, ``rejection_rate[j][k]``, where classes are a type and a centre. `per_job` turns rates
into the probabilities ``blocking``, ``downgraded`` and ``forwarded`` of an arriving job, and
`collect` gathers the bounds of a policy's measures into `Measures`.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from mdpcloud.errors import InputError

__all__ = [
    "KINDS",
    "PER_UNIT",
    "Bounds",
    "Measures",
    "PerClass",
    "classes",
    "collect",
    "per_job",
    "scaled",
    "scaled_count",
]

PerClass: TypeAlias = tuple[float, ...] | tuple[tuple[float, ...], ...]
"""A number per class or centre, or per job type (row) and centre (column)."""

Bounds: TypeAlias = tuple[float, float]

KINDS = ("blocking", "downgraded", "forwarded", "mean_jobs")
"""Measures that have a number per class or centre."""

PER_UNIT = ("mean_jobs", "cost")
"""Measures that grow with the scale; in a limit they are per unit of it."""

MOST = 2**53  # of what is counted
ROUNDING = 1e-12  # relative, of a product with the scale

PROBABILITIES = {
    "rejection_rate": "blocking",
    "downgrading_rate": "downgraded",
    "forwarding_rate": "forwarded",
}


@dataclass(frozen=True)
class Measures:
    """What becomes of the jobs of an allocation system under a policy.

    Attributes
    ----------
    blocking : tuple
        Per class the probability that an arriving job is lost.
    mean_jobs : tuple
        Per class or centre the mean number of jobs present; per unit of the scale in a limit.
    cost : float
        Cost/time; per unit of the scale in a limit.
    downgraded, forwarded : tuple or None
        Per class the probability that a job is downgraded, or sent to another centre and taken
        there; None in a system that does not know this.
    errors : mapping of name to float
        Largest absolute error of each measure, over the classes.
    certified : bool
        Whether the errors are bounds; else they are estimates.
    regime : str or None
        Name of the limit's regime.
    notes : tuple of str
    """

    blocking: PerClass
    mean_jobs: PerClass
    cost: float
    downgraded: PerClass | None = None
    forwarded: PerClass | None = None
    errors: Mapping[str, float] = field(default_factory=dict)
    certified: bool = True
    regime: str | None = None
    notes: tuple[str, ...] = ()


def classes(values: Any, place: str = "") -> Iterator[tuple[str, float]]:
    """The place of each class in a measure, and its number.

    Examples
    --------
    >>> list(classes(((0.1, 0.2), (0.3,))))
    [('[0][0]', 0.1), ('[0][1]', 0.2), ('[1][0]', 0.3)]
    """
    for k, value in enumerate(values or ()):
        if isinstance(value, tuple):
            yield from classes(value, f"{place}[{k}]")
        else:
            yield f"{place}[{k}]", value


def per_job(
    measures: Mapping[str, Bounds], arrival_rates: Sequence[Any]
) -> dict[str, tuple[float, float]]:
    """Bounds of probabilities per arriving job, from those of a model's rates.

    Parameters
    ----------
    measures : mapping of name to (lower, upper)
    arrival_rates : sequence of float, or of sequences of float
        Of each class; the probabilities of one without arrivals are 0.

    Examples
    --------
    >>> per_job({"rejection_rate[1]": (0.5, 1.0), "mean_jobs[0]": (2.0, 2.0)}, [1.0, 2.0])
    {'blocking[1]': (0.25, 0.5)}
    """
    found = {}
    for name, (low, high) in measures.items():
        kind, bracket, places = name.partition("[")
        if kind in PROBABILITIES and bracket:
            rate: Any = arrival_rates
            for place in map(int, places.rstrip("]").split("][")):
                rate = rate[place]
            pair = (max(low / rate, 0.0), min(high / rate, 1.0)) if rate > 0.0 else (0.0, 0.0)
            found[f"{PROBABILITIES[kind]}[{places}"] = pair
    return found


def collect(cost: Bounds, measures: Mapping[str, Bounds]) -> Measures:
    """Measures from certified bounds, named as `per_job` and the models of this package do."""
    found = {kind: _middle(measures, kind) for kind in KINDS}
    values: dict[str, Any] = {
        kind: value for kind, (value, _) in found.items() if value is not None
    }
    errors = {kind: error for kind, (value, error) in found.items() if value is not None}
    errors["cost"] = 0.5 * (cost[1] - cost[0])
    return Measures(
        cost=0.5 * (cost[0] + cost[1]), errors=errors, **{"blocking": (), "mean_jobs": (), **values}
    )


def _middle(measures: Mapping[str, Bounds], kind: str) -> tuple[PerClass | None, float]:
    """Middle of the bounds of each class, nested as the names are, and the largest half width."""
    pattern = re.compile(rf"{kind}\[(\d+)\](?:\[(\d+)\])?")
    matches = {name: pattern.fullmatch(name) for name in measures}
    places = {match.groups(): measures[name] for name, match in matches.items() if match}
    if not places:
        return None, 0.0
    error = max(0.5 * (high - low) for low, high in places.values())
    rows: dict[int, dict[int, float]] = {}
    for (first, second), (low, high) in places.items():
        rows.setdefault(int(first or 0), {})[int(second or 0)] = 0.5 * (low + high)
    if all(second is None for _, second in places):
        return tuple(rows[j][0] for j in sorted(rows)), error
    return tuple(tuple(rows[j][k] for k in sorted(rows[j])) for j in sorted(rows)), error


# --- the finite system of a scale -----------------------------------------------------------------


def scaled(rates: Sequence[float], scale: float) -> tuple[float, ...]:
    """Rates of the finite system."""
    return tuple(scale * rate for rate in rates)


def scaled_count(name: str, value: float, scale: float, least: int = 0) -> tuple[int, str | None]:
    """A capacity or level of the finite system, rounded, and a note where rounding changed it.

    Halves are rounded up.

    Raises
    ------
    InputError
        When fewer than ``least`` remain.

    Examples
    --------
    >>> scaled_count("threshold", 0.9, 10)
    (9, None)
    >>> scaled_count("capacities[0]", 1.25, 10)
    (13, 'capacities[0] = 1.25 times the scale 10 is 12.5, rounded to 13')
    """
    exact = value * scale
    if exact > MOST:
        raise InputError(f"{name} = {value:g} times the scale {scale:g} is {exact:g}, above 2^53")
    count = math.floor(exact + 0.5 + ROUNDING * max(1.0, exact))
    if count < least:
        raise InputError(
            f"{name} = {value:g} times the scale {scale:g} is {exact:g}; it must be >= {least}"
        )
    if abs(exact - count) <= ROUNDING * max(1.0, exact):
        return count, None
    return count, f"{name} = {value:g} times the scale {scale:g} is {exact:g}, rounded to {count}"
