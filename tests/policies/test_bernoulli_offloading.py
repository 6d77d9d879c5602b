"""Bernoulli offloading: probabilities of the further options of a job that does not fit at home."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import mdpcloud as mc
from mdpcloud.policies.bernoulli_offloading import bernoulli_offloading
from mdpcloud.policies.complete_sharing import complete_sharing
from mdpcloud.policies.family import Family, Option, Parameter, Stream
from tests.models import offloading, reference

PUBLISHED = reference("allocation")["S5_finite_mdp_ring"]["mdp"]


def has_room(k: int, servers: int) -> Any:
    """Whether centre k has a free server."""
    return lambda x: x.busy[k] < servers


def streams(servers: tuple[int, int]) -> list[Stream]:
    """Two centres that send jobs to each other."""
    rooms = [has_room(k, n) for k, n in enumerate(servers)]
    return [
        Stream(f"arrival {k}", (Option("local", rooms[k]), Option("offload", rooms[1 - k])))
        for k in (0, 1)
    ]


def family(servers: tuple[int, int]) -> Family:
    """Both probabilities on the grid of the reference."""
    grid = (0.0, 0.5, 1.0)
    return bernoulli_offloading(streams(servers), [Parameter("p0", grid), Parameter("p1", grid)])


@pytest.mark.parametrize("record", PUBLISHED, ids=lambda r: f"{r['C1']}-{r['C2']}-{r['w2']}")
def test_the_members_cost_what_is_published(record: dict[str, Any]) -> None:
    arguments = offloading.arguments(record)
    model = offloading.offloading(*arguments)
    rules = family(arguments[0])
    for spelt, cost in record["p_policies"].items():
        found = mc.evaluate(model, rules.member(*map(float, spelt.split(","))))
        assert found.gain == pytest.approx(cost, rel=1e-11)


def test_with_probability_one_whatever_fits_is_taken() -> None:
    servers = (2, 3)
    model = offloading.offloading(servers, (4.0, 1.0), (1.0, 1.0), (1.0, 2.0))
    sharing = mc.evaluate(model, complete_sharing(streams(servers)).member())
    sent = mc.evaluate(model, family(servers).member(1.0, 1.0))
    assert sent.gain == pytest.approx(sharing.gain, rel=1e-10)


@given(st.integers(1, 60), st.integers(0, 70))
def test_the_probabilities_of_any_number_of_options_sum_to_one(others: int, state: int) -> None:
    """Each of the others with 1/others, whose sum rounding may lift above one."""
    first = Option("local", lambda x: x < 5)
    further = [Option(f"to {k}", lambda x, k=k: x != 5 + k) for k in range(others)]
    rules = bernoulli_offloading(
        [Stream("arrival", (first, *further))], [Parameter("p", (1 / others,))]
    ).member(1 / others)["arrival"]
    chances = np.array([float(chance(np.array(state))) for chance in rules.values()])
    assert (chances >= 0.0).all()
    assert chances.sum() == pytest.approx(1.0, abs=1e-12)
    blocked = 5 <= state < 5 + others
    assert rules["reject"](np.array(state)) == pytest.approx(blocked / others, abs=1e-12)
