import json
import pickle
import re

import numpy as np
import pytest

import mdpcloud as mc
from mdpcloud.solve import ConstrainedSolution
from tests.admission import LOST, admission, two_queues

COIN = [[[0, 0.5, 0.5], [0, 1, 0], [0, 0, 1]]]
TWO_CLASSES = mc.Model(
    mc.Lattice({"a": 1}),
    mc.Event("stay", 1.0, mc.Action("stay")),
    cost_rate=lambda x: x.a,
    measures={"twice": lambda x: 2.0 * x.a},
)
RESULTS = {
    "a solution": lambda: mc.solve(two_queues()),
    "a discounted solution": lambda: mc.solve(two_queues(), mc.Discounted(rate=0.1)),
    "a solution in steps": lambda: mc.solve(mc.tabular(COIN), mc.Discounted(factor=0.5)),
    "rewards": lambda: mc.solve(mc.tabular([np.eye(2)[::-1]], rewards=[1, 2])),
    "gains by state": lambda: mc.solve(mc.tabular(COIN, costs=[0, 1, 3])),
    "an evaluation": lambda: mc.evaluate(two_queues(), "refuse"),
    "a randomised policy": lambda: mc.evaluate(
        admission(actions=[LOST, mc.Action("out")]), {"lost": 0.25, "out": lambda x: 0.75}
    ),
    "measures by state": lambda: mc.evaluate(TWO_CLASSES, {}),
    "a finite horizon": lambda: mc.solve(
        admission(cost_rate=lambda x: x.jobs), mc.FiniteHorizon(8.0, [0.0, 0.0, 0.0, 0.0])
    ),
    "a total cost": lambda: mc.solve(
        mc.tabular([[[0.5, 0.5], [0, 1]]], costs=[1, 0]), mc.TotalCost([1])
    ),
    "a constrained solution": lambda: mc.solve(
        admission(measures={"jobs": lambda x: x.jobs}), constraints={"jobs": 0.5}
    ),
    "a partial solution": lambda: mc.solve(
        two_queues(), solver="value_iteration", max_iterations=2, strict=False
    ),
}


def refused(said):
    return pytest.raises(mc.InputError, match=re.escape(said))


def from_file(result, folder):
    result.save(folder / "result")
    assert [path.name for path in folder.iterdir()] == ["result"]
    return mc.load_solution(folder / "result")


@pytest.mark.parametrize("make", RESULTS.values(), ids=RESULTS)
@pytest.mark.parametrize("way", [from_file, lambda r, _: pickle.loads(pickle.dumps(r))])
def test_results_come_back_as_they_were(make, way, tmp_path):
    result = make()
    copy = way(result, tmp_path)
    assert type(copy) is type(result)
    assert type(copy.criterion) is type(result.criterion)
    assert vars(copy.criterion) == vars(result.criterion)
    for name in ("status", "iterations", "solver", "reason", "elapsed", "converged"):
        assert getattr(copy, name) == getattr(result, name)
    for name in ("gains", "values", "bounds"):
        np.testing.assert_array_equal(getattr(copy, name), getattr(result, name))
    assert [type(bound) for bound in copy.bounds] == [type(bound) for bound in result.bounds]
    assert copy.policy.names == result.policy.names
    assert copy.policy.shape == result.policy.shape
    for decision, actions in result.policy.actions.items():
        assert np.array_equal(copy.policy.actions[decision], actions)
    if isinstance(result.policy, mc.TimedPolicy):
        assert copy.policy.horizon == result.policy.horizon
        assert result.policy.times.size
        for decision, changes in result.policy.changes.items():
            assert list(map(list, copy.policy.changes[decision])) == list(map(list, changes))
    if isinstance(result, ConstrainedSolution):
        assert result.randomised
        for name in ("multipliers", "slack", "randomised"):
            assert getattr(copy, name) == getattr(result, name)
    if hasattr(result, "measures"):
        assert list(copy.measures) == list(result.measures)
        for name, bounds in result.measures.items():
            np.testing.assert_array_equal(copy.measures[name], bounds)


def test_a_solution_from_a_file_starts_the_next_solve(tmp_path):
    model = two_queues()
    mc.solve(model, tolerance=1e-10).save(tmp_path / "s.npz")
    again = mc.solve(
        model, solver="value_iteration", start=mc.load_solution(tmp_path / "s.npz"), tolerance=1e-8
    )
    assert again.iterations <= 50


def test_a_policy_from_a_file_is_evaluated(tmp_path):
    model = two_queues()
    solution = mc.solve(model)
    solution.save(str(tmp_path / "s.npz"))
    evaluation = mc.evaluate(model, mc.load_solution(str(tmp_path / "s.npz")).policy)
    assert evaluation.gain == pytest.approx(solution.gain, rel=1e-8)


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"", "is not a saved solution: it is no npz file"),
        (b"hello, world", "is not a saved solution"),
        (b"PK\x03\x04 and no end", "is not a saved solution"),
        (pickle.dumps([1, 2]), "is not a saved solution"),
    ],
)
def test_files_that_are_something_else_are_refused(content, said, tmp_path):
    (tmp_path / "file").write_bytes(content)
    with refused(said):
        mc.load_solution(tmp_path / "file")


def test_a_missing_file_and_a_folder_are_refused(tmp_path):
    with refused("nothing.npz: no such file"):
        mc.load_solution(tmp_path / "nothing.npz")
    with refused("is not a saved solution"):
        mc.load_solution(tmp_path)


def test_a_file_that_was_cut_off_is_refused(tmp_path):
    mc.solve(admission()).save(tmp_path / "s.npz")
    whole = (tmp_path / "s.npz").read_bytes()
    (tmp_path / "s.npz").write_bytes(whole[: len(whole) // 2])
    with refused("is not a saved solution"):
        mc.load_solution(tmp_path / "s.npz")


@pytest.mark.parametrize(
    ("header", "said"),
    [
        ("no json", "is not a saved solution"),
        ("[1]", "is not a saved solution"),
        ("{}", "has format None; this version reads 1"),
        (json.dumps({"format": 2}), "has format 2; this version reads 1"),
        (json.dumps({"format": 1}), "is damaged (KeyError("),
    ],
)
def test_an_archive_without_the_right_header_is_refused(header, said, tmp_path):
    np.savez(tmp_path / "s.npz", header=np.array(header))
    with refused(said):
        mc.load_solution(tmp_path / "s.npz")


def test_an_archive_without_a_header_is_refused(tmp_path):
    np.savez(tmp_path / "s.npz", values=np.zeros(3))
    with refused("is not a saved solution"):
        mc.load_solution(tmp_path / "s.npz")


def test_a_criterion_with_a_function_is_not_saved(tmp_path):
    result = mc.evaluate(admission(), "lost", mc.FiniteHorizon(1.0, lambda x: x.jobs))
    with refused("FiniteHorizon whose final_cost is a function cannot be saved; give an array"):
        result.save(tmp_path / "result")


@pytest.mark.parametrize("make", RESULTS.values(), ids=RESULTS)
def test_results_and_policies_are_shown_in_a_line(make):
    result = make()
    for shown in (repr(result), repr(result.policy)):
        assert len(shown) < 200
        assert "\n" not in shown
    assert repr(result).startswith(type(result).__name__)
    assert result.status.name in repr(result)
