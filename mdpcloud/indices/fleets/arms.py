"""Fleets of arms, as users give them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from mdpcloud.errors import InputError
from mdpcloud.indices.restless.arm import Arm
from mdpcloud.indices.restless.birth_death_arm import BirthDeathArm
from mdpcloud.indices.restless.model_arm import checked_arm
from mdpcloud.model.matrices import Floats, as_floats

__all__ = ["check_budget", "counted_arms", "start_laws"]


def counted_arms(arms: Any) -> list[tuple[Arm, int]]:
    """Arms with how often each occurs.

    Parameters
    ----------
    arms : mapping from arm to count, or sequence of arms and of pairs (arm, count)
        An arm is an Arm, a BirthDeathArm, or a model with one decision between two actions.

    Raises
    ------
    InputError
        If there is none, a count is not a whole number >= 1, or arms differ in their kind of time.
    """
    entries = list(arms.items()) if isinstance(arms, Mapping) else _listed(arms)
    known: dict[int, Arm] = {}
    found = [_entry(entry, k, known) for k, entry in enumerate(entries)]
    if not found:
        raise InputError("there are no arms; give at least one")
    kinds = {one.discrete for one, _ in found}
    if len(kinds) > 1:
        raise InputError("some arms are in discrete and others in continuous time")
    return found


def _listed(arms: Any) -> list[Any]:
    if not isinstance(arms, Iterable):
        raise InputError(f"arms is {arms!r}; give a sequence of arms or of pairs (arm, count)")
    return list(arms)


def _entry(entry: Any, k: int, known: dict[int, Arm]) -> tuple[Arm, int]:
    one, count = entry if isinstance(entry, tuple) and len(entry) == 2 else (entry, 1)
    if isinstance(count, bool) or not isinstance(count, int | np.integer) or count < 1:
        raise InputError(f"the count of arm {k} is {count!r}; it must be a whole number >= 1")
    if id(one) not in known:
        known[id(one)] = _as_arm(one, k)
    return known[id(one)], int(count)


def _as_arm(one: Any, k: int) -> Arm:
    found = checked_arm(one, f"arm {k}")
    return found.general() if isinstance(found, BirthDeathArm) else found


def check_budget(budget: Any) -> float:
    """The budget as a number; `InputError` where it is none or negative."""
    number = as_floats(budget, "budget")
    if number.shape != () or not np.isfinite(number) or number < 0.0 or isinstance(budget, bool):
        raise InputError(f"budget is {budget!r}; it must be a finite number >= 0")
    return float(number)


def start_laws(starts: Any, fleet: list[tuple[Arm, int]]) -> list[Floats]:
    """Law (n,) of the first state of each arm.

    Parameters
    ----------
    starts : sequence
        Per entry of the fleet a state number, or probabilities (n,).
    fleet : list of (Arm, int)
    """
    if not isinstance(starts, Iterable) or len(listed := list(starts)) != len(fleet):
        raise InputError(
            "starts must hold a state, or probabilities, for each entry of arms; "
            f"there are {len(fleet)}"
        )
    return [
        _law(one, arm.n, k) for k, (one, (arm, _)) in enumerate(zip(listed, fleet, strict=True))
    ]


def _law(start: Any, n: int, k: int) -> Floats:
    if isinstance(start, int | np.integer) and not isinstance(start, bool):
        if not 0 <= start < n:
            raise InputError(f"arm {k} starts in state {start}; its states are 0 to {n - 1}")
        law = np.zeros(n)
        law[start] = 1.0
        return law
    law = as_floats(start, f"starts[{k}]")
    if law.shape != (n,):
        raise InputError(f"starts[{k}] has shape {law.shape}; a state number or ({n},) is needed")
    if not (law >= 0.0).all() or not abs(float(law.sum()) - 1.0) <= 1e-9:
        raise InputError(f"starts[{k}] must hold probabilities >= 0 that sum to 1")
    return law
