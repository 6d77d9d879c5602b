"""Where functions of a moving point first fall to zero within a step of an integration.

A step is given by its polynomial, the point x(t). Every function, called a gap, is read at nine
Chebyshev nodes of the step; where the polynomial through these values has a minimum near zero
between them, it is read there too, so that a gap that falls and rises again is seen. The time is
that of a root, by Brent's method, to the last digits.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TypeAlias

import numpy as np
from numpy.polynomial.chebyshev import chebvander
from numpy.typing import NDArray

__all__ = ["first_hits"]

Array: TypeAlias = NDArray[np.float64]

RELATIVE = 4.0 * float(np.finfo(float).eps)  # accuracy of the time of a hit
TINY = 1e-300  # absolute, near time 0: rates may be large

# Every gap is read at the nodes of a step (0 to 1), and looked at between them by its polynomial.
NODES = 0.5 - 0.5 * np.cos(np.pi * np.arange(9) / 8.0)
BETWEEN = np.linspace(0.0, 1.0, 129)
INTERPOLATION = chebvander(2.0 * BETWEEN - 1.0, 8) @ np.linalg.inv(chebvander(2.0 * NODES - 1.0, 8))
NEAR_ZERO = 0.02  # of the range of a gap in a step: minima of the polynomial that are looked into


def first_hits(
    gaps: Mapping[str, Callable[[Array], float]],
    path: Callable[[float | Array], Array],
    begin: float,
    end: float,
    slack: float,
) -> tuple[float, list[str]]:
    """When the first of the gaps falls to zero in a step, and which of them do so then.

    Parameters
    ----------
    gaps : mapping of name to function of x (d,)
    path : function of t
        The point (d,), or points (d, k) at times (k,).
    begin, end : float
    slack : float
        How far below zero a gap may go without being left.

    Returns
    -------
    (time, names)
        The end and nothing where no gap falls below -slack.

    Examples
    --------
    >>> gaps = {"down": lambda x: 0.5 - x[0], "up": lambda x: x[0]}
    >>> time, names = first_hits(gaps, lambda t: np.array([t]), 0.0, 1.0, 1e-9)
    >>> round(time, 12), names
    (0.5, ['down'])
    """
    samples = begin + (end - begin) * NODES
    columns = path(samples).T
    found = {}
    for name, gap in gaps.items():
        values = np.array([gap(x) for x in columns])
        time = _fall(lambda t, gap=gap: gap(path(t)), samples, values, slack)  # type: ignore[misc]
        if time is not None:
            found[name] = time
    if not found:
        return end, []
    first = min(found.values())
    near = slack * max(1.0, end - begin)
    return first, [name for name, time in found.items() if time <= first + near]


def _fall(
    gap: Callable[[float], float], samples: Array, values: Array, slack: float
) -> float | None:
    """When a gap that goes below -slack in a step falls to zero; None where it does not."""
    times, values = _with_minima(gap, samples, values, slack)
    below = np.flatnonzero(values < -slack)
    if not below.size:
        return None
    last = int(below[0])
    above = np.flatnonzero(values[:last] > 0.0)
    if not above.size:  # it has been at zero all the time
        return float(times[max(last - 1, 0)])
    from scipy.optimize import brentq

    first = int(above[-1])
    return float(brentq(gap, times[first], times[last], xtol=TINY, rtol=RELATIVE))


def _with_minima(
    gap: Callable[[float], float], samples: Array, values: Array, slack: float
) -> tuple[Array, Array]:
    """Samples of a gap, and its minima between them that come near zero."""
    fine = INTERPOLATION @ values
    reach = float(np.ptp(fine))
    inner = fine[1:-1]
    low = (inner < fine[:-2]) & (inner <= fine[2:]) & (inner <= NEAR_ZERO * reach)
    if reach <= slack or not low.any():
        return samples, values
    from scipy.optimize import minimize_scalar

    length = samples[-1] - samples[0]
    minima = []
    for i in np.flatnonzero(low):
        around = samples[0] + length * BETWEEN[[i, i + 2]]
        minima.append(float(minimize_scalar(gap, bounds=tuple(around), method="bounded").x))
    times = np.concatenate([samples, minima])
    order = np.argsort(times, kind="stable")
    return times[order], np.concatenate([values, [gap(t) for t in minima]])[order]
