"""The random walk of the units in use around a threshold, by the roots of its kernels.

Close to its threshold C0 a large link with u units in use moves as the walk m = u - C0 on the
integers: by -A_j at rate b_j everywhere, by +A_j at rate lambda_j from m < 0, and by +1 at rate
Lambda = sum_j lambda_j from m >= 0, where jobs are downgraded. Its balance equations are
k^+(z) phi^+(z) + k^-(z) phi^-(z) = 0, phi^+(z) = sum_{m >= 0} pi(m) z^m and
phi^-(z) = sum_{m < 0} pi(m) z^m, with

    k^+(z) = Lambda (z - 1) + sum_j b_j (z^-A_j - 1),
    k^-(z) = sum_j lambda_j (z^A_j - 1) + sum_j b_j (z^-A_j - 1).

With d the largest step down and s the largest step up, z^d k^+(z) / (z - 1) has one root z1 > 1
and d - 1 roots p in the unit disc; z^d k^-(z) / (z - 1) has d roots r with |r| <= z2, of which
z2 < 1 is one, and s - 1 roots |q| >= 1. Both factors 1/(z - 1) are divided out by hand. As phi^+ is
analytic in |z| < z1, and phi^- in |z| > z2 and zero at infinity,

    phi^+(z) = h^+ prod_q (1 - z/q) / (1 - z/z1),
    phi^-(z) = h^- z^-1 prod_p (1 - p/z) / prod_r (1 - r/z).

The drift gives phi^-(1) = sum_j (A_j b_j - lambda_j) / sum_j lambda_j (A_j - 1), and thus h^+ and
h^-; that they balance at infinity is a check of all roots. Probabilities come from these products
by recursion, so that repeated roots do no harm.

Source: Fricker, Guillemin, Robert and Thompson, "Allocation schemes of resources with downgrading",
Adv. Appl. Prob. 49 (2017), Proposition 6, completed here by its constants. z1 and z2 are found by
bisection of monotone functions to the last digit, the other roots as eigenvalues of a companion
matrix; there is no iteration of one's own to stop.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from mdpcloud.errors import InputError, NoLimitError, SolveError

__all__ = ["WalkLaw", "fraction_below", "walk_law"]

LARGEST_ERROR = 1e-7  # of a law that is returned
NEIGHBOURHOOD = 200  # states on either side of 0 whose balance is checked

Floats = NDArray[np.float64]
Roots = NDArray[np.complex128]


@dataclass(frozen=True, eq=False)
class WalkLaw:
    """The invariant law of the walk.

    Attributes
    ----------
    below : float
        P(m < 0).
    mean : float
        E[m].
    z1, z2 : float
        pi(m) decays as z1^-m, z1 > 1, to the right and as z2^-m, z2 < 1, to the left.
    error : float
        Estimated absolute error of each probability: what the balance equations lack.
    """

    below: float
    mean: float
    z1: float
    z2: float
    error: float
    _above: Floats  # phi^+(z) (1 - z/z1), coefficients of z^0, z^1, ...
    _numerator: Floats  # of phi^-(z) in powers of 1/z
    _denominator: Floats

    def probabilities(self, first: int, last: int) -> Floats:
        """pi(m) for m = first, ..., last.

        Examples
        --------
        >>> law = walk_law((0.3, 0.4), (0.5, 0.2), (1, 2))
        >>> law.probabilities(-1, 1).round(12).tolist()
        [0.059795642192, 0.066394939081, 0.08163148975]
        """
        left = _series(self._numerator, self._denominator, max(-first, 0) + 1)
        right = _series(self._above, np.array([1.0, -1.0 / self.z1]), max(last, -1) + 1)
        both = np.concatenate([left[:0:-1], right])
        start = -max(-first, 0)
        return both[first - start : last - start + 1]


def fraction_below(
    arrival_rates: Sequence[float], departure_rates: Sequence[float], requirements: Sequence[int]
) -> float:
    """P(m < 0), from the drift of the walk.

    Raises
    ------
    NoLimitError
        When the walk is not ergodic; the message names the inequality that fails.
    """
    rates, freed, units = _arrays(arrival_rates, departure_rates, requirements)
    total, up, down = float(rates.sum()), float(rates @ units), float(freed @ units)
    if not total < down:
        raise NoLimitError(
            f"the walk drifts to the right: all arrivals together, {total:.10g}, must be less than "
            f"the units freed, {down:.10g}, and are {total - down:.3g} more"
        )
    if not down < up:
        raise NoLimitError(
            f"the walk drifts to the left: the units freed, {down:.10g}, must be less than the "
            f"units asked for, {up:.10g}, and are {down - up:.3g} more"
        )
    return float((down - total) / (rates @ (units - 1.0)))


def walk_law(
    arrival_rates: Sequence[float], departure_rates: Sequence[float], requirements: Sequence[int]
) -> WalkLaw:
    """The invariant law of the walk.

    Parameters
    ----------
    arrival_rates, departure_rates : sequence of float
        lambda_j and b_j = mu_j l_j >= 0, 1/time; any of them may vanish.
    requirements : sequence of int
        A_j >= 1.

    Raises
    ------
    NoLimitError
        When the walk is not ergodic.
    SolveError
        When the roots are not where they must be, or too inaccurate; the message says how many.

    Examples
    --------
    >>> law = walk_law((0.3, 0.4), (0.5, 0.2), (1, 2))
    >>> round(law.below, 12), round(law.mean, 9), round(law.z1, 12), round(law.z2, 12)
    (0.5, -1.893607309, 1.231925054711, 0.880909986859)
    """
    below = fraction_below(arrival_rates, departure_rates, requirements)
    rates, freed, units = _arrays(arrival_rates, departure_rates, requirements)
    up, down = _runs(rates, units), _runs(freed, units)
    total, d = float(rates.sum()), down.size
    z1, z2 = _right_decay(total, down), _left_decay(up, down)
    p, none = _split(np.append(-down[::-1], total), z1)
    r, q = _split(np.append(-down[::-1], up), z2)
    _check_counts(p, none, r, q, (d - 1, 0, d - 1, up.size - 1))
    r = np.append(r, z2)
    right = (1.0 - below) * (1.0 - 1.0 / z1) / _product(1.0 / q).sum()
    left = below * _product(r).sum() / _product(p).sum()
    law = WalkLaw(
        below=below,
        mean=_mean(below, z1, p, r, q),
        z1=z1,
        z2=z2,
        error=abs(total * right * z1 * np.prod(-1.0 / q).real / (up[-1] * left) - 1.0),
        _above=right * _product(1.0 / q),
        _numerator=np.append(0.0, left * _product(p)),
        _denominator=_product(r),
    )
    return _checked(law, rates, freed, units)


def _arrays(
    arrival_rates: Sequence[float], departure_rates: Sequence[float], requirements: Sequence[int]
) -> tuple[Floats, Floats, NDArray[np.int64]]:
    rates, freed = np.asarray(arrival_rates, float), np.asarray(departure_rates, float)
    units = np.asarray(requirements)
    if not rates.shape == freed.shape == units.shape or rates.ndim != 1:
        raise InputError(
            f"arrival_rates, departure_rates and requirements have {rates.size}, {freed.size} and "
            f"{units.size} entries; there must be one for each class"
        )
    for name, given in (("arrival_rates", rates), ("departure_rates", freed)):
        if not (np.isfinite(given).all() and (given >= 0.0).all() and given.any()):
            raise InputError(f"{name} are {given.tolist()}; they must be finite, >= 0, not all 0")
    if units.dtype.kind not in "iu" or (units < 1).any():
        raise InputError(f"requirements are {units.tolist()}; they must be integers >= 1")
    return rates, freed, units


def _runs(rates: Floats, units: NDArray[np.int64]) -> Floats:
    """Coefficients of sum_j rate_j (1 + z + ... + z^(A_j - 1)), to the largest A_j in force."""
    degree = int(units[rates > 0.0].max())
    return np.array([rates[units > k].sum() for k in range(degree)])


# --- roots ----------------------------------------------------------------------------------------


def _right_decay(total: float, down: Floats) -> float:
    """z1 > 1, the only positive root of Lambda = sum_j b_j (z^-1 + ... + z^-A_j)."""
    from scipy.optimize import brentq

    return float(1.0 / brentq(lambda w: w * _value(down, w) - total, 0.0, 1.0, xtol=1e-300))


def _left_decay(up: Floats, down: Floats) -> float:
    """z2 < 1, the only positive root of sum_j lambda_j (1 + ...) = sum_j b_j (z^-1 + ...)."""
    from scipy.optimize import brentq

    degree = down.size

    def balance(z: float) -> float:
        return z**degree * _value(up, z) - _value(down[::-1], z)

    return float(brentq(balance, 0.0, 1.0, xtol=1e-300))


def _value(coefficients: Floats, z: float) -> float:
    return float(np.polyval(coefficients[::-1], z))


def _split(coefficients: Floats, known: float) -> tuple[Roots, Roots]:
    """Roots of a polynomial in rising powers, but the known one, inside and outside of a circle.

    No root lies between the unit circle and the known one, so the circle is drawn between them; on
    the unit circle there are roots of k^- where all steps have a common divisor.
    """
    roots = np.roots(coefficients[::-1])
    others = np.delete(roots, np.argmin(np.abs(roots - known)))
    inside = np.abs(others) < np.sqrt(known)
    return others[inside], others[~inside]


def _check_counts(p: Roots, none: Roots, r: Roots, q: Roots, right: tuple[int, ...]) -> None:
    found = (p.size, none.size, r.size, q.size)
    if found != right:
        raise SolveError(
            f"of k^+ {found[0]} roots are found inside and {found[1]} outside the unit circle, "
            f"besides 1 and z1, and of k^- {found[2]} and {found[3]}, besides 1 and z2; the walk "
            f"has {right[0]}, {right[1]}, {right[2]} and {right[3]}: its rates are too far apart, "
            "or it hardly returns"
        )


def _product(roots: Roots) -> Floats:
    """Coefficients of prod (1 - root w), in rising powers of w.

    From its values on the unit circle, which the roots are near: multiplied one after the other,
    hundreds of factors make large terms that cancel.
    """
    count = roots.size + 1
    circle = np.exp(2j * np.pi * np.arange(count) / count)
    values = np.prod(1.0 - np.outer(circle, roots), axis=1)
    coefficients: Floats = np.fft.fft(values).real / count
    return coefficients


def _mean(below: float, z1: float, p: Roots, r: Roots, q: Roots) -> float:
    """E[m] = phi^+'(1) + phi^-'(1), by the logarithmic derivatives."""
    right = 1.0 / (z1 - 1.0) + np.sum(1.0 / (1.0 - q)).real
    left = np.sum(p / (1.0 - p)).real - np.sum(r / (1.0 - r)).real - 1.0
    return float((1.0 - below) * right + below * left)


# --- probabilities --------------------------------------------------------------------------------


def _series(numerator: Floats, denominator: Floats, terms: int) -> Floats:
    """The first coefficients of a quotient of polynomials in rising powers; denominator[0] = 1."""
    found = np.zeros(terms)
    found[: numerator.size] = numerator[:terms]
    back = denominator[:0:-1]
    for n in range(1, terms):
        reach = min(n, back.size)
        found[n] -= back[back.size - reach :] @ found[n - reach : n]
    return found


def _checked(law: WalkLaw, rates: Floats, freed: Floats, units: NDArray[np.int64]) -> WalkLaw:
    """The law with its error from the balance equations around 0."""
    reach = int(units.max())
    pi = law.probabilities(-NEIGHBOURHOOD - reach, NEIGHBOURHOOD + reach)
    inner = np.arange(reach, pi.size - reach)
    m = np.arange(pi.size) - NEIGHBOURHOOD - reach
    lack = -(rates.sum() + freed.sum()) * pi[inner] + rates.sum() * (pi * (m >= 0))[inner - 1]
    for rate, back, size in zip(rates, freed, units, strict=True):
        lack += rate * (pi * (m < 0))[inner - size] + back * pi[inner + size]
    error = max(law.error, float(np.abs(lack).max() / (rates.sum() + freed.sum())))
    if not (error <= LARGEST_ERROR and pi.min() >= -LARGEST_ERROR):
        raise SolveError(
            f"the roots of the walk are too inaccurate: its balance equations lack {error:.2g}, "
            f"and {LARGEST_ERROR:g} is allowed; its rates are too far apart",
            law,
        )
    return replace(law, error=error)
