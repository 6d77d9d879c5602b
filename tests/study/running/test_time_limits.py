"""Limits of time: soft for solvers, hard for what does not listen."""

from __future__ import annotations

import dataclasses
import signal
import threading
import time
from typing import Any

import pytest

import mdpcloud as mc
from mdpcloud.study.running.time_limits import TimeUp, after, stopped_after, within
from mdpcloud.study.running.work import compute, work_of
from mdpcloud.study.study import Study
from tests.study.faulty import study_of

NODE = mc.systems.Node(servers=20, service_rate=1.0, abandonment_rate=0.3)


@pytest.fixture
def quick(monkeypatch):
    """The hard limit is the soft one."""
    monkeypatch.setattr("mdpcloud.study.running.time_limits.after", lambda limit: limit)
    monkeypatch.setattr("mdpcloud.study.running.time_limits.AGAIN", 0.05)


def _scenario(**solve: Any) -> Any:
    (one,) = Study.of(
        [({}, mc.systems.CloudRouting((NODE,) * 3, 60.0, outside_cost=0.5))]
    ).instances
    changed = dataclasses.replace(one.scenario.solve, **solve)
    return dataclasses.replace(one.scenario, solve=changed)


@pytest.mark.parametrize(
    ("own", "given", "least"), [(None, 2.0, 2.0), (1.0, 2.0, 1.0), (3.0, 2.0, 2.0)]
)
def test_the_shorter_limit_holds(own, given, least):
    assert within(_scenario(time_limit=own), given).solve.time_limit == least
    assert within(_scenario(time_limit=own), None).solve.time_limit == own
    assert within(_scenario(), given).simulate.time_limit == given


def test_an_instance_takes_one_thread():
    found = within(_scenario(threads=4), None)
    assert (found.solve.threads, found.simulate.n_jobs) == (1, 1)


def test_limits_do_not_change_the_key():
    (one,) = study_of(["well"]).instances
    assert work_of(one, 2.0).key == work_of(one).key == one.key
    assert work_of(one, 2.0).content == work_of(one).content


def test_solvers_stop_by_themselves_with_bounds():
    (one,) = Study.of([({}, _scenario().system)], ["individually_optimal"]).instances
    started = time.monotonic()
    record = compute(work_of(one, 0.05))
    assert time.monotonic() - started < after(0.05) + 1
    assert record["status"] == "not_converged"
    assert "time limit" in record["error"]


@pytest.mark.parametrize("does", ["loop", "wait", "stubborn"])
@pytest.mark.usefixtures("quick")
def test_code_that_does_not_listen_is_stopped(does):
    (one,) = study_of([does]).instances
    started = time.monotonic()
    record = compute(work_of(one, 0.1))
    assert time.monotonic() - started < 1
    assert record["status"] == "not_converged"
    assert record["error"] == "stopped, since it went on after the time limit of 0.1 s"
    assert record["result"] is None


@pytest.mark.usefixtures("quick")
def test_loops_are_stopped_in_other_threads_too():
    (one,) = study_of(["loop"]).instances
    found: list[Any] = []
    thread = threading.Thread(target=lambda: found.append(compute(work_of(one, 0.1))))
    thread.start()
    thread.join(5)
    assert found[0]["error"] == "stopped, since it went on after the time limit of 0.1 s"


@pytest.mark.usefixtures("quick")
def test_what_ends_in_time_is_left_alone():
    handler = signal.getsignal(signal.SIGALRM)
    for _ in range(100):
        with stopped_after(0.05):
            pass
    time.sleep(0.1)
    assert signal.getsignal(signal.SIGALRM) is handler


@pytest.mark.usefixtures("quick")
def test_the_callers_own_alarm_comes_later_as_before():
    seen: list[int] = []
    before = signal.signal(signal.SIGALRM, lambda *_: seen.append(1))
    old = signal.setitimer(signal.ITIMER_REAL, 0.4)
    try:
        with pytest.raises(TimeUp), stopped_after(0.1):
            time.sleep(5)
        assert not seen
        time.sleep(0.5)
        assert seen
    finally:
        signal.setitimer(signal.ITIMER_REAL, *old)
        signal.signal(signal.SIGALRM, before)


def test_the_hard_limit_leaves_time_for_the_solvers():
    assert after(10.0) > 15.0
