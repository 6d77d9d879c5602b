"""Bounds of average costs on thousands of random models against exact rational arithmetic.

Every kind of chain is drawn by seed: unichain, weakly communicating, multichain, periodic, nearly
decomposable, with transient states, stiff. The exact optimum is the best of all policies.
"""

from fractions import Fraction

import numpy as np
import pytest

import mdpcloud as mc
from mdpcloud.engine import compile_model
from mdpcloud.solve.reward import sense_of

from .exact_totals import Listing

TOLERANCE = 1e-9


# --- random models --------------------------------------------------------------------------------


def normalised(P):
    return P / P.sum(axis=2, keepdims=True)


def unichain(rng, n, actions):
    """Every state can be reached from every other in one step."""
    return normalised(rng.random((actions, n, n)) + 0.01)


def weakly_communicating(rng, n, actions):
    """The states of a ring reach each other under some policy, a last state is transient."""
    P = np.zeros((actions, n, n))
    for a in range(actions):
        for x in range(n - 1):
            P[a, x, (x + (1 if a == 0 else rng.integers(0, n - 1))) % (n - 1)] = 1.0
    P[:, n - 1] = rng.random((actions, n)) * (rng.random((actions, n)) < 0.5)
    P[:, n - 1, 0] += 0.1
    return normalised(P)


def multichain(rng, n, actions):
    """One or two successors per state and action, perhaps the state itself."""
    P = np.zeros((actions, n, n))
    for a, x in np.ndindex(actions, n):
        P[a, x, rng.integers(0, n, rng.integers(1, 3))] = rng.choice([0.25, 0.5, 1.0])
    return normalised(P)


def periodic(rng, n, actions):
    """States in two or three groups, each leading to the next one only."""
    group = rng.integers(0, rng.integers(2, 4), n)
    P = rng.random((actions, n, n)) * (group[None, :] == (group[:, None] + 1) % (group.max() + 1))
    P[:, P.sum(axis=(0, 2)) == 0] = 1.0
    P[P.sum(axis=2) == 0] = 1.0
    return normalised(P)


def nearly_decomposable(rng, n, actions):
    """Two groups with moves between them of probability down to 1e-12."""
    group = np.arange(n) < n // 2
    P = rng.random((actions, n, n))
    P[:, group[:, None] != group[None, :]] *= 10.0 ** rng.uniform(-12, -3)
    return normalised(P)


def with_transient_states(rng, n, actions):
    """States in an order, moves only backwards in it but for the first two."""
    P = rng.random((actions, n, n)) * np.tri(n)
    P[:, :2, :2] = rng.random((actions, 2, 2)) + 0.01
    return normalised(P)


def stiff(rng, n, actions):
    """Probabilities over twelve decades, a third of them 0."""
    P = 10.0 ** rng.uniform(-12, 0, (actions, n, n)) * (rng.random((actions, n, n)) < 0.67)
    P[:, np.arange(n), np.arange(n)] += 1e-6
    return normalised(P)


TABLES = [
    unichain,
    weakly_communicating,
    multichain,
    periodic,
    nearly_decomposable,
    with_transient_states,
    stiff,
]


def table(kind, rng):
    """Tabular model of a kind; costs or rewards, integers or not."""
    n, actions = int(rng.integers(2, 5)), 2
    if kind is weakly_communicating:
        n = max(n, 3)
    costs = rng.normal(size=(n, actions))
    costs = np.round(3 * costs) if rng.random() < 0.3 else costs
    return mc.tabular(kind(rng, n, actions), **{rng.choice(["costs", "rewards"]): costs})


def lattice(rng):
    """Continuous time, rates over twelve decades, a third of them 0: any structure of chains."""
    cap = int(rng.integers(1, 4))
    rates = 10.0 ** rng.uniform(-6, 6, (2, cap + 1)) * (rng.random((2, cap + 1)) < 0.67)
    fees, cost = rng.normal(size=(4, cap + 1)), rng.normal(size=cap + 1)
    steps = [int(s) for s in rng.choice([-2, -1, 1, 2], 4)]

    def action(k):
        return mc.Action(f"go {steps[k]}", mc.step(i=steps[k]), lambda x: fees[k][x.i])

    def event(e):
        stay = mc.Action("stay", cost=lambda x: fees[2 * e + 1][x.i])
        return mc.Event(f"event {e}", lambda x: rates[e][x.i], [action(2 * e), stay])

    return mc.Model(mc.Lattice({"i": cap}), [event(0), event(1)], cost_rate=lambda x: cost[x.i])


ILL_CONDITIONED = nearly_decomposable, stiff, lattice
COUNTS = {nearly_decomposable: 100, lattice: 150, unichain: 300, multichain: 400}
by_kind = pytest.mark.parametrize("kind", [*TABLES, lattice], ids=lambda kind: kind.__name__)


# --- exact answers --------------------------------------------------------------------------------


def exactly(model):
    """Listing of the model as fractions, and the optimal average cost from every state."""
    problem = compile_model(model)
    listing = Listing(problem, np.zeros(problem.n, bool))
    table = [listing.gains(*policy) for policy in listing.policies()]
    return listing, [min(column) for column in zip(*table, strict=True)]


def assert_encloses(result, exact, sense=1):
    """Bounds hold at every state, exactly."""
    lower, upper = (np.broadcast_to(bound, len(exact)) for bound in result.bounds)
    for low, high, gain in zip(lower, upper, exact, strict=True):
        assert Fraction(float(low)) <= sense * gain <= Fraction(float(high))


def assert_policy_meets(found, listing, model):
    """The policy found costs no more than the bound says, from every state."""
    choice = found.policy.choice(compile_model(model))
    worst = found.bounds[1] if sense_of(model) == 1 else -found.bounds[0]
    worst = np.broadcast_to(worst, listing.n)
    for gain, bound in zip(listing.gains(*listing.under(choice)), worst, strict=True):
        assert gain <= Fraction(float(bound))


def streams(kind, count):
    """Random generators of one kind of model."""
    number = [*TABLES, lattice].index(kind)
    return [np.random.default_rng([number, k]) for k in range(count)]


def drawn(kind, rng):
    return lattice(rng) if kind is lattice else table(kind, rng)


# --- bounds ---------------------------------------------------------------------------------------


@pytest.mark.slow
@by_kind
def test_bounds_enclose_the_exact_gain_of_every_state(kind):
    count, met = COUNTS.get(kind, 250), 0
    for rng in streams(kind, count):
        model = drawn(kind, rng)
        listing, best = exactly(model)
        found = mc.solve(model, tolerance=TOLERANCE, strict=False)
        assert_encloses(found, best, sense_of(model))
        assert_policy_meets(found, listing, model)
        met += found.converged
    assert met == count or kind in ILL_CONDITIONED


@pytest.mark.slow
@by_kind
def test_bounds_enclose_the_exact_gain_of_a_random_policy(kind):
    for rng in streams(kind, COUNTS.get(kind, 200) // 2):
        model = drawn(kind, rng)
        problem = compile_model(model)
        listing = Listing(problem, np.zeros(problem.n, bool))
        rules = {
            term.name: rng.integers(0, len(term.actions), problem.n)
            for term in problem.terms
            if term.decision
        }
        try:
            found = mc.evaluate(model, rules, strict=False)
        except mc.InputError:  # an action leaves the lattice
            continue
        choice = found.policy.choice(problem)
        assert_encloses(found, listing.gains(*listing.under(choice)), sense_of(model))


# --- partial results ------------------------------------------------------------------------------


def interrupting(after):
    """A progress callback that behaves like Ctrl-C at some call."""
    calls = iter(range(after))

    def callback(*_):
        if next(calls, None) is None:
            raise KeyboardInterrupt

    return callback


def limits(rng):
    """One limit of each sort, drawn at random."""
    return (
        {"max_iterations": int(rng.integers(1, 40))},
        {"time_limit": float(10.0 ** rng.uniform(-6, -3))},
        {"progress": interrupting(int(rng.integers(0, 4)))},
    )


def same(one, other):
    """Whether two results are the same to the last bit."""
    arrays = [(one.gains, other.gains), (one.values, other.values)]
    arrays += list(zip(one.bounds, other.bounds, strict=True))
    arrays += [(one.policy.actions[k], other.policy.actions[k]) for k in one.policy.actions]
    return one.status is other.status and all(np.array_equal(a, b) for a, b in arrays)


@pytest.mark.slow
@by_kind
def test_however_a_solve_ends_its_bounds_hold_and_the_next_one_is_the_same(kind):
    for rng in streams(kind, 20):
        model = drawn(kind, rng)
        _, best = exactly(model)
        first = mc.solve(model, tolerance=TOLERANCE, strict=False)
        for limit in limits(rng):
            partial = mc.solve(model, tolerance=1e-13, strict=False, **limit)
            assert_encloses(partial, best, sense_of(model))
        assert same(first, mc.solve(model, tolerance=TOLERANCE, strict=False))


# --- the same to the last bit ---------------------------------------------------------------------


CLOUD = mc.systems.CloudRouting((mc.systems.Node(2, 1.0, 0.25),) * 3, 5.5, 0.6)


@pytest.mark.slow
@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize(
    "criterion", [mc.AverageCost(), mc.Discounted(rate=0.05)], ids=["average", "discounted"]
)
def test_equal_arguments_give_equal_bits(threads, criterion):
    model = CLOUD.model()
    one, other = (mc.solve(model, criterion, threads=threads) for _ in range(2))
    assert same(one, other)
    again = [mc.evaluate(model, one.policy, criterion, threads=threads) for _ in range(2)]
    assert same(*again)


@pytest.mark.parametrize("solver", ["policy_iteration", "value_iteration"])
def test_equal_tables_give_equal_bits(solver):
    model = table(unichain, np.random.default_rng(5))
    one, other = (mc.solve(model, solver=solver) for _ in range(2))
    assert same(one, other)
