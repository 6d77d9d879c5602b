"""Bounds of the cost of one policy after the other on the same compiled model.

A chain of few states is solved directly. A larger one begins with the values of the policy before,
which is a neighbour: one certifying sweep of them often shows that the policy is worse than one
that is known, and otherwise BiCGSTAB goes on from there. It stops when the certified bounds meet
the tolerance, or lie above a cost that is to be beaten.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Any

import numpy as np

from mdpcloud.engine.problem import Floats
from mdpcloud.engine.rules import policy_for
from mdpcloud.errors import MultichainError
from mdpcloud.model.policy import Policy
from mdpcloud.solve.chains import DirectChain, SingularChainError, solve_iteratively
from mdpcloud.solve.classes import bounds_by_state
from mdpcloud.solve.fixed import FixedSolver
from mdpcloud.solve.limits import Goal, Monitor, Status, Stopped

__all__ = ["Chains", "policy_of_rules"]

DIRECT = 400  # states up to which a direct solve takes less time than BiCGSTAB
PRODUCTS = 1500  # with the generator, before what is slower and hardly ever fails
PARTS = (0.5, 0.25, 0.125)  # of the goal: residuals that are tried one after the other

Bounds = tuple[float, float]
UNKNOWN = (-np.inf, np.inf)


class Chains:
    """Evaluates policies of a compiled model, each from the values of the one before.

    Parameters
    ----------
    problem : Problem
    monitor : Monitor

    Attributes
    ----------
    known : (lower, upper)
        Certified bounds of the cost of the last policy, as far as its evaluation came.
    """

    def __init__(self, problem: Any, monitor: Monitor) -> None:
        self.problem, self.monitor = problem, monitor
        self.values: Floats = np.zeros(problem.n)
        self.known: Bounds = UNKNOWN
        self.pinned: int | None = None

    def under(self, policy: Policy) -> tuple[Any, bytes]:
        """The uncontrolled problem of a policy, and what tells it from that of another one."""
        choice: Any = policy.choice(self.problem)
        mark = hashlib.blake2b(digest_size=16)
        for array in choice:
            mark.update(np.ascontiguousarray(array).tobytes())
        fixed = self.problem.mixed(choice) if policy.randomised else self.problem.under(choice)
        return fixed, mark.digest()

    def bounds(self, fixed: Any, tolerance: float, beat: float = np.inf) -> Bounds:
        """Certified bounds of the cost; wider ones where they lie above what is to be beaten.

        They are wider, too, where float64 cannot certify the tolerance.

        Raises
        ------
        Stopped
            At a limit of the monitor; what is found by then is ``known``.
        MultichainError
            When the chain has several recurrent classes.
        """
        self.known = UNKNOWN
        try:
            if fixed.n <= DIRECT:
                self._directly(fixed)
            elif not self._nearby(fixed, tolerance, beat):
                self._surely(fixed, tolerance)
        except SingularChainError as error:
            self._by_state(fixed, tolerance, error)
        return self.known

    def _by_state(self, fixed: Any, tolerance: float, error: SingularChainError) -> None:
        """Bounds where no factor exists, unless the cost depends on the initial state."""
        found, _ = bounds_by_state(fixed, tolerance, self.monitor)
        if found.lower.max() > found.upper.min():
            raise MultichainError(str(error)) from error
        self.known = float(found.lower.min()), float(found.upper.max())

    def _directly(self, fixed: Any) -> None:
        """Bounds by factoring the chain, with the state pinned that was likely before."""
        generator, cost = fixed.chain()
        chain = DirectChain(generator, pinned=self.pinned)
        self.pinned = chain.pinned
        self.monitor.iterations += 1
        self.values = chain.solve(cost)
        self.known = fixed.certify(fixed.pack(self.values))

    def _nearby(self, fixed: Any, tolerance: float, beat: float) -> bool:
        """Bounds from the values of the policy before, and from what BiCGSTAB makes of them.

        Whether they are narrow, or high, enough.
        """
        goal = Goal(tolerance, fixed.cost_scale)

        def enough() -> bool:
            low, high = self.known
            return low > beat or high - low <= goal.width(low, high)

        self.known = fixed.certify(fixed.pack(self.values))
        for part in PARTS:
            if enough():
                return True
            low, high = self.known
            aim = part * goal.width(low, high)
            values, _ = solve_iteratively(fixed, self.values, aim, PRODUCTS, 0.0, self.monitor)
            found = fixed.certify(fixed.pack(values))
            if found[1] - found[0] < high - low:
                self.values = values
            self.known = max(low, found[0]), min(high, found[1])
        return enough()

    def _surely(self, fixed: Any, tolerance: float) -> None:
        found = FixedSolver(tolerance, 0.0, self.monitor).solve(fixed)
        self.values = found.values
        self.known = max(self.known[0], found.low), min(self.known[1], found.high)
        if found.status in (Status.TIME, Status.INTERRUPTED):
            raise Stopped(found.status)


def policy_of_rules(problem: Any, rules: Any) -> Policy:
    """As `mdpcloud.engine.rules.policy_for`, fast for rules that take arrays of states."""
    if not isinstance(rules, Mapping):
        return policy_for(problem, rules)
    actions = {term.name: term.actions for term in problem.terms}
    x = problem.state(slice(None))
    known = {
        name: _numbers(rule, x, problem.n, actions[name]) if name in actions else rule
        for name, rule in rules.items()
    }
    return policy_for(problem, known)


def _numbers(rule: Any, x: Any, n: int, actions: tuple[str, ...]) -> Any:
    """Numbers (n,) of the actions that a rule names; the rule itself where it does not."""
    if not callable(rule):
        return rule
    try:
        names = np.asarray(rule(x))
    except Exception:  # whatever a rule does that takes single states only
        return rule
    if names.shape != (n,) or names.dtype.kind != "U":
        return rule
    numbers = np.full(n, -1)
    for number, action in enumerate(actions):
        numbers[names == action] = number
    return numbers if (numbers >= 0).all() else rule
