"""The link with downgrading: costs of the reference file, exact rationals, laws of conservation."""

from __future__ import annotations

import pytest

import mdpcloud as mc
from mdpcloud.systems.downgrading import Downgrading
from tests.models import reference

RECORDS = reference("allocation")["S3"]["mdp"]
SMALL = [(one["C"], k) for k, one in enumerate(RECORDS)]


def system(record, threshold=0, **others):
    return Downgrading(
        record["lam"],
        record["mu"],
        record["A"],
        record["C"],
        threshold,
        record["w_rej"],
        record["w_dg"],
        **others,
    )


def cost(link, rule):
    return mc.evaluate(link.model(), rule, tolerance=1e-13).gain


@pytest.mark.parametrize("record", RECORDS)
class TestReferenceCosts:
    def test_the_optimum(self, record):
        found = mc.solve(system(record).model(), tolerance=1e-12)
        assert found.gain == pytest.approx(record["opt_cost"], rel=1e-11)
        assert found.bounds[0] <= record["opt_cost"] * (1 + 1e-12)
        assert found.bounds[1] >= record["opt_cost"] * (1 - 1e-12)

    def test_every_common_threshold(self, record):
        (family, *_) = system(record).families()
        costs = {p[0]: cost(system(record), family.member(*p)) for p in family.members()}
        assert costs == {
            int(level): pytest.approx(value, rel=1e-12)
            for level, value in record["all_C0_costs"].items()
        }
        assert min(costs, key=costs.get) == record["best_C0"]

    def test_the_policies_by_name(self, record):
        link = system(record, record["best_C0"])
        expected = {
            "downgrade_threshold": record["best_C0_cost"],
            "always_downgrade": record["all_C0_costs"]["0"],
            "pure_loss": record["pure_loss_cost"],
        }
        for name in link.policy_names:
            rule = link.heuristic(name).rule
            assert cost(link, rule) == pytest.approx(expected[name], rel=1e-12)
