"""The pictures of simulated policies: how the estimates converge, and recorded paths."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

from mdpcloud.plots.convergence import plot_convergence
from mdpcloud.plots.paths import plot_path
from mdpcloud.plots.style import heading, plain, pretty

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from mdpcloud.compare.comparison import Comparison

__all__ = ["simulation_figures"]


def simulation_figures(comparison: Comparison) -> Iterator[tuple[str, Figure]]:
    """File names and figures, for every policy that was simulated.

    ``convergence_NAME.png``, and ``path_NAME_VARIABLE.png`` for each recorded state variable.
    """
    unit = f"{comparison.cost_unit} per {comparison.time_unit}"
    for row in comparison.rows:
        if row.simulation is None:
            continue
        about = ": ".join(filter(None, (plain(comparison.name), plain(pretty(row.name)))))
        figure = plot_convergence(row.simulation, unit=unit)
        heading(figure, about)
        yield f"convergence_{_in_file_name(row.name)}.png", figure
        for variable in row.simulation.records:
            figure = plot_path(row.simulation, variable, time_unit=comparison.time_unit)
            heading(figure, about)
            yield f"path_{_in_file_name(row.name)}_{_in_file_name(variable)}.png", figure


def _in_file_name(name: str) -> str:
    """A name without what file names should not have.

    Examples
    --------
    >>> _in_file_name("my_rules.py:join_fastest"), _in_file_name("node[0]")
    ('my_rules.py_join_fastest', 'node_0')
    """
    return re.sub(r"[^\w.-]+", "_", name).strip("_")
