"""Every engine gives a record for every work, whatever happens to its processes."""

from __future__ import annotations

import dataclasses
import itertools
import threading
import time

import psutil
import pytest

from mdpcloud.errors import InputError, MdpcloudError
from mdpcloud.study.records.record import why_unsound
from mdpcloud.study.running import local_engine
from mdpcloud.study.running.engines import engine_for
from mdpcloud.study.running.local_engine import LokyEngine, SequentialEngine
from mdpcloud.study.running.supply import Supply, cores
from mdpcloud.study.running.work import Work, work_of
from mdpcloud.study.study import Study
from mdpcloud.study.tasks import Task
from tests.study.faulty import RULES, study_of, tries

ENGINES = [
    pytest.param(SequentialEngine(), id="sequential"),
    pytest.param(LokyEngine(1), id="one process", marks=pytest.mark.slow),
    pytest.param(LokyEngine(2), id="two processes", marks=pytest.mark.slow),
]
PROCESSES = [1, 2]


def _works(study: Study) -> list[Work]:
    return [work_of(one) for one in study.unique.values()]


def _workers() -> list[psutil.Process]:
    """Workers of this process that are alive."""
    return [one for one in psutil.Process().children(recursive=True) if "LokyProcess" in _line(one)]


def _line(process: psutil.Process) -> str:
    try:
        return " ".join(process.cmdline())
    except psutil.Error:
        return ""


@pytest.mark.parametrize("engine", ENGINES)
def test_every_work_has_one_record(engine):
    does = ["well", "raise", "unsolved", "nan", "well", "exit", "threads", "well"]
    *works, last = _works(study_of(does))
    lock = threading.Lock()
    works = [dataclasses.replace(last, task=Task("locked", lambda _: lock)), *works]
    records = list(engine.records(works))
    assert sorted(record["key"] for record in records) == sorted(work.key for work in works)
    assert all(why_unsound(record, record["key"]) is None for record in records)
    by_key = {record["key"]: record["status"] for record in records}
    assert [by_key[work.key] for work in works] == [
        "failed", "done", "failed", "not_converged", "failed", "done", "failed", "done",
    ]  # fmt: skip
    if not isinstance(engine, SequentialEngine):
        rows = next(one["result"]["rows"] for one in records if one["key"] == works[-1].key)
        assert rows == [{"OMP_NUM_THREADS": "1", "NUMBA_NUM_THREADS": "1"}]
    assert not _workers()


@pytest.mark.parametrize("engine", ENGINES)
def test_no_works_are_no_records(engine):
    assert list(engine.records([])) == []


@pytest.mark.slow
@pytest.mark.parametrize("jobs", PROCESSES)
def test_works_are_taken_when_there_is_a_place_and_closing_ends_the_workers(jobs):
    taken: list[Work] = []
    works = _works(study_of([*["well"] * 8, *["wait"] * 8]))
    records = LokyEngine(jobs).records(taken.append(work) or work for work in works)
    assert len([next(records) for _ in range(8)]) == 8
    assert len(taken) <= 8 + 3 * jobs
    assert _workers()
    records.close()
    assert not _workers()


@pytest.mark.slow
@pytest.mark.parametrize("jobs", PROCESSES)
def test_a_work_that_kills_its_worker_twice_fails_and_no_other_does(jobs, tmp_path):
    """Nor is any other computed again."""
    study = study_of(["die first", "die", "slowly", "well"], tmp_path)
    works = _works(study)
    records = {record["key"]: record for record in LokyEngine(jobs).records(works)}
    assert len(records) == len(works)
    found = [records[work.key] for work in works]
    assert [one["status"] for one in found] == ["done", "failed", "done", "done"]
    assert found[1]["error"] == "it killed its worker twice (signal 9)"
    assert [tries(one.scenario.system) for one in study.instances] == [2, 2, 1, 1]
    assert not _workers()


@pytest.mark.slow
def test_what_nothing_stops_ends_with_its_worker_and_is_not_tried_again(tmp_path):
    study = study_of(["stubborn for ever", "hold", "well"], tmp_path)
    works = [work_of(one, 0.1) for one in study.unique.values()]
    records = {record["key"]: record for record in LokyEngine(2).records(works)}
    found = [records[work.key] for work in works]
    assert [one["status"] for one in found] == ["not_converged", "not_converged", "done"]
    told = "had to be killed, since it went on after the time limit of 0.1 s"
    assert [one["error"] for one in found[:2]] == [told] * 2
    assert [tries(one.scenario.system) for one in study.instances] == [1, 1, 1]


@pytest.mark.slow
def test_a_worker_that_is_killed_as_it_starts_is_started_anew():
    works = _works(study_of(["slowly"] * 3))
    killer = threading.Thread(target=_kill_the_first_worker)
    killer.start()
    records = list(LokyEngine(1).records(works))
    killer.join()
    assert [one["status"] for one in records] == ["done"] * 3


def _kill_the_first_worker() -> None:
    while not (workers := _workers()):
        time.sleep(0.01)
    workers[0].kill()


@pytest.mark.slow
def test_a_file_that_is_edited_meanwhile_stops_the_run_and_no_instance_is_to_blame(tmp_path):
    path = tmp_path / "mine.py"
    path.write_bytes(RULES.read_bytes())
    works = _works(study_of(["well", "well"], task=f"{path}:task"))
    path.write_bytes(path.read_bytes() + b"#")
    with pytest.raises(InputError, match=r"file .*mine.py has changed"):
        list(LokyEngine(1).records(works))


@pytest.mark.slow
def test_there_are_no_more_workers_than_works():
    records = LokyEngine(8).records(_works(study_of(["well", "wait"])))
    next(records)
    assert len(_workers()) == 2
    records.close()


@pytest.mark.slow
def test_a_work_that_leaves_is_told_by_its_exit_code():
    (record,) = LokyEngine(1).records(_works(study_of(["leave"])))
    assert record["error"] == "it killed its worker twice (exit code 7)"


@pytest.mark.slow
def test_a_worker_that_does_not_even_start_is_nobodys_fault(monkeypatch):
    monkeypatch.setattr(local_engine, "_workers", lambda: {"initializer": _no_start})
    with pytest.raises(MdpcloudError, match="workers die as they start"):
        list(LokyEngine(1).records(_works(study_of(["well"]))))


def _no_start() -> None:
    raise OSError("no place left")


def test_a_supply_remembers_what_is_out():
    works = _works(study_of(["well"] * 3))
    supply = Supply(works)
    handed = list(itertools.islice(iter(supply), 2))
    assert supply.suspects() == handed
    assert not supply.exhausted
    record = supply.record(handed[0][0], "it vanished")
    assert (record["status"], record["error"]) == ("failed", "it vanished")
    assert supply.suspects() == handed[1:]


def test_there_are_as_many_jobs_as_cores():
    assert 1 <= cores() <= psutil.cpu_count()
    assert engine_for("loky", None, None) == LokyEngine(None)


@pytest.mark.parametrize(
    ("backend", "jobs", "scheduler", "words"),
    [
        ("lokky", None, None, "there is no backend 'lokky'; did you mean 'loky'?"),
        ("threads", None, None, "there are loky, dask, sequential"),
        ("loky", 0, None, "jobs must be an integer >= 1, not 0"),
        ("loky", 2.0, None, "jobs must be an integer >= 1, not 2.0"),
        ("loky", None, "tcp://127.0.0.1:1", "a scheduler is for the backend 'dask'"),
        ("sequential", 2, None, "one instance at a time, not 2"),
    ],
)
def test_wrong_engines_are_refused(backend, jobs, scheduler, words):
    with pytest.raises(InputError, match=words.replace("?", r"\?")):
        engine_for(backend, jobs, scheduler)
