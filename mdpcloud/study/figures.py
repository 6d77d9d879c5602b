"""Figures of a study: charts of its results, with every number, as PNG, PDF and CSV.

A figure is made of the rows of the results alone. Each policy has the same colour, marker and dash
in all figures of a study.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from mdpcloud.errors import InputError
from mdpcloud.plots.chart import Chart, Panel
from mdpcloud.plots.files import write_chart
from mdpcloud.plots.labels import check_formulas
from mdpcloud.plots.scales import scale_of
from mdpcloud.study.figures_bars import bars_panel
from mdpcloud.study.figures_distribution import distribution_panel
from mdpcloud.study.figures_lines import lines_panel
from mdpcloud.study.figures_rows import COMMON, OPTIMUM, Rows, Selection, select
from mdpcloud.study.figures_words import curve_words, panel_title
from mdpcloud.study.outputs import Figure

if TYPE_CHECKING:
    from mdpcloud.study.results import Results

__all__ = ["chart_of", "draw"]

FOLDER = "figures"
PANELS = {"lines": lines_panel, "distribution": distribution_panel, "bars": bars_panel}


def chart_of(results: Results | Rows, figure: Figure) -> Chart:
    """The chart that a figure of a study describes.

    Parameters
    ----------
    results : Results, or rows
        Flat mappings with the same columns.
    figure : Figure

    Raises
    ------
    InputError
        When a column is not there, several instances stand at the same place, a label has a
        formula that cannot be drawn, or there is nothing to draw; the message says why.
    """
    for text in (figure.title, figure.x_label, figure.y_label):
        check_formulas(text or "")
    rows, axes = _table(results)
    selection = select(rows, axes, figure)
    panels, notes = [], []
    for values, those in selection.panels.items():
        panel, missing = PANELS[figure.kind](selection, panel_title(figure.panels, values), those)
        panels.append(panel)
        notes += missing
    return _chart(selection, panels, notes)


def _chart(selection: Selection, panels: list[Panel], notes: list[str]) -> Chart:
    figure = selection.figure
    names = {str(curve): curve_words(figure.curves, curve) for curve in selection.curves}
    if any(one.curve == OPTIMUM for panel in panels for one in panel.series):
        names[OPTIMUM] = OPTIMUM
    for axis, foot in (("x", "left edge"), ("y", "foot")):
        if scale_of(axis, panels).foot is not None:
            notes.append(f"at the {foot}, 0: {figure.y} that is 0 or cannot be told from 0")
    return Chart(tuple(panels), tuple(notes), figure.columns, names, figure.width)


def draw(results: Results, folder: Path) -> list[Path]:
    """Write every figure of a study as PNG, PDF and CSV into a folder ``figures``; their paths.

    Raises
    ------
    InputError
        As `chart_of`, when all that can be drawn is written.
    """
    paths: list[Path] = []
    mistakes: list[str] = []
    for figure in results.study.outputs.figures:
        try:
            chart = chart_of(results, figure)
        except InputError as error:
            mistakes.append(str(error))
            continue
        paths += write_chart(chart, folder / FOLDER, figure.name, figure.title or "")
    if mistakes:
        raise InputError("\n".join(mistakes))
    return paths


def _table(results: Results | Rows) -> tuple[Rows, tuple[str, ...]]:
    """Rows, also of the instances that were not computed, and the columns that tell them apart."""
    if isinstance(results, Sequence):
        return results, tuple(
            name for name in (results[0] if results else {}) if name not in COMMON
        )
    nothing = dict.fromkeys(results.columns)
    missing = [
        {**nothing, "instance": one.number, **one.labels, "error": "not computed"}
        for one in results.study.instances
        if one.key not in results.records
    ]
    return [*results.rows(), *missing], results.study.labels
