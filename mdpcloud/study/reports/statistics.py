"""Statistics of a column of results over the instances, with the bounds that its own ones justify.

The q-quantile of x_1 <= ... <= x_n is x_k + t (x_{k+1} - x_k), where k + t = 1 + q (n - 1) with
0 <= t < 1 (type 7 of R. J. Hyndman and Y. Fan, "Sample quantiles in statistical packages",
The American Statistician 50 (1996); numpy's default). It grows with each x_i, as the largest x_i
does, so the quantiles of lower and upper bounds are bounds of the quantile of what they bound. All
are computed exactly and rounded outwards.

A row wins an instance where its lower bound is at most the least upper bound of all rows that are
compared there: as far as the bounds tell, no other is better, and ties count for each. Gaps of an
instance are in the order of the costs, whose bounds are sharper: they are free of the optimum's.
Rows that have a cost but no gap are compared too, though no line shows them.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, NamedTuple

from mdpcloud.numbers import enclosing

__all__ = ["HIGH", "Bounded", "Entry", "Statistics", "quantile", "statistics_of", "winners"]

MEDIAN, HIGH = Fraction(1, 2), Fraction(19, 20)


class Bounded(NamedTuple):
    """A number with its lower and upper bound."""

    value: float
    lower: float
    upper: float


class Entry(NamedTuple):
    """What a row of the results contributes.

    Attributes
    ----------
    instance : int
        Its number.
    of : str, int, float or bool
        The line of the table to which it belongs.
    number : Bounded
        Of which statistics are made.
    rival : Bounded
        By which rows of an instance are compared.
    """

    instance: int
    of: Any
    number: Bounded
    rival: Bounded


@dataclass(frozen=True)
class Statistics:
    """A line of a table.

    Attributes
    ----------
    split : tuple
        Values of the columns by which the table is split.
    of : str, int, float or bool
        The line's value of the table's column ``rows``.
    instances : int
        That count.
    median, high, worst : Bounded
        ``high`` is the 95th percentile, or the 5th where larger values are better.
    worst_in : int or None
        Number of the first instance with the worst value; None where several have all the same.
    wins : int or None
        Instances that it wins; None where nothing is compared.
    """

    split: tuple[Any, ...]
    of: Any
    instances: int
    median: Bounded
    high: Bounded
    worst: Bounded
    worst_in: int | None
    wins: int | None


def statistics_of(
    entries: Sequence[Entry],
    split: tuple[Any, ...],
    sign: int,
    outside: Iterable[Any] = (),
    others: Iterable[Entry] = (),
) -> list[Statistics]:
    """A line for each of the values to which entries belong, in the order of their first ones.

    Parameters
    ----------
    entries : sequence of Entry
    split : tuple
        What they have in common.
    sign : {1, -1}
        1 where smaller values are better.
    outside : iterable
        Lines that are no competitors, such as the optimum.
    others : iterable of Entry
        Competitors whose numbers do not count.
    """
    lines: dict[Any, list[Entry]] = {}
    for entry in entries:
        lines.setdefault(entry.of, []).append(entry)
    wins = winners([*entries, *others], sign, frozenset(outside))
    return [_line(split, of, mine, sign, wins) for of, mine in lines.items()]


def _line(
    split: tuple[Any, ...],
    of: Any,
    entries: Sequence[Entry],
    sign: int,
    wins: Mapping[Any, int] | None,
) -> Statistics:
    numbers = [entry.number for entry in entries]
    high = HIGH if sign > 0 else 1 - HIGH
    extreme = max if sign > 0 else min
    worst = Bounded(*(extreme(ends) for ends in zip(*numbers, strict=True)))
    instances = len({entry.instance for entry in entries})
    same = instances > 1 and len({*numbers}) == 1
    first = next(entry.instance for entry in entries if entry.number.value == worst.value)
    return Statistics(
        split,
        of,
        instances,
        quantile(numbers, MEDIAN),
        quantile(numbers, high),
        worst,
        None if same else first,
        None if wins is None else wins.get(of),
    )


def quantile(numbers: Iterable[Bounded], q: Fraction) -> Bounded:
    """A quantile of numbers, with bounds.

    Examples
    --------
    >>> quantile([Bounded(x, x, x + 0.5) for x in (1.0, 3.0, 2.0, 4.0)], Fraction(1, 2))
    Bounded(value=2.5, lower=2.5, upper=3.0)
    """
    values, lowers, uppers = (sorted(ends) for ends in zip(*numbers, strict=True))
    value, lower, upper = (_between(ends, q) for ends in (values, lowers, uppers))
    return Bounded(float(value), enclosing(lower, -math.inf), enclosing(upper, math.inf))


def _between(ordered: Sequence[float], q: Fraction) -> Fraction | float:
    place = q * (len(ordered) - 1)
    k = int(place)
    if place == k or ordered[k] == ordered[k + 1]:
        return ordered[k] if math.isinf(ordered[k]) else Fraction(ordered[k])
    for end in ordered[k : k + 2]:
        if math.isinf(end):
            return end
    low, high = map(Fraction, ordered[k : k + 2])
    return low + (place - k) * (high - low)


def winners(
    entries: Sequence[Entry], sign: int, outside: frozenset[Any] = frozenset()
) -> dict[Any, int] | None:
    """Number of instances that each line wins; None where no instance has two lines to compare.

    Nor is there a winner where a line has several entries of an instance.
    """
    rivals: dict[int, list[tuple[Any, float, float]]] = {}
    for instance, of, _, (_, lower, upper) in entries:
        if of not in outside:
            low, high = (lower, upper) if sign > 0 else (-upper, -lower)
            rivals.setdefault(instance, []).append((of, low, high))
    names = [[of for of, _, _ in group] for group in rivals.values()]
    if not any(len(group) > 1 for group in names):
        return None
    if any(len({*group}) < len(group) for group in names):
        return None
    wins = {of: 0 for group in names for of in group}
    for group in rivals.values():
        least = min(high for _, _, high in group)
        for of, low, _ in group:
            wins[of] += low <= least
    return wins
