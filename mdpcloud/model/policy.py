"""A policy: what each decision does in every state."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mdpcloud.errors import InputError
from mdpcloud.plugins import did_you_mean

__all__ = ["Policy"]

Array = NDArray[Any]


@dataclass(frozen=True, eq=False, repr=False)
class Policy:
    """Actions per decision and state, deterministic or randomised.

    Only terms with a real choice are kept: those with two allowed actions and a positive rate
    somewhere.

    Attributes
    ----------
    actions : mapping
        Decision to an integer array (n,), -1 where its rate is zero, or to probabilities (A, n).
    names : mapping
        Decision to its action names, in the order of their numbers.
    shape : tuple of int
        The lattice's shape where the states fill it, else (n,); `table` uses it.
    """

    actions: Mapping[str, Array]
    names: Mapping[str, tuple[str, ...]]
    shape: tuple[int, ...]

    def __post_init__(self) -> None:
        object.__setattr__(self, "actions", MappingProxyType(dict(self.actions)))
        object.__setattr__(self, "names", MappingProxyType(dict(self.names)))

    def __repr__(self) -> str:
        decisions = ", ".join(map(repr, self.actions))
        kind = "randomised " if self.randomised else ""
        return f"Policy({kind}{decisions}; shape={self.shape})"

    def __reduce__(self) -> tuple[Any, ...]:
        return Policy, (dict(self.actions), dict(self.names), self.shape)

    @property
    def randomised(self) -> bool:
        """Whether some decision is given by probabilities."""
        return any(array.ndim == 2 for array in self.actions.values())

    def table(self, decision: str | None = None) -> Array:
        """Actions of a decision in the shape of the state space; of the only one by default.

        Raises
        ------
        InputError
            When the decision is unknown, or none is named and there are several.
        """
        if decision is None and len(self.actions) == 1:
            decision = next(iter(self.actions))
        if decision is None:
            raise InputError(f"name one of the decisions; there are {list(self.actions)}")
        if decision not in self.actions:
            hint = did_you_mean(decision, self.actions) or f"; there are {list(self.actions)}"
            raise InputError(f"the policy has no decision {decision!r}{hint}")
        array = self.actions[decision]
        return array.reshape(array.shape[:-1] + self.shape)

    def check(self, problem: Any) -> None:
        """Raise `InputError` unless a problem has its decisions, with its states and actions.

        Whether the actions are allowed is open.
        """
        for term in problem.terms:
            if not term.decision:
                continue
            if term.name not in self.actions:
                raise InputError(f"the policy says nothing about decision {term.name!r}")
            states = self.actions[term.name].shape[-1]
            names = self.names[term.name]
            if (states, names) != (problem.n, term.actions):
                raise InputError(
                    f"the policy was made for another model: {term.name!r} has {states} states and "
                    f"actions {list(names)} there, {problem.n} states and {list(term.actions)} "
                    "here; make it with mdpcloud.policy(model, ...)"
                )

    def choice(self, problem: Any) -> Array | list[Array]:
        """The engine's choice array (terms, n); probabilities per term if the policy is randomised.

        Parameters
        ----------
        problem : Problem
            The compiled model; terms without a decision take their only allowed action.

        Raises
        ------
        InputError
            When the policy was made for other states or actions.
        """
        self.check(problem)
        choice = problem.greedy(problem.pack(np.zeros(problem.n)), 0.0)
        for e, term in enumerate(problem.terms):
            if not term.decision:
                continue
            array = self.actions[term.name]
            if array.ndim == 1:
                choice[e] = np.where(choice[e] < 0, choice[e], array)
        return self._mixture(problem, choice) if self.randomised else choice

    def _mixture(self, problem: Any, choice: Array) -> list[Array]:
        mixture = []
        for e, term in enumerate(problem.terms):
            array = self.actions.get(term.name) if term.decision else None
            if array is None or array.ndim == 1:
                array = (choice[e] == np.arange(len(term.actions))[:, None]).astype(np.float64)
            mixture.append(array)
        return mixture


def policy_of(problem: Any, choice: Array) -> Policy:
    """The policy that a choice array (terms, n) describes."""
    decisions = [(e, term) for e, term in enumerate(problem.terms) if term.decision]
    return Policy(
        {term.name: np.array(choice[e]) for e, term in decisions},
        {term.name: term.actions for _, term in decisions},
        problem.shape,
    )
