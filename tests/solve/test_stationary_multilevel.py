"""The multilevel stationary law: closed forms, state reduction, chains that hardly communicate."""

import importlib

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse

import mdpcloud as mc
from mdpcloud.engine.structure import components
from mdpcloud.errors import SolveError
from mdpcloud.model.chain import markov_chain
from mdpcloud.solve.stationary.multilevel import COARSEST, Hierarchy, Rows
from mdpcloud.solve.stationary.multilevel_kernels import imbalance, split_rows
from mdpcloud.solve.stationary.stationary import stationary

irreducible = importlib.import_module("mdpcloud.solve.stationary.irreducible")


@pytest.fixture
def multilevel_alone(monkeypatch):
    monkeypatch.setattr(irreducible, "REDUCTION_WORK", 0)
    monkeypatch.setattr(irreducible, "FACTORED", 0)


def by_multilevel(chain):
    """The law without state reduction and without sparse LU; None if that raises."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(irreducible, "REDUCTION_WORK", 0)
        patch.setattr(irreducible, "FACTORED", 0)
        try:
            return stationary(chain)
        except SolveError:
            return None


def by_reduction(chain):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(irreducible, "REDUCTION_WORK", 1e12)
        return stationary(chain)


def queues(caps, servers, arrivals, services):
    """Independent M/M/m queues with finite rooms, as a chain, and its product-form law."""
    shape = tuple(cap + 1 for cap in caps)
    places = np.unravel_index(np.arange(np.prod(shape)), shape)
    strides = [int(np.prod(shape[k + 1 :])) for k in range(len(shape))]
    parts, law = [], np.ones(1)
    for i, cap, m, lam, mu, stride in zip(
        places, caps, servers, arrivals, services, strides, strict=True
    ):
        up, down = np.flatnonzero(i < cap), np.flatnonzero(i > 0)
        parts.append((up, up + stride, np.full(up.size, lam)))
        parts.append((down, down - stride, mu * np.minimum(i[down], m)))
        one = np.cumprod(np.r_[1.0, lam / (mu * np.minimum(np.arange(1, cap + 1), m))])
        law = np.outer(law, one / one.sum()).ravel()
    return markov_chain(rates=tuple(map(np.concatenate, zip(*parts, strict=True)))), law


def closed_network(jobs, services):
    """Three M/M/1 nodes in a cycle: prod mu_k ** -x_k, up to a factor."""
    states = [(i, j, jobs - i - j) for i in range(jobs + 1) for j in range(jobs + 1 - i)]
    number = {state: k for k, state in enumerate(states)}
    moves = []
    for state, k in number.items():
        for node, rate in enumerate(services):
            if state[node]:
                target = list(state)
                target[node] -= 1
                target[(node + 1) % 3] += 1
                moves.append((k, number[tuple(target)], rate))
    law = np.array([np.prod(np.array(services) ** -np.array(s, float)) for s in states])
    origin, target, rate = map(np.array, zip(*moves, strict=True))
    return markov_chain(rates=(origin, target, rate)), law / law.sum()


@pytest.mark.parametrize(
    ("caps", "servers", "arrivals", "services"),
    [
        ((60, 70), (1, 1), (1.0, 1.0), (1.01, 0.99)),
        ((60, 70), (20, 30), (19.0, 31.0), (1.0, 1.0)),
        ((90, 80), (1, 2), (0.2, 0.4), (1.0, 1.0)),
        ((14, 15, 16), (1, 2, 5), (0.9, 1.9, 5.2), (1.0, 1.0, 1.0)),
        ((5, 5, 5, 5), (1, 1, 1, 1), (0.5, 1.0, 2.0, 4.0), (1.0, 1.0, 1.0, 1.0)),
    ],
)
def test_independent_queues_have_the_product_form_law(
    multilevel_alone, caps, servers, arrivals, services
):
    chain, expected = queues(caps, servers, arrivals, services)
    law = stationary(chain)
    assert law.sum() == pytest.approx(1.0, abs=1e-13)
    assert (law >= 0.0).all()
    np.testing.assert_allclose(law, expected, rtol=1e-6, atol=1e-9 * expected.max())


@pytest.mark.parametrize("services", [(1.0, 1.0, 1.0), (1.0, 1.2, 1.1), (1.0, 3.0, 9.0)])
def test_a_closed_network_has_the_product_form_law(multilevel_alone, services):
    chain, expected = closed_network(60, services)
    np.testing.assert_allclose(stationary(chain), expected, atol=1e-8 * expected.max())


def random_chain(seed, n, degree, decades):
    """A random sparse chain on a cycle; the rates spread over some decades."""
    rng = np.random.default_rng(seed)
    origin = np.repeat(np.arange(n), degree)
    target = rng.integers(0, n, origin.size)
    target[::degree] = (origin[::degree] + 1) % n
    rate = 10.0 ** rng.uniform(-decades / 2, decades / 2, origin.size)
    keep = origin != target
    return markov_chain(rates=(origin[keep], target[keep], rate[keep]))


@settings(max_examples=25)
@given(
    st.integers(0, 2**32 - 1),
    st.integers(COARSEST // 2, 500),
    st.integers(1, 8),
    st.sampled_from([0.0, 3.0, 6.0, 12.0]),
)
def test_random_sparse_chains_get_the_law_of_state_reduction(seed, n, degree, decades):
    chain = random_chain(seed, n, degree, decades)
    law = by_multilevel(chain)
    if law is not None:
        assert np.abs(law - by_reduction(chain)).sum() <= 1e-7
    else:
        assert decades > 3.0


@settings(max_examples=12)
@given(
    st.integers(0, 2**32 - 1),
    st.integers(2, 12),
    st.integers(5, 60),
    st.sampled_from([1e-2, 1e-5, 1e-8, 1e-11, 1e-14]),
)
def test_the_shares_of_nearly_separate_blocks_are_right(seed, count, size, link):
    chain, expected = weakly_linked_blocks(seed, count, size, link)
    law = by_multilevel(chain)
    assert law is not None
    shares = law.reshape(count, size).sum(axis=1)
    np.testing.assert_allclose(shares, expected.reshape(count, size).sum(axis=1), rtol=1e-6)
    np.testing.assert_allclose(law, expected, rtol=1e-6)


def weakly_linked_blocks(seed, count, size, link):
    """A reversible chain of well-mixing blocks, in a ring of weak links, with its law."""
    rng = np.random.default_rng(seed)
    n = count * size
    law = rng.uniform(0.5, 1.0, n)
    block = np.arange(n) // size
    a = np.tile(np.arange(n), 3)
    b = block[a] * size + rng.integers(0, size, a.size)
    flow = rng.uniform(0.5, 1.0, a.size)
    inner = np.arange(n)
    a = np.r_[a, inner, np.arange(count) * size]
    b = np.r_[b, block * size + (inner + 1) % size, (np.arange(1, count + 1) % count) * size]
    flow = np.r_[flow, np.full(n, 0.5), link * rng.uniform(0.5, 1.0, count)]
    keep = a != b
    a, b, flow = a[keep], b[keep], flow[keep]
    rates = np.r_[a, b], np.r_[b, a], np.r_[flow / law[a], flow / law[b]]
    return markov_chain(rates=rates), law / law.sum()


@pytest.mark.parametrize("n", [COARSEST - 1, COARSEST, COARSEST + 1, 8 * COARSEST + 1])
@pytest.mark.parametrize("shape", ["ring", "star", "reset", "walk"])
def test_sizes_around_the_coarsest_level(multilevel_alone, n, shape):
    rng = np.random.default_rng(n)
    k = np.arange(n)
    ends = {
        "ring": (k, (k + 1) % n),
        "star": (np.r_[0 * k[1:], k[1:]], np.r_[k[1:], 0 * k[1:]]),
        "reset": (np.r_[k[:-1], k[1:]], np.r_[k[1:], 0 * k[1:]]),
        "walk": (np.r_[k[:-1], k[1:]], np.r_[k[1:], k[:-1]]),
    }[shape]
    rates = rng.uniform(0.5, 1.0, ends[0].size)
    order = rng.permutation(n)
    chain = markov_chain(rates=(order[ends[0]], order[ends[1]], rates))
    law = stationary(chain)
    np.testing.assert_allclose(law, by_reduction(chain), rtol=1e-6, atol=1e-10 * law.max())


def test_dense_chains_are_solved(multilevel_alone):
    rng = np.random.default_rng(1)
    rates = 10.0 ** rng.uniform(-3, 3, (300, 300))
    np.fill_diagonal(rates, 0.0)
    chain = markov_chain(rates=(*np.nonzero(rates), rates[np.nonzero(rates)]))
    np.testing.assert_allclose(stationary(chain), by_reduction(chain), rtol=1e-9)


def test_a_law_whose_entries_underflow_is_found(multilevel_alone):
    chain, expected = queues((250, 250), (1, 1), (1e-3, 1e-2), (1.0, 1.0))
    assert expected.min() == 0.0
    law = stationary(chain)
    np.testing.assert_allclose(law[expected > 1e-15], expected[expected > 1e-15], rtol=1e-4)
    np.testing.assert_allclose(law, expected, atol=1e-12)


def test_the_chain_given_is_left_as_it_was(multilevel_alone):
    chain, _ = queues((20, 20), (1, 1), (1.0, 2.0), (1.5, 2.5))
    before = chain.rates.copy()
    stationary(chain)
    np.testing.assert_array_equal(chain.rates.data, before.data)
    np.testing.assert_array_equal(chain.rates.indices, before.indices)


def test_equal_arguments_give_identical_laws(multilevel_alone):
    chain, _ = queues((40, 50), (1, 1), (1.0, 2.0), (1.5, 2.5))
    np.testing.assert_array_equal(stationary(chain), stationary(chain))


def test_the_unit_of_time_does_not_matter(multilevel_alone):
    first, _ = queues((40, 40), (1, 1), (1.0, 2.0), (1.5, 2.5))
    second, _ = queues((40, 40), (1, 1), (1e150, 2e150), (1.5e150, 2.5e150))
    np.testing.assert_allclose(stationary(first), stationary(second), rtol=1e-9, atol=1e-15)


def test_what_does_not_settle_raises_and_carries_the_law(multilevel_alone, monkeypatch):
    law = importlib.import_module("mdpcloud.solve.stationary.multilevel_law")
    monkeypatch.setattr(law, "PATIENCE", 0)
    monkeypatch.setattr(law, "FOCUSES", 0)
    chain, expected = queues((30, 30), (1, 1), (1.0, 1.0), (1.1, 1.1))
    with pytest.raises(SolveError, match="relative residual") as caught:
        stationary(chain)
    assert np.abs(caught.value.partial - expected).sum() < 0.5


def test_sparse_lu_helps_where_the_levels_do_not_settle(monkeypatch):
    monkeypatch.setattr(irreducible, "REDUCTION_WORK", 0)
    law = importlib.import_module("mdpcloud.solve.stationary.multilevel_law")
    monkeypatch.setattr(law, "PATIENCE", 0)
    monkeypatch.setattr(law, "FOCUSES", 0)
    chain, expected = queues((30, 30), (1, 1), (1.0, 1.0), (1.1, 1.1))
    np.testing.assert_allclose(stationary(chain), expected, rtol=1e-9)


@settings(max_examples=20)
@given(st.integers(0, 2**32 - 1), st.integers(2, 60), st.integers(1, 4))
def test_a_cycle_keeps_exact_flows_positive_and_in_place(seed, n, degree):
    chain = random_chain(seed, n, degree, 2.0)
    out = np.asarray(chain.rates.sum(axis=1)).ravel()
    flows = by_reduction(chain) * out
    z = flows / flows.sum()
    rows = shares(chain, out)
    again = z.copy()
    moved = Hierarchy(rows, again).cycle(again, regroup=True)
    assert moved <= 1e-12
    np.testing.assert_allclose(again / again.sum(), z, rtol=1e-10)
    assert imbalance(*rows, z) <= 1e-14


def shares(chain, out):
    inflows = chain.rates.T.tocsr()
    values = inflows.data / out[inflows.indices]
    middle = split_rows(inflows.indptr, inflows.indices, values)
    return Rows(inflows.indptr, middle, inflows.indices, values)


def test_a_cycle_on_a_grouped_chain_keeps_exact_flows():
    chain, law = queues((30, 30), (1, 1), (1.0, 1.0), (1.2, 1.1))
    out = np.asarray(chain.rates.sum(axis=1)).ravel()
    z = law * out / (law @ out)
    again = z.copy()
    hierarchy = Hierarchy(shares(chain, out), again)
    assert hierarchy.cycle(again, regroup=True) <= 1e-12
    assert len(hierarchy.levels) > 1
    np.testing.assert_allclose(again, z, rtol=1e-10)


def test_splitting_rows_keeps_their_entries():
    rng = np.random.default_rng(0)
    matrix = sparse.random_array((60, 60), density=0.6, rng=rng, format="csr")
    shuffled = matrix.copy()
    for y in range(60):
        part = slice(matrix.indptr[y], matrix.indptr[y + 1])
        order = rng.permutation(part.stop - part.start)
        shuffled.indices[part] = matrix.indices[part][order]
        shuffled.data[part] = matrix.data[part][order]
    middle = split_rows(shuffled.indptr, shuffled.indices, shuffled.data)
    for y in range(60):
        begin, end = shuffled.indptr[y], shuffled.indptr[y + 1]
        assert (shuffled.indices[begin : middle[y]] < y).all()
        assert (shuffled.indices[middle[y] : end] >= y).all()
    np.testing.assert_array_equal(shuffled.toarray(), matrix.toarray())


def test_a_model_and_its_chain_have_the_same_law(multilevel_alone):
    nodes = (mc.systems.Node(2, 10.0, 0.3), mc.systems.Node(5, 4.0, 0.3))
    model = mc.systems.CloudRouting(nodes, 30.0, 0.4).model((30, 30))
    rule = {"node 0": 0.5, "node 1": 0.25, "outside": 0.25}
    inner = {
        "node 0": lambda x: 0.5 * (x.node[0] < 30),
        "node 1": lambda x: 0.25 * (x.node[1] < 30),
        "outside": lambda x: 1.0 - 0.5 * (x.node[0] < 30) - 0.25 * (x.node[1] < 30),
    }
    assert sum(rule.values()) == 1.0
    law = stationary(model, inner)
    chain, expected = queues((30, 30), (2, 5), (15.0, 7.5), (10.0, 4.0))
    assert components(chain.rates)[0] == 1
    assert law.shape == expected.shape
    first = law.reshape(31, 31).sum(axis=1)
    deaths = np.r_[
        1.0, 10.0 * np.minimum(np.arange(1, 31), 2) + 0.3 * np.maximum(np.arange(-1, 29), 0)
    ]
    one = np.cumprod(np.r_[1.0, 15.0 / deaths[1:]])
    np.testing.assert_allclose(first, one / one.sum(), rtol=1e-6, atol=1e-12)
