import itertools
import time

import networkx as nx
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse

from mdpcloud.engine.rows import Rows
from mdpcloud.engine.structure import (
    closed_classes,
    components,
    end_components,
    moves_graph,
    path,
    period,
    reachable,
)


def graph_of(edges, n):
    row, column = np.array(sorted(set(edges)), int).reshape(-1, 2).T
    return sparse.csr_array((np.ones(row.size), (row, column)), shape=(n, n))


@st.composite
def graphs(draw):
    n = draw(st.integers(1, 8))
    node = st.integers(0, n - 1)
    return graph_of(draw(st.lists(st.tuples(node, node), max_size=16)), n)


def as_networkx(graph):
    return nx.from_scipy_sparse_array(graph, create_using=nx.DiGraph)


@given(graphs(), st.data())
def test_reachable_states_are_those_that_networkx_finds(graph, data):
    n = graph.shape[0]
    starts = data.draw(st.lists(st.integers(0, n - 1), min_size=1, max_size=3))
    expected = set(starts).union(*(nx.descendants(as_networkx(graph), s) for s in starts))
    assert set(np.flatnonzero(reachable(graph, np.array(starts)))) == expected
    assert reachable(graph, starts[0])[starts[0]]


@given(graphs(), st.data())
def test_a_path_is_a_shortest_walk_into_the_targets(graph, data):
    n = graph.shape[0]
    start = data.draw(st.integers(0, n - 1))
    targets = np.array([data.draw(st.booleans()) for _ in range(n)])
    length = nx.single_source_shortest_path_length(as_networkx(graph), start)
    distances = [d for state, d in length.items() if targets[state]]
    found = path(graph, start, targets)
    if not distances:
        assert found is None
        return
    assert len(found) == min(distances) + 1
    assert found[0] == start
    assert targets[found[-1]]
    assert all(graph[x, y] for x, y in itertools.pairwise(found))


@given(graphs())
def test_closed_classes_are_the_attracting_components(graph):
    expected = {frozenset(c) for c in nx.attracting_components(as_networkx(graph))}
    classes = closed_classes(graph)
    assert {frozenset(c.tolist()) for c in classes} == expected
    assert [c[0] for c in classes] == sorted(c[0] for c in classes)
    assert components(graph)[0] == nx.number_strongly_connected_components(as_networkx(graph))


@pytest.mark.parametrize("length", [1, 2, 3, 6])
def test_the_period_of_a_cycle_is_its_length_unless_it_can_stay(length):
    n = length + 1
    graph = graph_of([(n - 1, 0)] + [(k, (k + 1) % length) for k in range(length)], n)
    states = np.arange(length, dtype=np.int32)
    assert period(graph, states, np.zeros(n, bool)) == length
    assert period(graph, states, np.arange(n) == 0) == 1


@given(st.lists(st.integers(1, 6), min_size=1, max_size=3))
def test_the_period_of_cycles_through_one_state_is_their_common_divisor(lengths):
    edges, n = [], 1
    for length in lengths:
        ring = [0, *range(n, n + length - 1), 0]
        edges += itertools.pairwise(ring)
        n += length - 1
    if 1 in lengths:
        return
    assert period(
        graph_of(edges, n), np.arange(n, dtype=np.int32), np.zeros(n, bool)
    ) == np.gcd.reduce(lengths)


def rows_of(n, listing):
    """Rows from {(state, term): [targets of each action]}."""
    keys = [(x, e, a, t) for (x, e), acts in listing.items() for a, t in enumerate(acts)]
    moves = [(row, y) for row, key in enumerate(keys) for y in key[3]]
    row, target = np.array(moves, int).reshape(-1, 2).T
    head = np.array([key[:3] for key in keys], int).reshape(-1, 3).T
    ones = np.ones(len(keys))
    return Rows.from_moves(np.zeros(n), head, ones, 0 * ones, (row, target, np.ones(row.size)))


@st.composite
def listings(draw):
    n, terms = draw(st.integers(1, 5)), draw(st.integers(1, 2))
    targets = st.lists(st.integers(0, n - 1), max_size=2, unique=True)
    return n, {
        (x, e): draw(st.lists(targets, min_size=1, max_size=3))
        for x in range(n)
        for e in range(terms)
        if draw(st.booleans())
    }


def is_end_component(states, listing):
    """Brute force: the rows that stay connect the set and every term has one."""
    graph = nx.DiGraph()
    graph.add_nodes_from(states)
    for (x, _), actions in listing.items():
        if x in states:
            staying = [t for t in actions if set(t) <= states]
            if not staying:
                return False
            graph.add_edges_from((x, y) for t in staying for y in t)
    return nx.is_strongly_connected(graph)


def brute_force(n, listing):
    sets = [set(c) for k in range(1, n + 1) for c in itertools.combinations(range(n), k)]
    good = [s for s in sets if is_end_component(s, listing)]
    return {frozenset(s) for s in good if not any(s < other for other in good)}


@given(listings())
def test_end_components_are_the_maximal_sets_found_by_brute_force(problem):
    n, listing = problem
    rows = rows_of(n, listing)
    found = end_components(rows)
    sets = {frozenset(found.states(c).tolist()) for c in range(found.count)}
    assert sets == brute_force(n, listing)
    for row in range(rows.state.size):
        home = found.label[rows.state[row]]
        targets = rows.transitions[[row]].indices
        assert found.inside[row] == (home >= 0 and (found.label[targets] == home).all())


@given(listings())
def test_the_end_components_of_a_chain_are_its_closed_classes(problem):
    n, listing = problem
    rows = rows_of(n, {key: actions[:1] for key, actions in listing.items()})
    found = end_components(rows)
    classes = closed_classes(moves_graph(rows))
    assert [found.states(c).tolist() for c in range(found.count)] == [c.tolist() for c in classes]


def test_a_component_that_falls_apart_step_by_step_is_followed_to_the_end():
    n = 200
    listing = {(x, 0): [[max(x - 1, 0)], [min(x + 1, n - 1)]] for x in range(n)}
    listing |= {(x, 1): [[(x + 1) % n]] for x in range(n - 1)}
    listing[n - 1, 1] = [[n]]
    found = end_components(rows_of(n + 1, listing))
    assert [found.states(c).tolist() for c in range(found.count)] == [[n]]


@pytest.mark.slow
def test_a_million_rows_are_split_within_seconds():
    n = 500_000
    state = np.repeat(np.arange(n), 2)
    action = np.tile([0, 1], n)
    block = n // 10
    up = (np.arange(n) + 1) // block == np.arange(n) // block
    targets = np.stack([np.maximum(np.arange(n) - 1, 0), np.where(up, np.arange(n) + 1, 0)], 1)
    rows = Rows.from_moves(
        np.zeros(n),
        (state, 0 * state, action),
        np.ones(2 * n),
        np.zeros(2 * n),
        (np.arange(2 * n), targets.ravel(), np.ones(2 * n)),
    )
    start = time.process_time()
    assert end_components(rows).count == 10
    assert time.process_time() - start < 10
