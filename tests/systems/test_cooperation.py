"""Cooperating centres against the reference numbers of Thompson (2017), chapter 3."""

from __future__ import annotations

import math
from fractions import Fraction
from functools import cache
from itertools import product
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import mdpcloud as mc
from mdpcloud.errors import NoLimitError
from mdpcloud.systems import Cooperation
from mdpcloud.systems.cooperation_model import parted_model
from mdpcloud.systems.measures import collect
from tests.common.exact import exact_optimum, solve_exactly
from tests.common.interpreter import interpret
from tests.models import reference

SETS = {
    **reference("allocation")["S4"],
    "slack": reference("allocation")["exact_rationals_and_S4_slack"]["S4_slack"],
}
MDP = SETS["mdp"]
QUICK = 10_000  # states from which an evaluation takes more than a second
FINITE = [
    pytest.param(
        name,
        one,
        id=f"{name} {one['N']}",
        marks=[pytest.mark.slow] if one["states"] > QUICK else [],
    )
    for name in ("sym", "asym", "asym_mu", "slack")
    for one in SETS[name]["finite"]
]
WAS_SOLVED_TO = 1e-10  # the reference's power iteration


def cooperation(name: str, scale: float = 10.0, **more: Any) -> Cooperation:
    """A set of the reference file."""
    one = SETS[name]
    cap, delta = one["cap"], one["delta"]
    default: dict[str, Any] = {
        "arrival_rates": one["lam_jk"],
        "service_rates": one["mu"],
        "requirements": ((one["R"], 1), (1, one["C"])),
        "capacities": (cap[:2], cap[2:]),
        "thresholds": (delta[0] * cap[0], delta[1] * cap[3]),
        "scale": scale,
    }
    return Cooperation(**{**default, **more})


def of_record(record: Any) -> Cooperation:
    """The system of a record of optima."""
    costs = {"rejection_cost": record["w_rej"][0], "forwarding_cost": record["w_fwd"][0]}
    return cooperation(record["set"], record["N"], **costs)


def with_names(record: Any) -> str:
    return f"{record['set']} {record['N']} {record['w_fwd'][0]}"


# --- the finite system ----------------------------------------------------------------------------


@pytest.mark.parametrize(("name", "wanted"), FINITE)
def test_jobs_are_lost_and_sent_as_often_as_the_reference_says(name: str, wanted: Any) -> None:
    system = cooperation(name, wanted["N"])
    found = mc.evaluate(system.model(), system.heuristic("threshold").rule)
    assert len(found.values) == wanted["states"]
    measures = found.measures | system.derived(found.bounds, found.measures)
    for (j, k), what in product(product((0, 1), (0, 1)), ("forwarded", "blocking")):
        value = wanted["local_remote_reject"][f"{j + 1}{k + 1}"][1 + (what == "blocking")]
        low, high = measures[f"{what}[{j}][{k}]"]
        assert high - low <= 1e-10
        assert low - WAS_SOLVED_TO <= value <= high + WAS_SOLVED_TO
    jobs = [0.5 * sum(measures[f"mean_jobs[{j}][{k}]"]) for j in (0, 1) for k in (0, 1)]
    assert jobs == pytest.approx(wanted["N"] * np.array(wanted["x_mean"]), abs=1e-8)


@pytest.mark.parametrize("name", ["sym", "asym", "asym_mu", "slack"])
def test_the_use_is_below_the_thresholds_as_often_as_the_reference_says(name: str) -> None:
    wanted = SETS[name]["finite"][0]
    system = cooperation(name, wanted["N"])
    centres, levels, _ = system._rounded
    model = system.model()
    below = {
        f"P_Y{p + 1}_below": lambda x, p=p: 1.0 * (centres.used(p, p)(x) < levels[p])
        for p in (0, 1)
    }
    measured = mc.Model(model.space, model.events, measures=below)
    found = mc.evaluate(measured, system.heuristic("threshold").rule).measures
    for key in below:
        assert found[key] == pytest.approx((wanted[key],) * 2, abs=1e-11)


@pytest.mark.parametrize("record", MDP, ids=with_names)
def test_the_optimum_and_the_threshold_policy_cost_what_the_reference_says(record: Any) -> None:
    system = of_record(record)
    model = system.model()
    assert mc.solve(model, tolerance=1e-11).gain == pytest.approx(record["opt"], rel=1e-10)
    found = mc.evaluate(model, system.heuristic("threshold").rule)
    assert found.gain == pytest.approx(record["delta_policy_cost"], rel=1e-11)
    assert len(found.values) == record["states"]


@pytest.mark.parametrize("record", [r for r in MDP if r["grid"]], ids=with_names)
def test_thresholds_common_to_both_centres_cost_what_the_reference_says(record: Any) -> None:
    system = of_record(record)
    _, common = system.families()
    model = system.model()
    for (level,) in list(common.members())[:: 1 if record["N"] == 10 else 3]:
        wanted = record["grid"][f"{level},{level}"]
        found = mc.evaluate(model, common.member(level), tolerance=1e-9)
        assert found.gain == pytest.approx(wanted, rel=1e-9)


def test_the_best_of_all_thresholds_is_that_of_the_reference() -> None:
    record = MDP[2]
    cost, levels = record["best_threshold"]
    found = mc.compare(of_record(record), ["threshold", "best thresholds"])
    best = found.rows[-1]
    assert best.cost == pytest.approx(cost, rel=1e-10)
    assert best.parameter == dict(zip(("threshold[0]", "threshold[1]"), levels, strict=True))
    assert found.optimum is not None
    assert found.optimum.cost < best.cost


@pytest.mark.parametrize("record", MDP[:2], ids=with_names)
def test_the_best_common_threshold_is_that_of_the_reference(record: Any) -> None:
    cost, levels = record["best_threshold"]
    found = mc.compare(of_record(record), ["best common_threshold"])
    assert found.rows[-1].cost == pytest.approx(cost, rel=1e-10)
    assert found.rows[-1].parameter == {"threshold": levels[0]}


def test_unequal_thresholds_are_no_better_in_the_symmetric_system() -> None:
    """The reference searched equal ones only."""
    found = mc.compare(of_record(MDP[1]), ["best thresholds"])
    assert found.rows[-1].cost == pytest.approx(MDP[1]["best_threshold"][0], rel=1e-10)


def test_levels_beyond_the_last_of_the_grid_hold_nothing_back() -> None:
    system = cooperation("asym", 8)
    model, (each, _) = system.model(), system.families()
    tops = [parameter.values[-1] for parameter in each.parameters]
    sharing = mc.policy(model, system.heuristic("complete_sharing").rule)
    for levels, same in ((tops, True), ((99, 99), True), ((tops[0] - 1, tops[1]), False)):
        other = mc.policy(model, each.member(*levels))
        assert all((other.actions[e] == sharing.actions[e]).all() for e in sharing.actions) == same


# --- exact second method on a small system --------------------------------------------------------

SMALL: dict[str, Any] = {
    "arrival_rates": ((3.0, 0.5), (0.25, 2.0)),
    "service_rates": (1.0, 0.5),
    "requirements": ((2, 1), (1, 2)),
    "capacities": ((6, 3), (3, 6)),
    "thresholds": (4, 4),
    "forwarding_cost": 0.25,
}
OPTIONS = list(product(("reject", "return"), ("forward", "reject")))


def exact_rates(system: Cooperation) -> dict[str, Fraction]:
    """How often jobs are lost and sent, by elimination in fractions of a chain written by hand."""
    (r, _), (_, c) = system.requirements
    room = system.capacities
    need = ((r, 1), (1, c))

    def used(x: Any, k: int) -> tuple[int, int]:
        return r * x[k] + x[2 + k], x[k] + c * x[2 + k]

    def is_state(x: Any) -> bool:
        return all(used(x, k)[m] <= room[k][m] for k in (0, 1) for m in (0, 1))

    def decide(x: Any, j: int, k: int) -> str:
        def fits(at: int) -> bool:
            return all(used(x, at)[m] + need[j][m] <= room[at][m] for m in (0, 1))

        if j != k:
            return "local" if fits(k) else "remote" if fits(1 - k) else "reject"
        if used(x, k)[k] < system.thresholds[k]:
            if fits(k):
                return "local"
            if system.unfit == "reject":
                return "reject"
        if fits(1 - k):
            return "remote"
        return "local" if system.remote_full == "return" and fits(k) else "reject"

    states = [x for x in product(range(5), repeat=4) if is_state(x)]
    place = {x: i for i, x in enumerate(states)}
    n = len(states)
    flow = [[Fraction(0)] * n for _ in range(n)]
    rates = {}
    for x, (j, k) in product(states, product((0, 1), (0, 1))):
        rate, act = Fraction(system.arrival_rates[j][k]), decide(x, j, k)
        rates[x, j, k] = (rate, act)
        moves = []
        if act != "reject":
            moves.append((rate, 2 * j + (k if act == "local" else 1 - k), 1))
        i = 2 * j + k
        moves.append((Fraction(system.service_rates[j]) * x[i], i, -1))
        for speed, axis, step in moves:
            y = (*x[:axis], x[axis] + step, *x[axis + 1 :])
            if speed:
                flow[place[y]][place[x]] += speed
                flow[place[x]][place[x]] -= speed
    flow[-1] = [Fraction(1)] * n
    law = solve_exactly(flow, [*[Fraction(0)] * (n - 1), Fraction(1)])
    found: dict[str, Fraction] = {}
    for (x, j, k), (rate, act) in rates.items():
        for name, of in (("rejection_rate", "reject"), ("forwarding_rate", "remote")):
            key = f"{name}[{j}][{k}]"
            found[key] = found.get(key, Fraction(0)) + law[place[x]] * rate * (act == of)
    return found


@pytest.mark.parametrize(("remote_full", "unfit"), OPTIONS)
def test_what_the_source_leaves_open_is_done_as_told(remote_full: Any, unfit: Any) -> None:
    system = Cooperation(**SMALL, remote_full=remote_full, unfit=unfit)
    found = mc.evaluate(system.model(), system.heuristic("threshold").rule).measures
    for name, value in exact_rates(system).items():
        low, high = found[name]
        assert low <= value <= high
        assert high - low <= 1e-10


def test_the_options_differ() -> None:
    lost = [
        exact_rates(Cooperation(**SMALL, remote_full=remote_full, unfit=unfit))
        for remote_full, unfit in OPTIONS
    ]
    assert len({one["rejection_rate[0][0]"] for one in lost}) == len(OPTIONS)


def test_the_optimum_is_that_of_exact_policy_iteration() -> None:
    small = {**SMALL, "capacities": ((3, 2), (2, 3)), "thresholds": (2, 2)}
    system = Cooperation(**small)
    exact = exact_optimum(interpret(system.model()))
    lower, upper = mc.solve(system.model(), tolerance=1e-12).bounds
    assert lower <= exact <= upper


rates = st.floats(0.1, 3.0)


@given(st.tuples(*[rates] * 4), st.tuples(rates, rates), st.tuples(*[st.integers(2, 5)] * 4))
@settings(deadline=None, max_examples=10)
def test_no_policy_beats_the_optimum_and_jobs_are_conserved(
    arrivals: Any, services: Any, room: Any
) -> None:
    system = Cooperation(
        (arrivals[:2], arrivals[2:]), services, ((2, 1), (1, 2)), (room[:2], room[2:]),
        (room[0] - 1, room[3] - 1), forwarding_cost=0.1,
    )  # fmt: skip
    model = system.model()
    best = mc.solve(model)
    for name in system.policy_names:
        found = mc.evaluate(model, system.heuristic(name).rule)
        assert found.gain >= best.bounds[0] - 1e-9
        middle = {key: 0.5 * sum(bounds) for key, bounds in found.measures.items()}
        for j in (0, 1):
            taken = sum(arrivals[2 * j + k] - middle[f"rejection_rate[{j}][{k}]"] for k in (0, 1))
            left = services[j] * sum(middle[f"mean_jobs[{j}][{k}]"] for k in (0, 1))
            assert taken == pytest.approx(left, abs=1e-7)
        paid = sum(
            middle[f"rejection_rate[{j}][{k}]"] + 0.1 * middle[f"forwarding_rate[{j}][{k}]"]
            for j in (0, 1)
            for k in (0, 1)
        )
        assert paid == pytest.approx(found.gain, abs=1e-7)


# --- more centres ---------------------------------------------------------------------------------


def ring(centres: int, scale: float, **more: Any) -> Cooperation:
    """Centres that guard memory and processors by turns."""
    own = [0.5 if k % 2 == 0 else 0.1 for k in range(centres)]
    return Cooperation(
        (own, [0.6 - rate for rate in own]),
        (1.0, 1.0),
        ((2, 1), (1, 2)),
        [(1.0, 1.0)] * centres,
        [0.9] * centres,
        scale=scale,
        **more,
    )


@pytest.mark.parametrize("policy", ["threshold", "complete_sharing"])
def test_three_centres_are_simulated_as_they_are_solved(policy: str) -> None:
    system = ring(3, 4.0, forwarding_cost=0.1, remote_full="return")
    exact = mc.evaluate(system.model(), system.heuristic(policy).rule, tolerance=1e-8)
    found = mc.simulate(system, policy, rng=1, events=300_000)
    assert found.gain.half_width < 0.05
    assert abs(found.gain.value - exact.gain) < 2.0 * found.gain.half_width


@pytest.mark.parametrize("levels", [(9.0, 9.0), (3.0, 6.0), (math.inf, 5.0)])
def test_streams_parted_by_what_one_centre_says_are_the_same_process(levels: Any) -> None:
    system = cooperation("sym", 10, forwarding_cost=0.1)
    rules = system.families()[0].member(*levels)
    exact = mc.evaluate(system.model(), rules)
    model, of_sent = parted_model(system, system._rounded[0], levels)
    same = mc.evaluate(
        mc.Model(mc.Lattice(model.space.caps, where=system.model().space.where), model.events,
                 measures=model.measures),
        of_sent,
    )  # fmt: skip
    assert same.gain == pytest.approx(exact.gain, rel=1e-9)
    for name, bounds in exact.measures.items():
        assert same.measures[name] == pytest.approx(bounds, abs=1e-8)
    found = mc.simulate(system, rules, rng=3, events=200_000)
    assert abs(found.gain.value - exact.gain) < 2.0 * found.gain.half_width


def test_a_large_system_of_two_centres_is_near_its_limit() -> None:
    """At scale 400, with 10^9 states, by simulation of the parted streams."""
    system = cooperation("slack", 400, forwarding_cost=0.1)
    found = mc.simulate(system, "threshold", rng=1, events=300_000)
    assert found.gain.value / 400 == pytest.approx(system.limit().cost, rel=0.02)


@cache
def six_centres() -> mc.SimulationResult:
    return mc.simulate(ring(6, 20.0), "threshold", rng=1, events=400_000)


def test_six_centres_of_scale_twenty_are_simulated() -> None:
    found = six_centres()
    assert found.gain.half_width < 0.5
    assert {f"rejection_rate[1][{k}]" for k in range(6)} <= set(found.measures)


def test_six_centres_in_pairs_are_much_like_two() -> None:
    """A centre sends to the next one instead of its partner; the loads are those of two."""
    two = cooperation("sym", 20)
    pair = mc.evaluate(two.model(), two.heuristic("threshold").rule, tolerance=1e-8).gain
    assert abs(six_centres().gain.value / 3.0 - pair) < 0.1 * pair


def test_a_solution_of_the_model_is_simulated_on_its_own_states() -> None:
    system = Cooperation(**SMALL)
    best = mc.solve(system.model())
    found = mc.simulate(system, best, rng=2, events=200_000)
    assert abs(found.gain.value - best.gain) < 2.0 * found.gain.half_width


# --- large scale ----------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["sym", "asym", "asym_mu", "slack"])
def test_the_limit_is_the_fixed_point_of_the_reference(name: str) -> None:
    one = SETS[name]
    found = cooperation(name, 7.0, forwarding_cost=0.5).limit()
    (a, _), (_, d) = one["lam_jk"]
    sent = [1.0 - g for g in one["gamma"]]
    assert found.forwarded == (pytest.approx((sent[0], 0.0)), pytest.approx((0.0, sent[1])))
    assert found.blocking == ((0.0, 0.0), (0.0, 0.0))
    jobs = one["x_star_11_12_21_22"]
    assert np.ravel(found.mean_jobs) == pytest.approx(jobs, abs=found.errors["mean_jobs"])
    assert found.cost == pytest.approx(0.5 * (a * sent[0] + d * sent[1]), rel=1e-12)
    assert found.regime == "at_at"
    assert max(found.errors.values()) < 1e-12


def test_finite_systems_come_near_their_limit() -> None:
    limit = cooperation("slack", 1.0).limit()
    distances = []
    for scale in (5, 10, 20):
        system = cooperation("slack", scale)
        found = mc.evaluate(system.model(), system.heuristic("threshold").rule, tolerance=1e-8)
        bounds = found.measures | system.derived(found.bounds, found.measures)
        jobs = np.array(collect(found.bounds, bounds).mean_jobs) / scale
        distances.append(np.abs(jobs - np.array(limit.mean_jobs)).max())
    assert distances == sorted(distances, reverse=True)
    assert distances[-1] < 0.03


def test_the_fluid_path_is_the_mean_of_a_large_system_before_its_thresholds() -> None:
    """Without losses the mean is the fluid path at every scale."""
    path = cooperation("slack", 3.0).fluid(1.0, times=[1.0])
    grown = 1.0 - math.exp(-1.0)
    assert path.states[0] == pytest.approx([0.5 * grown, 0.1 * grown, 0.1 * grown, 0.5 * grown])
    assert path.labels[1] == "mean_jobs[0][1]"
    later = cooperation("slack", 3.0).fluid(20.0, path.states[0], times=[20.0])
    assert later.states[0] == pytest.approx([0.2, 0.4, 0.4, 0.2], abs=1e-7)


@pytest.mark.parametrize(
    "change",
    [
        {"requirements": ((2, 1), (2, 2))},
        {
            "capacities": ((1, 1), (1, 1), (1, 1)),
            "arrival_rates": ((0.5, 0.1, 0.1), (0.1, 0.5, 0.5)),
            "thresholds": (0.9, 0.9, 0.9),
        },
    ],
)
def test_other_systems_have_no_limit(change: Any) -> None:
    system = cooperation("sym", 10, **change)
    for ask in (system.limit, lambda: system.fluid(1.0)):
        with pytest.raises(NoLimitError, match="known for two centres and requirements"):
            ask()


def test_an_overload_has_no_limit_and_says_why() -> None:
    system = cooperation("sym", 10, arrival_rates=((0.9, 0.1), (0.1, 0.9)))
    with pytest.raises(NoLimitError, match=r"the load of memory .* = 3 must be < .* = 2; it is 1 "):
        system.limit()


# --- parameters -----------------------------------------------------------------------------------


def test_what_is_rounded_is_noted() -> None:
    assert cooperation("asym", 8).notes == (
        "capacities[0][1] = 1.2 times the scale 8 is 9.6, rounded to 10",
        "capacities[1][0] = 1.2 times the scale 8 is 9.6, rounded to 10",
        "thresholds[0] = 0.9 times the scale 8 is 7.2; a use below that is one below 8",
        "thresholds[1] = 1.275 times the scale 8 is 10.2; a use below that is one below 11",
    )
    assert cooperation("sym", 10).notes == ()


def test_a_scale_is_nothing_but_larger_rates_capacities_and_thresholds() -> None:
    scaled = cooperation("sym", 10)
    plain = Cooperation(
        ((5.0, 1.0), (1.0, 5.0)), (1.0, 1.0), ((2, 1), (1, 2)), ((10, 10), (10, 10)), (9, 9)
    )
    gains = [mc.evaluate(s.model(), s.heuristic("threshold").rule).gain for s in (scaled, plain)]
    assert gains[0] == pytest.approx(gains[1], rel=1e-12)


def test_the_names_of_events_and_measures_are_nested_as_the_arrival_rates() -> None:
    model = Cooperation.example().model()
    assert [event.name for event in model.events][1::4] == ["arrival 0 at 1", "departure 0 at 1"]
    assert "forwarding_rate[1][0]" in model.measures
    system = Cooperation.example()
    found = mc.evaluate(system.model(), system.heuristic("threshold").rule)
    measures = collect(found.bounds, found.measures | system.derived(found.bounds, found.measures))
    assert np.shape(measures.blocking) == np.shape(measures.forwarded) == (2, 2)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"arrival_rates": ((0.5, 0.1),)}, "arrival_rates has 1 entries; it must have one for each"
         " of the 2 types"),
        ({"arrival_rates": ((0.5, 0.1), (0.1, 0.5, 0.1))}, r"arrival_rates\[1\] has 3 entries; it"
         " must have one for each of the 2 centres"),
        ({"arrival_rates": ((0.0, 0.0), (0.0, 0.0))}, "arrival_rates are all 0"),
        ({"arrival_rates": ((0.5, -0.1), (0.1, 0.5))}, r"arrival_rates\[0\]\[1\] must be .* >= 0"),
        ({"service_rates": (1.0,)}, "service_rates has 1 entries"),
        ({"service_rates": (1.0, 0.0)}, r"service_rates\[1\] must be a finite number > 0"),
        ({"requirements": ((2, 1), (1,))}, r"requirements\[1\] has 1 entries"),
        ({"requirements": ((0, 0), (1, 2))}, r"requirements\[0\] = \(0, 0\); a job must need"),
        ({"requirements": ((2.5, 1), (1, 2))}, r"requirements\[0\]\[0\] must be an integer >= 0"),
        ({"requirements": ((11, 1), (1, 2))}, r"a job of type 0 needs \(11, 1\) and fits in no"),
        ({"capacities": ((1.0, 1.0), (1.0,))}, r"capacities\[1\] has 1 entries; it must have one"),
        ({"capacities": ((1.0, 1.0),)}, "capacities must be a list of at least 2"),
        ({"capacities": ((1.0, 0.0), (1.0, 1.0))}, r"capacities\[0\]\[1\] must be .* > 0"),
        ({"thresholds": (0.9,)}, "thresholds has 1 entries; it must have one for each of the 2"),
        ({"thresholds": (0.9, math.nan)}, r"thresholds\[1\] must be a finite number >= 0"),
        ({"rejection_cost": -1.0}, "rejection_cost must be a finite number >= 0"),
        ({"remote_full": "wait"}, "remote_full must be 'reject' or 'return', not 'wait'"),
        ({"unfit": "wait"}, "unfit must be 'forward' or 'reject'"),
        ({"scale": 0.0}, "scale must be a finite number > 0"),
    ],
)  # fmt: skip
def test_wrong_parameters_are_refused_by_name(change: Any, message: str) -> None:
    with pytest.raises(mc.InputError, match=message):
        cooperation("sym", **change)


def test_unknown_policies_and_caps_are_refused() -> None:
    system = Cooperation.example()
    with pytest.raises(mc.InputError, match="policy must be one of 'threshold', 'complete_sharing"):
        system.heuristic("thresholds")
    with pytest.raises(mc.InputError, match="cooperation takes no caps"):
        system.model((1, 1, 1, 1))


@pytest.mark.slow
def test_nearly_a_hundred_thousand_states_are_certified_to_eleven_digits() -> None:
    system = cooperation("sym", 40, forwarding_cost=0.1)
    found = mc.evaluate(system.model(), system.heuristic("threshold").rule)
    assert len(found.values) == 86_436
    assert found.bounds[1] - found.bounds[0] <= 5e-11
    best = mc.solve(system.model(), tolerance=1e-7)
    assert best.bounds[0] <= found.gain
