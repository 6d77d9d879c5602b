"""The best members of families of policies in a comparison: rows, records, tables, pictures."""

from __future__ import annotations

import json
import pickle
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

import mdpcloud as mc
from mdpcloud.cli import app, tables
from mdpcloud.compare import Comparison, evaluate_policies, maps, pictures, simulate_policies, size
from mdpcloud.errors import NoLimitError
from mdpcloud.policies.complete_sharing import complete_sharing
from mdpcloud.policies.family import Family, Parameter
from mdpcloud.policies.search import best_member
from mdpcloud.policies.thresholds import thresholds
from mdpcloud.scenario import read_scenario
from mdpcloud.scenario.template import new_scenario
from mdpcloud.systems.base import Heuristic
from mdpcloud.systems.registry import find_system, system_names
from tests.models import reference
from tests.policies.links import Link, levels

RECORDS = reference("allocation")


@dataclass(frozen=True)
class Lines(Link):
    """A link that keeps some of its capacity from the first class.

    Parameters
    ----------
    reserved : int
        What is kept.
    """

    reserved: int = 1

    policy_names = ("trunk_reservation", "complete_sharing")
    own_policy = "trunk_reservation"

    @classmethod
    def example(cls) -> Lines:
        """A small link."""
        return cls()

    def heuristic(self, name: str, ties: str = "fastest") -> Heuristic:
        """Trunk reservation with ``reserved``, or complete sharing."""
        if name == "complete_sharing":
            return Heuristic(name, rule=complete_sharing(self.streams()).member())
        return Heuristic(name, rule=self.reservation().member(self.reserved))

    def families(self) -> tuple[Family, ...]:
        """Reservation, levels of both classes, and complete sharing, which is a policy."""
        grid = [Parameter(f"level[{j}]", levels(self.capacity)) for j in (0, 1)]
        return (
            self.reservation(),
            thresholds(self.streams((0, 1)), grid),
            complete_sharing(self.streams()),
        )

    def fluid_bound(self) -> float:
        """Nothing costs less than nothing."""
        return 0.0


@cache
def compared() -> Comparison:
    return mc.compare(Lines())


@cache
def record() -> dict[str, Any]:
    return compared().to_dict()


def row_of(name: str) -> dict[str, Any]:
    """A row of the record."""
    (row,) = (row for row in record()["policies"] if row["name"] == name)
    found: dict[str, Any] = row
    return found


# --- rows -----------------------------------------------------------------------------------------


def test_every_family_has_a_row_unless_it_is_one_of_the_policies() -> None:
    names = [row.name for row in compared().rows]
    assert names == [
        "trunk_reservation",
        "complete_sharing",
        "best trunk_reservation",
        "best thresholds",
    ]


def test_the_best_member_costs_no_more_than_any_member() -> None:
    system, model = Lines(), Lines().model()
    for family in system.families()[:2]:
        row = row_of(f"best {family.name}")
        for vector in family.members():
            cost = mc.evaluate(model, family.member(*vector))
            assert row["lower"] <= cost.bounds[1]
            if tuple(row["parameter"].values()) == vector:
                assert cost.bounds[0] <= row["upper"]
                assert row["measures"]["mean_jobs[0]"] == pytest.approx(
                    cost.measures["mean_jobs[0]"], rel=1e-8
                )


def test_the_record_says_which_member_of_which_family_it_is() -> None:
    row = row_of("best trunk_reservation")
    assert row["family"] == "trunk_reservation"
    assert list(row["parameter"]) == ["reserved"]
    assert row["members"] == Lines().capacity + 1
    assert row["status"] == "exact"
    assert row["gap"] >= 0.0
    own = row_of("trunk_reservation")
    assert own["family"] is own["parameter"] is own["members"] is None
    json.dumps(record(), allow_nan=False)


def test_a_family_of_one_has_no_parameter() -> None:
    found = mc.compare(Lines(), ["best complete_sharing", "complete_sharing"])
    best, own = found.to_dict()["policies"]
    assert (best["parameter"], best["members"]) == ({}, 1)
    assert best["cost"] == own["cost"]


def test_a_family_of_the_users_own_is_searched() -> None:
    family = thresholds(Lines().streams(), [Parameter("level", (3, 4))], "mine")
    (row,) = mc.compare(Lines(), {"own": family, "other": "best thresholds"}).rows[:1]
    assert (row.name, row.family, row.members) == ("own", "mine", 2)


@pytest.mark.parametrize(
    ("name", "hint"),
    [("best trunk_reservaton", "best trunk_reservation"), ("best", "there are trunk_reservation")],
)
def test_an_unknown_family_is_refused_with_a_suggestion(name: str, hint: str) -> None:
    with pytest.raises(mc.InputError, match=hint):
        mc.compare(Lines(), [name])


def test_policies_can_be_evaluated_without_the_optimum() -> None:
    (row,) = evaluate_policies(Lines(), ["best trunk_reservation"])
    assert row.cost == row_of("best trunk_reservation")["cost"]


def test_members_that_are_not_told_apart_are_noted() -> None:
    """Whether 0 or 1 is kept from jobs of one unit on a link for jobs of two is the same."""
    system = Lines((3.0, 1.0), (2, 2), (1.0, 5.0), 6)
    (row,) = mc.compare(system, ["best trunk_reservation"]).rows
    assert any(note.startswith("the same policy: (reserved ") for note in row.notes)


def test_members_as_good_and_a_bisection_are_noted() -> None:
    """Rules that differ in states that they leave for ever; a family said to be unimodal."""
    system = Lines()
    inner = system.reservation()

    def member(unused: float) -> Any:
        rule = inner.member(1)["arrival 0"]
        asked = lambda x: (x.jobs[0] < 2) | (x.jobs[0] == 4 - unused)  # noqa: E731
        few = lambda x: np.where(asked(x), rule(x), "reject")  # noqa: E731
        return {**inner.member(1), "arrival 0": few}

    family = Family("few", (Parameter("unused", (0, 1, 5)),), member)
    equal, bisected = mc.compare(
        system, {"few": family, "bisected": system.reservation(unimodal=True)}
    ).rows
    note = "as good, as far as the bounds tell: (unused 1), (unused 5); the first is given"
    assert equal.notes == (note,)
    assert any(note.startswith("found by bisection, ") for note in bisected.notes)


# --- large systems, limits, interrupts ------------------------------------------------------------


def test_where_policies_are_simulated_families_are_left_out(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    short = {"events": 4000, "replications": 2}
    asked = simulate_policies(Lines(), ["trunk_reservation", "best thresholds"], simulate=short)
    monkeypatch.setattr(size, "MOST", 1)
    monkeypatch.setattr(size, "_fits", lambda space: False)
    for found in (mc.compare(Lines(), simulate=short), asked):
        assert "best thresholds" not in [row.name for row in found.rows]
        assert any("left out: best thresholds: members" in note for note in found.notes)
        assert found.fluid_bound == 0.0
    assert asked.optimum is None


def test_searches_of_many_minutes_are_left_out_unless_asked_for(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(size, "MOST_WORK", 300)
    found = mc.compare(Lines())
    assert [row.family for row in found.rows] == [None, None, "trunk_reservation"]
    assert any("best thresholds: 49 members on 16 states take long" in n for n in found.notes)
    (row,) = mc.compare(Lines(), ["best thresholds"]).rows
    assert row.family == "thresholds"


def interrupting(after: int) -> Callable[..., None]:
    """A progress callback that behaves like Ctrl-C after some calls."""
    calls = iter(range(after))

    def callback(*_: object) -> None:
        if next(calls, None) is None:
            raise KeyboardInterrupt

    return callback


def test_an_interrupted_search_gives_the_best_member_so_far() -> None:
    calls: list[Any] = []
    mc.compare(Lines(), [], progress=lambda *now: calls.append(now))
    with pytest.raises(mc.SolveError) as caught:
        mc.compare(Lines(), ["best thresholds"], progress=interrupting(len(calls) + 5))
    found: Any = caught.value.partial
    (row,) = found.rows
    assert row.status == "interrupted"
    assert row.notes[-1].startswith("the best of the 6 of 49 members")
    assert row.lower <= row.cost <= row.upper
    assert found.to_dict()["policies"][0]["parameter"] == dict(row.parameter or {})


def test_a_comparison_with_families_pickles_and_draws() -> None:
    again: Comparison = pickle.loads(pickle.dumps(compared()))
    assert again.to_dict() == compared().to_dict()
    assert pictures.actions_figure(again) is not None


# --- the fluid bound ------------------------------------------------------------------------------


def test_the_fluid_bound_is_in_the_record_where_there_is_one(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert record()["fluid_bound"] == 0.0
    assert mc.compare(Link(), []).to_dict()["fluid_bound"] is None

    def none(_: Any) -> float:
        raise NoLimitError("there is none")

    monkeypatch.setattr(Lines, "fluid_bound", none)
    assert mc.compare(Lines(), []).to_dict()["fluid_bound"] is None


# --- tables and pictures --------------------------------------------------------------------------


def test_the_table_names_the_parameters(capsys: pytest.CaptureFixture[str]) -> None:
    tables.print_comparison(record())
    printed = capsys.readouterr().out
    level = int(row_of("best trunk_reservation")["parameter"]["reserved"])
    assert f"best trunk_reservation (reserved {level})  " in printed
    assert "\nfluid bound" in printed


def test_many_parameters_are_listed_below_the_name(capsys: pytest.CaptureFixture[str]) -> None:
    row = row_of("best thresholds")
    wide = {f"a long name [{k}]": 0.5 for k in range(3)}
    tables.print_comparison({**record(), "policies": [{**row, "parameter": wide}]})
    lines = capsys.readouterr().out.splitlines()
    place = next(i for i, line in enumerate(lines) if line.startswith("best thresholds"))
    assert lines[place + 1] == "  (a long name [0] 0.5, a long name [1] 0.5, a long name [2] 0.5)"


def test_costs_are_drawn_with_the_parameters_of_best_members() -> None:
    figure = pictures.costs_figure(compared())
    assert figure is not None
    labels = [label.get_text() for label in figure.axes[0].get_yticklabels()]
    level = int(row_of("best trunk_reservation")["parameter"]["reserved"])
    assert f"best trunk reservation\n(reserved {level})" in labels


def test_of_several_decisions_the_own_policy_and_the_best_member_are_drawn() -> None:
    figure = pictures.actions_figure(compared())
    assert figure is not None
    cheaper = min(compared().rows[2:], key=lambda row: row.cost).name.replace("_", " ")
    titles = [axes.get_title(loc="left").replace("\n", " ") for axes in figure.axes]
    assert titles == [
        f"{name}, arrival {j}" for j in (0, 1) for name in ("optimum", "trunk reservation", cheaper)
    ]


def test_a_rule_is_not_drawn_outside_the_states() -> None:
    found = compared()
    optimum = found.optimum
    assert optimum is not None
    part = maps._slice(found, optimum.model, optimum.kind)
    drawn_maps = list(maps._maps(found, optimum.model, optimum.policy, part, ["accept", "reject"]))
    drawn = {tuple(map(tuple, table >= 0)) for _, table in drawn_maps}
    assert len(drawn_maps) == 6
    assert len(drawn) == 1


# --- scenarios ------------------------------------------------------------------------------------

SCENARIO = """\
format = 1
system = "lines.py:Lines"
time_unit = "minute"
cost_unit = "euro"

[parameters]
capacity = 5

[compare]
policies = [{}]
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with a system of the user's own."""
    (tmp_path / "lines.py").write_text("from tests.compare.test_families import Lines\n")
    return tmp_path


def scenario(folder: Path, *policies: str, text: str = SCENARIO) -> Path:
    file = folder / "lines.toml"
    file.write_text(text.format(", ".join(map(json.dumps, policies))))
    return file


def test_a_scenario_names_best_members(folder: Path) -> None:
    found = read_scenario(scenario(folder, "complete_sharing", "best thresholds"))
    assert found.compare.policies == {
        "complete_sharing": "complete_sharing",
        "best thresholds": "best thresholds",
    }
    rows = mc.compare(found.system, found.compare.policies).rows
    assert [row.family for row in rows] == [None, "thresholds"]


def test_a_scenario_with_an_unknown_family_is_refused(folder: Path) -> None:
    with pytest.raises(mc.InputError, match=r"no policy 'best treshold'; did you mean 'best thre"):
        read_scenario(scenario(folder, "best treshold"))


def test_of_wrong_parameters_no_family_is_asked(folder: Path) -> None:
    text = SCENARIO.replace("capacity = 5", 'capacity = "five"')
    with pytest.raises(mc.InputError, match=r"has a mistake:\n.*capacity") as caught:
        read_scenario(scenario(folder, "best whatever", text=text))
    assert "whatever" not in str(caught.value)


@pytest.mark.parametrize("name", [n for n in system_names() if hasattr(find_system(n), "families")])
def test_a_new_scenario_of_a_system_with_families_lists_their_best_members(
    name: str, tmp_path: Path
) -> None:
    text = new_scenario(name)
    file = tmp_path / "new.toml"
    file.write_text(text)
    found = read_scenario(file)
    example = find_system(name).example()
    listed = found.compare.policies or {}
    assert [one for one in listed if one.startswith("best ")] == [
        f"best {family.name}"
        for family in example.families()
        if family.size > 1 or family.name not in example.policy_names
    ]
    assert "# caps" not in text
    assert "ties" not in text.partition("[compare]")[2].partition("[simulate]")[0]
    measures = [line.split('"')[1] for line in text.splitlines() if line.startswith('# "')]
    assert {*measures} <= {*example.model().measures}


def test_an_optional_list_has_a_number_for_every_class() -> None:
    assert "# rejection_costs = [1.0, 1.0]\n" in new_scenario("offloading")


# --- published best members -----------------------------------------------------------------------


@pytest.mark.parametrize("record_", RECORDS["S3"]["mdp"][:3], ids=lambda r: str(r["w_dg"]))
def test_the_best_level_of_downgrading_is_as_published(record_: dict[str, Any]) -> None:
    system = find_system("downgrading")(
        arrival_rates=record_["lam"],
        service_rates=record_["mu"],
        requirements=record_["A"],
        capacity=record_["C"],
        threshold=0,
        rejection_costs=record_["w_rej"],
        downgrading_costs=record_["w_dg"],
    )
    found = mc.compare(system, ["best common_threshold"])
    (row,) = found.rows
    assert found.optimum is not None
    assert found.optimum.cost == pytest.approx(record_["opt_cost"], rel=1e-8)
    assert row.cost == pytest.approx(record_["best_C0_cost"], rel=1e-9)


@pytest.mark.parametrize("record_", RECORDS["S6_finite_mdp"]["mdp"][5:8], ids=lambda r: r["w2"])
def test_the_best_reservation_is_as_published(record_: dict[str, Any]) -> None:
    system = find_system("trunk_reservation")(
        (record_["lambda1"], record_["lambda2"]),
        (record_["mu1"], record_["mu2"]),
        (record_["C1"], record_["C2"]),
        0,
        (record_["w1"], record_["w2"]),
    )
    found = mc.compare(system, ["best trunk_reservation"])
    (row,) = found.rows
    assert row.cost == pytest.approx(min(record_["costs_by_a"]), rel=1e-9)
    assert found.optimum is not None
    assert found.optimum.lower <= row.upper


@pytest.mark.parametrize("scale", [5, 20])
@pytest.mark.parametrize("second", [1.5, 2.0, 3.0])
def test_the_best_reservation_grows_with_the_scale_as_published(scale: int, second: float) -> None:
    """Where the second centre is overloaded, nearly all reservations cost the same."""
    record_ = RECORDS["S6_best_a_vs_N"][f"2.0,{second},1,2,w=1.0,2.0"]["finite"]
    (published,) = (one for one in record_ if one["N"] == scale)
    system = find_system("trunk_reservation")(
        (2.0, second), (1.0, 1.0), (1.0, 2.0), 0, (1.0, 2.0), scale=scale
    )
    found = best_member(system.model(), system.families()[0])
    assert found.cost / scale == pytest.approx(published["cost_over_N"], rel=1e-9)
    near = (found.vector, *found.equals, *found.same)
    assert (published["best_a"],) in near
    assert second == 3.0 or len(near) == 1


@pytest.mark.parametrize(
    "record_", RECORDS["S5_finite_mdp_ring"]["mdp"], ids=lambda r: str(r["w2"])
)
def test_the_best_probabilities_of_offloading_are_as_published(record_: dict[str, Any]) -> None:
    """The grid of the reference is part of the grid."""
    system = find_system("offloading")(
        (record_["lambda1"], record_["lambda2"]),
        (record_["mu1"], record_["mu2"]),
        (record_["C1"], record_["C2"]),
        (0.5, 0.5),
        (record_["w1"], record_["w2"]),
    )
    (row,) = mc.compare(system, ["best bernoulli_offloading"]).rows
    assert row.cost <= min(record_["p_policies"].values()) * (1 + 1e-9)
    vector = ",".join(f"{p:g}" if p != 1 else "1.0" for p in (row.parameter or {}).values())
    if vector in record_["p_policies"]:
        assert row.cost == pytest.approx(record_["p_policies"][vector], rel=1e-9)


def test_the_command_compares_families(folder: Path) -> None:
    file = scenario(folder, "trunk_reservation", "best trunk_reservation")
    result = CliRunner().invoke(app, ["compare", str(file), "--json", str(folder / "out.json")])
    assert result.exit_code == 0, result.output
    assert "best trunk_reservation (reserved " in result.output
    rows = json.loads((folder / "out.json").read_text())["policies"]
    assert [row["family"] for row in rows] == [None, "trunk_reservation"]
