"""How a run is cut into segments, and averages over several segments.

A path is cut into short segments, so that a run that ends early still has many of them. When there
are twice as many as wanted, pairs are joined, and so on; a run of full length always ends with as
many as wanted.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from mdpcloud.simulate.protocol import Floats

__all__ = ["Cuts", "Shares", "cut", "joined"]

FIRST_EVENTS = 400_000  # of all replications, in the first segments together
MOST_HALVINGS = 40
EVENTS_PER_AVERAGE = 4


@dataclass(frozen=True)
class Cuts:
    """The shortest segments of a run.

    Attributes
    ----------
    length : float
        Of each (time).
    count : int
        How many there are at most.
    wanted : int
        How many segments a result is made of; up to twice as many while a run goes on.
    """

    length: float
    count: int
    wanted: int


def cut(time: float, wanted: int, events: float, averages: int, discrete: bool) -> Cuts:
    """Cut a run.

    Parameters
    ----------
    time : float
        Of each replication.
    wanted : int
        Segments of a result.
    events : float
        About how many there are in all replications.
    averages : int
        Numbers kept per segment; a segment has some events for each, so that it is worth them.
    discrete : bool
        Whether segments consist of whole units of time.
    """
    first = max(FIRST_EVENTS, EVENTS_PER_AVERAGE * wanted * averages)
    halvings = math.ceil(math.log2(max(events / first, 1.0)))
    pieces = wanted << min(halvings, MOST_HALVINGS)
    if not discrete:
        return Cuts(time / pieces, pieces, wanted)
    steps = max(1, round(time / pieces))
    return Cuts(float(steps), max(1, round(time / steps)), wanted)


def joined(segments: Floats, count: int) -> Floats:
    """Averages over ``count`` segments each, which are the last axis but one."""
    *outer, length, width = segments.shape
    return np.asarray(segments.reshape(*outer, length // count, count, width).mean(axis=-2))


class Shares:
    """Shares of time that a path records per segment, joined as the segments are.

    Attributes
    ----------
    parts : int
        Of how many of the shortest segments a segment consists.
    """

    def __init__(self) -> None:
        self.parts = 1
        self._blocks: list[Floats] = []

    def add(self, shares: Floats) -> None:
        """Add shares (S, W) of the shortest segments, a multiple of ``parts``."""
        self._blocks.append(joined(shares, self.parts))

    def join(self, count: int) -> None:
        """Join ``count`` segments each, from now on as well."""
        self._blocks = [joined(self.all(), count)]
        self.parts *= count

    def all(self) -> Floats:
        """Shares (segments, W) so far; what was recorded with fewer values is filled with 0."""
        width = max((block.shape[1] for block in self._blocks), default=0)
        wide = [np.pad(block, ((0, 0), (0, width - block.shape[1]))) for block in self._blocks]
        return np.concatenate([np.zeros((0, width)), *wide])
