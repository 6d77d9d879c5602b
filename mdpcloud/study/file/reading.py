"""Reading a study file (TOML, format 1), with every mistake reported at once.

The file names a base scenario, or holds one, and what changes: ``set`` once and for all, axes each
by each, and blocks, one after the other, beside them. An instance is the base with the changes of
the study's ``set``, its block's ``set``, the study's axes and its block's axes, in this order; it
is checked as a scenario file with these values would be. Methods and functions that change the
system come after all changes of the document.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from os import PathLike
from pathlib import Path
from typing import Any, NoReturn

from mdpcloud.errors import InputError
from mdpcloud.scenario.reading import parse
from mdpcloud.study.file.blocks import Base, labels_in, parts_of
from mdpcloud.study.file.checking import instances_of, of_base
from mdpcloud.study.file.paths import put
from mdpcloud.study.file.settings import check_tables
from mdpcloud.study.output_mistakes import mistakes_in_columns, mistakes_in_names
from mdpcloud.study.outputs import Outputs
from mdpcloud.study.study import Instance, Study
from mdpcloud.study.tasks import Task, find_task

__all__ = ["read_study"]

FORMAT = 1


def read_study(path: str | PathLike[str]) -> Study:
    """Read a study file and check every instance.

    Parameters
    ----------
    path : path-like
        The file. The base, policies, tasks and functions in it are relative to its folder; what the
        base names, to the folder of the base.

    Returns
    -------
    Study
        Its instances in the order of the file, the first axis outermost.

    Raises
    ------
    InputError
        If the file cannot be read, is not TOML or has another format, or anything in it or in an
        instance is wrong: the message names every mistake; those of instances by their labels, at
        most 20 of them.
    """
    file = Path(path)
    content, document = parse(file, "study")
    _check_kind(document, file)
    mistakes: list[str] = []
    tables, wrong = check_tables(document, mistakes)
    task = _task(document, file, mistakes)
    base = _base(document, content, file, mistakes)
    outputs = Outputs(tables.measures, tables.tables, tables.figures)
    if task is not None and not wrong & {"axes", "blocks", "measures"}:
        labels = labels_in(tables.axes, tables.blocks)
        mistakes += mistakes_in_columns(outputs, task, labels)
    if base is None:
        _refuse(file, mistakes)
    instances = _instances(base, tables, None if wrong else task, mistakes, file)
    assert task is not None
    mistakes += mistakes_in_names(outputs, instances)
    if mistakes:
        _refuse(file, mistakes)
    return Study(tables.name or file.stem, instances, task, outputs, file)


def _instances(
    base: Base, tables: Any, task: Task | None, known: list[str], file: Path
) -> tuple[Instance, ...]:
    """All instances; refuses the file where anything is wrong with them, or there is no task."""
    mistakes: list[str] = []
    parts = parts_of(base, tables.set, tables.axes, tables.blocks, mistakes)
    if mistakes or task is None:
        _refuse(file, [*known, *mistakes, *of_base(base, parts)])
    instances = instances_of(base, parts, task, mistakes)
    if mistakes:
        _refuse(file, [*known, *mistakes])
    return instances


def _check_kind(document: Mapping[str, Any], file: Path) -> None:
    """Refuse a file of another format, and one that is no study at all."""
    if "base" not in document and "system" in document:
        raise InputError(
            f"{file} is a scenario, not a study; a study is a file that has it as its base: "
            f'base = "{file.name}"'
        )
    found = document.get("format", FORMAT)
    if type(found) is not int or found != FORMAT:
        raise InputError(
            f"study {file} has format {found!r}; this version of mdpcloud reads format {FORMAT}"
        )


def _task(document: Mapping[str, Any], file: Path, mistakes: list[str]) -> Task | None:
    name = document.get("task", "compare")
    if not isinstance(name, str) or not name:
        return None  # the tables say so
    try:
        return find_task(name, file.parent)
    except InputError as error:
        mistakes.append(f"task: {error}")
        return None


def _base(
    document: Mapping[str, Any], content: bytes, file: Path, mistakes: list[str]
) -> Base | None:
    """The scenario that is changed, with the study's policies."""
    base = document.get("base")
    try:
        if isinstance(base, str) and base:
            path = file.parent / base
            content, scenario = parse(path, "base")
        elif isinstance(base, Mapping):
            path, scenario = file, {"format": FORMAT, **base}
        else:
            found = "is missing; it" if base is None else f"is {base!r}, but"
            raise InputError(f"base {found} must be a path of a scenario file, or a scenario")
        return _with_policies(Base(scenario, path, content, file.parent), document)
    except InputError as error:
        mistakes.append(str(error))
        return None


def _with_policies(base: Base, document: Mapping[str, Any]) -> Base:
    policies = document.get("policies")
    known = isinstance(policies, list) and all(isinstance(one, str) and one for one in policies)
    if not policies or not known:  # the tables say what is wrong
        return base
    changed = put(base.document, ("compare", "policies"), policies)
    return replace(base, document=changed, own_policies=True)


def _refuse(file: Path, mistakes: Sequence[str]) -> NoReturn:
    count = f"{len(mistakes)} mistakes" if len(mistakes) > 1 else "a mistake"
    raise InputError("\n  ".join([f"study {file} has {count}:", *mistakes]))
