"""Index tables as a Lua program that HAProxy loads.

The file is a Lua table with the fields of `mdpcloud.indices.table.IndexTable`, and the program
``table.lua``, which checks it and decides as `mdpcloud.policies.index_rule.IndexRule` does: numbers
have as many digits as give them back exactly, and are added and compared alike. To the fields come,
per node, ``server``, the name of its server in HAProxy, and, per index, ``states``, the number of
its entries, so that a list that lost some is noticed.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from importlib.resources import files
from textwrap import fill

from mdpcloud.errors import InputError
from mdpcloud.indices.table import IndexTable, NodeIndex, TableNode

__all__ = ["server_names", "to_lua"]

OUTSIDE = "outside"
NOT_IN_NAMES = re.compile(r"[^A-Za-z0-9_.:-]")
POLICY_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_.]*")
WIDTH = 100


def to_lua(table: IndexTable) -> str:
    """Write a table as a Lua program.

    Parameters
    ----------
    table : IndexTable

    Returns
    -------
    str
        A file for HAProxy's ``lua-load``, where ``lua.index.POLICY`` is then the name of the server
        for a job; in plain Lua, ``dofile`` gives ``rules.POLICY``, from the jobs at each node to 0
        for outside or k for the kth node.

    Raises
    ------
    InputError
        When names of nodes or policies cannot be HAProxy's.
    """
    program = files("mdpcloud.indices").joinpath("table.lua").read_text(encoding="utf-8")
    return "\n".join([*_heading(table), "", *_table(table)]) + "\n" + program


def server_names(nodes: Sequence[TableNode]) -> list[str]:
    """Name of each node's server: that of the node, without what HAProxy does not allow in names.

    Raises
    ------
    InputError
        When two nodes would have the same name, or one is called ``outside``.

    Examples
    --------
    >>> server_names([TableNode("node 0", servers=2, charge=0.0)])
    ['node0']
    """
    found: list[str] = []
    for k, node in enumerate(nodes):
        name = NOT_IN_NAMES.sub("", node.name).lstrip("-") or f"node{k}"  # -i is an option
        if name == OUTSIDE or name in found:
            taken = OUTSIDE if name == OUTSIDE else f"nodes[{found.index(name)}]"
            raise InputError(
                f"nodes[{k}].name {node.name!r} gives the server name {name!r}, as does {taken}; "
                "letters, digits and _ . : - must tell the names apart"
            )
        found.append(name)
    return found


def _heading(table: IndexTable) -> Iterator[str]:
    """What a reader must know, and the servers to be copied into the configuration."""
    digest = table.scenario_sha256 or "no file"
    units = table.units
    lines = [
        f"Index table of {table.name} ({table.system}), written by {table.generator}.",
        f"Format: {table.format}, version {table.version}. Scenario's sha256: {digest}.",
        f"State: {table.state}.",
        f"Units: time in {units.time}, costs in {units.cost}, the index in {units.index}.",
        f"A job sent outside costs {table.outside_cost!r}. Ties: {table.ties.rule}.",
        "",
        "The backend's lines; maxconn is the number of servers of the node:",
        "  http-request set-var(txn.node) lua.index.POLICY(txn.jobs)",
        "  use-server %[var(txn.node)] if { var(txn.node) -m found }",
        f"  server {OUTSIDE} ADDRESS:PORT id 1",
    ]
    lines += [
        f"  server {name} ADDRESS:PORT maxconn {node.servers}"
        for name, node in zip(server_names(table.nodes), table.nodes, strict=True)
    ]
    return (f"-- {' '.join(line.splitlines())}".rstrip() if line else "--" for line in lines)


def _table(table: IndexTable) -> Iterator[str]:
    yield "local TABLE = {"
    for field in ("format", "version", "generator", "system", "name", "scenario_sha256"):
        yield f"  {field} = {_value(getattr(table, field))},"
    named = (f"{unit} = {_value(text)}" for unit, text in vars(table.units).items())
    yield f"  units = {{ {', '.join(named)} }},"
    yield f"  state = {_value(table.state)},"
    yield f"  outside_cost = {_value(table.outside_cost)},"
    ties = table.ties
    yield f"  ties = {{ rule = {_value(ties.rule)}, margin = {_value(ties.margin)},"
    yield from _list("order", ties.order, "    ")
    yield "  },"
    yield from _nodes(table.nodes)
    yield from _policies(table.policies)
    yield "}"


def _nodes(nodes: Sequence[TableNode]) -> Iterator[str]:
    yield "  nodes = {"
    for name, node in zip(server_names(nodes), nodes, strict=True):
        names = f"name = {_value(node.name)}, server = {_value(name)}"
        yield f"    {{ {names}, servers = {node.servers}, charge = {_value(node.charge)} }},"
    yield "  },"


def _policies(policies: Mapping[str, Sequence[NodeIndex]]) -> Iterator[str]:
    yield "  policies = {"
    for policy, indices in policies.items():
        if not POLICY_NAME.fullmatch(policy):
            raise InputError(
                f"policy {policy!r}: its name is part of a name in HAProxy, so it must be of "
                "letters, digits, _ and ., and must not begin with a digit"
            )
        yield f"    [{_value(policy)}] = {{"
        for one in indices:
            yield from _index(one)
        yield "    },"
    yield "  },"


def _index(one: NodeIndex) -> Iterator[str]:
    yield f"      {{ beyond = {_value(one.beyond)}, states = {len(one.index)},"
    yield from _list("index", one.index, "        ")
    yield "      },"


def _list(name: str, numbers: Sequence[float], indent: str) -> Iterator[str]:
    text = f"{name} = {{ {', '.join(map(_value, numbers))} }},"
    further = indent + "  "
    yield fill(
        text, WIDTH, initial_indent=indent, subsequent_indent=further, break_on_hyphens=False
    )


def _value(value: str | float | None) -> str:
    """A Lua constant: of a float, the shortest digits that give it back."""
    if value is None:
        return "nil"
    if isinstance(value, str):
        return _string(value)
    return repr(value)


def _string(text: str) -> str:
    plain = text.replace("\\", "\\\\").replace('"', '\\"')
    return '"' + re.sub(r"[\x00-\x1f\x7f]", lambda found: f"\\{ord(found[0]):03d}", plain) + '"'
