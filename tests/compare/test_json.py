"""The record of a comparison, to the letter."""

import json
import math
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest

import mdpcloud as mc
from mdpcloud.compare import Comparison
from mdpcloud.systems import CloudRouting, Node
from tests.compare.own import Desk, Shop

SYSTEMS = {
    "exact": (CloudRouting((Node(1, 2.0, 0.5), Node(1, 1.0, 0.5)), 3.0, 0.4), None),
    "bracketed": (CloudRouting((Node(1, 2.0, 0.5),), 3.0, 1.1), None),
    "restricted": (CloudRouting((Node(1, 2.0, 0.5), Node(1, 1.0, 0.5)), 3.0, 0.4), (1, 1)),
    "free": (CloudRouting((Node(1, 2.0, 0.5, fee=0.0),), 3.0, 0.4), None),
    "rooms": (CloudRouting((Node(1, 2.0, 0.5, room=2),), 3.0, 0.4, "end_service"), None),
    "own": (Shop(), None),
    "bare": (Desk(), None),
}
GAPS = ("gap", "gap_lower", "gap_upper", "absolute_gap", "profit_gap")
by_name = pytest.mark.parametrize("name", SYSTEMS)


@cache
def compared(name: str) -> Comparison:
    system, caps = SYSTEMS[name]
    return mc.compare(system, caps=caps)


@cache
def record(name: str) -> dict[str, Any]:
    return compared(name).to_dict()


def numbers(value: Any) -> Iterator[float]:
    """Every number in a record."""
    if isinstance(value, dict):
        value = list(value.values())
    if isinstance(value, list):
        for item in value:
            yield from numbers(item)
    elif isinstance(value, float):
        yield value


@by_name
def test_the_record_has_every_key(name: str) -> None:
    found = record(name)
    top = (
        "format system name parameters units solve ties states truncation optimum policies indices"
        " split run"
    )
    assert set(top.split()) <= set(found)
    assert found["format"] == 1
    assert set(found["truncation"]) == {"kind", "error"}
    assert set(found["optimum"]) == {"cost", "lower", "upper", "status"}
    run = "mdpcloud source_hash python numpy scipy numba platform scenario_sha256 started elapsed"
    assert set(found["run"]) == set(run.split())
    wanted = "name cost lower upper status gap gap_lower gap_upper absolute_gap profit_gap measures"
    for row in found["policies"]:
        assert set(wanted.split()) <= set(row)
    if found["split"] is not None:
        assert set(found["split"]) == {"rates", "outside_rate", "shadow_price"}


@by_name
def test_the_record_is_plain_json_without_inf_and_nan(name: str) -> None:
    found = record(name)
    assert all(map(math.isfinite, numbers(found)))
    assert json.loads(json.dumps(found, allow_nan=False)) == found


@by_name
def test_the_file_holds_the_record(name: str, tmp_path: Path) -> None:
    compared(name).to_json(tmp_path / "found.json")
    assert json.loads((tmp_path / "found.json").read_text(encoding="utf-8")) == record(name)


@by_name
def test_the_gaps_are_what_they_are_called(name: str) -> None:
    found, best = record(name), record(name)["optimum"]
    small = best["lower"] <= 1e-9 * compared(name).cost_scale
    for row in found["policies"]:
        assert row["lower"] <= row["cost"] <= row["upper"]
        if name == "restricted" and row["cost"] < best["lower"]:
            assert all(row[gap] is None for gap in GAPS)
            continue
        assert row["absolute_gap"] == pytest.approx(row["cost"] - best["cost"], abs=1e-15)
        if small:
            assert row["gap"] is row["gap_lower"] is row["gap_upper"] is None
            continue
        assert row["gap"] == pytest.approx((row["cost"] - best["cost"]) / best["cost"])
        assert row["gap_lower"] <= row["gap"] <= row["gap_upper"]
        assert row["gap_lower"] == pytest.approx(row["lower"] / best["upper"] - 1, abs=1e-14)
        assert row["gap_upper"] == pytest.approx(row["upper"] / best["lower"] - 1, abs=1e-14)


@by_name
def test_the_measures_are_bounds(name: str) -> None:
    for row in record(name)["policies"]:
        assert all(low <= high for low, high in row["measures"].values())


@pytest.mark.parametrize("name", ["exact", "rooms", "own", "bare"])
def test_an_exact_space_has_no_truncation_error(name: str) -> None:
    assert record(name)["truncation"] == {"kind": "exact", "error": 0.0}


def test_a_bracketed_space_says_how_wide_the_bracket_is() -> None:
    found = record("bracketed")
    assert found["truncation"]["kind"] == "bracketed"
    width = found["optimum"]["upper"] - found["optimum"]["lower"]
    assert found["truncation"]["error"] == pytest.approx(width)
    assert any("never refuses" in note for note in found["notes"])


def test_a_box_set_by_hand_is_restricted_and_its_error_unknown() -> None:
    found = record("restricted")
    assert found["truncation"] == {"kind": "restricted", "error": None}
    assert found["solve"]["caps"] == [1, 1]
    assert found["states"] == 4
    assert found["optimum"]["cost"] > record("exact")["optimum"]["cost"]
    assert any("set by hand" in note for note in found["notes"])


def test_gaps_are_null_where_the_optimum_is_nothing() -> None:
    found = record("free")
    assert found["optimum"]["cost"] < 1e-9
    for row in found["policies"]:
        assert row["gap"] is row["gap_lower"] is row["gap_upper"] is None
        assert row["absolute_gap"] >= -1e-9


def test_the_profit_gap_is_relative_to_the_optimal_profit() -> None:
    found = record("exact")
    for row in found["policies"]:
        profit = 3.0 - found["optimum"]["cost"]
        assert row["profit_gap"] == pytest.approx(row["absolute_gap"] / profit)
    assert record("own")["policies"][0]["profit_gap"] is not None


def test_there_is_no_profit_gap_without_profit() -> None:
    """Holding costs above what the jobs pay; and a system that earns nothing."""
    found = mc.compare(CloudRouting((Node(1, 1.0, 0.5),), 3.0, 1.5)).to_dict()
    assert all(row["profit_gap"] is not None for row in found["policies"])
    poor = CloudRouting((Node(1, 1.0, 0.5, fee=2.0, holding_cost=1.0),), 3.0, 1.4)
    assert all(row["profit_gap"] is None for row in mc.compare(poor).to_dict()["policies"])
    bare = mc.compare(Desk(), {"join": lambda x: 0 * x.queue + (x.queue == 5)}).to_dict()
    assert bare["policies"][0]["profit_gap"] is None


def test_indices_are_listed_up_to_the_last_state_that_takes_a_job() -> None:
    tables = record("exact")["indices"]
    assert set(tables) == {"individually_optimal", "policy_improvement", "restless_bandit"}
    assert [[len(t) for t in tables[name]] for name in tables] == [[3, 2], [1, 1], [2, 1]]
    assert tables["individually_optimal"][0] == pytest.approx([0.0, 0.2, 1 / 3])


def test_the_split_is_given_under_whatever_name_it_was_asked_for() -> None:
    system, _ = SYSTEMS["exact"]
    split = mc.compare(system, {"at random": "bernoulli_split"}).to_dict()["split"]
    assert split == record("exact")["split"]
    assert sum(split["rates"]) + split["outside_rate"] == pytest.approx(3.0)
    assert mc.compare(system, ["restless_bandit"]).to_dict()["split"] is None


def test_parameters_and_settings_are_echoed() -> None:
    found = record("exact")
    assert found["system"] == "cloud_routing"
    assert found["parameters"]["nodes"][1]["service_rate"] == 1.0
    assert found["parameters"]["deadline"] == "begin_service"
    assert found["solve"]["tolerance"] == 1e-8
    assert found["solve"]["threads"] == 1
    assert found["ties"] == "fastest"
    assert found["units"] == {"time": "time", "cost": "cost"}
    assert found["run"]["mdpcloud"] == mc.__version__
    assert found["run"]["scenario_sha256"] is None
    assert record("own")["system"] == "corner_shop"
    assert record("own")["policies"][0]["notes"] == ["ties: fastest"]


def test_parameters_of_a_users_own_system_become_plain() -> None:
    from dataclasses import replace

    import numpy as np

    from tests.compare.own import Arrays

    odd = replace(Arrays(), costs=np.array([[1.0, 4.0], [2.0, 0.5]]))
    found = mc.compare(odd).to_dict()
    assert found["parameters"] == {"costs": [[1.0, 4.0], [2.0, 0.5]]}
