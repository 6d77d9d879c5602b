"""What `mdpcloud.compare` knows of a system, and what a system says of its heuristic policies.

A system needs ``model(caps=None)`` only. What else it offers is used where it is there:

``policy_names``
    Class attribute, the names of its heuristic policies.
``heuristic(name, ties)``
    The `Heuristic` of that name.
`Truncated`'s methods
    ``exact_caps()``, ``start_caps()`` and ``model(caps, edge)`` let the comparison find the optimum
    on a box that is exact or bracketed.
``derived(cost, measures)``
    Bounds of further measures, from those of the cost and of the model's measures.
``notes``
    What a reader of results has to know about this system.
``simulation(policy, ties, start)``
    The `mdpcloud.simulate.protocol.Simulation` of a policy.
``is_markovian``
    False where there is no model, and the system can only be simulated.
``index_table(ties, policies, states)``
    The `mdpcloud.indices.IndexTable` of its index policies, for deployment.
``profit_rate``
    What is earned per unit of time before costs, for profit gaps.
``about_optimum(policy)``
    Notes, a tuple of str, on the policy of the optimum.
``families()``
    The `mdpcloud.policies.family.Family` tuples whose best members are searched for.

What allocation systems offer besides, for `mdpcloud.asymptotics`:

``own_policy``
    Class attribute, the name of the policy of the source, one of ``policy_names``.
``scale``
    Field, by which rates and capacities are multiplied.
``exact()``
    The `mdpcloud.systems.measures.Measures` of the finite system under its own policy, in closed
    form, None where it is too large; without this method the own policy is evaluated on the model.
``limit()``
    The Measures of the large-scale limit, per unit of the scale; it raises `NoLimitError` where
    there is none.
``fluid(horizon, start=None, times=None)``
    The `mdpcloud.limits.trajectory.Trajectory` of the fluid limit, coordinates as ``mean_jobs``,
    flattened; it raises `NoLimitError` as well.
``fluid_bound()``
    A lower bound of the optimal cost that holds at every scale, cost/time.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol, runtime_checkable

from mdpcloud.model.model import Model

__all__ = ["AT_CAP", "Edge", "Heuristic", "Truncated"]

AT_CAP = " at its cap"
"""Ends the name of the action that pays, at a cap, for what would lead beyond it."""

Edge = Literal["closed", "lower", "upper"]
"""At a cap no more jobs are taken, or they are at their least or at their largest cost."""


@dataclass(frozen=True, eq=False)
class Heuristic:
    """A policy of a system: a rule on a box of states, or a cost known in closed form.

    Attributes
    ----------
    name : str
    rule : function of x, mapping, or None
        As `mdpcloud.policy` takes it.
    caps : tuple of int or None
        A box that the rule never leaves; None where there is none.
    cost : float or None
        The cost rate, where it is known in closed form.
    error : float
        Absolute error of ``cost`` and, relative to them, of ``measures``.
    measures : mapping
        Long-run averages, in closed form.
    indices : sequence of sequences or None
        Per node the index in states 0 ... last routable.
    notes : sequence of str
        What a reader has to know about this policy here.
    """

    name: str
    rule: Callable[[Any], Any] | Mapping[str, Any] | None = None
    caps: tuple[int, ...] | None = None
    cost: float | None = None
    error: float = 0.0
    measures: Mapping[str, float] = field(default_factory=dict)
    indices: Sequence[Sequence[float]] | None = None
    notes: tuple[str, ...] = ()


@runtime_checkable
class Truncated(Protocol):
    """A system whose state space is infinite, or larger than it needs to be."""

    def exact_caps(self) -> tuple[int | None, ...]:
        """Caps of a box that loses nothing; None for an axis without one."""
        ...

    def start_caps(self) -> tuple[int, ...]:
        """Caps to begin with."""
        ...

    def model(self, caps: Sequence[int] | None = None, edge: Edge = "closed") -> Model:
        """The model on a box."""
        ...
