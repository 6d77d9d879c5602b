"""The last step of every solver: bounds that hold whatever the rounding.

For any h and the right-hand side v of the optimality equation, min v <= g <= max v (Odoni 1969),
and the policy that is greedy for h has a gain of at most max v. With a discount rate alpha the
right-hand side less alpha h bounds the values: h + min v / alpha <= V <= h + max v / alpha
(MacQueen 1966).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from mdpcloud.engine.problem import Choice, Floats

__all__ = ["Certificate", "certify", "certify_policy"]

TIE = 1e-3  # actions whose cost rates differ by this part of the bounds' width are equal


@dataclass(frozen=True, eq=False)
class Certificate:
    """Bounds of the right-hand side, and the policy they hold for.

    Attributes
    ----------
    low, high : float
        The optimum's right-hand side lies above low; that of the policy below high. Cost/time.
    choice : array
        The policy: greedy, the first action among equals.
    """

    low: float
    high: float
    choice: Choice

    @property
    def width(self) -> float:
        """high - low."""
        return self.high - self.low


def certify(problem: Any, h: Floats, discount: float = 0.0) -> Certificate:
    """Certify the greedy policy of h on a problem with decisions."""
    low, high = problem.certify(h, discount=discount)
    margin = TIE * max(high - low, 0.0) + rounding_margin(problem, h)
    choice = problem.greedy(h, margin)
    return Certificate(low, certify_policy(problem.under(choice), h, discount)[1], choice)


def certify_policy(fixed: Any, h: Floats, discount: float = 0.0) -> tuple[float, float]:
    """Certified bounds of an uncontrolled problem."""
    low, high = fixed.certify(h, discount=discount)
    return float(low), float(high)


def rounding_margin(problem: Any, h: Floats) -> float:
    """How far the values of equal actions may differ by rounding, cost/time."""
    lowest = float(h.min())
    largest = float(np.max(h, where=h < 1e200, initial=lowest)) - lowest
    return 8.0 * 2.0**-53 * float(problem.rate_bound) * largest
