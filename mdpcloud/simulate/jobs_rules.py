"""Rules of routing as the kernels of the job-level simulation read them.

A rule that compares prices becomes a tournament and tables of prices that grow with the jobs; fixed
probabilities a row of their sums; any other function of the state is asked once per state, and its
answers are kept in a hash table, which is emptied when it has become too large.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from numbers import Real
from typing import Any, Protocol

import numpy as np

from mdpcloud.errors import InputError
from mdpcloud.model.policy import Policy
from mdpcloud.model.timed_policy import TimedPolicy
from mdpcloud.simulate.jobs_actions import Actions, some
from mdpcloud.simulate.jobs_codes_kernels import INDEX, MIXTURE, NONE, RULE, SPLIT
from mdpcloud.simulate.jobs_rules_kernels import remember
from mdpcloud.simulate.jobs_state import ArrayOfFloats, ArrayOfInts, Choice
from mdpcloud.simulate.separable import SeparableRule
from mdpcloud.simulate.tournament_kernels import tournament

__all__ = ["ARRIVAL", "Chooser", "chooser_of"]

ARRIVAL = "arrival"
FIRST_PRICES = 64  # jobs in the first table of a node
FIRST_ANSWERS = 1 << 10
MOST_KEYS = 1 << 24  # numbers of jobs in a table of answers: 64 MB


class Chooser(Protocol):
    """A rule, for the kernels; a path calls it with its own arrays."""

    def start(self) -> Choice:
        """The arrays of the empty system."""
        ...

    def provide(self, choice: Choice, state: ArrayOfInts, k: int) -> Choice:
        """The arrays with what was missing: prices of node k, or the answer in a state."""
        ...


def chooser_of(rule: Any, rooms: Sequence[int | None]) -> Chooser:
    """What a rule is to the kernels.

    Parameters
    ----------
    rule : SeparableRule, Policy, mapping, function of x, or name or number of an action
        A mapping is from actions to probabilities, numbers or functions of x; with numbers, jobs
        drawn for a full room go outside. Actions are "outside" and "node 0", "node 1" ...; a
        mapping from "arrival" to any of these is as good.
    rooms : sequence of int or None
        Most jobs at each node.

    Raises
    ------
    InputError
        When the rule names actions that do not exist, its probabilities are none, or it depends on
        time.
    """
    own = getattr(rule, "policy", None)
    rule = own if isinstance(own, Policy | TimedPolicy) else rule
    if isinstance(rule, TimedPolicy):
        raise InputError("the policy changes with time; its part at a time is policy.at(time)")
    if isinstance(rule, Mapping) and list(rule) == [ARRIVAL]:
        return chooser_of(rule[ARRIVAL], rooms)
    actions = Actions(rooms)
    if isinstance(rule, Policy):
        return _of_policy(rule, actions)
    if isinstance(rule, SeparableRule):
        return _Prices(rule, len(rooms))
    if isinstance(rule, Mapping):
        return _of_probabilities(rule, actions)
    if callable(rule):
        return _Asked(len(rooms), RULE, lambda state: actions.answer(rule, state))
    number = actions.number(rule, "the rule")
    return _Asked(len(rooms), RULE, lambda _: number)


def _of_probabilities(rule: Mapping[Any, Any], actions: Actions) -> Chooser:
    parts = {actions.number(key, "the rule's mapping"): value for key, value in rule.items()}
    n = len(actions.rooms)
    if any(callable(value) for value in parts.values()):
        return _Asked(n, MIXTURE, lambda state: actions.row(parts, state))
    weights = np.zeros(n + 1)
    for number, value in parts.items():
        if isinstance(value, bool) or not isinstance(value, Real):
            raise InputError(
                f"the probability of {actions.names[number]!r} is {value!r}; it must be a number "
                "or a function of x"
            )
        weights[number] = value
    return _Split(actions.checked(weights, ""))


def _of_policy(policy: Policy, actions: Actions) -> Chooser:
    table = policy.table()
    if [*policy.names.values()] != [actions.names]:
        raise InputError(
            f"the policy was made for another model, whose decisions are {dict(policy.names)}; "
            f"here {ARRIVAL!r} has the actions {list(actions.names)}"
        )

    def answer(state: ArrayOfInts) -> Any:
        if (state >= policy.shape).any():
            raise InputError(
                f"the policy says nothing about state {actions.label(state)}; it was made for up "
                f"to {[size - 1 for size in policy.shape]} jobs"
            )
        found = table[(..., *state)]
        return actions.checked(found, actions.label(state)) if policy.randomised else int(found)

    return _Asked(len(actions.rooms), MIXTURE if policy.randomised else RULE, answer)


def _empty(n: int, kind: int) -> Choice:
    numbers = np.zeros(0, np.int64)
    return Choice(
        kind=kind,
        margin=0.0,
        tree=np.zeros(0),
        order=numbers,
        leaf=numbers,
        prices=np.zeros(0),
        begin=numbers,
        cumulative=np.zeros((0, n + 1)),
        states=np.zeros((0, n), np.int32),
        answers=np.zeros(0, np.int32),
        factors=np.zeros(n, np.uint64),
        hash=np.zeros(1, np.uint64),
        known=np.zeros(1, np.int64),
    )


class _Split:
    def __init__(self, probabilities: ArrayOfFloats) -> None:
        self._sums = _summed(probabilities)

    def start(self) -> Choice:
        choice = _empty(self._sums.size - 1, SPLIT)
        return choice._replace(cumulative=self._sums[None, :])

    def provide(self, choice: Choice, state: ArrayOfInts, k: int) -> Choice:
        raise AssertionError("fixed probabilities lack nothing")


def _summed(probabilities: ArrayOfFloats) -> ArrayOfFloats:
    """Cumulative probabilities: 1 from the last positive one on."""
    sums = np.cumsum(probabilities)
    return np.asarray(sums / sums[-1])


class _Prices:
    """Prices of one more job; the tables of all paths are the same, and kept."""

    def __init__(self, rule: SeparableRule, n: int) -> None:
        self._rule, self._n = rule, n
        self._order = np.array(rule.order, dtype=np.int64)
        if sorted(self._order.tolist()) != list(range(n)):
            raise InputError(
                f"the rule's order of ties is {some(self._order.tolist())}; it must name each of "
                f"the {n} nodes once"
            )
        self._tables: dict[tuple[int, int], ArrayOfFloats] = {}

    def _table(self, k: int, size: int) -> ArrayOfFloats:
        if (k, size) not in self._tables:
            prices = np.array(self._rule.prices(k, size - 1), dtype=np.float64)
            if prices.shape != (size,) or np.isnan(prices).any():
                raise InputError(
                    f"the rule's prices of node {k} in states 0..{size - 1} are {prices}; they "
                    f"must be {size} numbers, inf where the node refuses"
                )
            self._tables[k, size] = prices
        return self._tables[k, size]

    def _filled(self, choice: Choice, sizes: Sequence[int]) -> Choice:
        tables = [self._table(k, size) for k, size in enumerate(sizes)]
        begin = np.cumsum([0, *sizes], dtype=np.int64)
        return choice._replace(prices=np.concatenate(tables), begin=begin)

    def start(self) -> Choice:
        choice = self._filled(_empty(self._n, INDEX), [FIRST_PRICES] * self._n)
        return choice._replace(
            margin=float(self._rule.margin),
            tree=tournament(choice.prices[choice.begin[self._order]]),
            order=self._order,
            leaf=np.argsort(self._order),
        )

    def provide(self, choice: Choice, state: ArrayOfInts, k: int) -> Choice:
        sizes = np.diff(choice.begin)
        sizes[k] *= 2
        return self._filled(choice, sizes.tolist())


class _Asked:
    """A function of the state; its answers are actions or probabilities."""

    def __init__(self, n: int, kind: int, ask: Callable[[ArrayOfInts], Any]) -> None:
        self._kind, self._ask = kind, ask
        self._factors = np.random.default_rng(0).integers(1 << 63, size=n, dtype=np.uint64)

    def _table(self, size: int) -> Choice:
        n = self._factors.size
        rows = size // 2 if self._kind == MIXTURE else 0
        return _empty(n, self._kind)._replace(
            states=np.zeros((size, n), np.int32),
            answers=np.full(size, NONE, np.int32),
            cumulative=np.zeros((rows, n + 1)),
            factors=self._factors,
        )

    def start(self) -> Choice:
        return self._table(FIRST_ANSWERS)

    def provide(self, choice: Choice, state: ArrayOfInts, k: int) -> Choice:
        answer = self._ask(state)
        if 2 * choice.known[0] == choice.answers.size:
            choice = self._roomier(choice)
        if self._kind == MIXTURE:
            row = int(choice.known[0])
            choice.cumulative[row] = _summed(answer)
            answer = row
        remember(choice, state, answer)
        return choice

    def _roomier(self, choice: Choice) -> Choice:
        """A table twice as large with the same answers, or an empty one."""
        size = 2 * choice.answers.size
        if size * self._factors.size > MOST_KEYS:
            return self._table(FIRST_ANSWERS)._replace(hash=choice.hash)
        new = self._table(size)._replace(hash=choice.hash)
        new.cumulative[: len(choice.cumulative)] = choice.cumulative
        for i in np.flatnonzero(choice.answers != NONE):
            remember(new, choice.states[i].astype(np.int64), int(choice.answers[i]))
        return new
