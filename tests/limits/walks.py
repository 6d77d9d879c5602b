"""Pairs of saturated centres, and what their jobs meet."""

from __future__ import annotations

from typing import Any

from hypothesis import reject
from hypothesis import strategies as st

from mdpcloud.limits.offloading.boundary_value import drifts


@st.composite
def saturated_pairs(draw: st.DrawFn, *, both: bool = False, margin: float = 1e-4) -> Any:
    """Arrival rates, capacities and probabilities in regime E; margin of the drifts, of 1.

    Where ``both``, each centre is saturated even without the other.
    """
    capacities = draw(st.tuples(st.floats(0.1, 10), st.floats(0.1, 10)))
    probabilities = draw(st.tuples(st.floats(0, 1), st.floats(0, 1)))
    excess = draw(st.tuples(st.floats(-1, 10), st.floats(0.01, 10)))
    if both:
        excess = max(excess[0], 0.01), excess[1]
    arrivals = capacities[0] + excess[0], capacities[1] + excess[1]
    if draw(st.booleans()):
        arrivals, capacities, probabilities = arrivals[::-1], capacities[::-1], probabilities[::-1]
    least = min(*drifts(arrivals, capacities, probabilities), *arrivals)
    if least <= margin * (sum(arrivals) + sum(capacities)):
        reject()
    return arrivals, capacities, probabilities


def blocking(pair: Any, found: Any) -> tuple[float, ...]:
    """Probability that a job of each class is lost."""
    return tuple(
        (1 - p) * each + p * found.both for p, each in zip(pair[2], found.each, strict=True)
    )
