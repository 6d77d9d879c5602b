"""Erlang's loss formula for many servers: its limit, and corrections with bounds of their errors.

With N servers and load rho per server, the probability B that all are busy tends to (1 - 1/rho)^+.
The next terms, with r = 1/rho,

    rho > 1    B = (1 - r) (1 + 1 / (N (rho - 1)^2)) + O(N^-2),
    rho = 1    1/B = sqrt(pi N / 2) + 2/3 + O(N^-1/2),
    rho < 1    B = rho^N e^{N (1 - rho)} / sqrt(2 pi N) (1 + O(1/N)),

are enclosed as follows. For rho > 1, 1/B = sum_k r^k prod_{i<k} (1 - i/N), and the product lies
between 1 - x and 1 - x + x^2/2 with x = k (k-1) / (2N). For rho = 1, 1/B = 2/3 + T/2 - 4 / (135 (N
+ k)) with 2/21 < k < 8/45 (Ramanujan's Q-function; Flajolet, Grabner, Kirschenhofer and Prodinger,
J. Comput. Appl. Math. 58 (1995) 103-116) and T = N! e^N / N^N, which Robbins' form of Stirling's
formula encloses: sqrt(2 pi N) e^{1/(12N+1)} < T < sqrt(2 pi N) e^{1/(12N)}. For rho < 1, B is the
Poisson probability of N over that of at most N, whose complement is below that of N times s / (1 -
s) with s = N rho / (N + 1).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

from mdpcloud.queues.border import checked_count, checked_number

__all__ = ["Correction", "corrected_blocking", "limiting_blocking"]

ROUNDING = 2.0**-53
TINY = 1e-300  # probabilities below have fewer digits, or none


@dataclass(frozen=True)
class Correction:
    """Erlang's loss probability by its limit and the next term.

    Attributes
    ----------
    regime : {"underload", "critical", "overload"}
    formula : str
    value : float
    lower, upper : float
        Certified bounds of the probability.
    """

    regime: str
    formula: str
    value: float
    lower: float
    upper: float

    @property
    def error(self) -> float:
        """Bound of the absolute error of the value."""
        return max(self.upper - self.value, self.value - self.lower)


def limiting_blocking(load: float) -> float:
    """Limit of the loss probability for many servers, (1 - 1/rho)^+.

    Parameters
    ----------
    load : float
        rho >= 0, per server.

    Examples
    --------
    >>> limiting_blocking(1.25), limiting_blocking(0.5)
    (0.2, 0.0)
    """
    rho = checked_number("load", load, zero=True)
    return (rho - 1.0) / rho if rho > 1.0 else 0.0


def corrected_blocking(servers: int, load: float) -> Correction:
    """Loss probability of N servers by the first correction of its limit.

    Parameters
    ----------
    servers : int
        N >= 1.
    load : float
        rho > 0, per server.

    Notes
    -----
    The bounds are wide, up to [(1 - 1/rho)^+, 1], where rho is so near to 1 that N (rho - 1)^2 is
    not large: there `mdpcloud.queues.erlang_b` takes N steps and is exact.

    Examples
    --------
    >>> found = corrected_blocking(1000, 1.2)
    >>> found.formula, round(found.value, 6), found.lower < 0.17061255408 < found.upper
    ('(1 - 1/rho) (1 + 1/(N (rho-1)^2))', 0.170833, True)
    """
    n = checked_count("servers", servers)
    rho = checked_number("load", load)
    corrected: Callable[[int, float], Correction] = _critical
    if rho != 1.0:
        corrected = _overload if rho > 1.0 else _underload
    return corrected(n, rho)


def _overload(n: int, rho: float) -> Correction:
    r, spare = 1.0 / rho, (rho - 1.0) / rho
    first = 1.0 / spare - r**2 / (n * spare**3)
    second = 24.0 * r**4 / spare**5 + 24.0 * r**3 / spare**4 + 4.0 * r**2 / spare**3
    upper = min(1.0 / first, 1.0) if first > 1.0 else 1.0
    lower = max(1.0 / (first + second / (8.0 * n**2)), spare)
    value = min(spare * (1.0 + (r / spare) ** 2 / n), 1.0)
    return _widened("overload", "(1 - 1/rho) (1 + 1/(N (rho-1)^2))", value, lower, upper, 30.0)


def _critical(n: int, _: float) -> Correction:
    root = math.sqrt(math.pi * n / 2.0)
    most = root * math.exp(1.0 / (12 * n)) + 2.0 / 3.0 - 4.0 / (135.0 * (n + 8.0 / 45.0))
    least = root * math.exp(1.0 / (12 * n + 1)) + 2.0 / 3.0 - 4.0 / (135.0 * (n + 2.0 / 21.0))
    formula, value = "1 / (sqrt(pi N / 2) + 2/3)", 1.0 / (root + 2.0 / 3.0)
    return _widened("critical", formula, value, 1.0 / most, min(1.0 / least, 1.0), 10.0)


def _underload(n: int, rho: float) -> Correction:
    # rho - 1 is exact from 1/2 on, and loses what there is of a small rho
    log = math.log1p(rho - 1.0) if rho >= 0.5 else math.log(rho)
    exponent = n * (log + (1.0 - rho))
    value = math.exp(exponent) / math.sqrt(2.0 * math.pi * n)
    least, most = (value * math.exp(-1.0 / (12 * n + end)) for end in (0, 1))
    ratio = n * rho / (n + 1.0)
    beyond = most * ratio / (1.0 - ratio)
    upper = min(most / (1.0 - beyond), 1.0) if beyond < 1.0 else 1.0
    formula, roundings = "rho^N e^(N (1-rho)) / sqrt(2 pi N)", 20.0 - 8.0 * n * math.log(rho)
    return _widened("underload", formula, value, least, upper, roundings)


def _widened(
    regime: str, formula: str, value: float, lower: float, upper: float, roundings: float
) -> Correction:
    """The bounds, widened by so many roundings; below `TINY` they are 0 and that."""
    slack = roundings * ROUNDING
    lower, upper = lower * (1.0 - slack), min(upper * (1.0 + slack), 1.0)
    return Correction(regime, formula, value, lower * (lower >= TINY), max(upper, TINY))
