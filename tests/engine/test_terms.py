"""What the user's functions may return, and what is said where they may not; in both forms."""

import re
from fractions import Fraction

import numpy as np
import pytest

import mdpcloud as mc
from mdpcloud.engine import compile_model
from tests.admission import JOIN, LOST, admission
from tests.common.exact import exact_optimum
from tests.common.interpreter import interpret

in_both_forms = pytest.mark.parametrize("form", ["lattice", "indexed"])


def refused(said):
    return pytest.raises(mc.InputError, match=re.escape(said))


def join(step=None, **settings):
    """The queue whose arrivals join by another step, or are lost."""
    return admission(actions=[mc.Action("join", step, **settings), LOST])


def clearing(step):
    """Two-phase jobs; a clearing event goes where ``step`` says."""
    clear = mc.Event("clear", 0.3, mc.Action("clear", step, cost=0.7))
    return admission(4, extra=[clear], cost_rate=lambda x: x.jobs)


@in_both_forms
@pytest.mark.parametrize(
    ("rate", "said"),
    [
        (-0.5, "event 'arrival': rate is -0.5 in state (jobs=0); it must be finite and >= 0"),
        (lambda x: 1.0 - x.jobs, "event 'arrival': rate is -1.0 in state (jobs=2)"),
        (lambda x: np.where(x.jobs == 2, np.nan, 1), "rate is nan in state (jobs=2)"),
        (lambda x: 1 / x.jobs, "rate is inf in state (jobs=0)"),
        (np.inf, "rate is inf in state (jobs=0)"),
        (None, "rate is None; it must be a number or an array of numbers"),
        ("0.5", "rate is '0.5'; it must be a number"),
        (1j, "rate is 1j; it must be a number"),
        (
            lambda x: np.ones(7),
            "rate has shape (7,), which does not broadcast over the states",
        ),
        (lambda x: np.ones((2, 4)), "rate has shape (2, 4), which does not broadcast"),
    ],
)
def test_a_rate_that_is_no_number_from_zero_on_is_refused(form, rate, said):
    with refused(said):
        compile_model(admission(rate=rate), form)


@in_both_forms
@pytest.mark.parametrize(
    ("function", "said"),
    [
        (lambda x: 1.0 if x.jobs > 0 else 2.0, "write np.where for if"),
        (lambda x: min(x.jobs, 2), "np.minimum for min"),
        (lambda x: x.jobs > 1 and x.jobs < 3, "& for and"),
        (lambda x: float(x.jobs), "does not work on arrays of states"),
        (lambda x: np.ones(7) * x.jobs, "shapes (7,) (4,)"),
        (lambda x: np.ones(2)[x.jobs], "index 2 is out of bounds"),
        (lambda x: x.jbos, "x has no axis 'jbos'; did you mean 'jobs'?"),
        (lambda x: x.tasks, "x has no axis 'tasks'; there are ['jobs']"),
    ],
)
def test_a_function_that_does_not_take_arrays_is_told_what_to_write(form, function, said):
    for model in (
        admission(rate=function),
        join(cost=function),
        join(allowed=function),
        join(function),
        join([mc.Move(function)]),
        admission(extra=[mc.Control("c", mc.Mode("m", function))]),
        admission(extra=[mc.Control("c", mc.Mode("m", flows=mc.Flow(function, mc.step())))]),
        admission(cost_rate=function),
    ):
        with refused(said):
            compile_model(model, form)


def test_the_errors_of_a_users_own_code_pass():
    with pytest.raises(AttributeError, match="no attribute 'shpae'"):
        compile_model(admission(rate=lambda x: x.jobs.shpae))
    with pytest.raises(ZeroDivisionError):
        compile_model(admission(rate=lambda x: 1 / 0))


@in_both_forms
@pytest.mark.parametrize(
    ("model", "said"),
    [
        (join(cost=np.nan), "event 'arrival', action 'join': cost is nan in state (jobs=0)"),
        (join(cost=lambda x: 1 / x.jobs), "cost is inf in state (jobs=0); it must be finite"),
        (join([mc.Move(-0.3), mc.Move(1.3)]), "action 'join': weight is -0.3 in state (jobs=0)"),
        (join(allowed=np.ones(3)), "action 'join': allowed has shape (3,)"),
        (
            admission(extra=[mc.Control("c", mc.Mode("m", np.inf))]),
            "control 'c', mode 'm': cost rate is inf",
        ),
        (
            admission(extra=[mc.Control("c", mc.Mode("m", 0.0, mc.Flow(-1.0, mc.step())))]),
            "control 'c', mode 'm': flow rate is -1.0 in state (jobs=0)",
        ),
        (admission(cost_rate=lambda x: np.log(x.jobs)), "cost rate is -inf in state (jobs=0)"),
    ],
)
def test_numbers_are_refused_by_owner_and_state(form, model, said):
    with refused(said):
        compile_model(model, form)


@in_both_forms
@pytest.mark.parametrize(
    ("step", "said"),
    [
        (mc.step(jbos=1), "action 'join': the space has no axis 'jbos'; did you mean 'jobs'?"),
        (mc.step(jobs={0: 1}), "axis 'jobs' takes one integer, not {0: 1}"),
        (mc.step(jobs=0.5), "a step's amount is 0.5; amounts are integers"),
        (mc.step(jobs="1"), "a step's amount is '1'"),
        (mc.step(jobs=lambda x: 1), "arrays of integers from a step that is a function of x"),
        (mc.step(jobs=np.ones(3, int)), "a step's amount has shape (3,)"),
        ({"jobs": 1}, "action 'join': step is {'jobs': 1}; allowed are None, a step"),
        (3, "step is 3; allowed are None, a step, several Moves, or a function"),
        (lambda x: 3, "step is 3; allowed are"),
        ([mc.step(jobs=1)], "allowed are None, a step, several Moves"),
        ([mc.Move(1.0, {"jobs": 1})], "{'jobs': 1} is not a step; write mdpcloud.step(axis=+1)"),
    ],
)
def test_a_step_that_leads_nowhere_is_refused(form, step, said):
    with refused(said):
        compile_model(join(step), form)


@in_both_forms
def test_probabilities_that_sum_to_two_are_refused_with_state_and_sum(form):
    """A plus sign in place of an ampersand adds a branch of weight 1 (stormpy, issue 337)."""
    branches = [mc.Move(0.3, mc.step(jobs=-1)), mc.Move(0.7), mc.Move(lambda x: 1.0 * (x.jobs > 1))]
    event = mc.Event("branch", lambda x: 1.0 * (x.jobs > 0), mc.Action("go", branches))
    said = "event 'branch', action 'go': the weights of its moves sum to 2.0 in state (jobs=2)"
    with refused(said):
        compile_model(admission(extra=[event]), form)


def test_probabilities_may_miss_one_by_rounding():
    compile_model(join([mc.Move(0.1)] * 10))
    with refused("the weights of its moves sum to 0.9999"):
        compile_model(join([mc.Move(0.1)] * 9 + [mc.Move(0.09995)]))


def test_probabilities_do_not_matter_where_the_action_is_never_taken():
    compile_model(join([mc.Move(0.5)], allowed=False))
    compile_model(admission(extra=[mc.Event("never", 0.0, mc.Action("go", [mc.Move(0.5)]))]))


@in_both_forms
def test_an_uncontrolled_event_that_leaves_the_space_is_named_with_state_and_step(form):
    said = "event 'arrival' has rate 0.5 in state (jobs=3), where its step (jobs=1) leaves"
    with refused(said):
        compile_model(admission(actions=JOIN), form)


@in_both_forms
def test_of_several_moves_the_one_that_leaves_is_named(form):
    moves = [mc.Move(0.5, mc.step(jobs=-1)), mc.Move(0.5, mc.step(jobs=2))]
    jump = mc.Event("jump", lambda x: 1.0 * (x.jobs > 1), mc.Action("jump", moves))
    with refused("event 'jump' has rate 1.0 in state (jobs=2), where its step (jobs=2) leaves"):
        compile_model(admission(extra=[jump]), form)


@in_both_forms
@pytest.mark.parametrize(
    ("actions", "said"),
    [
        ([JOIN, mc.Action("jump", mc.step(jobs=2))], "in state (jobs=3): each of 'join', 'jump'"),
        ([mc.Action("a", allowed=lambda x: x.jobs != 1)], "in state (jobs=1): each of 'a' leaves"),
        ([mc.Action("a", allowed=False)], "but no allowed action in state (jobs=0)"),
    ],
)
def test_a_state_without_an_allowed_action_is_named(form, actions, said):
    with refused(said):
        compile_model(admission(actions=actions), form)


@in_both_forms
def test_a_control_without_an_allowed_mode_is_refused_too(form):
    flow = mc.Flow(1.0, mc.step(jobs=+1))
    with refused("control 'c' has rate 1.0 in state (jobs=3), where its step (jobs=1) leaves"):
        compile_model(admission(extra=[mc.Control("c", mc.Mode("m", flows=flow))]), form)


@in_both_forms
def test_numbers_outside_the_region_do_not_matter(form):
    space = mc.Lattice({"jobs": 9}, where=lambda x: x.jobs <= 3)
    model = admission(
        space=space,
        rate=lambda x: np.where(x.jobs <= 3, 0.5, np.nan),
        cost_rate=lambda x: np.where(x.jobs <= 3, x.jobs, -np.inf),
    )
    same = admission(cost_rate=lambda x: x.jobs)
    found = compile_model(model, form)
    assert found.n == 4
    assert found.cost_scale == compile_model(same, form).cost_scale
    assert mc.solve(model).gain == pytest.approx(mc.solve(same).gain, rel=1e-12)


@in_both_forms
def test_fractions_booleans_and_whole_floats_are_numbers(form):
    model = admission(rate=Fraction(1, 2), actions=[mc.Action("join", mc.step(jobs=1.0)), LOST])
    busy = mc.Event("busy", lambda x: x.jobs > 0, mc.Action("pay", cost=Fraction(1, 4)))
    problem = compile_model(mc.Model(model.space, [*model.events, busy]), form)
    assert problem.rate_bound == pytest.approx(1.05 * 1.5)


EVERYTHING = [
    pytest.param(lambda x: mc.step(jobs=-x.jobs), id="clear all"),
    pytest.param(lambda x: mc.step(jobs=-((x.jobs + 1) // 2)), id="halve"),
    pytest.param(lambda x: mc.step(jobs=np.where(x.jobs > 2, 2, 3) - x.jobs), id="go to"),
    pytest.param(
        lambda x: [mc.Move(1 / 3, mc.step(jobs=-x.jobs)), mc.Move(2 / 3)], id="clear at times"
    ),
    pytest.param(
        lambda x: [
            mc.Move((k == 0) * (x.jobs == 0) + (x.jobs > k) / np.maximum(x.jobs, 1), to)
            for k, to in enumerate(mc.step(jobs=k - x.jobs) for k in range(4))
        ],
        id="a smaller number at random",
    ),
    pytest.param(lambda x: None, id="stay"),
]


@pytest.mark.parametrize("step", EVERYTHING)
def test_steps_that_depend_on_the_state_are_solved_exactly(step):
    model = clearing(step)
    best = exact_optimum(interpret(model))
    lower, upper = mc.solve(model).bounds
    assert lower <= best <= upper


def test_one_move_needs_no_list():
    sure = mc.Move(1.0, mc.step(jobs=+1))
    assert mc.solve(join(sure)).gain == pytest.approx(mc.solve(admission()).gain, rel=1e-12)


def test_a_step_of_the_state_equals_one_event_per_state():
    by_function = clearing(lambda x: mc.step(jobs=-x.jobs))
    events = [
        mc.Event(f"clear {k}", lambda x, k=k: 0.3 * (x.jobs == k), mc.Action("c", to, 0.7))
        for k, to in enumerate(mc.step(jobs=-k) for k in range(5))
    ]
    one_by_one = admission(4, extra=events, cost_rate=lambda x: x.jobs)
    np.testing.assert_allclose(
        compile_model(by_function).rows().transitions.sum(axis=0),
        compile_model(one_by_one).rows().transitions.sum(axis=0),
        rtol=1e-14,
    )
    assert mc.solve(by_function).gain == pytest.approx(mc.solve(one_by_one).gain, rel=1e-10)


def test_an_array_of_fewer_axes_belongs_to_the_last_ones_of_a_lattice():
    tick = mc.Event("tick", 1.0, mc.Action("pay", cost=np.array([1.0, 2.0, 4.0])))
    problem = compile_model(mc.Model(mc.Lattice({"a": 1, "b": 2}), tick), "lattice")
    assert problem.rows().cost.tolist() == [1.0, 2.0, 4.0] * 2
