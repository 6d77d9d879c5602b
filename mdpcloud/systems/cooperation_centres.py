"""What fits where among cooperating centres, and their policies, for a finite system.

Centre k guards its resource k against jobs of type k, both counted round (modulo their number), and
sends to centre k + 1, the last one to centre 0.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

from mdpcloud.policies.family import Family, Option, Parameter, Rules, Stream
from mdpcloud.policies.thresholds import thresholds

__all__ = ["Centres", "LevelRules", "arrival"]

OfState: TypeAlias = Callable[[Any], Any]


def arrival(j: int, k: int) -> str:
    """Name of the event that a job of type j comes to centre k."""
    return f"arrival {j} at {k}"


class LevelRules(dict[str, Any]):
    """Rules of the threshold policy, per decision, that remember their levels.

    Parameters
    ----------
    rules : mapping
    levels : tuple of float
        Per centre.
    """

    def __init__(self, rules: Rules, levels: tuple[float, ...]) -> None:
        super().__init__(rules)
        self.levels = levels


@dataclass(frozen=True)
class Centres:
    """Centres of a finite system.

    Parameters
    ----------
    requirements : tuple of tuples of int
        Row = type, column = resource.
    capacities : tuple of tuples of int
        Row = centre, column = resource.
    remote_full, unfit : str
        See `mdpcloud.systems.Cooperation`.
    """

    requirements: tuple[tuple[int, ...], ...]
    capacities: tuple[tuple[int, ...], ...]
    remote_full: Literal["reject", "return"]
    unfit: Literal["forward", "reject"]

    # --- what fits --------------------------------------------------------------------------------

    @property
    def count(self) -> int:
        """Number of centres."""
        return len(self.capacities)

    @property
    def places(self) -> list[tuple[int, int]]:
        """Type and centre of each coordinate of the state."""
        return [(j, k) for j in range(len(self.requirements)) for k in range(self.count)]

    def place(self, j: int, k: int) -> int:
        """Coordinate of the jobs of type j in centre k."""
        return j * self.count + k

    def following(self, k: int) -> int:
        """The centre to which centre k sends."""
        return (k + 1) % self.count

    def most(self, j: int, k: int) -> int:
        """Jobs of a type that fit in an empty centre."""
        needs = zip(self.requirements[j], self.capacities[k], strict=True)
        return min(capacity // need for need, capacity in needs if need)

    def used(self, k: int, m: int) -> OfState:
        """Units of a resource in use in a centre, as a function of the state."""
        parts = [
            (self.place(j, k), needs[m]) for j, needs in enumerate(self.requirements) if needs[m]
        ]
        return lambda x: sum(need * x.jobs[i] for i, need in parts)

    def fits(self, k: int, needs: Sequence[int]) -> OfState:
        """Whether there is room for a job in a centre, as a function of the state."""
        limits = [
            (self.used(k, m), capacity - need)
            for m, (capacity, need) in enumerate(zip(self.capacities[k], needs, strict=True))
        ]
        return lambda x: _all(used(x) <= limit for used, limit in limits)

    def is_state(self, x: Any) -> Any:
        """Whether all jobs fit where they are."""
        nothing = (0,) * len(self.requirements[0])
        return _all(self.fits(k, nothing)(x) for k in range(self.count))

    # --- policies ---------------------------------------------------------------------------------

    def guarded_type(self, k: int) -> int:
        """The type that centre k sends away above its threshold."""
        return k % len(self.requirements)

    def guarded_resource(self, k: int) -> int:
        """The resource that the threshold of centre k is about."""
        return k % len(self.requirements[0])

    def streams(self) -> list[Stream]:
        """What may be done with the jobs, per type and centre."""
        return [self._stream(j, k) for j, k in self.places]

    def _stream(self, j: int, k: int) -> Stream:
        needs, guarded = self.requirements[j], j == self.guarded_type(k)
        fits = self.fits(k, needs)
        used = self.used(k, self.guarded_resource(k)) if guarded else None
        options = [
            Option("local", fits, used=used),
            Option("remote", self.fits(self.following(k), needs)),
        ]
        if guarded and self.unfit == "reject":
            options.insert(0, Option("reject", lambda x: ~fits(x), used=used))
        if guarded and self.remote_full == "return":
            options.append(Option("local", fits))
        return Stream(arrival(j, k), tuple(options))

    def rules(self, *levels: float) -> LevelRules:
        """Rules of the threshold policy with a level per centre; infinite for complete sharing."""
        repeats = 2 if self.unfit == "reject" else 1  # options that look at the level
        each = [levels[k] for j, k in self.places if j == self.guarded_type(k)]
        member = thresholds(self.streams(), ()).member
        return LevelRules(member(*(one for one in each for _ in range(repeats))), levels)

    def keeps(self, j: int, k: int, levels: Sequence[float]) -> OfState:
        """Whether a job is taken where it comes, by the threshold policy; a function of one centre.

        Other than in `rules`, nothing of `remote_full` or `unfit` is in it.
        """
        fits = self.fits(k, self.requirements[j])
        if j != self.guarded_type(k):
            return fits
        used, level = self.used(k, self.guarded_resource(k)), levels[k]
        return lambda x: fits(x) & (used(x) < level)

    def families(self) -> tuple[Family, ...]:
        """A level for each centre, and a level common to all of them."""
        tops = [self._top(k) for k in range(self.count)]
        each = tuple(
            Parameter(f"threshold[{k}]", tuple(range(top + 1))) for k, top in enumerate(tops)
        )
        common = Parameter("threshold", tuple(range(max(tops) + 1)))
        return (
            Family("thresholds", each, self.rules),
            Family("common_threshold", (common,), lambda level: self.rules(*[level] * self.count)),
        )

    def _top(self, k: int) -> int:
        """The least level that holds nothing back."""
        m = self.guarded_resource(k)
        room = self.capacities[k][m]
        if self.unfit == "forward":
            room -= self.requirements[self.guarded_type(k)][m]
        return max(room + 1, 0)


def _all(conditions: Any) -> Any:
    found: Any = True
    for holds in conditions:
        found = found & holds
    return found
