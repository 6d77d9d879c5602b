"""Bounds on accumulated rounding.

Source: Higham, Accuracy and Stability of Numerical Algorithms, 2nd edition, section 3.1.
"""

from __future__ import annotations

__all__ = ["UNIT_ROUNDOFF", "gamma"]

UNIT_ROUNDOFF = 2.0**-53


def gamma(k: int) -> float:
    """Return gamma_k = k u / (1 - k u).

    A product of k factors (1 + delta)^(+-1) with |delta| <= u differs from 1 by at most gamma_k.

    Parameters
    ----------
    k : int
        Number of roundings, below 2**26 (so that second-order terms stay below one rounding).

    Examples
    --------
    >>> gamma(2) > 2 * UNIT_ROUNDOFF
    True
    """
    if not 0 <= k < 2**26:
        raise ValueError(f"{k} roundings; a bound is given for 0 to {2**26 - 1}")
    return k * UNIT_ROUNDOFF / (1.0 - (k + 1) * UNIT_ROUNDOFF)
