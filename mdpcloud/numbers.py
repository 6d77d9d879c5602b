"""Numbers as text that holds: every digit that is printed follows from the certified bounds."""

from __future__ import annotations

import math
from decimal import ROUND_CEILING, ROUND_FLOOR, ROUND_HALF_EVEN, Context, Decimal
from fractions import Fraction

__all__ = ["agreed", "enclosing", "interval", "percent", "with_error", "with_half_width"]

SIGNIFICANT = 10  # most significant digits of a value
DECIMALS = 12  # most digits after the point
PERCENT = 4  # most digits after the point of a gap in per cent
SMALL = 1e-4  # values below are told with their power of ten
NEARLY = Decimal(1) - Decimal("1e-9")  # so that a half width of 0.1 is not printed as 0.11
WIDE = 1e-3  # of the value: a larger error is told by both of its ends

_exact = Context(prec=1000)  # digits enough for every float


def with_error(value: float, lower: float, upper: float) -> tuple[str, str]:
    """A value, and how far the truth is from what is printed of it at most.

    Where that is more than a thousandth of the value, the bounds are printed instead.

    Examples
    --------
    >>> with_error(2 / 3, 2 / 3 - 1.3e-8, 2 / 3 + 2e-8)
    ('0.66666667', '± 2e-8')
    >>> with_error(2.0, 1.5, 2.25)
    ('2.00', '1.500 to 2.250')
    >>> with_error(2.5e-20, 2.5e-20, 2.5e-20), with_error(-2e-16, -4e-16, 1e-17)
    (('2.500000000e-20', '± 7e-37'), ('0', '± 4e-16'))
    """
    if not all(map(math.isfinite, (value, lower, upper))):
        return f"{value:.{SIGNIFICANT}g}", f"{lower:.{SIGNIFICANT}g} to {upper:.{SIGNIFICANT}g}"
    error = max(upper - value, value - lower)
    wide = error > WIDE * abs(value)
    if 0 < abs(value) < SMALL and not wide:
        text = f"{value:.{SIGNIFICANT - 1}e}"
    else:
        decimals = min(_resolved(error) + wide, _room(value))
        text = _fixed(Decimal(value), decimals, ROUND_HALF_EVEN)
    printed = Decimal(text)
    if printed and wide:
        return text, interval(lower, upper)
    ends = (_exact.subtract(Decimal(end), printed) for end in (lower, upper))
    reach = max(map(abs, ends))
    return text, f"± {Context(prec=1, rounding=ROUND_CEILING).plus(reach):.1g}" if reach else "± 0"


def interval(lower: float, upper: float) -> str:
    """Bounds rounded outwards, with three digits of their difference.

    Examples
    --------
    >>> interval(1 / 3, 2 / 3)
    '0.333 to 0.667'
    >>> interval(1 - 2**-30, 1.0)
    '0.9999999990 to 1.0000000000'
    """
    decimals = min(_resolved(upper - lower) + 2, _room(max(lower, upper, key=abs)) + 1)
    ends = (Decimal(lower), ROUND_FLOOR), (Decimal(upper), ROUND_CEILING)
    return " to ".join(_fixed(end, decimals, rounding) for end, rounding in ends)


def with_half_width(value: float, lower: float, upper: float, sign: str = "-") -> tuple[str, str]:
    """An estimate with the digits that its interval supports, and half of the interval's width.

    Two digits of the half width; what is printed covers the interval, but for a billionth of it.
    With the sign "+" positive values have theirs, too.

    Examples
    --------
    >>> with_half_width(2.35318, 2.34108, 2.36528), with_half_width(0.5, 0.4, 0.6, sign="+")
    (('2.353', '± 0.013'), ('+0.50', '± 0.10'))
    >>> with_half_width(3.14e-9, 3.1e-9, 3.18e-9), with_half_width(15230.0, 14230.0, 16230.0)
    (('3.140e-9', '± 4.0e-11'), ('15230', '± 1000'))
    """
    if not all(map(math.isfinite, (value, lower, upper))):
        return f"{value:{sign}.{SIGNIFICANT - 4}g}", "unknown"
    if lower == upper:
        return with_error(value, lower, upper)
    half = Decimal(max(upper - value, value - lower)) / NEARLY
    printed = _rounded(Decimal(value), max(1 - half.adjusted(), 0), ROUND_HALF_EVEN)
    reach = max(abs(_exact.subtract(Decimal(end), printed)) for end in (lower, upper))
    width = Context(prec=2, rounding=ROUND_CEILING).multiply(reach, NEARLY)
    form = "f" if abs(printed) >= SMALL or width >= SMALL else "e"
    return f"{printed:{sign}{form}}" if printed else "0", f"± {width:{form}}"


def percent(lower: float, upper: float) -> str:
    """A share in per cent, with those of its first four decimals that both bounds have.

    Examples
    --------
    >>> percent(0.0327274984, 0.0327275009), percent(0.25, 0.25), percent(-1e-9, 1e-9)
    ('3.273 %', '25.0000 %', '0.0000 %')
    >>> percent(0.01, 0.02)
    '1.00 to 2.00 %'
    """
    return f"{agreed(lower, upper, PERCENT, 100)} %"


def agreed(lower: float, upper: float, decimals: int, scale: int = 1) -> str:
    """A number with those of its first decimals that both bounds have; both where none has.

    Examples
    --------
    >>> agreed(2.71827, 2.71829, 2), agreed(2.71827, 2.71829, 4), agreed(2.5, 3.5, 4)
    ('2.72', '2.7183', '2.50 to 3.50')
    """
    low, high = (_exact.multiply(Decimal(end), Decimal(scale)) for end in (lower, upper))
    for places in range(decimals, -1, -1):
        texts = {_rounded(end, places, ROUND_HALF_EVEN) for end in (low, high)}
        if len(texts) == 1:
            return f"{texts.pop():f}"
    return interval(float(low), float(high))


def enclosing(exact: Fraction | float, towards: float) -> float:
    """The float next to an exact number, or the one after it in a direction, to enclose it.

    Parameters
    ----------
    exact : Fraction or float
    towards : float
        -inf for a lower bound, inf for an upper one.

    Examples
    --------
    >>> third = Fraction(1, 3)
    >>> enclosing(third, -math.inf) < third < enclosing(third, math.inf)
    True
    """
    found = float(exact)
    encloses = found <= exact if towards < 0 else found >= exact
    return found if encloses else math.nextafter(found, towards)


def _resolved(width: float) -> int:
    """Place after the point of the first digit of a width."""
    return DECIMALS if width <= 0 else min(max(-math.floor(math.log10(width)), 0), DECIMALS)


def _room(value: float) -> int:
    """Places after the point that the significant digits of a value reach."""
    if value == 0:
        return DECIMALS
    return min(max(SIGNIFICANT - 1 - math.floor(math.log10(abs(value))), 0), DECIMALS)


def _fixed(value: Decimal, decimals: int, rounding: str) -> str:
    rounded = _rounded(value, decimals, rounding)
    return f"{rounded:f}" if rounded else "0"


def _rounded(value: Decimal, decimals: int, rounding: str) -> Decimal:
    """Value with so many decimals; zero without a sign."""
    return abs(r) if not (r := value.quantize(_unit(decimals), rounding, _exact)) else r


def _unit(decimals: int) -> Decimal:
    return Decimal(1).scaleb(-decimals)
