"""Infinite state spaces, cut to boxes that grow until the cut no longer matters.

`bracketed`: on every box one model whose optimum is a lower bound of the infinite one, and one
whose optimum is an upper bound (typically: what would leave the box is free, or not allowed). That
they are is the caller's theorem; given it, the bounds are certified. The box grows until
upper - lower <= tolerance |cost|.

`estimated`: one model per box. The box grows until the cost changes by no more than the tolerance
and the long-run fraction of time within one step of the growing edges is below it. *This certifies
nothing*: a chain may look settled in every box that is tried, and spend its life beyond.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from mdpcloud.errors import SolveError
from mdpcloud.solve.limits import Progress, check_tolerance
from mdpcloud.solve.truncation.attempts import Bracket, Estimate, Truncation
from mdpcloud.solve.truncation.boxes import (
    LARGEST,
    REASONS,
    Budget,
    Caps,
    Growth,
    Work,
    checked_start,
    growth_of,
    on_growing_boxes,
)

__all__ = ["BRACKET_GROWTH", "Truncation", "bracketed", "estimated"]

BRACKET_GROWTH = 1.6
ESTIMATE_GROWTH = 2.0
SHARE = 0.3  # of the tolerance, for each solve: a bracket takes two


def bracketed(
    lower: Callable[[Caps], Any],
    upper: Callable[[Caps], Any],
    start: Sequence[int],
    *,
    grow: Growth = BRACKET_GROWTH,
    tolerance: float = 1e-8,
    largest: int = LARGEST,
    time_limit: float | None = None,
    solver: Any = None,
    threads: int = 1,
    progress: Progress | None = None,
    strict: bool = True,
) -> Truncation:
    """The optimum of an infinite model between those of two finite ones.

    Parameters
    ----------
    lower, upper : functions of caps
        Models whose optima are a lower and an upper bound of the infinite one, on the box with
        these caps; or pairs (model, rule), to evaluate a rule instead, of the kind that
        `mdpcloud.policy` takes. ``lower`` may return None: the upper model loses nothing here.
    start : sequence of int
        Caps of the first box.
    grow : float or function of caps
        Factor by which caps grow (and 2), or the next caps.
    tolerance : float
        Relative width of the bounds.
    largest : int
        States of the largest box.
    time_limit : float, optional
        Seconds.
    solver, threads, progress
        As for `mdpcloud.solve`.
    strict : bool
        Raise `SolveError` when the tolerance was not met; it carries the result.

    Returns
    -------
    Truncation

    Raises
    ------
    InputError
        When an argument is wrong, or a model.
    SolveError
        When the box reached its largest size, or a solve its limit, before the tolerance was met.

    Examples
    --------
    Customers of an M/M/1 queue cost 1 per unit of time each, and to refuse one costs 50. To refuse
    all that arrive at a full box is a policy, hence an upper bound; a lower one, by coupling, is to
    refuse them for nothing.

    >>> import mdpcloud as mc
    >>> def queue(cap, price):
    ...     join, refuse = mc.Action("join", mc.step(jobs=+1)), mc.Action("refuse", cost=50.0)
    ...     full = mc.Action("full", cost=price, allowed=lambda x: x.jobs == cap)
    ...     arrival = mc.Event("arrival", 0.5, [join, refuse, full])
    ...     service = mc.Event("service", lambda x: 1.0 * (x.jobs > 0), mc.step(jobs=-1))
    ...     space = mc.Lattice({"jobs": cap})
    ...     return mc.Model(space, [arrival, service], cost_rate=lambda x: x.jobs)
    >>> found = bracketed(lambda caps: queue(*caps, 0.0), lambda caps: queue(*caps, 50.0), [5])
    >>> found.kind, round(found.cost, 6), found.error < 1e-8
    ('bracketed', 1.0, True)
    """
    check_tolerance(tolerance)
    work = Work(SHARE * tolerance, solver, threads, progress, Budget(time_limit))
    growth = growth_of(grow)
    attempt = Bracket(lower, upper, tolerance, work)
    found, status = on_growing_boxes(
        attempt, checked_start(start), lambda caps, _: growth(caps), largest
    )
    return _insist(replace(found, status=status), strict)


def estimated(
    build: Callable[[Caps], Any],
    start: Sequence[int],
    *,
    grow: Growth = ESTIMATE_GROWTH,
    tolerance: float = 1e-8,
    largest: int = LARGEST,
    time_limit: float | None = None,
    solver: Any = None,
    threads: int = 1,
    progress: Progress | None = None,
    strict: bool = True,
) -> Truncation:
    """The optimum of an infinite model, estimated on growing boxes. It certifies nothing.

    The error is estimated by the change since the box before, or where the changes shrink slowly by
    the sum of those to come, if they go on to shrink by the same factor; the width of the bounds on
    the box is added.

    Parameters
    ----------
    build : function of caps
        The model on the box with these caps, or a pair (model, rule), to evaluate a rule instead,
        of the kind that `mdpcloud.policy` takes.
    start, grow, largest, time_limit, solver, threads, progress, strict
        As for `bracketed`; edges that do not grow are no cuts.
    tolerance : float
        Largest estimated error, relative to the cost, and largest boundary mass.

    Returns
    -------
    Truncation

    Raises
    ------
    InputError
        When an argument is wrong, or a model.
    SolveError
        When the box reached its largest size, or a solve its limit, before the tolerance was met:
        the model may have no stationary regime.

    Examples
    --------
    An M/M/1 queue with load 1/2 has one customer on average:

    >>> import mdpcloud as mc
    >>> def queue(caps):
    ...     arrival = mc.Event("arrival", lambda x: 0.5 * (x.jobs < caps[0]), mc.step(jobs=+1))
    ...     service = mc.Event("service", lambda x: 1.0 * (x.jobs > 0), mc.step(jobs=-1))
    ...     space = mc.Lattice({"jobs": caps[0]})
    ...     return mc.Model(space, [arrival, service], cost_rate=lambda x: x.jobs)
    >>> found = estimated(queue, [10])
    >>> found.kind, abs(found.cost - 1.0) <= found.error <= 1e-8, found.boundary < 1e-8
    ('estimated', True, True)
    """
    check_tolerance(tolerance)
    work = Work(SHARE * tolerance, solver, threads, progress, Budget(time_limit))
    growth = growth_of(grow)
    found, status = on_growing_boxes(
        Estimate(build, tolerance, work),
        checked_start(start),
        lambda caps, _: growth(caps),
        largest,
    )
    return _insist(replace(found, status=status), strict)


def _insist(found: Truncation, strict: bool) -> Truncation:
    if strict and not found.converged:
        lower, upper = found.bounds
        certified = "certified" if found.kind == "bracketed" else "estimated"
        raise SolveError(
            f"the box did not become large enough ({REASONS.get(found.status, found.status)}): "
            f"{certified} bounds [{lower:.12g}, {upper:.12g}] on {found.states} states",
            found,
        )
    return found
