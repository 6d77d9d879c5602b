"""Offloading: the finite system, its optimum and policies, and its limit."""

from __future__ import annotations

from typing import Any

import pytest

import mdpcloud as mc
from tests.models import reference

FINITE = reference("allocation")["S5_finite_mdp_ring"]


def system_of(record: Any, probabilities: tuple[float, float] = (1.0, 1.0)) -> Any:
    return mc.systems.Offloading(
        arrival_rates=(record["lambda1"], record["lambda2"]),
        service_rates=(record["mu1"], record["mu2"]),
        servers=(record["C1"], record["C2"]),
        offload_probabilities=probabilities,
        rejection_costs=(record["w1"], record["w2"]),
    )


@pytest.mark.parametrize("record", FINITE["mdp"])
def test_the_optimum_and_the_policies_have_the_reference_costs(record: Any) -> None:
    found = mc.compare(system_of(record, (0.5, 1.0)))
    costs = {row.name: row.cost for row in found.rows}
    assert found.optimum is not None
    assert found.optimum.cost == pytest.approx(record["opt"]["both"], rel=1e-12)
    assert costs == {
        "bernoulli_offloading": pytest.approx(record["p_policies"]["0.5,1.0"], rel=1e-12),
        "complete_sharing": pytest.approx(record["p_policies"]["1.0,1.0"], rel=1e-12),
        "no_cooperation": pytest.approx(record["p_policies"]["0,0"], rel=1e-12),
    }
