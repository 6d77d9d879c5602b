"""Index tables of nodes of one's own."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from mdpcloud.errors import InputError, NoIndexError
from mdpcloud.indices import Node, restless_bandit
from mdpcloud.indices.restless.birth_death_arm import BirthDeathArm, birth_death_arm
from mdpcloud.indices.restless.result import ArmIndex, Verdict
from mdpcloud.indices.restless.whittle import whittle
from mdpcloud.indices.table_building import index_table_of
from mdpcloud.systems import CloudRouting
from mdpcloud.systems import Node as SystemNode

INF, NAN = float("inf"), float("nan")
ARM = ArmIndex(Verdict.INDEXABLE, "", np.array([0.0, 0.1]))


def closing_arm(node: Node, rate: float, room: int) -> BirthDeathArm:
    """A node that is active where it turns the jobs of a stream away."""
    return birth_death_arm(
        births0=rate,
        births1=0.0,
        deaths0=node.departures,
        deaths1=node.departures,
        costs0=node.costs,
        costs1=node.costs,
        work1=rate,
        room=room,
    )


def test_the_whittle_index_of_ones_own_arms_gives_the_table_of_the_routing_system() -> None:
    nodes = (Node(2, 1.0, 0.5), Node(1, 3.0, 0.4, fee=0.8))
    rate, outside = 3.0, 0.6
    arms = [whittle(closing_arm(node, rate, 40)) for node in nodes]
    found = index_table_of({"mine": arms}, outside, charges=[0.0, 0.1], servers=[2, 1])
    system = CloudRouting(
        (SystemNode(2, 1.0, 0.5), SystemNode(1, 3.0, 0.4, 0.8, routing_charge=0.1)), rate, outside
    )
    wanted = system.index_table("first").policies["restless_bandit"]
    for one, other, node in zip(found.policies["mine"], wanted, nodes, strict=True):
        assert one.beyond == other.beyond == "refuse"
        assert one.index == pytest.approx(other.index, abs=1e-12)
        exact = restless_bandit(node, rate, len(one.index) - 1)
        assert one.index == pytest.approx(exact.tolist(), abs=1e-12)


def test_states_in_which_the_cut_shows_are_left_out() -> None:
    arm = ArmIndex(
        Verdict.INDEXABLE,
        "",
        np.array([0.0, 0.1, 0.2, 0.15]),
        settled=np.array([True, True, False, True]),
    )
    (node,) = index_table_of({"mine": [arm]}, 1.0).policies["mine"]
    assert (node.index, node.beyond) == ((0.0, 0.1), "last")


def test_an_arm_without_an_index_has_no_table() -> None:
    with pytest.raises(NoIndexError, match="has no index: two prices"):
        index_table_of({"mine": [ArmIndex(Verdict.NOT_INDEXABLE, "two prices")]}, 1.0)


@pytest.mark.parametrize(
    ("index", "taken", "beyond"),
    [
        ([0.0, 0.2, 0.5, 0.1], (0.0, 0.2), "refuse"),
        ([0.4], (), "refuse"),
        ([0.0, INF, NAN], (0.0,), "refuse"),
        ([0.3, 0.2], (0.3, 0.2), "last"),
        ([0.3 + 1e-15, 0.2], (0.3 + 1e-15, 0.2), "last"),
    ],
)
def test_a_table_ends_at_the_first_state_that_is_too_dear(
    index: list[float], taken: tuple[float, ...], beyond: str
) -> None:
    (node,) = index_table_of({"mine": [index]}, 0.4, charges=[0.1]).policies["mine"]
    assert (node.index, node.beyond) == (taken, beyond)


def test_indices_of_different_lengths_can_be_a_list_or_mixed() -> None:
    table = index_table_of({"mine": [ARM, [0.3], np.array([0.0, 0.1, 0.9])]}, 0.5)
    assert [len(one.index) for one in table.policies["mine"]] == [2, 1, 2]


def test_arrays_serve_as_lists_do() -> None:
    policies = {"mine": np.array([[0.0, 0.2], [0.3, 0.9]])}
    columns = {"charges": [0.1, 0.0], "servers": [2, 1], "service_rates": [1.0, 3.0]}
    arrays = {name: np.array(column) for name, column in columns.items()}
    given = index_table_of(policies, 0.5, ties="fastest", **arrays)  # type: ignore[arg-type]
    lists = {"mine": policies["mine"].tolist()}
    assert given == index_table_of(lists, 0.5, ties="fastest", **columns)  # type: ignore[arg-type]
    assert given.ties.order == (1, 0)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"charges": [0.0]}, "charges has 1 entries for 2 nodes; one each is needed"),
        ({"names": []}, "names has 0 entries for 2 nodes; one each is needed"),
        ({"servers": [1, 0]}, "servers must be an integer >= 1, not 0"),
        ({"names": ["a", "a"]}, "nodes[1].name is 'a', as nodes[0] has it"),
        ({"ties": "fastest"}, "ties is 'fastest', which needs service_rates, one per node"),
        ({"service_rates": [1.0, NAN]}, "service_rates[1] must be a finite number > 0"),
        ({"ties": "lst"}, "ties is 'lst'; it must be one of first, last, fastest, slowest"),
        ({"policies": {}}, "policies must have at least one policy with at least one node"),
        ({"policies": {"mine": [[0.1, NAN], [0.1]]}}, "policies['mine'][0] must be finite up to"),
        ({"policies": {"mine": [[-INF, 0.1], [0.1]]}}, "policies['mine'][0] must be finite up to"),
        ({"policies": {"mine": [[0.1], []]}}, "policies['mine'][1] has shape (0,); an index of"),
        ({"policies": {"a": [[0.1]] * 2, "b": [[0.1]]}}, "policies['b'] has 1 entries for 2 nodes"),
        ({"outside_cost": INF}, "outside_cost must be"),
        ({"policies": [[0.1], [0.2]]}, "a list of indices, one per node, as in {'mine': [index,"),
        ({"policies": {"mine": 0.1}}, "policies['mine'] must be a list with one entry per node"),
        ({"policies": {"mine": ARM}}, "policies['mine'] must be a list with one entry per node"),
        ({"policies": {"mine": [0.1, 0.2]}}, "policies['mine'][0] has shape (); an index of each"),
        ({"charges": 0.1}, "charges must be a list with one entry per node, not 0.1"),
        ({"charges": np.array(0.1)}, "charges must be a list with one entry per node"),
        ({"names": "ab"}, "names must be a list with one entry per node, not 'ab'"),
    ],
)
def test_a_mistake_is_named(arguments: dict[str, Any], message: str) -> None:
    given = {"policies": {"mine": [[0.1], [0.2]]}, "outside_cost": 0.5, **arguments}
    with pytest.raises(InputError) as caught:
        index_table_of(**given)
    assert message in str(caught.value)
