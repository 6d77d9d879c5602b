"""Large-scale limit of two cooperating centres with two resources.

The fluid limit has one fixed point, `mdpcloud.limits.cooperation.point`, where both centres are at,
below or above the thresholds at which they begin to send jobs to each other.

The source has both centres at their thresholds, under four conditions on the loads. That the part
of the jobs that are lost vanishes needs more, which is derived here: the fixed point uses less than
the capacity of every resource, see `conditions`. Derived as well: the cases in which a centre stays
below or above its threshold, and that the source's local conditions are not needed.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from mdpcloud.errors import NoLimitError
from mdpcloud.limits.cooperation.point import (
    Equilibrium,
    TwoCentres,
    fixed_point,
    is_at,
    regime_of,
    used,
)

__all__ = ["Condition", "Equilibrium", "TwoCentres", "conditions", "equilibrium"]

ROUNDING = 1e-12  # relative to the numbers compared: what counts as a boundary
RESOURCES = ("memory", "processors")


@dataclass(frozen=True)
class Condition:
    """A strict inequality: ``left`` must be smaller than ``right``.

    Attributes
    ----------
    text : str
        What is on the left, and on the right.
    left, right : float
    continuous : bool
        Whether the limit on the boundary is that of its neighbours where the condition holds.
    """

    text: tuple[str, str]
    left: float
    right: float
    continuous: bool = True

    @property
    def margin(self) -> float:
        """By how much it holds; negative where it is violated, 0 up to rounding on the boundary."""
        return self.right - self.left

    @property
    def is_boundary(self) -> bool:
        """Whether both sides are equal up to rounding."""
        return abs(self.margin) <= ROUNDING * max(abs(self.left), abs(self.right))

    @property
    def is_violated(self) -> bool:
        """Whether there is no limit for its sake."""
        return not self.continuous if self.is_boundary else self.margin < 0.0

    def __str__(self) -> str:
        left, right = self.text
        off = "equal" if self.is_boundary else f"{-self.margin:.6g} too much"
        return f"{left} = {self.left:.6g} must be < {right} = {self.right:.6g}; it is {off}"


def equilibrium(centres: TwoCentres) -> Equilibrium:
    """The fixed point of the fluid limit.

    Raises
    ------
    NoLimitError
        When one of the `conditions` is violated; the message names it and says by how much.

    Examples
    --------
    >>> rates, room = ((0.5, 0.1), (0.1, 0.5)), ((1.0, 2.0), (2.0, 1.0))
    >>> found = equilibrium(TwoCentres(rates, (1.0, 1.0), (2.0, 2.0), room, (0.8, 0.8)))
    >>> found.regime, [round(g, 12) for g in found.kept]
    ('at_at', [0.4, 0.4])
    """
    found = fixed_point(centres)
    demanded = _conditions(centres, found)
    total, local = demanded[:2], demanded[2:]
    violated = [one for one in total if one.is_violated] or [c for c in local if c.is_violated]
    if violated:
        raise NoLimitError(
            f"no large-scale limit without losses is known: {'; '.join(map(str, violated))}"
        )
    notes = [f"on the boundary of the limit: {one}" for one in demanded if one.is_boundary]
    notes += _threshold_notes(centres, found)
    notes += _source_notes(centres, found)
    return replace(found, notes=tuple(notes))


def conditions(centres: TwoCentres) -> tuple[Condition, ...]:
    """What must hold for a limit without losses.

    The first two are the source's, on the total loads of the resources. The others say that the
    fixed point uses less than the capacity, per centre (row by row) and resource; they imply them.

    Raises
    ------
    NoLimitError
        When R C = 1.

    Examples
    --------
    >>> rates, room = ((0.5, 0.1), (0.1, 0.5)), ((1.0, 1.0), (1.0, 1.0))
    >>> centres = TwoCentres(rates, (1.0, 1.0), (2.0, 2.0), room, (0.9, 0.9))
    >>> [round(one.margin, 12) for one in conditions(centres)]
    [0.2, 0.2, 0.1, 0.1, 0.1, 0.1]
    """
    return _conditions(centres, fixed_point(centres))


def _conditions(centres: TwoCentres, found: Equilibrium) -> tuple[Condition, ...]:
    total = [_total(centres, m) for m in (0, 1)]
    return (*total, *(_local(centres, found, k, m) for k in (0, 1) for m in (0, 1)))


def _total(centres: TwoCentres, m: int) -> Condition:
    load = sum(centres.requirement(j, m) * centres.load(j, k) for j in (0, 1) for k in (0, 1))
    return Condition(
        (f"the load of {RESOURCES[m]} in both centres", f"capacities[0][{m}] + capacities[1][{m}]"),
        load,
        centres.capacities[0][m] + centres.capacities[1][m],
    )


def _local(centres: TwoCentres, found: Equilibrium, k: int, m: int) -> Condition:
    """A centre that is full at its threshold loses and sends jobs of the other type as well."""
    capacity, right = centres.capacities[k][m], f"capacities[{k}][{m}]"
    if k == m and is_at(found.kept[k]):
        return Condition((f"thresholds[{k}]", right), centres.levels[k], capacity, continuous=False)
    use = used(centres, found.jobs, k, m)
    return Condition((f"the use of {RESOURCES[m]} in centre {k}", right), use, capacity)


def _threshold_notes(centres: TwoCentres, found: Equilibrium) -> list[str]:
    """Centres that just touch their threshold."""
    notes = []
    for p in (0, 1):
        use, level = used(centres, found.jobs, p, p), centres.levels[p]
        if not is_at(found.kept[p]) and abs(use - level) <= ROUNDING * max(use, level):
            side = "below" if found.kept[p] > 0.5 else "above"
            notes.append(
                f"on the boundary between two regimes: centre {p} comes to its threshold, "
                f"{level:.6g}, and stays {side} it"
            )
    return notes


def _source_notes(centres: TwoCentres, found: Equilibrium) -> list[str]:
    """Where the source's condition that a centre is saturated by its own jobs does not hold."""
    if found.regime != regime_of("at", "at"):
        return []
    notes = []
    for p in (0, 1):
        load = sum(centres.requirement(j, p) * centres.load(j, p) for j in (0, 1))
        capacity = centres.capacities[p][p]
        if load <= capacity:
            notes.append(
                f"the source takes the load of {RESOURCES[p]} by the own jobs of centre {p} to be "
                f"> capacities[{p}][{p}] = {capacity:.6g}; it is {load:.6g}, and the fixed point "
                "does not need it"
            )
    return notes
