"""What the programs simulate, and what the adapters make of the peers' answers."""

import importlib
import statistics
import subprocess
import sys
from dataclasses import fields, replace
from math import sqrt
from types import ModuleType, SimpleNamespace

import numpy as np
import pytest
from scipy import stats

import mdpcloud as mc
from benchmarks.peers import stations
from benchmarks.peers.adapters.mdpcloud_simulation import described
from benchmarks.peers.compare import SIMULATION, row
from benchmarks.peers.instance import read, write
from benchmarks.peers.making import impatient, shortest_queue
from benchmarks.peers.programs import PROGRAMS, verdict
from benchmarks.peers.running import Run
from benchmarks.peers.stations import RUNS, Stations, interval
from benchmarks.peers.worker import answer, cpu_time

CIW = PROGRAMS["ciw"]
PAIR = Stations(
    np.ones(2, np.int64), np.ones(2), np.zeros(2), 1.2, "shortest", "jobs", 80_000, np.nan
)


@pytest.fixture
def adapter(monkeypatch):
    """An adapter whose program is not installed where the tests run."""

    def load(name, package):
        monkeypatch.setitem(sys.modules, package, ModuleType(package))
        path = f"benchmarks.peers.adapters.{name}"
        monkeypatch.delitem(sys.modules, path, raising=False)
        return importlib.import_module(path)

    return load


def test_the_interval_of_runs_is_that_of_student():
    estimates = [1.0, 2.0, 4.0, 3.0, 2.5, 2.0, 1.5, 3.5]
    found = interval(estimates)
    lower, upper = stats.t.interval(
        0.95, RUNS - 1, np.mean(estimates), statistics.stdev(estimates) / sqrt(RUNS)
    )
    assert found["gain"] == pytest.approx(0.5 * (lower + upper), rel=1e-14)
    assert found["half_width"] == pytest.approx(0.5 * (upper - lower), rel=1e-12)
    assert stats.t.ppf(0.975, RUNS - 1) == pytest.approx(stations.QUANTILE, rel=1e-12)


def test_runs_are_as_long_as_their_events_take():
    nodes = impatient(80_000)
    assert nodes.run_events == 10_000
    assert nodes.run_time * nodes.arrival * 2 == pytest.approx(10_000)


def test_the_known_rate_of_abandonment_is_that_of_the_described_model():
    nodes = impatient()
    single = Stations(
        nodes.servers[1:2],
        nodes.service[1:2],
        nodes.patience[1:2],
        nodes.arrival / nodes.nodes,
        "split",
        "abandonment",
        0,
        np.nan,
    )
    others = impatient_rate(nodes, 0) + impatient_rate(nodes, 2)
    model, rule = described(single, 120)
    assert mc.evaluate(model, rule).gain + others == pytest.approx(nodes.gain, rel=1e-9)


def impatient_rate(nodes, k):
    """What a node loses, by the public formula."""
    servers, service, patience = nodes.servers[k], nodes.service[k], nodes.patience[k]
    jobs = np.arange(200)
    up = nodes.arrival / nodes.nodes
    down = service * np.minimum(jobs, servers) + patience * np.maximum(jobs - servers, 0)
    law = np.cumprod(np.r_[1.0, up / down[1:]])
    return float(patience * (np.maximum(jobs - servers, 0) @ law) / law.sum())


def test_all_stations_abandon_as_their_birth_and_death_chains_do():
    nodes = impatient()
    assert nodes.gain == pytest.approx(sum(impatient_rate(nodes, k) for k in range(3)), rel=1e-12)


def test_joining_the_shorter_of_two_queues_is_like_solving_the_chain_by_numpy():
    cap = 25
    model, rule = described(PAIR, cap)
    n = cap + 1
    rates = np.zeros((n * n, n * n))
    for i in range(n):
        for j in range(n):
            here = i * n + j
            if min(i, j) < cap:
                rates[here, here + (n if i <= j else 1)] += PAIR.arrival
            if i:
                rates[here, here - n] += 1.0
            if j:
                rates[here, here - 1] += 1.0
    np.fill_diagonal(rates, -rates.sum(axis=1))
    system = np.vstack([rates.T[1:], np.ones(n * n)])
    law = np.linalg.solve(system, np.r_[np.zeros(n * n - 1), 1.0])
    jobs = np.add.outer(np.arange(n), np.arange(n)).ravel()
    assert mc.evaluate(model, rule).gain == pytest.approx(law @ jobs, rel=1e-8)


@pytest.mark.slow
def test_the_box_of_the_shortest_queue_is_large_enough():
    nodes = shortest_queue()
    model, rule = described(nodes, 30)
    assert mc.evaluate(model, rule).gain == pytest.approx(nodes.gain, rel=1e-6)


def test_stations_are_read_back(tmp_path):
    before = impatient()
    write(before, tmp_path / "it.npz")
    again = read(tmp_path / "it.npz")
    assert type(again) is Stations
    for field in fields(before):
        assert np.array_equal(getattr(before, field.name), getattr(again, field.name)), field.name


def test_ciws_records_become_jobs_present_and_abandonments(adapter):
    ciw = adapter("ciw", "ciw")
    records = [
        SimpleNamespace(arrival_date=0.0, exit_date=3.0, record_type="service", node=1),
        SimpleNamespace(arrival_date=1.0, exit_date=1.5, record_type="renege", node=1),
        SimpleNamespace(arrival_date=2.5, exit_date=4.0, record_type="renege", node=1),
        SimpleNamespace(arrival_date=5.0, exit_date=None, record_type="incomplete", node=1),
    ]
    assert ciw.jobs(records, 2.0, 6.0) == pytest.approx((1.0 + 1.5 + 1.0) / 4.0)
    assert ciw.abandonment(records, 2.0, 6.0) == pytest.approx(1.0 / 4.0)


def test_lines_averages_become_jobs_present_and_abandonments(adapter):
    line = adapter("line_solver", "line_solver")
    present, busy = np.array([[0.0], [24.0], [9.5]]), np.array([[0.0], [1.0], [0.9]])
    found = SimpleNamespace(getAvg=lambda: (present, busy, None), getAvgQLen=lambda: present)
    nodes = replace(PAIR, servers=np.array([20, 10]), patience=np.array([0.3, 0.2]))
    assert line.jobs(nodes, found) == pytest.approx(33.5)
    assert line.abandonment(nodes, found) == pytest.approx(0.3 * 4.0 + 0.2 * 0.5)


def test_answers_are_judged_by_their_intervals():
    found = {"gain": 10.0, "half_width": 0.5}
    assert verdict(CIW, "simulate", 10.9, found) == "agrees"
    assert verdict(CIW, "simulate", 11.5, found) == "DISAGREES by 3.0 half-widths"
    assert verdict(CIW, "simulate", 10.0, {"gain": np.nan, "half_width": 0.5}).startswith("DIS")


def test_the_ratio_of_simulations_is_per_event():
    numbers = {
        "gain": 10.0,
        "half_width": 0.5,
        "events": 1000,
        "cpu": 2.0,
        "wall": 2.0,
        "peak": 9.0,
    }
    shown = dict(zip(SIMULATION, row(CIW, "simulate", [Run(numbers)], 10.0, 1e-3), strict=True))
    assert shown["answer"] == "agrees"
    assert (shown["ratio"], shown["events"], shown["events per s"]) == ("2.00", "1000", "500")
    assert (shown["error"], shown["width"]) == ("0.0e+00", "5.0e-02")
    failed = row(CIW, "simulate", [Run(failure="not installed")], 10.0, 1e-3)
    assert failed == ["ciw", "not installed", *[""] * (len(SIMULATION) - 2)]


def test_what_a_simulation_found_leaves_the_worker():
    found = {"gain": 1.0, "half_width": 0.1, "events": 80, "other": object()}
    assert answer(PAIR, found) == {"gain": 1.0, "half_width": 0.1, "events": 80}


def test_the_time_of_a_program_started_by_a_peer_is_counted():
    before = cpu_time()
    subprocess.run([sys.executable, "-c", "sum(range(10**6))"], check=True)
    assert cpu_time() - before > 0.001
