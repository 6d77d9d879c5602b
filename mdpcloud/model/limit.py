"""Limits of a long-run average, for constrained problems."""

from __future__ import annotations

import math
from dataclasses import dataclass
from numbers import Real
from typing import Any

from mdpcloud.errors import InputError

__all__ = ["Limit", "limit_of"]


@dataclass(frozen=True)
class Limit:
    """What a long-run average may be at most, at least, or both.

    Parameters
    ----------
    at_most, at_least : float, optional
        One of them, or both with at_least <= at_most. In the unit of the average.

    Examples
    --------
    >>> Limit(at_least=0.4).at_most is None
    True
    """

    at_most: float | None = None
    at_least: float | None = None

    def __post_init__(self) -> None:
        for name, value in (("at_most", self.at_most), ("at_least", self.at_least)):
            if value is None:
                continue
            if isinstance(value, bool) or not isinstance(value, Real) or not math.isfinite(value):
                raise InputError(f"{name} is {value!r}; it must be a finite number")
        if self.at_most is None and self.at_least is None:
            raise InputError("a limit needs at_most, at_least, or both")
        if None not in (self.at_most, self.at_least) and self.at_least > self.at_most:  # type: ignore[operator]
            raise InputError(
                f"at_least is {self.at_least:g} and at_most {self.at_most:g}; at_least must be "
                "<= at_most"
            )


def limit_of(value: Any, owner: str) -> Limit:
    """A `Limit`; a number is what the average may be at most.

    Raises
    ------
    InputError
        When the value is neither; the message begins with the owner.
    """
    if isinstance(value, Limit):
        return value
    if isinstance(value, bool) or not isinstance(value, Real):
        raise InputError(f"{owner} is {value!r}; it must be a number or a Limit")
    try:
        return Limit(at_most=float(value))
    except InputError as error:
        raise InputError(f"{owner}: {error}") from None
