"""The routing problem written a second time, state by state, from its optimality equation.

It shares no code with the package and works in floats or in fractions.
"""

import itertools
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from mdpcloud.systems import CloudRouting
from tests.common.exact import solve_exactly

State = tuple[int, ...]


@dataclass(frozen=True)
class Brute:
    """A system on a box, with a number type."""

    system: CloudRouting
    caps: Sequence[int]
    number: Callable[[Any], Any] = float

    @property
    def states(self) -> list[State]:
        return list(itertools.product(*(range(cap + 1) for cap in self.caps)))

    def losses(self, k: int, jobs: int) -> Any:
        """Rate of jobs lost at a node."""
        node = self.system.nodes[k]
        in_service = 0 if self.system.deadline == "end_service" else min(jobs, node.servers)
        return (jobs - in_service) * self.number(node.abandonment_rate)

    def departures(self, k: int, jobs: int) -> Any:
        """Rate of all departures of a node."""
        node = self.system.nodes[k]
        return self.losses(k, jobs) + min(jobs, node.servers) * self.number(node.service_rate)

    def cost(self, x: State) -> Any:
        """Cost rate without outsourcing and routing charges."""
        number, total = self.number, self.number(0)
        for k, (jobs, node) in enumerate(zip(x, self.system.nodes, strict=True)):
            total += number(node.fee) * self.losses(k, jobs) + number(node.holding_cost) * jobs
        return total

    def actions(self, x: State) -> dict[int, tuple[Any, State]]:
        """Cost and next state of each: 0 outside, 1 + k to node k."""
        found = {0: (self.number(self.system.outside_cost), x)}
        for k, node in enumerate(self.system.nodes):
            if x[k] < self.caps[k]:
                after = (*x[:k], x[k] + 1, *x[k + 1 :])
                found[k + 1] = (self.number(node.routing_charge), after)
        return found

    def evaluate(self, policy: dict[State, int]) -> tuple[Any, dict[State, Any]]:
        """Gain and relative values, 0 in the empty state."""
        states, number = self.states, self.number
        place = {x: i for i, x in enumerate(states)}
        lam = number(self.system.arrival_rate)
        matrix = [[number(0)] * len(states) for _ in states]
        right = []
        for i, x in enumerate(states):
            charge, after = self.actions(x)[policy[x]]
            right.append(-self.cost(x) - lam * charge)
            moves = [(lam, after)]
            for k, jobs in enumerate(x):
                if jobs:
                    moves.append((self.departures(k, jobs), (*x[:k], jobs - 1, *x[k + 1 :])))
            for rate, y in moves:
                matrix[i][place[y]] += rate
                matrix[i][i] -= rate
            matrix[i][0] = number(-1)  # the gain, in the place of the value of the empty state
        solve: Any = np.linalg.solve if number is float else solve_exactly
        gain, *values = solve(matrix, right)
        return gain, dict(zip(states, [number(0), *values], strict=True))

    def optimum(self) -> tuple[Any, dict[State, Any], dict[State, int]]:
        """Gain, relative values and policy, by policy iteration from "everything outside"."""
        policy = dict.fromkeys(self.states, 0)
        slack = 1e-11 if self.number is float else 0
        while True:
            gain, h = self.evaluate(policy)
            after = {}
            for x in self.states:
                worth = {a: c + h[y] - h[x] for a, (c, y) in self.actions(x).items()}
                best = min(worth, key=lambda a: worth[a])
                after[x] = best if worth[best] < worth[policy[x]] - slack else policy[x]
            if after == policy:
                return gain, h, policy
            policy = after


def plain_optimum(system: CloudRouting, caps: Sequence[int]) -> float:
    """Optimal cost rate on a box, in floats."""
    return float(Brute(system, caps).optimum()[0])


def exact_optimum(
    system: CloudRouting, caps: Sequence[int], number: Callable[[Any], Fraction] = Fraction
) -> Fraction:
    """Optimal cost rate on a box, exactly; parameters are read as the floats they are."""
    gain: Fraction = Brute(system, caps, number).optimum()[0]
    return gain


def as_written(number: float) -> Fraction:
    """The decimal number that a float was written as."""
    return Fraction(str(number))
