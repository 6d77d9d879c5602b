"""What a run computes, keeps, tells and refuses."""

from __future__ import annotations

import itertools
import shutil
import signal
import threading
import time
from pathlib import Path
from typing import Any

import pytest

import mdpcloud as mc
from mdpcloud.errors import InputError
from mdpcloud.study.records.record import make_record, to_text
from mdpcloud.study.records.store import Store
from mdpcloud.study.reports.results import Results
from mdpcloud.study.running.run import load, run, store_of
from mdpcloud.study.running.work import work_of
from mdpcloud.study.study import Study
from tests.study.faulty import study_of, tries


def _run(study: Study, store: Path, **options: Any) -> Results:
    return run(study, store=store, backend="sequential", **options)


def _tries(study: Study) -> list[int]:
    return [tries(one.scenario.system) for one in study.instances]


@pytest.fixture
def begun(tmp_path: Path) -> Path:
    """Folder in which instances count how often they were begun."""
    folder = tmp_path / "begun"
    folder.mkdir()
    return folder


@pytest.fixture
def store(tmp_path: Path) -> Path:
    return tmp_path / "store"


def _replace(store: Path, study: Study, number: int, **changes: Any) -> None:
    """Change the record of an instance."""
    key = study.instances[number].key
    old = dict(Store(store).read(key))
    old.pop("checksum", None)
    new = {**old, **changes}
    parts = {name: new[name] for name in ("result", "error", "run")}
    Store(store).write(make_record(new["content"], new["sources"], new["status"], **parts))


def test_every_instance_has_a_record(store):
    study = study_of(["well", "raise", "unsolved"])
    results = _run(study, store)
    assert results.counts() == {"done": 1, "not_converged": 1, "failed": 1, "missing": 0}
    assert set(Store(store).keys()) == set(study.unique)
    assert Store(store).scan(study.unique).records == dict(results.records)


def test_progress_is_told_at_the_start_and_after_each_record(store):
    seen: list[tuple[int, ...]] = []
    study = study_of(["well", "raise", "well"])
    _run(study, store, progress=lambda *counts: seen.append(counts))
    assert seen == [(0, 3, 0), (1, 3, 0), (2, 3, 1), (3, 3, 1)]
    seen.clear()
    _run(study, store, resume=True, progress=lambda *counts: seen.append(counts))
    assert seen == [(3, 3, 1)]


def test_equal_instances_are_computed_once(store, begun):
    node = mc.systems.Node(servers=1, service_rate=1.0, abandonment_rate=0.5)
    system = mc.systems.CloudRouting((node,), 1.0, outside_cost=0.5)
    study = Study.of([({"take": take}, system) for take in range(3)])
    seen: list[tuple[int, ...]] = []
    results = _run(study, store, progress=lambda *counts: seen.append(counts))
    assert results.counts()["done"] == 3
    assert seen[-1] == (1, 1, 0)


def test_records_are_not_touched_without_being_told_to(store):
    study = study_of(["well"])
    _run(study, store)
    with pytest.raises(InputError, match="has records already; resume") as caught:
        _run(study, store)
    assert str(store) in str(caught.value)
    with pytest.raises(InputError, match="has records already"):
        _run(study_of(["raise"]), store)


def test_resuming_computes_what_is_missing_only(store, begun):
    _run(study_of(["well", "raise"], begun), store)
    study = study_of(["well", "raise", "well"], begun)
    assert _run(study, store, resume=True).counts()["done"] == 2
    assert _tries(study) == [1, 1, 1]


def test_resuming_an_empty_store_is_a_run(store):
    assert _run(study_of(["well"]), store, resume=True).counts()["done"] == 1


@pytest.mark.parametrize("keep_old", [False, True])
def test_records_of_other_sources_are_told_and_computed_again_unless_kept(store, begun, keep_old):
    study = study_of(["well", "well"], begun)
    _run(study, store)
    other = {**Store(store).read(study.instances[1].key)["sources"], "package": "another"}
    _replace(store, study, 1, sources=other, result={"rows": [{"policy": "a", "cost": 9.0}]})
    said: list[str] = []
    results = _run(study, store, resume=True, keep_old=keep_old, say=said.append)
    assert _tries(study) == [1, 1 if keep_old else 2]
    cost = results.records[study.instances[1].key]["result"]["rows"][0]["cost"]
    assert cost == (9.0 if keep_old else 1 / 7)
    assert said[0].startswith("1 record made by other sources, " + ("kept" if keep_old else "comp"))
    assert "instance 1 (number 1)" in said[1]
    assert study.instances[1].key[:12] in said[1]


def test_many_records_of_other_sources_are_told_in_few_lines(store):
    study = study_of(["well"] * 30)
    _run(study, store)
    for number in range(30):
        _replace(store, study, number, sources={"mdpcloud": "0", "package": "x", "own": {}})
    said: list[str] = []
    _run(study, store, resume=True, say=said.append)
    assert said[0].startswith("30 records made by other sources")
    assert said[-1] == "  and 10 more"
    assert len(said) == 22


def test_a_changed_task_is_noticed(store, tmp_path):
    path = tmp_path / "mine.py"
    costs = []
    for cost in (1.0, 2.0):
        path.write_text(f"def task(_):\n    return {{'rows': [{{'cost': {cost}}}]}}\n")
        study = study_of(["well"], task=f"{path}:task")
        results = _run(study, store, resume=True)
        costs += [record["result"]["rows"][0]["cost"] for record in results.records.values()]
    assert costs == [1.0, 2.0]


def test_corrupt_records_are_set_aside_told_and_computed_again(store, begun):
    study = study_of(["well", "well"], begun)
    before = _run(study, store).rows()
    path = Store(store).path(study.instances[0].key)
    path.write_bytes(path.read_bytes()[:100])
    said: list[str] = []
    assert _run(study, store, resume=True, say=said.append).rows() == before
    assert _tries(study) == [2, 1]
    assert said[0].startswith("corrupt record set aside")
    assert list((store / "corrupt").iterdir())


@pytest.mark.parametrize("retry", [False, True])
def test_what_failed_stays_unless_it_is_to_be_retried(store, begun, retry):
    study = study_of(["well", "raise", "unsolved"], begun)
    _run(study, store)
    said: list[str] = []
    results = _run(study, store, resume=True, retry_failed=retry, say=said.append)
    assert _tries(study) == ([1, 2, 2] if retry else [1, 1, 1])
    assert results.counts() == {"done": 1, "not_converged": 1, "failed": 1, "missing": 0}
    assert said[0].startswith("2 records of instances that failed or did not converge")


def test_stray_temporary_files_are_removed(store):
    study = study_of(["well"])
    _run(study, store)
    stray = store / "records" / ".0123456789abcdef.elsewhere.tmp"
    stray.write_text("{")
    said: list[str] = []
    _run(study, store, resume=True, say=said.append)
    assert not stray.exists()
    assert said == ["1 temporary file of earlier runs removed"]


@pytest.mark.parametrize("again", [False, True])
def test_what_another_run_has_computed_meanwhile_is_taken(store, begun, tmp_path, again):
    study = study_of(["well", "well", "well"], begun)
    last = study.instances[2]
    _run(study_of(["well", "well", "well"], begun), tmp_path / "other")
    made = Store(tmp_path / "other").read(last.key)
    if again:
        _run(study, store)
        _replace(store, study, 0, status="failed", result=None, error="x")
        _replace(store, study, 2, status="failed", result=None, error="x")
    before = _tries(study)

    def meanwhile(done: int, *_: int) -> None:
        if not Store(store).has(last.key) or Store(store).read(last.key)["status"] == "failed":
            Store(store).write(made)

    seen: list[tuple[int, ...]] = []
    results = _run(
        study, store, resume=True, retry_failed=True,
        progress=lambda *counts: (seen.append(counts), meanwhile(*counts)),
    )  # fmt: skip
    assert results.records[last.key] == made
    assert _tries(study)[2] == before[2]
    assert seen[-1] == (3, 3, 0)


def test_loading_computes_nothing(store, begun):
    study = study_of(["well", "well"], begun)
    with pytest.raises(InputError, match="is no store"):
        load(study, store)
    first = _run(study_of(["well"], begun), store)
    results = load(study, store)
    assert results.counts() == {"done": 1, "not_converged": 0, "failed": 0, "missing": 1}
    assert dict(results.records) == dict(first.records)
    assert _tries(study) == [1, 0]


def test_the_store_stands_beside_the_file(tmp_path):
    study = study_of(["well"])
    object.__setattr__(study, "path", tmp_path / "loads.toml")
    assert store_of(study) == tmp_path / "loads.results"
    assert run(study, backend="sequential").counts()["done"] == 1
    assert load(study).counts()["done"] == 1


def test_a_study_without_a_file_needs_a_store():
    with pytest.raises(InputError, match="its store must be given"):
        run(study_of(["well"]), backend="sequential")


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"time_limit": 0.0}, "time_limit must be a finite number of seconds > 0, not 0.0"),
        ({"time_limit": float("nan")}, "time_limit must be a finite number"),
        ({"time_limit": "soon"}, "time_limit must be a finite number of seconds > 0, not 'soon'"),
        ({"jobs": 0}, "jobs must be an integer >= 1"),
        ({"backend": "rsy"}, "there is no backend 'rsy'"),
    ],
)
def test_wrong_arguments_are_refused_before_anything_is_made(store, options, words):
    with pytest.raises(InputError, match=words):
        run(study_of(["well"]), store=store, **options)
    assert not store.exists()


def test_a_time_limit_is_for_each_instance(store, monkeypatch):
    monkeypatch.setattr("mdpcloud.study.running.time_limits.after", lambda limit: limit)
    results = _run(study_of(["wait", "well", "loop"]), store, time_limit=0.1)
    assert results.counts() == {"done": 1, "not_converged": 2, "failed": 0, "missing": 0}


def test_an_interrupt_passes_on_and_leaves_what_was_done(store):
    handlers = [signal.getsignal(one) for one in (signal.SIGINT, signal.SIGTERM)]

    def stop(done: int, *_: int) -> None:
        if done == 2:
            signal.raise_signal(signal.SIGTERM)

    study = study_of(["well"] * 4)
    with pytest.raises(KeyboardInterrupt, match="SIGTERM"):
        _run(study, store, progress=stop)
    assert load(study, store).counts() == {
        "done": 2, "not_converged": 0, "failed": 0, "missing": 2,
    }  # fmt: skip
    assert [signal.getsignal(one) for one in (signal.SIGINT, signal.SIGTERM)] == handlers


def test_records_that_are_deleted_meanwhile_are_written_again(store):
    study = study_of(["well"] * 3)

    def delete(done: int, *_: int) -> None:
        if done == 2:
            shutil.rmtree(store)

    _run(study, store, progress=delete)
    assert load(study, store).counts()["done"] == 3


def test_a_run_in_another_thread_is_one_too(store):
    found: list[Results] = []
    thread = threading.Thread(target=lambda: found.append(_run(study_of(["well"]), store)))
    thread.start()
    thread.join(10)
    assert found[0].counts()["done"] == 1


def test_an_instance_costs_the_study_less_than_five_milliseconds(store):
    times: list[float] = []
    _run(study_of(["well"] * 100), store, progress=lambda *_: times.append(time.process_time()))
    steps = sorted(after - before for before, after in itertools.pairwise(times))
    assert steps[len(steps) // 2] < 5e-3


@pytest.mark.slow
def test_ten_thousand_records_are_resumed_in_seconds(store):
    study = study_of(["well"] * 10_000)
    folder, sources = Store(store), work_of(study.instances[0]).sources
    folder.prepare()
    for key, one in study.unique.items():
        result = {"rows": [{"policy": "a", "cost": 0.5}]}
        record = make_record(one.content, sources, "done", result=result)
        folder.path(key).write_text(to_text(record))
    started = time.process_time()
    results = _run(study_of(["well"] * 10_000), store, resume=True)
    assert results.counts()["done"] == 10_000
    assert len(results.rows()) == 10_000
    assert time.process_time() - started < 5
