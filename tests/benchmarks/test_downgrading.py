"""The downgrading instances: both methods solve the same model, and their table says so."""

import numpy as np
import pytest

import mdpcloud as mc
from benchmarks.downgrading import INSTANCES, LINK, METHODS, OWN, PLAIN, arrivals, measure, rows_of
from benchmarks.plain_downgrading import iterate, table
from mdpcloud.engine import compile_model
from tests.models import reference


@pytest.mark.parametrize("index", [1, 4, 5])
def test_plain_sweeps_give_the_published_optimum(index):
    r = reference("allocation")["S3"]["mdp"][index]
    rows = table(r["lam"], r["mu"], r["A"], r["C"], r["w_rej"], r["w_dg"])
    found = iterate(rows, 1e-12)
    assert found.lower == pytest.approx(r["opt_cost"], rel=1e-10)
    assert found.upper == pytest.approx(r["opt_cost"], rel=1e-10)


def test_the_rows_are_those_of_the_model():
    rows = table(arrivals(1 / 6, 12), capacity=12, **LINK)
    link = mc.systems.Downgrading(arrivals(1 / 6, 12), capacity=12, threshold=12, **LINK)
    listed = compile_model(link.model()).rows()
    assert rows.states == listed.n
    assert rows.rates.sum() == pytest.approx(listed.transitions.sum(), rel=1e-13)
    assert rows.cost.sum() == pytest.approx(listed.cost.sum(), rel=1e-13)
    assert rows.bound == pytest.approx(compile_model(link.model()).rate_bound, rel=1e-13)


@pytest.mark.parametrize("name", INSTANCES)
def test_both_methods_enclose_the_same_gain(name):
    runs = {method: [measure(name, method, capacity=40)] for method in METHODS}
    (plain,), (own,) = runs[PLAIN], runs[OWN]
    assert np.isclose(plain["lower"], own["lower"], rtol=3e-6, atol=1e-11)
    assert [row[:2] for row in rows_of(name, runs)] == [[name, PLAIN], [name, OWN]]


def test_bounds_without_a_gain_in_common_are_refused():
    run = {"cpu": 1.0, "peak": 1.0, "iterations": 1, "lower": 1.0, "upper": 1.1}
    with pytest.raises(AssertionError):
        rows_of("x", {PLAIN: [run], OWN: [{**run, "lower": 1.2, "upper": 1.3}]})
