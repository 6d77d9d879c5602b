"""Optimal average cost of a small interpreted problem in exact rational arithmetic."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

from tests.common.interpreter import Interpreted, Option, Term

__all__ = ["exact_optimum", "solve_exactly"]

Exact = list[Fraction]


def solve_exactly(matrix: Sequence[Sequence[Fraction]], right: Sequence[Fraction]) -> Exact:
    """Solution of a regular linear system by elimination."""
    rows = [[*row, value] for row, value in zip(matrix, right, strict=True)]
    for k in range(len(rows)):
        pivot = next(i for i in range(k, len(rows)) if rows[i][k] != 0)
        rows[k], rows[pivot] = rows[pivot], rows[k]
        rows[k] = [entry / rows[k][k] for entry in rows[k]]
        for i, row in enumerate(rows):
            if i != k and row[k] != 0:
                rows[i] = [a - row[k] * b for a, b in zip(row, rows[k], strict=True)]
    return [row[-1] for row in rows]


def bracket(option: Option, h: Exact, i: int) -> Fraction:
    """Exact ``k + sum_j w_j (h(y_j) - h(i))``; floats are read as the rationals they are."""
    flows = (Fraction(w) * (h[y] - h[i]) for w, y in option.moves)
    return sum(flows, Fraction(option.cost))


def evaluate(problem: Interpreted, policy: Sequence[dict[int, Option]]) -> tuple[Fraction, Exact]:
    """Gain and relative values of a policy with one closed class; the last state has value 0."""
    n = len(problem.states)
    matrix = [[Fraction(0)] * n for _ in range(n)]
    right = [-Fraction(c) for c in problem.cost]
    for i, alive in enumerate(problem.terms):
        for term in alive:
            option, rate = policy[i][term.term], Fraction(term.rate)
            right[i] -= rate * Fraction(option.cost)
            for w, y in option.moves:
                matrix[i][y] += rate * Fraction(w)
                matrix[i][i] -= rate * Fraction(w)
        matrix[i][n - 1] = Fraction(-1)
    *h, g = solve_exactly(matrix, right)
    return g, [*h, Fraction(0)]


def better(term: Term, kept: Option, h: Exact, i: int) -> Option:
    """The best action, keeping the present one on ties."""
    return min(term.options, key=lambda o: (bracket(o, h, i), o.action != kept.action))


def exact_optimum(
    problem: Interpreted, policy: Sequence[dict[int, Option]] | None = None
) -> Fraction:
    """Optimal gain by policy iteration; every policy met must have one closed class.

    It stops when no action is better, which proves the optimality equation exactly.
    """
    if policy is None:
        policy = [{t.term: t.options[0] for t in alive} for alive in problem.terms]
    while True:
        g, h = evaluate(problem, policy)
        after = [
            {t.term: better(t, policy[i][t.term], h, i) for t in alive}
            for i, alive in enumerate(problem.terms)
        ]
        if after == policy:
            return g
        policy = after
