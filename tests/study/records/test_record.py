"""The record of an instance: the same in memory and in its file, and told from anything else."""

import enum
import json
import math
import random
import struct
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mdpcloud.errors import InputError
from mdpcloud.laws import Deterministic, Erlang, Exponential
from mdpcloud.study.records.identity import canonical, key_of
from mdpcloud.study.records.record import (
    DONE,
    FAILED,
    from_text,
    is_intact,
    make_record,
    plain,
    to_text,
    why_unsound,
)

atoms = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False)
texts = st.text()  # half surrogates too
data = st.recursive(
    atoms | texts, lambda inner: st.lists(inner) | st.dictionaries(texts, inner), max_leaves=8
)
tables = st.lists(st.dictionaries(texts, data, max_size=4), max_size=3)


@settings(max_examples=40)
@given(content=st.dictionaries(texts, data, max_size=4), rows=tables, error=st.none() | texts)
def test_any_record_is_read_as_it_was_made(content: Any, rows: Any, error: str | None) -> None:
    made = make_record(content, {}, DONE, result={"rows": rows}, error=error, run={"pid": 1})
    raw = to_text(made).encode()
    assert from_text(raw) == made
    assert to_text(from_text(raw)).encode() == raw
    assert is_intact(raw, made["key"])
    assert why_unsound(made, made["key"]) is None
    assert made["key"] == key_of(content) == key_of(made["content"])


def test_every_double_is_read_as_it_was_written() -> None:
    rng = random.Random(2)
    drawn = [struct.unpack("d", rng.randbytes(8))[0] for _ in range(50_000)]
    numbers = [x for x in drawn if math.isfinite(x)]
    numbers += [rng.uniform(-1, 1) * 10.0 ** rng.randint(-12, 12) for _ in range(50_000)]
    numbers += [0.0, -0.0, 5e-324, 2.2250738585072014e-308, 1.7976931348623157e308]
    read = from_text(json.dumps(numbers).encode())
    assert struct.pack(f"{len(read)}d", *read) == struct.pack(f"{len(numbers)}d", *numbers)


def test_equal_results_have_equal_checksums_whenever_they_are_computed() -> None:
    one, other = (
        make_record({"i": 1}, {}, DONE, result={"rows": [{"cost": 0.1}]}, run={"elapsed": time})
        for time in (1.0, 2.0)
    )
    assert one["checksum"] == other["checksum"]
    assert one != other


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"content": {"i": 2}}, "its content is not that of its name"),
        ({"status": FAILED}, "its result is not that of its checksum"),
        ({"error": "none"}, "its result is not that of its checksum"),
        ({"result": {"rows": [{"cost": 0.2}]}}, "its result is not that of its checksum"),
        ({"result": {"rows": [{"cost": math.inf}]}}, "it holds an infinite number"),
        ({"format": 0}, "it has format 0, not 1"),
        ({"format": True}, "it has format True, not 1"),
        ({"sources": None}, "it is no record"),
    ],
)
def test_what_does_not_belong_together_is_unsound(change: dict[str, Any], reason: str) -> None:
    made = make_record({"i": 1}, {}, DONE, result={"rows": [{"cost": 0.1}]})
    assert why_unsound({**made, **change}, made["key"]) == reason


@pytest.mark.parametrize(
    ("parts", "reason"),
    [
        ({"status": DONE}, "it has no rows"),
        ({"status": "half"}, "its status is 'half'"),
        ({"status": DONE, "result": {"rows": 3}}, "its rows are no mappings"),
        ({"status": DONE, "result": {"rows": [3]}}, "its rows are no mappings"),
    ],
)
def test_what_is_no_table_is_unsound(parts: dict[str, Any], reason: str) -> None:
    made = make_record({"i": 1}, {}, **parts)
    assert why_unsound(made, made["key"]) == reason


@pytest.mark.parametrize("found", [None, [], 3, "text", {}, {"format": 1}])
def test_what_is_no_record_is_unsound(found: Any) -> None:
    assert why_unsound(found, "0" * 64) == "it is no record"


def test_a_failed_instance_needs_no_result() -> None:
    made = make_record({"i": 1}, {}, FAILED, error="ValueError: ...")
    assert why_unsound(made, made["key"]) is None


# --- plain data -----------------------------------------------------------------------------------


class Colour(enum.StrEnum):
    RED = "red"


@dataclass(frozen=True)
class Shade:
    colour: str
    depth: float = 0.5


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (np.float64(0.1), 0.1),
        (np.int32(3), 3),
        (np.bool_(True), True),
        (np.arange(4).reshape(2, 2), [[0, 1], [2, 3]]),
        ((1, (2.0, None)), [1, [2.0, None]]),
        (MappingProxyType({"a": ()}), {"a": []}),
        (Colour.RED, "red"),
        (Shade("red"), {"class": f"{__name__}:Shade", "colour": "red", "depth": 0.5}),
        (Erlang(2), {"class": "Erlang", "phases": 2, "law": "erlang"}),
    ],
)
def test_plain_data_are_what_json_gives_back(value: Any, expected: Any) -> None:
    found = plain(value, "result")
    assert found == expected
    assert type(found) is type(expected)
    assert json.loads(canonical(found)) == found


@pytest.mark.parametrize(
    ("value", "place"),
    [
        ({"rows": [{"cost": math.nan}]}, r"result\.rows\[0\]\.cost is nan"),
        ({"rows": [{}, {"b": (1, -math.inf)}]}, r"result\.rows\[1\]\.b\[1\] is -inf"),
        ({"rows": np.array([0.0, np.nan])}, r"result\.rows\[1\] is nan"),
        ({"f": len}, r"result\.f is <built-in function len>; a study can store only"),
        ({"z": 1j}, r"result\.z is 1j"),
        ({"s": {1, 2}}, r"result\.s is \{1, 2\}"),
        ({1: 2}, "result has the key 1"),
    ],
)
def test_what_json_cannot_hold_is_refused_with_its_place(value: Any, place: str) -> None:
    with pytest.raises(InputError, match=place):
        plain(value, "result")
    with pytest.raises(InputError, match=place):
        make_record({}, {}, DONE, result=value)


def test_classes_of_the_same_fields_are_told_apart() -> None:
    assert plain(Exponential(), "law") != plain(Deterministic(), "law")
