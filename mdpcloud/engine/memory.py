"""Refuses a lattice that cannot fit the memory, before anything is allocated."""

from __future__ import annotations

import math
import os

from mdpcloud.errors import InputError
from mdpcloud.model.space import Lattice

__all__ = ["available_memory", "check_memory"]

LARGEST = 10**100  # points of a box that is worth a message with its memory
BYTES_PER_POINT = 48  # two value arrays, a choice, temporaries of the checks


def available_memory() -> int | None:
    """Bytes that can be allocated without swapping; None where the system does not say."""
    try:
        return os.sysconf("SC_AVPHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (AttributeError, ValueError, OSError):
        return None


def check_memory(space: Lattice) -> None:
    """Raise `InputError` when a box needs more than the memory available."""
    points = math.prod(space.shape)
    needed = BYTES_PER_POINT * points
    available = available_memory()
    if points > LARGEST:
        raise InputError(
            f"a box of {len(space.shape)} axes has 10^{math.log10(points):.0f} states, too many to "
            "be listed; choose smaller caps, Reachable, or mdpcloud.simulate"
        )
    if points > 2**31 or (available is not None and needed > available):
        have = "" if available is None else f", of which {available / 1e9:.1f} GB are free"
        raise InputError(
            f"the box {' x '.join(map(str, space.shape))} has {points:.3g} states and needs about "
            f"{needed / 1e9:.3g} GB{have}; choose smaller caps, or a condition with few states and "
            "Reachable"
        )
