"""Whatever an instance does, its answer is a record."""

from __future__ import annotations

import dataclasses
import datetime
import os
import pickle
import threading
from pathlib import Path
from typing import Any

import pytest

import mdpcloud as mc
from mdpcloud.study.records.record import why_unsound
from mdpcloud.study.running.work import Work, compute, compute_packed, packed, work_of
from mdpcloud.study.study import Study
from mdpcloud.study.tasks import Task
from tests.study.faulty import study_of

NODE = mc.systems.Node(servers=2, service_rate=1.0, abandonment_rate=0.5)
SYSTEM = mc.systems.CloudRouting((NODE, NODE), 3.0, outside_cost=0.4)


def _work(does: str, time_limit: float | None = None) -> Work:
    (one,) = study_of([does]).instances
    return work_of(one, time_limit)


def _compared(rule: Any, **options: Any) -> Work:
    (one,) = Study.of([({}, SYSTEM)], {"own": rule}, **options).instances
    return work_of(one)


def test_a_record_tells_what_came_out_and_where():
    before = datetime.datetime.now(datetime.UTC)
    work = _work("well")
    record = compute(work)
    assert why_unsound(record, work.key) is None
    assert record["status"] == "done"
    assert record["error"] is None
    assert record["result"] == {"rows": [{"policy": "a", "cost": 0.0}]}
    assert record["run"]["pid"] == os.getpid()
    started = datetime.datetime.fromisoformat(record["run"]["started"])
    assert abs((started - before).total_seconds()) < 5
    assert 0 <= record["run"]["elapsed"] < 5
    assert 0 <= record["run"]["cpu"] < 5
    assert {"host", "mdpcloud", "numpy", "scipy", "numba", "python"} < set(record["run"])


@pytest.mark.parametrize(
    ("does", "status", "words"),
    [
        ("raise", "failed", ["KeyError", "number 0", "faulty_rules.py", "_raise"]),
        ("input", "failed", ["InputError", "servers must be >= 1, not 0"]),
        ("exit", "failed", ["SystemExit", "3"]),
        ("nan", "failed", ["result.rows[0].cost is nan"]),
        ("inf", "failed", ["result.more[1] is -inf"]),
        ("lock", "failed", ["result.rows[0].cost", "lock"]),
        ("no rows", "failed", ["must return a mapping with 'rows'"]),
        ("bad rows", "failed", ["must be mappings"]),
        ("fill", "failed", ["MemoryError"]),
        ("unsolved", "not_converged", ["1000 iterations were not enough"]),
        ("unsolved alone", "not_converged", ["no bounds at all"]),
    ],
)
def test_what_goes_wrong_is_told_in_the_record(does, status, words):
    work = _work(does)
    record = compute(work)
    assert why_unsound(record, work.key) is None
    assert record["status"] == status
    for word in words:
        assert word in record["error"]


def test_an_error_is_short_and_of_what_any_file_can_hold():
    long, odd = (compute(_work(does))["error"] for does in ("mine", "surrogate"))
    assert ": Mine: xxx" in long
    assert "plugins" not in long
    assert 2000 < len(long) < 2100
    assert "characters)" in long
    assert "ValueError: no file \\x00a\\udcff" in odd


def test_rows_of_what_did_not_converge_are_kept():
    assert compute(_work("unsolved"))["result"] == {"rows": [{"policy": "a", "cost": 0.5}]}
    assert compute(_work("unsolved alone"))["result"] is None


def test_numbers_of_numpy_are_stored_as_those_of_python():
    (row,) = compute(_work("numbers"))["result"]["rows"]
    assert row == {"policy": "a", "cost": 0.5, "n": 3}
    assert [type(value) for value in row.values()] == [str, float, int]


def test_an_interrupt_is_no_failure():
    with pytest.raises(KeyboardInterrupt):
        compute(_work("interrupt"))


def test_a_workers_own_interrupt_is_a_failure():
    assert "KeyboardInterrupt" in compute_packed(packed(_work("interrupt")))


def test_a_rule_that_raises_is_named_with_its_file_and_line(tmp_path):
    path = tmp_path / "mine.py"
    path.write_text("def rule(x):\n    return 1 / 0\n")
    from mdpcloud.plugins import load

    record = compute(_compared(load(f"{path}:rule", Path())))
    assert record["status"] == "failed"
    assert "ZeroDivisionError" in record["error"]
    assert f"line 2 of {path}" in record["error"]


def test_functions_without_a_name_travel():
    work = _compared(lambda x: 0)
    record = compute_packed(packed(work))
    assert record["status"] == "done"
    assert {row["policy"] for row in record["result"]["rows"]} == {"optimum", "own"}


def test_what_cannot_be_sent_is_a_failure_of_its_own():
    lock = threading.Lock()
    work = dataclasses.replace(_work("well"), task=Task("locked", lambda _: lock))
    record = packed(work)
    assert record["status"] == "failed"
    assert "cannot be sent to another process" in record["error"]
    assert "lock" in record["error"]
    assert why_unsound(record, work.key) is None


def _broken() -> None:
    raise OSError("the file has gone")


class _Gone:
    def __reduce__(self):
        return _broken, ()


def test_what_cannot_be_unpacked_is_told_in_words():
    assert compute_packed(pickle.dumps(_Gone())) == "OSError: the file has gone"


def test_records_made_twice_differ_in_their_run_only():
    work = _compared(lambda x: 0)
    one, other = compute(work), compute_packed(packed(work))
    assert {**one, "run": 0} == {**other, "run": 0}


def test_the_record_names_the_package_that_computed_it(monkeypatch):
    """It is asked for before the work begins: later the package may have been edited."""
    asked: list[str] = []
    monkeypatch.setattr("mdpcloud.study.running.work.package_hash", lambda: str(len(asked)))
    work = _work("well")
    begun = dataclasses.replace(work, task=Task("asks", lambda _: asked.append("") or {"rows": []}))
    assert compute(begun)["sources"] == {**work.sources, "package": "0"}
