"""A study: one task on many instances of systems, and what is to be made of the results.

An `Instance` is a scenario with the labels that tell where in the study it stands. Instances whose
contents are the same have the same key, and are computed once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

from mdpcloud.study.records.identity import content_of, key_of
from mdpcloud.study.tasks import Task

if TYPE_CHECKING:
    from mdpcloud.scenario import Scenario
    from mdpcloud.study.outputs import Outputs

__all__ = ["Instance", "Label", "Study"]

Label: TypeAlias = str | int | float | bool


@dataclass(frozen=True, eq=False)
class Instance:
    """One instance of a study.

    Attributes
    ----------
    number : int
        Place in the study, from 0.
    labels : mapping of str to Label
        Name of each axis to the value shown for it; of a study in blocks, ``"block"`` too.
    scenario : Scenario
    task : Task
    """

    number: int
    labels: Mapping[str, Label]
    scenario: Scenario
    task: Task

    @cached_property
    def content(self) -> dict[str, Any]:
        """What decides the result, as plain data."""
        return content_of(self.scenario, self.task.name)

    @cached_property
    def key(self) -> str:
        """Sha256 of the content, in hexadecimal digits."""
        return key_of(self.content)

    def __str__(self) -> str:
        return ", ".join(f"{name} {value}" for name, value in self.labels.items()) or "the base"


@dataclass(frozen=True, eq=False)
class Study:
    """Instances and a task.

    Attributes
    ----------
    name : str
    instances : tuple of Instance
    task : Task
    outputs : Outputs
    path : Path
        The study's file; empty where there is none.
    """

    name: str
    instances: tuple[Instance, ...]
    task: Task
    outputs: Outputs
    path: Path = field(default_factory=Path)

    @property
    def labels(self) -> tuple[str, ...]:
        """Names of all axes, in the order in which they first appear."""
        return tuple(dict.fromkeys(name for one in self.instances for name in one.labels))

    @cached_property
    def unique(self) -> Mapping[str, Instance]:
        """The first instance of each key."""
        found: dict[str, Instance] = {}
        for one in self.instances:
            found.setdefault(one.key, one)
        return found

    def change(self, function: Callable[[Scenario], Scenario]) -> Study:
        """The study with every scenario changed."""
        return replace(
            self,
            instances=tuple(
                replace(one, scenario=function(one.scenario)) for one in self.instances
            ),
        )

    @classmethod
    def of(
        cls,
        points: Iterable[tuple[Mapping[str, Label], Any]],
        policies: Mapping[str, Any] | Iterable[str] | None = None,
        *,
        task: str | Callable[[Scenario], Mapping[str, Any]] = "compare",
        name: str = "study",
        ties: str = "fastest",
        tolerance: float = 1e-8,
        outputs: Outputs | None = None,
    ) -> Study:
        """A study of systems made in Python.

        Parameters
        ----------
        points : iterable of (labels, system)
            Labels name the axes, such as ``{"load": 0.9}``.
        policies : mapping of name to rule, or names, optional
            As for `mdpcloud.compare`.
        task : str or function of a Scenario
            "compare", "evaluate" or another of `mdpcloud.study.tasks`; or a function that returns
            ``{"rows": [...]}``, each of them a mapping from column to value.
        name : str
        ties : {"fastest", "first", "last", "slowest"}
        tolerance : float
            Relative width of the certified bounds.
        outputs : Outputs, optional

        Raises
        ------
        InputError
            When something is not as it must be, or there is no point.

        Examples
        --------
        >>> import mdpcloud as mc
        >>> node = mc.systems.Node(servers=2, service_rate=1.0, abandonment_rate=0.5)
        >>> study = mc.study.Study.of(
        ...     ({"rate": rate}, mc.systems.CloudRouting((node,), rate, outside_cost=0.4))
        ...     for rate in (1.0, 2.0)
        ... )
        >>> [str(one) for one in study.instances]
        ['rate 1.0', 'rate 2.0']
        """
        from mdpcloud.study.making import study_of

        return study_of(points, policies, task, name, ties, tolerance, outputs)
