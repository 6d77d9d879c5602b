"""Numbers whose sums and products stay within floating point."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from numbers import Real
from typing import Any

from mdpcloud.errors import InputError

__all__ = ["check_ranges"]

SMALLEST, LARGEST = 1e-100, 1e100


def check_ranges(system: Any) -> None:
    """Refuse numbers of a system so large or small that products of three of them are not finite.

    To be called after `mdpcloud.parameters.validate`.

    Raises
    ------
    InputError
        When a number is neither 0 nor between `SMALLEST` and `LARGEST`; it names the field.

    Examples
    --------
    >>> from dataclasses import dataclass
    >>> @dataclass(frozen=True)
    ... class Node:
    ...     rates: tuple[float, ...]
    >>> check_ranges(Node((1.0, 1e308)))
    Traceback (most recent call last):
    mdpcloud.errors.InputError: Node: rates[1] must be 0 or in 1e-100..1e+100, not 1e+308; ...
    """
    for field in dataclasses.fields(system):
        for path, value in _numbers(field.name, getattr(system, field.name)):
            if value != 0 and not SMALLEST <= abs(value) <= LARGEST:
                raise InputError(
                    f"{type(system).__name__}: {path} must be 0 or in {SMALLEST:g}..{LARGEST:g}, "
                    f"not {_shown(value)}; sums and products of the parameters beyond are no "
                    "numbers of floating point"
                )


def _numbers(path: str, value: Any) -> Iterator[tuple[str, Any]]:
    """Numbers of a field and where they are."""
    if isinstance(value, tuple):
        for place, one in enumerate(value):
            yield from _numbers(f"{path}[{place}]", one)
    elif isinstance(value, Real) and not isinstance(value, bool):
        yield path, value


def _shown(value: Any) -> str:
    try:
        return f"{value:g}"
    except OverflowError:
        return f"an integer near 2^{int(value).bit_length()}"
