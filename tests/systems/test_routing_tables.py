"""Index tables of nodes that refuse very late."""

from __future__ import annotations

import re

import pytest

from mdpcloud.errors import InputError
from mdpcloud.systems import CloudRouting, Node

LATE = {
    "costs that rise slowly": Node(1, 2.0, 0.0, holding_cost=1e-7),
    "much room": Node(1, 2.0, 0.5, room=6_000_000),
}


@pytest.mark.parametrize("node", LATE.values(), ids=LATE)
def test_a_node_that_refuses_very_late_does_not_pass_for_one_that_never_does(node: Node) -> None:
    system = CloudRouting((node,), 1.0, 2.0)
    with pytest.raises(InputError, match=re.escape("give the number of states (--states)")):
        system.index_table("first", ["individually_optimal"])
    (found,) = system.index_table("first", ["individually_optimal"], 5).policies.values()
    assert (len(found[0].index), found[0].beyond) == (5, "last")
