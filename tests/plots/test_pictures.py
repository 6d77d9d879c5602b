"""The pictures of whole comparisons."""

import dataclasses
import pickle
from functools import cache
from pathlib import Path
from typing import Any

import pytest

import mdpcloud as mc
from mdpcloud.compare import Comparison, pictures
from mdpcloud.systems.cloud_routing import CloudRouting, Node

NODES = (Node(1, 3.0, 0.5), Node(2, 1.0, 0.5), Node(2, 1.0, 0.5))
PNG = b"\x89PNG\r\n\x1a\n"


def two_waiting(x: Any) -> str:
    return "node 0" if x.node[0] < 2 else "outside"


@dataclasses.dataclass(frozen=True)
class Bare:
    """Nothing but a model."""

    def model(self, caps: Any = None) -> mc.Model:
        arrival = mc.Event(
            "arrival", 1.0, [mc.Action("reject", cost=3.0), mc.Action("join", mc.step(n=1))]
        )
        service = mc.Event("service", lambda x: 1.2 * (x.n > 0), mc.Action("leave", mc.step(n=-1)))
        return mc.Model(mc.Lattice({"n": 8}), [arrival, service], cost_rate=lambda x: 0.3 * x.n)


@dataclasses.dataclass(frozen=True)
class Classes:
    """Two classes of arrivals to two nodes, of which nothing else is said."""

    classes: int = 2
    nodes_count: int = 2

    def model(self, caps: Any = None) -> mc.Model:
        routes = [mc.Action("lost", cost=1.0)]
        routes += [mc.Action(f"node {k}", mc.step(node={k: +1})) for k in range(2)]
        events = [mc.Event(f"class {j}", 1.0 + j, routes) for j in range(self.classes)]
        for k in range(self.nodes_count):
            leave = mc.Action("leave", mc.step(node={k: -1}))
            events.append(mc.Event(f"departure {k}", lambda x, k=k: 1.0 * (x.node[k] > 0), leave))
        jobs = {"mean_jobs[2]": lambda x: x.node[-1]}
        return mc.Model(
            mc.Lattice({"node": (4,) * self.nodes_count}),
            events,
            cost_rate=lambda x: 0.1 * sum(x.node),
            measures=jobs,
        )


@dataclasses.dataclass(frozen=True)
class Tabular:
    """A model without coordinates."""

    def model(self, caps: Any = None) -> Any:
        return mc.tabular([[[0.5, 0.5], [1, 0]], [[1, 0], [0, 1]]], costs=[[1, 2], [0, 3]])


@cache
def comparison(nodes: int, outside_cost: float = 0.4) -> Comparison:
    system = CloudRouting(NODES[:nodes], 2.0 * nodes, outside_cost)
    rules = {name: name for name in system.policy_names} | {"my_rules.py:two_waiting": two_waiting}
    return with_units(mc.compare(system, rules))


def with_units(found: Comparison) -> Comparison:
    return dataclasses.replace(found, name="small", time_unit="hour", cost_unit="US$")


def titles(figure: Any) -> list[str]:
    return [axes.get_title(loc="left") for axes in figure.axes]


def legend(figure: Any) -> list[str]:
    return [text.get_text() for text in figure.legends[0].texts]


@pytest.mark.parametrize("nodes", [1, 2, 3])
def test_three_pictures_are_written(nodes: int, tmp_path: Path) -> None:
    written = comparison(nodes).plot(tmp_path / "new" / "folder")
    assert [path.name for path in written] == ["costs.png", "indices.png", "actions.png"]
    for path in written:
        assert path.read_bytes().startswith(PNG)
        assert path.stat().st_size > 10_000


def test_costs_have_the_units_and_the_gaps() -> None:
    found = comparison(2)
    figure = pictures.costs_figure(found)
    assert figure is not None
    (axes,) = figure.axes
    assert axes.get_xlabel().startswith(r"long-run cost, US\$ per hour")
    assert [label.get_text() for label in axes.get_yticklabels()] == [
        "optimum",
        "Bernoulli split",
        "individually optimal",
        "policy improvement",
        "restless bandit",
        "two waiting",
    ]
    gap = found.gaps(found.rows[0])["gap"]
    assert gap is not None
    assert axes.texts[1].get_text() == pictures.percent(gap)
    assert figure.get_suptitle() == "small"


def test_uncertain_costs_say_so_between_their_bounds() -> None:
    found = comparison(2)
    best = found.optimum.cost
    row = dataclasses.replace(
        found.rows[0], cost=1.2 * best, lower=1.1 * best, upper=1.3 * best, status="estimated"
    )
    optimum = dataclasses.replace(found.optimum, kind="bracketed")
    figure = pictures.costs_figure(dataclasses.replace(found, rows=(row,), optimum=optimum))
    assert figure is not None
    (axes,) = figure.axes
    assert axes.texts[0].get_text().endswith(" (bracketed)")
    assert axes.texts[1].get_text() == "+10 % to +30 % (estimated)"
    assert len(axes.containers) == 1


def test_without_a_relative_gap_the_absolute_one_is_shown() -> None:
    found = comparison(2)
    optimum = dataclasses.replace(found.optimum, cost=0.0, lower=0.0, upper=0.0)
    row = dataclasses.replace(found.rows[0], cost=0.25)
    figure = pictures.costs_figure(dataclasses.replace(found, rows=(row,), optimum=optimum))
    assert figure is not None
    assert figure.axes[0].texts[1].get_text() == "+0.25"


def test_each_node_has_a_panel_with_a_curve_per_index_policy() -> None:
    figure = pictures.indices_figure(comparison(2))
    assert figure is not None
    assert titles(figure) == ["node 0 (1 server)", "node 1 (2 servers)"]
    assert [len(axes.lines) for axes in figure.axes] == [4, 4]
    assert figure.axes[0].get_ylabel() == r"index, US\$ per job"
    assert legend(figure) == [
        "outside cost",
        "individually optimal",
        "policy improvement",
        "restless bandit",
    ]


def test_equal_nodes_share_a_panel() -> None:
    figure = pictures.indices_figure(comparison(3))
    assert figure is not None
    assert titles(figure) == ["node 0 (1 server)", "nodes 1, 2 (2 servers each)"]


def test_routing_charges_are_part_of_the_curves() -> None:
    nodes = (NODES[0], dataclasses.replace(NODES[1], routing_charge=0.125))
    found = mc.compare(CloudRouting(nodes, 4.0, 0.4), ["individually_optimal"])
    figure = pictures.indices_figure(found)
    assert figure is not None
    assert figure.axes[0].get_ylabel().startswith("index + routing charge,")
    assert figure.axes[1].lines[1].get_ydata()[0] == 0.125


def test_colours_of_a_policy_are_the_same_in_all_pictures() -> None:
    found = comparison(2)
    costs, indices = pictures.costs_figure(found), pictures.indices_figure(found)
    assert costs is not None
    assert indices is not None
    dots = {line.get_marker(): line.get_color() for line in costs.axes[0].lines}
    curves = indices.axes[0].lines[1:]
    assert all(dots[curve.get_marker()] == curve.get_color() for curve in curves)


def test_maps_show_two_nodes_and_name_the_state_of_the_others() -> None:
    figure = pictures.actions_figure(comparison(3))
    assert figure is not None
    assert figure.get_suptitle() == "small: arrival: action by state, with 2 jobs at node 2"
    assert titles(figure) == [
        "optimum",
        "individually optimal",
        "policy improvement",
        "restless bandit",
        "two waiting",
    ]
    assert {axes.get_xlabel() for axes in figure.axes} == {"", "jobs at node 0"}
    assert figure.axes[0].get_ylabel() == "jobs at node 1"
    assert legend(figure) == ["outside", "node 0", "node 1", "node 2"]


def test_one_node_has_strips() -> None:
    figure = pictures.actions_figure(comparison(1))
    assert figure is not None
    (axes,) = figure.axes
    assert [label.get_text() for label in axes.get_yticklabels()] == [
        "optimum",
        "individually optimal",
        "policy improvement",
        "restless bandit",
        "two waiting",
    ]
    assert axes.get_xlabel() == "jobs at node 0"


def test_a_box_cut_by_hand_is_shown_without_its_edge() -> None:
    system = CloudRouting(NODES[:2], 4.0, 2.0)
    figure = pictures.actions_figure(mc.compare(system, {"mine": two_waiting}, caps=(6, 7)))
    assert figure is not None
    assert figure.axes[0].get_xlim()[1] <= 5.5
    assert figure.axes[0].get_ylim()[1] <= 6.5


def test_a_comparison_that_was_pickled_draws_the_rules_of_the_system() -> None:
    found = mc.compare(CloudRouting(NODES[:2], 4.0, 0.4), {"pi": "policy_improvement"})
    again = pickle.loads(pickle.dumps(found))
    figure = pictures.actions_figure(again)
    assert figure is not None
    assert titles(figure) == ["optimum", "pi"]


def test_a_system_with_nothing_but_a_model_has_costs_and_strips(tmp_path: Path) -> None:
    found = mc.compare(Bare(), {"short": lambda x: "join" if x.n < 2 else "reject"})
    assert [path.name for path in found.plot(tmp_path)] == ["costs.png", "actions.png"]
    figure = pictures.actions_figure(found)
    assert figure is not None
    assert figure.axes[0].get_xlabel() == "n"


def test_without_policies_only_the_optimum_is_drawn(tmp_path: Path) -> None:
    assert [path.name for path in mc.compare(Bare()).plot(tmp_path)] == ["actions.png"]


def test_a_model_without_coordinates_has_no_maps(tmp_path: Path) -> None:
    found = mc.compare(Tabular(), {"first": 0})
    assert [path.name for path in found.plot(tmp_path)] == ["costs.png"]


def test_several_decisions_have_a_map_each_and_rules_none() -> None:
    found = mc.compare(Classes(), {"lost": {"class 0": "lost", "class 1": "lost"}})
    figure = pictures.actions_figure(found)
    assert figure is not None
    assert titles(figure) == ["optimum, class 0", "optimum, class 1"]
    assert figure.get_suptitle() == "action by state"


def test_a_node_of_unknown_servers_is_held_at_its_mean_or_half_its_cap() -> None:
    system = Classes(classes=1, nodes_count=3)
    found = mc.compare(system, {"mine": lambda x: 0})
    for known, jobs in ((found, 0), (dataclasses.replace(found, rows=()), 2)):
        figure = pictures.actions_figure(known)
        assert figure is not None
        assert figure.get_suptitle() == f"class 0: action by state, with {jobs} jobs at node 2"


def test_costs_that_were_not_found_are_left_out() -> None:
    found = comparison(2)
    unknown = dataclasses.replace(found.rows[0], cost=float("nan"), status="time_limit")
    assert pictures.costs_figure(dataclasses.replace(found, rows=(unknown,))) is None


def test_long_names_and_many_policies_are_drawn_without_warnings(tmp_path: Path) -> None:
    found = comparison(2)
    rows = tuple(
        dataclasses.replace(row, name=f"{row.name}_and_a_very_long_name_beside_it_{i}")
        for i in range(3)
        for row in found.rows
    )
    assert len(dataclasses.replace(found, rows=rows, name="n" * 200).plot(tmp_path)) == 3
