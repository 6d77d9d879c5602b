"""Seeded random designs: points u of the unit cube, and the values in ranges that they stand for.

A Latin hypercube of n points has in each dimension one point in each of the n intervals
[k/n, (k + 1)/n); Sobol points (scrambled) fill the cube evenly; uniform ones are independent. A
range takes u to first + (last - first) u, on a logarithmic one to first (last / first)^u, among
whole numbers to each with the same share of u.

Source: M. D. McKay, R. J. Beckman, W. J. Conover, "A comparison of three methods for selecting
values of input variables in the analysis of output from a computer code", Technometrics 21 (1979)
239-245; the points are those of `scipy.stats.qmc`.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Literal, TypeAlias

import numpy as np
from annotated_types import MinLen

from mdpcloud.errors import InputError
from mdpcloud.study.file.grids import AsWritten, Spacing

__all__ = ["DesignKind", "Range", "check_size", "design_points"]

DesignKind: TypeAlias = Literal["latin_hypercube", "sobol", "uniform"]
DIGITS = 12  # of a value; more differ between machines, and with them the keys of instances


@dataclass(frozen=True)
class Range:
    """What a random value may be: within a range, or one of some values.

    Parameters
    ----------
    first, last : float, optional
        Ends of the range.
    whole : bool
        Whether only whole numbers are meant, both ends among them.
    spacing : {"equal", "logarithmic"}
    among : tuple, optional
        Instead of a range.
    label : str, optional
        Name of the column; by default made from the path.
    """

    first: Annotated[float, AsWritten()] | None = None
    last: Annotated[float, AsWritten()] | None = None
    whole: bool = False
    spacing: Spacing = "equal"
    among: Annotated[tuple[Any, ...], MinLen(1)] | None = None
    label: Annotated[str, MinLen(1)] | None = None

    def __post_init__(self) -> None:
        if self.among is not None:
            self._check_alone()
        elif self.first is None or self.last is None:
            raise InputError("either first and last or among must be given")
        elif self.first >= self.last:
            raise InputError(f"last must be > first, {self.first!r}, not {self.last!r}")
        elif self.spacing == "logarithmic" and self.first <= 0:
            raise InputError(f"first must be > 0 on a logarithmic range, not {self.first!r}")
        elif self.whole and not (_is_whole(self.first) and _is_whole(self.last)):
            raise InputError(
                f"the ends must be whole numbers, as whole is true, not {self.first!r} and "
                f"{self.last!r}"
            )

    def _check_alone(self) -> None:
        if self.first is not None or self.last is not None or self.whole:
            raise InputError("first, last and whole are not for values given by among")

    def value(self, u: float) -> Any:
        """The value that a number in [0, 1) stands for, to 12 digits.

        Examples
        --------
        >>> [Range(1, 4, whole=True).value(u) for u in (0.0, 0.3, 0.999)]
        [1, 2, 4]
        """
        if self.among is not None:
            return self.among[min(int(u * len(self.among)), len(self.among) - 1)]
        assert self.first is not None
        assert self.last is not None
        if self.whole:
            found = math.floor(self._at(u, self.last + 1))
            return min(max(found, int(self.first)), int(self.last))
        return min(max(float(f"{self._at(u, self.last):.{DIGITS}g}"), self.first), self.last)

    def _at(self, u: float, last: float) -> float:
        assert self.first is not None
        if self.spacing == "logarithmic":
            return float(self.first * (last / self.first) ** u)
        return self.first + (last - self.first) * u


def _is_whole(value: float) -> bool:
    return float(value).is_integer()


def check_size(design: DesignKind, size: int) -> None:
    """Refuse a number of points that a design does not have.

    Raises
    ------
    InputError
        For Sobol points when it is no power of two.
    """
    if design == "sobol" and size & (size - 1):
        below = 1 << (size.bit_length() - 1)
        raise InputError(
            f"size must be a power of two for a Sobol design, such as {below} or {2 * below}, "
            f"not {size}"
        )


def design_points(
    design: DesignKind, ranges: Sequence[Range], size: int, seed: int
) -> list[tuple[Any, ...]]:
    """Values of every range at every point of a design; the same for the same seed.

    Examples
    --------
    >>> points = design_points("latin_hypercube", [Range(1, 4, whole=True)], size=4, seed=1)
    >>> sorted(points)
    [(1,), (2,), (3,), (4,)]
    """
    cube = _cube(design, len(ranges), size, seed).tolist()
    return [tuple(one.value(u) for one, u in zip(ranges, row, strict=True)) for row in cube]


def _cube(design: DesignKind, dimensions: int, size: int, seed: int) -> Any:
    """Points of the unit cube, shape (size, dimensions)."""
    if design == "uniform":
        return np.random.default_rng(seed).random((size, dimensions))
    from scipy.stats import qmc  # takes most of a second

    sampler = {"latin_hypercube": qmc.LatinHypercube, "sobol": qmc.Sobol}[design]
    return sampler(dimensions, seed=np.random.default_rng(seed)).random(size)
