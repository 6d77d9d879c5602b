"""Results of studies: rows, their files, what is the same however they were computed."""

import csv
import io
import os
import time
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import mdpcloud as mc
from mdpcloud.errors import InputError
from mdpcloud.study import Outputs, Study
from mdpcloud.study.records.record import FAILED, NOT_CONVERGED
from mdpcloud.study.reports.parquet import as_parquet
from mdpcloud.study.reports.results import Results, as_csv
from tests.study.made import NODE, Point, policy, results_of, system

GOOD = Point({"load": 0.5}, [policy("optimum", None), policy("a", 0.25)])
BAD = Point({"load": 1.0}, status=FAILED, error="the worker was killed")
PARTIAL = Point(
    {"load": 1.5}, [policy("a", 0.5, status="iterations")], NOT_CONVERGED, "no end in sight"
)
ABSENT = Point({"load": 2.0}, computed=False)


def read(raw: bytes) -> list[dict[str, str]]:
    return [*csv.DictReader(io.StringIO(raw.decode(), newline=""))]


# --- rows -----------------------------------------------------------------------------------------


def test_rows_stand_in_the_order_of_the_study_with_labels_first() -> None:
    results = results_of([GOOD, BAD, PARTIAL, ABSENT])
    rows = results.rows()
    assert [(row["instance"], row["load"], row["policy"]) for row in rows] == [
        (0, 0.5, "optimum"),
        (0, 0.5, "a"),
        (1, 1.0, None),
        (2, 1.5, "a"),
    ]
    names = [*rows[0]]
    assert names[:4] == ["instance", "load", "policy", "cost"]
    assert names[-3:] == ["status", "error", "key"]
    assert all([*row] == names for row in rows)


def test_an_instance_without_results_has_one_empty_row_that_says_why() -> None:
    row = results_of([GOOD, BAD]).rows()[-1]
    assert (row["status"], row["error"]) == ("failed", "the worker was killed")
    assert row["cost"] is row["gap"] is None


def test_rows_of_an_instance_that_did_not_converge_say_so() -> None:
    row = results_of([PARTIAL]).rows()[0]
    assert (row["status"], row["error"], row["gap"]) == ("iterations", "no end in sight", 0.5)


def test_instances_are_counted_by_their_status() -> None:
    counts = results_of([GOOD, BAD, PARTIAL, ABSENT]).counts()
    assert counts == {"done": 1, "not_converged": 1, "failed": 1, "missing": 1}


def test_instances_of_the_same_content_have_rows_of_their_own() -> None:
    study = Study.of([({"name": "one"}, system(0)), ({"name": "other"}, system(0))])
    record = next(iter(results_of([GOOD]).records.values()))
    rows = Results(study, {study.instances[0].key: record}).rows()
    assert [row["name"] for row in rows] == ["one", "one", "other", "other"]
    assert rows[1]["cost"] == rows[3]["cost"]


def test_nothing_of_the_run_is_in_the_rows() -> None:
    row = results_of([GOOD]).rows()[0]
    assert not {"host", "elapsed", "started", "run"} & {*row}


def test_a_status_of_the_record_stands_where_the_task_gives_none() -> None:
    assert results_of([Point({}, [{"violations": 3}])]).rows()[0]["status"] == "done"


def test_a_column_of_the_task_with_the_name_of_a_label_is_kept_under_another() -> None:
    row = results_of([Point({"load": 0.5}, [{"load": 0.75, "error": 0.1}])]).rows()[0]
    assert (row["load"], row["result_load"], row["result_error"]) == (0.5, 0.75, 0.1)
    assert row["error"] is None


def test_parameters_and_lists_are_text() -> None:
    given_row = {"parameter": {"reserved": 2.0}, "notes": ["one", "two"], "deep": [1, [2]]}
    row = results_of([Point({}, [given_row])]).rows()[0]
    assert (row["parameter"], row["notes"], row["deep"]) == ("reserved 2", "one; two", "[1,[2]]")


def test_what_a_row_becomes_is_not_changed_by_its_reader() -> None:
    results = results_of([GOOD])
    results.rows()[0]["load"] = 7.0
    assert results.rows()[0]["load"] == 0.5


def test_a_study_without_records_has_the_columns_of_its_labels() -> None:
    results = results_of([ABSENT])
    assert results.rows() == []
    assert [*results.columns] == ["instance", "load", "status", "error", "key"]


# --- measures -------------------------------------------------------------------------------------

MEASURED = policy("a", 0.25, measures={"mean_jobs": [1.0, 1.5], "mean_queue": [None, 2.0]})


def test_wanted_measures_are_columns_with_their_bounds() -> None:
    outputs = Outputs(measures=("mean_jobs", "mean_queue"))
    first, second = results_of([Point({}, [policy("optimum", None), MEASURED])], outputs).rows()
    assert first["mean_jobs"] is None
    assert [second[f"mean_jobs{end}"] for end in ("", "_lower", "_upper")] == [1.25, 1.0, 1.5]
    assert [second[f"mean_queue{end}"] for end in ("", "_lower", "_upper")] == [None, None, 2.0]


@pytest.mark.parametrize(
    ("row", "told"),
    [
        (MEASURED, "did you mean 'mean_jobs'"),
        (policy("a", 0.25), "the task gives none"),
    ],
)
def test_a_measure_that_no_row_has_is_refused(row: dict[str, Any], told: str) -> None:
    with pytest.raises(InputError, match=told):
        results_of([Point({}, [row])], Outputs(measures=("mean_job",))).rows()


def test_unknown_measures_list_those_that_there_are() -> None:
    with pytest.raises(InputError, match="there are mean_jobs, mean_queue"):
        results_of([Point({}, [MEASURED])], Outputs(measures=("xyz",))).rows()


def test_measures_are_not_missed_where_nothing_is_done() -> None:
    rows = results_of([BAD], Outputs(measures=("mean_jobs",))).rows()
    assert rows[0]["mean_jobs"] is None


# --- files ----------------------------------------------------------------------------------------

CELLS = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-(2**70), 2**70),
    st.floats(allow_nan=False, allow_infinity=False),
    st.text(st.characters(codec="utf-8")),
)
NUMBERS = st.one_of(st.none(), st.integers(-9, 9), st.floats(-1.0, 1.0))
LINES = st.integers(1, 5).flatmap(
    lambda n: st.lists(
        st.one_of(
            st.lists(CELLS, min_size=n, max_size=n),
            st.lists(NUMBERS, min_size=n, max_size=n),
            st.lists(st.one_of(st.none(), st.integers()), min_size=n, max_size=n),
        ),
        min_size=2,
        max_size=4,
    )
)


def spelt(cell: Any) -> str:
    return "" if cell is None else repr(cell) if isinstance(cell, float) else str(cell)


@settings(max_examples=40, deadline=None)
@given(LINES)
def test_a_csv_file_gives_back_every_cell(columns: list[list[Any]]) -> None:
    named = {f"c{i}": cells for i, cells in enumerate(columns)}
    found = read(as_csv(named))
    for name, cells in named.items():
        assert [row[name] for row in found] == [spelt(cell) for cell in cells]
        for row, cell in zip(found, cells, strict=True):
            assert not isinstance(cell, float) or float(row[name]) == cell


@settings(max_examples=40, deadline=None)
@given(LINES)
def test_a_parquet_file_has_the_cells_of_the_csv_file(columns: list[list[Any]]) -> None:
    parquet = pytest.importorskip("pyarrow.parquet")
    pyarrow = pytest.importorskip("pyarrow")
    named = {f"c{i}": cells for i, cells in enumerate(columns)}
    raw = as_parquet(named)
    table = parquet.read_table(pyarrow.BufferReader(raw)).to_pydict()
    for name, cells in named.items():
        texts = [row[name] for row in read(as_csv(named))]
        for text, cell, there in zip(texts, table[name], cells, strict=True):
            assert (cell is None) == (there is None)
            assert cell is None or text == spelt(cell) or float(text) == cell


def test_a_parquet_file_has_types_and_nulls() -> None:
    pyarrow = pytest.importorskip("pyarrow")
    parquet = pytest.importorskip("pyarrow.parquet")
    columns: dict[str, list[Any]] = {
        "whole": [1, None],
        "real": [1, 2.5],
        "truth": [True, None],
        "text": ["a", 2.0],
        "none": [None, None],
    }
    schema = parquet.read_schema(pyarrow.BufferReader(as_parquet(columns)))
    assert [str(kind) for kind in schema.types] == ["int64", "double", "bool", "string", "null"]


def test_names_of_files_that_are_not_utf_8_are_written_out(tmp_path: Path) -> None:
    rows = [{"policy": "a\udcff", "many": ["b\udcff", "c"], "n\udcff": 1}]
    results = results_of([Point({"load": 0.5}, rows)])
    written = results.write(tmp_path)
    assert written
    (row,) = read(written[0].read_bytes())
    assert row["policy"] == "a\\udcff"
    assert row["many"] == "b\\udcff; c"
    assert row["n\\udcff"] == "1"


def test_lines_end_as_rfc_4180_says() -> None:
    assert as_csv({"a": ['say "b"', "c,d"]}) == b'a\r\n"say ""b"""\r\n"c,d"\r\n'


def test_files_are_the_same_to_the_byte_however_records_came(tmp_path: Path) -> None:
    results = results_of([GOOD, BAD, PARTIAL])
    backwards = Results(results.study, dict(reversed(results.records.items())))
    written = [one.write(tmp_path / name) for one, name in ((results, "a"), (backwards, "b"))]
    assert written[0][0].name == "results.csv"
    for one, other in zip(*written, strict=True):
        assert one.read_bytes() == other.read_bytes()


def test_there_is_no_parquet_file_without_pyarrow(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(__import__("sys").modules, "pyarrow", None)
    assert [path.name for path in results_of([GOOD]).write(tmp_path)] == ["results.csv"]


def test_a_file_that_cannot_be_written_stays_as_it_was(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    results_of([GOOD]).write(tmp_path)
    before = {path.name: path.read_bytes() for path in tmp_path.iterdir()}

    def full(number: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="No space left"):
        results_of([GOOD, BAD]).write(tmp_path)
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == before


def test_ten_thousand_rows_are_written_in_a_second_or_two(tmp_path: Path) -> None:
    rows = [policy(name, 1 / 3, 1e-9, optimum=1.0) for name in "abcde"] * 10
    results = results_of([Point({"load": i / 7}, rows) for i in range(200)])
    begun = time.process_time()
    results.write(tmp_path)
    assert time.process_time() - begun < 3.0


# --- the comparison's rows ------------------------------------------------------------------------


def compared(tolerance: float) -> Results:
    node = mc.systems.Node(servers=2, service_rate=0.8, abandonment_rate=0.5)
    routing = mc.systems.CloudRouting((NODE, node), 2.5, outside_cost=0.4)
    study = Study.of([({}, routing)], tolerance=tolerance)
    one = study.instances[0]
    result = study.task.run(one.scenario)
    return Results(study, {one.key: {"status": "done", "error": None, "result": result}})


def test_each_row_of_a_comparison_tells_of_the_optimum_and_bounds_of_all_gaps() -> None:
    loose, sharp = compared(1e-2).rows(), compared(1e-11).rows()
    assert [row["policy"] for row in loose] == [row["policy"] for row in sharp]
    assert loose[0]["policy"] == "optimum"
    optimum = sharp[0]["cost"]
    for row, exact in zip(loose, sharp, strict=True):
        assert row["optimum_lower"] <= optimum <= row["optimum_upper"]
        for gap in ("gap", "absolute_gap", "profit_gap"):
            if row["policy"] != "optimum":
                assert row[f"{gap}_lower"] <= exact[gap] <= row[f"{gap}_upper"]
                assert row[f"{gap}_lower"] <= row[gap] <= row[f"{gap}_upper"]
            else:
                assert row[gap] is None


def test_the_bounds_of_gaps_are_rounded_outwards() -> None:
    for row in compared(1e-6).rows()[1:]:
        ends = [Fraction(row[end]) for end in ("lower", "upper")]
        best = [Fraction(row[f"optimum_{end}"]) for end in ("lower", "upper")]
        gaps = [cost - optimum for cost in ends for optimum in best]
        parts = [(c - o) / (Fraction(2.5) - o) for c in ends for o in best]
        for name, exact in (("absolute_gap", gaps), ("profit_gap", parts)):
            assert row[f"{name}_lower"] <= min(exact) <= max(exact) <= row[f"{name}_upper"]
