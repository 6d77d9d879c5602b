"""An index table as a header of C99: constant prices and a function that decides.

    const long jobs[MDPCLOUD_NODES] = {3, 0, 7};
    int choice = mdpcloud_decide(MDPCLOUD_POLICY_IMPROVEMENT, jobs);

0 is outside, k + 1 is node k, and -1 says that some number of jobs is negative, or that there is no
such policy.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator, Sequence

from mdpcloud.indices.table import IndexTable, NodeIndex
from mdpcloud.indices.table_csv import facts

__all__ = ["to_c"]

PER_LINE = 4
TAKEN = ("nodes", "index_table_h")  # names of other macros

HEADER = """\
/* Index table of mdpcloud. A price is the index of a state plus the node's charge. A job goes to
   the first node, in the order of ties, whose price is within the margin of the least one.

   const long jobs[MDPCLOUD_NODES] = {{0}}; at each node, in service and waiting
   int choice = mdpcloud_decide(MDPCLOUD_{policy}, jobs);

{facts}
*/
#ifndef MDPCLOUD_INDEX_TABLE_H
#define MDPCLOUD_INDEX_TABLE_H

#include <math.h>
#include <stddef.h>

#define MDPCLOUD_NODES {nodes}

enum mdpcloud_policy {{
{policies}
}};

struct mdpcloud_prices {{
    const double *of_state; /* 0 ... states - 1 */
    long states;
    double beyond; /* price of all further states, infinite where they refuse */
}};

"""

DECIDE = """\
static const int mdpcloud_order_of_ties[MDPCLOUD_NODES] = {{{order}}};

/* Choice for one more job: 0 is outside, k + 1 is node k, -1: some number of jobs is negative, or
   there is no such policy. */
static inline int mdpcloud_decide(enum mdpcloud_policy policy, const long jobs[MDPCLOUD_NODES])
{{
    double price[MDPCLOUD_NODES];
    double least = INFINITY;
    double most;
    int k;

    if ((unsigned int)policy >= {policies})
        return -1;
    for (k = 0; k < MDPCLOUD_NODES; k++) {{
        const struct mdpcloud_prices *node = &mdpcloud_table[policy][k];
        if (jobs[k] < 0)
            return -1;
        price[k] = jobs[k] < node->states ? node->of_state[jobs[k]] : node->beyond;
        if (price[k] < least)
            least = price[k];
    }}
    if (least == INFINITY)
        return 0;
    most = least + {margin};
    for (k = 0; price[mdpcloud_order_of_ties[k]] > most; k++)
        continue;
    return mdpcloud_order_of_ties[k] + 1;
}}

#endif
"""


def to_c(table: IndexTable) -> str:
    """The table as a header of C99, without allocation and without calls.

    It compiles without warnings. Its numbers are the table's, bit by bit where the compiler reads
    decimal numbers to the nearest double.
    """
    names = _identifiers(table.policies)
    header = HEADER.format(
        facts="\n".join(f"   {_harmless(fact)}" for fact in facts(table)),
        nodes=len(table.nodes),
        policies=",\n".join(f"    MDPCLOUD_{name.upper()}" for name in names),
        policy=names[0].upper(),
    )
    decide = DECIDE.format(
        policies=len(names),
        order=", ".join(map(str, table.ties.order)),
        margin=_number(table.ties.margin),
    )
    return header + "\n".join(_tables(table, names)) + "\n\n" + decide


def _tables(table: IndexTable, names: Sequence[str]) -> Iterator[str]:
    """Definitions of the prices of each policy and node, and of the table of all of them."""
    charges = [node.charge for node in table.nodes]
    rows = []
    for name, nodes in zip(names, table.policies.values(), strict=True):
        entries = []
        for k, (node, charge) in enumerate(zip(nodes, charges, strict=True)):
            array, prices = f"mdpcloud_{name}_{k}", _prices(node, charge)
            if prices:
                yield f"static const double {array}[] = {{\n{_listed(prices)}\n}};"
            beyond = prices[-1] if node.beyond == "last" else "INFINITY"
            entries.append(f"{{{array if prices else 'NULL'}, {len(prices)}, {beyond}}}")
        rows.append("    {\n        " + ",\n        ".join(entries) + "\n    }")
    yield ""
    head = f"static const struct mdpcloud_prices mdpcloud_table[{len(rows)}][MDPCLOUD_NODES] = {{"
    yield head + "\n" + ",\n".join(rows) + "\n};"


def _prices(node: NodeIndex, charge: float) -> list[str]:
    return [_number(index + charge) for index in node.index]


def _number(value: float) -> str:
    """A double of C; its shortest decimal form that is read as the same number."""
    return repr(float(value)) if math.isfinite(value) else "INFINITY"


def _listed(numbers: Sequence[str]) -> str:
    lines = [numbers[i : i + PER_LINE] for i in range(0, len(numbers), PER_LINE)]
    return ",\n".join(f"    {', '.join(line)}" for line in lines)


def _identifiers(names: Iterable[str]) -> list[str]:
    """An identifier of C for each policy, all different in upper case too."""
    found: list[str] = []
    for name in names:
        plain = re.sub(r"\W", "_", name, flags=re.ASCII)
        while plain.lower() in map(str.lower, [*TAKEN, *found]):
            plain += "_"
        found.append(plain)
    return found


def _harmless(text: str) -> str:
    """Text that neither ends a comment nor begins another one."""
    return text.replace("*/", "* /").replace("/*", "/ *")
