"""The large-scale limit of two centres that offload to each other."""

from __future__ import annotations

from typing import Any

import pytest

from mdpcloud.limits.offloading import pair_limit
from tests.models import reference

FIGURES = reference("allocation")["S5"]
POINTS = [
    *(((r["lambda1"], 8.0), r) for r in FIGURES["fig_lambda2=8"]),
    *(((r["lambda1"], 12.0), r) for r in FIGURES["fig_lambda2=12"]),
    *(((1.2, r["lambda2"]), r) for r in FIGURES["fig_4_6"]),
]


@pytest.mark.parametrize(("arrivals", "record"), POINTS)
def test_blocking_is_that_of_the_figures_of_the_thesis(arrivals: Any, record: Any) -> None:
    found = pair_limit(arrivals, (1.0, 10.0), (record["p1"], 0.0))
    assert found.blocking == pytest.approx((record["beta1"], record["beta2"]), rel=1e-12)
    if record["pi00"] is not None:
        assert found.full.both == pytest.approx(record["pi00"], rel=1e-12)
