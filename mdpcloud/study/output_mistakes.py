"""What is wrong with outputs, as far as it can be told before anything is computed.

Labels of the instances are known then, and so are the columns of this package's tasks. Those of
another task are not: nothing is said of names that may be theirs.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, fields
from typing import Any

from mdpcloud.errors import InputError
from mdpcloud.plugins import did_you_mean
from mdpcloud.study.figure_places import collisions
from mdpcloud.study.known_names import names_of_measures, names_of_policies
from mdpcloud.study.outputs import Figure, Outputs, Table
from mdpcloud.study.reports.where import is_among
from mdpcloud.study.study import Instance, Label
from mdpcloud.study.tasks import Task

__all__ = ["Values", "labels_of", "mistakes_in_columns", "mistakes_in_names"]

Values = Mapping[str, Collection[Label | None]]
"""Name of each label to what stands there, None where an instance lacks it."""
AFTER: Mapping[str, type] = {"status": str, "error": str, "key": str}
RENAMED = ("result_", "measure_")  # begin the names of columns whose own are taken
MOST = 8  # values that are named


def labels_of(instances: Iterable[Instance]) -> Values:
    """Labels of instances."""
    every = [one.labels for one in instances]
    names = dict.fromkeys(name for labels in every for name in labels)
    return {name: dict.fromkeys(labels.get(name) for labels in every).keys() for name in names}


def mistakes_in_columns(outputs: Outputs, task: Task, labels: Values) -> Iterator[str]:
    """What is wrong with the columns that tables and figures name, with their places."""
    known = _Known(task, labels, outputs.measures)
    for number, table in enumerate(outputs.tables):
        if table != Table():  # which is there unless others are wanted, and may have nothing
            yield from (f"tables[{number}].{text}" for text in _in_table(table, known))
    for number, figure in enumerate(outputs.figures):
        yield from (f"figures[{number}].{text}" for text in _in_figure(figure, known))


def mistakes_in_names(outputs: Outputs, instances: Collection[Instance]) -> Iterator[str]:
    """What is wrong with names of policies and measures, and with places in figures.

    Of the package's own tasks.
    """
    for number, figure in enumerate(outputs.figures):
        yield from (f"figures[{number}]: {text}" for text in collisions(figure, instances))
    names = names_of_policies(instances)
    if names is not None:
        for what in ("tables", "figures"):
            for number, one in enumerate(getattr(outputs, what)):
                wanted = (one.where or {}).get("policy")
                if wanted is not None:
                    for text in _among("policy", wanted, names):
                        yield f"{what}[{number}].{text}"
    known = names_of_measures(instances, outputs.measures)
    for number, name in enumerate(outputs.measures):
        if known is not None and name not in known:
            there = f"; there are {', '.join(known)}" if known else "; the task has none"
            yield f"measures[{number}]: there is no {name!r}{did_you_mean(name, known) or there}"


@dataclass(frozen=True)
class _Known:
    """Columns that results will have.

    Attributes
    ----------
    task : Task
    labels : mapping of str to values
    measures : tuple of str
        That the study wants.
    """

    task: Task
    labels: Values
    measures: tuple[str, ...]

    @property
    def columns(self) -> dict[str, type]:
        """Name of each column to what stands there; empty where the task's are not known."""
        if not self.task.columns:
            return {}
        measured = (f"{name}{end}" for name in self.measures for end in ("", "_lower", "_upper"))
        found = {**self.task.columns, **dict.fromkeys(measured, float)}
        renamed = {f"{begin}{name}": kind for begin in RENAMED for name, kind in found.items()}
        labels = {name: self._kind(name) for name in self.labels}
        return {"instance": int, **labels, **renamed, **found, **labels, **AFTER}

    def _kind(self, label: str) -> type:
        return str if any(isinstance(value, str) for value in self.labels[label]) else float

    def missing(self, place: str, name: str) -> Iterator[str]:
        """What there is to say of a column that will not be there."""
        if self.columns and name not in self.columns:
            shown = [one for one in self.columns if not one.startswith(RENAMED)]
            near = did_you_mean(name, shown) or f"; there are {', '.join(shown)}"
            wanted = "; what `measures` names has columns too" if "policy" in shown else ""
            yield f"{place}: there is no column {name!r}{near}{wanted}"

    def not_numbers(self, place: str, name: str) -> Iterator[str]:
        """The same of a column that will hold no numbers."""
        yield from self.missing(place, name)
        if self.columns.get(name) is str:
            yield f"{place}: column {name!r} must hold numbers; it holds texts"

    def conditions(self, where: Mapping[str, Any] | None) -> Iterator[str]:
        """The same of conditions on columns."""
        for name, wanted in (where or {}).items():
            yield from self.missing("where", name)
            if name in self.labels:
                yield from _among(name, wanted, self.labels[name])


def _among(name: str, wanted: Any, there: Collection[Any]) -> Iterator[str]:
    """What is wrong with a condition that no row will meet."""
    if not any(is_among(value, wanted) for value in there):
        shown = [repr(value) for value in there if value is not None]
        more = ", ..." if len(shown) > MOST else ""
        yield f"where: no row has {name} = {wanted!r}; there are {', '.join(shown[:MOST])}{more}"


def _in_table(table: Table, known: _Known) -> Iterator[str]:
    yield from known.not_numbers("value", table.value)
    yield from known.missing("rows", table.rows)
    for name in table.by:
        yield from known.missing("by", name)
    yield from known.conditions(table.where)


def _in_figure(figure: Figure, known: _Known) -> Iterator[str]:
    yield from known.not_numbers("y", figure.y)
    yield from known.missing("curves", figure.curves)
    for name in figure.panels:
        yield from known.missing("panels", name)
    yield from known.conditions(figure.where)
    if figure.kind != "distribution":
        yield from _in_x(figure, known)
    yield from _in_formulas(figure)


def _in_x(figure: Figure, known: _Known) -> Iterator[str]:
    """What is wrong with the axis along which a figure runs."""
    if figure.x is not None:
        yield from known.missing("x", figure.x)
        if "x" in (figure.logarithmic or "") and not figure.where:  # which may leave out some
            yield from _in_logarithmic(figure.x, known.labels.get(figure.x, ()))
        return
    taken = {figure.curves, *figure.panels, *(figure.where or {})}
    free = [name for name, there in known.labels.items() if name not in taken and len(there) > 1]
    if len(free) != 1:
        among = f"one of {', '.join(free or known.labels)}" if known.labels else "a column"
        yield f"x is missing; it must be {among}"


def _in_logarithmic(name: str, values: Collection[Label | None]) -> Iterator[str]:
    for value in values:
        if isinstance(value, str | bool):
            yield f"logarithmic: 'x' cannot be: {name} is no number"
            return
        if value is not None and value <= 0:
            yield f"logarithmic: {value:g} of {name!r} has no place there"
            return


def _in_formulas(figure: Figure) -> Iterator[str]:
    for one in fields(figure):
        text = getattr(figure, one.name)
        if one.name in ("title", "x_label", "y_label") and "$" in (text or ""):
            from mdpcloud.plots.labels import check_formulas

            try:
                check_formulas(text)
            except InputError as error:
                yield f"{one.name}: {error}"
