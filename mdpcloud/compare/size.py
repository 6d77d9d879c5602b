"""Whether a system is too large to be solved, decided before anything is allocated.

What is decided on is the first box that would be solved. It is too large beyond `MOST` states,
which would take hours, and where it does not fit the memory; a part of a box, given by a condition,
is judged by the memory alone, since how many states it has is not known beforehand. Searches of
families are left out by default where they would take many minutes.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from mdpcloud.compare.optimum import SMALL, Settings
from mdpcloud.engine.memory import check_memory
from mdpcloud.errors import InputError
from mdpcloud.model.model import Model
from mdpcloud.model.space import Lattice
from mdpcloud.policies.family import Family
from mdpcloud.solve.truncation.boxes import states_of
from mdpcloud.systems.base import Truncated

__all__ = ["MOST", "quickly", "why_not_solved"]

MOST = 50_000_000
"""States of the largest first box that is solved."""

MOST_WORK = 100_000_000  # members times states, of a search of some minutes
ADDRESSED = 2**31  # points that the engine can number
BILLION = 10**9


def why_not_solved(system: Any, settings: Settings) -> str | None:
    """Why a system is not solved but simulated; None where it is solved.

    A box set by hand is solved, not simulated. A system that has no model, but can be simulated all
    the same, says why itself.

    Raises
    ------
    InputError
        When there is no model and the system cannot be simulated otherwise, or a box set by hand
        has more states than can be numbered.
    """
    if settings.caps is not None:
        _check_box(system.model(settings.caps))
        return None
    try:
        return _why_too_large(system)
    except InputError as error:
        if not hasattr(system, "simulation"):
            raise
        return str(error)


def quickly(chosen: Mapping[str, Any], states: int) -> tuple[dict[str, Any], list[str]]:
    """Policies without families whose search would take many minutes, and a note on each of these.

    Parameters
    ----------
    chosen : mapping of name to what is to be evaluated
    states : int
        On which the members of a family would be evaluated.
    """
    long = {
        name: what
        for name, what in chosen.items()
        if isinstance(what, Family) and what.size * states > MOST_WORK
    }
    notes = [
        f"left out: {name}: {what.size} members on {states} states take long; it is searched where "
        "it is named among the policies"
        for name, what in long.items()
    ]
    return {name: what for name, what in chosen.items() if name not in long}, notes


def _why_too_large(system: Any) -> str | None:
    if not isinstance(system, Truncated):
        return _why_not_fitting(system.model())
    caps = _first_box(system)
    if states_of(caps) > MOST:
        return _too_many(states_of(caps))
    return _why_not_fitting(system.model(caps))


def _first_box(system: Truncated) -> tuple[int, ...]:
    """The box that `mdpcloud.compare.optimum` begins with."""
    exact = system.exact_caps()
    finite = tuple(cap for cap in exact if cap is not None)
    if len(finite) == len(exact) and states_of(finite) <= SMALL:
        return finite
    return tuple(system.start_caps())


def _check_box(model: Any) -> None:
    states = math.prod(model.space.shape) if _is_lattice(model) else 0
    if states > ADDRESSED:
        raise InputError(
            f"caps make a lattice of {_rounded(states)} states, too many to be solved; choose "
            "smaller caps, or leave them out: what is too large is simulated"
        )


def _is_lattice(model: Any) -> bool:
    return isinstance(model, Model) and isinstance(model.space, Lattice)


def _why_not_fitting(model: Any) -> str | None:
    if not _is_lattice(model):
        return None
    space = model.space
    states = math.prod(space.shape)
    if space.where is None and states > MOST:
        return _too_many(states)
    if states <= ADDRESSED and _fits(space):
        return None
    return f"the lattice of {_rounded(states)} points does not fit into memory"


def _fits(space: Lattice) -> bool:
    try:
        check_memory(space)
    except InputError:
        return False
    return True


def _too_many(states: int) -> str:
    return (
        f"the smallest lattice of the system has {_rounded(states)} states, too many to be solved"
    )


def _rounded(states: int) -> str:
    """A whole number of any size for people; floats end at 1e308.

    Examples
    --------
    >>> _rounded(64_000_000), _rounded(21**1000)
    ('64 million', '10^1322')
    """
    if states < BILLION:
        return f"{states / 1e6:.3g} million"
    return f"10^{math.log10(states):.0f}"
