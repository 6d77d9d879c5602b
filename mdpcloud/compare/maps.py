"""Maps of actions: what the optimum and each rule of a comparison do in each state."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import islice
from typing import TYPE_CHECKING, Any

import numpy as np

from mdpcloud.compare.captions import captioned, servers_of, title_of
from mdpcloud.engine.problem import TermInfo
from mdpcloud.model.policy import Policy
from mdpcloud.plots.actions import crop, maps_figure, strips_figure
from mdpcloud.plots.slices import NOTHING, Slice, free_axes, policy_on, rule_on, space_caps
from mdpcloud.plots.style import (
    action_colours,
    heading,
    plain,
    pretty,
)
from mdpcloud.policies.family import BEST, families_of

if TYPE_CHECKING:
    from matplotlib.figure import Figure
    from numpy.typing import NDArray

    from mdpcloud.compare.comparison import Comparison
    from mdpcloud.compare.row import Row

__all__ = ["actions_figure"]

MOST_MAPS = 12  # panels of action maps
LETTERS = 22  # in a line of the title of a map
COUNTS = ("node", "jobs", "busy")  # axes that count jobs
FARTHEST = 80  # largest coordinate in an action map
BEYOND = 2  # states shown beyond the largest threshold


def actions_figure(comparison: Comparison) -> Figure | None:
    """What the optimum and each rule do: on two coordinates of the state, or on its only one."""
    if comparison.optimum is None:
        return None
    model, policy = comparison.optimum.model, comparison.optimum.policy
    if not hasattr(model, "space") or not policy.actions:
        return None
    part = _slice(comparison, model, comparison.optimum.kind)
    names = list(dict.fromkeys(name for actions in policy.names.values() for name in actions))
    maps = islice(_maps(comparison, model, policy, part, names), MOST_MAPS)
    shown = [(name, table) for name, table in maps if (table >= 0).any()]
    if not shown:
        return None
    tables = _without_margin(crop([table for _, table in shown], BEYOND))
    titles = [plain(name) for name, _ in shown]
    colours = action_colours(names)
    if len(part.free) == 2:
        figure = maps_figure(titles, tables, colours, (part.coordinate(0), part.coordinate(1)))
    else:
        figure = strips_figure(titles, tables, colours, part.coordinate(0))
    only = f"{next(iter(policy.names))}: " if len(policy.names) == 1 else ""
    heading(figure, captioned(comparison, plain(f"{only}action by state{part.where()}")))
    return figure


def _slice(comparison: Comparison, model: Any, kind: str) -> Slice:
    """Two coordinates, within the optimum's box; without the edge of a box that cuts states off."""
    axes, caps = model.space.axes, space_caps(model)
    edge = 1 if kind == "exact" else 0
    free = free_axes(axes)
    shape = tuple(min(max(caps[k] + edge, 1), FARTHEST) for k in free)
    fixed = tuple(_typical(comparison, axes.flat[k], caps[k]) for k in range(len(axes)))
    return Slice(axes, free, shape, fixed)


def _typical(comparison: Comparison, coordinate: tuple[str, int | None], cap: int) -> int:
    """A coordinate's value: a node's servers, its mean under the best policy, or half the cap."""
    family, member = coordinate
    servers = servers_of(comparison.system, member or 0) if family == "node" else None
    if servers is not None:
        return min(servers, cap)
    known = [row for row in comparison.rows if _mean(row, member or 0)]
    if family not in COUNTS or not known:
        return cap // 2
    ends = _mean(min(known, key=lambda row: row.cost), member or 0)
    return min(round(0.5 * sum(ends)), cap)


def _mean(row: Row, member: int) -> Sequence[float]:
    """Bounds of the mean number of jobs that a coordinate counts, by its number; else empty."""
    exact = row.measures.get(f"mean_jobs[{member}]")
    nested = [ends for name, ends in row.measures.items() if name.startswith("mean_jobs[")]
    return exact or (nested[member] if member < len(nested) else ())


def _without_margin(tables: Sequence[NDArray[Any]]) -> list[NDArray[Any]]:
    """Tables without the last rows and columns in which none of them has an action."""
    known = np.any([table >= 0 for table in tables], axis=0)
    sizes = [int(places.max()) + 1 for places in np.nonzero(known)]
    return [table[tuple(slice(size) for size in sizes)] for table in tables]


def _maps(
    comparison: Comparison, model: Any, policy: Policy, part: Slice, names: Sequence[str]
) -> Iterator[tuple[str, NDArray[Any]]]:
    """Actions of the optimum and of the rules on the slice, as positions in ``names``."""
    several = len(policy.names) > 1
    rows = _chosen_rows(comparison, len(policy.names)) if several else comparison.rows
    finite = comparison.optimum is not None and comparison.optimum.caps is None
    for decision, actions in policy.names.items():
        position = np.array([*map(names.index, actions), NOTHING])
        best = position[policy_on(part, policy, decision, model)]
        yield (f"optimum, {decision}" if several else "optimum"), best
        for row in rows:
            rule = _rule(comparison, row, decision)
            if rule is None:
                continue
            table = position[rule_on(part, TermInfo(decision, actions, True), rule)]
            name = pretty(f"{row.name}, {decision}", LETTERS) if several else title_of(row, LETTERS)
            yield name, np.where(best == NOTHING, NOTHING, table) if finite else table


def _chosen_rows(comparison: Comparison, decisions: int) -> list[Row]:
    """Rules of the user's own, the system's own policy, the cheapest best member: what has room."""
    own = getattr(comparison.system, "own_policy", None)
    users = [row for row in comparison.rows if row.heuristic is None and row.family is None]
    known = [row for row in comparison.rows if own is not None and row.heuristic == own]
    best = sorted((row for row in comparison.rows if row.parameter), key=lambda row: row.cost)
    drawn = [row for row in (*users, *known, *best[:1]) if _rules(comparison, row) is not None]
    return drawn[: max(MOST_MAPS // decisions - 1, 0)]


def _rule(comparison: Comparison, row: Row, decision: str) -> Callable[[Any], Any] | None:
    """The rule of a row for a decision, unless it is randomised or not known any more."""
    rules = _rules(comparison, row)
    rule = rules.get(decision) if isinstance(rules, Mapping) else rules
    return rule if callable(rule) else None


def _rules(comparison: Comparison, row: Row) -> Any:
    """The rules of a row; pickling loses them, but those of the system can be made again."""
    if row.rule is not None:
        return row.rule
    if row.heuristic is not None:
        return comparison.system.heuristic(row.heuristic, comparison.ties).rule
    family = families_of(comparison.system).get(f"{BEST}{row.family}")
    return family.member(*(row.parameter or {}).values()) if family else None
