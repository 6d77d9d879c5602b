"""Figures of studies: the numbers of their charts, their looks, their files, mistakes."""

from collections.abc import Iterator
from typing import Any

import pytest

import mdpcloud as mc
from mdpcloud.plots.chart import Series
from mdpcloud.study.figures import chart_of
from mdpcloud.study.outputs import Figure

LOADS = (0.8, 1.0, 1.2)
DEADLINES = ("begin_service", "end_service")
POLICIES = ("bernoulli_split", "my_rules.py:fast_first")


def gap_at(policy: str, deadline: str, load: float) -> float:
    return 0.01 * (1 + POLICIES.index(policy)) * (1 + DEADLINES.index(deadline)) * load


def rows() -> list[dict[str, Any]]:
    return [*each_row()]


def each_row() -> Iterator[dict[str, Any]]:
    points = [(deadline, load) for deadline in DEADLINES for load in LOADS]
    for instance, (deadline, load) in enumerate(points):
        same = {"instance": instance, "deadline": deadline, "load": load}
        rest = {"status": "exact", "error": None, "key": str(instance)}
        bare = dict.fromkeys(("gap", "gap_lower", "gap_upper"))
        yield {**same, "policy": "optimum", "cost": 2.0, **bare, **rest}
        for policy in POLICIES:
            gap = gap_at(policy, deadline, load)
            bounds = {"gap": gap, "gap_lower": gap - 0.001, "gap_upper": gap + 0.001}
            yield {**same, "policy": policy, "cost": 2.0 * (1 + gap), **bounds, **rest}


def by_curve(series: tuple[Series, ...]) -> dict[str, Series]:
    return {one.curve: one for one in series}


LINES = Figure("gaps", x="load", panels=("deadline",))


def test_lines_show_the_numbers_of_the_rows() -> None:
    chart = chart_of(rows(), LINES)
    assert [panel.title for panel in chart.panels] == ["begin service", "end service"]
    for panel, deadline in zip(chart.panels, DEADLINES, strict=True):
        found = by_curve(panel.series)
        assert tuple(found) == POLICIES
        for policy, one in found.items():
            gaps = [gap_at(policy, deadline, load) for load in LOADS]
            assert (one.x, one.y) == ([*LOADS], gaps)
            assert one.lower == [gap - 0.001 for gap in gaps]
    assert chart.curves == dict(zip(POLICIES, ("Bernoulli split", "fast first"), strict=True))
    assert chart.notes == ()


def test_instances_that_a_figure_does_not_tell_apart_are_refused() -> None:
    words = r"stand at load = 0.8; they differ in deadline \('begin_service', 'end_service', ...\)"
    with pytest.raises(mc.InputError, match=words):
        chart_of(rows(), Figure("gaps", x="load"))
