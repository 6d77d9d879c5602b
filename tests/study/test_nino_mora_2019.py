"""The comparison of Nino-Mora (2019): costs against the reference numbers, and what they show."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from mdpcloud.study import Instance, Study
from mdpcloud.study.file.reading import read_study
from mdpcloud.study.running.run import load, run
from mdpcloud.systems.routing_properties import index_tables
from tests.systems.cases import DEADLINE, REFERENCE, SHORT, system_of

FOLDER = Path(__file__).parents[2] / "experiments" / "nino_mora_2019"
STUDIES = {
    "base_instances": 6,
    "index_curves": 2 * (1 + 24 + 31 + 25 + 33 + 12),
    "index_properties": 240,
    "loads": 84,
    "node_counts": 14,
    "outside_costs": 32,
    "patience": 26,
    "random_design": 500,
    "servers": 24,
    "service_rates": 26,
}
COST_ERROR = 1e-6
TIED = 1e-7  # of a gap, which is known to twice the relative tolerance 1e-8 of the costs
BLOCKS = {"n2": "two nodes", "n3base1like": "three nodes"}
BS, IO, PI, RB = SHORT.values()

Row = Mapping[str, Any]
Rows = Mapping[str, list[dict[str, Any]]]


def is_swept(one: Instance) -> bool:
    loads = {BLOCKS[tag]: {round(s["value"], 10) for s in swept(tag)} for tag in BLOCKS}
    return one.labels["load"] in loads[str(one.labels["block"])]


REDUCED: Mapping[str, Callable[[Instance], bool]] = {
    "base_instances": lambda one: True,
    "index_properties": lambda one: one.number % 6 == 0,
    "loads": is_swept,
    "node_counts": lambda one: one.labels["number of nodes"] in (1, 2, 3),
    "outside_costs": lambda one: one.labels["outside_cost"] in (0.1, 0.3, 0.5, 0.7, 0.8),
    "patience": lambda one: one.labels["abandonment_rate"] in (0.05, 0.1, 0.3, 1.0, 5.0),
    "random_design": lambda one: one.number % 16 == 0,
}
"""What is kept of the studies, so that all takes half a minute."""


@pytest.fixture(scope="module")
def rows_of(tmp_path_factory: pytest.TempPathFactory) -> Rows:
    """Rows of the reduced studies, all of which are run at once."""
    store = tmp_path_factory.mktemp("nino_mora_2019")
    studies = {}
    for name, keep in REDUCED.items():
        study = read_study(FOLDER / f"{name}.toml")
        studies[name] = replace(study, instances=tuple(filter(keep, study.instances)))
    every = tuple(one for study in studies.values() for one in study.instances)
    run(replace(studies["loads"], instances=every), store=store, jobs=2)
    found = {name: load(study, store) for name, study in studies.items()}
    for name, results in found.items():
        assert results.counts()["done"] == len(studies[name].instances)
    return {name: results.rows() for name, results in found.items()}


def of(rows: list[dict[str, Any]], policy: str, column: str = "gap", **labels: Any) -> list[Any]:
    """A column of a policy's rows with these labels, in the order of the study."""
    return [
        row[column]
        for row in rows
        if row["policy"] == policy and all(row[name] == value for name, value in labels.items())
    ]


# --- the studies ----------------------------------------------------------------------------------


def test_these_are_the_studies() -> None:
    found = {path.stem for path in FOLDER.glob("*.toml")}
    assert found == {*STUDIES, "two_nodes"}


@pytest.mark.parametrize("name", STUDIES)
def test_every_study_can_be_read_and_has_its_instances(name: str) -> None:
    path = FOLDER / f"{name}.toml"
    study = read_study(path)
    assert isinstance(study, Study)
    assert len(study.instances) == STUDIES[name]
    assert path.read_text(encoding="utf-8").startswith("# ")
    deadlines = {one.scenario.system.deadline for one in study.instances}
    assert deadlines == set(DEADLINE.values())


def test_the_load_is_held_while_servers_and_rates_change() -> None:
    for name in ("servers", "service_rates", "node_counts"):
        for one in read_study(FOLDER / f"{name}.toml").instances:
            system = one.scenario.system
            capacity = sum(node.servers * node.service_rate for node in system.nodes)
            assert system.arrival_rate == pytest.approx(capacity, rel=1e-14)


# --- costs ----------------------------------------------------------------------------------------


def swept(tag: str) -> list[dict[str, Any]]:
    return [one for one in REFERENCE["sweeps"] if one["tag"] == tag]


def check_costs(rows: list[Row], known: Mapping[str, Any], optimum: float) -> None:
    """Compare all costs with those of the reference, whose fastest of equal nodes takes the job."""
    found = {row["policy"]: row for row in rows}
    assert found["optimum"]["cost"] == pytest.approx(optimum, abs=COST_ERROR)
    assert len(found) == 5
    for key, name in SHORT.items():
        cost = known[f"{key}_fastest" if key in ("IO", "RB") else key]
        assert found[name]["cost"] == pytest.approx(cost, abs=COST_ERROR), name
        assert found[name]["lower"] - COST_ERROR <= cost <= found[name]["upper"] + COST_ERROR


@pytest.mark.slow
@pytest.mark.parametrize("tag", BLOCKS)
def test_every_cost_of_the_load_sweeps_is_met(rows_of: Rows, tag: str) -> None:
    found = rows_of["loads"]
    known = swept(tag)
    assert known
    for sweep in known:
        load, deadline = round(sweep["value"], 10), DEADLINE[sweep["kind"]]
        rows = [
            row
            for row in found
            if (row["block"], row["load"], row["deadline"]) == (BLOCKS[tag], load, deadline)
        ]
        check_costs(rows, sweep["cost"], sweep["opt"])


@pytest.mark.slow
@pytest.mark.parametrize("name", ["C1", "C2", "C3"])
def test_every_cost_of_the_base_instances_is_met(rows_of: Rows, name: str) -> None:
    found = rows_of["base_instances"]
    for case in (one for one in REFERENCE["mdp"] if one["name"] == name):
        deadline = DEADLINE[case["kind"]]
        rows = [row for row in found if (row["block"], row["deadline"]) == (name, deadline)]
        check_costs(rows, {**case["cost"], "BS": case["BS"]["cost"]}, case["optimum"])
    study = read_study(FOLDER / "base_instances.toml")
    systems = [one.scenario.system for one in study.instances if one.labels["block"] == name]
    assert systems == [system_of(one) for one in REFERENCE["mdp"] if one["name"] == name]


@pytest.mark.slow
@pytest.mark.parametrize("tag", ["homog", "hetero_mmu12"])
def test_every_cost_over_the_number_of_nodes_is_met(rows_of: Rows, tag: str) -> None:
    found = rows_of["node_counts"]
    block = {"homog": "equal nodes", "hetero_mmu12": "different servers"}[tag]
    for sweep in swept(tag):
        place = (block, sweep["value"], DEADLINE[sweep["kind"]])
        rows = [
            row for row in found if (row["block"], row["number of nodes"], row["deadline"]) == place
        ]
        check_costs(rows, sweep["cost"], sweep["opt"])


# --- what they show -------------------------------------------------------------------------------


def no_worse(one: Row, other: Row) -> bool:
    return bool(one["lower"] <= other["upper"] * (1.0 + TIED))


def check_against_the_split(rows: list[Row]) -> None:
    """PI and RB never cost more than BS."""
    split = {row["instance"]: row for row in rows if row["policy"] == BS}
    for row in rows:
        if row["policy"] in (PI, RB):
            assert no_worse(row, split[row["instance"]]), row


@pytest.mark.slow
def test_policy_improvement_and_the_bandit_index_never_cost_more_than_the_split(
    rows_of: Rows,
) -> None:
    check_against_the_split(rows_of["loads"])
    check_against_the_split(rows_of["random_design"])


@pytest.mark.slow
def test_selfish_jobs_may_cost_more_than_the_split(rows_of: Rows) -> None:
    """In the middle of the load's range with deadlines to the beginning, and at most loads else."""
    found = rows_of["loads"]
    for block in BLOCKS.values():
        for deadline, few in (("begin_service", True), ("end_service", False)):
            labels = {"block": block, "deadline": deadline}
            pairs = zip(of(found, IO, **labels), of(found, BS, **labels), strict=True)
            worse = [selfish > split for selfish, split in pairs]
            assert not worse[0]
            assert worse[-1]
            assert (sum(worse) < 6) if few else (sum(worse) > 6)


@pytest.mark.slow
def test_selfish_jobs_are_nearly_best_at_low_load_only(rows_of: Rows) -> None:
    found = rows_of["loads"]
    for block in BLOCKS.values():
        gaps = of(found, IO, block=block, deadline="begin_service")
        assert gaps[0] < 1e-4
        assert max(gaps) > 1.0


@pytest.mark.slow
def test_the_gap_of_the_split_falls_with_the_load(rows_of: Rows) -> None:
    found = rows_of["loads"]
    for block in BLOCKS.values():
        gaps = of(found, BS, block=block, deadline="begin_service")
        assert gaps == sorted(gaps, reverse=True)


@pytest.mark.slow
def test_the_gaps_over_the_load_are_those_that_are_known(rows_of: Rows) -> None:
    """In percent at loads 0.5, 0.7, 0.9, 1, 1.1, 1.3, 1.5 of the instance of two nodes."""
    found = rows_of["loads"]
    known = {
        ("begin_service", PI): (72, 20, 14, 6.2, 2.7, 0.46, 0.17),
        ("begin_service", RB): (5.0, 20, 9.5, 3.6, 1.3, 1.8, 0.37),
        ("begin_service", IO): (0, 1.5, 29, 62, 102, 137, 122),
        ("begin_service", BS): (999, 241, 122, 95, 75, 51, 38),
        ("end_service", PI): (4.0, 1.3, 0.93, 0.67, 0.51, 0.37, 0.38),
        ("end_service", RB): (0.01, 0.06, 0.82, 0.54, 0.26, 0, 0),
        ("end_service", IO): (14, 23, 24, 25, 28, 33, 36),
        ("end_service", BS): (16, 16, 18, 19, 19, 18, 16),
    }
    for (deadline, policy), wanted in known.items():
        gaps = of(found, policy, block="two nodes", deadline=deadline)
        shown = [100 * gaps[k] for k in (0, 2, 4, 5, 6, 8, 10)]
        assert shown == pytest.approx(wanted, rel=0.06, abs=0.01), (deadline, policy)


@pytest.mark.slow
def test_the_bandit_index_fails_for_patient_jobs_and_policy_improvement_for_impatient_ones(
    rows_of: Rows,
) -> None:
    found = rows_of["patience"]
    bandit, improved = (of(found, name, deadline="begin_service") for name in (RB, PI))
    assert [100 * gap for gap in bandit] == pytest.approx([25.6, 12.2, 3.6, 1.7, 0], abs=0.06)
    assert [100 * gap for gap in improved] == pytest.approx([3.7, 2.9, 6.2, 28, 26], abs=0.25)
    better = [a < b for a, b in zip(improved, bandit, strict=True)]
    assert better == [True, True, False, False, False]
    bandit, improved = (of(found, name, deadline="end_service") for name in (RB, PI))
    assert [100 * gap for gap in bandit] == pytest.approx([13, 4.3, 0.54, 0, 0], abs=0.05)
    assert [100 * gap for gap in improved] == pytest.approx([1.4, 1.5, 0.67, 0, 0], abs=0.05)


@pytest.mark.slow
def test_the_bandit_index_gets_worse_and_selfish_jobs_better_as_outsourcing_gets_dear(
    rows_of: Rows,
) -> None:
    found = rows_of["outside_costs"]
    known = {
        RB: (3.3, 7.6, 11, 12, 21),
        PI: (6.9, 4.5, 2.7, 1.2, 1.1),
        IO: (88, 45, 11, 0.9, 0.04),
    }
    for policy, wanted in known.items():
        shown = [100 * gap for gap in of(found, policy, deadline="begin_service")]
        assert shown == pytest.approx(wanted, rel=0.02, abs=0.05), policy
    costs = of(found, BS, "cost", deadline="begin_service")
    assert costs[0] < costs[1] < costs[2] == pytest.approx(costs[3]) == pytest.approx(costs[4])


@pytest.mark.slow
def test_the_split_gets_worse_with_the_number_of_nodes(rows_of: Rows) -> None:
    found = rows_of["node_counts"]
    known = {"begin_service": (41, 86, 121), "end_service": (11, 17, 21)}
    for deadline, wanted in known.items():
        shown = [100 * gap for gap in of(found, BS, block="equal nodes", deadline=deadline)]
        assert shown == pytest.approx(wanted, abs=0.6)


@pytest.mark.slow
def test_the_bandit_index_is_optimal_for_one_node_only(rows_of: Rows) -> None:
    found = rows_of["node_counts"]
    for block in ("equal nodes", "different servers"):
        for deadline in DEADLINE.values():
            one, two, three = of(found, RB, block=block, deadline=deadline)
            assert one == pytest.approx(0.0, abs=TIED)
            assert max(two, three) > 1e-3


# --- properties of the indices --------------------------------------------------------------------


@pytest.mark.slow
def test_the_properties_that_fail_are_those_that_are_known_to(rows_of: Rows) -> None:
    found = rows_of["index_properties"]
    failing = {(row["index"], row["property"], row["deadline"]) for row in found if row["violated"]}
    assert failing == {
        (PI, "P3", "end_service"),
        (PI, "P5", "end_service"),
        (RB, "P3", "begin_service"),
        (RB, "P3", "end_service"),
    }
    broken = [row["violated"] for row in found if (row["index"], row["property"]) == (RB, "P3")]
    assert sum(broken) > 0.5 * len(broken)


@pytest.mark.slow
def test_an_index_breaks_a_property_most_where_the_node_refuses(rows_of: Rows) -> None:
    study = read_study(FOLDER / "index_properties.toml")
    broken = [row for row in rows_of["index_properties"] if row["violated"]]
    assert broken
    for row in broken:
        system = study.instances[row["instance"]].scenario.system
        table = index_tables(system, row["index"], row["state"])[row["node"]]
        assert table[row["state"]] > system.outside_cost
