"""Storm through stormpy: explicit sparse models, its builder filled from lists in one call."""

from __future__ import annotations

from typing import Any

import numpy as np
import stormpy
from stormpy import datastructures, models

from benchmarks.peers.instance import Chain, Decisions

__all__ = ["average", "build", "transient"]

PRECISION = 1e-6


def build(instance: Decisions) -> dict[str, Any]:
    pairs, states = instance.state.size, instance.states
    builder = datastructures.SparseMatrixBuilder[float](
        rows=pairs,
        columns=states,
        entries=instance.data.size,
        has_custom_row_grouping=True,
        row_groups=states,
    )
    builder.add_next_values(
        np.repeat(np.arange(pairs), np.diff(instance.indptr)).tolist(),
        instance.indices.tolist(),
        instance.data.tolist(),
        instance.first[:-1].tolist(),
    )
    return {"model": builder.build()}


def average(instance: Decisions) -> dict[str, Any]:
    reward = models.SparseRewardModel[float](
        optional_state_action_reward_vector=instance.cost.tolist()
    )
    model = models.SparseMdp[float](
        models.SparseModelComponents[float](
            transition_matrix=build(instance)["model"],
            state_labeling=labels(instance.states, 0),
            reward_models={"cost": reward},
        )
    )
    (question,) = stormpy.parse_properties('R{"cost"}min=? [ LRA ]')
    environment = stormpy.environments.default(model)
    found = stormpy.model_checking(model, question, environment=environment)
    return {"gain": instance.rate * found.get_value(0)}


def transient(instance: Chain) -> dict[str, Any]:
    builder = datastructures.SparseMatrixBuilder[float](
        rows=instance.states, columns=instance.states, entries=instance.data.size
    )
    builder.add_next_values(
        np.repeat(np.arange(instance.states), np.diff(instance.indptr)).tolist(),
        instance.indices.tolist(),
        instance.data.tolist(),
    )
    labelling = labels(instance.states, instance.start)
    labelling.add_label("inside")
    for state in np.flatnonzero(instance.inside).tolist():
        labelling.add_label_to_state("inside", state)
    model = models.SparseCtmc[float](
        models.SparseModelComponents[float](
            transition_matrix=builder.build(), state_labeling=labelling, rate_transitions=True
        )
    )
    at = f"{instance.time:g}"
    (question,) = stormpy.parse_properties(f'P=? [ true U[{at},{at}] "inside" ]')
    found = stormpy.model_checking(model, question)
    return {"probability": found.get_value(instance.start)}


def labels(states: int, start: int) -> Any:
    """A labelling with the initial state."""
    labelling = models.StateLabeling(states)
    labelling.add_label("init")
    labelling.add_label_to_state("init", start)
    return labelling
