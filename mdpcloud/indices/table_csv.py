"""An index table as CSV: lines of what it is about after ``#``, then one line per state."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterator
from dataclasses import asdict
from typing import Any

from mdpcloud.indices.table import IndexTable, NodeIndex

__all__ = ["facts", "to_csv"]

COLUMNS = ("policy", "node", "state", "index", "and_beyond")


def to_csv(table: IndexTable) -> str:
    """The table as CSV.

    The last line of each node says ``yes`` under ``and_beyond``: its index is that of all further
    states too, inf where they refuse. Before the header each line begins with ``#`` and has a field
    of the table, in JSON.
    """
    text = io.StringIO()
    text.writelines(f"# {fact}\n" for fact in facts(table))
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(COLUMNS)
    for policy, nodes in table.policies.items():
        for k, node in enumerate(nodes):
            writer.writerows((policy, k, *line) for line in _lines(node))
    return text.getvalue()


def facts(table: IndexTable) -> Iterator[str]:
    """Every field of the table but the policies, one a line, in JSON."""
    record: dict[str, Any] = asdict(table)
    del record["policies"]
    nodes = record.pop("nodes")
    for name, value in record.items():
        yield f"{name}: {json.dumps(value)}"
    for k, node in enumerate(nodes):
        yield f"node {k}: {json.dumps(node)}"


def _lines(node: NodeIndex) -> Iterator[tuple[int, float, str]]:
    """State, index and whether it is the index of all further states too."""
    values = [*node.index, float("inf")] if node.beyond == "refuse" else node.index
    for state, value in enumerate(values):
        yield state, value, "yes" if state + 1 == len(values) else "no"
