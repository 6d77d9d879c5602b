"""Figures of a study: charts of its results, with every number, as PNG, PDF and CSV.

A figure is made of the rows of the results alone. Each policy has the same colour, marker and dash
in all figures of a study.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from mdpcloud.errors import InputError
from mdpcloud.plots.chart import Chart, Panel
from mdpcloud.plots.files import files_of
from mdpcloud.plots.labels import check_formulas
from mdpcloud.plots.scales import scale_of
from mdpcloud.study.outputs import Figure
from mdpcloud.study.records.temporary import replace_file
from mdpcloud.study.reports.exactness import OPTIMUM
from mdpcloud.study.reports.figures_bars import bars_panel
from mdpcloud.study.reports.figures_distribution import distribution_panel
from mdpcloud.study.reports.figures_lines import lines_panel
from mdpcloud.study.reports.figures_logarithmic import check_logarithmic
from mdpcloud.study.reports.figures_rows import NothingToDraw, PanelRows, Selection, select
from mdpcloud.study.reports.figures_words import curve_words, panel_title

if TYPE_CHECKING:
    from mdpcloud.study.reports.results import Results

__all__ = ["NothingToDraw", "chart_of", "draw"]

FOLDER = "figures"
Drawn = tuple[Panel, list[str]]
PANELS: Mapping[str, Callable[[Selection, str, PanelRows], Drawn]] = {
    "lines": lines_panel,
    "distribution": distribution_panel,
    "bars": bars_panel,
}


def chart_of(results: Results, figure: Figure) -> Chart:
    """The chart that a figure of a study describes.

    Parameters
    ----------
    results : Results
    figure : Figure

    Raises
    ------
    InputError
        When a column is not there, no row is as ``where`` wants it, several instances stand at the
        same place, an axis cannot be logarithmic, or a label has a formula that cannot be drawn.
    NothingToDraw
        When there is no number, as instances failed or are missing.
    """
    for text in (figure.title, figure.x_label, figure.y_label):
        check_formulas(text or "")
    selection = select(results, figure)
    drawn = [
        PANELS[figure.kind](selection, panel_title(figure.panels, values), rows)
        for values, rows in selection.panels.items()
    ]
    panels = tuple(panel for panel, _ in drawn)
    check_logarithmic(selection.figure, panels)
    notes = [note for _, those in drawn for note in those]
    for axis, place in (("x", "on the left"), ("y", "at the bottom")):
        if scale_of(axis, panels).foot is not None:
            notes.append(f"{figure.y} that is 0, or cannot be told from 0, stands {place}, at 0")
    names = _names(selection, panels)
    return Chart(panels, tuple(notes), figure.columns, names, figure.width)


def _names(selection: Selection, panels: tuple[Panel, ...]) -> dict[str, str]:
    """Texts of all curves of the study, and of the optimum where it is shown."""
    names = {str(one): curve_words(selection.figure.curves, one) for one in selection.curves}
    shown = any(one.curve == OPTIMUM for panel in panels for one in panel.series)
    return {**names, OPTIMUM: OPTIMUM} if shown else names


def draw(
    results: Results, folder: str | Path, say: Callable[[str], None] | None = None
) -> list[Path]:
    """Write every figure of a study as PNG, PDF and CSV into a folder ``figures``; their paths.

    Parameters
    ----------
    results : Results
    folder : path
    say : function, optional
        Is told what a reader of a figure has to know, and which one has nothing to draw.

    Raises
    ------
    InputError
        As `chart_of`, after all that can be drawn is written.
    OSError
        When a file cannot be written; one that is there stays as it was.
    """
    tell = say or (lambda _: None)
    paths: list[Path] = []
    mistakes: list[str] = []
    for figure in results.study.outputs.figures:
        try:
            chart = chart_of(results, figure)
        except NothingToDraw as nothing:
            tell(str(nothing))
            continue
        except InputError as error:
            mistakes.append(str(error))
            continue
        for note in chart.notes:
            tell(f"note on figure {figure.name!r}: {note}")
        paths += _write(chart, figure, Path(folder) / FOLDER)
    if mistakes:
        raise InputError("\n".join(mistakes))
    return paths


def _write(chart: Chart, figure: Figure, folder: Path) -> list[Path]:
    folder.mkdir(parents=True, exist_ok=True)
    files = files_of(chart, figure.title or "")
    return [replace_file(folder / f"{figure.name}.{ending}", raw) for ending, raw in files.items()]
