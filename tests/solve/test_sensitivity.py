"""Derivatives of the optimum: closed forms, exact difference quotients, kinks, refusals."""

import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

import mdpcloud as mc
from mdpcloud.solve.sensitivity.differences import Stencil, differentiate, find_stencil
from mdpcloud.solve.sensitivity.sensitivity import Sensitivity, sensitivity
from mdpcloud.systems import CloudRouting, Node
from tests.common.exact import exact_optimum
from tests.common.interpreter import interpret
from tests.common.random_models import returning_models
from tests.models import Case, cases

TWO = CloudRouting((Node(1, 2.0, 0.5), Node(1, 1.0, 0.5)), 3.0, 0.4)
EQUAL = CloudRouting((Node(2, 2.0, 0.3), Node(2, 2.0, 0.3)), 6.0, 0.25)


def loss_queue(servers: int, room: int, load: float, price: float = 1.0) -> mc.Model:
    """M/M/m/room with a cost per lost job."""
    lost = mc.Action("lost", cost=price, allowed=lambda x: x.jobs == room)
    arrival = mc.Event("arrival", load, [lost, mc.Action("join", mc.step(jobs=+1))])
    service = mc.Event("service", lambda x: 1.0 * np.minimum(x.jobs, servers), mc.step(jobs=-1))
    return mc.Model(mc.Lattice({"jobs": room}), [arrival, service])


def erlang_slope(servers: int, load: Fraction) -> Fraction:
    """d/da of a B(m, a): dB/da = B (m / a - 1 + B)."""
    blocked = Fraction(1)
    for k in range(1, servers + 1):
        blocked = load * blocked / (k + load * blocked)
    return blocked + load * blocked * (servers / load - 1 + blocked)


# --- closed forms ---------------------------------------------------------------------------------


@pytest.mark.parametrize(("servers", "load"), [(1, 0.5), (3, 4.0), (20, 12.5)])
def test_the_loss_rate_of_erlang_b_has_its_known_derivative(servers: int, load: float) -> None:
    found = sensitivity(lambda a: loss_queue(servers, servers, a), load)
    exact = float(erlang_slope(servers, Fraction(load)))
    assert found.derivative == pytest.approx(exact, abs=found.error + 1e-12 * exact)
    assert found.ties == 0
    assert found.left == found.right


@given(servers=st.integers(1, 40), part=st.floats(0.05, 2.0))
@settings(max_examples=15)
def test_the_estimated_error_is_no_smaller_than_the_true_one(servers: int, part: float) -> None:
    """Down to light loads, at which next to nothing is lost."""
    load = part * servers
    found = sensitivity(lambda a: loss_queue(servers, servers, a), load)
    exact = float(erlang_slope(servers, Fraction(load)))
    assert abs(found.derivative - exact) <= found.error + 1e-15 * exact


@pytest.mark.parametrize("load", [0.3, 1.0, 2.0])
def test_the_loss_rate_of_a_single_server_has_its_known_derivative(load: float) -> None:
    found = sensitivity(lambda a: loss_queue(1, 4, a), load)
    a = Fraction(load)
    weights = [a**k for k in range(5)]
    slopes = [k * a ** (k - 1) if k else Fraction(0) for k in range(5)]
    blocked = weights[-1] / sum(weights)
    slope = slopes[-1] / sum(weights) - blocked * sum(slopes) / sum(weights)
    assert found.derivative == pytest.approx(float(blocked + a * slope), rel=1e-11)


@given(p=st.floats(0.05, 0.9), q=st.floats(0.05, 0.95), cost=st.floats(-3.0, 3.0))
@settings(max_examples=10)
def test_a_two_state_chain_in_discrete_time(p: float, q: float, cost: float) -> None:
    """g = cost p / (p + q), so dg/dp = cost q / (p + q)^2."""
    found = sensitivity(lambda t: mc.tabular([[[1.0 - t, t], [q, 1.0 - q]]], costs=[0.0, cost]), p)
    assert found.derivative == pytest.approx(cost * q / (p + q) ** 2, abs=1e-11)


def test_rates_that_are_no_straight_lines_are_differentiated_just_as_well() -> None:
    """The load is exp(t): the chain rule."""
    found = sensitivity(lambda t: loss_queue(3, 3, math.exp(t)), 0.7)
    a = Fraction(math.exp(0.7))
    assert found.derivative == pytest.approx(float(a * erlang_slope(3, a)), rel=1e-10)
    assert found.error < 1e-9


def test_rewards_have_the_sign_of_rewards() -> None:
    def machine(reward: float) -> Any:
        """Stay for the reward, or move between the states for 1."""
        stay, move = np.eye(2), np.eye(2)[::-1]
        return mc.tabular([0.5 * stay + 0.5 * move, move], rewards=[[reward, 1.0], [reward, 1.0]])

    assert sensitivity(machine, 3.0).derivative == pytest.approx(1.0)
    kink = sensitivity(machine, 1.0)
    assert (kink.left, kink.right) == (pytest.approx(0.0), pytest.approx(1.0))
    assert kink.gain == pytest.approx(1.0)


# --- exact difference quotients -------------------------------------------------------------------


def with_factor(model: mc.Model, number: int, factor: float) -> mc.Model:
    """One event's rate times a factor."""
    events: list[Any] = list(model.events)
    event = events[number]
    rate = event.rate
    scaled = (lambda x: factor * rate(x)) if callable(rate) else factor * rate
    events[number] = mc.Event(event.name, scaled, event.actions)
    return mc.Model(model.space, events, cost_rate=list(model.cost_rate))


def quotient(model: mc.Model, number: int, step: float) -> Fraction:
    """Exact one-sided difference quotient of the optimum in the factor on one event's rate."""
    there = exact_optimum(interpret(with_factor(model, number, 1.0 + step)))
    return (there - exact_optimum(interpret(model))) / Fraction(step)


@given(model=returning_models(decades=1.0), number=st.integers(0, 5))
@settings(max_examples=6)
def test_both_sides_agree_with_exact_difference_quotients(model: mc.Model, number: int) -> None:
    number %= len(model.events)
    name = model.events[number].name
    assume(isinstance(model.events[number], mc.Event))
    found = sensitivity(model, name, tolerance=1e-3)
    for side, step in ((found.right, 2.0**-24), (found.left, -(2.0**-24))):
        rough, fine = quotient(model, number, step), quotient(model, number, step / 2)
        assert side is not None
        bend = abs(float(fine - rough))
        assert side == pytest.approx(float(2 * fine - rough), abs=found.error + bend + 1e-7)


@given(model=returning_models(decades=1.0))
@settings(max_examples=6)
def test_the_optimum_is_homogeneous_in_all_rates_and_cost_rates(model: mc.Model) -> None:
    """Euler: with all events' rates and all cost rates times t the optimum is t g."""
    found = sensitivity(lambda t: scaled(model, t), 1.0, tolerance=1e-3)
    assert found.left == pytest.approx(found.gain, abs=found.error + 1e-9)
    assert found.right == pytest.approx(found.gain, abs=found.error + 1e-9)


def scaled(model: mc.Model, t: float) -> mc.Model:
    """The model in another unit of time."""
    terms: list[Any] = []
    for term in model.events:
        if isinstance(term, mc.Event):
            terms.append(mc.Event(term.name, times(term.rate, t), term.actions))
        else:
            modes = [
                mc.Mode(
                    mode.name,
                    times(mode.cost_rate, t),
                    [mc.Flow(times(flow.rate, t), flow.step) for flow in mode.flows],
                    mode.allowed,
                )
                for mode in term.modes
            ]
            terms.append(mc.Control(term.name, modes))
    costs = [times(cost, t) for cost in model.cost_rate]
    return mc.Model(model.space, terms, cost_rate=costs)


def times(value: Any, t: float) -> Any:
    """A number or function times t."""
    return (lambda x: t * value(x)) if callable(value) else t * value


def test_the_derivatives_in_the_events_add_up_to_that_in_time() -> None:
    model = TWO.model()
    parts = sensitivity(model, [event.name for event in model.events])
    total = sensitivity(lambda t: scaled(model, t), 1.0).derivative
    rest = sensitivity(
        lambda t: mc.Model(
            model.space, model.events, cost_rate=[times(c, t) for c in model.cost_rate]
        ),
        1.0,
    ).derivative
    assert sum(part.derivative for part in parts.values()) + rest == pytest.approx(total, rel=1e-10)
    assert total == pytest.approx(3546 / 7715, rel=1e-10)


MODELS = [case for case in cases() if isinstance(case.build(), mc.Model)]


@pytest.mark.parametrize("case", MODELS, ids=lambda case: case.name)
def test_in_every_small_system_the_derivative_in_time_is_the_gain(case: Case) -> None:
    model = case.build()
    found = sensitivity(lambda t: scaled(model, t), 1.0)
    assert found.derivative == pytest.approx(found.gain, abs=max(found.error, 1e-12))


# --- systems --------------------------------------------------------------------------------------


def optimum(system: CloudRouting, caps: tuple[int, ...]) -> float:
    return mc.solve(system.model(caps), tolerance=1e-13, strict=False).gain


def test_several_fields_of_a_system_are_differentiated_at_once() -> None:
    found = sensitivity(TWO, ["arrival_rate", "outside_cost", "nodes[0].service_rate"])
    step = 1e-5
    ends = {
        "arrival_rate": [CloudRouting(TWO.nodes, 3.0 + s * step, 0.4) for s in (-1, 1)],
        "outside_cost": [CloudRouting(TWO.nodes, 3.0, 0.4 + s * step) for s in (-1, 1)],
        "nodes[0].service_rate": [
            CloudRouting((Node(1, 2.0 + s * step, 0.5), TWO.nodes[1]), 3.0, 0.4) for s in (-1, 1)
        ],
    }
    for name, (below, above) in ends.items():
        slope = (optimum(above, (5, 5)) - optimum(below, (5, 5))) / (2 * step)
        assert found[name].derivative == pytest.approx(slope, abs=1e-8)
        assert found[name].error < 1e-11
    assert found["outside_cost"].name == "outside_cost"
    assert found["outside_cost"].at == 0.4


def test_the_derivative_in_the_outside_cost_is_the_rate_of_outsourcing() -> None:
    found = sensitivity(TWO, "outside_cost")
    solution = mc.solve(TWO.model())
    low, high = mc.evaluate(TWO.model(), solution.policy).measures["outsourcing_rate"]
    assert low - found.error <= found.derivative <= high + found.error


def test_equal_nodes_make_a_kink_in_the_parameters_of_one_but_not_in_what_they_share() -> None:
    found = sensitivity(EQUAL, ["arrival_rate", "nodes[0].service_rate"])
    assert found["arrival_rate"].ties > 0
    assert found["arrival_rate"].left == pytest.approx(found["arrival_rate"].right, abs=1e-11)
    kink = found["nodes[0].service_rate"]
    step = 1e-4
    for side, sign in ((kink.left, -1), (kink.right, 1)):
        slopes = []
        for s in (step, step / 2):
            moved = CloudRouting((Node(2, 2.0 + sign * s, 0.3), EQUAL.nodes[1]), 6.0, 0.25)
            slopes.append((optimum(moved, (9, 9)) - kink.gain) / (sign * s))
        assert side == pytest.approx(2 * slopes[1] - slopes[0], abs=1e-6)
    assert kink.left > kink.right  # type: ignore[operator]
    with pytest.raises(
        mc.InputError, match=r"kink at nodes\[0\].service_rate = 2.*\.left, \.right"
    ):
        _ = kink.derivative


def test_a_known_solution_is_used_and_a_foreign_one_refused() -> None:
    solution = mc.solve(TWO.model())
    found = sensitivity(lambda t: CloudRouting(TWO.nodes, t, 0.4).model((3, 2)), 3.0)
    again = sensitivity(
        lambda t: CloudRouting(TWO.nodes, t, 0.4).model((3, 2)), 3.0, solution=solution
    )
    assert again.derivative == pytest.approx(found.derivative, rel=1e-12)
    with pytest.raises(mc.InputError, match="made for another model"):
        sensitivity(lambda t: CloudRouting(TWO.nodes, t, 0.4).model((9, 9)), 3.0, solution=solution)
    discounted = mc.solve(TWO.model(), mc.Discounted(rate=1.0))
    with pytest.raises(mc.InputError, match="average cost"):
        sensitivity(lambda t: TWO.model(), 3.0, solution=discounted)


def test_a_system_without_an_exact_box_needs_caps() -> None:
    endless = CloudRouting((Node(2, 1.0, 0.5),), 1.0, 2.0)
    with pytest.raises(mc.InputError, match="give caps"):
        sensitivity(endless, "arrival_rate")
    assert sensitivity(endless, "arrival_rate", caps=(30,)).derivative > 0


# --- kinks ----------------------------------------------------------------------------------------


def modes(price: float) -> mc.Model:
    """Serve fast for a price, or slowly for nothing; the optimum is the least of two lines."""
    fast = mc.Mode("fast", price, [mc.Flow(lambda x: 1.0 * (x.jobs > 0), mc.step(jobs=-1))])
    slow = mc.Mode("slow", 1.0, [mc.Flow(lambda x: 1.0 * (x.jobs > 0), mc.step(jobs=-1))])
    arrival = mc.Event("arrival", lambda x: 0.5 * (x.jobs < 3), mc.step(jobs=+1))
    return mc.Model(mc.Lattice({"jobs": 3}), [arrival, mc.Control("speed", [fast, slow])])


@pytest.mark.parametrize(("price", "left", "right"), [(0.9, 1, 1), (1.0, 1, 0), (1.1, 0, 0)])
def test_the_least_of_two_lines_has_a_kink_where_they_meet(
    price: float, left: float, right: float
) -> None:
    found = sensitivity(modes, price)
    assert (found.left, found.right) == (pytest.approx(left), pytest.approx(right))
    assert (found.ties > 0) == (price == 1.0)


def admission(reward: float) -> mc.Model:
    """M/M/1 with holding cost 1, a job of the reward joins or is refused at that cost."""
    join, refuse = mc.Action("join", mc.step(jobs=+1)), mc.Action("refuse", cost=reward)
    arrival = mc.Event("arrival", 1.0, [join, refuse])
    service = mc.Event("service", lambda x: 1.0 * (x.jobs > 0), mc.step(jobs=-1))
    return mc.Model(mc.Lattice({"jobs": 12}), [arrival, service], cost_rate=lambda x: 1.0 * x.jobs)


def threshold_cost(reward: Fraction, limit: int) -> tuple[Fraction, Fraction]:
    """Average cost with at most ``limit`` jobs at load 1, and its derivative in the reward."""
    blocked = Fraction(1, limit + 1)
    return Fraction(limit, 2) + reward * blocked, blocked


@pytest.mark.parametrize("limit", [1, 2, 5])
def test_the_reward_at_which_two_thresholds_are_equally_good_is_a_kink(limit: int) -> None:
    """At load 1 the thresholds K and K + 1 tie at the reward (K + 1)(K + 2) / 2."""
    reward = Fraction((limit + 1) * (limit + 2), 2)
    low, high = threshold_cost(reward, limit), threshold_cost(reward, limit + 1)
    assert low[0] == high[0]
    found = sensitivity(admission, float(reward))
    assert found.gain == pytest.approx(float(low[0]), rel=1e-11)
    assert found.left == pytest.approx(float(low[1]), abs=1e-11)
    assert found.right == pytest.approx(float(high[1]), abs=1e-11)
    beside = sensitivity(admission, float(reward) + 1e-6)
    assert beside.derivative == pytest.approx(float(high[1]), abs=1e-11)


def rooms(cost: float) -> Any:
    """Two states in which one may stay for ever, and change for 5."""
    stay, change = np.eye(2), np.eye(2)[::-1]
    return mc.tabular([stay, change], costs=[[cost, 5.0], [1.0, 5.0]])


def test_the_better_of_two_classes_counts_and_a_policy_with_both_is_refused() -> None:
    """g = min(cost, 1) from both states, since one may change."""
    assert sensitivity(rooms, 0.5).derivative == pytest.approx(1.0)
    assert sensitivity(rooms, 1.5).derivative == pytest.approx(0.0)
    with pytest.raises(mc.MultichainError, match="recurrent classes"):
        sensitivity(rooms, 1.0)


def test_tied_actions_with_two_closed_classes_need_a_way_between_them() -> None:
    """The policy leaves the first state at no loss, and may as well stay there."""
    stay, change = np.eye(2), np.eye(2)[::-1]

    def model(cost: float, back: float) -> Any:
        return mc.tabular([change, stay], costs=[[1.0, cost], [back, 1.0]])

    kink = sensitivity(lambda t: model(t, 5.0), 1.0)
    assert (kink.left, kink.right) == (pytest.approx(1.0), pytest.approx(0.0))
    assert kink.ties == 1
    with pytest.raises(mc.MultichainError, match="there is no way"):
        sensitivity(lambda t: model(t, np.inf), 1.0)


def test_moves_that_begin_between_two_closed_classes_are_refused() -> None:
    """To stay in the first room gets cheaper, but leaks into the second, from where 5 lead back.

    The right derivative is 0: it is not worth it. That of the first room alone would be -1.
    """

    def model(leak: float) -> Any:
        stay = np.array([[1.0 - leak, leak], [0.0, 1.0]])
        return mc.tabular([np.eye(2)[::-1], stay], costs=[[1.0, 1.0 - leak], [5.0, 1.0]])

    with pytest.raises(mc.MultichainError, match=r"at parameter = 0.0156\d* other moves are"):
        sensitivity(model, 0.0)


# --- one side only --------------------------------------------------------------------------------


def test_at_rate_zero_there_is_a_right_derivative_only() -> None:
    """One slow server: the loss rate a^2 / (1 + a) begins flat, and the join-or-pay rate at 1."""
    found = sensitivity(lambda a: loss_queue(1, 1, a), 0.0)
    assert found.left is None
    assert found.derivative == pytest.approx(0.0, abs=1e-12)

    def shop(rate: float) -> mc.Model:
        refuse = mc.Action("refuse", cost=0.25)
        join = mc.Action("join", mc.step(jobs=+1), cost=0.75)
        arrival = mc.Event("arrival", rate, [join, refuse])
        service = mc.Event("service", lambda x: 1.0 * (x.jobs > 0), mc.step(jobs=-1))
        return mc.Model(mc.Lattice({"jobs": 2}), [arrival, service])

    started = sensitivity(shop, 0.0)
    assert started.left is None
    assert started.derivative == pytest.approx(0.25)


def test_at_probability_one_there_is_a_left_derivative_only() -> None:
    def chain(p: float) -> Any:
        return mc.tabular([[[1.0 - p, p], [0.5, 0.5]]], costs=[0.0, 1.0])

    found = sensitivity(chain, 1.0)
    assert found.right is None
    assert found.derivative == pytest.approx(0.5 / 1.5**2)


# --- refusals -------------------------------------------------------------------------------------


def test_a_gain_that_depends_on_the_start_is_refused_by_name() -> None:
    with pytest.raises(mc.MultichainError, match="depends on the initial state"):
        sensitivity(lambda t: mc.tabular([np.eye(2)], costs=[t, 2.0]), 1.0)
    with pytest.raises(mc.MultichainError, match=r"recurrent classes|initial state"):
        sensitivity(lambda t: mc.tabular([np.eye(2)], costs=[t, 2.0]), 2.0)


@pytest.mark.parametrize(
    ("model", "at", "message"),
    [
        (TWO, "arrival_rat", "did you mean 'arrival_rate'"),
        (TWO, "nodes[7].service_rate", r"there is no \[7\]"),
        (TWO, "nodes[0]", "must be a real number"),
        (TWO, "nodes..x", "no path"),
        (TWO, "nodes[0].servers", "servers must be an integer"),
        (TWO, 3.0, "must name fields of the system"),
        (TWO.model(), "departure", "no event 'departure'"),
        (loss_queue, "load", "at is 'load'; a parameter must be a real number"),
        (3.0, 1.0, "neither a function"),
    ],
)
def test_a_parameter_that_is_none_is_refused(model: Any, at: Any, message: str) -> None:
    with pytest.raises(mc.InputError, match=message):
        sensitivity(model, at)


def test_a_box_that_moves_with_the_parameter_is_refused() -> None:
    with pytest.raises(mc.InputError, match="other states"):
        sensitivity(lambda t: loss_queue(1, round(200 * t), 0.5), 0.25)


def test_other_states_are_refused_even_if_they_are_as_many() -> None:
    def model(t: float) -> mc.Model:
        lot = 1 if t <= 1.0 else 2
        arrival = mc.Event("arrival", lambda x: 1.0 * (x.jobs == 0), mc.step(jobs=lot))
        service = mc.Event("service", lambda x: t * (x.jobs > 0), mc.step(jobs=-lot))
        return mc.Model(mc.Reachable({"jobs": 0}), [arrival, service], cost_rate=lambda x: x.jobs)

    with pytest.raises(mc.InputError, match="other states"):
        sensitivity(model, 1.0)


def test_conditions_that_move_with_the_parameter_are_refused() -> None:
    def model(limit: float) -> mc.Model:
        lost = mc.Action("lost", cost=1.0)
        join = mc.Action("join", mc.step(jobs=+1), allowed=lambda x: x.jobs < limit)
        arrival = mc.Event("arrival", 1.0, [lost, join])
        service = mc.Event("service", lambda x: 1.0 * (x.jobs > 0), mc.step(jobs=-1))
        return mc.Model(mc.Lattice({"jobs": 5}), [arrival, service])

    with pytest.raises(mc.InputError, match=r"other actions of 'arrival' are allowed in state"):
        sensitivity(model, 3.0)


def test_a_model_that_is_not_smooth_in_the_parameter_is_reported_with_what_was_found() -> None:
    with pytest.raises(mc.SolveError, match="may not be smooth") as caught:
        sensitivity(lambda t: loss_queue(1, 3, 0.5, 1.0 + abs(t - 2.0) ** 1.5), 2.0)
    partial = caught.value.partial
    assert isinstance(partial, Sensitivity)
    assert partial.gain > 0
    with pytest.raises(mc.SolveError, match="may not be smooth"):
        sensitivity(lambda t: loss_queue(1, 3, 0.5, 1.0 + abs(t - 2.0)), 2.0)


# --- differences ----------------------------------------------------------------------------------


@given(
    at=st.floats(-3.0, 3.0),
    side=st.sampled_from(["central", "forward", "backward"]),
    power=st.integers(0, 5),
)
def test_polynomials_are_differentiated_within_the_stated_error(
    at: float, side: Any, power: int
) -> None:
    value, error = differentiate(
        lambda t: np.array([t**power, 1.0 + t]), Stencil(at, 2.0**-6, side)
    )
    exact = np.array([power * at ** (power - 1) if power else 0.0, 1.0])
    assert (np.abs(value - exact) <= 10 * error + 1e-9).all()
    assert error.max() <= 1e-7


@pytest.mark.parametrize(
    ("low", "high", "side"), [(0.0, 9.0, "central"), (1.0, 9.0, "forward"), (0.0, 1.0, "backward")]
)
def test_the_stencil_stays_where_the_function_exists(low: float, high: float, side: str) -> None:
    found = find_stencil(lambda t: None if low <= t <= high else "outside", 1.0)
    assert found.side == side
    narrow = find_stencil(lambda t: None if 0.999 <= t <= high else "outside", 1.0)
    assert narrow.side in ("central", "backward")
    with pytest.raises(mc.InputError, match="no model near the value 1: outside"):
        find_stencil(lambda _: "outside", 1.0)


def test_an_error_covers_a_kink_that_it_leaves_open():
    """At a rate of 1e-12 joining and refusing differ by less than rounding."""
    join, refuse = mc.Action("join", mc.step(jobs=+1)), mc.Action("refuse", cost=5.0)
    service = mc.Event("service", lambda x: 1.0 * (x.jobs > 0), mc.step(jobs=-1))

    def queue(rate):
        arrival = mc.Event("arrival", rate, [join, refuse])
        return mc.Model(mc.Lattice({"jobs": 20}), [arrival, service], cost_rate=lambda x: x.jobs)

    found = mc.sensitivity(queue, 1e-12)
    for side in (found.left, found.right):
        assert abs(side - 1.0) <= found.error


def test_arguments_that_are_none_are_refused_by_name():
    def queue(load):
        raise AssertionError

    for arguments, said in (
        ((queue, {}), "at is empty"),
        ((queue, {"rate": 1.0}), "the function does not take"),
    ):
        with pytest.raises(mc.InputError, match=said):
            mc.sensitivity(*arguments)
    with pytest.raises(mc.InputError, match="solution is 3; it must be what"):
        mc.sensitivity(queue, 1.0, solution=3)
