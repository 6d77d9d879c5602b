"""Total cost of larger models: sweeps, factors and Krylov agree; limits leave bounds that hold."""

import numpy as np
import pytest
from scipy import sparse

import mdpcloud as mc
from mdpcloud.solve.total import chains as total_chains
from mdpcloud.solve.total import optimum as total_optimum
from mdpcloud.solve.total import policies as total_policies

GOAL = mc.TotalCost(targets=[0])


def maze(side, slip=0.2, walls=0.0, costs=None):
    """Grid with walls; a move goes astray to either side with probability slip / 2."""
    rng = np.random.default_rng(side)
    is_open = rng.random((side, side)) >= walls
    is_open[:2, :2] = True
    n, cell = side * side, np.arange(side * side).reshape(side, side)

    def shifted(down, right):
        target = np.clip(np.arange(side) + down, 0, side - 1)[:, None] * side
        target = target + np.clip(np.arange(side) + right, 0, side - 1)
        return np.where(is_open.ravel()[target], target, cell).ravel()

    ways = [shifted(*way) for way in ((0, 1), (1, 0), (0, -1), (-1, 0))]
    to = [np.stack([ways[(a + turn) % 4] for a in range(4)], 1).ravel() for turn in (0, 1, -1)]
    rows = np.arange(4 * n)
    share = np.repeat([1 - slip, slip / 2, slip / 2], 4 * n)
    P = sparse.csr_array((share, (np.tile(rows, 3), np.concatenate(to))), shape=(4 * n, n))
    costs = np.ones(4 * n) if costs is None else costs(rng, 4 * n)
    return mc.tabular(P, costs=costs, s_indices=rows // 4, a_indices=rows % 4)


def overlap(one, other):
    """Whether two pairs of bounds may hold the same values."""
    below, above = one.bounds[0] <= other.bounds[1], other.bounds[0] <= one.bounds[1]
    return bool(below.all() and above.all())


COSTS = {
    "equal": None,
    "some free": lambda rng, n: rng.integers(0, 3, n).astype(float),
    "some negative": lambda rng, n: np.where(rng.random(n) < 0.02, -0.001, rng.uniform(1, 2, n)),
}


@pytest.mark.parametrize("costs", COSTS.values(), ids=COSTS)
@pytest.mark.parametrize("side", [6, 25])
def test_elimination_factors_and_sweeps_agree(monkeypatch, side, costs):
    model = maze(side, costs=costs)
    found = []
    for dense, direct in ((1000, 1000), (0, 1000), (0, 0)):
        monkeypatch.setattr(total_chains, "DENSE", dense)
        monkeypatch.setattr(total_chains, "DIRECT", direct)
        found.append(mc.solve(model, GOAL, tolerance=1e-10))
    for result in found:
        size = np.abs(result.values).max()
        assert (result.bounds[1] - result.bounds[0] <= 1e-10 * size).all()
        assert overlap(found[0], result)


def test_chains_that_sweeps_cannot_solve_are_solved_all_the_same(monkeypatch):
    """A symmetric random walk of 2000 states: sweeps alone would take millions."""
    monkeypatch.setattr(total_chains, "DIRECT", 0)
    n = 2000
    x = np.arange(n)
    rows = np.concatenate([x[1:], x[1:], [0]])
    to = np.concatenate([x[:-1], np.minimum(x[1:] + 1, n - 1), [0]])
    P = sparse.csr_array((np.append(np.full(2 * n - 2, 0.5), 1.0), (rows, to)), shape=(n, n))
    found = mc.evaluate(mc.tabular([P], costs=1.0 * (x > 0)), {}, mc.TotalCost(), tolerance=1e-8)
    exact = x * (2 * n - x - 1.0)
    assert (found.bounds[0] <= exact).all()
    assert (exact <= found.bounds[1]).all()


def test_a_policy_costs_what_the_solution_says():
    model = maze(30)
    found = mc.solve(model, GOAL)
    assert overlap(found, mc.evaluate(model, found.policy, GOAL))


CLOUD = mc.systems.CloudRouting(
    (mc.systems.Node(3, 1.0, 0.1), mc.systems.Node(2, 1.5, 0.2)), 4, 0.6
)
EMPTY = mc.TotalCost(targets=lambda x: (x.node[0] == 0) & (x.node[1] == 0))


def test_events_are_swept_over_term_by_term(monkeypatch):
    """Cost until two stations are empty, with a decision per arrival; sweeps against none."""
    model = CLOUD.model()
    swept = mc.solve(model, EMPTY)
    monkeypatch.setattr(total_policies, "SMALL", 10**9)
    plain = mc.solve(model, EMPTY)
    assert overlap(swept, plain)
    assert swept.converged
    assert plain.converged
    for rule in (0, "outside"):
        other = mc.evaluate(model, rule, EMPTY)
        assert (other.bounds[1] >= swept.bounds[0]).all()


# --- limits ---------------------------------------------------------------------------------------


def interrupting(after):
    """A progress callback that behaves like Ctrl-C at some call."""
    calls = iter(range(after))

    def callback(*_):
        if next(calls, None) is None:
            raise KeyboardInterrupt

    return callback


def encloses(partial, best):
    return (partial.bounds[0] <= best.bounds[1]).all() and (
        partial.bounds[1] >= best.bounds[0]
    ).all()


@pytest.mark.parametrize("costs", COSTS.values(), ids=COSTS)
@pytest.mark.parametrize("side", [5, 20])
def test_however_it_ends_the_bounds_hold_and_the_next_solve_is_the_same(side, costs):
    model = maze(side, costs=costs)
    best = mc.solve(model, GOAL)
    for limit in (
        *({"max_iterations": k} for k in (1, 2, 5, 12)),
        *({"progress": interrupting(k)} for k in (0, 1, 4, 11)),
        *({"time_limit": s} for s in (1e-6, 1e-3)),
    ):
        partial = mc.solve(model, GOAL, strict=False, **limit)
        assert encloses(partial, best)
        assert partial.converged or partial.status.name in ("ITERATIONS", "INTERRUPTED", "TIME")
        assert np.isfinite(partial.bounds[1]).all()
    again = mc.solve(model, GOAL)
    for one, other in zip((*best.bounds, best.values), (*again.bounds, again.values), strict=True):
        assert np.array_equal(one, other)
    assert np.array_equal(best.policy.table(), again.policy.table())


@pytest.mark.parametrize("limit", [{"max_iterations": 90}, {"time_limit": 0.02}], ids=str)
@pytest.mark.parametrize("costs", [COSTS["equal"], COSTS["some free"]], ids=["equal", "some free"])
def test_limits_hold_within_an_iterative_solve(monkeypatch, costs, limit):
    monkeypatch.setattr(total_chains, "DENSE", 0)
    monkeypatch.setattr(total_chains, "DIRECT", 0)
    monkeypatch.setattr(total_optimum, "DIRECT", 0)
    model = maze(20, costs=costs)
    best = mc.solve(model, GOAL, tolerance=1e-10)
    partial = mc.solve(model, GOAL, strict=False, tolerance=1e-14, **limit)
    assert encloses(partial, best)
    assert partial.iterations <= limit.get("max_iterations", np.inf) + 1
    timed = mc.evaluate(model, best.policy, GOAL, time_limit=1e-6, strict=False)
    assert encloses(timed, best)


def test_a_limit_raises_an_error_that_carries_the_bounds():
    model = maze(20)
    with pytest.raises(mc.SolveError) as caught:
        mc.solve(model, GOAL, max_iterations=2)
    assert encloses(caught.value.partial, mc.solve(model, GOAL))


@pytest.mark.slow
def test_a_maze_of_ten_thousand_states_takes_a_second():
    found = mc.solve(maze(100, walls=0.2), GOAL)
    able = np.isfinite(found.values)
    gap = found.bounds[1][able] - found.bounds[0][able]
    assert 0.9 < able.mean() < 1.0
    assert (gap <= 1e-11 * found.values[able].max()).all()
