"""The parts of a study: each block's changes and axes, found in the base.

A study without blocks is one part. What is wrong with a change wherever it is made is found here;
what is wrong with single values, when instances are checked.
"""

from __future__ import annotations

import hashlib
import pathlib
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from mdpcloud.errors import InputError
from mdpcloud.study.file.axes import TAKEN, Axis
from mdpcloud.study.file.changes import Target, find_target
from mdpcloud.study.file.expanding import Change, Draft, apply, clashes, size_of
from mdpcloud.study.file.grids import LARGEST
from mdpcloud.study.file.settings import Block
from mdpcloud.study.output_mistakes import Values
from mdpcloud.study.study import Label
from mdpcloud.systems.registry import find_system

__all__ = ["Base", "Part", "labels_in", "parts_of"]

BLOCK = "block"  # column of the names of blocks

Axes = list[tuple[Axis, tuple[Target, ...]]]


@dataclass(frozen=True)
class Base:
    """The scenario that a study changes.

    Attributes
    ----------
    document : mapping
    file : Path
        That it stands in.
    content : bytes
        Of this file.
    folder : Path
        Of the study.
    own_policies : bool
        Whether its policies are the study's.
    """

    document: Mapping[str, Any]
    file: pathlib.Path
    content: bytes
    folder: pathlib.Path
    own_policies: bool = False

    @cached_property
    def sha256(self) -> str:
        """Of the file."""
        return hashlib.sha256(self.content).hexdigest()

    @cached_property
    def system(self) -> type[Any] | None:
        """Class of its system; None where it is wrong, which checking the scenario will say."""
        try:
            return find_system(self.document["system"], self.file.parent)
        except (InputError, KeyError, TypeError):
            return None


@dataclass(frozen=True)
class Part:
    """A block of a study, or all of a study without blocks.

    Attributes
    ----------
    draft : Draft
        The base with what is set.
    axes : list of (Axis, targets)
    fixed, varied : list of (place in the study's file, Target)
        What is set, and what changes along axes.
    first : Draft
        Its first instance.
    """

    draft: Draft
    axes: Axes
    fixed: list[tuple[str, Target]]
    varied: list[tuple[str, Target]]
    first: Draft


def parts_of(
    base: Base,
    changes: Mapping[str, Any],
    axes: Sequence[Axis],
    blocks: Sequence[Block],
    mistakes: list[str],
) -> list[Part]:
    """The parts of a study; what is wrong with them is appended to the mistakes."""
    finder = _Finder(base, mistakes)
    fixed, varied = finder.changes("set", changes), finder.axes("axes", axes)
    parts = []
    for place, block in enumerate(blocks):
        name = f"blocks[{place}]"
        more = finder.changes(f"{name}.set", block.set or {})
        inner = finder.axes(f"{name}.axes", block.axes)
        draft = Draft(base.document, (), {BLOCK: block.name})
        parts.append((draft, [*fixed, *more], [*varied, *inner]))
    if not blocks:
        parts.append((Draft(base.document, (), {}), fixed, varied))
    if not mistakes:
        mistakes += _too_many(parts)
    return [] if mistakes else [_part(*part, mistakes) for part in parts]


def labels_in(axes: Sequence[Axis], blocks: Sequence[Block]) -> Values:
    """Labels of the instances of a study, and what stands there."""
    parts = [{BLOCK: {block.name}} | _values([*axes, *block.axes]) for block in blocks]
    parts = parts or [_values(axes)]
    names = dict.fromkeys(name for part in parts for name in part)
    return {
        name: dict.fromkeys(value for part in parts for value in part.get(name, (None,))).keys()
        for name in names
    }


def _values(axes: Sequence[Axis]) -> dict[str, Collection[Label]]:
    return {
        name: dict.fromkeys(point.labels[name] for point in axis.all_points).keys()
        for axis in axes
        for name in axis.columns
    }


_Fixed = list[tuple[str, Change]]  # with their places in the study's file
_Varied = list[tuple[str, Axis, tuple[Target, ...]]]


class _Finder:
    """Finds what texts name, and collects what is wrong with them."""

    def __init__(self, base: Base, mistakes: list[str]) -> None:
        self._base = base
        self._mistakes = mistakes

    def changes(self, place: str, table: Mapping[str, Any]) -> _Fixed:
        found = [(self._target(place, text), value) for text, value in table.items()]
        return [(place, (target, value)) for target, value in found if target is not None]

    def axes(self, place: str, axes: Sequence[Axis]) -> _Varied:
        found: _Varied = []
        for number, axis in enumerate(axes):
            name = f"{place}[{number}]"
            targets = [self._target(name, text) for text in axis.targets]
            known = tuple(target for target in targets if target is not None)
            if len(known) == len(targets):
                found.append((name, axis, known))
        return found

    def _target(self, place: str, text: str) -> Target | None:
        try:
            return find_target(text, self._base.system, self._base.folder)
        except InputError as error:
            self._mistakes.append(f"{place}: {error}")
            return None


def _too_many(parts: Sequence[tuple[Draft, _Fixed, _Varied]]) -> Iterator[str]:
    size = sum(size_of([axis for _, axis, _ in varied]) for _, _, varied in parts)
    if size > LARGEST:
        yield f"a study has at most {LARGEST} instances; the product of the axes is {size}"


def _part(draft: Draft, fixed: _Fixed, varied: _Varied, mistakes: list[str]) -> Part:
    axes = [(axis, targets) for _, axis, targets in varied]
    all_fixed = [(place, target) for place, (target, _) in fixed]
    all_varied = [(place, target) for place, _, targets in varied for target in targets]
    before = len(mistakes)
    mistakes += _columns_twice(draft, varied)
    mistakes += clashes([*dict(_last(all_fixed)).values(), *all_varied])
    draft = _applied(draft, fixed, mistakes)
    first = draft
    if len(mistakes) == before:
        points = ((place, axis, axis.all_points[0], targets) for place, axis, targets in varied)
        for place, _, point, targets in points:
            made = [(place, change) for change in zip(targets, point.values, strict=True)]
            first = _applied(first, made, mistakes, point.labels)
    return Part(draft, axes, all_fixed, all_varied, first)


def _last(named: Sequence[tuple[str, Target]]) -> Iterator[tuple[str, tuple[str, Target]]]:
    """What is set, by its text: a block may set again what the study sets."""
    return ((target.text, (place, target)) for place, target in named)


def _applied(
    draft: Draft, made: _Fixed, mistakes: list[str], labels: Mapping[str, Any] | None = None
) -> Draft:
    for place, change in made:
        try:
            draft = apply(draft, [change])
        except InputError as error:
            mistakes.append(f"{place}: {error}")
    return Draft(draft.document, draft.changes, {**draft.labels, **(labels or {})})


def _columns_twice(draft: Draft, varied: _Varied) -> Iterator[str]:
    """Columns that two axes have, or that the results have anyway."""
    owners = dict.fromkeys(TAKEN, "the results") | dict.fromkeys(draft.labels, "blocks")
    for place, axis, _ in varied:
        for column in axis.columns:
            if column in owners:
                yield (
                    f"{place}: a column {column!r} is there already, of {owners[column]}; give "
                    "this one another label"
                )
            owners[column] = place
