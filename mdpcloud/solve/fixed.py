"""The cost of a fixed policy, with certified bounds.

The Poisson equation is solved directly where that is cheap; else by BiCGSTAB (see
`mdpcloud.solve.chains`), and where that does not succeed soon by sweeps (see
`mdpcloud.solve.value_iteration`), which are slower and hardly ever fail. One certifying sweep
brackets what was found. The factor of a direct solve serves all cost rates of the same chain, on
small chains all at once.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from mdpcloud.engine.enclosure import enclose_rates
from mdpcloud.engine.problem import Floats
from mdpcloud.solve.chains import (
    DirectChain,
    SingularChainError,
    solve_iteratively,
)
from mdpcloud.solve.direct import direct_limit
from mdpcloud.solve.limits import Goal, Monitor, Status, Stopped
from mdpcloud.solve.value_iteration import ValueIteration

__all__ = ["FixedResult", "FixedSolver", "largest_cost"]

TOGETHER = 10_000  # states up to which all cost rates are solved at once, in so many columns
DIRECT_AFTER_ALL = 60_000  # states up to which LU is tried when the iteration fails
FIRST = 1500  # products of the first try, which is the fastest where it succeeds
SWEEPS = 10_000
PRODUCTS = 20_000
ATTEMPTS = 4


@dataclass(frozen=True, eq=False)
class FixedResult:
    """Values (n,), certified bounds of c + Q h - alpha h, and how it ended."""

    values: Floats
    low: float
    high: float
    status: Status


class FixedSolver:
    """Solves one chain for any of its cost rates.

    Parameters
    ----------
    tolerance : float
        Relative, see `Goal`.
    discount : float
        1/time.
    monitor : Monitor
    """

    def __init__(self, tolerance: float, discount: float, monitor: Monitor) -> None:
        self.tolerance, self.discount, self.monitor = tolerance, discount, monitor
        self._direct: DirectChain | None = None
        self._goal = Goal(tolerance, 0.0, discount)

    def solve(self, problem: Any) -> FixedResult:
        """Evaluate ``problem``: the same chain with the cost rate wanted.

        Raises
        ------
        SingularChainError
            When the chain has several recurrent classes.
        """
        self._goal = Goal(self.tolerance, largest_cost(problem), self.discount)
        if self._direct is not None or problem.n <= direct_limit(problem):
            return self._solve_directly(problem)
        result = self._judge(problem, np.zeros(problem.n), Status.STALLED)
        result = self._solve_iteratively(problem, result, FIRST)
        if result.status is Status.STALLED:
            result = self._sweep(problem, result)
        if result.status is Status.STALLED:
            result = self._solve_iteratively(problem, result, PRODUCTS)
        if result.status is Status.STALLED and problem.n <= DIRECT_AFTER_ALL:
            return self._solve_directly(problem)
        return result

    def solve_rates(self, problem: Any, rates: Mapping[str, Floats]) -> dict[str, FixedResult]:
        """Evaluate cost rates (n,) on the chain of ``problem``, after `solve`.

        Raises
        ------
        SingularChainError
            As `solve`.
        """
        if self._direct is None or not rates or problem.n > TOGETHER:
            return {name: self.solve(problem.with_cost(rate)) for name, rate in rates.items()}
        costs = np.array(list(rates.values()), np.float64)
        self.monitor.iterations += len(costs)
        values = np.ascontiguousarray(_finite(self._direct.solve(costs.T)).T)
        chain = self._direct.generator, problem.chain_roundings
        bounds = enclose_rates(*chain, costs, values, discount=self.discount)
        results = {}
        for name, cost, h, (low, high) in zip(rates, costs, values, bounds, strict=True):
            self._goal = Goal(self.tolerance, _size(cost), self.discount)
            results[name] = self._judged(h, low, high, Status.PRECISION)
            self.monitor.report(low, high)
        return results

    def _solve_directly(self, problem: Any) -> FixedResult:
        if self._direct is None:
            generator, cost = problem.chain()
            self._direct = DirectChain(generator, self.discount)
        else:
            cost = problem.unpack(problem.cost_work())
        self.monitor.iterations += 1  # past a limit too: a direct solve is short, and then done
        values = _finite(self._direct.solve(cost))
        result = self._judge(problem, values, Status.PRECISION)
        self.monitor.report(result.low, result.high)
        return result

    def _sweep(self, problem: Any, best: FixedResult) -> FixedResult:
        """What sweeps make of values found so far."""
        start = problem.pack(best.values)
        try:
            work = ValueIteration(most=SWEEPS).values(problem, self._goal, self.monitor, start)
            self.monitor.count(0)
        except Stopped as stop:
            return self._judge(problem, problem.unpack(start), stop.status)
        except KeyboardInterrupt:
            self.monitor.end(Status.INTERRUPTED)
            return self._judge(problem, problem.unpack(start), Status.INTERRUPTED)
        return self._judge(problem, problem.unpack(work), Status.STALLED)

    def _solve_iteratively(self, problem: Any, best: FixedResult, products: int) -> FixedResult:
        """What BiCGSTAB makes of values found so far."""
        values = best.values
        try:
            for attempt in range(ATTEMPTS):
                width = self._goal.width(best.low, best.high, _size(values))
                aim = 0.5**attempt * 0.5 * width
                values, _ = solve_iteratively(
                    problem, best.values, aim, products, self.discount, self.monitor
                )
                result = self._judge(problem, values, Status.STALLED)
                self.monitor.report(result.low, result.high)
                best = min(best, result, key=lambda r: r.high - r.low)
                if best.status is Status.CONVERGED or products == FIRST:
                    break
        except Stopped as stop:
            return FixedResult(best.values, best.low, best.high, stop.status)
        except KeyboardInterrupt:
            self.monitor.end(Status.INTERRUPTED)
            return FixedResult(best.values, best.low, best.high, Status.INTERRUPTED)
        return best

    def _judge(self, problem: Any, values: Floats, otherwise: Status) -> FixedResult:
        low, high = problem.certify(problem.pack(values), discount=self.discount)
        return self._judged(values, low, high, otherwise)

    def _judged(self, values: Floats, low: float, high: float, otherwise: Status) -> FixedResult:
        width = self._goal.width(low, high, _size(values))
        status = Status.CONVERGED if high - low <= width else otherwise
        return FixedResult(values, low, high, status)


def largest_cost(fixed: Any) -> float:
    """Largest cost rate of an uncontrolled problem, without its sign, cost/time."""
    return float(np.abs(fixed.unpack(fixed.cost_work())).max(initial=0.0))


def _finite(values: Floats) -> Floats:
    if not np.isfinite(values).all() or np.abs(values).max(initial=0.0) > 1e200:
        raise SingularChainError("the values are not finite")
    return values


def _size(values: Floats) -> float:
    return float(np.abs(values).max(initial=0.0))
