"""Laws and accumulated costs of small chains with many digits."""

from fractions import Fraction

import mpmath
import numpy as np

DIGITS = 50


def generator(rates):
    """Q of rates off the diagonal, with a diagonal that no rounding touches."""
    n = len(rates)
    q = mpmath.matrix(n, n)
    for x in range(n):
        for y in range(n):
            if x != y:
                q[x, y] = mpmath.mpf(float(rates[x][y]))
                q[x, x] -= q[x, y]
    return q


def exact_law(rates, start, t, cost=None):
    """Law (n,) at time t and the cost over [0, t], as numbers of mpmath.

    The integral is a column of the exponential of [[Q, c], [0, 0]] (Van Loan 1978).
    """
    n = len(rates)
    with mpmath.workdps(DIGITS):
        power = exact_power(rates, t, cost)
        row = mpmath.matrix([[mpmath.mpf(float(p)) for p in start] + [0]]) * power
        return [row[0, y] for y in range(n)], row[0, n]


def exact_power(rates, t, cost=None):
    """Exponential of t [[Q, c], [0, 0]], (n + 1, n + 1)."""
    n = len(rates)
    with mpmath.workdps(DIGITS):
        big = mpmath.matrix(n + 1, n + 1)
        big[:n, :n] = generator(rates)
        for x in range(n):
            big[x, n] = 0 if cost is None else mpmath.mpf(float(cost[x]))
        return mpmath.expm(big * mpmath.mpf(float(t)), method="taylor")


def exact_steps(matrix, start, steps, cost=None):
    """The same in discrete time, as fractions."""
    law = [Fraction(float(p)) for p in start]
    n, spent = len(law), Fraction(0)
    for _ in range(steps):
        if cost is not None:
            spent += sum(p * Fraction(float(c)) for p, c in zip(law, cost, strict=True))
        law = [sum(law[x] * matrix[x][y] for x in range(n)) for y in range(n)]
    return law, spent


def distance(law, exact):
    """Sum of the differences."""
    with mpmath.workdps(DIGITS):
        return sum(abs(mpmath.mpf(float(a)) - b) for a, b in zip(law, exact, strict=True))


def dense(chain):
    """Rates of a chain as a dense array."""
    return np.asarray(chain.rates.todense())
