"""What a figure of a system shows: the table ``[figure]`` of a scenario, by its ``kind``."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Literal, TypeAlias

import numpy as np
from annotated_types import Ge, Gt, MinLen, Unit

from mdpcloud.errors import InputError
from mdpcloud.parameters import Tag, validate

__all__ = [
    "Axis",
    "BestMember",
    "Curves",
    "FamilyCosts",
    "FigureSettings",
    "Finite",
    "Fluid",
    "Scales",
    "Sweep",
]

Text: TypeAlias = Annotated[str, MinLen(1)]
ScaleList: TypeAlias = Annotated[tuple[Annotated[float, Gt(0)], ...], MinLen(1)]


@dataclass(frozen=True)
class Axis:
    """A parameter that changes along the horizontal axis.

    Parameters
    ----------
    path : str
        Name of the parameter, such as ``arrival_rates[0]``.
    first, last : float, optional
        Ends of a range.
    points : int
        Number of values in the range, at equal distances.
    values : tuple of float, optional
        Instead of a range.
    label : str, optional
        By default the path.
    """

    path: Text
    first: float | None = None
    last: float | None = None
    points: Annotated[int, Ge(2)] = 81
    values: Annotated[tuple[float, ...], MinLen(1)] | None = None
    label: Text | None = None

    def __post_init__(self) -> None:
        validate(self)
        _check_path(self.path)
        ends = [self.first, self.last].count(None)
        if (ends == 0) == (self.values is not None) or ends == 1:
            raise InputError("Axis: either first and last or values must be given")
        if self.first is not None and self.last is not None and self.first >= self.last:
            raise InputError(f"Axis: last must be > first, {self.first:g}, not {self.last:g}")

    @property
    def grid(self) -> tuple[float, ...]:
        """Every value, in order.

        Examples
        --------
        >>> Axis("arrival_rate", first=1.0, last=2.0, points=3).grid
        (1.0, 1.5, 2.0)
        """
        if self.values is not None:
            return self.values
        assert self.first is not None
        assert self.last is not None
        return tuple(np.linspace(self.first, self.last, self.points).tolist())


@dataclass(frozen=True)
class Curves:
    """A parameter with a curve for each of its values.

    Parameters
    ----------
    path : str
    values : tuple of float
    label : str, optional
        By default the path.
    """

    path: Text
    values: Annotated[tuple[float, ...], MinLen(1)]
    label: Text | None = None

    def __post_init__(self) -> None:
        validate(self)
        _check_path(self.path)


@dataclass(frozen=True)
class Finite:
    """Finite systems beside their limit.

    Parameters
    ----------
    scales : tuple of float
    points : int, optional
        About so many of the values along the axis, at equal distances; by default all of them.
    values : tuple of float, optional
        Values along the axis instead.
    look : {"points", "lines"}
    """

    scales: ScaleList
    points: Annotated[int, Ge(1)] | None = None
    values: Annotated[tuple[float, ...], MinLen(1)] | None = None
    look: Literal["points", "lines"] = "points"

    def __post_init__(self) -> None:
        validate(self)
        if self.points is not None and self.values is not None:
            raise InputError("Finite: at most one of points and values can be given")


@dataclass(frozen=True)
class Sweep:
    """Measures against a parameter: the limit as lines, finite systems as points.

    Parameters
    ----------
    x : Axis
    measures : tuple of str
        Such as ``blocking[0]``; a panel each.
    curves : Curves, optional
    finite : Finite, optional
    limit : bool
        Whether the limit is drawn.
    titles : tuple of str
        Of the panels, by default the measures.
    title : str
        By default the scenario's name.
    """

    x: Axis
    measures: Annotated[tuple[Text, ...], MinLen(1)]
    curves: Curves | None = None
    finite: Finite | None = None
    limit: bool = True
    titles: tuple[str, ...] = ()
    title: str = ""
    kind: Literal["sweep"] = "sweep"

    def __post_init__(self) -> None:
        validate(self)
        _check_titles(self.titles, self.measures)
        if not self.limit and self.finite is None:
            raise InputError("Sweep: nothing to draw; give finite, or limit = true")


@dataclass(frozen=True)
class Scales:
    """Measures of finite systems against the scale, and their distance from the limit.

    Parameters
    ----------
    scales : tuple of float
    measures : tuple of str
        A row of panels each.
    curves : Curves, optional
    titles : tuple of str
    title : str
    """

    scales: ScaleList
    measures: Annotated[tuple[Text, ...], MinLen(1)]
    curves: Curves | None = None
    titles: tuple[str, ...] = ()
    title: str = ""
    kind: Literal["scales"] = "scales"

    def __post_init__(self) -> None:
        validate(self)
        _check_titles(self.titles, self.measures)


@dataclass(frozen=True)
class Fluid:
    """The fluid trajectory, and a simulated path of finite systems over their scale.

    Parameters
    ----------
    horizon : float
    start : tuple of float, optional
        Fluid state at time 0; by default the empty system.
    scales : tuple of float
        Of the finite systems.
    points : int
        Of the trajectory.
    titles : tuple of str
        Of the coordinates, by default their names.
    title : str
    """

    horizon: Annotated[float, Gt(0), Unit("time")]
    start: Annotated[tuple[Annotated[float, Ge(0)], ...], MinLen(1)] | None = None
    scales: tuple[Annotated[float, Gt(0)], ...] = ()
    points: Annotated[int, Ge(2)] = 401
    titles: tuple[str, ...] = ()
    title: str = ""
    kind: Literal["fluid"] = "fluid"

    def __post_init__(self) -> None:
        validate(self)


@dataclass(frozen=True)
class FamilyCosts:
    """Cost over the scale against the parameter of a family of policies, beside the optimum.

    Parameters
    ----------
    family : str
        Name of a family of one parameter.
    scales : tuple of float
    optimum : bool
        Whether the optimum of each scale is drawn.
    label : str, optional
        Of the parameter.
    per_scale : bool
        Whether the parameter, too, is drawn over the scale.
    title : str
    """

    family: Text
    scales: ScaleList
    optimum: bool = True
    label: Text | None = None
    per_scale: bool = False
    title: str = ""
    kind: Literal["family"] = "family"

    def __post_init__(self) -> None:
        validate(self)


@dataclass(frozen=True)
class BestMember:
    """Parameter and cost of the best member of a family against the scale.

    Parameters
    ----------
    family : str
        Name of a family of one parameter.
    scales : tuple of float
    curves : Curves, optional
    label : str, optional
        Of the family's parameter.
    title : str
    """

    family: Text
    scales: ScaleList
    curves: Curves | None = None
    label: Text | None = None
    title: str = ""
    kind: Literal["best"] = "best"

    def __post_init__(self) -> None:
        validate(self)


FigureSettings: TypeAlias = Annotated[
    Sweep | Scales | Fluid | FamilyCosts | BestMember, Tag("kind")
]
"""Any of the figures; in a scenario file its field ``kind`` says which."""


def _check_path(path: str) -> None:
    if path == "scale":
        raise InputError(
            "path cannot be 'scale': the finite systems of a figure have scales of their own; for "
            "measures against the scale there is kind = 'scales'"
        )


def _check_titles(titles: tuple[str, ...], measures: tuple[str, ...]) -> None:
    if titles and len(titles) != len(measures):
        raise InputError(
            f"titles must be as many as the measures, {len(measures)}, not {len(titles)}"
        )
