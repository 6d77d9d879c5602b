"""Makes restless arms with a known index: dense random ones, and a node that lets jobs in."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.peers.restless import Restless

__all__ = ["dense_arm", "dense_moves", "indifference", "node", "node_arm"]

SEED = 20261
SAMPLE, ALLOWED = 3, 1e-11  # states in which the known index is checked, and how far
SERVICE, PATIENCE, LOAD, FEE, HOLDING = 1.0, 0.2, 0.8, 0.5, 0.1  # of a server of the node
DEAR = 2.0 * (FEE + HOLDING / PATIENCE)  # per job; all prices are below half of it

Floats = NDArray[np.float64]


def dense_moves(states: int) -> tuple[Floats, Floats]:
    """Probabilities from exponential weights, and uniform rewards, passive and active."""
    rng = np.random.default_rng([SEED, states])
    moves = rng.exponential(size=(2, states, states))
    moves /= moves.sum(axis=2, keepdims=True)
    return moves, rng.random((2, states))


def dense_arm(states: int) -> Restless:
    """A random arm, its index mdpcloud's.

    Single-arm problems are solved at a few of its entries, where both actions must be optimal.
    """
    from mdpcloud import indices

    moves, rewards = dense_moves(states)
    arm = indices.arm(*moves, rewards0=rewards[0], rewards1=rewards[1])
    found = Restless(*moves, *rewards, indices.whittle(arm).index)
    for state in np.linspace(0, states - 1, SAMPLE, dtype=np.int64):
        assert indifference(found, int(state)) < ALLOWED
    return found


def indifference(arm: Restless, state: int) -> float:
    """By how much actions are worse than optimal where the price is this state's index.

    Active where the index is at least that; both actions count in the state itself.
    """
    n, price = arm.states, float(arm.index[state])
    active = arm.index >= price
    rows = np.where(active[:, None], arm.active, arm.passive)
    earned = np.where(active, arm.active_rewards, arm.passive_rewards + price)
    system = np.eye(n) - rows
    system[:, -1] = 1.0
    values = np.linalg.solve(system, earned)
    values[-1] = 0.0
    passive = arm.passive_rewards + price + arm.passive @ values
    difference = passive - arm.active_rewards - arm.active @ values
    loss = np.where(active, difference, -difference)
    return float(max(np.max(loss), abs(difference[state])))


def node(states: int) -> tuple[float, Floats, Floats]:
    """Rate of arrivals, and rates of departures and of costs in all states."""
    found, arrivals = described(states)
    return arrivals, found.departures(np.arange(states)), found.costs(np.arange(states))


def prices(states: int) -> Floats:
    """What one more job costs the node in each state but the last one."""
    from mdpcloud.indices import restless_bandit

    return restless_bandit(*described(states), states - 2)


def described(states: int) -> tuple[Any, float]:
    from mdpcloud.indices import Node

    servers = states // 4
    found = Node(servers, SERVICE, PATIENCE, fee=FEE, holding_cost=HOLDING)
    return found, LOAD * servers * SERVICE


def node_arm(states: int) -> Restless:
    """A node of M/M/m+M with m a quarter of the states, uniformised; activity lets a job in.

    The index of the node is a closed recursion. In the last state there is no room, and letting a
    job in all the same is dearer than any price.
    """
    i = np.arange(states)
    arrivals, down, costs = node(states)
    rate = arrivals + float(down[-1])
    passive = np.diag(down[1:] / rate, -1)
    active = passive + np.diag(np.full(states - 1, arrivals / rate), 1)
    for matrix in (passive, active):
        np.fill_diagonal(matrix, 1.0 - matrix.sum(axis=1))
    index = -np.append(prices(states), DEAR) * arrivals / rate
    rewards = -costs / rate
    return Restless(passive, active, rewards, rewards + np.where(i < states - 1, 0.0, index), index)
