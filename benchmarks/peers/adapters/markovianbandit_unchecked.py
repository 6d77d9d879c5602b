"""markovianbandit-pkg told not to check whether the arm has an index."""

from __future__ import annotations

from typing import Any

from benchmarks.peers.adapters.markovianbandit import bandit
from benchmarks.peers.restless import Restless

__all__ = ["whittle"]


def whittle(instance: Restless) -> dict[str, Any]:
    return {"index": bandit(instance).whittle_indices(check_indexability=False)}
