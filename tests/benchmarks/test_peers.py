"""The comparison with other programs: files, checks that can fail, and where the tables go."""

import subprocess
import sys
from dataclasses import fields

import numpy as np
import pytest

import mdpcloud as mc
from benchmarks.peers.adapters import mdpcloud as ours
from benchmarks.peers.adapters import scipy as theirs
from benchmarks.peers.compare import goes_on, row
from benchmarks.peers.environment import peers
from benchmarks.peers.instance import read, write
from benchmarks.peers.making import distinct, pairs_of, random_process, two_queues
from benchmarks.peers.programs import PROGRAMS, TASKS, verdict
from benchmarks.peers.running import ROOT, Run, outcome, run
from benchmarks.peers.section import replace_section, section
from mdpcloud.systems.cloud_routing import CloudRouting, Node

PROCESS = random_process(40, actions=3, successors=4)
QUEUES = two_queues(length=12, time=1.5)
QUANTECON = PROGRAMS["quantecon"]


@pytest.mark.parametrize("instance", [PROCESS, QUEUES], ids=["decisions", "chain"])
def test_an_instance_is_read_back_bit_by_bit(instance, tmp_path):
    write(instance, tmp_path / "it.npz")
    again = read(tmp_path / "it.npz")
    assert type(again) is type(instance)
    for field in fields(instance):
        before, after = (getattr(each, field.name) for each in (instance, again))
        assert np.array_equal(before, after), field.name
        assert np.asarray(before).dtype == np.asarray(after).dtype


def test_the_random_process_is_the_same_every_time_and_its_rows_sum_to_one():
    assert np.array_equal(PROCESS.data, random_process(40, actions=3, successors=4).data)
    np.testing.assert_allclose(PROCESS.matrix().sum(axis=1), 1.0, rtol=1e-14)
    assert (PROCESS.states, PROCESS.actions) == (40, 3)


def test_distinct_numbers_are_distinct():
    rows = distinct(np.random.default_rng(1), 200, 4, 5)
    assert (np.diff(np.sort(rows, axis=1), axis=1) > 0).all()
    assert rows.min() >= 0
    assert rows.max() < 5


def test_the_pairs_of_a_model_have_its_gain():
    nodes = (Node(2, 1.0, 0.5), Node(1, 2.0, 0.5))
    system = CloudRouting(nodes=nodes, arrival_rate=4.0, outside_cost=0.8, deadline="begin_service")
    model = system.model((6, 5))
    gain = mc.solve(model, tolerance=1e-10).gain
    pairs = pairs_of(model, gain)
    found = ours.average(pairs)
    assert found["gain"] == pytest.approx(gain, rel=1e-6)
    lower, upper = found["bounds"]
    assert lower <= gain * (1 + 1e-9)
    assert gain * (1 - 1e-9) <= upper


def test_the_values_of_a_solve_prove_bounds_around_the_gain():
    model = ours.build(PROCESS)["model"]
    lower, upper = PROCESS.bracket(mc.solve(model, tolerance=1e-9).values + 17.0)
    assert lower - 1e-9 <= PROCESS.gain <= upper + 1e-9
    assert upper - lower < 1e-7
    assert np.ptp(PROCESS.bracket(np.arange(40.0))) > 1e-3


def test_two_ways_to_the_law_of_the_queues_agree_with_the_third():
    for adapter in (ours, theirs):
        found = adapter.transient(QUEUES)
        assert found["probability"] == pytest.approx(QUEUES.probability, abs=1e-9)


def test_a_wrong_answer_is_called_so():
    assert verdict(QUANTECON, "average", 2.0, {"gain": 2.0 + 1e-6}) == "agrees"
    assert verdict(QUANTECON, "average", 2.0, {"gain": 2.0 + 1e-3}) == "DISAGREES by 5.0e-04"
    assert verdict(QUANTECON, "average", 2.0, {"gain": np.nan}).startswith("DISAGREES")


def test_a_row_shows_the_wrong_answer_the_failure_and_the_faster_peer():
    numbers = {"gain": 2.1, "width": 0.1, "cpu": 1.0, "wall": 1.0, "peak": 9.0, "more": 1.0}
    shown = row(QUANTECON, "average", [Run(numbers)], 2.0, 4.0)
    assert shown[:4] == ["quantecon", "DISAGREES by 5.0e-02", "1.000", "**0.25**"]
    shown = row(QUANTECON, "average", [Run(numbers), Run(failure="out of memory")], 2.0, 4.0)
    assert shown[:3] == ["quantecon", "out of memory", ""]


def test_a_program_that_failed_or_takes_long_is_not_run_again():
    assert goes_on([])
    assert goes_on([Run({"wall": 1.0})])
    assert not goes_on([Run({"wall": 50.0})])
    assert not goes_on([Run(failure="not installed")])


@pytest.mark.parametrize(
    ("code", "printed", "complaints", "failure"),
    [
        (0, 'chatter\n{"cpu": 1.0}\n', "", ""),
        (1, "", "Traceback\nModuleNotFoundError: No module named 'x'", "not installed"),
        (1, "", "MemoryError: std::bad_alloc", "out of memory"),
        (-11, "", "", "failed: exit code -11"),
        (-24, "half", "", "not done in 120 s of CPU time"),
        (0, "Error: wrong discount", "", "failed: Error: wrong discount"),
        (3, '{"cpu": 1.0}', "late\ncrash", "failed: crash"),
    ],
)
def test_what_a_process_printed_is_a_result_or_a_failure(code, printed, complaints, failure):
    found = outcome(code, printed, complaints)
    assert found.failure == failure
    assert bool(found.numbers) == (not failure)


def test_a_process_past_its_time_is_ended_and_said_so(tmp_path):
    write(PROCESS, tmp_path / "it.npz")
    path = tmp_path / "it.npz"
    found = run(PROGRAMS["mdpcloud, arrays"], TASKS[3], path, path, seconds=0.01)
    assert found.failure == "not done in 0.01 s"


@pytest.mark.slow
def test_the_worker_measures_and_answers(tmp_path):
    write(PROCESS, tmp_path / "it.npz")
    program, path = PROGRAMS["mdpcloud, arrays"], tmp_path / "it.npz"
    found = run(program, TASKS[3], path, path)
    assert found.failure == ""
    assert verdict(program, "average", PROCESS.gain, found.numbers) == "agrees"
    assert found.numbers["cpu"] >= 0
    assert found.numbers["more"] <= found.numbers["peak"]


@pytest.mark.parametrize("text", ["", "# Top\n\n## Peers\n\nold\n\n### deep\n\n## Last\n\nkept\n"])
def test_a_section_is_replaced_and_the_rest_kept(text):
    once = replace_section(text, "Peers", "new\n\n### deeper\n\nrows")
    assert section(once, "Peers") == "new\n\n### deeper\n\nrows"
    assert replace_section(once, "Peers", "new\n\n### deeper\n\nrows") == once
    assert "old" not in once
    assert section(once, "Last") == section(text, "Last")
    assert once.startswith(text[:5])


def test_a_section_that_is_not_there_is_none():
    assert section("# Top\n\n### Peers\n", "Peers") is None


def test_every_task_and_peer_is_known():
    adapters = ROOT / "benchmarks" / "peers" / "adapters"
    for task in TASKS:
        for name in task.programs:
            program = PROGRAMS[name]
            assert task.name in program.error
            assert f"def {task.name}(" in (adapters / f"{program.adapter}.py").read_text()
    named = {requirement.split(">")[0] for requirement in peers()}
    assert named == {program.package for program in PROGRAMS.values()} - {"mdpcloud"}


def test_reading_an_instance_needs_no_mdpcloud():
    code = "import benchmarks.peers.worker, sys; sys.exit('mdpcloud' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], cwd=ROOT, check=False).returncode == 0
