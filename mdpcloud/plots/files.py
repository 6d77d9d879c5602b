"""Charts as files: pictures, and every number that they show.

The bytes of a file depend on the chart alone, not on when it was written. Letters stand in a PDF as
fonts of TrueType (type 42), which journals accept and programs can edit.
"""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import matplotlib

from mdpcloud.plots.chart import Chart
from mdpcloud.plots.curves import draw_chart

__all__ = ["files_of", "write_figure"]

COLUMNS = ("panel", "curve", "kind", "x", "y", "lower", "upper")


def files_of(chart: Chart, name: str = "") -> dict[str, bytes]:
    """A chart as PNG and PDF, and its numbers as CSV: ending of the file's name to its bytes.

    Parameters
    ----------
    chart : Chart
    name : str
        Title of the figure.
    """
    png, pdf = io.BytesIO(), io.BytesIO()
    with matplotlib.rc_context({"pdf.fonttype": 42}):
        figure = draw_chart(chart, name)
        figure.savefig(png, format="png", facecolor="white")
        figure.savefig(pdf, format="pdf", metadata={"CreationDate": None})
    numbers = io.StringIO(newline="")
    writer = csv.writer(numbers, lineterminator="\n")
    writer.writerow(COLUMNS)
    writer.writerows(chart.rows())
    return {"png": png.getvalue(), "pdf": pdf.getvalue(), "csv": numbers.getvalue().encode()}


def write_figure(
    chart: Chart, folder: Path, stem: str, name: str, heading: Mapping[str, Any]
) -> list[Path]:
    """Write the files of a chart, and a record of it as JSON; their paths.

    Parameters
    ----------
    chart : Chart
    folder : Path
        Made where it is missing.
    stem : str
        Of the files' names.
    name : str
        Title of the figure.
    heading : mapping
        What the JSON tells first.
    """
    record = json.dumps({**heading, **chart.to_dict()}, indent=1, allow_nan=False) + "\n"
    files = {**files_of(chart, name), "json": record.encode()}
    folder.mkdir(parents=True, exist_ok=True)
    for ending, raw in files.items():
        (folder / f"{stem}.{ending}").write_bytes(raw)
    return [folder / f"{stem}.{ending}" for ending in files]
