"""Charts as files: pictures, and every number that they show.

The bytes of a file depend on the chart alone, not on when it was written. Letters stand in a PDF as
fonts of TrueType (type 42), which journals accept and programs can edit.
"""

from __future__ import annotations

import csv
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import matplotlib

from mdpcloud.plots.chart import Chart
from mdpcloud.plots.curves import draw_chart

__all__ = ["write_chart", "write_figure"]

COLUMNS = ("panel", "curve", "kind", "x", "y", "lower", "upper")


def write_chart(chart: Chart, folder: Path, stem: str, name: str) -> list[Path]:
    """Draw a chart as PNG and PDF, and write its numbers as CSV; their paths.

    Parameters
    ----------
    chart : Chart
    folder : Path
        Made where it is missing.
    stem : str
        Of the files' names.
    name : str
        Title of the figure.
    """
    folder.mkdir(parents=True, exist_ok=True)
    png, pdf, numbers = (folder / f"{stem}.{ending}" for ending in ("png", "pdf", "csv"))
    with matplotlib.rc_context({"pdf.fonttype": 42}):
        figure = draw_chart(chart, name)
        figure.savefig(png, format="png", facecolor="white")
        figure.savefig(pdf, format="pdf", metadata={"CreationDate": None})
    with numbers.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(COLUMNS)
        writer.writerows(chart.rows())
    return [png, pdf, numbers]


def write_figure(
    chart: Chart, folder: Path, stem: str, name: str, heading: Mapping[str, Any]
) -> list[Path]:
    """As `write_chart`, and a record of the chart as JSON.

    Parameters
    ----------
    chart, folder, stem, name
        As for `write_chart`.
    heading : mapping
        What the JSON tells first.
    """
    *pictures, numbers = write_chart(chart, folder, stem, name)
    path = folder / f"{stem}.json"
    record = {**heading, **chart.to_dict()}
    path.write_text(json.dumps(record, indent=1, allow_nan=False) + "\n", encoding="utf-8")
    return [*pictures, path, numbers]
