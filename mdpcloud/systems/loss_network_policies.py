"""Which jobs of a loss network fit, and policies that keep capacity free."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

import numpy as np

from mdpcloud.policies.complete_sharing import complete_sharing
from mdpcloud.policies.family import Family, Option, Parameter, Rules, Stream
from mdpcloud.policies.trunk_reservation import trunk_reservation

__all__ = ["fits", "reservation_families", "sharing_rules"]

LARGEST_GRID = 1000  # members of a family whose best one is searched for

Rows: TypeAlias = Sequence[Sequence[int]]


def fits(rows: Rows, capacities: Sequence[int], needs: Sequence[int]) -> Callable[[Any], Any]:
    """Whether so much more of each resource is free, as a function of the state."""
    free = [_free(row, c) for row, c in zip(rows, capacities, strict=True)]

    def enough(x: Any) -> Any:
        room: Any = True
        for need, spare in zip(needs, free, strict=True):
            room = room & (spare(x) >= need)
        return room

    return enough


def sharing_rules(rows: Rows, capacities: Sequence[int]) -> Rules:
    """Accept whatever fits."""
    return complete_sharing(_streams(rows, capacities, after=True)).member()


def reservation_families(rows: Rows, capacities: Sequence[int]) -> tuple[Family, ...]:
    """Reservation by one level of free capacity for all classes, and by one for each class.

    The second is left out where there are too many classes for a grid up to the widest job.
    """
    each = _per_class(rows, capacities)
    return (_common(rows, capacities), *([] if each is None else [each]))


def _common(rows: Rows, capacities: Sequence[int]) -> Family:
    """Accepted where at least so much of every resource that is needed was free before."""
    most = min(max(capacities) + 1, LARGEST_GRID)
    levels = Parameter("free", tuple(range(most)))
    streams = _streams(rows, capacities, after=False)
    each = trunk_reservation(streams, [levels] * len(streams))
    return Family(
        "common_reservation",
        (levels,),
        lambda free: each.member(*[free] * len(streams)),
        notes=_cut(most, capacities),
    )


def _per_class(rows: Rows, capacities: Sequence[int]) -> Family | None:
    """Accepted where so much of every resource that is needed stays free; None if too many."""
    streams = _streams(rows, capacities, after=True)
    most = min(int(LARGEST_GRID ** (1.0 / len(streams)) + 1e-9), max(capacities) + 1)
    if most <= max(map(max, rows)):
        return None
    parameters = [Parameter(f"reserved[{j}]", tuple(range(most))) for j in range(len(streams))]
    family = trunk_reservation(streams, parameters)
    return Family(family.name, family.parameters, family.member, notes=_cut(most, capacities))


def _cut(most: int, capacities: Sequence[int]) -> tuple[str, ...]:
    """A note where the grid ends before the capacity."""
    return () if most > max(capacities) else (f"levels up to {most - 1} only",)


def _streams(rows: Rows, capacities: Sequence[int], *, after: bool) -> list[Stream]:
    """Accept what fits; the spare capacity is that once the job is in, or that before."""
    streams = []
    for j, needs in enumerate(zip(*rows, strict=True)):
        taken = needs if after else (0,) * len(needs)
        spare = _spare(rows, capacities, needs, taken)
        option = Option("accept", fits(rows, capacities, needs), spare)
        streams.append(Stream(f"arrival {j}", (option,)))
    return streams


def _spare(
    rows: Rows, capacities: Sequence[int], needs: Sequence[int], taken: Sequence[int]
) -> Callable[[Any], Any]:
    """Least free capacity of the resources that a job needs, less what is taken of each."""
    resources = zip(rows, capacities, taken, needs, strict=True)
    free = [_free(row, c - t) for row, c, t, need in resources if need]

    def spare(x: Any) -> Any:
        least = free[0](x)
        for other in free[1:]:
            least = np.minimum(least, other(x))
        return least

    return spare


def _free(row: Sequence[int], capacity: int) -> Callable[[Any], Any]:
    """Free capacity of a resource."""
    return lambda x: capacity - sum(a * n for a, n in zip(row, x.jobs, strict=True) if a)
