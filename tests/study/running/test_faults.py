"""Runs that are killed, interrupted, or cannot write lose nothing that was done."""

from __future__ import annotations

import contextlib
import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest

from mdpcloud.study.records.store import Store
from mdpcloud.study.running.run import load, run
from mdpcloud.study.study import Study
from tests.study.faulty import study_of, tries

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(os.name != "posix", reason="signals are those of POSIX"),
]
ROOT = Path(__file__).parents[3]
SECONDS = 60.0  # that no step here takes


@contextlib.contextmanager
def _started(
    store: Path,
    does: list[str],
    *,
    jobs: int = 2,
    resume: bool = True,
    folder: Any = "",
    **options: Any,
) -> Iterator[subprocess.Popen[str]]:
    """A run in a process group of its own."""
    words = [str(store), str(jobs), "resume" if resume else "", str(folder), *does]
    process = subprocess.Popen(
        [sys.executable, "-m", "tests.study.faulty", *words],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
        **options,
    )
    try:
        yield process
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.communicate()


def _until(process: subprocess.Popen[str], records: int) -> None:
    """Wait until a run has told of so many records."""
    while True:
        line = process.stdout.readline()
        assert line, process.stderr.read()
        if line[0].isdigit() and int(line.split()[0]) >= records:
            return


def _workers(process: subprocess.Popen[str]) -> list[psutil.Process]:
    found = psutil.Process(process.pid).children(recursive=True)
    return [one for one in found if any("LokyProcess" in word for word in one.cmdline())]


def _have_gone(workers: list[psutil.Process], seconds: float) -> bool:
    end = time.monotonic() + seconds
    while any(_is_alive(one) for one in workers) and time.monotonic() < end:
        time.sleep(0.02)
    return not any(_is_alive(one) for one in workers)


def _is_alive(process: psutil.Process) -> bool:
    try:
        return process.status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


def _without_runs(study: Study, store: Path) -> dict[str, Any]:
    return {key: {**one, "run": 0} for key, one in load(study, store).records.items()}


def test_killed_runs_lose_and_double_nothing(tmp_path):
    does = ["slowly"] * 12
    study, draw, done = study_of(does), random.Random(7), 0
    store, whole = tmp_path / "store", tmp_path / "whole"
    run(study, store=whole, backend="sequential")
    for alone in (False, True, False):
        with _started(store, does) as process:
            _until(process, done + 1)
            workers = _workers(process)
            time.sleep(draw.uniform(0.0, 0.1))
            done = len(Store(store).keys())
            if alone:
                process.kill()
                assert _have_gone(workers, 3)
            else:
                os.killpg(process.pid, signal.SIGKILL)
        assert done <= len(Store(store).keys()) < len(does)
        assert not Store(store).scan(Store(store).keys()).corrupt
    run(study, store=store, backend="sequential", resume=True)
    assert _without_runs(study, store) == _without_runs(study, whole)
    assert len(list((store / "records").iterdir())) == len(does)
    tables = [load(study, one).write(one)[0].read_bytes() for one in (store, whole)]
    assert tables[0] == tables[1]


@pytest.mark.parametrize(
    ("number", "jobs", "send"),
    [(signal.SIGINT, 2, os.killpg), (signal.SIGHUP, 2, os.kill), (signal.SIGTERM, 2, os.killpg)],
)
def test_an_interrupted_run_stops_soon_and_keeps_what_was_done(tmp_path, number, jobs, send):
    does = ["well", "well", *["wait"] * 4]
    with _started(tmp_path, does, jobs=jobs) as process:
        _until(process, 2)
        workers = _workers(process)
        send(process.pid, number)
        out, err = process.communicate(timeout=5)
        assert _have_gone(workers, 1)
    assert process.returncode == 130, err
    assert err == ""
    assert out.splitlines()[-1] == f"interrupted {number.name}"
    assert load(study_of(does), tmp_path).counts()["done"] == 2


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupt_while_workers_start_is_as_quiet(tmp_path, number):
    with _started(tmp_path, ["wait"] * 4) as process:
        _until(process, 0)
        while not (workers := _workers(process)):
            time.sleep(0.01)
        os.killpg(process.pid, number)
        out, err = process.communicate(timeout=5)
        assert _have_gone(workers, 1)
    assert (process.returncode, err) == (130, "")
    assert out.splitlines()[-1] == f"interrupted {number.name}"


def test_a_killed_worker_is_replaced_and_nobody_blamed(tmp_path):
    does = ["slowly"] * 12
    with _started(tmp_path, does) as process:
        _until(process, 2)
        _workers(process)[0].kill()
        out, err = process.communicate(timeout=SECONDS)
    assert process.returncode == 0, err
    assert "'done': 12" in out


def _small_files() -> None:
    import resource

    resource.setrlimit(resource.RLIMIT_FSIZE, (300, 300))


def test_a_record_that_cannot_be_written_stops_the_run(tmp_path):
    does = ["well"] * 3
    run(study_of(does), store=tmp_path, backend="sequential")
    more = [*does, *["slowly"] * 5]
    with _started(tmp_path, more, preexec_fn=_small_files) as process:
        out, err = process.communicate(timeout=SECONDS)
    assert process.returncode == 2, err
    assert "File too large" in out
    assert str(tmp_path) in out
    assert load(study_of(more), tmp_path).counts() == {
        "done": 3, "not_converged": 0, "failed": 0, "missing": 5,
    }  # fmt: skip
    assert len(list((tmp_path / "records").iterdir())) == 3


def test_two_runs_on_one_store_are_both_well(tmp_path):
    does, folder = ["slowly"] * 12, tmp_path / "begun"
    folder.mkdir()
    store = tmp_path / "store"
    with _started(store, does, folder=folder) as one:
        _until(one, 4)
        with _started(store, does, folder=folder) as other:
            for process in (one, other):
                out, err = process.communicate(timeout=SECONDS)
                assert process.returncode == 0, err
                assert "'done': 12" in out
    study = study_of(does, folder)
    assert load(study, store).counts()["done"] == 12
    assert len(list((store / "records").iterdir())) == 12
    assert sum(tries(one.scenario.system) for one in study.instances) <= 24
