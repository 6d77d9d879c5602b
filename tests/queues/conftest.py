"""Second methods for the queue tests: exact sums and 60-digit sums over the stationary law."""

from collections.abc import Callable
from fractions import Fraction
from typing import Any

import mpmath
import pytest


def _moments(servers: int, service: Any, patience: Any, arrivals: Any, last: int) -> dict[str, Any]:
    weights = [service * 0 + 1]
    for i in range(1, last + 1):
        deaths = min(i, servers) * service + max(i - servers, 0) * patience
        weights.append(weights[-1] * arrivals / deaths)
    total = sum(weights)

    def mean(f: Callable[[int], int]) -> Any:
        return sum(w * f(i) for i, w in enumerate(weights)) / total

    jobs = mean(lambda i: i)
    queue = mean(lambda i: max(i - servers, 0))
    return {
        "waiting": mean(lambda i: int(i >= servers)),
        "jobs": jobs,
        "queue": queue,
        "queue_slope": (mean(lambda i: i * max(i - servers, 0)) - jobs * queue) / arrivals,
        "busy_slope": (mean(lambda i: i * min(i, servers)) - jobs * (jobs - queue)) / arrivals,
        "full": weights[-1] / total,
        "full_slope": weights[-1] / total * (1 + last - jobs),
    }


@pytest.fixture(scope="session")
def exact_moments() -> Callable[..., dict[str, Any]]:
    """Moments of a node with room for `last` jobs in the arithmetic of the rates handed in."""
    return _moments


@pytest.fixture(scope="session")
def precise_moments() -> Callable[..., dict[str, Any]]:
    """Moments at 60 digits; `last` must be so large that the tail is below 1e-40."""

    def moments(servers: int, service: float, patience: float, arrivals: float, last: int) -> Any:
        with mpmath.workdps(60):
            rates = (
                mpmath.mpf(Fraction(r).numerator) / Fraction(r).denominator
                for r in (service, patience, arrivals)
            )
            return _moments(servers, *rates, last)

    return moments
