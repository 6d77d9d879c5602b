"""Restless arms in discrete time, and how far the index of a program is from the known one."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["Restless"]

Array = NDArray[Any]


@dataclass(frozen=True, eq=False)
class Restless:
    """An arm by its probabilities (n, n) and rewards per step (n,), passive and active.

    ``index`` (n,) is the known index of the average reward: the subsidy per passive step.
    """

    passive: Array
    active: Array
    passive_rewards: Array
    active_rewards: Array
    index: Array

    @property
    def states(self) -> int:
        return self.index.size

    def compared(self, index: Array) -> dict[str, Any]:
        """How many entries are no numbers, and the largest distance of the others.

        Relative to the largest absolute value of the known index.
        """
        found = np.asarray(index, np.float64)
        assert found.shape == self.index.shape
        numbers = np.isfinite(found)
        off = np.abs(found - self.index)[numbers] / np.abs(self.index).max()
        return {"missing": int((~numbers).sum()), "off": float(np.max(off, initial=0.0))}
