"""What is made of the results of a study: the columns, tables and figures that its file wants."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any, Literal, TypeAlias

from annotated_types import Ge, MinLen

from mdpcloud.errors import InputError
from mdpcloud.parameters import validate

__all__ = ["Figure", "Outputs", "Table", "Where"]

Text: TypeAlias = Annotated[str, MinLen(1)]
Where: TypeAlias = Mapping[str, Any]
"""Name of a column to its value, or to a list of values; only such rows count."""
NEVER_LOGARITHMIC = {"lines": "", "distribution": "y", "bars": "xy"}
FORBIDDEN = '/\\:*?"<>|'  # in names of files, on one system or another


def _check_name(name: str, what: str) -> None:
    """Raise `InputError` where a name cannot be that of a file in any folder."""
    if name.startswith(".") or any(
        letter in FORBIDDEN or not letter.isprintable() for letter in name
    ):
        raise InputError(
            f"{what}: name is {name!r}; it names files, so it must not begin with a point and not "
            f"hold any of {' '.join(FORBIDDEN)}"
        )


@dataclass(frozen=True)
class Table:
    """How policies do over the instances: median, 95th percentile, worst, wins.

    Parameters
    ----------
    name : str
        Of its files.
    value : str
        Column, such as gap, profit_gap or cost.
    rows : str
        Column whose values are the rows of the table.
    by : tuple of str
        Axes by whose values it is split.
    where : mapping, optional
        Which rows of the results count.
    caption : str, optional
    better : {"smaller", "larger"}
        Which values are; the percentile is the 5th where larger ones are.
    """

    name: Text = "gaps"
    value: Text = "gap"
    rows: Text = "policy"
    by: tuple[Text, ...] = ()
    where: Where | None = None
    caption: Text | None = None
    better: Literal["smaller", "larger"] = "smaller"

    def __post_init__(self) -> None:
        validate(self)
        _check_name(self.name, "Table")


@dataclass(frozen=True)
class Figure:
    """A figure of a column over the instances.

    Parameters
    ----------
    name : str
        Of its files.
    kind : {"lines", "distribution", "bars"}
        ``y`` against the axis ``x``; the share of the instances whose ``y`` is at most a value; or
        the mean of ``y`` over the instances at each value of the column ``x``.
    x : str, optional
        Axis, for lines and bars only; by default the only one that nothing else names.
    y : str
        Column.
    curves : str
        Column whose values are the curves.
    panels : tuple of str
        Axes each combination of whose values is a panel.
    where : mapping, optional
        Which rows of the results count.
    logarithmic : {"", "x", "y", "xy"}, optional
        By default "x" for a distribution of gaps, else ""; bars have none, distributions no "y".
    columns : int
        Panels in a row.
    width : {"column", "page"}
        Of a journal: 3.5 or 7 inches.
    title, x_label, y_label : str, optional
        Of the figure, below it and on its left; formulas stand between dollar signs.
    """

    name: Text
    kind: Literal["lines", "distribution", "bars"] = "lines"
    x: Text | None = None
    y: Text = "gap"
    curves: Text = "policy"
    panels: tuple[Text, ...] = ()
    where: Where | None = None
    logarithmic: Literal["", "x", "y", "xy"] | None = None
    columns: Annotated[int, Ge(1)] = 2
    width: Literal["column", "page"] = "page"
    title: Text | None = None
    x_label: Text | None = None
    y_label: Text | None = None

    def __post_init__(self) -> None:
        validate(self)
        _check_name(self.name, "Figure")
        if self.kind == "distribution" and self.x is not None:
            raise InputError("Figure: x: a distribution has none: it is that of y")
        for axis in self.logarithmic or "":
            if axis in NEVER_LOGARITHMIC[self.kind]:
                raise InputError(f"Figure: logarithmic: {axis!r} cannot be for kind {self.kind!r}")


@dataclass(frozen=True)
class Outputs:
    """Columns, tables and figures.

    Parameters
    ----------
    measures : tuple of str
        Measures that become columns of the results, such as ``mean_jobs[0]``.
    tables : tuple of Table
    figures : tuple of Figure
    """

    measures: tuple[Text, ...] = ()
    tables: tuple[Table, ...] = (Table(),)
    figures: tuple[Figure, ...] = ()

    def __post_init__(self) -> None:
        validate(self)
