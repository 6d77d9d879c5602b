"""Cooperating centres against the reference numbers of Thompson (2017), chapter 3."""

from __future__ import annotations

from typing import Any

import pytest

import mdpcloud as mc
from mdpcloud.systems import Cooperation
from tests.models import reference

SETS = reference("allocation")["S4"]
MDP = SETS["mdp"]


def cooperation(name: str, scale: float, **more: Any) -> Cooperation:
    """A set of the reference file."""
    one = SETS[name]
    ram, cpu = one["delta"][0] * one["cap"][0], one["delta"][1] * one["cap"][3]
    return Cooperation(
        one["lam_jk"],
        one["mu"],
        ((one["R"], 1), (1, one["C"])),
        (one["cap"][:2], one["cap"][2:]),
        (ram, cpu),
        scale=scale,
        **more,
    )


@pytest.mark.parametrize("record", MDP, ids=lambda r: f"{r['set']} {r['N']} {r['w_fwd'][0]}")
def test_the_optimum_and_the_threshold_policy_cost_what_the_reference_says(record: Any) -> None:
    system = cooperation(
        record["set"],
        record["N"],
        rejection_cost=record["w_rej"][0],
        forwarding_cost=record["w_fwd"][0],
    )
    model = system.model()
    assert mc.solve(model, tolerance=1e-11).gain == pytest.approx(record["opt"], rel=1e-10)
    found = mc.evaluate(model, system.heuristic("threshold").rule)
    assert found.gain == pytest.approx(record["delta_policy_cost"], rel=1e-10)
    assert found.policy is not None
    assert found.gain - record["opt"] > 0.0
    assert len(found.values) == record["states"]
