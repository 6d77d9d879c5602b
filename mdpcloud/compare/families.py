"""The best member of a family of policies, as a row of a comparison."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from mdpcloud.compare.optimum import Settings, model_of
from mdpcloud.compare.row import Row
from mdpcloud.compare.rows import ROW, evaluate_policy, row_of
from mdpcloud.policies.family import Family
from mdpcloud.policies.search import BestMember, best_member
from mdpcloud.solve import Status
from mdpcloud.systems.base import Heuristic

__all__ = ["evaluate_best"]

MOST_VECTORS = 3  # of members as good as the best one, in a note


def evaluate_best(system: Any, name: str, family: Family, settings: Settings) -> Row:
    """Row of the best member of a family, on the states of the system's model.

    Raises
    ------
    InputError
        When a member takes an action that is unknown or not allowed.
    """
    model = model_of(system, settings.caps)
    best = best_member(
        model,
        family,
        tolerance=min(settings.tolerance, ROW),
        threads=settings.threads,
        time_limit=settings.time_left,
        progress=_members_done(settings),
    )
    notes = (*family.notes, *_how_found(best))
    heuristic = Heuristic(name, rule=family.member(*best.vector), notes=notes)
    if best.status is Status.INTERRUPTED:
        settings = replace(settings, progress=None)  # the rest is short
    row = row_of(system, evaluate_policy(model, best.policy, settings), heuristic, settings)
    status = row.status if best.status is Status.CONVERGED else best.status.name.lower()
    return replace(
        row, status=status, family=family.name, parameter=best.parameter, members=family.size
    )


def _members_done(settings: Settings) -> Any:
    """Progress of a search by its ``members``, else as of a solve: bounds of the least cost."""
    tell = settings.progress
    if tell is None:
        return None
    return getattr(tell, "members", lambda done, _, lower, upper: tell(done, lower, upper))


def _how_found(best: BestMember) -> list[str]:
    """How far the best member is known to be the best."""
    size, done = best.family.size, best.evaluated
    found = []
    if best.status is not Status.CONVERGED:
        found.append(f"the best of the {done} of {size} members that were evaluated by then")
    elif not best.exhaustive:
        found.append(f"found by bisection, {done} of {size} members: the cost is unimodal")
    if best.equals:
        found.append(
            f"as good, as far as the bounds tell: {_vectors(best, best.equals)}; the first is given"
        )
    if best.same:
        found.append(f"the same policy: {_vectors(best, best.same)}")
    return found


def _vectors(best: BestMember, vectors: Sequence[tuple[float, ...]]) -> str:
    """Parameter vectors in words, the first few of them."""
    shown = [f"({text})" for text in best.named(vectors[:MOST_VECTORS])]
    more = len(vectors) - MOST_VECTORS
    return ", ".join(shown) + (f" and {more} more" if more > 0 else "")
