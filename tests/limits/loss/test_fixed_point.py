"""Erlang's fixed point in both forms: published numbers, residuals, one resource, enclosures."""

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from scipy.optimize import fsolve

from mdpcloud.errors import InputError, SolveError
from mdpcloud.limits.loss.fixed_point import erlang_fixed_point
from mdpcloud.limits.loss.kelly import kelly_limit
from mdpcloud.limits.loss.knapsack_fixed_point import knapsack_fixed_point
from mdpcloud.queues import erlang_b, kaufman_roberts, product_form_law
from tests.models import reference

S2 = reference("allocation")["S2"]
TWO, TRIANGLE, SERIES = S2["two_resource"], S2["triangle"], S2["series2"]


@st.composite
def networks(draw: st.DrawFn) -> tuple[list[float], list[list[int]], list[int]]:
    classes, resources = draw(st.integers(1, 4)), draw(st.integers(1, 4))
    rows = [[draw(st.integers(0, 3)) for _ in range(classes)] for _ in range(resources)]
    loads = [draw(st.floats(0.0, 20.0)) for _ in range(classes)]
    return loads, rows, [draw(st.integers(1, 40)) for _ in range(resources)]


def test_published_numbers_of_kellys_form() -> None:
    for case in (TWO, TRIANGLE):
        known = case["efpa_kelly"]
        found = erlang_fixed_point(case["rho"], case["A"], case["C"])
        assert found.by_resource == pytest.approx(known["E"], rel=1e-9)
        assert found.blocking == pytest.approx(known["L"], rel=1e-9)
        assert found.certified
        assert found.error < 1e-13
    found = erlang_fixed_point([SERIES["rho"]], [[1], [1]], SERIES["C"])
    assert found.by_resource == pytest.approx(SERIES["efpa_E"], rel=1e-9)
    assert found.blocking == pytest.approx(SERIES["efpa_L"], rel=1e-9)


def test_published_numbers_of_the_knapsack_form() -> None:
    known = TWO["efpa_knapsack"]
    found = knapsack_fixed_point(TWO["rho"], TWO["A"], TWO["C"])
    assert np.array(found.by_resource) == pytest.approx(np.array(known["K"]), rel=1e-9)
    assert found.blocking == pytest.approx(known["L"], rel=1e-9)
    assert "came to the same solution" in found.notes[0]
    assert not found.certified


def test_the_knapsack_form_is_nearer_to_the_truth_for_wide_jobs() -> None:
    exact = np.array(product_form_law(TWO["C"], TWO["rho"], TWO["A"]).blocking)
    kelly, knapsack = (
        np.array(form(TWO["rho"], TWO["A"], TWO["C"]).blocking)
        for form in (erlang_fixed_point, knapsack_fixed_point)
    )
    assert (np.abs(knapsack - exact) < np.abs(kelly - exact)).all()


@settings(max_examples=50)
@given(networks())
def test_kellys_form_solves_its_equations(
    network: tuple[list[float], list[list[int]], list[int]],
) -> None:
    loads, rows, room = network
    found = erlang_fixed_point(loads, rows, room)
    blocked = np.array(found.by_resource)
    passing = np.prod((1.0 - blocked[:, None]) ** np.array(rows), axis=0)
    for i, (row, c) in enumerate(zip(rows, room, strict=True)):
        offered = sum(a * r * p for a, r, p in zip(row, loads, passing, strict=True))
        assert blocked[i] == pytest.approx(erlang_b(c, offered / (1.0 - blocked[i])), abs=1e-12)
    assert found.blocking == pytest.approx(1.0 - passing, abs=1e-14)
    assert found.residual < 1e-13
    assert found.certified
    assert found.error < 1e-11


@settings(max_examples=30)
@given(networks())
def test_another_solver_finds_the_same_solution_within_the_error(
    network: tuple[list[float], list[list[int]], list[int]],
) -> None:
    loads, rows, room = network
    found = erlang_fixed_point(loads, rows, room)

    def equations(e: np.ndarray) -> np.ndarray:
        e = np.clip(e, 0.0, 1.0 - 1e-12)
        passing = np.prod((1.0 - e[:, None]) ** np.array(rows), axis=0)
        offered = np.array(rows) * loads @ passing / (1.0 - e)
        return np.array([x - erlang_b(c, v) for x, c, v in zip(e, room, offered, strict=True)])

    start = np.array(found.by_resource) * 0.9
    solution, _, status, _ = fsolve(equations, start, full_output=True, xtol=1e-13)
    if status == 1 and np.abs(equations(solution)).max() < 1e-13:
        lost = 1.0 - np.prod((1.0 - solution[:, None]) ** np.array(rows), axis=0)
        assert lost == pytest.approx(found.blocking, abs=1e-9)


@given(st.integers(1, 60), st.floats(0.0, 100.0))
def test_on_one_resource_single_units_have_erlangs_loss(room: int, load: float) -> None:
    exact = erlang_b(room, load)
    for form in (erlang_fixed_point, knapsack_fixed_point):
        found = form([load / 2.0, load / 2.0], [[1, 1]], [room])
        assert found.blocking == pytest.approx((exact, exact), abs=1e-14)


@given(st.integers(1, 60), st.floats(0.0, 30.0), st.floats(0.0, 30.0))
def test_on_one_resource_the_knapsack_form_is_exact(room: int, one: float, two: float) -> None:
    found = knapsack_fixed_point([one, two], [[1, 3]], [room])
    exact = kaufman_roberts(room, [one, two], [1, 3]).blocking
    assert found.blocking == pytest.approx(exact, abs=1e-14)


@settings(max_examples=12)
@given(networks())
def test_the_knapsack_form_solves_its_equations(
    network: tuple[list[float], list[list[int]], list[int]],
) -> None:
    loads, rows, room = network
    try:
        found = knapsack_fixed_point(loads, rows, room)
    except SolveError:
        return
    blocked = np.array(found.by_resource)
    for i, (row, c) in enumerate(zip(rows, room, strict=True)):
        used = [j for j, a in enumerate(row) if a]
        if used:
            thinned = [loads[j] * np.prod(1.0 - np.delete(blocked[:, j], i)) for j in used]
            law = kaufman_roberts(c, thinned, [row[j] for j in used])
            assert blocked[i, used] == pytest.approx(law.blocking, abs=found.residual + 1e-13)


def test_the_fixed_point_tends_to_the_limit() -> None:
    dual = S2["kelly_dual"]
    limit = kelly_limit(dual["rho"], dual["A"], dual["c"]).blocking
    errors = []
    for n in (100, 4000):
        loads, room = [n * a for a in dual["rho"]], [round(n * c) for c in dual["c"]]
        found = erlang_fixed_point(loads, dual["A"], room)
        errors.append(max(abs(b - c) for b, c in zip(found.blocking, limit, strict=True)))
    assert errors[1] < 0.1 * errors[0] < 0.02


def test_large_and_overloaded_networks_are_solved() -> None:
    large = erlang_fixed_point([9e4, 5e4], [[1, 1], [1, 0], [2, 3]], [10**5, 10**5, 3 * 10**5])
    assert large.blocking == pytest.approx((2.0 / 7.0, 2.0 / 7.0), abs=1e-4)
    over = erlang_fixed_point([1e5] * 3, [[1, 1, 0], [0, 1, 1], [5, 0, 1]], [10, 10, 10])
    assert over.residual < 1e-12
    assert large.certified
    assert over.certified
    assert all(0.9999 < b < 1.0 for b in over.blocking)


def test_what_is_not_solved_is_refused_with_what_was_found() -> None:
    with pytest.raises(SolveError, match="solved to") as caught:
        knapsack_fixed_point([1e6, 20.0], [[1, 2], [3, 0]], [4, 5])
    assert np.shape(caught.value.partial) == (2, 2)


powers = st.floats(-6.0, 9.0).map(lambda power: 10.0**power)


@settings(max_examples=60)
@given(
    st.lists(st.one_of(st.just(0.0), powers), min_size=2, max_size=2),
    st.lists(st.lists(st.integers(0, 4), min_size=2, max_size=2), min_size=2, max_size=2),
    st.lists(st.integers(4, 30), min_size=3, max_size=3),
)
@example([1e6, 0.0], [[2, 0], [4, 0]], [5, 12, 4])
@example([1e9, 1e6], [[1, 0], [1, 0]], [30, 8, 4])
def test_kellys_form_is_solved_at_any_load_also_on_dependent_resources(
    loads: list[float], rows: list[list[int]], room: list[int]
) -> None:
    rows = [*rows, rows[0]]
    found = erlang_fixed_point(loads, rows, room)
    passed = 1.0 - np.array(found.blocking)
    carried = np.array(rows) @ (loads * passed)
    assert found.residual < 1e-9
    for e, c, used in zip(found.by_resource, room, carried, strict=True):
        # E is Erlang's loss at the load that carries as much, C - 1/(1 - E) near E = 1
        assert used <= c * (1 + 1e-12) + 1e-14 * sum(loads)
        if 0.0 < e < 0.999:
            assert erlang_b(c, used / (1.0 - e)) == pytest.approx(e, abs=1e-9 + 1e-13 * sum(loads))


@pytest.mark.parametrize("load", [1.0, 30.0, 1e3, 1e6])
@pytest.mark.parametrize("rows", [[[1, 1], [1, 1]], [[2, 1], [4, 2]], [[1, 1], [1, 1], [1, 1]]])
def test_the_knapsack_form_is_solved_on_dependent_resources(
    load: float, rows: list[list[int]]
) -> None:
    room = [5, 12, 9][: len(rows)]
    found = knapsack_fixed_point([load, load], rows, room)
    blocked = np.array(found.by_resource)
    assert found.residual < 1e-9
    for i, (row, c) in enumerate(zip(rows, room, strict=True)):
        thinned = load * np.prod(1.0 - np.delete(blocked, i, axis=0), axis=0)
        law = kaufman_roberts(c, thinned.tolist(), row)
        assert blocked[i] == pytest.approx(law.blocking, abs=1e-8 + 1e-15 * load)


@pytest.mark.parametrize("form", [erlang_fixed_point, knapsack_fixed_point])
@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (([], [[1]], [1]), "loads is empty"),
        (([1.0], [], []), "one resource at least"),
        (([1.0], [[1], [1]], [1]), "requirements has 2 rows for 1 capacities"),
        (([1.0], [[1, 1]], [1]), r"requirements\[0\] has 2 numbers for 1 classes"),
        (([1.0], [[1]], [0]), r"capacities\[0\] must be"),
    ],
)
def test_bad_input_is_refused(form, arguments: tuple, message: str) -> None:  # type: ignore
    with pytest.raises(InputError, match=message):
        form(*arguments)
