"""Families of policies: rules with one parameter vector, whose best member can be searched for.

Systems say once, as `Stream`s, what may be done with the jobs of a class and what fits where; the
families of this package (complete sharing, trunk reservation, thresholds, Bernoulli offloading) are
made from that.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np

from mdpcloud.errors import InputError

__all__ = [
    "BEST",
    "Condition",
    "Family",
    "Option",
    "Parameter",
    "Rules",
    "Stream",
    "best_members",
    "families_of",
    "first_fit",
    "in_words",
]

BEST = "best "
"""Before the name of a family: its best member, as scenarios and results name it."""

MOST_NAMED = 3  # parameters that are named in words; values of more of them are only listed

Condition: TypeAlias = Callable[[Any], Any]
"""From the state x, or arrays of states, to whether it holds there."""

Rules: TypeAlias = Mapping[str, Any]
"""A rule per decision, as `mdpcloud.policy` takes it."""


@dataclass(frozen=True, eq=False)
class Option:
    """One of the things that may be done with an arriving job.

    Parameters
    ----------
    action : str
        Name of the action.
    fits : function of x
        Whether it is possible.
    spare : function of x, optional
        Capacity that stays free where it takes the job; what trunk reservation looks at.
    used : function of x, optional
        Capacity in use before the job comes; what thresholds look at.
    """

    action: str
    fits: Condition
    spare: Callable[[Any], Any] | None = None
    used: Callable[[Any], Any] | None = None


@dataclass(frozen=True, eq=False)
class Stream:
    """The jobs of one class: a decision, and the options in the order of preference.

    Parameters
    ----------
    decision : str
        Name of the event.
    options : tuple of Option
        The first that fits is taken where nothing is held back.
    otherwise : str
        Action where no option fits or every one is held back; always possible.
    """

    decision: str
    options: tuple[Option, ...]
    otherwise: str = "reject"


@dataclass(frozen=True)
class Parameter:
    """A parameter of a family, and the values that a search tries, in order."""

    name: str
    values: tuple[float, ...]


@dataclass(frozen=True, eq=False)
class Family:
    """Rules with a parameter vector.

    Parameters
    ----------
    name : str
    parameters : tuple of Parameter
        None for a family of one rule.
    member : function of the parameters' values
        Its rules, see `mdpcloud.policy`.
    unimodal : bool
        Whether a theorem says that the cost first falls and then rises in the only parameter.
    notes : tuple of str
        What a reader of the best member has to know, such as the step of a grid.

    Examples
    --------
    >>> grid = (Parameter("a", (0, 1)), Parameter("b", (0, 1, 2)))
    >>> pairs = Family("pairs", grid, lambda a, b: {})
    >>> pairs.size, list(pairs.members())[:2]
    (6, [(0, 0), (0, 1)])
    """

    name: str
    parameters: tuple[Parameter, ...]
    member: Callable[..., Rules]
    unimodal: bool = False
    notes: tuple[str, ...] = ()

    @property
    def size(self) -> int:
        """Number of members on the grid."""
        return math.prod(len(parameter.values) for parameter in self.parameters)

    def members(self) -> Iterator[tuple[float, ...]]:
        """Parameter vectors of the grid, the last parameter fastest."""
        return itertools.product(*(parameter.values for parameter in self.parameters))


def in_words(parameter: Mapping[str, float], width: int = 80) -> str:
    """Values of the parameters of a member, for people; named where a few letters are enough.

    Examples
    --------
    >>> in_words({"reserved": 2.0, "p": 0.5}), in_words(dict.fromkeys("abcd", 1))
    ('reserved 2, p 0.5', '1, 1, 1, 1')
    """
    named = ", ".join(f"{name} {value:g}" for name, value in parameter.items())
    if len(parameter) <= MOST_NAMED and len(named) <= width:
        return named
    return ", ".join(f"{value:g}" for value in parameter.values())


def families_of(system: Any) -> dict[str, Family]:
    """Families of policies of a system, by the names of their best members.

    Raises
    ------
    InputError
        When two of them, or two parameters of one, have the same name, or a value is not finite.
    """
    families: tuple[Family, ...] = system.families() if hasattr(system, "families") else ()
    names = [family.name for family in families]
    for family in families:
        if names.count(family.name) > 1:
            raise InputError(
                f"{type(system).__name__} has two families {family.name!r}; names must differ"
            )
        _check_grid(family)
    return {f"{BEST}{family.name}": family for family in families}


def _check_grid(family: Family) -> None:
    names = [parameter.name for parameter in family.parameters]
    if len({*names}) < len(names):
        raise InputError(f"family {family.name!r}: its parameters {names} must differ in name")
    if not all(math.isfinite(value) for one in family.parameters for value in one.values):
        raise InputError(f"family {family.name!r}: the values of its parameters must be finite")


def best_members(system: Any) -> dict[str, Family]:
    """As `families_of`, without families of one rule that is one of the system's policies."""
    known = getattr(system, "policy_names", ())
    return {
        name: family
        for name, family in families_of(system).items()
        if family.size > 1 or family.name not in known
    }


def first_fit(
    options: Sequence[tuple[str, Condition]], otherwise: str = "reject"
) -> Callable[[Any], Any]:
    """Rule that takes the first action whose condition holds.

    Examples
    --------
    >>> rule = first_fit([("local", lambda x: x < 2), ("remote", lambda x: x < 3)])
    >>> [str(action) for action in rule(np.arange(4))]
    ['local', 'local', 'remote', 'reject']
    """

    def rule(x: Any) -> Any:
        action: Any = np.asarray(otherwise)
        for name, holds in reversed(options):
            action = np.where(holds(x), name, action)
        return action

    return rule
