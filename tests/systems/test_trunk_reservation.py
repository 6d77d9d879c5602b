"""The finite system of trunk reservation against references, exact rationals and theorems."""

from typing import Any

import pytest

import mdpcloud as mc
from mdpcloud.systems.trunk_reservation import TrunkReservation
from tests.models import reference

RECORDS = reference("allocation")["S6_finite_mdp"]["mdp"]
MODES = {"redirect": None, "rejection": "redirect+rej2", "offload": "full1", "mutual": "both"}


def system_of(record: Any, reserved: int = 0, freedom: Any = "redirect") -> TrunkReservation:
    return TrunkReservation(
        (record["lambda1"], record["lambda2"]),
        (record["mu1"], record["mu2"]),
        (record["C1"], record["C2"]),
        reserved,
        (record["w1"], record["w2"]),
        freedom,
    )


@pytest.mark.parametrize("record", RECORDS)
@pytest.mark.parametrize("freedom", MODES)
def test_the_optimum_is_the_reference(record: Any, freedom: str) -> None:
    known = record["opt_cost"] if freedom == "redirect" else record["other_modes"][MODES[freedom]]
    lower, upper = mc.solve(system_of(record, 0, freedom).model()).bounds
    assert lower - 1e-11 <= known <= upper + 1e-11


@pytest.mark.parametrize("record", RECORDS)
def test_compare_finds_the_policies_and_the_optimum_of_the_reference(record: Any) -> None:
    found = mc.compare(system_of(record, reserved=2))
    costs = record["costs_by_a"]
    known = {
        "trunk_reservation": costs[2],
        "complete_sharing": costs[0],
        "no_cooperation": costs[-1],
    }
    assert {row.name: row.cost for row in found.rows} == pytest.approx(known, abs=1e-10)
    assert found.optimum is not None
    assert found.optimum.lower - 1e-10 <= record["opt_cost"] <= found.optimum.upper + 1e-10
