"""A second, slow reading of a model: state by state, in plain Python, with dictionaries.

It shares no code with the engine. A model becomes an `Interpreted` problem, in which every state
lists its terms and every term its allowed actions:

    v(x) = c(x) - discount h(x)
           + sum_e r_e(x) min_a [ k_a(x) + sum_j w_aj(x) ( h(x + s_aj) - h(x) ) ].

Discrete-time problems given as arrays have one term of rate 1. Policies are read from the same
rules that `mdpcloud.policy` takes; their gain comes from the stationary law by the elimination of
Grassmann, Taksar and Heyman.
"""

from __future__ import annotations

from collections import deque, namedtuple
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import product
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csgraph

from tests.models import Case

__all__ = [
    "Interpreted",
    "Option",
    "Term",
    "chances",
    "gain",
    "interpret",
    "interpret_arrays",
    "interpret_case",
    "measure",
    "optimum",
    "stationary",
    "under",
    "values",
    "worth",
]

State = tuple[int, ...]
Vector = NDArray[np.float64]
Chances = list[dict[int, dict[int, float]]]


class Option(NamedTuple):
    """An allowed action: cost (lump, or a rate in a control) and ``(weight, target)`` pairs."""

    action: int
    cost: float
    moves: tuple[tuple[float, int], ...]


class Term(NamedTuple):
    """An event or control that is alive in a state."""

    term: int
    rate: float
    options: tuple[Option, ...]


@dataclass(frozen=True)
class Interpreted:
    """A model read state by state.

    Attributes
    ----------
    states : tuple of tuples
        Flat coordinates in lexicographic order.
    cost : list of float
        Cost rate of each state.
    terms : list of tuples of `Term`
        Terms with positive rate, per state.
    names : tuple of str
        Names of the terms.
    actions : tuple of tuples of str
        Names of the actions, per term.
    measures : mapping
        Cost rates per state, or ``(term, action)`` for a count.
    point : callable
        State -> the `x` that rules are given.
    """

    states: tuple[State, ...]
    cost: list[float]
    terms: list[tuple[Term, ...]]
    names: tuple[str, ...]
    actions: tuple[tuple[str, ...], ...]
    measures: Mapping[str, list[float] | tuple[int, int]]
    point: Callable[[State], Any]


@dataclass(frozen=True)
class Layout:
    """Names of the axes and families, and how flat coordinates are put into a namedtuple."""

    sizes: Mapping[str, int]  # 0 for a single axis, else the number of members of the family

    @cached_property
    def kind(self) -> Any:
        """Class of the points."""
        return namedtuple("kind", list(self.sizes))

    def point(self, state: State) -> Any:
        """Namedtuple of numpy integers."""
        fields: dict[str, Any] = {}
        rest = deque(np.int64(i) for i in state)
        for name, size in self.sizes.items():
            fields[name] = tuple(rest.popleft() for _ in range(size)) if size else rest.popleft()
        return self.kind(**fields)

    def move(self, state: State, step: Any) -> State:
        """State after a step."""
        after = list(state)
        offset = 0
        amounts = {} if step is None else dict(step.amounts)
        for name, size in self.sizes.items():
            amount = amounts.pop(name, 0)
            members = amount.items() if isinstance(amount, Mapping) else [(0, amount)]
            for k, by in members:
                after[offset + k] += int(by)
            offset += max(size, 1)
        assert not amounts, f"unknown axes {sorted(amounts)}"
        return tuple(after)


def value_at(thing: Any, x: Any) -> Any:
    """A constant, or a function of `x`."""
    return thing(x) if callable(thing) else thing


def moves_at(step: Any, x: Any) -> list[tuple[float, Any]]:
    """Weights and steps of an action in a state."""
    step = value_at(step, x)
    if isinstance(step, Sequence):
        return [(float(value_at(m.weight, x)), m.step) for m in step]
    return [(1.0, step)]


@dataclass(frozen=True)
class Reader:
    """Reads the terms of a model in one state."""

    model: Any
    layout: Layout
    inside: Callable[[State], bool]

    def terms(
        self, state: State
    ) -> list[tuple[int, float, list[tuple[int, float, list[tuple[float, State]]]]]]:
        """Terms with positive rate: index, rate, and per allowed action index, cost and moves."""
        x = self.layout.point(state)
        alive = []
        for e, term in enumerate(self.model.events):
            control = hasattr(term, "modes")
            rate = 1.0 if control else float(value_at(term.rate, x))
            if rate > 0:
                offers = term.modes if control else term.actions
                read = (self.option(a, offer, x, state) for a, offer in enumerate(offers))
                alive.append((e, rate, [one for one in read if one is not None]))
        return alive

    def option(self, a: int, offer: Any, x: Any, state: State) -> Any:
        """An action with its cost and moves, or None where it is not allowed."""
        if offer.allowed is not None and not value_at(offer.allowed, x):
            return None
        if hasattr(offer, "flows"):
            cost = offer.cost_rate
            moves = [(float(value_at(f.rate, x)), f.step) for f in offer.flows]
        else:
            cost, moves = offer.cost, moves_at(offer.step, x)
        targets = [(w, self.layout.move(state, step)) for w, step in moves if w > 0]
        if not all(self.inside(target) for _, target in targets):
            return None
        return a, float(value_at(cost, x)), targets


def interpret(model: Any) -> Interpreted:
    """Read a lattice or reachable model state by state."""
    lattice = hasattr(model.space, "caps")
    axes = model.space.caps if lattice else model.space.start
    layout = Layout({name: len(v) if isinstance(v, Sequence) else 0 for name, v in axes.items()})
    bounds = [b for v in axes.values() for b in (v if isinstance(v, Sequence) else [v])]
    states = (
        lattice_states(model, layout, bounds)
        if lattice
        else reachable_states(model, layout, bounds)
    )
    index = {state: i for i, state in enumerate(states)}
    reader = Reader(model, layout, index.__contains__)
    events = tuple(model.events)
    names = tuple(term.name for term in events)
    offers = [term.modes if hasattr(term, "modes") else term.actions for term in events]
    actions = tuple(tuple(offer.name for offer in several) for several in offers)
    points = [layout.point(state) for state in states]
    measures = {
        name: (names.index(m[0]), actions[names.index(m[0])].index(m[1]))
        if isinstance(m, tuple) and isinstance(m[0], str)
        else [total(m, x) for x in points]
        for name, m in dict(model.measures).items()
    }
    terms = [
        tuple(
            Term(
                e,
                rate,
                tuple(
                    Option(a, k, tuple((w, index[y]) for w, y in moves)) for a, k, moves in options
                ),
            )
            for e, rate, options in reader.terms(state)
        )
        for state in states
    ]
    for state, alive in zip(states, terms, strict=True):
        for one in alive:
            assert one.options, f"{names[one.term]!r} has no allowed action in {state}"
    return Interpreted(
        states,
        [total(model.cost_rate, x) for x in points],
        terms,
        names,
        actions,
        measures,
        layout.point,
    )


def lattice_states(model: Any, layout: Layout, caps: Sequence[int]) -> tuple[State, ...]:
    """Points of the box that meet the condition, in lexicographic order."""
    box = product(*(range(cap + 1) for cap in caps))
    where = model.space.where
    return tuple(s for s in box if where is None or bool(where(layout.point(s))))


def reachable_states(model: Any, layout: Layout, start: Sequence[int]) -> tuple[State, ...]:
    """States reached from the start by allowed actions, in lexicographic order."""
    reader = Reader(model, layout, lambda state: min(state) >= 0)
    first = tuple(start)
    seen, frontier = {first}, deque([first])
    while frontier:
        for _, _, options in reader.terms(frontier.popleft()):
            for _, _, moves in options:
                fresh = {target for _, target in moves} - seen
                seen |= fresh
                frontier.extend(fresh)
    return tuple(sorted(seen))


def total(rates: Any, x: Any) -> float:
    """A cost rate given as a number, a function or a list of them."""
    parts = rates if isinstance(rates, (list, tuple)) else [rates]
    return float(sum(value_at(part, x) for part in parts))


def interpret_arrays(P: Any, costs: Any, states: Any, actions: Any) -> Interpreted:
    """Read a discrete-time problem in the state-action-pair form: one term of rate 1."""
    count = int(max(states)) + 1
    options: list[list[Option]] = [[] for _ in range(count)]
    for row, cost, s, a in zip(P, costs, states, actions, strict=True):
        moves = tuple((float(p), y) for y, p in enumerate(row) if p > 0)
        options[s].append(Option(int(a), float(cost), moves))
    names = tuple(str(a) for a in range(int(max(actions)) + 1))
    return Interpreted(
        tuple((s,) for s in range(count)),
        [0.0] * count,
        [(Term(0, 1.0, tuple(several)),) for several in options],
        ("step",),
        (names,),
        {},
        lambda state: state,
    )


def worth(option: Option, h: Any, i: int) -> Any:
    """Bracket of one action: ``k + sum_j w_j (h(y_j) - h(i))``."""
    return option.cost + sum(w * (h[y] - h[i]) for w, y in option.moves)


def values(problem: Interpreted, h: Any, discount: float = 0.0) -> Vector:
    """Right-hand side v of the optimality equation in every state."""
    return np.array(
        [
            problem.cost[i]
            - discount * h[i]
            + sum(term.rate * min(worth(o, h, i) for o in term.options) for term in alive)
            for i, alive in enumerate(problem.terms)
        ]
    )


def chances(problem: Interpreted, rules: Mapping[str, Any]) -> Chances:
    """Probabilities of the actions, per state and term; without a rule the first allowed one."""
    return [
        {
            term.term: chance_at(problem, term, rules.get(problem.names[term.term]), i)
            for term in alive
        }
        for i, alive in enumerate(problem.terms)
    ]


def chance_at(problem: Interpreted, term: Term, rule: Any, i: int) -> dict[int, float]:
    """Probabilities of the actions of one term in state number `i`."""
    names, x = problem.actions[term.term], problem.point(problem.states[i])
    allowed = [o.action for o in term.options]
    if rule is None:
        return {allowed[0]: 1.0}
    if isinstance(rule, Mapping):
        wanted = {names.index(name): float(value_at(p, x)) for name, p in rule.items()}
        found = {a: p for a, p in wanted.items() if p != 0}
    else:
        chosen: Any = np.asarray(rule(x) if callable(rule) else rule[i])[()]
        found = {names.index(chosen) if isinstance(chosen, str) else int(chosen): 1.0}
    assert abs(sum(found.values()) - 1) < 1e-12, (
        problem.names[term.term],
        problem.states[i],
        found,
    )
    assert set(found) <= set(allowed), (problem.names[term.term], problem.states[i], found, allowed)
    return found


def under(problem: Interpreted, policy: Chances) -> tuple[NDArray[Any], Vector]:
    """Dense generator ``(n, n)`` and cost rates ``(n,)`` under a policy."""
    n = len(problem.states)
    q, c = np.zeros((n, n)), np.array(problem.cost)
    for i, alive in enumerate(problem.terms):
        for term in alive:
            for option in term.options:
                weight = term.rate * policy[i][term.term].get(option.action, 0.0)
                c[i] += weight * option.cost
                for w, y in option.moves:
                    q[i, y] += weight * w
                    q[i, i] -= weight * w
    return q, c


def stationary(q: NDArray[Any]) -> Vector:
    """Stationary law of a generator with one closed class, without any subtraction (GTH)."""
    arcs = (q > 0) & ~np.eye(len(q), dtype=bool)
    count, label = csgraph.connected_components(arcs.astype(np.int8), connection="strong")
    leaves = {int(label[i]) for i, j in zip(*np.nonzero(arcs), strict=True) if label[i] != label[j]}
    closed = [k for k in range(count) if k not in leaves]
    assert len(closed) == 1, f"{len(closed)} closed classes"
    inside = np.flatnonzero(label == closed[0])
    a = q[np.ix_(inside, inside)].copy()
    np.fill_diagonal(a, 0.0)
    for k in range(len(a) - 1, 0, -1):
        a[:k, k] /= a[k, :k].sum()
        a[:k, :k] += np.outer(a[:k, k], a[k, :k])
        np.fill_diagonal(a[:k, :k], 0.0)
    law = np.zeros(len(a))
    law[0] = 1.0
    for k in range(1, len(a)):
        law[k] = law[:k] @ a[:k, k]
    full = np.zeros(len(q))
    full[inside] = law / law.sum()
    return full


def gain(problem: Interpreted, rules: Mapping[str, Any]) -> float:
    """Average cost of a policy with one closed class."""
    q, c = under(problem, chances(problem, rules))
    return float(stationary(q) @ c)


def measure(problem: Interpreted, rules: Mapping[str, Any], name: str) -> float:
    """Long-run average of a measure under a policy with one closed class."""
    policy = chances(problem, rules)
    law = stationary(under(problem, policy)[0])
    what = problem.measures[name]
    if isinstance(what, list):
        return float(law @ np.array(what))
    e, a = what
    rates: Iterable[float] = (
        sum(t.rate * policy[i][e].get(a, 0.0) for t in alive if t.term == e)
        for i, alive in enumerate(problem.terms)
    )
    return float(law @ np.array(list(rates)))


def optimum(problem: Interpreted, rounds: int = 50) -> tuple[float, Vector]:
    """Optimal average cost and relative values by policy iteration with dense solves."""
    policy: Chances = [
        {t.term: {t.options[0].action: 1.0} for t in alive} for alive in problem.terms
    ]
    for _ in range(rounds):
        q, c = under(problem, policy)
        system = q.copy()
        centre = int(np.argmax(stationary(q)))
        system[:, centre] = -1.0
        h = np.linalg.solve(system, -c)
        g, h[centre] = float(h[centre]), 0.0
        after = [improved(alive, h, i, policy[i]) for i, alive in enumerate(problem.terms)]
        if after == policy:
            return g, h
        policy = after
    raise AssertionError(f"policy iteration did not stop after {rounds} rounds")


def improved(
    alive: tuple[Term, ...], h: Vector, i: int, before: dict[int, dict[int, float]]
) -> dict[int, dict[int, float]]:
    """Best action of every term in state `i`; the present one stays unless another is better."""
    after = {}
    for term in alive:
        worths = {o.action: worth(o, h, i) for o in term.options}
        (kept,) = before[term.term]
        best = min(worths, key=lambda a: worths[a])
        margin = 1e-10 * (1 + abs(worths[kept]))
        after[term.term] = {best if worths[best] < worths[kept] - margin else kept: 1.0}
    return after


def interpret_case(case: Case) -> Interpreted:
    """Second reading of a case of ``tests/models``."""
    return interpret_arrays(**case.arrays) if case.arrays else interpret(case.build())
