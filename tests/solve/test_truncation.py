"""Infinite models on growing boxes: brackets that hold, estimates that say what they are."""

from collections.abc import Sequence
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import mdpcloud as mc
from mdpcloud.solve.truncation.boxes import Budget, near_growing_edges
from mdpcloud.solve.truncation.truncation import Truncation, bracketed, estimated
from tests.models import reference
from tests.models.retrial import blocked_jobs, retrial, split_blocked

RETRIAL = reference("networks")["G_unreliable_retrial"]


def single(cap: int, load: float, *, price: float = 0.0) -> mc.Model:
    """M/M/1 with holding cost 1; a job that meets ``cap`` others is lost, at a price."""
    lost = mc.Action("lost", cost=price, allowed=lambda x: x.jobs == cap)
    arrival = mc.Event("arrival", load, [mc.Action("join", mc.step(jobs=+1)), lost])
    service = mc.Event("service", lambda x: 1.0 * (x.jobs > 0), mc.step(jobs=-1))
    return mc.Model(mc.Lattice({"jobs": cap}), [arrival, service], cost_rate=lambda x: x.jobs)


def admission(cap: int, load: float, refusal: float, *, at_cap: float) -> mc.Model:
    """M/M/1 with holding cost 1, jobs join or are refused; at the cap refusal has its own price."""
    actions = [
        mc.Action("join", mc.step(jobs=+1)),
        mc.Action("refuse", cost=refusal),
        mc.Action("full", cost=at_cap, allowed=lambda x: x.jobs == cap),
    ]
    service = mc.Event("service", lambda x: 1.0 * (x.jobs > 0), mc.step(jobs=-1))
    return mc.Model(
        mc.Lattice({"jobs": cap}),
        [mc.Event("arrival", load, actions), service],
        cost_rate=lambda x: x.jobs,
    )


def best_threshold(load: Fraction, refusal: Fraction) -> Fraction:
    """The least cost over thresholds K: that of M/M/1/K with a price per refused job."""

    def cost(limit: int) -> Fraction:
        weights = [load**k for k in range(limit + 1)]
        held = sum((k * w for k, w in enumerate(weights)), Fraction(0))
        return (held + load * refusal * weights[-1]) / sum(weights)

    return min(cost(limit) for limit in range(120))


# --- brackets -------------------------------------------------------------------------------------


@given(
    load=st.sampled_from([0.25, 0.5, 0.875, 1.0, 1.5]), refusal=st.sampled_from([1.5, 8.0, 30.0])
)
@settings(max_examples=4)
def test_a_bracket_holds_the_best_threshold_of_an_admission_queue(
    load: float, refusal: float
) -> None:
    found = bracketed(
        lambda caps: admission(*caps, load, refusal, at_cap=0.0),
        lambda caps: admission(*caps, load, refusal, at_cap=refusal),
        [2],
    )
    exact = float(best_threshold(Fraction(load), Fraction(refusal)))
    lower, upper = found.bounds
    assert found.kind == "bracketed"
    assert found.status == "converged"
    assert lower <= exact * (1 + 1e-15)
    assert upper >= exact * (1 - 1e-15)
    assert found.error == max(0.0, upper - lower) <= 1e-8 * found.cost
    assert found.boundary is None
    assert found.states == found.caps[0] + 1 == found.policy.table().size


def test_a_bracket_keeps_the_best_of_all_boxes_and_says_how_many_there_were() -> None:
    kept: list[tuple[int, ...]] = []

    def upper(caps: tuple[int, ...]) -> mc.Model:
        kept.append(caps)
        return admission(*caps, 0.5, 40.0, at_cap=40.0)

    found = bracketed(
        lambda caps: admission(*caps, 0.5, 40.0, at_cap=0.0),
        upper,
        [2],
        grow=lambda caps: [cap + 3 for cap in caps],
    )
    assert kept == [(2 + 3 * k,) for k in range(found.boxes)]
    assert found.boxes > 3
    exact = float(best_threshold(Fraction(1, 2), Fraction(40)))
    assert found.cost == pytest.approx(exact, rel=1e-8)


def test_a_bracket_that_reaches_its_largest_box_says_so_and_still_holds() -> None:
    arguments: Any = (
        lambda caps: admission(*caps, 0.99, 5000.0, at_cap=0.0),
        lambda caps: admission(*caps, 0.99, 5000.0, at_cap=5000.0),
        [10],
    )
    found = bracketed(*arguments, largest=60, strict=False)
    assert found.status == "too_many_states"
    assert not found.converged
    assert found.states <= 60
    exact = float(best_threshold(Fraction(99, 100), Fraction(5000)))
    assert found.bounds[0] <= exact <= found.bounds[1]
    assert found.error > 1.0
    with pytest.raises(mc.SolveError, match=r"larger than allowed.*certified bounds \[") as caught:
        bracketed(*arguments, largest=60)
    partial: Any = caught.value.partial
    assert partial.bounds == found.bounds


def test_a_box_on_which_nothing_is_lost_is_exact() -> None:
    found = bracketed(
        lambda caps: None if caps[0] >= 6 else single(caps[0], 0.5),
        lambda caps: single(min(caps[0], 6), 0.5, price=100.0),
        [2],
        grow=lambda caps: [caps[0] + 2],
    )
    assert (found.kind, found.error, found.states, found.status) == ("exact", 0.0, 7, "converged")
    assert found.bounds[0] <= mc.solve(single(6, 0.5, price=100.0)).gain <= found.bounds[1]


def test_a_rule_is_bracketed_like_an_optimum() -> None:
    """Everybody joins: the cost is load / (1 - load), here 3."""
    found = bracketed(
        lambda caps: (admission(*caps, 0.75, 9.0, at_cap=0.0), rule_at(caps[0])),
        lambda caps: (admission(*caps, 0.75, 9.0, at_cap=4.0 * (caps[0] + 1)), rule_at(caps[0])),
        [5],
    )
    assert found.bounds[0] <= 3.0 <= found.bounds[1]
    assert found.error <= 3e-8


def rule_at(cap: int) -> Any:
    """Join; at the cap, be paid for."""
    return lambda x: np.where(x.jobs == cap, "full", "join")


# --- estimates ------------------------------------------------------------------------------------


@given(load=st.floats(0.05, 0.95))
@settings(max_examples=5)
def test_the_mean_number_of_an_m_m_1_queue_is_estimated_with_an_honest_error(load: float) -> None:
    found = estimated(lambda caps: single(*caps, load), [4])
    exact = load / (1.0 - load)
    assert found.kind == "estimated"
    assert found.converged
    assert abs(found.cost - exact) <= found.error
    assert found.error <= 1e-8 * exact + 1e-11
    assert found.boundary is not None
    assert found.boundary <= 1e-8
    assert found.bounds[0] <= exact <= found.bounds[1]


@pytest.mark.parametrize(("rate", "servers", "patience"), [(3.0, 4, 0.5), (12.0, 8, 0.25)])
def test_erlang_a_without_a_limit_is_estimated(rate: float, servers: int, patience: float) -> None:
    def build(caps: tuple[int, ...]) -> mc.Model:
        leave = mc.step(jobs=-1)
        return mc.Model(
            mc.Lattice({"jobs": caps[0]}),
            [
                mc.Event("arrival", lambda x: rate * (x.jobs < caps[0]), mc.step(jobs=+1)),
                mc.Event("service", lambda x: 1.0 * np.minimum(x.jobs, servers), leave),
                mc.Event("loss", lambda x: patience * np.maximum(x.jobs - servers, 0), leave),
            ],
            cost_rate=lambda x: patience * np.maximum(x.jobs - servers, 0),
        )

    found = estimated(build, [servers])
    law = mc.queues.abandonment(
        servers=servers, service_rate=1.0, abandonment_rate=patience, arrival_rate=rate
    )
    assert found.cost == pytest.approx(float(law.loss_rate), abs=found.error)
    assert found.error <= 1e-8 * found.cost


def tandem(caps: Sequence[int], loads: tuple[float, float]) -> mc.Model:
    """Two M/M/1 queues in a row, with service rates 1 / load at arrival rate 1."""
    first, second = caps
    return mc.Model(
        mc.Lattice({"first": first, "second": second}),
        [
            mc.Event("arrival", lambda x: 1.0 * (x.first < first), mc.step(first=+1)),
            mc.Event(
                "move",
                lambda x: (x.first > 0) * (x.second < second) / loads[0],
                mc.step(first=-1, second=+1),
            ),
            mc.Event("service", lambda x: (x.second > 0) / loads[1], mc.step(second=-1)),
        ],
        cost_rate=[lambda x: x.first, lambda x: x.second],
    )


def test_a_tandem_has_the_mean_numbers_of_jackson() -> None:
    loads = (0.5, 0.4)
    found = estimated(lambda caps: tandem(caps, loads), (6, 5), tolerance=1e-7)
    exact = sum(load / (1.0 - load) for load in loads)
    assert abs(found.cost - exact) <= found.error <= 1e-7 * exact
    assert len(found.caps) == 2


def shortest_queue(cap: int, rate: float) -> mc.Model:
    """Two servers of rate 1, a job joins either queue; lost where both are full."""

    def full(x: Any) -> Any:
        return (x.queue[0] == cap) & (x.queue[1] == cap)

    routes = [mc.Action(f"queue {k}", mc.step(queue={k: +1})) for k in (0, 1)]
    arrival = mc.Event("arrival", rate, [*routes, mc.Action("lost", allowed=full)])
    services = [
        mc.Event(f"service {k}", lambda x, k=k: 1.0 * (x.queue[k] > 0), mc.step(queue={k: -1}))
        for k in (0, 1)
    ]
    jobs = [lambda x, k=k: x.queue[k] for k in (0, 1)]
    return mc.Model(mc.Lattice({"queue": (cap, cap)}), [arrival, *services], cost_rate=jobs)


def jobs_at_shortest_queues(cap: int, rate: float) -> float:
    """Mean number of jobs when each joins the shorter of two queues: a dense linear system."""
    n = cap + 1
    generator = np.zeros((n * n, n * n))
    for i, j in np.ndindex(n, n):
        low = (i + 1, j) if i <= j else (i, j + 1)
        for flow, (k, m) in ((rate, low), (1.0, (i - 1, j)), (1.0, (i, j - 1))):
            if 0 <= k < n and 0 <= m < n:
                generator[i * n + j, k * n + m] += flow
    generator -= np.diag(generator.sum(axis=1))
    generator[:, 0] = 1.0
    law = np.linalg.solve(generator.T, np.eye(n * n)[0])
    return float(law @ np.indices((n, n)).sum(axis=0).ravel())


def test_joining_the_shorter_of_two_queues_without_a_limit_is_optimal() -> None:
    found = estimated(lambda caps: shortest_queue(caps[0], 1.0), [6])
    assert found.cost == pytest.approx(jobs_at_shortest_queues(20, 1.0), abs=found.error + 1e-10)


def test_an_orbit_without_a_limit_has_the_reference_values() -> None:
    """Edges that do not grow (servers, failures) are no cuts, whatever their mass."""
    case = RETRIAL["cases"][0]
    found = estimated(
        lambda caps: (
            retrial(caps[0], 0.0, 1.0, **case["params"]),
            split_blocked(case["params"]["pb"], caps[0]),
        ),
        [8],
        tolerance=1e-9,
    )
    assert found.cost == pytest.approx(case["exact"]["EN_orbit"], abs=found.error + 1e-11)


def test_an_optimum_without_a_limit_has_the_reference_value() -> None:
    case = RETRIAL["mdp"][2]

    def build(caps: tuple[int, ...]) -> mc.Model:
        return retrial(caps[0], case["reject_cost"], case["hold"], **case["params"])

    found = estimated(build, [10], tolerance=1e-9)
    assert found.cost == pytest.approx(case["optimal"], abs=found.error + 1e-10)
    accept = estimated(lambda c: (build(c), blocked_jobs("orbit", c[0])), [10], tolerance=1e-9)
    assert accept.cost >= found.cost - accept.error


def test_a_rule_is_estimated_like_an_optimum() -> None:
    found = estimated(lambda caps: (admission(*caps, 0.75, 9.0, at_cap=0.0), rule_at(caps[0])), [5])
    assert found.cost == pytest.approx(3.0, abs=found.error)


@pytest.mark.parametrize("load", [1.0, 1.25, 2.0])
def test_a_queue_without_a_stationary_regime_is_never_reported_as_converged(load: float) -> None:
    found = estimated(lambda caps: single(*caps, load), [4], largest=3000, strict=False)
    assert found.status == "too_many_states"
    assert found.boundary is not None
    assert found.boundary > 1e-4
    with pytest.raises(mc.SolveError, match=r"larger than allowed.*estimated bounds"):
        estimated(lambda caps: single(*caps, load), [4], largest=300)


def test_a_cost_that_settles_while_the_chain_is_at_the_edge_is_not_reported_as_converged() -> None:
    """In overload the rate of losses tends to load - 1, though all boxes are far too small."""

    def build(caps: tuple[int, ...]) -> mc.Model:
        model = single(*caps, 2.0, price=1.0)
        return mc.Model(model.space, model.events)

    found = estimated(build, [4], largest=3000, strict=False)
    assert found.cost == pytest.approx(1.0)
    assert found.status == "too_many_states"
    assert found.boundary == pytest.approx(0.75)


def test_heavy_traffic_is_stopped_by_the_largest_box_with_an_error_that_holds() -> None:
    found = estimated(lambda caps: single(*caps, 0.999), [4], largest=5000, strict=False)
    assert found.status == "too_many_states"
    assert abs(found.cost - 999.0) <= found.error


def test_a_time_limit_ends_the_growth() -> None:
    found = estimated(
        lambda caps: tandem(caps, (0.99, 0.98)), (15, 15), time_limit=1e-3, strict=False
    )
    assert found.status == "time"
    assert not found.converged
    assert found.boxes == 1
    assert isinstance(found, Truncation)


# --- boxes ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"grow": 1.0}, "grow is 1.0; it must be a factor > 1"),
        ({"grow": lambda caps: caps}, r"grow turns the caps \(4,\) into \(4,\)"),
        ({"start": []}, "must hold the caps"),
        ({"start": [2.5]}, "must hold the caps"),
        ({"start": [-1]}, "must hold the caps"),
        ({"tolerance": 0.0}, "tolerance is 0.0"),
        ({"time_limit": -1.0}, "time_limit is -1.0"),
    ],
)
def test_wrong_arguments_are_refused(arguments: dict[str, Any], message: str) -> None:
    given_ = {"start": [4], **arguments}
    start = given_.pop("start")
    with pytest.raises(mc.InputError, match=message):
        estimated(lambda caps: single(*caps, 0.9), start, **given_)


def test_a_build_function_returns_a_model_or_a_pair() -> None:
    with pytest.raises(mc.InputError, match="not 3 things"):
        estimated(lambda caps: (single(*caps, 0.5), None, None), [4])


def test_the_edge_of_a_region_is_where_one_more_step_leaves_it() -> None:
    def columns(most: int) -> list[Any]:
        grid = np.indices((most + 1, most + 1)).reshape(2, -1)
        return list(grid[:, grid.sum(axis=0) <= most])

    near = near_growing_edges(columns(3), columns(5))
    total = columns(5)[0] + columns(5)[1]
    assert np.array_equal(near, total >= 4)
    assert not near_growing_edges(columns(5), columns(5)).any()
    assert np.array_equal(near_growing_edges([], columns(5)), near)


def test_a_solve_that_is_cut_short_leaves_the_estimate_of_the_box_before() -> None:
    calls: list[int] = []

    def build(caps: tuple[int, ...]) -> mc.Model:
        calls.append(caps[0])
        return shortest_queue(caps[0], 1.6)

    def stop(*_: object) -> None:
        if len(calls) > 2:
            raise KeyboardInterrupt

    found = estimated(build, [6], progress=stop, strict=False)
    assert found.status == "interrupted"
    assert found.caps == (14,)
    assert found.boxes == 2
    first = estimated(build, [6], progress=stop, strict=False)
    assert (first.status, first.boxes, first.boundary) == ("interrupted", 1, None)


def test_every_solve_gets_a_share_of_a_time_limit_that_is_past() -> None:
    assert Budget(None).left is None
    assert Budget(10.0, started=-1e9).left == pytest.approx(1.0)
    assert Budget(10.0).left == pytest.approx(10.0, abs=0.5)


def test_models_that_refute_their_theorem_are_refused():
    """As when the two are exchanged."""
    with pytest.raises(mc.InputError, match="do not enclose one optimum; are they exchanged"):
        mc.bracketed(
            lambda caps: single(3 * caps[0], 0.5), lambda caps: single(caps[0] // 2, 0.5), [4]
        )


@pytest.mark.parametrize("start", [10, None, "ten", []])
def test_a_start_without_caps_is_refused(start):
    with pytest.raises(mc.InputError, match="it must hold the caps of the first box"):
        mc.estimated(lambda caps: single(caps[0], 0.5), start)


def test_a_tabular_model_has_no_edges():
    with pytest.raises(mc.InputError, match="a tabular model has no edges"):
        mc.estimated(lambda caps: mc.tabular([[[0, 1], [1, 0]]], costs=[1, 0]), [3])
