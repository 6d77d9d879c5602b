"""How often two saturated centres are full, by the walk in a box."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings

from mdpcloud.errors import NoLimitError, SolveError
from mdpcloud.limits.offloading import walk as offloading_walk
from mdpcloud.limits.offloading.boundary_value import drifts, full_centres
from mdpcloud.limits.offloading.walk import full_centres_in_box, walk_law
from tests.limits.walks import blocking, saturated_pairs
from tests.models import reference

WALKS = reference("allocation")["S5"]["walk_checks"]


@settings(max_examples=40, deadline=None)
@given(saturated_pairs(margin=0.05))
def test_the_integral_agrees_with_the_box_in_regime_e(pair: Any) -> None:
    agree(pair, 1e-9)


@pytest.mark.slow
def test_the_integral_agrees_with_the_box_in_many_random_systems() -> None:
    random = np.random.default_rng(20261130)
    pairs = [pair for pair in (random_pair(random) for _ in range(600)) if pair is not None]
    assert len(pairs) > 100
    for pair in pairs:
        agree(pair, 1e-8)


def random_pair(random: np.random.Generator) -> Any:
    """Parameters in regime E whose walk has a light tail; None where they are not."""
    l1, l2, a1, a2 = random.uniform(0.2, 3.0, 4).tolist()
    p1, p2 = random.uniform(0.0, 1.0, 2).tolist()
    pair = (l1, l2), (a1, a2), (p1, p2)
    return pair if min(drifts(*pair)) > 0.06 * (l1 + l2 + a1 + a2) else None


def agree(pair: Any, tolerance: float) -> None:
    found, box = full_centres(*pair), full_centres_in_box(*pair, tolerance)
    error = found.error + box.error
    assert found.both == pytest.approx(box.both, abs=error)
    assert found.each == pytest.approx(box.each, abs=error)


@pytest.mark.parametrize("record", WALKS, ids=str)
def test_walks_computed_elsewhere_are_found(record: Any) -> None:
    pair = (
        (record["l1"], record["l2"]),
        (record["m1"], record["m2"]),
        (record["p1"], record["p2"]),
    )
    found = full_centres_in_box(*pair, 1e-7)
    assert (*blocking(pair, found), found.both) == pytest.approx(record["formula"][1:], abs=1e-8)


def test_the_law_balances_every_state() -> None:
    (l1, l2), (a1, a2), (p1, p2) = (2.0, 3.0), (1.0, 2.5), (0.3, 0.8)
    law = walk_law((l1, l2), (a1, a2), (p1, p2), (3, 4))
    chain = np.zeros((4, 5, 4, 5))
    for m, n in np.ndindex(4, 5):
        for (dm, dn), rate in {
            (1, 0): a1,
            (0, 1): a2,
            (-1, 0): l1 + p2 * l2 * (n == 0),
            (0, -1): l2 + p1 * l1 * (m == 0),
        }.items():
            if 0 <= m + dm <= 3 and 0 <= n + dn <= 4:
                chain[m, n, m + dm, n + dn] = rate
    flows = chain.reshape(20, 20)
    assert law.sum() == pytest.approx(1.0, abs=1e-15)
    assert law.ravel() @ flows == pytest.approx(law.ravel() * flows.sum(axis=1), rel=1e-12)


def test_a_heavy_tail_is_not_cut_off_in_silence(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(offloading_walk, "MOST", 20_000)
    pair = (1.2, 9.9), (1.0, 10.0), (0.9, 0.0)
    with pytest.raises(SolveError, match="heavy") as raised:
        full_centres_in_box(*pair)
    partial = raised.value.partial
    assert abs(partial.both - full_centres(*pair).both) < partial.error  # type: ignore[attr-defined]


def test_a_walk_without_a_stationary_law_is_refused() -> None:
    with pytest.raises(NoLimitError, match="not saturated"):
        full_centres_in_box((1.0, 8.0), (2.0, 10.0), (0.5, 0.5))
