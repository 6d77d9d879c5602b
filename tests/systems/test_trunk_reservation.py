"""The finite system of trunk reservation against references, exact rationals and theorems."""

from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

import mdpcloud as mc
from mdpcloud.engine import compile_model
from mdpcloud.errors import InputError, SolveError
from mdpcloud.queues import erlang_b
from mdpcloud.systems.trunk_reservation import TrunkReservation
from tests.models import reference
from tests.solve.exact_gains import exact_gains

RECORDS = reference("allocation")["S6_finite_mdp"]["mdp"]
FINITE = reference("allocation")["S6_finite_mdp"]["finiteN"]
BEST = reference("allocation")["S6_best_a_vs_N"]
rates = st.floats(0.2, 8.0)
MODES = {"redirect": None, "rejection": "redirect+rej2", "offload": "full1", "mutual": "both"}


def system_of(record: Any, reserved: int = 0, freedom: Any = "redirect") -> TrunkReservation:
    return TrunkReservation(
        (record["lambda1"], record["lambda2"]),
        (record["mu1"], record["mu2"]),
        (record["C1"], record["C2"]),
        reserved,
        (record["w1"], record["w2"]),
        freedom,
    )


def two_centres(record: Any) -> TrunkReservation:
    return TrunkReservation(
        (record["l1"], record["l2"]),
        (record["mu"], record["mu"]),
        (record["c1"], record["c2"]),
        record["a"],
        scale=record["N"],
    )


@pytest.mark.parametrize("record", RECORDS)
@pytest.mark.parametrize("freedom", MODES)
def test_the_optimum_is_the_reference(record: Any, freedom: str) -> None:
    known = record["opt_cost"] if freedom == "redirect" else record["other_modes"][MODES[freedom]]
    lower, upper = mc.solve(system_of(record, 0, freedom).model()).bounds
    assert lower - 1e-11 <= known <= upper + 1e-11


@pytest.mark.parametrize("record", RECORDS)
def test_compare_finds_the_policies_and_the_optimum_of_the_reference(record: Any) -> None:
    found = mc.compare(system_of(record, reserved=2))
    costs = record["costs_by_a"]
    known = {
        "trunk_reservation": costs[2],
        "complete_sharing": costs[0],
        "no_cooperation": costs[-1],
        "best trunk_reservation": record["best_a_cost"],
    }
    assert {row.name: row.cost for row in found.rows} == pytest.approx(known, abs=1e-10)
    assert found.rows[-1].parameter == {"reserved": record["best_a"]}
    assert found.optimum is not None
    assert found.optimum.lower - 1e-10 <= record["opt_cost"] <= found.optimum.upper + 1e-10


# --- exact numbers --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("servers", "arrivals", "reserved", "blocking"),
    [
        ((1, 2), (2, 1), 0, (Fraction(394, 1227), Fraction(535, 1227))),
        ((1, 2), (2, 1), 1, (Fraction(446, 843), Fraction(215, 843))),
        ((1, 2), (2, 1), 2, (Fraction(2, 3), Fraction(1, 5))),
        (
            (2, 3),
            (3, 2),
            1,
            (Fraction(201729573, 521968153), Fraction(142758250, 521968153)),
        ),
    ],
)
def test_tiny_systems_have_the_exact_rationals(
    servers: tuple[int, int],
    arrivals: tuple[int, int],
    reserved: int,
    blocking: tuple[Fraction, Fraction],
) -> None:
    for k in (0, 1):
        costs = (float(k == 0), float(k == 1))
        system = TrunkReservation(arrivals, (1, 1), servers, reserved, costs)
        problem = compile_model(system.model())
        rules = system.heuristic("trunk_reservation").rule
        gains = exact_gains(problem, mc.policy(system.model(), rules).choice(problem))
        assert set(gains) == {arrivals[k] * blocking[k]}
        assert system.best_reserved().blocking[reserved][k] == pytest.approx(
            float(blocking[k]), rel=1e-15
        )


# --- all thresholds at once -----------------------------------------------------------------------


@pytest.mark.parametrize("record", RECORDS)
def test_the_costs_of_all_thresholds_are_the_reference(record: Any) -> None:
    found = system_of(record).best_reserved()
    assert found.costs == pytest.approx(record["costs_by_a"], rel=1e-14)
    assert found.best == record["best_a"]
    assert found.error <= 2e-13


@pytest.mark.parametrize("record", FINITE)
def test_blocking_of_larger_systems_is_the_reference(record: Any) -> None:
    found = two_centres(record).best_reserved().blocking[record["a"]]
    assert found == pytest.approx((record["B1"], record["B2"]), rel=1e-11)


@pytest.mark.parametrize("record", [one for one in FINITE if one["N"] <= 10])
def test_the_model_has_the_blocking_of_the_reference(record: Any) -> None:
    system = two_centres(record)
    found = mc.evaluate(system.model(), system.heuristic("trunk_reservation").rule)
    derived = system.derived(found.bounds, found.measures)
    for k, known in enumerate((record["B1"], record["B2"])):
        low, high = derived[f"blocking[{k}]"]
        assert low - 1e-12 <= known <= high + 1e-12


@pytest.mark.parametrize("name", BEST)
def test_the_best_threshold_and_its_growth_are_the_reference(name: str) -> None:
    first, second, *_ = map(float, name.split(",")[:2])
    system = TrunkReservation((first, second), (1, 1), (1, 2), 0, (1.0, 2.0))
    assert system.fluid_bound() == pytest.approx(BEST[name]["fluid"], rel=1e-9)
    for known in BEST[name]["finite"]:
        n = known["N"]
        found = system.best_reserved(n)
        assert found.costs[0] / n == pytest.approx(known["a0"], rel=1e-13)
        assert found.costs[-1] / n == pytest.approx(known["no_coop"], rel=1e-13)
        if (first, second) == (2.0, 3.0) and n >= 40:  # the reference stops at a = 40 and 24
            assert found.least / n <= known["cost_over_N"] * (1 + 1e-12)
        else:
            assert (found.best, found.as_good) == (known["best_a"], (known["best_a"],))
            assert found.least / n == pytest.approx(known["cost_over_N"], rel=1e-13)


@settings(max_examples=15)
@given(st.integers(1, 5), st.integers(1, 7), rates, rates, rates, rates)
def test_all_thresholds_at_once_agree_with_single_evaluations(
    c0: int, c1: int, l0: float, l1: float, mu0: float, mu1: float
) -> None:
    system = TrunkReservation((l0, l1), (mu0, mu1), (c0, c1), 0, (1.0, 3.0))
    found, (family,), model = system.best_reserved(), system.families(), system.model()
    for reserved in {0, c1 // 2, c1}:
        low, high = mc.evaluate(model, family.member(reserved)).bounds
        slack = found.costs[reserved] * found.error
        assert low - slack <= found.costs[reserved] <= high + slack


@pytest.mark.parametrize(
    ("arrivals", "known"), [((0.0, 2.0), (0, 0.4)), ((0.0, 0.0), (0, 0.0)), ((1.0, 0.0), (0, 0.2))]
)
def test_classes_may_have_no_jobs(arrivals: tuple[float, float], known: Any) -> None:
    system = TrunkReservation(arrivals, (1.0, 1.0), (1, 2) if arrivals[0] == 0 else (1, 1), 0)
    found = system.best_reserved()
    assert found.best == known[0]
    low, high = mc.evaluate(system.model(), system.heuristic("complete_sharing").rule).bounds
    assert low - 1e-13 <= found.costs[0] <= high + 1e-13
    assert sum(a * b for a, b in zip(arrivals, found.blocking[0], strict=True)) == pytest.approx(
        found.costs[0]
    )


def test_too_many_servers_for_all_thresholds_at_once_are_refused() -> None:
    with pytest.raises(SolveError, match="Evaluate single thresholds"):
        TrunkReservation((2.0, 3.0), (1.0, 1.0), (1.0, 2.0), 0).best_reserved(1000)


# --- thresholds and other optima ------------------------------------------------------------------


@pytest.mark.parametrize("record", RECORDS)
def test_the_optimum_of_redirections_is_the_best_threshold(record: Any) -> None:
    system = system_of(record)
    found = system.threshold_of(mc.solve(system.model(), tolerance=1e-12, strict=False))
    assert found.reserved == found.nearest == record["best_a"]
    assert not found.exceptions


@settings(max_examples=15)
@given(st.integers(1, 4), st.integers(1, 6), rates, rates, rates, rates, st.floats(0.3, 8.0))
def test_random_optima_of_redirections_are_thresholds(
    c0: int, c1: int, l0: float, l1: float, mu0: float, mu1: float, price: float
) -> None:
    system = TrunkReservation((l0, l1), (mu0, mu1), (c0, c1), 0, (1.0, price))
    lower, upper = mc.solve(system.model()).bounds
    found = system.best_reserved()
    assert lower * (1 - 1e-9) <= found.least <= upper * (1 + 1e-9)


@settings(max_examples=40)
@given(st.integers(1, 8), st.integers(2, 12), rates, rates, rates, rates, st.floats(0.1, 30.0))
def test_the_cost_first_falls_and_then_rises_in_the_threshold(
    c0: int, c1: int, l0: float, l1: float, mu0: float, mu1: float, price: float
) -> None:
    """Not proved: a search for what would contradict it."""
    found = TrunkReservation((l0, l1), (mu0, mu1), (c0, c1), 0, (1.0, price)).best_reserved()
    steps = np.diff(found.costs)
    signs = np.sign(np.where(np.abs(steps) <= 4 * found.error * found.costs.max(), 0.0, steps))
    assert list(signs[signs != 0]) == sorted(signs[signs != 0])


def test_a_dear_class_0_makes_refusals_of_class_1_depend_on_both_centres() -> None:
    system = system_of(RECORDS[3], freedom="rejection")
    found = system.threshold_of(mc.solve(system.model()))
    assert found.reserved is None
    assert found.nearest == 0
    assert {decision for _, decision, _ in found.exceptions} == {"arrival 1"}
    assert all(n0 >= 3 for (n0, _), _, _ in found.exceptions)


def test_early_offloading_pays_where_centre_1_is_faster() -> None:
    system = system_of(RECORDS[7], freedom="offload")
    found = system.threshold_of(mc.solve(system.model()))
    assert found.reserved is None
    assert (found.exceptions[0][1], found.exceptions[0][2]) == ("arrival 0", "redirect")


def test_a_row_that_is_no_threshold_is_named() -> None:
    system = TrunkReservation.example()
    rules = dict(system.heuristic("trunk_reservation").rule)  # type: ignore[arg-type]
    own = rules["arrival 0"]
    rules["arrival 0"] = lambda x: np.where((x.busy[0] == 4) & (x.busy[1] == 3), "reject", own(x))
    found = system.threshold_of(mc.policy(system.model(), rules))
    assert (found.reserved, found.nearest) == (None, 2)
    assert found.exceptions == (((4, 3), "arrival 0", "reject"),)


def test_thresholds_are_of_deterministic_policies_of_the_same_model() -> None:
    system = TrunkReservation.example()
    mixed = {"local": lambda x: x.busy[0] < 4, "reject": lambda x: x.busy[0] == 4}
    with pytest.raises(InputError, match="deterministic policy"):
        system.threshold_of(mc.policy(system.model(), {"arrival 0": mixed}))
    other = TrunkReservation((6.0, 7.0), (1.0, 1.0), (4, 9), 2)
    with pytest.raises(InputError, match="states of the shape"):
        system.threshold_of(mc.solve(other.model()))


@settings(max_examples=10)
@given(st.integers(1, 3), st.integers(1, 4), rates, rates, rates, rates, st.floats(0.3, 4.0))
def test_more_freedom_never_costs_more_and_the_fluid_bound_is_below(
    c0: int, c1: int, l0: float, l1: float, mu0: float, mu1: float, price: float
) -> None:
    before = np.inf
    for freedom in MODES:
        system = TrunkReservation(
            (l0, l1),
            (mu0, mu1),
            (c0, c1),
            0,
            (1.0, price),
            freedom,  # type: ignore[arg-type]
        )
        lower, upper = mc.solve(system.model()).bounds
        assert lower <= before
        assert system.fluid_bound() <= upper
        before = upper


# --- the limit ------------------------------------------------------------------------------------


def test_finite_systems_approach_the_limit_like_one_over_their_scale() -> None:
    system = TrunkReservation((2.0, 3.0), (1.0, 1.0), (1.0, 2.0), 2, (1.0, 2.0))
    limit = system.limit()
    off = [system.best_reserved(n).blocking[2] - limit.blocking for n in (40, 80)]
    assert off[1] == pytest.approx(off[0] / 2, rel=0.1)
    assert off[1] == pytest.approx((0, 0), abs=0.01)
    cost = system.best_reserved(80).costs[2] / 80
    assert cost == pytest.approx(limit.cost, rel=0.02)
    assert limit.mean_jobs == (1.0, 2.0)
    assert limit.forwarded == pytest.approx((0.5 - limit.blocking[0], 0.0))
    assert not limit.certified
    assert limit.errors["cost"] == pytest.approx(8.0 * limit.errors["blocking"], abs=1e-14)


@pytest.mark.parametrize(
    ("arrivals", "jobs", "forwarded"),
    [
        ((0.5, 1.0), (0.5, 0.5), 0.0),
        ((0.5, 5.0), (0.5, 2.0), 0.0),
        ((1.5, 1.0), (1.0, 0.75), 1 / 3),
        ((2.0, 3.5), (1.0, 2.0), None),
    ],
)
def test_the_fluid_ends_in_the_mean_jobs_of_the_limit(
    arrivals: tuple[float, float], jobs: tuple[float, float], forwarded: float | None
) -> None:
    system = TrunkReservation(arrivals, (1.0, 2.0), (1.0, 2.0), 3)
    limit = system.limit()
    assert limit.mean_jobs == pytest.approx(jobs)
    path = system.fluid(60.0)
    assert path.states[-1] == pytest.approx(jobs, abs=1e-7)
    if forwarded is not None:
        assert limit.forwarded == pytest.approx((forwarded, 0.0))
        assert limit.certified


@settings(max_examples=10)
@given(st.integers(1, 4), st.integers(1, 5), st.integers(0, 5), rates, rates, rates, rates)
def test_what_is_not_lost_is_served(
    c0: int, c1: int, reserved: int, l0: float, l1: float, mu0: float, mu1: float
) -> None:
    system = TrunkReservation((l0, l1), (mu0, mu1), (c0, c1), reserved)
    found = mc.evaluate(system.model(), system.heuristic("trunk_reservation").rule).measures
    middle = {name: 0.5 * (low + high) for name, (low, high) in found.items()}
    sent = middle["forwarding_rate[0]"]
    for k, (rate, mu, more) in enumerate(((l0, mu0, -sent), (l1, mu1, sent))):
        taken = rate - middle[f"rejection_rate[{k}]"] + more
        assert taken == pytest.approx(mu * middle[f"mean_jobs[{k}]"], rel=1e-8)
    full = erlang_b(c0, l0 / mu0)
    lost = middle["rejection_rate[0]"] + sent
    assert lost == pytest.approx(l0 * full, rel=1e-8, abs=1e-12)


# --- parameters -----------------------------------------------------------------------------------


def test_capacities_are_scaled_and_rounded_with_a_note() -> None:
    system = TrunkReservation((2.0, 3.0), (1.0, 1.0), (1.25, 2.0), 2, scale=10)
    assert mc.solve(system.model()).policy.shape == (14, 21)
    assert system.notes == ("servers[0] = 1.25 times the scale 10 is 12.5, rounded to 13",)
    assert system.costs == (1.0, 1.0)
    (family,) = system.families()
    assert [p.values for p in family.parameters] == [tuple(range(21))]


def test_a_threshold_beyond_the_servers_is_no_cooperation_and_noted() -> None:
    system = TrunkReservation((6.0, 7.0), (1.0, 1.0), (4, 8), 9)
    assert "no job is redirected" in system.notes[0]
    found = mc.compare(system)
    costs = {row.name: row.cost for row in found.rows}
    assert costs["trunk_reservation"] == costs["no_cooperation"]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"arrival_rates": (1.0,)}, "arrival_rates must be a list of 2"),
        ({"arrival_rates": (1.0, -1.0)}, r"arrival_rates\[1\] must be a finite number >= 0"),
        ({"service_rates": (0.0, 1.0)}, r"service_rates\[0\] must be a finite number > 0"),
        ({"servers": (0.2, 2.0)}, r"servers\[0\] = 0.2 .* must be >= 1"),
        ({"reserved": -1}, "reserved must be an integer >= 0"),
        ({"reserved": 1.5}, "reserved must be an integer >= 0"),
        ({"rejection_costs": (1.0, -2.0)}, "rejection_costs"),
        ({"freedom": "redirects"}, "freedom must be 'redirect' or"),
        ({"scale": 0.0}, "scale must be a finite number > 0"),
    ],
)
def test_bad_parameters_are_refused(change: dict[str, Any], message: str) -> None:
    given = {
        "arrival_rates": (1.0, 2.0),
        "service_rates": (1.0, 1.0),
        "servers": (1.0, 2.0),
        "reserved": 1,
    }
    with pytest.raises(InputError, match=message):
        TrunkReservation(**{**given, **change})  # type: ignore[arg-type]


def test_caps_and_unknown_policies_are_refused() -> None:
    system = TrunkReservation.example()
    with pytest.raises(InputError, match="its state space is finite"):
        system.model([3, 3])
    with pytest.raises(InputError, match="trunk_reservation"):
        system.heuristic("trunk_reserve")


@pytest.mark.parametrize("value", [1e308, 1e101, 1e-101, 5e-324])
@pytest.mark.parametrize(
    "field", ["arrival_rates", "service_rates", "servers", "rejection_costs", "scale"]
)
def test_numbers_whose_products_are_not_finite_are_refused_by_name(
    field: str, value: float
) -> None:
    given = value if field == "scale" else (1.0, value)
    place = field if field == "scale" else rf"{field}\[1\]"
    with pytest.raises(InputError, match=rf"{place} must be 0 or in 1e-100\.\.1e\+100"):
        replace(TrunkReservation.example(), **{field: given})


@pytest.mark.parametrize("unit", [1e-90, 1e90])
@pytest.mark.parametrize("price", [1e-90, 1e90])
def test_measures_and_bounds_of_the_largest_and_smallest_numbers_are_finite(
    unit: float, price: float
) -> None:
    system = TrunkReservation((6 * unit, 7 * unit), (unit, unit), (4, 8), 2, (price, price))
    known = TrunkReservation((6, 7), (1, 1), (4, 8), 2, (1, 1))
    found, usual = system.limit(), known.limit()
    assert found.blocking == pytest.approx(usual.blocking, abs=1e-12)
    assert found.cost == pytest.approx(usual.cost * unit * price)
    assert system.fluid_bound() == pytest.approx(known.fluid_bound() * unit * price, rel=1e-9)


@pytest.mark.parametrize("start", ["ab", 5, (None, 1.0), ("a", 1.0), (1.0,), (float("nan"), 1.0)])
def test_a_start_that_is_no_list_of_numbers_is_refused(start: Any) -> None:
    with pytest.raises(InputError, match="start"):
        TrunkReservation.example().fluid(1.0, start)


def test_reserved_counts_servers_at_every_scale_and_a_note_says_where_that_is_too_many() -> None:
    small, large = (
        TrunkReservation((2.0, 1.5), (1.0, 1.0), (1.0, 2.0), 9, scale=scale) for scale in (4, 5)
    )
    assert "reserved = 9 is not less than the 8 servers of centre 1 at scale 4" in small.notes[0]
    assert large.notes == ()


# --- the limit near boundaries --------------------------------------------------------------------


def test_near_the_boundary_of_the_regimes_bounds_are_the_limit() -> None:
    limit = TrunkReservation((1.0001, 1.0), (1.0, 1.0), (1.0, 1.0), 1, scale=10).limit()
    assert limit.certified
    assert limit.blocking == pytest.approx((5e-5, 5e-5), rel=1e-3)
    assert limit.errors["blocking"] == pytest.approx(5e-5, rel=1e-3)
    assert "needs 391462 phases" in limit.notes[0]


def test_a_limit_that_needs_too_much_says_what_to_change() -> None:
    with pytest.raises(SolveError, match=r"raise arrival_rates\[0\] .* or lower reserved"):
        TrunkReservation((1.01, 9.995), (1.0, 1.0), (1.0, 10.0), 3).limit()


@given(
    st.tuples(st.floats(1.1, 9.0), st.floats(0.1, 9.0)), st.tuples(rates, rates), st.floats(-4, 4)
)
def test_the_error_counts_what_the_rounding_of_capacities_changes(
    loads: tuple[float, float], services: tuple[float, float], size: float
) -> None:
    servers = 0.3, 0.7 * 10.0**size
    arrivals = loads[0] * services[0] * servers[0], loads[1] * services[1] * servers[1]
    system = TrunkReservation(arrivals, services, servers, 0, scale=1e5)
    off = system._rounding(1.0) * min(arrivals)
    exact = [Fraction(mu) * Fraction(c) for mu, c in zip(services, servers, strict=True)]
    known = sum(abs(e - Fraction(a)) for e, a in zip(exact, system.capacities, strict=True))
    assert off == pytest.approx(float(known), rel=1e-12)
    assert off <= 1.2e-16 * sum(system.capacities)


# --- the optimum in words -------------------------------------------------------------------------


def test_an_optimum_that_is_trunk_reservation_says_so() -> None:
    system = TrunkReservation.example()
    (note,) = system.about_optimum(mc.solve(system.model()))
    assert note == "the optimum is trunk reservation with reserved = 2"
    dear = replace(system, rejection_costs=(1.0, 1000.0))
    (note,) = dear.about_optimum(mc.solve(dear.model()).policy)
    assert note == "the optimum is trunk reservation with reserved = 8: no job is redirected"


@pytest.mark.parametrize(
    ("freedom", "costs"), [("rejection", (10.0, 1.0)), ("offload", (1.0, 2.0)), ("mutual", (1, 2))]
)
def test_an_optimum_that_is_none_shows_the_first_states_where_it_differs(
    freedom: Any, costs: Any
) -> None:
    system = TrunkReservation((6.0, 7.0), (1.0, 3.0), (4, 8), 2, costs, freedom)
    solution = mc.solve(system.model())
    found = system.threshold_of(solution)
    assert found.reserved is None
    (note,) = system.about_optimum(solution)
    assert f"reserved = {found.nearest}, from which it differs in {len(found.exceptions)}" in note
    for (n, m), event, action in found.exceptions[:3]:
        assert f"in state busy = ({n}, {m}) it answers {event!r} with {action!r}" in note
    assert ("more" in note) == (len(found.exceptions) > 3)


def test_compare_tells_what_the_optimum_is() -> None:
    assert "the optimum is trunk reservation with reserved = 2" in str(
        mc.compare(TrunkReservation.example())
    )


@given(st.tuples(rates, rates), st.tuples(rates, rates), st.tuples(rates, rates))
def test_fluid_measures_hold_their_errors_in_fractions(
    arrivals: tuple[float, float], services: tuple[float, float], servers: tuple[float, float]
) -> None:
    system = TrunkReservation(arrivals, services, servers, 0, scale=10)
    (l0, l1), (m0, m1) = map(Fraction, arrivals), map(Fraction, services)
    a0, a1 = m0 * Fraction(servers[0]), m1 * Fraction(servers[1])
    assume(l0 < 0.99 * a0 or l0 + l1 < 0.99 * (a0 + a1))
    limit = system.limit()
    over = max(l0 - a0, Fraction(0))
    jobs = min(l0, a0) / m0, min(l1 + over, a1) / m1
    lost = max(1 - a1 / l1, Fraction(0)) if over == 0 else Fraction(0)
    assert limit.certified
    assert abs(Fraction(limit.blocking[1]) - lost) <= limit.errors["blocking"]  # type: ignore[arg-type]
    assert abs(Fraction(limit.cost) - l1 * lost) <= limit.errors["cost"]
    for value, known in zip(limit.mean_jobs, jobs, strict=True):
        assert abs(Fraction(value) - known) <= limit.errors["mean_jobs"]  # type: ignore[arg-type]
    sent = limit.forwarded[0]  # type: ignore[index]
    assert abs(Fraction(sent) - over / l0) <= limit.errors["forwarded"]  # type: ignore[arg-type]
