"""How often two saturated centres are full, by the integral."""

from __future__ import annotations

from typing import Any

import pytest

from mdpcloud.limits.boundary_value import full_centres
from tests.models import reference

RECORDS = reference("allocation")["extra_phiY_mp_S3LP_S3ode"]["phiY_mp"]


@pytest.mark.parametrize("record", RECORDS, ids=lambda record: str(record["args"]))
def test_the_integral_agrees_with_one_of_forty_digits(record: Any) -> None:
    l1, l2, a1, a2, p1, p2 = map(float, record["args"])
    found = full_centres((l1, l2), (a1, a2), (p1, p2))
    assert found.both == pytest.approx(float(record["pi00"]), rel=5e-15)
    assert found.error < 1e-13
