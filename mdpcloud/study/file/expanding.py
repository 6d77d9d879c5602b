"""The product of the axes of a study: documents with their labels, first axis outermost."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from mdpcloud.errors import InputError
from mdpcloud.study.file.axes import Axis, Point
from mdpcloud.study.file.changes import Target
from mdpcloud.study.file.paths import covers, put
from mdpcloud.study.study import Label

__all__ = ["Change", "Draft", "apply", "clashes", "expand", "size_of"]

Change = tuple[Target, Any]


@dataclass(frozen=True)
class Draft:
    """An instance that is yet to be checked.

    Attributes
    ----------
    document : mapping
        Of the scenario.
    changes : tuple of Change
        Of the system, in order.
    labels : mapping of str to Label
    mistake : str
        Why the document could not be changed, empty where it was.
    """

    document: Mapping[str, Any]
    changes: tuple[Change, ...]
    labels: Mapping[str, Label]
    mistake: str = ""


def size_of(axes: Sequence[Axis]) -> int:
    """Number of instances of a product."""
    return math.prod(axis.count for axis in axes)


def expand(draft: Draft, axes: Sequence[tuple[Axis, Sequence[Target]]]) -> Iterator[Draft]:
    """Every point of the product of axes, as a change of a draft.

    A document is changed once for all that lies further in, and shares what does not change.
    """
    if not axes or draft.mistake:
        yield draft
        return
    (axis, targets), *inner = axes
    for point in axis.all_points:
        yield from expand(_at(draft, targets, point), inner)


def _at(draft: Draft, targets: Sequence[Target], point: Point) -> Draft:
    labels = {**draft.labels, **point.labels}
    try:
        changed = apply(draft, tuple(zip(targets, point.values, strict=True)))
    except InputError as error:
        return Draft(draft.document, (), labels, str(error))
    return Draft(changed.document, changed.changes, labels)


def apply(draft: Draft, changes: Sequence[Change]) -> Draft:
    """A draft with changes of its document made, and those of the system noted.

    Raises
    ------
    InputError
        If the document has no such place.
    """
    document = draft.document
    for target, value in changes:
        if target.path is not None:
            document = put(document, target.path, value)
    later = tuple(change for change in changes if change[0].path is None)
    return Draft(document, (*draft.changes, *later), draft.labels)


def clashes(named: Sequence[tuple[str, Target]]) -> Iterator[str]:
    """What is wrong with changes that are made one after the other.

    Parameters
    ----------
    named : sequence of (place in the file, target)
        In the order in which they are made.
    """
    for (before, first), (after, second) in itertools.combinations(named, 2):
        if first.text == second.text or (first.path and first.path == second.path):
            yield f"{after}: {second.text!r} is changed by {before} too"
        elif first.path and second.path and covers(second.path, first.path):
            yield (
                f"{after}: {second.text!r} would undo what {before} changes, {first.text!r}; "
                "give it before"
            )
