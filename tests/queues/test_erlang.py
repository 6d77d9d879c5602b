"""Erlang B, Erlang C and M/M/m."""

import json
import math
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mdpcloud.errors import InputError
from mdpcloud.queues import erlang_b, erlang_c, log_erlang_b, mmc

LINES = (Path(__file__).parents[1] / "reference" / "cases.jsonl").read_text(encoding="utf-8")
CASES = {case["id"]: case for case in map(json.loads, LINES.splitlines())}


def exact_erlang_b(servers: int, load: Fraction) -> Fraction:
    terms = [load**i / math.factorial(i) for i in range(servers + 1)]
    return terms[-1] / sum(terms)


@given(st.integers(0, 60), st.fractions(Fraction(1, 1000), 200, max_denominator=1000))
def test_erlang_b_equals_the_exact_sum(servers: int, load: Fraction) -> None:
    exact = exact_erlang_b(servers, Fraction(float(load)))
    assert erlang_b(servers, float(load)) == pytest.approx(float(exact), rel=1e-14, abs=0)


@given(st.integers(1, 300), st.floats(1e-3, 1e3))
def test_the_logarithm_agrees_with_the_value(servers: int, load: float) -> None:
    value = math.exp(log_erlang_b(servers, load))
    assert value == pytest.approx(erlang_b(servers, load), rel=1e-12, abs=1e-300)


@pytest.mark.parametrize(("servers", "load"), [(0, 0.0), (0, 3.0)])
def test_a_system_without_servers_blocks_every_job(servers: int, load: float) -> None:
    assert erlang_b(servers, load) == 1.0
    assert log_erlang_b(servers, load) == 0.0


def test_without_load_nothing_is_blocked() -> None:
    assert erlang_b(3, 0.0) == 0.0
    assert log_erlang_b(3, 0) == -math.inf


@pytest.mark.parametrize("load", [1e-300, 1e-101, 1e-99])
def test_the_logarithm_holds_for_the_smallest_loads(load: float) -> None:
    expected = 7 * math.log(load) - math.log(math.factorial(7))
    assert log_erlang_b(7, load) == pytest.approx(expected, rel=1e-15)


def test_erlang_b_of_large_systems_does_not_overflow() -> None:
    case = CASES["erlb-200"]
    value = erlang_b(case["input"]["servers"], case["input"]["offered_load"])
    assert value == pytest.approx(float(case["right_answer"]), rel=1e-12)


def test_erlang_b_far_below_the_smallest_float_has_a_logarithm() -> None:
    given_ = CASES["erlb-tiny"]["input"]
    assert erlang_b(given_["servers"], given_["offered_load"]) == 0.0
    log = log_erlang_b(given_["servers"], given_["offered_load"])
    assert log / math.log(10) == pytest.approx(-974.8973229, abs=5e-8)


def test_erlang_c_of_a_thousand_servers_is_a_number() -> None:
    answer = CASES["erlc-nan"]["right_answer"]
    queue = mmc(servers=1000, service_rate=1, arrival_rate=990)
    assert queue.waiting_probability == pytest.approx(float(answer["P_wait"]), rel=1e-12)
    assert queue.mean_wait == pytest.approx(float(answer["Wq"]), rel=1e-12)


def test_four_servers_meet_the_reference() -> None:
    answer = CASES["mmk-wc"]["right_answer"]
    queue = mmc(servers=4, service_rate=1, arrival_rate=1.2)
    assert queue.waiting_probability == pytest.approx(float(answer["P_wait"]), rel=1e-14)
    assert queue.mean_wait == pytest.approx(float(answer["Wq"]), rel=1e-14)
    assert erlang_c(4, 1.2) == queue.waiting_probability


def test_one_server_close_to_saturation_meets_the_closed_form() -> None:
    queue = mmc(servers=1, service_rate=1, arrival_rate=0.95)
    assert queue.mean_jobs == pytest.approx(19, rel=1e-14)
    assert queue.mean_jobs / 0.95 == pytest.approx(20, rel=1e-14)


def test_an_unstable_queue_is_refused_with_its_utilisation() -> None:
    given_ = CASES["erlc-unstable"]["input"]
    with pytest.raises(InputError, match=r"rho = 1\.2 >= 1"):
        mmc(servers=given_["c"], service_rate=given_["mu"], arrival_rate=given_["lam"])
    with pytest.raises(InputError, match="rho = 1 >= 1"):
        erlang_c(10, 10)


@given(
    st.integers(1, 30), st.fractions(Fraction(1, 100), Fraction(999, 1000), max_denominator=1000)
)
def test_erlang_c_equals_the_exact_sum(servers: int, rho: Fraction) -> None:
    load = float(rho) * servers
    if load >= servers:
        return
    exact_load = Fraction(load)
    blocked = exact_erlang_b(servers, exact_load)
    exact = blocked / (1 - exact_load / servers * (1 - blocked))
    assert erlang_c(servers, load) == pytest.approx(float(exact), rel=1e-13)


@given(st.integers(1, 50), st.floats(0.01, 0.99), st.floats(1e-6, 1e6))
def test_only_the_unit_of_time_changes_the_wait(servers: int, rho: float, scale: float) -> None:
    base = mmc(servers=servers, service_rate=1.0, arrival_rate=rho * servers)
    fast = mmc(servers=servers, service_rate=scale, arrival_rate=rho * servers * scale)
    assert fast.waiting_probability == pytest.approx(base.waiting_probability, rel=1e-12)
    assert fast.mean_wait * scale == pytest.approx(base.mean_wait, rel=1e-12)


def test_an_idle_queue_has_no_jobs() -> None:
    queue = mmc(servers=2, service_rate=1, arrival_rate=0)
    assert (queue.mean_jobs, queue.mean_wait, queue.waiting_probability) == (0, 0, 0)


@pytest.mark.parametrize("servers", [-1, 2.0, True, "2", None, math.nan, 10**9])
def test_servers_must_be_a_whole_number(servers: Any) -> None:
    with pytest.raises(InputError, match="servers must be a whole number from"):
        erlang_b(servers, 1.0)


@pytest.mark.parametrize("load", [-1.0, math.nan, math.inf, True, "1", None, 10**400, 1j])
def test_the_offered_load_must_be_finite_and_not_negative(load: Any) -> None:
    with pytest.raises(InputError, match="offered_load must be a finite number >= 0"):
        log_erlang_b(1, load)


def test_a_queue_without_servers_is_refused() -> None:
    with pytest.raises(InputError, match="servers"):
        mmc(servers=0, service_rate=1.0, arrival_rate=0.0)
