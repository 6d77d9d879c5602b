"""Small models with measures, and what every deterministic policy makes of them, exactly."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from fractions import Fraction
from typing import Any

import numpy as np
from hypothesis import strategies as st

import mdpcloud as mc
from mdpcloud.engine import compile_model
from mdpcloud.solve.constrained.occupation import Average
from mdpcloud.solve.constrained.terms import constraints_of
from tests.solve.exact_gains import exact_law

__all__ = ["best_mixture", "points_of", "small_models"]


def small_model(seed: int, last: int) -> mc.Model:
    """An event with three actions and a control with two modes; every policy returns to 0."""
    rng = np.random.default_rng(seed)

    def table() -> Any:
        numbers = rng.integers(0, 9, last + 1) / 8
        return lambda x: numbers[x.i]

    jumps = [mc.Action(f"go {d}", mc.step(i=d), table()) for d in (1, 2)]
    arrival = mc.Event("arrival", 1.0 + rng.integers(4) / 4, [mc.Action("stay", cost=2.0), *jumps])
    slow = mc.Mode("slow", 0.0, mc.Flow(lambda x: 0.5 * (x.i > 0), mc.step(i=-1)))
    fast = mc.Mode("fast", table(), mc.Flow(lambda x: 1.5 * (x.i > 0), mc.step(i=-1)))
    return mc.Model(
        mc.Lattice({"i": last}),
        [arrival, mc.Control("speed", [slow, fast])],
        cost_rate=table(),
        measures={
            "jobs": lambda x: x.i,
            "stays": ("arrival", "stay"),
            "fast": ("speed", "fast"),
            "steps": [lambda x: 0.25 * x.i, 0.5],
        },
    )


def small_models(last: int = 2) -> st.SearchStrategy[mc.Model]:
    """Models of last + 1 states."""
    return st.builds(lambda seed: small_model(seed, last), st.integers(0, 2**32 - 1))


def points_of(model: mc.Model, *names: str) -> list[tuple[Fraction, ...]]:
    """Cost and measures of every deterministic policy."""
    compiled: Any = compile_model(model)
    rows = compiled.rows()
    wanted = [constraints_of(model, compiled, {name: 1.0})[0].numerator for name in names]
    averages = [
        (list(map(Fraction, a.state.tolist())), list(map(Fraction, a.row.tolist())))
        for a in (Average(rows.cost_rate, rows.cost), *wanted)
    ]
    groups = [np.flatnonzero(rows.group == g).tolist() for g in range(rows.groups.size)]
    state = rows.state.tolist()
    moves = [
        [(int(y), Fraction(float(rate))) for y, rate in zip(m.indices, m.data, strict=True)]
        for m in (rows.transitions[[row]] for row in range(rows.state.size))
    ]
    points = []
    for chosen in itertools.product(*groups):
        rates = [[Fraction(0)] * rows.n for _ in range(rows.n)]
        for row in chosen:
            for y, rate in moves[row]:
                rates[state[row]][y] += rate
        law = exact_law(rates)
        points.append(
            tuple(
                sum(p * c for p, c in zip(law, per_state, strict=True))
                + sum(law[state[row]] * per_row[row] for row in chosen)
                for per_state, per_row in averages
            )
        )
    return points


def best_mixture(points: Sequence[tuple[Fraction, ...]], bound: Fraction) -> Fraction:
    """Least cost of a mixture of two points whose measure is at most the bound."""
    within = [p for p in points if p[1] <= bound]
    beyond = [p for p in points if p[1] > bound]
    crossing = (
        p[0] + (q[0] - p[0]) * (bound - p[1]) / (q[1] - p[1]) for p in within for q in beyond
    )
    return min([p[0] for p in within] + list(crossing))
