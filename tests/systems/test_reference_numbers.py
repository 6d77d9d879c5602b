"""Every number of tests/reference/routing.json, through the public functions."""

from fractions import Fraction
from functools import cache
from typing import Any

import numpy as np
import pytest

import mdpcloud as mc
from mdpcloud.compare import Comparison, Row, evaluate_policies
from tests.systems.brute import as_written, exact_optimum
from tests.systems.cases import REFERENCE, SHORT, case, costs_of, name, system_of

TIES = {"highlabel": "last", "fastest": "fastest", "slowest": "slowest"}
POLICY_ERROR = 1e-9  # of the reference costs of policies, by relative value iteration
LARGE = 1000  # states from which a comparison takes more than a second

ALL = [name(c) for c in REFERENCE["mdp"]]
SEVERAL = [name(c) for c in REFERENCE["mdp"] if c["n"] > 1]
by_case = pytest.mark.parametrize("wanted", ALL)


def marked(cases: list[dict[str, Any]]) -> list[Any]:
    """Cases as parameters, slow ones marked."""
    return [
        pytest.param(c, id=name(c), marks=[pytest.mark.slow] * (len(c["nodes"]) > 2)) for c in cases
    ]


@cache
def compared(wanted: str) -> Comparison:
    return mc.compare(system_of(case(wanted)), ties="first", tolerance=1e-10)


def rows(found: Comparison) -> dict[str, Row]:
    """Rows by the reference's short names."""
    return {key: next(r for r in found.rows if r.name == long) for key, long in SHORT.items()}


@by_case
def test_the_box_is_the_exact_one(wanted: str) -> None:
    found = compared(wanted).optimum
    assert found.kind == "exact"
    assert list(found.caps or ()) == case(wanted)["box_K"]
    assert found.states == case(wanted)["box_states"]
    assert found.error == 0.0


@by_case
def test_the_optimum_lies_in_the_reference_bounds(wanted: str) -> None:
    low, high = case(wanted)["optimum_bounds"]
    found = compared(wanted).optimum
    assert found.lower <= high
    assert found.upper >= low
    widths = (high - low) + (found.upper - found.lower)
    assert found.cost == pytest.approx(case(wanted)["optimum"], abs=widths)
    assert found.upper - found.lower <= 1e-10 * found.cost


@pytest.mark.parametrize("wanted", [n for n in ALL if case(n)["n"] < 3])
def test_a_larger_box_has_the_same_optimum(wanted: str) -> None:
    system = system_of(case(wanted))
    caps = [cap + 8 for cap in system.exact_caps() if cap is not None]
    lower, upper = mc.solve(system.model(caps), tolerance=1e-10).bounds
    assert lower - 1e-10 <= case(wanted)["optimum_box_plus8"] <= upper + 1e-10
    assert compared(wanted).optimum.lower <= upper
    assert compared(wanted).optimum.upper >= lower


@by_case
def test_the_policies_cost_what_the_reference_says(wanted: str) -> None:
    for key, cost in costs_of(case(wanted)).items():
        row = rows(compared(wanted))[key]
        assert row.cost == pytest.approx(cost, abs=POLICY_ERROR), key
        assert row.lower <= cost + POLICY_ERROR
        assert row.upper >= cost - POLICY_ERROR
        assert row.status == ("closed_form" if key == "BS" else "exact")


@by_case
def test_the_gaps_are_those_of_the_reference(wanted: str) -> None:
    found = compared(wanted)
    for key, row in rows(found).items():
        gaps = found.gaps(row)
        scale = found.optimum.cost
        assert gaps["gap"] == pytest.approx(case(wanted)["rel_gap"][key], abs=1e-9 / scale)
        wanted_profit = case(wanted)["rel_profit_gap"][key]
        assert gaps["profit_gap"] == pytest.approx(wanted_profit, abs=1e-9)


@by_case
def test_the_split_is_that_of_the_reference(wanted: str) -> None:
    split, known = compared(wanted).to_dict()["split"], case(wanted)["BS"]
    fine = case(wanted)["BS_mp"]
    assert split["rates"] == pytest.approx([float(x) for x in fine["lam_k"]], rel=1e-11, abs=1e-13)
    assert split["outside_rate"] == pytest.approx(float(fine["lam0"]), abs=1e-11)
    assert split["shadow_price"] == pytest.approx(float(fine["alpha_star"]), abs=1e-12)
    assert rows(compared(wanted))["BS"].cost == pytest.approx(float(fine["cost"]), rel=1e-12)
    price = min(case(wanted)["C"], known["Cstar_lambda"])
    assert split["shadow_price"] == pytest.approx(price, abs=1e-12)
    node_costs = system_of(case(wanted)).split.node_costs
    assert list(node_costs) == pytest.approx(known["ell_k"], abs=1e-12)


@by_case
def test_the_indices_and_thresholds_are_those_of_the_reference(wanted: str) -> None:
    tables = compared(wanted).to_dict()["indices"]
    for key in ("IO", "PI", "RB"):
        for k, table in enumerate(tables[SHORT[key]]):
            assert len(table) == case(wanted)["thresholds"][key][k]
            known = case(wanted)["index"][key][k]
            shown = {int(i): v for i, v in known.items() if int(i) < len(table)}
            assert [table[i] for i in shown] == pytest.approx(list(shown.values()), abs=1e-12)


@by_case
def test_the_optimum_uses_every_node_that_the_reference_says(wanted: str) -> None:
    found = compared(wanted).optimum
    used = set(np.unique(found.policy.table())) - {0}
    never = set(case(wanted)["nodes_never_routed"])
    assert used == {k + 1 for k in range(case(wanted)["n"])} - {k + 1 for k in never}


@pytest.mark.parametrize("wanted", [n for n in ALL if case(n)["n"] == 1])
def test_one_node_is_best_run_by_the_threshold_of_the_reference(wanted: str) -> None:
    best, found = case(wanted)["n1_best_threshold"], compared(wanted)
    rounding = 1e-12 * best["cost"]
    assert found.optimum.lower - rounding <= best["cost"] <= found.optimum.upper + rounding
    policy = found.optimum.policy.table()
    assert policy.tolist() == [int(i < best["threshold"]) for i in range(policy.size)]


@pytest.mark.parametrize(
    "wanted",
    [pytest.param(n, marks=[pytest.mark.slow] * (case(n)["box_states"] > LARGE)) for n in SEVERAL],
)
@pytest.mark.parametrize("order", TIES)
def test_other_tie_rules_cost_what_the_reference_says(wanted: str, order: str) -> None:
    found = evaluate_policies(system_of(case(wanted)), list(SHORT.values())[1:], ties=TIES[order])
    for row, key in zip(found, ("IO", "PI", "RB"), strict=True):
        known = case(wanted)["cost"][f"{key}_{order}"]
        assert row.cost == pytest.approx(known, abs=POLICY_ERROR), key


@pytest.mark.parametrize("known", REFERENCE["exact_rationals"], ids=name)
def test_the_exact_rationals_are_met(known: dict[str, Any]) -> None:
    found = compared(name(known))
    optimum = Fraction(known["optimum"])
    assert found.optimum.lower <= optimum <= found.optimum.upper
    assert exact_optimum(found.system, found.optimum.caps or (), as_written) == optimum
    for key in ("IO", "PI", "RB"):
        if key in known:
            row = rows(found)[key]
            assert row.lower <= Fraction(known[key]) <= row.upper


@pytest.mark.parametrize("sweep", marked(REFERENCE["sweeps"]))
def test_every_sweep_is_met(sweep: dict[str, Any]) -> None:
    system, width = system_of(sweep), sweep["width"]
    found = mc.compare(system, ties="first", tolerance=1e-9)
    assert found.optimum.lower - width <= sweep["opt"] <= found.optimum.upper + width
    for key, row in rows(found).items():
        assert row.cost == pytest.approx(sweep["cost"][key], abs=width + POLICY_ERROR), key
        gaps = found.gaps(row)
        tolerance = (2 * width + POLICY_ERROR) / sweep["opt"]
        assert gaps["gap"] == pytest.approx(
            sweep["gap"][key], abs=tolerance * (1 + sweep["gap"][key])
        )
        assert gaps["profit_gap"] == pytest.approx(sweep["profit_gap"][key], abs=1e-8)
    fastest = evaluate_policies(system, ["individually_optimal", "restless_bandit"])
    for row, key in zip(fastest, ("IO", "RB"), strict=True):
        known = sweep["cost"][f"{key}_fastest"]
        assert row.cost == pytest.approx(known, abs=width + POLICY_ERROR), key
    assert system.split.shadow_price == pytest.approx(sweep["alpha"], abs=1e-12)
    assert system.split.shadow_price == pytest.approx(min(system.outside_cost, sweep["Cstar"]))
