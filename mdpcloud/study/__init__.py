"""Studies: one task on many instances, records that survive anything, tables and figures."""

from mdpcloud.study.outputs import Figure, Outputs, Table
from mdpcloud.study.study import Instance, Study

__all__ = ["Figure", "Instance", "Outputs", "Study", "Table"]
