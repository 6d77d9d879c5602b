"""Fluid trajectories: ordinary differential equations that change where a surface is hit.

The state moves by dx/dt = f_m(x) in mode m until one of the mode's gaps, functions of x that are
positive inside, falls to zero; there `mode_at` says which mode comes next. On a surface that is not
left at once, the mode slides along it (Filippov, "Differential equations with discontinuous right-
hand sides", 1988). Every step (Dormand and Prince, order 8; after `MOST_EXPLICIT` of these the
equation is taken for stiff, and the implicit method Radau IIA of order 5 goes on) is searched for
the first place where a gap falls to zero, by the step's own polynomial, and cut off there; steps
need not be small. A gap that falls below zero by no more than a few tolerances is not left: so much
is rounding on the way along a surface. Gaps are to be of the order of 1. The error is estimated by
a second trajectory of a hundred times the tolerance, so it is that of the second one.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from numbers import Real
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from mdpcloud.errors import InputError, SolveError
from mdpcloud.limits.crossings import first_hits
from mdpcloud.queues.border import checked_number

__all__ = ["Mode", "Trajectory", "checked_numbers", "integrate"]

Array: TypeAlias = NDArray[np.float64]

TOLERANCE = 1e-8
POINTS = 201  # of the times, where none are given
TOLERANCES = (1e-10, 1e-2)  # least and largest
SAFETY = 1e-2  # of the solver's tolerance: between steps it is less accurate than at their ends
FINER = 1e-2  # tolerance of the trajectory that is reported, by that of the one it is compared with
FINEST = 3e-14  # tolerance of the solver
DOUBT = 2.0  # of the estimated error: where both trajectories take the same steps
MOST_CHANGES = 1000  # of modes
MOST_EXPLICIT = 1000  # steps of a trajectory before an implicit method takes over
DIFFERENCE = 1e-6  # relative, of states, for derivatives
SLACK = 10.0  # tolerances below zero at which a gap is left


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
        Name of the mode that follows from x; x is the start, or within about the tolerance of every
        surface that was hit.
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
        When the times are not increasing from 0 on, the horizon is not positive, the start is not
        finite, there is not one label for each coordinate, or the tolerance is out of range.
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
    horizon = checked_number("horizon", horizon)
    asked, first = _times(times, horizon), checked_numbers("start", start)
    if first.ndim != 1 or first.size == 0 or not np.isfinite(first).all():
        raise InputError(f"start must be a list of at least one finite number, not {start!r}")
    names = tuple(labels) or tuple(f"x[{k}]" for k in range(first.size))
    if len(names) != first.size:
        raise InputError(f"there are {len(names)} labels for {first.size} coordinates")
    low, high = TOLERANCES
    if not low <= tolerance <= high:
        raise InputError(f"tolerance must be in [{low:g}, {high:g}], not {tolerance!r}")
    fine = max(tolerance * SAFETY * FINER, FINEST)
    coarse, _ = _follow(modes, mode_at, first, horizon, asked, fine / FINER)
    states, changes = _follow(modes, mode_at, first, horizon, asked, fine)
    error = DOUBT * max(float(np.max(np.abs(states - coarse))), fine)
    return Trajectory(asked, states[:-1], names, tuple(changes), error)


def checked_numbers(name: str, given: object) -> Array:
    """An array of what is given; InputError where that is no number, or list of numbers.

    >>> checked_numbers("start", [1, 0.5])
    array([1. , 0.5])
    """
    try:
        found = np.asarray(given)
        if found.dtype.kind == "O" and all(isinstance(x, Real) for x in found.ravel()):
            found = found.astype(float)
    except (ValueError, OverflowError) as error:
        raise InputError(f"{name} must be a list of numbers, not {given!r}") from error
    if found.dtype.kind not in "fiu":
        raise InputError(f"{name} must be a list of numbers, not {given!r}")
    numbers: Array = found.astype(float)
    return numbers


def _times(times: Sequence[float] | None, horizon: float) -> Array:
    given = np.linspace(0.0, horizon, POINTS) if times is None else times
    asked = checked_numbers("times", given)
    inside = (asked >= 0.0).all() and (asked <= horizon).all()
    if asked.ndim != 1 or not inside or (np.diff(asked) < 0.0).any():
        raise InputError(f"times must be increasing numbers in [0, {horizon:g}], the horizon")
    return asked


def _follow(
    modes: Mapping[str, Mode],
    mode_at: Callable[[Array], str],
    start: Array,
    horizon: float,
    asked: Array,
    tolerance: float,
) -> tuple[Array, list[tuple[float, str]]]:
    """States at the times asked for and, in the last row, at the horizon; and what was hit."""
    states = np.empty((asked.size + 1, start.size))
    now, x = 0.0, start
    changes: list[tuple[float, str]] = []
    solvers = _Solvers(horizon, tolerance)
    for _ in range(MOST_CHANGES):
        mode = modes[mode_at(x)]
        now, x, hits = _piece(mode, now, x, solvers, asked, states)
        changes += [(now, name) for name in hits]
        if mode.project is not None:
            x = mode.project(x)
        if not hits or now >= horizon:
            states[-1] = x
            return states, changes
    raise SolveError(
        f"the trajectory changed {MOST_CHANGES} times before time {now:g}: {changes[-3:]}"
    )


class _Solvers:
    """Solvers of the modes of a trajectory: explicit ones until one takes too many steps."""

    def __init__(self, horizon: float, tolerance: float) -> None:
        self.horizon, self.tolerance = horizon, tolerance
        self.stiff = False
        self.steps = 0

    def start(
        self, drift: Callable[[float, Array], Array], x: Array, now: float, length: float
    ) -> Any:
        """A solver from this state on, for a mode of this length."""
        from scipy.integrate import DOP853, Radau

        method, more = (Radau, {"jac": _jacobian(drift)}) if self.stiff else (DOP853, {})
        return method(drift, now, x, length, rtol=self.tolerance, atol=self.tolerance, **more)

    def next(self, drift: Callable[[float, Array], Array], solver: Any) -> Any:
        """The solver of the next step."""
        self.steps += 1
        if self.stiff or self.steps < MOST_EXPLICIT or solver.status != "running":
            return solver
        self.stiff = True
        return self.start(drift, solver.y, solver.t, solver.t_bound)


def _jacobian(drift: Callable[[float, Array], Array]) -> Callable[[float, Array], Array]:
    """Derivatives from three points to the right, exact for quadratic drifts but for rounding."""

    def jacobian(t: float, x: Array) -> Array:
        here, columns = drift(t, x), []
        for k, length in enumerate(DIFFERENCE * np.maximum(np.abs(x), 1.0)):
            way = np.zeros(x.size)
            way[k] = length
            near, far = drift(t, x + way), drift(t, x + 2.0 * way)
            columns.append((4.0 * near - 3.0 * here - far) / (2.0 * length))
        return np.stack(columns, axis=1)

    return jacobian


def _piece(
    mode: Mode, now: float, x: Array, solvers: _Solvers, asked: Array, states: Array
) -> tuple[float, Array, list[str]]:
    """Follow one mode and enter the states asked for; when it ends, where, and what is hit."""

    def drift(_: float, y: Array) -> Array:
        found = np.asarray(mode.drift(y), float)
        if not np.isfinite(found).all():
            raise SolveError(f"the drift is {found} in state {y}")
        return found

    # from time 0 on, so that times are as fine as the fastest rates at its beginning
    solver = solvers.start(drift, x, 0.0, solvers.horizon - now)
    later, slack = asked - now, SLACK * solvers.tolerance
    while solver.status == "running":
        message = solver.step()
        if solver.status == "failed":
            raise SolveError(f"the integration stopped at time {now + solver.t:g}: {message}")
        path = solver.dense_output()
        end, hits = first_hits(mode.gaps, path, solver.t_old, solver.t, slack)
        last = end if hits or solver.status == "running" else np.inf
        inside = (later >= solver.t_old) & (later <= last)
        states[:-1][inside] = path(np.minimum(later[inside], end)).T
        if hits:
            return min(now + end, solvers.horizon), path(end), hits
        solver = solvers.next(drift, solver)
    return solvers.horizon, solver.y, []
