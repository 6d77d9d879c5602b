"""M/M/m+M: loss rates and their derivatives."""

import json
import math
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import mpmath
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from mdpcloud.errors import InputError
from mdpcloud.queues import AbandonmentQueue, abandonment, birth_death, erlang_b, mmc
from mdpcloud.queues.law import node_law

REFERENCE = Path(__file__).parents[1] / "reference"
NODES = json.loads((REFERENCE / "routing.json").read_text(encoding="utf-8"))["single_node"]
DEADLINE = {"DBS": "begin_service", "DES": "end_service"}

servers = st.integers(1, 40)
rates = st.floats(0.05, 20)
deadlines = st.sampled_from(["begin_service", "end_service"])


def queue_of(case: dict[str, Any]) -> AbandonmentQueue:
    return abandonment(
        servers=case["m"],
        service_rate=float(case["mu"]),
        abandonment_rate=float(case["theta"]),
        arrival_rate=float(case["lam"]),
        deadline=DEADLINE[case["kind"]],
    )


@pytest.mark.parametrize("case", NODES, ids=lambda case: f"{case['name']}-{case['kind']}")
def test_every_reference_node_is_met(case: dict[str, Any]) -> None:
    queue = queue_of(case)
    assert queue.loss_rate == pytest.approx(float(case["ell"]), rel=1e-14)
    assert queue.loss_rate_derivative == pytest.approx(float(case["ell_prime"]), rel=5e-14)
    assert queue.mean_jobs == pytest.approx(float(case["EX"]), rel=1e-14)
    # the reference gives S9 with end_service, a probability of 6e-150, to eight digits only
    digits = 1e-7 if float(case["P_wait"]) < 1e-100 else 5e-14
    assert queue.waiting_probability == pytest.approx(float(case["P_wait"]), rel=digits, abs=0)
    load = float(case["lam"]) / float(case["mu"])
    assert erlang_b(case["m"], load) == pytest.approx(float(case["ErlangB"]), rel=1e-14)


@pytest.mark.parametrize("case", NODES[:14], ids=lambda case: f"{case['name']}-{case['kind']}")
def test_the_second_derivative_of_the_reference_is_the_slope_of_ours(case: dict[str, Any]) -> None:
    lam, step = float(case["lam"]), 2e-5 * float(case["lam"])
    ahead, behind = ({**case, "lam": lam + sign * step} for sign in (1, -1))
    rise = queue_of(ahead).loss_rate_derivative - queue_of(behind).loss_rate_derivative
    assert rise / (2 * step) == pytest.approx(float(case["ell_second"]), rel=1e-5)


@settings(max_examples=40)
@given(st.integers(1, 8), rates, rates, rates)
def test_every_moment_equals_the_sum_at_sixty_digits(
    precise_moments: Callable[..., Any], m: int, mu: float, theta: float, lam: float
) -> None:
    last = m + 60 + int(8 * (lam / theta + math.sqrt(lam / theta)))
    assume(last < 2000)
    law, exact = node_law(m, mu, theta, lam), precise_moments(m, mu, theta, lam, last)
    assert law.waiting == pytest.approx(float(exact["waiting"]), rel=1e-13)
    assert law.queue == pytest.approx(float(exact["queue"]), rel=1e-13)
    assert law.queue_slope == pytest.approx(float(exact["queue_slope"]), rel=1e-13)
    assert law.busy == pytest.approx(float(exact["jobs"] - exact["queue"]), rel=1e-13)
    assert law.busy_slope == pytest.approx(float(exact["busy_slope"]), rel=1e-12)


@given(st.integers(1, 6), st.integers(1, 12), rates, st.just(0.0) | rates, rates)
def test_a_node_with_little_room_equals_the_sum(
    precise_moments: Callable[..., Any], m: int, room: int, mu: float, theta: float, lam: float
) -> None:
    law, exact = node_law(m, mu, theta, lam, room), precise_moments(m, mu, theta, lam, room)
    assert law.full == pytest.approx(float(exact["full"]), rel=1e-13)
    assert law.full_slope == pytest.approx(float(exact["full_slope"]), rel=1e-13)
    assert law.queue == pytest.approx(float(exact["queue"]), rel=1e-13, abs=0)
    assert law.queue_slope == pytest.approx(float(exact["queue_slope"]), rel=1e-13, abs=0)
    assert law.waiting == pytest.approx(float(exact["waiting"]), rel=1e-13, abs=0)
    assert law.busy == pytest.approx(float(exact["jobs"] - exact["queue"]), rel=1e-12)


@given(servers, rates, rates, rates)
def test_deadlines_to_the_end_are_an_affine_image_of_deadlines_to_the_beginning(
    m: int, mu: float, theta: float, lam: float
) -> None:
    node = {"servers": m, "abandonment_rate": theta, "arrival_rate": lam}
    begin = abandonment(**node, service_rate=mu + theta)
    end = abandonment(**node, service_rate=mu, deadline="end_service")
    share = mu / (mu + theta)
    assert end.loss_rate == pytest.approx((1 - share) * lam + share * begin.loss_rate, rel=1e-13)
    derivative = (1 - share) + share * begin.loss_rate_derivative
    assert end.loss_rate_derivative == pytest.approx(derivative, rel=1e-13)


@given(servers, rates, rates, rates, deadlines)
def test_jobs_are_conserved(m: int, mu: float, theta: float, lam: float, deadline: str) -> None:
    queue = abandonment(
        servers=m, service_rate=mu, abandonment_rate=theta, arrival_rate=lam, deadline=deadline
    )
    busy = queue.mean_jobs - queue.mean_queue
    assert queue.loss_rate + mu * busy == pytest.approx(lam, rel=1e-12)
    assert queue.loss_probability == pytest.approx(queue.loss_rate / lam, rel=1e-15)


@given(servers, rates, rates, st.floats(0.05, 50), st.floats(1.0001, 2), deadlines)
def test_the_loss_rate_is_increasing_and_convex(
    m: int, mu: float, theta: float, lam: float, factor: float, deadline: str
) -> None:
    """Theorem T3: 0 < l' < 1 and l' increases (Nino-Mora 2019, Conjecture 1)."""
    node = {"servers": m, "service_rate": mu, "abandonment_rate": theta, "deadline": deadline}
    low = abandonment(**node, arrival_rate=lam)
    high = abandonment(**node, arrival_rate=lam * factor)
    assert 0 <= low.loss_rate_derivative <= high.loss_rate_derivative * (1 + 1e-14) <= 1 + 1e-14
    assert high.loss_rate >= low.loss_rate
    assert high.log_loss_rate > low.log_loss_rate


@given(servers, rates, rates, rates, st.floats(1e-6, 1e6), deadlines)
def test_only_the_unit_of_time_changes_the_rates(
    m: int, mu: float, theta: float, lam: float, scale: float, deadline: str
) -> None:
    base = abandonment(
        servers=m, service_rate=mu, abandonment_rate=theta, arrival_rate=lam, deadline=deadline
    )
    fast = abandonment(
        servers=m,
        service_rate=mu * scale,
        abandonment_rate=theta * scale,
        arrival_rate=lam * scale,
        deadline=deadline,
    )
    assert fast.loss_rate == pytest.approx(base.loss_rate * scale, rel=1e-11)
    assert fast.loss_rate_derivative == pytest.approx(base.loss_rate_derivative, rel=1e-11)


def test_deadlines_at_the_service_rate_make_the_jobs_poisson() -> None:
    for m in (1, 3):
        queue = abandonment(servers=m, service_rate=2, abandonment_rate=2, arrival_rate=5)
        assert queue.mean_jobs == pytest.approx(2.5, rel=1e-15)


@pytest.mark.parametrize("name", ["erla-trunc", "erla-1000"])
def test_the_public_cases_on_abandonment_are_met(name: str) -> None:
    lines = (REFERENCE / "cases.jsonl").read_text(encoding="utf-8").splitlines()
    case = next(case for case in map(json.loads, lines) if case["id"] == name)
    given_, answer = case["input"], case["right_answer"]
    queue = abandonment(
        servers=given_["n"],
        service_rate=given_["mu"],
        abandonment_rate=given_["theta"],
        arrival_rate=given_["lam"],
    )
    assert queue.loss_probability == pytest.approx(float(answer["P_abandon"]), rel=1e-12)
    assert queue.mean_queue == pytest.approx(float(answer["E_queue"]), rel=1e-12)


def test_without_impatience_a_stable_queue_is_erlang_c() -> None:
    patient = mmc(servers=3, service_rate=1, arrival_rate=2.5)
    for deadline in ("begin_service", "end_service"):
        queue = abandonment(
            servers=3, service_rate=1, abandonment_rate=0, arrival_rate=2.5, deadline=deadline
        )
        assert queue.loss_rate == queue.loss_rate_derivative == queue.loss_probability == 0
        assert queue.mean_queue == patient.mean_queue
        assert queue.waiting_probability == patient.waiting_probability
        assert queue.log_loss_rate == -math.inf


def test_vanishing_impatience_tends_to_erlang_c() -> None:
    patient = mmc(servers=3, service_rate=1, arrival_rate=2.5)
    queue = abandonment(servers=3, service_rate=1, abandonment_rate=1e-13, arrival_rate=2.5)
    assert queue.mean_queue == pytest.approx(patient.mean_queue, rel=1e-11)


@given(st.integers(1, 30), st.floats(0.05, 0.95))
def test_the_slope_of_the_patient_queue_is_its_difference_quotient(m: int, rho: float) -> None:
    lam = rho * m
    step = 1e-5 * lam
    rise = node_law(m, 1.0, 0.0, lam + step).queue - node_law(m, 1.0, 0.0, lam - step).queue
    law = node_law(m, 1.0, 0.0, lam)
    assert law.queue_slope == pytest.approx(rise / (2 * step), rel=1e-5, abs=1e-12)


def test_without_impatience_overload_is_refused_with_the_utilisation() -> None:
    with pytest.raises(InputError, match=r"rho = 1\.25 >= 1 and no abandonment"):
        abandonment(servers=2, service_rate=1, abandonment_rate=0, arrival_rate=2.5)


def test_heavy_overload_loses_the_excess_and_ends_quickly() -> None:
    begin = time.perf_counter()
    queue = abandonment(servers=100_000, service_rate=1, abandonment_rate=1e-6, arrival_rate=1e6)
    assert time.perf_counter() - begin < 5
    assert queue.loss_rate == pytest.approx(900_000, rel=1e-14)
    assert queue.loss_rate_derivative == pytest.approx(1, abs=1e-14)
    assert queue.waiting_probability == 1
    assert queue.mean_jobs == pytest.approx(100_000 + 9e11, rel=1e-14)


def test_the_two_stops_agree_in_moderate_overload() -> None:
    """Five million states by the plain stop: m=5, mu=4, lam=25, theta=1e-6."""
    queue = abandonment(servers=5, service_rate=4, abandonment_rate=1e-6, arrival_rate=25)
    with mpmath.workdps(40):
        x, s = mpmath.mpf(25) * 10**6, mpmath.mpf(20) * 10**6
        log_a = mpmath.log(s) - s * mpmath.log(x) + x  # 1F1(1; s+1; x) up to exp(-1e6)
        assert mpmath.exp(-(log_a + mpmath.loggamma(s))) < 1e-300
    assert queue.loss_rate == pytest.approx(5, rel=1e-14)


def test_small_losses_keep_their_logarithm() -> None:
    queue = abandonment(servers=10_000, service_rate=1, abandonment_rate=0.3, arrival_rate=1000)
    with mpmath.workdps(40):
        head = mpmath.mpf(1000)
        log_b = -head + 10_000 * mpmath.log(head) - mpmath.loggamma(10_001)
        term, tail = mpmath.mpf(1), mpmath.mpf(0)
        for n in range(1, 60):
            term *= head / (10_000 + mpmath.mpf("0.3") * n)
            tail += n * term
        expected = float(log_b + mpmath.log(mpmath.mpf("0.3") * tail))
    assert queue.loss_rate == 0
    assert queue.log_loss_rate == pytest.approx(expected, rel=1e-14)


@pytest.mark.slow
def test_ten_thousand_servers_keep_twelve_digits(precise_moments: Callable[..., Any]) -> None:
    exact = precise_moments(10_000, 1.0, 0.3, 9900.0, 12_000)
    law = node_law(10_000, 1.0, 0.3, 9900.0)
    for name in ("queue", "queue_slope", "waiting", "busy_slope"):
        assert getattr(law, name) == pytest.approx(float(exact[name]), rel=1e-12)


def test_without_arrivals_the_derivative_is_the_loss_of_a_lone_job() -> None:
    node = {"servers": 2, "service_rate": 3, "abandonment_rate": 1, "arrival_rate": 0}
    begin, end = abandonment(**node), abandonment(**node, deadline="end_service")
    assert begin.loss_rate_derivative == begin.loss_probability == begin.mean_jobs == 0
    assert end.loss_rate_derivative == end.loss_probability == 0.25


def test_a_law_spread_over_too_many_states_is_refused() -> None:
    with pytest.raises(InputError, match="spreads over"):
        abandonment(servers=1, service_rate=1, abandonment_rate=1e-30, arrival_rate=1)


@pytest.mark.parametrize(("theta", "lam"), [(1e-300, 1), (1e300, 1), (1, 1e16)])
def test_rates_too_far_apart_for_floats_are_refused(theta: float, lam: float) -> None:
    with pytest.raises(InputError, match="rates are too far apart"):
        abandonment(servers=1, service_rate=1, abandonment_rate=theta, arrival_rate=lam)


def test_a_load_below_the_smallest_float_is_no_load() -> None:
    queue = abandonment(servers=1, service_rate=1e10, abandonment_rate=1, arrival_rate=5e-324)
    assert queue.mean_jobs == 0


@pytest.mark.parametrize("name", ["service_rate", "abandonment_rate", "arrival_rate"])
@pytest.mark.parametrize("value", [-1.0, math.nan, math.inf, True, "1", None])
def test_rates_are_checked_by_name(name: str, value: Any) -> None:
    node: dict[str, Any] = {
        "servers": 2, "service_rate": 1.0, "abandonment_rate": 1.0, "arrival_rate": 1.0,
    }  # fmt: skip
    with pytest.raises(InputError, match=f"^{name} must be a finite number"):
        abandonment(**{**node, name: value})


def test_an_unknown_deadline_is_refused() -> None:
    with pytest.raises(InputError, match="'begin_service', 'end_service'"):
        abandonment(servers=1, service_rate=1, abandonment_rate=1, arrival_rate=1, deadline="begin")


@pytest.mark.parametrize("c", [1e-12, 1e-6, 1, 1e6, 1e12])
def test_the_law_of_a_birth_death_chain_does_not_depend_on_the_unit(c: float) -> None:
    law = birth_death([2 * c] * 20, [3 * c] * 20)
    assert law[0] == pytest.approx(0.33340017532527326, rel=1e-14)
    assert law[1:] / law[:-1] == pytest.approx(2 / 3, rel=1e-14)


def test_no_kernel_is_loaded_before_the_first_call() -> None:
    code = "import sys, mdpcloud.queues as q; assert 'numba' not in sys.modules; print(q.erlang_b)"
    subprocess.run([sys.executable, "-c", code], check=True, capture_output=True)
