"""Fluid trajectories: ordinary differential equations that change where a surface is hit.

The state moves by dx/dt = f_m(x) in mode m until one of the mode's gaps, functions of x that are
positive inside, falls to zero; there `mode_at` says which mode comes next. On a surface that is not
left at once, the mode slides along it (Filippov, "Differential equations with discontinuous right-
hand sides", 1988). Every exit is located to the accuracy of the integration; steps need not be
small. The error is estimated by repeating the whole at a hundredth of the tolerance.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from mdpcloud.errors import InputError, SolveError

__all__ = ["Mode", "Trajectory", "integrate"]

Array: TypeAlias = NDArray[np.float64]

TOLERANCE = 1e-8
POINTS = 201  # of the times, where none are given
MOST_CHANGES = 1000  # of modes


@dataclass(frozen=True, eq=False)
class Mode:
    """A differential equation and where it ends.

    Parameters
    ----------
    drift : function of x (d,)
        The derivative (d,).
    gaps : mapping of text to function of x
        What happens where a gap falls to zero, and the gap: positive inside, or zero at the start.
    project : function of x, optional
        The nearest point of the surface that the mode slides on, against drift.
    """

    drift: Callable[[Array], Array]
    gaps: Mapping[str, Callable[[Array], float]] = field(default_factory=dict)
    project: Callable[[Array], Array] | None = None


@dataclass(frozen=True, eq=False)
class Trajectory:
    """A fluid trajectory.

    Attributes
    ----------
    times : (k,) array
    states : (k, d) array
    labels : tuple of str
        Of the coordinates.
    changes : tuple of (time, text)
        What was hit, and when.
    error : float
        Estimated absolute error of every coordinate.
    """

    times: Array
    states: Array
    labels: tuple[str, ...]
    changes: tuple[tuple[float, str], ...]
    error: float


def integrate(
    modes: Mapping[str, Mode],
    mode_at: Callable[[Array], str],
    start: Sequence[float],
    horizon: float,
    *,
    labels: Sequence[str] = (),
    times: Sequence[float] | None = None,
    tolerance: float = TOLERANCE,
) -> Trajectory:
    """Follow a piecewise smooth differential equation.

    Parameters
    ----------
    modes : mapping of name to Mode
    mode_at : function of x
        Name of the mode that follows from x; x is within rounding of a surface that was hit.
    start : sequence of float
    horizon : float
        Last time.
    labels : sequence of str, optional
    times : sequence of float, optional
        Increasing, in [0, horizon]; by default `POINTS` at equal distances.
    tolerance : float
        Of the integration, relative to 1; the estimated error is of this order.

    Raises
    ------
    InputError
        When the times are not increasing from 0 on, or the horizon is not positive.
    SolveError
        When modes follow each other without end, or the integration fails.

    Examples
    --------
    >>> fill = Mode(lambda x: 1.0 - 0.0 * x, {"full": lambda x: 1.0 - x[0]})
    >>> full = Mode(lambda x: 0.0 * x)
    >>> path = integrate({"fill": fill, "full": full}, lambda x: "full" if x[0] > 0.999 else "fill",
    ...                  [0.0], 2.0, times=[0.5, 2.0])
    >>> path.states.round(9).ravel().tolist(), [(round(t, 9), what) for t, what in path.changes]
    ([0.5, 1.0], [(1.0, 'full')])
    """
    if not (np.isfinite(horizon) and horizon > 0.0):
        raise InputError(f"horizon must be a finite number > 0, not {horizon!r}")
    asked = np.linspace(0.0, horizon, POINTS) if times is None else np.asarray(times, float)
    if asked.size and (asked[0] < 0.0 or asked[-1] > horizon or (np.diff(asked) < 0.0).any()):
        raise InputError("times must be increasing, from 0 to the horizon")
    first = np.asarray(start, float)
    coarse, _ = _follow(modes, mode_at, first, horizon, asked, tolerance)
    states, changes = _follow(modes, mode_at, first, horizon, asked, max(tolerance / 100, 3e-14))
    error = float(np.max(np.abs(states - coarse), initial=0.0))
    names = tuple(labels) or tuple(f"x[{k}]" for k in range(first.size))
    return Trajectory(asked, states, names, tuple(changes), error)


def _follow(
    modes: Mapping[str, Mode],
    mode_at: Callable[[Array], str],
    start: Array,
    horizon: float,
    asked: Array,
    tolerance: float,
) -> tuple[Array, list[tuple[float, str]]]:
    states = np.empty((asked.size, start.size))
    now, x = 0.0, start
    changes: list[tuple[float, str]] = []
    for _ in range(MOST_CHANGES):
        mode = modes[mode_at(x)]
        run = _piece(mode, now, x, horizon, tolerance)
        inside = (asked >= now) & (asked <= run.t[-1])
        states[inside] = run.sol(asked[inside]).T
        now, x = float(run.t[-1]), run.y[:, -1]
        if mode.project is not None:
            x = mode.project(x)
        if run.status == 0:
            return states, changes
        hit = next(i for i, found in enumerate(run.t_events) if found.size)
        changes.append((now, list(mode.gaps)[hit]))
    raise SolveError(
        f"the trajectory changed {MOST_CHANGES} times before time {now:g}: {changes[-3:]}"
    )


def _piece(mode: Mode, now: float, x: Array, horizon: float, tolerance: float) -> Any:
    from scipy.integrate import solve_ivp

    run = solve_ivp(
        lambda _, y: mode.drift(y),
        (now, horizon),
        x,
        method="DOP853",
        dense_output=True,
        events=[_event(gap) for gap in mode.gaps.values()],
        rtol=tolerance,
        atol=tolerance,
    )
    if run.status < 0:
        raise SolveError(f"the integration stopped at time {run.t[-1]:g}: {run.message}")
    return run


def _event(gap: Callable[[Array], float]) -> Any:
    def event(_: float, y: Array) -> float:
        return gap(y)

    event.terminal = True  # type: ignore[attr-defined]
    event.direction = -1.0  # type: ignore[attr-defined]
    return event
