"""Total costs in exact rational arithmetic, by enumeration; for problems of a few states."""

import itertools
from fractions import Fraction

import numpy as np

from .exact_gains import exact_law, solve_exactly

INF = float("inf")


class Listing:
    """The rows of a problem as fractions: per state and term the (cost, {target: rate}) to choose.

    At the targets there is nothing left to do.
    """

    def __init__(self, problem, targets):
        table = problem.rows()
        self.n, self.targets = problem.n, [bool(t) for t in targets]
        self.rate = [Fraction(float(c)) for c in table.cost_rate]
        self.groups = {}
        for row in range(table.state.size):
            moves = table.transitions[[row]].tocoo()
            there = {int(y): Fraction(float(r)) for y, r in zip(moves.col, moves.data, strict=True)}
            key, action = (int(table.state[row]), int(table.term[row])), int(table.action[row])
            if not self.targets[key[0]]:
                options = self.groups.setdefault(key, {})
                options[action] = (Fraction(float(table.cost[row])), there)

    def policies(self):
        """Yield every choice as the cost rate and the moves of each state."""
        for options in itertools.product(*(g.values() for g in self.groups.values())):
            yield self.merged(dict(zip(self.groups, options, strict=True)))

    def under(self, choice):
        """Cost rate and moves of each state under a choice array."""
        return self.merged({(x, e): g[int(choice[e, x])] for (x, e), g in self.groups.items()})

    def merged(self, taken):
        cost, moves = list(self.rate), [{} for _ in range(self.n)]
        for (x, _), (fee, there) in taken.items():
            cost[x] += fee
            for y, rate in there.items():
                moves[x][y] = moves[x].get(y, 0) + rate
        return cost, moves

    def totals(self, cost, moves):
        """Expected cost before the targets from every state; infinite where that is not certain."""
        ways = [from_state(moves, x) for x in range(self.n)]
        dead = {x for x in range(self.n) if not any(self.targets[y] for y in ways[x])}
        rest = [x for x in range(self.n) if not self.targets[x] and not ways[x] & dead]
        place = {x: k for k, x in enumerate(rest)}
        system = [
            [(sum(moves[x].values()) if x == y else 0) - moves[x].get(y, Fraction(0)) for y in rest]
            for x in rest
        ]
        values = solve_exactly(system, [cost[x] for x in rest])
        return [
            Fraction(0) if t else values[place[x]] if x in place else INF
            for x, t in enumerate(self.targets)
        ]

    def gains(self, cost, moves):
        """Average cost from every state."""
        ways = [from_state(moves, x) for x in range(self.n)]
        gains = [None] * self.n
        for x in range(self.n):
            if gains[x] is None and all(x in ways[y] for y in ways[x]):
                kept = sorted(ways[x])
                law = exact_law([[moves[y].get(z, Fraction(0)) for z in kept] for y in kept])
                for y in kept:
                    gains[y] = sum(p * cost[z] for p, z in zip(law, kept, strict=True))
        rest = [x for x in range(self.n) if gains[x] is None]
        system = [
            [(sum(moves[x].values()) if x == y else 0) - moves[x].get(y, Fraction(0)) for y in rest]
            for x in rest
        ]
        right = [sum(r * gains[y] for y, r in moves[x].items() if y not in rest) for x in rest]
        for x, gain in zip(rest, solve_exactly(system, right), strict=True):
            gains[x] = gain
        return gains

    def least_gain(self, cost, moves, able):
        """Smallest mean cost of a class of able states in which the process stays for ever."""
        least = INF
        ways = [from_state(moves, x) for x in range(self.n)]
        for x in range(self.n):
            kept = sorted(ways[x])
            if any(self.targets[y] or not able[y] or x not in ways[y] for y in kept):
                continue
            law = exact_law([[moves[y].get(z, Fraction(0)) for z in kept] for y in kept])
            least = min(least, sum(p * cost[y] for p, y in zip(law, kept, strict=True)))
        return least


def from_state(moves, start):
    """States that can be reached, the start among them."""
    found, stack = {start}, [start]
    while stack:
        fresh = set(moves[stack.pop()]) - found
        found |= fresh
        stack.extend(fresh)
    return found


def exact_optimum(problem, targets):
    """Least total cost over the policies proper from each state, and the least gain of staying."""
    listing = Listing(problem, targets)
    policies = list(listing.policies())
    table = [listing.totals(*policy) for policy in policies]
    best = [min(values[x] for values in table) for x in range(problem.n)]
    able = [value != INF for value in best]
    return best, min(listing.least_gain(*policy, able) for policy in policies)


def exact_totals(problem, choice, targets):
    """Total cost from every state under a choice."""
    listing = Listing(problem, targets)
    return listing.totals(*listing.under(np.asarray(choice)))
