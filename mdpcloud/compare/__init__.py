"""Heuristic policies of a system, and the user's own, beside its certified optimum.

Where a system is too large to be solved, its policies are simulated with common random numbers, and
there is no optimum. The best member of each of its families of policies is searched for, where its
costs are exact (see `mdpcloud.policies.search`).
"""

from __future__ import annotations

import datetime
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from mdpcloud.compare.comparison import Comparison
from mdpcloud.compare.families import evaluate_best
from mdpcloud.compare.optimum import Optimum, Settings, check, compiled_model, find_optimum
from mdpcloud.compare.plan import Plan
from mdpcloud.compare.row import GOOD, Difference, Row, choose_policies
from mdpcloud.compare.rows import evaluate_row
from mdpcloud.compare.run import describe_run
from mdpcloud.compare.simulated import Simulated, check_simulated, how, simulate_rows
from mdpcloud.compare.size import quickly, why_not_solved
from mdpcloud.errors import InputError, NoLimitError, SolveError
from mdpcloud.policies.family import Family
from mdpcloud.policies.index_rule import tie_order
from mdpcloud.simulate.settings import SimulateSettings
from mdpcloud.solve.limits import Monitor, check_tolerance
from mdpcloud.systems.registry import is_system

__all__ = [
    "Comparison",
    "Difference",
    "Optimum",
    "Row",
    "compare",
    "evaluate_policies",
    "simulate_policies",
]

INTERRUPTED = "interrupted"


def compare(
    system: Any,
    policies: Mapping[str, Any] | Sequence[str] | None = None,
    *,
    ties: str = "fastest",
    tolerance: float = 1e-8,
    threads: int = 1,
    caps: Sequence[int] | None = None,
    solver: Any = None,
    time_limit: float | None = None,
    progress: Callable[[int, float, float], None] | None = None,
    simulate: Mapping[str, Any] | SimulateSettings | None = None,
) -> Comparison:
    """Compare policies of a system with its optimum.

    Where the system is too large to be solved, or has no Markov model, the policies are simulated
    with common random numbers instead: ``optimum`` is None, costs and measures have 95 % confidence
    intervals, and each row has its ``difference`` from the policy of least cost. A note says so.

    Parameters
    ----------
    system : object
        An instance of a system's dataclass, such as `mdpcloud.systems.CloudRouting`.
    policies : mapping of name to rule or Policy, or sequence of names, optional
        A rule is a function of the state that returns an action's name or number. The system's own
        policies are given by name, the best member of a family by ``"best NAME"`` or as a
        `mdpcloud.policies.family.Family`; all of them by default, but for families that are one of
        the policies, or whose search would take many minutes.
    ties : {"fastest", "first", "last", "slowest"}
        Which of several nodes of equal index takes the job.
    tolerance : float
        Relative width of the certified bounds of the optimum.
    threads : int
    caps : sequence of int, optional
        A box set by hand; the optimum is then that of the restricted problem, an upper bound.
    solver : str or solver, optional
    time_limit : float, optional
        Seconds, for the whole comparison; what is known by then is in the `SolveError`.
    progress : function of (iterations or events, lower, upper), optional
    simulate : mapping or SimulateSettings, optional
        How to simulate, if need be: any of events, time, half_width, warm_up, replications, seed,
        n_jobs, time_limit and paths, as in the table ``[simulate]`` of a scenario; by default as
        `mdpcloud.simulate` has them, and seed 0.

    Returns
    -------
    Comparison

    Raises
    ------
    InputError
        When a policy is unknown or takes an action that is not allowed.
    SolveError
        When something did not converge; it carries the `Comparison` so far.

    Examples
    --------
    >>> import mdpcloud as mc
    >>> nodes = (mc.systems.Node(1, 2.0, 0.5), mc.systems.Node(1, 1.0, 0.5))
    >>> system = mc.systems.CloudRouting(nodes, arrival_rate=3.0, outside_cost=0.4)
    >>> found = mc.compare(system, {"pi": "policy_improvement", "mine": lambda x: "outside"})
    >>> [(row.name, round(row.cost, 6)) for row in found.rows], round(found.optimum.cost, 6)
    ([('pi', 0.48), ('mine', 1.2)], 0.459624)
    """
    started = datetime.datetime.now(datetime.UTC)
    settings = _settings(ties, tolerance, threads, caps, solver, time_limit, progress)
    chosen = choose_policies(_checked(system), policies)
    plan = Plan.of(simulate, ties, progress, time_limit)
    reason = why_not_solved(system, settings)
    if reason is not None:
        found = simulate_rows(system, chosen, plan, asked=policies is not None, closed_forms=True)
        return _without_optimum(system, found, plan, settings.to_dict(), reason, started)
    optimum = find_optimum(system, settings)
    chosen, too_long = (chosen, []) if policies is not None else quickly(chosen, optimum.states)
    rows, left_out = _rows(
        system, chosen, ties, settings, optimum.status == INTERRUPTED, asked=policies is not None
    )
    comparison = Comparison(
        system=system,
        optimum=optimum,
        rows=rows,
        cost_scale=compiled_model(system, optimum.caps, settings)[1].cost_scale,
        ties=ties,
        solve=settings.to_dict(),
        notes=(
            *getattr(system, "notes", ()),
            *_box_notes(optimum),
            *_about(system, optimum),
            *left_out,
            *too_long,
        ),
        run=describe_run(started),
        fluid_bound=_fluid_bound(system),
    )
    check(optimum, comparison)
    _check_rows(rows, comparison)
    return comparison


def _settings(
    ties: str,
    tolerance: float,
    threads: int,
    caps: Sequence[int] | None,
    solver: Any,
    time_limit: float | None,
    progress: Callable[[int, float, float], None] | None,
) -> Settings:
    tie_order(ties, ())
    check_tolerance(tolerance)
    Monitor(time_limit=time_limit)
    box = None if caps is None else tuple(caps)
    return Settings(tolerance, threads, box, solver, time_limit, progress)


def _checked(system: Any) -> Any:
    if not is_system(type(system)):
        raise InputError(
            f"system is {system!r}; it must be an instance of a dataclass with a method model()"
        )
    return system


def _rows(
    system: Any,
    chosen: Mapping[str, Any],
    ties: str,
    settings: Settings,
    interrupted: bool,
    *,
    asked: bool,
) -> tuple[tuple[Row, ...], list[str]]:
    """A row per policy, up to an interrupt, and why some are left out.

    Policies that were not asked for by name are left out where their theory does not apply.
    """
    rows: list[Row] = []
    left_out: list[str] = []
    for name, what in chosen.items():
        if interrupted:
            break
        try:
            if isinstance(what, Family):
                rows.append(evaluate_best(system, name, what, settings))
            else:
                rows.append(evaluate_row(system, name, what, ties, settings))
        except InputError as error:
            if asked:
                raise
            left_out.append(f"left out: {error}")
        else:
            interrupted = rows[-1].status == INTERRUPTED
    return tuple(rows), left_out


def _fluid_bound(system: Any) -> float | None:
    """What the fluid limit says that no policy can cost less than; None where it says nothing."""
    try:
        return float(system.fluid_bound()) if hasattr(system, "fluid_bound") else None
    except NoLimitError:
        return None


def _about(system: Any, optimum: Optimum) -> tuple[str, ...]:
    """What a system has to say on the policy of its optimum, where that was found."""
    if not hasattr(system, "about_optimum") or optimum.status != "converged":
        return ()
    return tuple(system.about_optimum(optimum.policy))


def _box_notes(optimum: Optimum) -> tuple[str, ...]:
    if optimum.kind != "restricted":
        return ()
    return (
        "the caps were set by hand: the optimum is that of the box, an upper bound of the true "
        "one; a policy is evaluated wherever it goes, its true gap is at least the one given, and "
        "none is given where it does better than the box allows",
    )


def _check_rows(rows: Sequence[Row], comparison: Comparison) -> None:
    failed = [row.name for row in rows if row.status not in GOOD]
    if failed:
        raise SolveError(f"the cost of {', '.join(failed)} did not converge", comparison)


def evaluate_policies(
    system: Any,
    policies: Mapping[str, Any] | Sequence[str] | None = None,
    *,
    ties: str = "fastest",
    tolerance: float = 1e-8,
    threads: int = 1,
    caps: Sequence[int] | None = None,
    time_limit: float | None = None,
    progress: Callable[[int, float, float], None] | None = None,
    simulate: Mapping[str, Any] | SimulateSettings | None = None,
) -> list[Row]:
    """The rows of `compare` alone, without the optimum; parameters as there.

    Raises
    ------
    InputError
        As `compare`.
    SolveError
        When policies were simulated, and one did not do what was asked; it carries the rows so far.
    """
    settings = _settings(ties, tolerance, threads, caps, None, time_limit, progress)
    chosen = choose_policies(_checked(system), policies)
    plan = Plan.of(simulate, ties, progress, time_limit)
    asked = policies is not None
    reason = why_not_solved(system, settings)
    if reason is not None:
        found = simulate_rows(system, chosen, plan, asked=asked, closed_forms=True)
        noted = [
            replace(row, notes=(*row.notes, *_reasons(row, found, reason))) for row in found.rows
        ]
        check_simulated(found, plan.settings, noted)
        return noted
    rows, _ = _rows(system, chosen, ties, settings, False, asked=asked)
    return list(rows)


def _reasons(row: Row, found: Simulated, reason: str) -> tuple[str, ...]:
    return () if row.simulation is None else (f"simulated, since {reason}", how(found))


def simulate_policies(
    system: Any,
    policies: Mapping[str, Any] | Sequence[str] | None = None,
    *,
    ties: str = "fastest",
    simulate: Mapping[str, Any] | SimulateSettings | None = None,
    progress: Callable[[int, float, float], None] | None = None,
) -> Comparison:
    """Simulate policies with common random numbers, closed forms too; parameters as in `compare`.

    Raises
    ------
    InputError
        When a policy or a setting is unknown, or a policy takes an action that is not allowed.
    SolveError
        When a run was interrupted, or did not meet its half width; it carries the `Comparison` so
        far.
    """
    started = datetime.datetime.now(datetime.UTC)
    tie_order(ties, ())
    chosen = choose_policies(_checked(system), policies)
    plan = Plan.of(simulate, ties, progress)
    found = simulate_rows(system, chosen, plan, asked=policies is not None, closed_forms=False)
    return _without_optimum(system, found, plan, {}, None, started)


def _without_optimum(
    system: Any,
    found: Simulated,
    plan: Plan,
    solve: Mapping[str, Any],
    reason: str | None,
    started: datetime.datetime,
) -> Comparison:
    why = () if reason is None else (f"the policies are simulated, since {reason}",)
    comparison = Comparison(
        system=system,
        optimum=None,
        rows=found.rows,
        cost_scale=None,
        ties=plan.ties,
        solve=solve,
        notes=(*getattr(system, "notes", ()), *why, how(found), *found.left_out),
        run=describe_run(started),
        simulate=plan.to_dict(),
        fluid_bound=_fluid_bound(system),
    )
    check_simulated(found, plan.settings, comparison)
    return comparison
