"""The chain of a model under a policy together with what it costs and measures."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from mdpcloud.engine.problem import Floats
from mdpcloud.engine.rows import RowsProblem
from mdpcloud.engine.rules import policy_for
from mdpcloud.errors import InputError
from mdpcloud.model.chain import MarkovChain
from mdpcloud.model.matrices import as_floats
from mdpcloud.model.model import Model
from mdpcloud.model.tabular import TabularModel
from mdpcloud.solve.measures import measure_rates
from mdpcloud.solve.reward import sense_of
from mdpcloud.solve.stationary.stationary import chain_of, chain_of_generator, decided

__all__ = ["CostedChain", "costed_chain"]


@dataclass(frozen=True, eq=False)
class CostedChain:
    """A chain with cost rates.

    Parameters
    ----------
    chain : MarkovChain
    cost : (n,) array or None
        Cost/time (reward/time, for a model given by rewards), lump costs included.
    measures : mapping
        Name to a rate (n,).
    """

    chain: MarkovChain
    cost: Floats | None = None
    measures: Mapping[str, Floats] = field(default_factory=dict)


def costed_chain(chain_or_model: Any, policy: Any, cost_rate: Any) -> CostedChain:
    """Return the chain that `chain_of` returns, with the costs of the model or those given."""
    if isinstance(chain_or_model, Model | TabularModel):
        found = _of_model(chain_or_model, policy)
    else:
        found = CostedChain(chain_of(chain_or_model, policy))
    if cost_rate is None:
        return found
    return CostedChain(found.chain, _checked(cost_rate, found.chain.n), found.measures)


def _of_model(model: Any, policy: Any) -> CostedChain:
    problem, choice = decided(model, policy)
    if choice is None:
        choice = policy_for(problem, {}).choice(problem)
    explicit = RowsProblem(problem.rows(), problem.terms, problem.discrete, problem.label)
    generator, cost = explicit.generator(choice)
    return CostedChain(
        chain_of_generator(generator, problem),
        sense_of(model) * cost,
        measure_rates(model, problem, choice),
    )


def _checked(cost_rate: Any, n: int) -> Floats:
    rate = as_floats(cost_rate, "cost_rate")
    if rate.ndim == 0:
        rate = np.full(n, float(rate))
    if rate.shape != (n,) or not np.isfinite(rate).all():
        raise InputError(
            f"cost_rate must be {n} finite numbers, one per state; it has shape {rate.shape}"
        )
    return rate
