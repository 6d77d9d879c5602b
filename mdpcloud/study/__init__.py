"""Studies: one task on many instances, records that survive anything, tables and figures.

`read_study` reads a study file, `Study.of` makes a study of systems in Python; `run` computes what
a store of records lacks, `load` only reads it; `Results` are rows, from which tables and figures
are made.
"""

from mdpcloud.study.outputs import Figure, Outputs, Table
from mdpcloud.study.reading import read_study
from mdpcloud.study.results import Results
from mdpcloud.study.run import load, run, store_of
from mdpcloud.study.study import Instance, Study

__all__ = [
    "Figure",
    "Instance",
    "Outputs",
    "Results",
    "Study",
    "Table",
    "load",
    "read_study",
    "run",
    "store_of",
]
