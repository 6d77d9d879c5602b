"""The pictures of a comparison: costs, index curves, action maps, where they make sense."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Mapping, Sequence
from decimal import ROUND_CEILING, Context
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mdpcloud.compare.captions import captioned, node_of, servers_of, title_of
from mdpcloud.compare.maps import actions_figure
from mdpcloud.compare.paths import simulation_figures
from mdpcloud.plots.costs import Cost, draw_costs, percent
from mdpcloud.plots.indices import Curve, draw_indices
from mdpcloud.plots.style import (
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

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from mdpcloud.compare.comparison import Comparison
    from mdpcloud.compare.row import Row

__all__ = ["actions_figure", "costs_figure", "draw", "indices_figure"]


CERTAIN = ("exact", "closed_form")
KINDS = {"restricted": "on a box set by hand", "bracketed": "bracketed", "estimated": "estimated"}
MOST_NODES = 12  # panels of index curves
COLUMNS = 3  # panels in a row


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
    name = plain(title_of(row))
    return Cost(name, row.cost, row.lower, row.upper, label, certain, colour, marker)


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
    heading(figure, captioned(comparison, about))
    add_legend(figure, *grid[0].get_legend_handles_labels())
    return figure


def _equal_nodes(rows: Sequence[Row], system: Any) -> list[list[int]]:
    """Nodes with the same curves, in the order of the first of them."""
    groups: dict[Any, list[int]] = {}
    for k in range(max(len(row.indices or ()) for row in rows)):
        curves = tuple(tuple(_charged(row, k, system)) for row in rows)
        groups.setdefault((curves, servers_of(system, k)), []).append(k)
    return list(groups.values())


def _charged(row: Row, k: int, system: Any) -> list[float]:
    """The index of a node as the rule compares it with the outside cost."""
    tables = row.indices or ()
    return [value + _charge(system, k) for value in (tables[k] if k < len(tables) else ())]


def _charge(system: Any, k: int) -> float:
    return float(getattr(node_of(system, k), "routing_charge", 0.0))


def _describe(nodes: Sequence[int], system: Any) -> str:
    """Name of a group of equal nodes, such as ``nodes 0, 2 (5 servers)``."""
    some = [str(k) for k in nodes[:4]] + ["..."] * (len(nodes) > 4)
    name = ("nodes " if len(nodes) > 1 else "node ") + ", ".join(some)
    servers = servers_of(system, nodes[0])
    if servers is None:
        return name
    return f"{name} ({servers} server{'s' * (servers != 1)}{' each' * (len(nodes) > 1)})"
