"""Instances of the parts of a study, each checked as a scenario file with its values would be.

A mistake that an axis or the base makes whatever its values is told once, of the first instance of
a part; mistakes of single values by the labels of their instances, the same ones together.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from mdpcloud.errors import InputError
from mdpcloud.plugins import mistake_in_plugin
from mdpcloud.study.file.blocks import Base, Part
from mdpcloud.study.file.changes import Target, changed
from mdpcloud.study.file.expanding import Draft, expand
from mdpcloud.study.file.paths import Path, parse_path, touches
from mdpcloud.study.file.scenarios import Scenarios
from mdpcloud.study.making import system_name
from mdpcloud.study.study import Instance
from mdpcloud.study.tasks import Task

if TYPE_CHECKING:
    from mdpcloud.scenario import Scenario
    from mdpcloud.scenario.mistakes import Mistake

__all__ = ["instances_of", "of_base"]

SHOWN = 20  # mistakes of instances
LOOKED_AT = 1000  # instances with mistakes, after which no more are looked for
ROUNDED = re.compile(r"must be an integer .*not -?\d+\.\d*$")
WHOLE = "; a range with whole = true holds integers"
RULES: Path = ("compare", "policies")


def instances_of(
    base: Base, parts: Sequence[Part], task: Task, mistakes: list[str]
) -> tuple[Instance, ...]:
    """All instances in order; what is wrong with them is appended to the mistakes."""
    checker = _Checker(base)
    for part in parts:
        mistakes += checker.general(part)
    if mistakes:
        mistakes[:] = dict.fromkeys(mistakes)
        return ()
    drafts = (draft for part in parts for draft in expand(part.draft, part.axes))
    found = tuple(_instances(checker, drafts, task))
    mistakes += checker.told()
    return found


def of_base(base: Base, parts: Sequence[Part] = ()) -> Iterator[str]:
    """What is wrong with a base by itself, or with parts, but for what changes may yet bring."""
    draft = Draft(base.document, (), {})
    checker = _Checker(base)
    found = (checker.general(part) for part in parts or [Part(draft, [], [], [], draft)])
    for message in dict.fromkeys(itertools.chain.from_iterable(found)):
        if " is missing; " not in message:
            yield message


def _instances(checker: _Checker, drafts: Iterator[Draft], task: Task) -> Iterator[Instance]:
    for number, draft in enumerate(drafts):
        scenario = checker.scenario(draft)
        if scenario is not None:
            yield Instance(number, draft.labels, scenario, task)
        elif checker.is_enough:
            return


class _Checker:
    """Makes scenarios of drafts, and collects what is wrong with them."""

    def __init__(self, base: Base) -> None:
        self._base = base
        self._scenarios = {
            of_study: Scenarios(base.file, base.sha256, folder)
            for of_study, folder in ((True, base.folder), (False, base.file.parent))
        }
        self._wrong: dict[str, list[str]] = {}  # message to the instances that it is about
        self._count = 0

    def _of(self, draft: Draft) -> tuple[Scenario | None, list[Mistake]]:
        """Scenario of a draft's document; rules that the study names are relative to its folder."""
        policies = _policies(draft.document)
        own = self._base.own_policies or policies is not _policies(self._base.document)
        try:
            return self._scenarios[own].of(draft.document)
        except InputError as error:
            return None, [("format", str(error))]
        except Exception as error:
            reason = mistake_in_plugin(error)
            if reason is None:
                raise
            return None, [("parameters", f"parameters: {reason}")]

    # --- mistakes of all instances ----------------------------------------------------------------

    def general(self, part: Part) -> Iterator[str]:
        """What is wrong with a part whatever the values along its axes are."""
        _, mistakes = self._of(part.first)
        for place, message in mistakes:
            where = self._where(part, _path(place), " is not known" in message)
            if where is not None:
                yield f"{where}: {message}" if where else message.removeprefix("compare.")

    def _where(self, part: Part, path: Path, is_unknown: bool) -> str | None:
        """Place that a mistake is due to, None where it may be due to a value along an axis."""
        varied = _first_that_touches(part.varied, path)
        if varied is not None:
            name, target = varied
            return name if is_unknown and len(path) <= len(target) else None
        fixed = _first_that_touches(part.fixed, path)
        if fixed is not None:
            return fixed[0]
        return "" if self._base.own_policies and path[:2] == RULES else "base"

    # --- mistakes of single instances -------------------------------------------------------------

    def scenario(self, draft: Draft) -> Scenario | None:
        """The scenario of a draft; None if anything is wrong with it."""
        scenario, mistakes = self._with_changes(draft)
        if mistakes:
            self._count += 1
        for message in mistakes:
            self._wrong.setdefault(message, []).append(_shown(draft))
        return scenario

    def _with_changes(self, draft: Draft) -> tuple[Scenario | None, list[str]]:
        """Scenario of a draft, with the changes of its system that its document does not hold."""
        if draft.mistake:
            return None, [draft.mistake]
        scenario, mistakes = self._of(draft)
        if scenario is None:
            return None, [message for _, message in mistakes]
        if not draft.changes:
            return scenario, []
        try:
            return _changed(scenario, draft), []
        except InputError as error:
            return None, [str(error)]

    @property
    def is_enough(self) -> bool:
        """Whether so many instances are wrong that no more should be looked at."""
        return self._count >= LOOKED_AT

    def told(self) -> Iterator[str]:
        """What is wrong with single instances."""
        for message, (first, *others) in itertools.islice(self._wrong.items(), SHOWN):
            hint = WHOLE if ROUNDED.search(message) else ""
            yield f"{first}{f' and {len(others)} more' if others else ''}: {message}{hint}"
        if len(self._wrong) > SHOWN:
            yield f"and {len(self._wrong) - SHOWN} more"
        if self.is_enough:
            yield f"no more were looked for after {LOOKED_AT} instances with mistakes"


def _shown(draft: Draft) -> str:
    """Name of an instance, as `Instance` shows it."""
    return ", ".join(f"{name} {value}" for name, value in draft.labels.items()) or "the base"


def _changed(scenario: Scenario, draft: Draft) -> Scenario:
    """A scenario with its system changed by methods and functions."""
    system = scenario.system
    for target, value in draft.changes:
        system = changed(system, target, value)
    same = type(system) is type(scenario.system)
    name = scenario.system_name if same else system_name(type(system))
    return replace(scenario, system=system, system_name=name)


def _policies(document: Mapping[str, Any]) -> Any:
    """The list of policies in a document, itself."""
    table = document.get("compare")
    return table.get("policies") if isinstance(table, Mapping) else None


def _path(place: str) -> Path:
    try:
        return parse_path(place)
    except InputError:
        return ()


def _first_that_touches(named: Sequence[tuple[str, Target]], path: Path) -> tuple[str, Path] | None:
    found = ((name, one.path) for name, one in named if one.path and touches(one.path, path))
    return next(found, None)
