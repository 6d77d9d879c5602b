"""Which method sums the products of a chain: by the work it takes and what rounding leaves.

The products of uniformisation cost about (moves + states) each and round by some units of 1e-16
each; a doubling costs n^3. Small chains are doubled where that is less work or where the products
would round too much. Where neither can be done the request is refused before anything is computed.
"""

from __future__ import annotations

import math

import numpy as np

from mdpcloud.engine.problem import Floats
from mdpcloud.errors import SolveError
from mdpcloud.solve.transient.doubling import LARGEST_MEAN, sum_by_doubling
from mdpcloud.solve.transient.products import Sums, sum_products
from mdpcloud.solve.transient.steps import Steps

__all__ = ["DOUBLING_STATES", "method_sums"]

DOUBLING_STATES = 1000
"""Largest chain that is doubled (half a second per doubling, 32 MB per matrix)."""

MOST_WORK = 1e12
"""Products times (moves + states); about a quarter of an hour."""

MOST_DOUBLED = 1e20
"""Products that a doubling may stand for; its matrices start with errors near 1e-30."""

MOST_PRODUCTS = 5e7
"""What is kept of each of them takes some bytes."""

OVERHEAD = 100.0
"""Of one product, in multiplications."""

ROUNDING_SHARE = 0.6
"""Part of the tolerance that rounding may take."""


def method_sums(
    steps: Steps,
    start: Floats,
    times: Floats,
    costs: Floats,
    tolerance: float,
    *,
    forward: bool = True,
) -> tuple[str, Sums]:
    """Return "uniformisation" or "doubling", and its `Sums`; parameters as of `sum_products`.

    Raises
    ------
    SolveError
        When too many products would be needed; the message says how many.
    """
    longest = float(times.max())
    products = steps.needed(longest)
    rounding = steps.rounding(products)
    work = products * (steps.rates.nnz + steps.n + OVERHEAD)
    feasible = rounding <= ROUNDING_SHARE * tolerance and work <= MOST_WORK
    feasible = feasible and products <= MOST_PRODUCTS
    small = steps.n <= DOUBLING_STATES and products <= MOST_DOUBLED
    if small and not (feasible and work <= _doubling_work(steps, longest)):
        return "doubling", sum_by_doubling(steps, start, times, costs, forward=forward)
    if not feasible:
        raise SolveError(_refusal(steps, longest, products, work, rounding))
    return "uniformisation", sum_products(steps, start, times, costs, tolerance, forward=forward)


def _doubling_work(steps: Steps, longest: float) -> float:
    doublings = math.log2(max(2.0, steps.rate * longest / LARGEST_MEAN))
    return doublings * float(np.maximum(steps.n, 40)) ** 3


def _refusal(steps: Steps, longest: float, products: float, work: float, rounding: float) -> str:
    what = (
        f"{products:.3g} steps"
        if steps.discrete
        else f"a largest rate of {steps.rate:.4g} and the time {longest:.4g} need {products:.3g} "
        "products"
    )
    if steps.n <= DOUBLING_STATES:
        return f"{what}, above the limit {MOST_DOUBLED:g} of what can be computed with certainty"
    if products > MOST_PRODUCTS:
        why = f"above the limit {MOST_PRODUCTS:g}"
    elif work > MOST_WORK:
        why = f"of {steps.rates.nnz + steps.n} multiplications each, above the limit {MOST_WORK:g}"
    else:
        least = rounding / ROUNDING_SHARE
        why = (
            f"whose rounding may reach {rounding:.2g}; a tolerance of {1.01 * least:.2g} can be met"
        )
    return (
        f"{what}, {why}; chains of up to {DOUBLING_STATES} states are solved whatever their rates"
    )
