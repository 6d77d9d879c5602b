"""Results made by hand, of instances that nothing has to compute."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

import mdpcloud as mc
from mdpcloud.study import Outputs, Study
from mdpcloud.study.records.record import DONE
from mdpcloud.study.reports.results import Results

NODE = mc.systems.Node(servers=1, service_rate=1.0, abandonment_rate=1.0)


@dataclass(frozen=True)
class Point:
    """Labels of an instance, and what its record holds; nothing where there is none."""

    labels: Mapping[str, Any]
    rows: Sequence[Mapping[str, Any]] | None = None
    status: str = DONE
    error: str | None = None
    computed: bool = True


@cache
def system(number: int) -> mc.systems.CloudRouting:
    return mc.systems.CloudRouting((NODE,), 1.0 + number, outside_cost=0.5)


def results_of(points: Sequence[Point], outputs: Outputs | None = None) -> Results:
    labels = [point.labels for point in points]
    study = Study.of(zip(labels, map(system, range(len(points))), strict=True))
    study = replace(study, outputs=outputs or study.outputs)  # which may want what is not there
    records = {
        one.key: {
            "status": point.status,
            "error": point.error,
            "result": None if point.rows is None else {"rows": [*point.rows]},
            "run": {"host": "here", "elapsed": 1.5},
        }
        for one, point in zip(study.instances, points, strict=True)
        if point.computed
    }
    return Results(study, records)


def policy(name: str, gap: float | None, width: float = 0.0, **more: Any) -> dict[str, Any]:
    """A row of a comparison whose optimum is 1."""
    row: dict[str, Any] = {"policy": name, "cost": None, "lower": None, "upper": None}
    row |= dict.fromkeys(("gap", "gap_lower", "gap_upper"))
    if gap is not None:
        row |= {"cost": 1.0 + gap, "lower": 1.0 + gap - width, "upper": 1.0 + gap + width}
        row |= {"gap": gap, "gap_lower": gap - width, "gap_upper": gap + width}
    return {**row, "truncation": "exact", "status": "exact", **more}
