"""Quasi-birth-death processes against closed forms, truncated chains and exact arithmetic."""

from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mdpcloud.errors import InputError, NoLimitError
from mdpcloud.limits.qbd.law import Level, QBDLaw, null_vector, quasi_birth_death
from mdpcloud.limits.qbd.passage import first_entries
from mdpcloud.limits.qbd.rounding import full_product, sparse_product
from mdpcloud.queues import mmc

few = settings(max_examples=40)
rates = st.floats(0.05, 20.0)
loads = st.floats(0.01, 0.98)


def mm1(arrival: float, service: float) -> QBDLaw:
    return quasi_birth_death(
        [Level([[0.0]], [[arrival]])], Level([[0.0]], [[arrival]], [[service]])
    )


def phase_type_queue(arrival: float, start: Any, moves: Any) -> QBDLaw:
    """M/PH/1: services begin in a phase by ``start``; moves between phases, the last column out."""
    start, moves = np.asarray(start), np.asarray(moves)
    within, out = moves[:, :-1], moves[:, -1:]
    phases = start.size
    empty = Level(np.zeros((1, 1)), arrival * start[None, :])
    one = Level(within, arrival * np.eye(phases), out)
    return quasi_birth_death([empty, one], Level(within, arrival * np.eye(phases), out * start))


def random_levels(seed: int) -> tuple[list[Level], Level]:
    """A boundary of one to four levels with one to four phases each, and a stable repeating level.

    Rates spread over three powers of ten, and some are zero.
    """
    rng = np.random.default_rng(seed)
    phases = rng.integers(1, 5, rng.integers(1, 5))

    def block(rows: int, columns: int) -> Any:
        found = 10.0 ** rng.uniform(-1.5, 1.5, (rows, columns))
        return np.where(rng.random((rows, columns)) < 0.2, 1e-3, found)

    m = phases[-1]
    boundary = [
        Level(
            block(size, size),
            block(size, phases[k + 1] if k + 1 < phases.size else m),
            block(size, phases[k - 1]) if k else None,
        )
        for k, size in enumerate(phases)
    ]
    local, up, down = block(m, m), block(m, m), block(m, m)
    while not drifts_down(local, up, down):
        up = 0.7 * up
    return boundary, Level(local, up, down)


def drifts_down(local: Any, up: Any, down: Any) -> bool:
    law = null_vector(local + up + down)
    return float(law @ up.sum(1)) < 0.9 * float(law @ down.sum(1))


def truncated(boundary: list[Level], repeating: Level, levels: int) -> list[Any]:
    """Laws of the levels of the chain that never goes beyond the last, without subtraction."""
    listed = [*boundary, *[repeating] * (levels - len(boundary))]
    starts = np.cumsum([0, *(level.phases for level in listed)])
    chain = np.zeros((starts[-1], starts[-1]))
    for k, level in enumerate(listed):
        rows = slice(starts[k], starts[k + 1])
        chain[rows, rows] = level.local
        if k:
            chain[rows, starts[k - 1] : starts[k]] = level.down
        if k + 1 < levels:
            chain[rows, starts[k + 1] : starts[k + 2]] = level.up
    law = null_vector(chain)
    return [law[starts[k] : starts[k + 1]] for k in range(levels)]


# --- closed forms ---------------------------------------------------------------------------------


@few
@given(rates, loads)
def test_one_phase_is_the_single_server_queue(service: float, load: float) -> None:
    law = mm1(load * service, service)
    exact = Fraction(load * service) / Fraction(service)
    assert abs(Fraction(float(law.boundary[0][0])) - (1 - exact)) <= law.error
    assert law.error <= 1e-13 / (1 - load) ** 2
    assert law.mean_level == pytest.approx(float(exact / (1 - exact)), rel=1e-12 / (1 - load))
    for k in (1, 2, 7):
        assert law.tail_probability(k) == pytest.approx(float(exact**k), rel=1e-13 / (1 - load))
        assert law.level(k).sum() == pytest.approx(
            float((1 - exact) * exact**k), rel=1e-13 / (1 - load)
        )


def test_the_single_server_queue_is_right_up_to_a_load_of_one_minus_a_millionth() -> None:
    law = mm1(1.0 - 2.0**-20, 1.0)
    assert law.boundary[0][0] == pytest.approx(2.0**-20, rel=1e-9)
    assert law.mean_level == pytest.approx(2.0**20 - 1.0, rel=1e-9)
    assert abs(law.boundary[0][0] - 2.0**-20) <= law.error


@few
@given(rates, loads, st.integers(1, 6))
def test_a_boundary_of_servers_is_the_delay_queue(
    service: float, load: float, servers: int
) -> None:
    arrival = load * servers * service
    boundary = [Level([[0.0]], [[arrival]], [[k * service]] if k else None) for k in range(servers)]
    law = quasi_birth_death(boundary, Level([[0.0]], [[arrival]], [[servers * service]]))
    known = mmc(servers=servers, service_rate=service, arrival_rate=arrival)
    assert law.mean_level == pytest.approx(known.mean_jobs, rel=1e-12 / (1 - load))
    assert law.tail_probability(servers) == pytest.approx(
        known.waiting_probability, rel=1e-12 / (1 - load)
    )


@few
@given(rates, loads, st.integers(1, 8))
def test_erlang_services_give_pollaczek_and_khinchine(
    service: float, load: float, phases: int
) -> None:
    moves = np.zeros((phases, phases + 1))
    moves[np.arange(phases), np.arange(phases) + 1] = phases * service
    law = phase_type_queue(load * service, np.eye(phases)[0], moves)
    known = load + load**2 * (1 + 1 / phases) / (2 * (1 - load))
    assert law.boundary[0][0] == pytest.approx(1 - load, abs=max(law.error, 1e-13))
    assert law.mean_level == pytest.approx(known, rel=1e-12 / (1 - load))


@few
@given(rates, st.floats(0.01, 0.99), st.floats(1.0, 50.0), loads)
def test_hyperexponential_services_give_pollaczek_and_khinchine(
    first: float, share: float, ratio: float, load: float
) -> None:
    second = first / ratio
    mean = share / first + (1 - share) / second
    square = 2 * (share / first**2 + (1 - share) / second**2)
    arrival = load / mean
    law = phase_type_queue(arrival, [share, 1 - share], [[0, 0, first], [0, 0, second]])
    assert law.boundary[0][0] == pytest.approx(1 - load, abs=max(law.error, 1e-13))
    known = load + arrival**2 * square / (2 * (1 - load))
    assert law.mean_level == pytest.approx(known, rel=1e-11 / (1 - load))


# --- truncated chains -----------------------------------------------------------------------------


@few
@given(st.integers(0, 10**6))
def test_random_processes_agree_with_truncated_chains(seed: int) -> None:
    boundary, repeating = random_levels(seed)
    law = quasi_birth_death(boundary, repeating)
    decay = max(abs(np.linalg.eigvals(law.ratio)))
    levels = len(boundary) + 2 + min(400, int(np.ceil(np.log(1e-17) / np.log(decay))))
    known = truncated(boundary, repeating, levels)
    left = law.tail_probability(levels)
    distance = sum(float(abs(law.level(k) - known[k]).sum()) for k in range(levels))
    assert distance <= law.error + 1e-13 + 100 * left
    assert law.residual <= 3e-15
    assert law.drift < 0
    mean = sum(k * float(one.sum()) for k, one in enumerate(known))
    assert law.mean_level == pytest.approx(mean, rel=1e-11 + 1e4 * left)


@few
@given(st.integers(0, 10**6))
def test_the_matrices_solve_their_equations(seed: int) -> None:
    boundary, repeating = random_levels(seed)
    law = quasi_birth_death(boundary, repeating)
    up, local, down = repeating.up, repeating.local - np.diag(repeating.out), repeating.down
    r, g = law.ratio, law.entries
    size = repeating.out.max()
    assert np.allclose(up + r @ local + r @ r @ down, 0.0, atol=1e-13 * size)
    assert np.allclose(down + local @ g + up @ g @ g, 0.0, atol=1e-13 * size)
    assert np.allclose(g.sum(axis=1), 1.0, atol=1e-12)
    assert np.allclose(law.sums @ (np.eye(r.shape[0]) - r), np.eye(r.shape[0]), atol=1e-11)
    assert law.tail_probability(0) == pytest.approx(1.0, abs=1e-13)


@few
@given(st.integers(0, 10**6), st.integers(-8, 8))
def test_a_change_of_the_unit_of_time_changes_nothing(seed: int, power: int) -> None:
    boundary, repeating = random_levels(seed)

    def scaled(level: Level) -> Level:
        f = 2.0**power
        return Level(f * level.local, f * level.up, f * level.down)

    law = quasi_birth_death(boundary, repeating)
    again = quasi_birth_death([scaled(level) for level in boundary], scaled(repeating))
    assert all(np.array_equal(a, b) for a, b in zip(law.boundary, again.boundary, strict=True))
    assert np.array_equal(law.ratio, again.ratio)
    assert again.error == pytest.approx(law.error, rel=1e-6)


def test_the_error_bound_is_useful_where_level_zero_is_unlikely() -> None:
    drift_up = [
        Level([[0.0]], [[4.0]], [[1.0]] if k else None) for k in range(30)
    ]  # P(level 0) is about 4^-30
    law = quasi_birth_death(drift_up, Level([[0.0]], [[1.0]], [[2.0]]))
    weights = [Fraction(4) ** k for k in range(30)] + [Fraction(4) ** 30 / 2]
    total = sum(weights[:30]) + 2 * weights[30]
    assert law.boundary[0][0] == pytest.approx(float(1 / total), rel=1e-13)
    assert law.error <= 1e-13


# --- logarithmic reduction and products -----------------------------------------------------------


def test_the_reduction_ends_where_row_sums_never_reach_one() -> None:
    phases = 60  # the phase goes up by itself and is reset with a level: sums of rounded terms
    local = np.diag(np.full(phases - 1, 1.0), 1) + np.diag(np.full(phases - 1, 1.5), -1)
    down = 0.1 * np.eye(phases)
    down[0, 0] += 1.5
    entries, steps = first_entries(0.59 * np.eye(phases), local, down)
    assert np.isfinite(entries).all()
    assert entries.sum(axis=1) == pytest.approx(1.0, abs=1e-12)
    assert steps <= 40


@few
@given(st.integers(0, 10**6), st.integers(1, 40))
def test_products_are_within_their_bounds(seed: int, size: int) -> None:
    rng = np.random.default_rng(seed)
    left, right = 10.0 ** rng.uniform(-6, 0, (2, size)), 10.0 ** rng.uniform(-6, 0, (size, 3))
    exact = [
        [
            sum(Fraction(float(a)) * Fraction(float(b)) for a, b in zip(row, column, strict=True))
            for column in right.T
        ]
        for row in left
    ]
    for found in (full_product(left, right), sparse_product(left, right)):
        for i in range(2):
            for j in range(3):
                off = abs(Fraction(float(found.value[i, j])) - exact[i][j])
                assert off <= Fraction(float(found.error[i, j]))
    assert full_product(left, right).error.max() <= 1e-15 * float(max(map(max, exact)))


# --- refusals -------------------------------------------------------------------------------------


@pytest.mark.parametrize("service", [0.5, 1.0, 1.0 + 1e-14])
def test_a_process_without_downward_drift_has_no_law(service: float) -> None:
    with pytest.raises(NoLimitError, match="do not drift downwards"):
        mm1(1.0, service)


def test_every_class_of_phases_has_to_drift_downwards() -> None:
    up = np.diag([1.0, 3.0])
    with pytest.raises(NoLimitError, match="mean rate up is 3 and the mean rate down 2"):
        quasi_birth_death(
            [Level([[0.0, 1.0], [1.0, 0.0]], up)], Level(np.zeros((2, 2)), up, 2 * np.eye(2))
        )


def test_classes_of_phases_may_be_apart_above_level_zero() -> None:
    up = np.diag([1.0, 0.5])
    law = quasi_birth_death(
        [Level([[0.0, 1.0], [1.0, 0.0]], up)], Level(np.zeros((2, 2)), up, 2 * np.eye(2))
    )
    assert law.boundary[0] == pytest.approx([0.3, 0.3], abs=law.error)
    assert law.ratio == pytest.approx(np.diag([0.5, 0.25]), abs=1e-15)


def test_a_chain_that_is_not_irreducible_is_refused() -> None:
    down = 2 * np.eye(2)
    with pytest.raises(InputError, match="irreducible"):
        quasi_birth_death(
            [Level(np.zeros((2, 2)), np.eye(2))], Level(np.zeros((2, 2)), np.eye(2), down)
        )


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Level([[0.0, 1.0]], [[1.0]]), "local has the shape"),
        (lambda: Level([[0.0]], [[1.0], [1.0]]), "up has the shape"),
        (lambda: Level([[0.0]], [[-1.0]]), "negative or not finite"),
        (lambda: Level([[0.0]], [[1.0]], [[np.nan]]), "negative or not finite"),
        (lambda: Level([[0.0]], [["1"]]), "not an array of numbers"),
        (lambda: quasi_birth_death([], Level([[0.0]], [[1.0]], [[2.0]])), "boundary has no level"),
        (
            lambda: quasi_birth_death(
                [Level([[0.0]], [[1.0]], [[1.0]])], Level([[0.0]], [[1.0]], [[2.0]])
            ),
            "nothing below level 0",
        ),
        (
            lambda: quasi_birth_death(
                [Level([[0.0]], [[1.0, 1.0]])], Level([[0.0]], [[1.0]], [[2.0]])
            ),
            r"boundary\[0\].up has 2 columns; repeating has 1 phases",
        ),
        (
            lambda: quasi_birth_death([Level([[0.0]], [[1.0]])], Level([[0.0]], [[1.0]])),
            "repeating.down has 0 columns",
        ),
    ],
)
def test_bad_levels_are_refused(make: Any, message: str) -> None:
    with pytest.raises(InputError, match=message):
        make()


def test_there_is_no_tail_of_phases_within_the_boundary() -> None:
    with pytest.raises(InputError, match="from 1 on"):
        mm1(1.0, 2.0).tail(0)
