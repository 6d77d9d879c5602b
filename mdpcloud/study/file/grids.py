"""Values along an axis, as a person writes them: 0.1, 0.2, 0.3, not 0.30000000000000004.

The ends are taken as the decimals that they are written as, x_k = first + k step is exact, and the
result is the float next to it; x_k = first (last / first)^(k / (points - 1)) on a logarithmic axis
is computed to 40 digits. Values are integers where all ends are written as integers and every value
is one.
"""

from __future__ import annotations

import decimal
import math
from decimal import Decimal
from fractions import Fraction
from typing import Any, Literal, TypeAlias

from mdpcloud.errors import InputError

__all__ = ["LARGEST", "AsWritten", "Spacing", "by_points", "by_step", "rounded"]

LARGEST = 1_000_000
"""Most instances of a study, and most values of an axis."""

Spacing: TypeAlias = Literal["equal", "logarithmic"]
Number: TypeAlias = int | float

DIGITS = 40  # of decimals


class AsWritten:
    """Annotates a float of a file that stays an integer where it is written as one."""

    def __get_pydantic_core_schema__(self, source: Any, handler: Any) -> Any:
        from pydantic_core import core_schema

        def keep(value: Any, check: Any) -> Any:
            check(value)
            return value

        return core_schema.no_info_wrap_validator_function(keep, handler(source))


def by_step(first: Number, last: Number, step: Number) -> list[Number]:
    """``first``, ``first + step`` and so on, up to ``last``.

    Raises
    ------
    InputError
        If the step does not lead from first to last, or there are too many values.

    Examples
    --------
    >>> by_step(0.1, 0.5, 0.1)
    [0.1, 0.2, 0.3, 0.4, 0.5]
    >>> by_step(5, 0, -2)
    [5, 3, 1]
    """
    start, width = _exact(first), _exact(step)
    distance = _exact(last) - start
    if width == 0 or distance * width < 0:
        sign = ">" if distance >= 0 else "<"
        raise InputError(f"step must be {sign} 0 to lead from {first!r} to {last!r}, not {step!r}")
    steps = distance // width
    if steps >= LARGEST:
        raise InputError(f"step {step!r} makes {steps + 1} values; at most {LARGEST} are allowed")
    return _plain([start + k * width for k in range(steps + 1)], first, last, step)


def by_points(first: Number, last: Number, points: int, spacing: Spacing = "equal") -> list[Number]:
    """So many values from ``first`` to ``last``, at equal distances or ratios.

    Parameters
    ----------
    first, last : float
        Less than it; > 0 where the spacing is logarithmic.
    points : int
        At least 2.

    Examples
    --------
    >>> by_points(0.5, 1.5, 11)[1:4]
    [0.6, 0.7, 0.8]
    >>> by_points(0.01, 100, 5, "logarithmic")
    [0.01, 0.1, 1.0, 10.0, 100.0]
    """
    start, end = _exact(first), _exact(last)
    if spacing == "equal":
        width = (end - start) / (points - 1)
        return _plain([start + k * width for k in range(points)], first, last)
    with decimal.localcontext(prec=DIGITS):
        low, high = (Decimal(repr(one)).ln() for one in (first, last))
        inner = [
            _written((low + (high - low) * k / (points - 1)).exp()) for k in range(1, points - 1)
        ]
    return _plain([start, *inner, end], first, last)


def _written(value: Decimal) -> Fraction:
    """A computed value without its last ten digits, which are rounding."""
    with decimal.localcontext(prec=DIGITS - 10):
        return Fraction(+value)


def rounded(values: list[Number]) -> list[Number]:
    """Integers next to values, halves upwards, each once.

    Examples
    --------
    >>> rounded([1.0, 1.4, 2.5])
    [1, 3]
    """
    return list(dict.fromkeys(math.floor(_exact(one) + Fraction(1, 2)) for one in values))


def _exact(value: Number) -> Fraction:
    """The decimal that a number is written as."""
    return Fraction(repr(value))


def _plain(values: list[Fraction], *given: Number) -> list[Number]:
    if all(isinstance(one, int) for one in given) and all(one.denominator == 1 for one in values):
        return [int(one) for one in values]
    return [float(one) for one in values]
