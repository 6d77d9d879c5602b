"""Results: what was found, between which bounds, and how."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mdpcloud.criteria import AverageCost, Criterion
from mdpcloud.errors import InputError, MultichainError, SolveError
from mdpcloud.model.policy import Policy
from mdpcloud.solve.limits import Status

__all__ = ["Evaluation", "Result", "Solution", "insist"]

Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False, repr=False)
class Result:
    """What a solution and an evaluation have in common.

    Attributes
    ----------
    gains : (n,) array
        Long-run average cost per unit of time from each state (reward, for a model given by
        rewards); empty under the other criteria.
    bounds : (lower, upper)
        Certified, rounding included. Average cost: two numbers that hold from every state; under
        another criterion, or where the gain depends on the state: two arrays (n,).
    values : (n,) array
        Average cost: relative values, 0 at a likely state. Else the expected cost from each state.
    policy : Policy
        A `TimedPolicy` for a finite horizon.
    status : Status
    iterations : int
        Sweeps, products with the generator and direct solves together.
    solver : str
    elapsed : float
        Seconds.
    criterion : AverageCost, Discounted, FiniteHorizon or TotalCost
    reason : str
        Why this solver was chosen, where several were possible.
    """

    gains: Floats
    bounds: tuple[Any, Any]
    values: Floats
    policy: Policy
    status: Status
    iterations: int
    solver: str
    elapsed: float
    criterion: Criterion = field(default_factory=AverageCost)
    reason: str = ""

    def __repr__(self) -> str:
        """What was found, without its arrays."""
        lower, upper = (np.atleast_1d(bound) for bound in self.bounds)
        what = "bounds" if lower.size == 1 else f"bounds of {lower.size} states"
        return (
            f"{type(self).__name__}({type(self.criterion).__name__}, {what} "
            f"[{lower.min():.12g}, {upper.max():.12g}], {self.status.name}, solver={self.solver}, "
            f"iterations={self.iterations})"
        )

    @property
    def converged(self) -> bool:
        """Whether the certified bounds meet the tolerance."""
        return self.status is Status.CONVERGED

    @property
    def gain(self) -> float:
        """Long-run average cost per unit of time, where it is the same from every state.

        Raises
        ------
        MultichainError
            When it depends on the initial state; see ``gains``.
        InputError
            Under another criterion, where the answer is ``values``.
        """
        if not isinstance(self.criterion, AverageCost):
            raise InputError(f"{type(self.criterion).__name__} has no gain; the answer is .values")
        lower, upper = self.bounds
        if np.ndim(lower) and float(np.max(lower)) > float(np.min(upper)):
            low, high = int(np.argmin(self.gains)), int(np.argmax(self.gains))
            raise MultichainError(
                f"the gain depends on the initial state: {self.gains[low]:.6g} from state {low}, "
                f"{self.gains[high]:.6g} from state {high}; see .gains"
            )
        return float(self.gains[0])

    def save(self, path: str | Path) -> None:
        """Write to one file (npz with a JSON header); `mdpcloud.load_solution` reads it."""
        from mdpcloud.solve.storage import save

        save(self, path)


@dataclass(frozen=True, eq=False, repr=False)
class Solution(Result):
    """The optimum of a model; see the attributes of `mdpcloud.solve.result.Result`."""


@dataclass(frozen=True, eq=False, repr=False)
class Evaluation(Result):
    """The cost of a policy; see the attributes of `mdpcloud.solve.result.Result`.

    Attributes
    ----------
    measures : mapping
        Name to certified (lower, upper) of the long-run average of each of the model's measures;
        arrays (n,) where the gain depends on the state.
    """

    measures: Mapping[str, tuple[Any, Any]] = field(default_factory=dict)


def insist(result: Solution | Evaluation, tolerance: float, measure: str = "") -> None:
    """Raise `SolveError`, which carries the result, when it did not meet the tolerance.

    Parameters
    ----------
    result : Solution or Evaluation
    tolerance : float
    measure : str
        Name of the measure that did not, where the cost did.
    """
    if result.converged:
        return
    bounds: Any = getattr(result, "measures", {}).get(measure, result.bounds)
    lower, upper = (np.atleast_1d(bound) for bound in bounds)
    gap = np.subtract(upper, lower, out=np.zeros(lower.shape), where=lower != upper)
    state = int(np.argmax(gap))
    where = f" in state {state}" if lower.size > 1 else ""
    what = f"measure {measure!r}: " if measure else ""
    raise SolveError(
        f"{what}{result.status.value} after {result.iterations} iterations "
        f"({result.elapsed:.3g} s): tolerance {tolerance:g} asked, "
        f"{_reached(lower, upper, gap)}; bounds [{lower[state]:.12g}, {upper[state]:.12g}]{where}",
        result,
    )


def _reached(lower: Floats, upper: Floats, gap: Floats) -> str:
    """The tolerance that the bounds meet."""
    sizes = np.minimum(np.abs(lower), np.abs(upper))
    size = float(sizes[np.isfinite(sizes)].max(initial=0.0))
    width = float(gap.max())
    return f"about {1.1 * width / size:.1g} reached" if width < size else "none reached"
