"""Sweeps written for a structure against the kernels that take any model; cells of a lattice."""

from functools import cache
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

import mdpcloud as mc
from mdpcloud.engine import compile_model, fused, kernels
from mdpcloud.engine.lattice import LatticeLayout, lattice_grid
from mdpcloud.engine.vector_kernels import FAR, FAST
from mdpcloud.solve.stationary.stationary import stationary
from tests.admission import admission, two_queues
from tests.models import Case, case, cases

PYTHON: dict[str, Any] = {
    "kernel": lambda **options: lambda function: function,
    "prange": range,
    "np": np,
    "FAR": FAR,
    "FAST": FAST,
    "load": lambda array, index: array[index],
    "store": lambda array, index, value: array.__setitem__(index, value),
    "choose": lambda condition, value, otherwise: value if condition else otherwise,
    "least": min,
    "most": max,
}
LATTICES = [c for c in cases() if not c.arrays and isinstance(c.build().space, mc.Lattice)]
STEP, SHIFT, DISCOUNT = 0.03, 0.7, 0.25


@cache
def boxed(name: str, form: str) -> Any:
    return compile_model(case(name).build(), form=form)


def source_of(problem: Any) -> str:
    indexed = len(problem.layout.targets) > 0
    return fused.write(problem.program, indexed, problem.choice is not None)


def in_python(source: str) -> dict[str, Any]:
    """Functions of a written module, without numba."""
    scope = dict(PYTHON)
    exec(source[source.index("@kernel") :], scope)
    return scope


def swept(run: Any, problem: Any, h: NDArray[Any], count: int = 1, **changes: Any) -> Any:
    """Values after some sweeps by any kernel, and their bounds."""
    h, out = problem.pack(h), problem.pack(h)
    options = {"keep": 0.9, "step": STEP, "shift": SHIFT, "discount": DISCOUNT} | changes
    where = problem.program, problem.layout.targets, problem._fixed
    done, low, high = run(h, out, *where, count, *options.values(), -1.0, True)
    assert done == count
    return problem.unpack(out if count % 2 else h), low, high


def assert_alike(one: Any, other: Any, scale: float) -> None:
    for a, b in zip(one, other, strict=True):
        np.testing.assert_allclose(a, b, rtol=0, atol=1e-12 * scale)


def some_values(n: int) -> NDArray[np.float64]:
    return np.random.default_rng(5).uniform(-1.0, 1.0, n)


def fixed(problem: Any) -> Any:
    return problem.under(problem.greedy(problem.pack(some_values(problem.n)), 0.0))


def small(one: Case) -> bool:
    return boxed(one.name, "indexed").n <= 600


@pytest.mark.parametrize("form", ["lattice", "indexed"])
@pytest.mark.parametrize("name", [c.name for c in LATTICES if small(c)])
def test_what_is_written_for_a_structure_computes_the_same(name: str, form: str) -> None:
    try:
        problem = boxed(name, form)
    except mc.InputError:
        pytest.skip("no lattice form")
    h = some_values(problem.n)
    for either in (problem, fixed(problem)):
        written = in_python(source_of(either))["sweeps"]
        scale = problem.rate_bound + problem.cost_scale
        assert_alike(swept(written, either, h), swept(kernels.sweeps, either, h), scale)


def region() -> mc.Model:
    """Two queues that share a room of 60, and a control with two speeds."""
    modes = [
        mc.Mode("slow", flows=[mc.Flow(lambda x: 1.0 * (x.jobs > 0), mc.step(jobs=-1))]),
        mc.Mode(
            "fast",
            cost_rate=lambda x: 0.5 + 0.01 * x.calls,
            flows=[mc.Flow(lambda x: 2.0 * (x.jobs > 0), mc.step(jobs=-1))],
        ),
    ]
    batch = [mc.Move(0.25, mc.step(calls=+2)), mc.Move(0.75, mc.step(calls=+1))]
    return mc.Model(
        mc.Lattice({"jobs": 60, "calls": 60}, where=lambda x: x.jobs + x.calls <= 60),
        [
            mc.Event(
                "arrival", 1.5, [mc.Action("join", mc.step(jobs=+1)), mc.Action("lost", cost=3)]
            ),
            mc.Event("call", 0.7, [mc.Action("accept", batch), mc.Action("refuse", cost=2.0)]),
            mc.Event("end", lambda x: 0.4 * x.calls, mc.step(calls=-1)),
            mc.Control("speed", modes),
        ],
        cost_rate=[lambda x: 0.1 * x.jobs, lambda x: 0.02 * x.jobs * x.calls],
    )


@pytest.mark.slow
@pytest.mark.parametrize("form", ["lattice", "indexed"])
@pytest.mark.parametrize("build", [lambda: two_queues((35, 39)), region], ids=["box", "region"])
def test_compiled_sweeps_agree_with_the_kernels_for_any_model(build: Any, form: str) -> None:
    problem: Any = compile_model(build(), form=form)
    assert problem._sweeps is not None
    h = some_values(problem.n)
    for either in (problem, fixed(problem)):
        scale = 10.0 * (problem.rate_bound + problem.cost_scale)
        compiled = swept(either._sweeps.sweeps, either, h, count=5)
        assert_alike(compiled, swept(kernels.sweeps, either, h, count=5), scale)


def test_small_models_are_not_worth_a_compilation() -> None:
    assert compile_model(admission(20))._sweeps is None  # type: ignore[attr-defined]


def test_models_of_one_structure_share_a_source() -> None:
    one, other, third = (
        compile_model(m)
        for m in (two_queues((40, 50)), two_queues((60, 50), (2.0, 0.1)), admission(2000))
    )
    assert source_of(one) == source_of(other) != source_of(third)


def test_a_source_is_written_once_and_found_again() -> None:
    module = fused.load_sweeps(source_of(compile_model(two_queues((40, 40)))))
    path = module.__file__
    assert path is not None
    with open(path) as file:
        assert fused.load_sweeps(file.read()) is module


@pytest.mark.parametrize("form", ["lattice", "indexed"])
@pytest.mark.parametrize("build", [lambda: two_queues((30, 35)), region], ids=["box", "region"])
def test_flow_moves_and_cost_rate_are_those_of_the_chain(build: Any, form: str) -> None:
    problem = fixed(compile_model(build(), form=form))
    generator, cost = problem.chain()
    values = some_values(problem.n)
    h = problem.pack(values)
    out = np.zeros_like(h)
    problem.flow(h, out, 0.25)
    np.testing.assert_allclose(problem.unpack(out), generator @ values - 0.25, atol=1e-11)
    np.testing.assert_allclose(problem.unpack(problem.cost_work()), cost, atol=1e-12)
    for state in (0, 17, problem.n - 1):
        place, targets, rates = problem.moves_from(state)
        expected = (generator @ values)[state]
        assert rates @ (h[targets] - h[place]) == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize("form", ["lattice", "indexed"])
def test_a_likely_state_is_likely(form: str) -> None:
    problem = fixed(compile_model(two_queues((6, 7)), form=form))
    law = stationary(mc.markov_chain(generator=problem.chain()[0]))
    assert law[problem.likely_state()] > 0.5 * law.max()


@pytest.mark.parametrize("form", ["lattice", "indexed"])
def test_a_walk_spends_its_time_like_the_stationary_law(form: str) -> None:
    problem = fixed(compile_model(two_queues((6, 7)), form=form))
    law = stationary(mc.markov_chain(generator=problem.chain()[0]))
    states, stays = problem.walk(200_000)
    spent = np.bincount(states, stays, problem.n)
    np.testing.assert_allclose(spent / spent.sum(), law, atol=0.02)


def test_fields_are_spread_over_the_states_in_order() -> None:
    model = two_queues((6, 7))
    lattice, indexed = (compile_model(model, form=form) for form in ("lattice", "indexed"))
    for one, other in zip(lattice.program.term_rate, indexed.program.term_rate, strict=True):
        np.testing.assert_array_equal(lattice.field_values(one), indexed.field_values(other))


def test_a_state_that_is_never_left_is_likely() -> None:
    death = mc.Event("death", lambda x: 1.0 * x.jobs, mc.step(jobs=-1))
    problem: Any = compile_model(mc.Model(mc.Lattice({"jobs": 5}), [death]))
    assert problem.likely_state() == 0


@st.composite
def layouts(draw: Any) -> LatticeLayout:
    """A box in several blocks or one, with any steps and perhaps a region."""
    axes = draw(st.integers(1, 3))
    caps = draw(st.lists(st.integers(0, [900, 40, 14][axes - 1]), min_size=axes, max_size=axes))
    step = st.lists(st.integers(-3, 3), min_size=axes, max_size=axes)
    shifts = draw(st.lists(step, max_size=4))
    where = draw(st.sampled_from([None, lambda x: sum(x.i) % 3 != 1, lambda x: sum(x.i) <= 20]))
    return LatticeLayout(lattice_grid(mc.Lattice({"i": caps}, where=where)), shifts)


@settings(max_examples=60)
@given(layouts())
def test_cells_and_numbers_of_states_are_inverse(layout: LatticeLayout) -> None:
    numbers = np.arange(layout.n)
    cells = np.array([layout.cell(int(state)) for state in numbers])
    np.testing.assert_array_equal(layout.states(cells), numbers)
    np.testing.assert_array_equal(layout.rank_of_cell[cells], numbers)


@given(layouts(), st.data())
def test_a_move_reaches_the_right_cell_or_one_outside(layout: LatticeLayout, data: Any) -> None:
    number = layout.rank_of_cell
    shape = layout.shape
    inside = layout.grid.inside
    points = np.argwhere(np.ones(shape, dtype=bool) if inside is None else inside)
    cells = np.array([layout.cell(k) for k in range(len(points))])
    assert np.array_equal(number[cells], np.arange(len(points)))
    shift = data.draw(
        st.tuples(
            *(
                st.integers(-int(p - n), int(p - n))
                for p, n in zip(layout.padded, shape, strict=True)
            )
        )
    )
    offset = int(np.dot(shift, layout.strides))
    if offset < -layout.front:
        return  # no move of this layout goes there
    rank = {tuple(point): k for k, point in enumerate(points)}
    expected = [rank.get(tuple(point), -1) for point in points + np.array(shift)]
    there = np.minimum(cells + offset, layout.cells - 1)
    assert [number[t] for t in there] == expected


@settings(max_examples=60)
@given(layouts())
def test_blocks_hold_every_state_once(layout: LatticeLayout) -> None:
    number = layout.rank_of_cell
    found = [
        number[base + i]
        for base, size, mask in zip(layout.base, layout.size, layout.mask, strict=True)
        for i in range(size)
        if layout.inside[mask + i]
    ]
    assert found == list(range(layout.n))
    assert all(
        a + n <= b for (a, b), n in zip(pairwise(layout.base), layout.size[:-1], strict=True)
    )
