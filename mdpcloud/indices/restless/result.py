"""The index of an arm, or why it has none."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from mdpcloud.errors import NoIndexError
from mdpcloud.model.matrices import Floats

__all__ = ["ArmIndex", "IndexWarning", "PricePath", "Verdict", "Witness"]


class IndexWarning(UserWarning):
    """Part of an index is an artefact, or has fewer digits than it shows."""


class Verdict(StrEnum):
    """What is known of an arm's index."""

    INDEXABLE = "indexable"
    NOT_INDEXABLE = "not indexable"
    MULTICHAIN = "multichain"
    UNDECIDED = "undecided"


@dataclass(frozen=True)
class Witness:
    """Two prices that show that an arm is not indexable.

    Attributes
    ----------
    state : int
        A state that is passive at the lower price and active at the higher one.
    lower, upper : float
        The prices.
    margins : (float, float)
        By how much the action taken there is better than the other one, per unit of time, at the
        lower and at the upper price; both positive, from fresh solutions of both single-arm
        problems.
    policies : pair of (n,) bool arrays
        Where the optimal policies are active.
    """

    state: int
    lower: float
    upper: float
    margins: tuple[float, float]
    policies: tuple[NDArray[np.bool_], NDArray[np.bool_]]


@dataclass(frozen=True, eq=False, repr=False)
class PricePath:
    """The optimal policy of the single-arm problem at every price.

    Attributes
    ----------
    prices : (K,) array
        Prices at which a state changes its action, nondecreasing.
    states : (K,) integer array
        The states.
    active : (K,) bool array
        Whether the state becomes active; in an indexable arm none does.
    first : (n,) bool array
        Where the optimal policy is active below the least price.
    costs, work : (K+1,) arrays
        Long-run averages (discounted: totals from `start`) between the prices: at a price p with
        prices[k-1] <= p <= prices[k] the optimum is costs[k] + p work[k]. Their errors are not
        estimated; `mdpcloud.indices.relax` and `mdpcloud.evaluate` certify costs.
    marginal_cost, marginal_work : (K,) arrays
        By how much activity lowers the rest of the cost and raises the work in that state, per unit
        of time, under the policies on both sides; the price is their quotient.
    errors : (K,) array
        Estimates of the absolute errors of the prices.
    complete : bool
        Whether the path was followed to infinite price, and every price has a finite error.
    """

    prices: Floats
    states: NDArray[np.intp]
    active: NDArray[np.bool_]
    first: NDArray[np.bool_]
    costs: Floats
    work: Floats
    marginal_cost: Floats
    marginal_work: Floats
    errors: Floats
    complete: bool

    def __repr__(self) -> str:
        return f"<PricePath of {self.first.size} states with {self.prices.size} changes>"

    def policy(self, k: int) -> NDArray[np.bool_]:
        """Where the optimal policy is active between prices[k-1] and prices[k]."""
        active = self.first.copy()
        for state, on in zip(self.states[:k], self.active[:k], strict=True):
            active[state] = on
        return active


@dataclass(frozen=True, eq=False, repr=False)
class ArmIndex:
    """Verdict on an arm, and its index where there is one.

    Attributes
    ----------
    verdict : Verdict
        `indexable`; `not indexable`, with a `witness`; `multichain`, with an `offender`;
        `undecided` where rounding hides the answer.
    reason : str
        The verdict in a sentence.
    error : (n,) array or None
        Absolute error of the index.
    error_kind : {"bound", "estimate"}
        What `error` is.
    marginal_cost, marginal_work : (n,) arrays or None
        The marginal productivity form: the index is their quotient. They are what activity saves,
        and what it takes in work, per unit of time in that state, under the policy that is active
        there and where the index is larger.
    witness : Witness or None
    offender : (n,) bool array or None
        Where the policy whose chain has several recurrent classes is active.
    path : PricePath or None
    settled : (n,) bool array or None
        Of an arm cut from an unbounded one: whether the index is the same at twice the room.
    """

    verdict: Verdict
    reason: str
    values: Floats | None = None
    error: Floats | None = None
    error_kind: Literal["bound", "estimate"] = "estimate"
    marginal_cost: Floats | None = None
    marginal_work: Floats | None = None
    witness: Witness | None = None
    offender: NDArray[np.bool_] | None = None
    path: PricePath | None = None
    settled: NDArray[np.bool_] | None = None

    def __repr__(self) -> str:
        if self.values is None or self.error is None:
            return f"<ArmIndex: {self.verdict}, {self.reason}>"
        largest = float(np.max(self.error, initial=0.0))
        return (
            f"<ArmIndex: {self.verdict}, {self.values.size} states, "
            f"{self.error_kind} of errors {largest:.1e}>"
        )

    @property
    def is_indexable(self) -> bool:
        """Whether there is an index."""
        return self.verdict is Verdict.INDEXABLE

    @property
    def index(self) -> Floats:
        """The index (n,) in cost per unit of work; -inf (+inf) where the arm must be passive
        (active).

        Raises
        ------
        NoIndexError
            If there is none.
        """  # noqa: D205
        if self.values is None or not self.is_indexable:
            raise NoIndexError(f"the arm is {self.verdict}, it has no index: {self.reason}")
        return self.values
