"""Checks of the numbers that users hand in; every refusal says what, where and what is allowed."""

from __future__ import annotations

import math
from collections.abc import Sequence
from numbers import Integral, Real

from mdpcloud.errors import InputError
from mdpcloud.plugins import did_you_mean

__all__ = ["checked_choice", "checked_count", "checked_number"]

LARGEST_COUNT = 100_000_000


def checked_count(name: str, value: object, *, least: int = 1) -> int:
    """Return `value` as an int; InputError unless it is a whole number in least..10^8.

    >>> checked_count("servers", 3)
    3
    """
    wanted = f"a whole number from {least} to {LARGEST_COUNT}"
    if isinstance(value, bool) or not isinstance(value, Integral):
        raise InputError(f"{name} must be {wanted}, got {value!r}")
    if not least <= int(value) <= LARGEST_COUNT:
        raise InputError(f"{name} must be {wanted}, got {value}")
    return int(value)


def checked_number(name: str, value: object, *, zero: bool = False) -> float:
    """Return `value` as a float; InputError unless it is finite and > 0 (>= 0 where `zero`).

    >>> checked_number("arrival_rate", 0, zero=True)
    0.0
    """
    wanted = "a finite number >= 0" if zero else "a finite number > 0"
    if isinstance(value, bool) or not isinstance(value, Real):
        raise InputError(f"{name} must be {wanted}, got {value!r}")
    try:
        number = float(value)
    except OverflowError:
        number = math.inf
    if not math.isfinite(number) or number < 0.0 or (number == 0.0 and not zero):
        raise InputError(f"{name} must be {wanted}, got {value}")
    return number


def checked_choice(name: str, value: object, allowed: Sequence[str]) -> str:
    """Return `value`; InputError unless it is one of the `allowed` words.

    >>> checked_choice("deadline", "end_service", ["begin_service", "end_service"])
    'end_service'
    """
    if not isinstance(value, str) or value not in allowed:
        near = did_you_mean(value, allowed) if isinstance(value, str) else ""
        known = ", ".join(map(repr, allowed))
        raise InputError(f"{name} must be one of {known}, got {value!r}{near}")
    return value
