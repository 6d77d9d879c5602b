"""What the pictures of a comparison are called, and what a system says of its nodes."""

from __future__ import annotations

import textwrap
from typing import TYPE_CHECKING, Any

from mdpcloud.plots.style import plain, pretty
from mdpcloud.policies.family import in_words

if TYPE_CHECKING:
    from mdpcloud.compare.comparison import Comparison
    from mdpcloud.compare.row import Row

__all__ = ["captioned", "node_of", "servers_of", "title_of"]


def title_of(row: Row, width: int = 26) -> str:
    """Name of a row for people, with the parameter of the best member of a family below it."""
    name = pretty(row.name, width)
    if not row.parameter:
        return name
    return f"{name}\n{textwrap.fill(f'({in_words(row.parameter, width)})', width)}"


def captioned(comparison: Comparison, about: str) -> str:
    """What a picture shows, after the scenario's name where there is one."""
    return ": ".join(filter(None, (plain(comparison.name), about)))


def node_of(system: Any, k: int) -> Any:
    """A node of a system; None where it has no such node."""
    nodes = getattr(system, "nodes", ())
    return nodes[k] if k < len(nodes) else None


def servers_of(system: Any, k: int) -> int | None:
    """Number of servers of a node, where it is known."""
    return getattr(node_of(system, k), "servers", None)
