"""Restless arms of the comparison: known indices, what a program's answer is called, own cases."""

from dataclasses import fields

import numpy as np
import pytest

from benchmarks.indices import CASES, SMALL, accuracy, measure, row
from benchmarks.peers.adapters import mdpcloud as ours
from benchmarks.peers.compare import INDEX
from benchmarks.peers.compare import row as peers_row
from benchmarks.peers.instance import read, write
from benchmarks.peers.making_arms import dense_arm, indifference, node_arm
from benchmarks.peers.programs import PROGRAMS, verdict
from benchmarks.peers.running import Run
from benchmarks.peers.worker import answer
from tests.indices.exact_index import bisection_index, optimal_differences

ARMS = {"dense": dense_arm(12), "node": node_arm(24)}
PEER = PROGRAMS["markovianbandit-pkg"]


@pytest.mark.parametrize("arm", ARMS.values(), ids=ARMS)
def test_known_indices_are_those_of_bisection(arm):
    rates = [matrix - np.eye(arm.states) for matrix in (arm.passive, arm.active)]
    costs = -np.stack([arm.passive_rewards, arm.active_rewards])
    work = np.stack([np.zeros(arm.states), np.ones(arm.states)])
    found = bisection_index(optimal_differences(rates, costs, work), arm.states)
    np.testing.assert_allclose(arm.index, found, rtol=0, atol=1e-11)


@pytest.mark.parametrize("arm", ARMS.values(), ids=ARMS)
def test_both_actions_are_optimal_at_a_known_index_and_not_beside_it(arm):
    assert max(indifference(arm, state) for state in range(arm.states)) < 1e-13
    wrong = type(arm)(**{**vars(arm), "index": arm.index + 1e-6})
    assert min(indifference(wrong, state) for state in range(arm.states)) > 1e-9


@pytest.mark.parametrize("arm", ARMS.values(), ids=ARMS)
def test_an_arm_is_read_back_and_our_index_agrees(arm, tmp_path):
    write(arm, tmp_path / "it.npz")
    again = read(tmp_path / "it.npz")
    for field in fields(arm):
        assert np.array_equal(getattr(again, field.name), getattr(arm, field.name))
    found = answer(again, ours.whittle(again))
    assert verdict(PROGRAMS["mdpcloud, arrays"], "whittle", np.nan, found) == "agrees"


def test_what_is_missing_or_off_is_said():
    arm = ARMS["dense"]
    largest = np.abs(arm.index).max()
    index = arm.index.copy()
    index[3] += 0.25 * largest
    assert arm.compared(index) == {"missing": 0, "off": pytest.approx(0.25)}
    found = arm.compared(index)
    assert verdict(PEER, "whittle", np.nan, found) == "DISAGREES by 2.5e-01"
    index[3] = np.nan
    assert verdict(PEER, "whittle", np.nan, arm.compared(index)) == "1 nan"


def test_a_row_of_an_index_has_the_start():
    numbers = {"missing": 0, "off": 1e-12, "start": 2.0, "cpu": 3.0, "wall": 3.1, "peak": 480.0}
    shown = peers_row(PEER, "whittle", [Run({**numbers, "more": 99.0})], np.nan, 1.5)
    assert dict(zip(INDEX, shown, strict=True)) == {
        "program": "markovianbandit-pkg",
        "answer": "agrees",
        "CPU s": "3.000",
        "start s": "2.00",
        "ratio": "2.00",
        "wall s": "3.100",
        "peak MB": "480",
        "MB more": "99",
        "error": "1.0e-12",
    }


@pytest.mark.parametrize("kind", CASES)
def test_small_arms_of_every_case_have_a_row(kind):
    found = CASES[kind].build(SMALL)()
    assert found.verdict in ("indexable", "not indexable")
    numbers = {**measure(kind, 2 * SMALL), **accuracy(found), "verdict": str(found.verdict)}
    shown = row(CASES[kind].name, SMALL, [numbers])
    assert shown[:3] == [CASES[kind].name, found.verdict, str(SMALL)]
    assert len(shown) == 8
