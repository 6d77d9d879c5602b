"""Studies: one task on many instances, records that survive anything, tables and figures.

`read_study` reads a study file, `Study.of` makes a study of systems in Python; `run` computes what
a store of records lacks, `load` only reads it; `Results` are rows, of which `summary` makes a table
and `draw` the figures. Names are loaded when they are first used: a worker needs few of them.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from mdpcloud.study.file.reading import read_study
    from mdpcloud.study.outputs import Figure, Outputs, Table
    from mdpcloud.study.reports.figures import draw
    from mdpcloud.study.reports.results import Results
    from mdpcloud.study.reports.tables import summary, write_tables
    from mdpcloud.study.running.run import load, run, store_of
    from mdpcloud.study.study import Instance, Study

_HOME = {
    "Figure": "outputs",
    "Instance": "study",
    "Outputs": "outputs",
    "Results": "reports.results",
    "Study": "study",
    "Table": "outputs",
    "draw": "reports.figures",
    "load": "running.run",
    "read_study": "file.reading",
    "run": "running.run",
    "store_of": "running.run",
    "summary": "reports.tables",
    "write_tables": "reports.tables",
}

__all__ = [
    "Figure",
    "Instance",
    "Outputs",
    "Results",
    "Study",
    "Table",
    "draw",
    "load",
    "read_study",
    "run",
    "store_of",
    "summary",
    "write_tables",
]


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = globals()[name] = getattr(import_module(f"{__name__}.{_HOME[name]}"), name)
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
