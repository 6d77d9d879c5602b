"""Small fleets of arms solved exactly, as one Markov decision process.

The state of the fleet is the state of every arm; its decision is which `budget` arms are active. In
discrete time all arms step together,

    P_a((x_1, ..., x_N), (y_1, ..., y_N)) = prod_k P_(a_k)(x_k, y_k),

in continuous time they move one at a time, arm k at the rates of its own action. The joint model is
an ordinary `TabularModel` or `Model`, to be solved, evaluated or simulated like any other.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mdpcloud.errors import InputError
from mdpcloud.indices.fleets.arms import counted_arms
from mdpcloud.indices.restless.arm import Arm
from mdpcloud.indices.restless.result import ArmIndex
from mdpcloud.indices.restless.whittle import whittle
from mdpcloud.model.matrices import Floats, as_floats

__all__ = ["Fleet", "fleet"]

MOST_STATES = 1_000_000
MOST_SETS = 10_000  # sets of active arms


@dataclass(frozen=True, eq=False, repr=False)
class Fleet:
    """A few arms together; `fleet` builds it.

    Attributes
    ----------
    arms : tuple of Arm
        One by one, each as often as it occurs.
    budget : int
        How many arms are active.
    sets : (A, N) bool array
        Which arms are active under each action of the joint model, in its order.
    model : TabularModel or Model
        The joint model. State (x_1, ..., x_N) has the number that `numpy.ravel_multi_index` gives
        it for `shape`.
    """

    arms: tuple[Arm, ...]
    budget: int
    sets: NDArray[np.bool_]
    model: Any

    def __repr__(self) -> str:
        return f"<Fleet of {len(self.arms)} arms, {math.prod(self.shape)} joint states>"

    @property
    def shape(self) -> tuple[int, ...]:
        """Number of states of each arm."""
        return tuple(one.n for one in self.arms)

    @property
    def _distinct(self) -> list[Arm]:
        """Each arm once, in the order given."""
        return list({id(one): one for one in self.arms}.values())

    def policy(self, indices: Sequence[Any], *, ties: str | Sequence[int] = "first") -> Any:
        """The index policy: the arms with the largest indices of their states are active.

        Parameters
        ----------
        indices : sequence of ArmIndex or (n,) arrays
            One for each arm, or for each distinct one, in the order given.
        ties : {"first", "last"} or sequence of int
            Which of arms with equal indices comes first: the one that was given first or last, or
            the earlier one in an order of all arms.

        Returns
        -------
        Policy
            Of the joint model. Where at most `budget` arms may be active, those with a negative
            index are not.

        Raises
        ------
        InputError
            If indices or ties do not fit the fleet.
        """
        from mdpcloud.engine import compile_model
        from mdpcloud.engine.rules import policy_for

        order = _order(ties, len(self.arms))
        table = self._tables(indices)
        priorities = np.stack(
            [
                np.broadcast_to(table[k].reshape(_along(k, self.shape)), self.shape).ravel()
                for k in order
            ]
        )
        ranks = np.argsort(-priorities, axis=0, kind="stable")[: self.budget]
        chosen = np.take_along_axis(priorities, ranks, axis=0)
        codes = np.left_shift(1, np.asarray(order, np.int64))[ranks]
        if self.sets.shape[0] > math.comb(len(self.arms), self.budget):
            codes = np.where(chosen >= 0.0, codes, 0)
        own = self.sets @ np.left_shift(1, np.arange(len(self.arms), dtype=np.int64))
        sorting = np.argsort(own)
        place = np.searchsorted(own, codes.sum(axis=0), sorter=sorting)
        problem = compile_model(self.model)
        return policy_for(problem, {problem.terms[0].name: sorting[place]})

    def _tables(self, indices: Sequence[Any]) -> list[Floats]:
        """One index (n,) per arm."""
        alone = isinstance(indices, ArmIndex) or (
            isinstance(indices, np.ndarray) and indices.ndim < 2
        )
        if alone or not isinstance(indices, Iterable):
            raise InputError("indices must be a list with the index of each arm, or distinct arm")
        given = list(indices)
        if len(given) != len(self.arms):
            distinct = [id(one) for one in self._distinct]
            if len(given) != len(distinct):
                raise InputError(
                    f"{len(given)} indices are given; the fleet has {len(self.arms)} arms, "
                    f"{len(distinct)} of them distinct"
                )
            given = [given[distinct.index(id(one))] for one in self.arms]
        return [
            _table(one, arm, k) for k, (one, arm) in enumerate(zip(given, self.arms, strict=True))
        ]

    def policy_cost(
        self,
        indices: Sequence[Any] | None = None,
        criterion: Any = None,
        *,
        ties: str | Sequence[int] = "first",
        tolerance: float = 1e-10,
    ) -> Any:
        """The cost of the index policy, with certified bounds.

        Parameters
        ----------
        indices, ties
            As in `policy`; without indices those of Whittle.
        criterion : AverageCost or Discounted, optional
            The average cost by default.
        tolerance : float
            Relative.

        Returns
        -------
        Evaluation
            Costs, also for arms given by rewards: those are negative costs.

        Raises
        ------
        NoIndexError
            If an arm has no Whittle index, and none are given.
        """
        from mdpcloud.solve import AverageCost, evaluate

        criterion = AverageCost() if criterion is None else criterion
        if indices is None:
            indices = [whittle(one, criterion) for one in self._distinct]
        policy = self.policy(indices, ties=ties)
        return evaluate(self.model, policy, criterion, tolerance=tolerance)

    def optimum(self, criterion: Any = None, *, tolerance: float = 1e-8) -> Any:
        """The least cost of the fleet under any rule, with certified bounds.

        Parameters
        ----------
        criterion : AverageCost or Discounted, optional
            The average cost by default.
        tolerance : float
            Relative.

        Returns
        -------
        Solution
        """
        from mdpcloud.solve import AverageCost, solve

        criterion = AverageCost() if criterion is None else criterion
        return solve(self.model, criterion, tolerance=tolerance)


def fleet(arms: Any, budget: int, *, exactly: bool = True) -> Fleet:
    """Build the joint model of a small fleet.

    Parameters
    ----------
    arms : sequence of arms or of pairs (arm, count), or mapping from arm to count
        As in `relax`; activity must be one unit of work, passivity none. All arms are active or
        passive at the same time as decided; at most 10^6 joint states.
    budget : int
        How many arms are active at any time.
    exactly : bool
        Whether exactly so many are active, or at most.

    Returns
    -------
    Fleet

    Raises
    ------
    InputError
        If there are too many joint states or sets of active arms, or arms that must be active or
        passive leave no allowed set.

    Examples
    --------
    Two machines, one of which can be repaired at a time:

    >>> import mdpcloud as mc
    >>> wear, repair = [[-3, 3], [0, 0]], [[-3, 3], [5, -5]]
    >>> machine = mc.indices.rate_arm(wear, repair, [0, 1], [0, 1])
    >>> two = fleet([(machine, 2)], 1)
    >>> round(two.optimum().gain, 9), round(two.policy_cost().gain, 9)
    (0.904109589, 0.904109589)
    """
    from mdpcloud.indices.fleets.model import rates_model, steps_model

    listed = tuple(one for one, count in counted_arms(arms) for _ in range(count))
    _check_size(listed)
    for k, one in enumerate(listed):
        _check_work(one, k)
    sets = _active_sets(len(listed), budget, exactly)
    build = steps_model if listed[0].discrete else rates_model
    return Fleet(listed, int(budget), sets, build(listed, sets))


def _check_size(arms: Sequence[Arm]) -> None:
    states = math.prod(one.n for one in arms)
    if states > MOST_STATES:
        raise InputError(
            f"{len(arms)} arms have {states:.3g} joint states; at most {MOST_STATES:.0e} can be "
            "solved exactly. mdpcloud.indices.relax bounds fleets of any size"
        )


def _check_work(one: Arm, k: int) -> None:
    """Refuse work other than 0 passive and 1 active."""
    passive = np.where(one.forced, 1.0, 0.0)
    active = np.where(one.free | one.forced, 1.0, 0.0)
    wrong = (one.work != np.stack([passive, active])).any(axis=0)
    if wrong.any():
        state = int(np.argmax(wrong))
        raise InputError(
            f"in state {one.label(state)} arm {k} does work {one.work[0, state]:g} passive and "
            f"{one.work[1, state]:g} active; in a fleet it must be 0 and 1"
        )


def _active_sets(n: int, budget: Any, exactly: bool) -> NDArray[np.bool_]:
    """All sets of `budget` arms, or of at most so many."""
    if isinstance(budget, bool) or not isinstance(budget, int | np.integer):
        raise InputError(f"budget is {budget!r}; it must be a whole number of arms")
    if not 0 <= budget <= n:
        raise InputError(f"budget is {budget}; there are {n} arms")
    sizes = [int(budget)] if exactly else range(int(budget) + 1)
    if sum(math.comb(n, size) for size in sizes) > MOST_SETS:
        raise InputError(f"{n} arms have more than {MOST_SETS} sets of {budget}; take fewer arms")
    chosen = [members for size in sizes for members in itertools.combinations(range(n), size)]
    sets = np.zeros((len(chosen), n), np.bool_)
    for row, members in zip(sets, chosen, strict=True):
        row[list(members)] = True
    return sets


def _order(ties: str | Sequence[int], n: int) -> list[int]:
    if isinstance(ties, str):
        if ties not in ("first", "last"):
            raise InputError(f'ties is {ties!r}; it must be "first", "last" or an order of arms')
        return list(range(n)) if ties == "first" else list(range(n))[::-1]
    order = [int(k) for k in ties]
    if sorted(order) != list(range(n)):
        raise InputError(f"ties is {ties!r}; as an order it must hold 0 to {n - 1} once each")
    return order


def _along(k: int, shape: tuple[int, ...]) -> tuple[int, ...]:
    return tuple(-1 if axis == k else 1 for axis in range(len(shape)))


def _table(given: Any, arm: Arm, k: int) -> Floats:
    table = given.index if isinstance(given, ArmIndex) else as_floats(given, f"indices[{k}]")
    if table.shape != (arm.n,):
        raise InputError(f"the index of arm {k} has shape {table.shape}; ({arm.n},) is needed")
    if np.isnan(table).any():
        raise InputError(
            f"the index of arm {k} in state {arm.label(int(np.isnan(table).argmax()))} is nan"
        )
    return table
