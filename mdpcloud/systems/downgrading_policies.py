"""Policies of a link with downgrading: thresholds on the units in use, and the pure loss system."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np

from mdpcloud.policies.complete_sharing import complete_sharing
from mdpcloud.policies.family import Condition, Family, Option, Parameter, Rules, Stream
from mdpcloud.policies.thresholds import thresholds

__all__ = ["ThresholdPolicies", "used"]

MOST_MEMBERS = 3000  # of the family of thresholds per class


def used(x: Any, requirements: Sequence[int]) -> Any:
    """Units in use in state x."""
    return sum(units * x.jobs[j] for j, units in enumerate(requirements))


@dataclass(frozen=True)
class ThresholdPolicies:
    """Families of policies of a link.

    A job of class j >= 1 is taken in full while less than a level is in use, and downgraded from
    there on while there is room; one of class 0 is taken while there is room.

    Parameters
    ----------
    requirements : sequence of int
        Units of a job of each class.
    units : int
        Of the link.
    unfit : {"downgrade", "reject"}
        What happens to a job below its level that does not fit.
    """

    requirements: Sequence[int]
    units: int
    unfit: Literal["downgrade", "reject"]

    def common(self) -> Family:
        """One level for all classes: 0, ..., C."""
        levels = Parameter("threshold", tuple(range(self.units + 1)))
        count = len(self.requirements) - 1
        family = thresholds(self._streams(), [levels], "common_threshold", common=True)
        return self._as_asked(family, lambda level: (level,) * count)

    def per_class(self) -> Family:
        """A level for each class but 0, on a grid that is coarse if there are many."""
        tops = [self._last_level(units) for units in self.requirements[1:]]
        stride = _stride(tops)
        levels = [Parameter(f"threshold[{j}]", _grid(top, stride)) for j, top in enumerate(tops, 1)]
        note = f"the thresholds are multiples of {stride}, and the largest"
        family = thresholds(self._streams(), levels, "class_thresholds")
        family = replace(family, notes=() if stride == 1 else (note,))
        return self._as_asked(family, lambda *each: each)

    def pure_loss(self) -> Family:
        """Every job is taken in full where it fits, and rejected where it does not."""
        streams = [
            Stream(stream.decision, (replace(stream.options[0], used=None),))
            for stream in self._streams()
        ]
        return complete_sharing(streams, "pure_loss")

    def _streams(self) -> list[Stream]:
        lower = Option("downgrade", self._fits(1))
        return [Stream("arrival 0", (Option("full", self._fits(1)),))] + [
            Stream(f"arrival {j}", (Option("full", self._fits(units), used=self._used), lower))
            for j, units in enumerate(self.requirements[1:], 1)
        ]

    def _used(self, x: Any) -> Any:
        return used(x, self.requirements)

    def _fits(self, units: int) -> Condition:
        return lambda x: self._used(x) + units <= self.units

    def _last_level(self, units: int) -> int:
        """Level beyond which nothing changes, as jobs do not fit."""
        return self.units - units + 1 if self.unfit == "downgrade" else self.units

    # --- jobs that do not fit ---------------------------------------------------------------------

    def _as_asked(self, family: Family, levels_of: Any) -> Family:
        """The family, which downgrades jobs that do not fit, or one that rejects them."""
        if self.unfit == "downgrade":
            return family

        def member(*parameters: float) -> Rules:
            rules = dict(family.member(*parameters))
            for j, level in enumerate(levels_of(*parameters), 1):
                decision = f"arrival {j}"
                unfit = self._unfit(self.requirements[j], level)
                rules[decision] = _rejecting_where(unfit, rules[decision])
            return rules

        return replace(family, member=member)

    def _unfit(self, units: int, level: float) -> Condition:
        return lambda x: (self._used(x) < level) & (self._used(x) + units > self.units)


def _rejecting_where(condition: Condition, rule: Condition) -> Condition:
    return lambda x: np.where(condition(x), "reject", rule(x))


def _stride(tops: Sequence[int]) -> int:
    """The least step of a grid with at most so many members."""
    stride = max(int((math.prod(tops) / MOST_MEMBERS) ** (1.0 / len(tops))), 1)
    while math.prod(len(_grid(top, stride)) for top in tops) > MOST_MEMBERS:
        stride += 1
    return stride


def _grid(top: int, stride: int) -> tuple[int, ...]:
    """Multiples of the stride up to the top, and the top."""
    return tuple(sorted({*range(0, top + 1, stride), top}))
