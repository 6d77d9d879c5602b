"""markovianbandit-pkg as it comes: it says whether the arm is indexable, then gives its index."""

from __future__ import annotations

from typing import Any

from markovianbandit import restless_bandit_from_P0P1_R0R1

from benchmarks.peers.restless import Restless

__all__ = ["bandit", "whittle"]


def bandit(instance: Restless) -> Any:
    rewards = instance.passive_rewards, instance.active_rewards
    return restless_bandit_from_P0P1_R0R1(instance.passive, instance.active, *rewards)


def whittle(instance: Restless) -> dict[str, Any]:
    return {"index": bandit(instance).whittle_indices()}
