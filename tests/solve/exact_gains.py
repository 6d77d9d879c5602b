"""Average costs in exact rational arithmetic, by enumeration; for problems of a few states."""

import itertools
from fractions import Fraction

import numpy as np

from mdpcloud.engine.rows import RowsProblem
from mdpcloud.engine.structure import closed_classes


def solve_exactly(system, right):
    """Solve a square system of fractions by Gaussian elimination."""
    m = len(right)
    system, right = [list(row) for row in system], list(right)
    for k in range(m):
        pivot = next(i for i in range(k, m) if system[i][k] != 0)
        system[k], system[pivot] = system[pivot], system[k]
        right[k], right[pivot] = right[pivot], right[k]
        for i in range(m):
            if i != k and system[i][k] != 0:
                f = system[i][k] / system[k][k]
                system[i] = [a - f * b for a, b in zip(system[i], system[k], strict=True)]
                right[i] -= f * right[k]
    return [right[k] / system[k][k] for k in range(m)]


def exact_law(rates):
    """Stationary law of an irreducible chain; the diagonal of the rates is ignored."""
    m = len(rates)
    balance = [
        [
            rates[y][x] if x != y else -sum(r for z, r in enumerate(rates[x]) if z != x)
            for y in range(m)
        ]
        for x in range(m)
    ]
    balance[0] = [Fraction(1)] * m
    return solve_exactly(balance, [Fraction(int(k == 0)) for k in range(m)])


def exact_gains(problem, choice):
    """Average cost from every state under a choice."""
    fixed = problem.under(choice).rows()
    n = problem.n
    cost = [Fraction(float(c)) for c in fixed.cost_rate]
    rates = [[Fraction(0)] * n for _ in range(n)]
    for row in range(fixed.state.size):
        x = fixed.state[row]
        cost[x] += Fraction(float(fixed.cost[row]))
        moves = fixed.transitions[[row]].tocoo()
        for y, rate in zip(moves.col, moves.data, strict=True):
            rates[x][y] += Fraction(float(rate))
    graph = (fixed.transitions.T @ _incidence(fixed)).T.tocsr()
    gains = [None] * n
    for states in closed_classes(graph):
        law = exact_law([[rates[x][y] for y in states] for x in states])
        gain = sum(p * cost[x] for p, x in zip(law, states, strict=True))
        for x in states:
            gains[x] = gain
    rest = [x for x in range(n) if gains[x] is None]
    if rest:
        system = [[(sum(rates[x]) if x == y else 0) - rates[x][y] for y in rest] for x in rest]
        right = [sum(rates[x][y] * gains[y] for y in range(n) if y not in rest) for x in rest]
        for x, gain in zip(rest, solve_exactly(system, right), strict=True):
            gains[x] = gain
    return gains


def _incidence(rows):
    from scipy import sparse

    ones = np.ones(rows.state.size)
    return sparse.csr_array((ones, (np.arange(ones.size), rows.state)), shape=(ones.size, rows.n))


def choices(problem):
    """Yield every deterministic choice."""
    table = problem.rows()
    groups = [np.flatnonzero(table.group == g) for g in range(table.groups.size)]
    for rows in itertools.product(*groups):
        yield problem.choice_of(np.array(rows, int))


def exact_optimum(problem):
    """Smallest average cost from every state, and a choice that attains it everywhere."""
    table = [(exact_gains(problem, choice), choice) for choice in choices(problem)]
    best = [min(gains[x] for gains, _ in table) for x in range(problem.n)]
    return best, next(choice for gains, choice in table if gains == best)


def solve_component(problem: RowsProblem):
    """Solve a component by enumeration; the bounds are the neighbouring floats."""
    best, choice = exact_optimum(problem)
    assert len(set(best)) == 1
    gain = float(best[0])
    return np.nextafter(gain, -np.inf), np.nextafter(gain, np.inf), np.zeros(problem.n), choice
