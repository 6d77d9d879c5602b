"""The pictures of a comparison: costs, index curves, action maps, where they make sense."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Callable, Iterator, Mapping, Sequence
from decimal import ROUND_CEILING, Context
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from mdpcloud.compare.paths import simulation_figures
from mdpcloud.engine.problem import TermInfo
from mdpcloud.model.policy import Policy
from mdpcloud.plots.actions import crop, maps_figure, strips_figure
from mdpcloud.plots.costs import Cost, draw_costs, percent
from mdpcloud.plots.indices import Curve, draw_indices
from mdpcloud.plots.slices import NOTHING, Slice, free_axes, policy_on, rule_on, space_caps
from mdpcloud.plots.style import (
    action_colours,
    add_legend,
    heading,
    new_figure,
    panels,
    plain,
    policy_colours,
    pretty,
    save,
    title,
)
from mdpcloud.policies.family import BEST, families_of, in_words

if TYPE_CHECKING:
    from matplotlib.figure import Figure
    from numpy.typing import NDArray

    from mdpcloud.compare.comparison import Comparison
    from mdpcloud.compare.row import Row

__all__ = ["draw"]


CERTAIN = ("exact", "closed_form")
KINDS = {"restricted": "on a box set by hand", "bracketed": "bracketed", "estimated": "estimated"}
MOST_NODES = 12  # panels of index curves
COLUMNS = 3  # panels in a row
MOST_MAPS = 12  # panels of action maps
BESIDE = 2  # policies beside the optimum, where several decisions are drawn
LETTERS = 22  # in a line of the title of a map
COUNTS = ("node", "jobs", "busy")  # axes that count jobs
FARTHEST = 80  # largest coordinate in an action map
BEYOND = 2  # states shown beyond the largest threshold


def draw(comparison: Comparison, folder: Path) -> list[Path]:
    """Write the pictures of a comparison as PNG.

    Parameters
    ----------
    comparison : Comparison
    folder : Path
        Made where it is missing.

    Returns
    -------
    list of Path
        ``costs.png`` where there are policies, ``indices.png`` where some have indices,
        ``actions.png`` where the model has coordinates and something is decided, and those of
        `simulation_figures` where policies were simulated.
    """
    folder.mkdir(parents=True, exist_ok=True)
    makers = {
        "costs.png": costs_figure,
        "indices.png": indices_figure,
        "actions.png": actions_figure,
    }
    figures = {name: make(comparison) for name, make in makers.items()}
    figures |= simulation_figures(comparison)
    return [save(figure, folder / name) for name, figure in figures.items() if figure is not None]


# --- costs ----------------------------------------------------------------------------------------


def costs_figure(comparison: Comparison) -> Figure | None:
    """The cost of each policy against the optimum, or against the best of them if there is none."""
    rows = [row for row in comparison.rows if math.isfinite(row.cost)]
    if not rows:
        return None
    looks = policy_colours([row.name for row in comparison.rows])
    best = comparison.optimum
    if best is None:
        first = min(rows, key=lambda row: row.cost)
        rows = [row for row in rows if row is not first]
        reference = _cost(comparison, first, *looks[first.name])
    elif math.isfinite(best.cost):
        kind = f" ({KINDS[best.kind]})" if best.kind in KINDS else ""
        label = f"{best.cost:.5g}{kind}"
        reference = Cost("optimum", best.cost, best.lower, best.upper, label, marker="d")
    else:
        return None
    policies = [_cost(comparison, row, *looks[row.name]) for row in rows]
    lines = max((policy.name.count("\n") for policy in policies), default=0)
    figure = new_figure(1.2 + (0.42 + 0.1 * lines) * max(len(rows), 1))
    unit = plain(f"{comparison.cost_unit} per {comparison.time_unit}")
    draw_costs(figure.subplots(), reference, policies, unit)
    heading(figure, plain(comparison.name))
    return figure


def _cost(comparison: Comparison, row: Row, colour: Any, marker: str) -> Cost:
    certain = row.status in CERTAIN
    status = "" if certain else f" ({row.status.replace('_', ' ')})"
    if comparison.optimum is None:
        label = _difference(row) + status
    else:
        label = _gap(comparison.gaps(row), certain) + status
    name = plain(_title(row))
    return Cost(name, row.cost, row.lower, row.upper, label, certain, colour, marker)


def _title(row: Row, width: int = 26) -> str:
    """Name of a row for people, with the parameter of the best member of a family below it."""
    name = pretty(row.name, width)
    if not row.parameter:
        return name
    return f"{name}\n{textwrap.fill(f'({in_words(row.parameter, width)})', width)}"


def _gap(gaps: Mapping[str, float | None], certain: bool) -> str:
    """The relative gap, with its bounds if it is uncertain; the absolute one if there is none."""
    gap, low, high = gaps["gap"], gaps["gap_lower"], gaps["gap_upper"]
    if gap is None or low is None or high is None:
        return f"{gaps['absolute_gap'] or 0.0:+.3g}"
    if certain or not math.isfinite(high - low) or percent(low) == percent(high):
        return percent(gap)
    return f"{percent(low)} to {percent(high)}"


def _difference(row: Row) -> str:
    """What a policy costs above the best one, or the cost of the best."""
    found = row.difference
    if found is None or found.kind == "best":
        half = _half_width(row.lower, row.upper)
        return f"{row.cost:.4g} ± {half}" if row.simulation is not None else f"{row.cost:.5g}"
    return f"{found.value:+.3g} ± {_half_width(found.lower, found.upper)}"


def _half_width(lower: float, upper: float) -> str:
    """Half the width of an interval in two digits, rounded up."""
    half = 0.5 * (upper - lower) * (1 - 1e-9)  # so that 0.1 is not printed as 0.11
    return f"{Context(prec=2, rounding=ROUND_CEILING).create_decimal_from_float(half):g}"


# --- index curves ---------------------------------------------------------------------------------


def indices_figure(comparison: Comparison) -> Figure | None:
    """The indices of each node under each index policy; equal nodes share a panel."""
    rows = [row for row in comparison.rows if row.indices and any(map(len, row.indices))]
    if not rows:
        return None
    system = comparison.system
    every = _equal_nodes(rows, system)
    groups = every[:MOST_NODES]
    looks = policy_colours([row.name for row in comparison.rows])
    figure, grid = panels(len(groups), columns=COLUMNS, height=2.7, sharey=True)
    for axes, nodes in zip(grid, groups, strict=True):
        curves = [
            Curve(plain(pretty(row.name)), _charged(row, nodes[0], system), *looks[row.name])
            for row in rows
        ]
        draw_indices(axes, curves, getattr(system, "outside_cost", None))
        title(axes, _describe(nodes, system))
    charged = any(_charge(system, k) for nodes in groups for k in nodes)
    index = "index + routing charge" if charged else "index"
    label = f"{index}, {plain(comparison.cost_unit)} per job"
    for axes in grid[::COLUMNS]:
        axes.set_ylabel(textwrap.fill(label, 30))
    for axes in grid[-COLUMNS:]:
        axes.set_xlabel("jobs at the node")
    ends = all(row.status == "exact" for row in rows)
    about = "a curve ends where its rule stops sending jobs to the node" if ends else ""
    if len(every) > len(groups):
        about = f"the first {len(groups)} of {len(every)} nodes that differ"
    heading(figure, _named(comparison, about))
    add_legend(figure, *grid[0].get_legend_handles_labels())
    return figure


def _equal_nodes(rows: Sequence[Row], system: Any) -> list[list[int]]:
    """Nodes with the same curves, in the order of the first of them."""
    groups: dict[Any, list[int]] = {}
    for k in range(max(len(row.indices or ()) for row in rows)):
        curves = tuple(tuple(_charged(row, k, system)) for row in rows)
        groups.setdefault((curves, _servers(system, k)), []).append(k)
    return list(groups.values())


def _charged(row: Row, k: int, system: Any) -> list[float]:
    """The index of a node as the rule compares it with the outside cost."""
    tables = row.indices or ()
    return [value + _charge(system, k) for value in (tables[k] if k < len(tables) else ())]


def _charge(system: Any, k: int) -> float:
    return float(getattr(_node(system, k), "routing_charge", 0.0))


def _servers(system: Any, k: int) -> int | None:
    return getattr(_node(system, k), "servers", None)


def _node(system: Any, k: int) -> Any:
    nodes = getattr(system, "nodes", ())
    return nodes[k] if k < len(nodes) else None


def _describe(nodes: Sequence[int], system: Any) -> str:
    """Name of a group of equal nodes, such as ``nodes 0, 2 (5 servers)``."""
    some = [str(k) for k in nodes[:4]] + ["..."] * (len(nodes) > 4)
    name = ("nodes " if len(nodes) > 1 else "node ") + ", ".join(some)
    servers = _servers(system, nodes[0])
    if servers is None:
        return name
    return f"{name} ({servers} server{'s' * (servers != 1)}{' each' * (len(nodes) > 1)})"


# --- action maps ----------------------------------------------------------------------------------


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
    heading(figure, _named(comparison, plain(f"{only}action by state{part.where()}")))
    return figure


def _named(comparison: Comparison, about: str) -> str:
    """What a picture shows, after the scenario's name where there is one."""
    return ": ".join(filter(None, (plain(comparison.name), about)))


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
    servers = _servers(comparison.system, member or 0) if family == "node" else None
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
            name = pretty(f"{row.name}, {decision}", LETTERS) if several else _title(row, LETTERS)
            yield name, np.where(best == NOTHING, NOTHING, table) if finite else table


def _chosen_rows(comparison: Comparison, decisions: int) -> list[Row]:
    """The system's own policy and the cheapest best member, if there is room for their maps."""
    if decisions * (1 + BESIDE) > MOST_MAPS:
        return []
    own = getattr(comparison.system, "own_policy", None)
    best = sorted((row for row in comparison.rows if row.parameter), key=lambda row: row.cost)
    return [*(row for row in comparison.rows if row.heuristic == own and own), *best[:1]]


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
