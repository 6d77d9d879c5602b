"""What solvers know of a compiled model, whatever its form.

States are numbered 0 ... n-1. A *term* e of the optimality equation is an event or a control; it
has a rate r_e(x) and actions, and one action is chosen per state and term:

    g = c(x) + sum_e r_e(x) min_a [ k_a(x) + sum_j w_aj(x) ( h(x + s_aj) - h(x) ) ].

With a discount rate alpha the left side is alpha h(x).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from mdpcloud.engine.rows import Rows

__all__ = ["Choice", "Floats", "Mixture", "Problem", "TermInfo", "choice_dtype"]

Floats: TypeAlias = NDArray[np.float64]

Choice: TypeAlias = NDArray[np.signedinteger[Any]]
"""(n_terms, n): the action of each term in each state, -1 where the term's rate is zero."""

Mixture: TypeAlias = Sequence[Floats]
"""A randomised choice: per term, the probabilities (n_actions, n) of its actions in each state."""


@dataclass(frozen=True)
class TermInfo:
    """Name and actions of a term.

    Parameters
    ----------
    name : str
        Name of the event or control.
    actions : tuple of str
        Names of its actions, in the order of their numbers.
    decision : bool
        Whether some state with a positive rate has two allowed actions.
    """

    name: str
    actions: tuple[str, ...]
    decision: bool


def choice_dtype(terms: Sequence[TermInfo]) -> np.dtype[np.signedinteger[Any]]:
    """Integer type of a `Choice`: int8 where the numbers of the actions fit, else int32."""
    largest = max((len(term.actions) for term in terms), default=0)
    return np.dtype(np.int8) if largest <= 128 else np.dtype(np.int32)


class Problem(Protocol):
    """A compiled model.

    Attributes
    ----------
    n : int
        Number of states.
    rate_bound : float
        1.05 times the largest total rate out of a state (the uniformisation rate), 1/time.
    cost_scale : float
        The largest cost rate of the model, cost/time.
    discrete : bool
        Whether time is discrete (one step is one unit of time, all rates are 1).
    terms : tuple of TermInfo
        The terms, in the order of the rows of a `Choice`.
    """

    @property
    def n(self) -> int:
        """Number of states."""
        ...

    @property
    def rate_bound(self) -> float:
        """Uniformisation rate, 1/time."""
        ...

    @property
    def cost_scale(self) -> float:
        """Largest cost rate, cost/time."""
        ...

    @property
    def discrete(self) -> bool:
        """Whether time is discrete."""
        ...

    @property
    def terms(self) -> tuple[TermInfo, ...]:
        """Events and controls."""
        ...

    def pack(self, values: Floats) -> Floats:
        """Copy values (n,) into a new work array of the form's own layout."""
        ...

    def unpack(self, work: Floats) -> Floats:
        """Copy the values (n,) out of a work array."""
        ...

    def backup(
        self, h: Floats, out: Floats, *, step: float, shift: float = 0.0, discount: float = 0.0
    ) -> tuple[float, float]:
        """Sweep once over work arrays, fast.

        With v = c + sum_e r_e min_a [...] - discount h it sets out = h + step (v - shift) and
        returns the smallest and the largest v. Not certified: fast arithmetic in any order.
        """
        ...

    def certify(self, h: Floats, *, discount: float = 0.0) -> tuple[float, float]:
        """Return a number below every exact v(x) and one above every exact v(x).

        Raises
        ------
        SolveError
            If a value is not finite.
        """
        ...

    def greedy(self, h: Floats, margin: float) -> Choice:
        """Choose per state and term the first action within margin (cost/time) of the best."""
        ...

    def under(self, choice: Choice) -> Problem:
        """Build the uncontrolled problem in which every term takes the chosen action."""
        ...

    def rows(self) -> Rows:
        """List the whole problem as explicit rows."""
        ...

    def label(self, state: int) -> str:
        """Name of a state, for messages."""
        ...

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape of a table over the states: the lattice's where they fill it, else (n,)."""
        ...

    def state(self, index: Any) -> Any:
        """What a rule gets: a state (int) or several (slice)."""
        ...

    def allowed(self, e: int) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
        """Which actions of term e may be taken, (A, n), and where its rate is positive, (n,)."""
        ...

    def mixed(self, mixture: Mixture) -> Problem:
        """Build the uncontrolled problem of a randomised choice."""
        ...

    def sweeps(
        self,
        h: Floats,
        out: Floats,
        count: int,
        *,
        step: float,
        shift: float = 0.0,
        discount: float = 0.0,
        target: float = 0.0,
        recentre: bool = False,
    ) -> tuple[int, float, float, bool]:
        """Sweep up to count times, h and out in turn, until high - low <= target.

        Returns (sweeps done, low, high, whether the result is in out); with recentre the middle
        of the bounds is the shift of the next sweep.
        """
        ...

    # Of an uncontrolled problem:

    def chain(self) -> tuple[Any, Floats]:
        """Return generator (n, n) and cost rate (n,)."""
        ...

    @property
    def chain_roundings(self) -> int:
        """Most roundings between a rate of `chain` and the model's."""
        ...

    def flow(self, h: Floats, out: Floats, shift: float = 0.0) -> None:
        """Set out = Q h - shift."""
        ...

    def moves_from(self, state: int) -> tuple[int, NDArray[Any], Floats]:
        """Return the place of a state in work arrays, those of its targets, and the rates."""
        ...

    def cost_work(self) -> Floats:
        """Return the cost rate as a work array, 0 in cells outside the space."""
        ...

    def with_cost(self, values: Floats) -> Problem:
        """Build the same problem with the cost rate values (n,) alone."""
        ...
