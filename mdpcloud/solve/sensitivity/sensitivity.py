"""Derivatives of the optimal average cost with respect to a parameter, one on each side.

Let g(t) be the optimal average cost of a finite model whose rates and costs are differentiable in
t, c_d, Q_d and pi_d the cost rate, generator and stationary law of a policy d, and h a solution of
the optimality equation at t. Under one optimal policy

    g'(t) = sum_x pi_d(x) f_d(x),     f_d = dc_d/dt + (dQ_d/dt) h

(Schweitzer 1968, "Perturbation theory and finite Markov chains"; Cao 2007, "Stochastic learning and
optimization", chapter 2): in the derivative of c_d + Q_d h_d = g 1, multiplied by pi_d, that of h_d
vanishes with pi_d Q_d = 0. If several policies are optimal, then

    g'(t+) = min over them,     g'(t-) = max over them,

since g is the least of finitely many differentiable functions, of which those that are not least at
t are not least near t (Danskin 1967, "The theory of max-min"; Fiacco 1983, "Introduction to
sensitivity and stability analysis in nonlinear programming").

*Which policies count.* A policy d is optimal on a recurrent class R if and only if its actions
attain the optimality equation on R: with the slack s_d = c_d + Q_d h - g >= 0 one has
g_d - g = sum_R pi_d s_d, which is 0 if and only if s_d vanishes on R. Then h restricted to R solves
the Poisson equation of d, so that the formula holds with one h for all of them. What d does outside
R is of no consequence, and may be changed to actions that attain the equation. So g'(t+) is the
least long-run average of the rates

    f_a(x) = d/dt [ c(x) + sum_e r_e(x) ( k_a(x) + sum_j w_aj(x) ( h(x + s_aj) - h(x) ) ) ]

at fixed h over the model restricted to the actions that attain the equation, and g'(t-) is the
largest; where that model has several closed sets the best one counts, which can be reached if the
whole model communicates and no moves begin or end at t (else it is refused by name). At a value
where a rate vanishes only one side exists; an event that starts there is answered by its best
action.

*What is certified, what estimated.* f is found by extrapolated differences in t at fixed h and
actions; the right-hand side is nearly always affine in t, where they are exact up to rounding. The
averages over tied actions have certified bounds for given f. The error stated is an estimate: that
of the differences, averaged like f, plus those of the law and of h relative to the mean of |f|.
Ties are judged to a margin of 1e-9 of the gain: a kink that is nearer than that is reported as a
kink at t.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, cast

import numpy as np

from mdpcloud.criteria import AverageCost
from mdpcloud.engine import compile_model
from mdpcloud.engine.problem import Choice, Floats
from mdpcloud.errors import InputError, MultichainError, SolveError
from mdpcloud.model.policy import policy_of
from mdpcloud.solve.limits import Monitor, Status, check_tolerance
from mdpcloud.solve.optimise import solve
from mdpcloud.solve.result import Solution
from mdpcloud.solve.reward import costs_of, sense_of
from mdpcloud.solve.sensitivity.differences import differentiate, find_stencil
from mdpcloud.solve.sensitivity.families import Family, families_of
from mdpcloud.solve.sensitivity.parametric import RightHandSide
from mdpcloud.solve.sensitivity.ties import (
    Tie,
    changes,
    find_ties,
    have_several_sets,
    least_average,
    settle,
)
from mdpcloud.solve.stationary.stationary import long_run, stationary

__all__ = ["Sensitivity", "sensitivity"]

LAW = 1e-12  # relative residual of a stationary law
FLOOR = 1e-11  # of the largest cost rate per value of the parameter: the finest tolerance
AVERAGE = 1e-11  # relative tolerance of averages over tied actions
UNRESOLVED = 1e-2  # of the jump at a kink: an error above it leaves open whether there is one


@dataclass(frozen=True)
class Sensitivity:
    """Derivatives of the optimal average cost (reward, for a model given by rewards).

    Attributes
    ----------
    name : str
        The parameter.
    at : float
        Its value.
    gain : float
        The optimum there.
    left, right : float or None
        Derivatives from below and from above, gain per unit of the parameter; None on a side on
        which there is no model (a rate below 0).
    error : float
        Estimated absolute error of both.
    ties : int
        States in which another action is as good as the policy's; 0 where the optimum is smooth.
    """

    name: str
    at: float
    gain: float
    left: float | None
    right: float | None
    error: float
    ties: int

    @property
    def derivative(self) -> float:
        """The derivative, where both sides agree within the error or only one exists.

        Raises
        ------
        InputError
            At a kink, where the sides differ.
        """
        sides = [side for side in (self.left, self.right) if side is not None]
        if max(sides) - min(sides) > 2.0 * self.error:
            raise InputError(
                f"the optimum has a kink at {self.name} = {self.at:g}: its derivative is "
                f"{self.left:.9g} on the left and {self.right:.9g} on the right; see .left, .right"
            )
        return sum(sides) / len(sides)


def sensitivity(
    model: Any,
    at: Any,
    *,
    solution: Solution | None = None,
    tolerance: float = 1e-8,
    caps: Sequence[int] | None = None,
    threads: int = 1,
) -> Any:
    """Derivative of the optimal average cost with respect to parameters.

    Parameters
    ----------
    model : function, system or Model
        A function from a value of the parameter to a model (always with the same states); or from
        several, as keywords. Or a system. Or a `Model`, whose events' rates are scaled.
    at : float, mapping, str or list of str
        For a function, the value of its parameter, or a mapping from keywords to values. For a
        system the path of a field, such as ``"arrival_rate"`` or ``"nodes[1].service_rate"``. For
        a `Model` the name of an event: the parameter is a factor on its rate, at the value 1. A
        list of names takes several, with one solve.
    solution : Solution, optional
        The optimum at these values, if it is known.
    tolerance : float
        Largest estimated error, relative to the mean size of the derivative of the right-hand
        side; no finer than 1e-11 of the largest cost rate over the parameter's value.
    caps : sequence of int, optional
        The box of a system without an exact one.
    threads : int

    Returns
    -------
    Sensitivity, or dict of name to Sensitivity where ``at`` is a mapping or a list

    Raises
    ------
    InputError
        When there is no such parameter, no model near its value, or one with other states, events
        or allowed actions.
    MultichainError
        When the gain depends on the initial state.
    SolveError
        When the tolerance was not met; it carries the result.

    Examples
    --------
    The loss rate of an M/M/1 queue with room for one, a / (1 + a) times a, at a = 1:

    >>> import mdpcloud as mc
    >>> def queue(load):
    ...     arrival = mc.Event(
    ...         "arrival", load, [mc.Action("lost", cost=1.0, allowed=lambda x: x.jobs == 1),
    ...                           mc.Action("join", mc.step(jobs=+1))])
    ...     service = mc.Event("service", lambda x: 1.0 * (x.jobs > 0), mc.step(jobs=-1))
    ...     return mc.Model(mc.Lattice({"jobs": 1}), [arrival, service])
    >>> round(sensitivity(queue, 1.0).derivative, 9)
    0.75
    """
    check_tolerance(tolerance)
    if solution is not None and not isinstance(solution, Solution):
        raise InputError(f"solution is {solution!r}; it must be what mdpcloud.solve returned")
    families = families_of(model, at, caps)
    base = _Base(families[0].build(families[0].at), solution, threads)
    found = {family.name: _derivative(base, family, tolerance) for family in families}
    return found if isinstance(at, (dict, list, tuple)) else found[families[0].name]


class _Base:
    """The optimum at the values of interest; one for all parameters."""

    def __init__(self, model: Any, solution: Solution | None, threads: int) -> None:
        self.sense, self.threads = sense_of(model), threads
        self.problem: Any = compile_model(model, threads=threads)
        if solution is None:
            solution = solve(model, threads=threads, strict=False)
        self._check(solution)
        lower, upper = solution.bounds
        rough = costs_of(model, solution.values, solution.criterion)
        choice = cast(Choice, solution.policy.choice(self.problem))
        self.optimum = settle(self.problem, choice, Monitor())
        self.ties = find_ties(self.optimum, rough, float(upper - lower))
        self.model = model

    def _check(self, solution: Solution) -> None:
        if not isinstance(solution.criterion, AverageCost):
            raise InputError("sensitivities are those of the average cost; solve without discount")
        if np.ndim(solution.bounds[0]):
            raise MultichainError(
                "the gain depends on the initial state; sensitivities need one gain for all states"
            )
        solution.policy.check(self.problem)
        if solution.policy.randomised:
            raise InputError("the policy of the solution is randomised; it must be an optimal one")
        if solution.status not in (Status.CONVERGED, Status.PRECISION):
            raise SolveError(f"the optimum was not found: {solution.status.value}", solution)

    @cached_property
    def several_sets(self) -> bool:
        """Whether optimal actions lead to several sets of states that they never leave."""
        return have_several_sets(self.optimum, self.ties)

    @cached_property
    def law(self) -> Floats:
        """Stationary law of the optimal policy."""
        return stationary(self.model, policy_of(self.problem, self.optimum.choice), tolerance=LAW)

    @cached_property
    def scale(self) -> float:
        """Mean size of the cost rate under the optimal policy, cost/time."""
        rates = changes(self.problem, self.optimum.choice, np.zeros(self.problem.n), [])[0]
        return float(self.law @ np.abs(rates))

    @property
    def slack(self) -> float:
        """Relative error of averages from those of the law and of h."""
        width = self.optimum.high - self.optimum.low
        return LAW + (width / self.scale if self.scale > 0.0 else 0.0)

    @property
    def tied_states(self) -> int:
        """Number of states with several optimal actions."""
        return int(np.any([tie.states for tie in self.ties], axis=0).sum()) if self.ties else 0


def _derivative(base: _Base, family: Family, tolerance: float) -> Sensitivity:
    rates = RightHandSide(base.optimum, base.ties, family, base.threads, base.several_sets)
    stencil = find_stencil(rates.reason_against, family.at)
    values, errors = differentiate(rates, stencil)
    right, right_error, size = _average(base, values, errors, +1)
    left, left_error, _ = _average(base, values, errors, -1) if base.ties else (right, 0.0, 0.0)
    error = max(left_error, right_error) + base.slack * size
    if error > UNRESOLVED * abs(left - right):
        error += abs(left - right)  # the ties may be mistaken
    found = Sensitivity(
        name=family.name,
        at=family.at,
        gain=base.sense * base.optimum.gain,
        left=None if stencil.side == "forward" else base.sense * left,
        right=None if stencil.side == "backward" else base.sense * right,
        error=error,
        ties=base.tied_states,
    )
    _insist(found, max(tolerance * size, FLOOR * base.problem.cost_scale / (abs(family.at) or 1.0)))
    return found


def _insist(found: Sensitivity, wanted: float) -> None:
    if not found.error <= wanted:
        raise SolveError(
            f"the derivative with respect to {found.name} has an estimated error of "
            f"{found.error:.2g}, {wanted:.2g} asked; the model may not be smooth in it",
            found,
        )


def _average(base: _Base, values: Floats, errors: Floats, sign: int) -> tuple[float, float, float]:
    """The least (sign 1) or largest (-1) average of the rates, its error, and that of their size.

    The error is half the width of the certified bounds, plus the average error of the rates.
    """
    if not base.ties:
        law = base.law
        return float(law @ values[0]), float(law @ errors[0]), float(law @ np.abs(values[0]))
    optimum = base.optimum
    low, high, choice, state = least_average(optimum, base.ties, sign * values, AVERAGE)
    law = long_run(base.model, state, policy_of(base.problem, choice), tolerance=LAW)
    total, error = _under(base.ties, choice, values, errors)
    return (
        sign * 0.5 * (low + high),
        0.5 * (high - low) + float(law @ error),
        float(law @ np.abs(total)),
    )


def _under(
    ties: Sequence[Tie], choice: Choice, values: Floats, errors: Floats
) -> tuple[Floats, Floats]:
    """Rates and their errors under a choice among tied actions, (n,) each."""
    total, error = values[0].copy(), errors[0].copy()
    for k, tie in enumerate(ties, start=1):
        taken = tie.states & (choice[tie.term] == tie.action)
        total[taken] += values[k, taken]
        error[taken] += errors[k, taken]
    return total, error
