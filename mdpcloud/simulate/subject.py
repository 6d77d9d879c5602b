"""From what a user gives to what is simulated."""

from __future__ import annotations

from collections.abc import Mapping
from numbers import Integral
from typing import Any

from mdpcloud.errors import InputError
from mdpcloud.model.chain import MarkovChain
from mdpcloud.model.model import Model
from mdpcloud.model.tabular import TabularModel
from mdpcloud.simulate.protocol import Simulation
from mdpcloud.simulate.separable import tie_order

__all__ = ["simulation_of"]

Start = Mapping[str, Any] | int | None


def simulation_of(subject: Any, policy: Any, start: Start, ties: str) -> Simulation:
    """The simulation of a model or system under a policy.

    A system may have a method ``simulation(policy, ties, start)`` that makes its own; otherwise its
    model is simulated.

    Raises
    ------
    InputError
        When the subject is none of these, or the policy or start does not fit it.
    """
    tie_order(ties, ())
    if isinstance(subject, Model):
        return _of_model(subject, policy, start)
    if isinstance(subject, (TabularModel, MarkovChain)):
        from mdpcloud.simulate.chains import chain_simulation

        if start is not None and not isinstance(start, Integral):
            raise InputError(f"start is {start!r}; states of a tabular model are numbers")
        return chain_simulation(subject, policy, None if start is None else int(start))
    if callable(getattr(subject, "simulation", None)):
        found: Simulation = subject.simulation(policy, ties=ties, start=start)
        return found
    if callable(getattr(subject, "model", None)):
        model = subject.model()
        if isinstance(policy, str) and policy in getattr(subject, "policy_names", ()):
            policy = subject.heuristic(policy, ties).rule
        if isinstance(model, (Model, TabularModel, MarkovChain)):
            return simulation_of(model, policy, start, ties)
        raise InputError(f"the model of {subject!r} is {model!r}, which cannot be simulated")
    raise InputError(f"{subject!r} is no model and no system; it cannot be simulated")


def _of_model(model: Model, policy: Any, start: Any) -> Simulation:
    from mdpcloud.simulate.events import event_simulation

    return event_simulation(model, policy, start)
