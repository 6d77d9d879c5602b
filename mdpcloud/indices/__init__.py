"""Priority indices: each node's price for one more job, and bounds on the true price."""

from __future__ import annotations

from mdpcloud.indices.bounds import (
    TIE_TOLERANCE,
    accepts,
    critical_cost,
    exact_cap,
    lower_bound,
    upper_bound,
)
from mdpcloud.indices.node import Node, condition_note, rho_is_monotone
from mdpcloud.indices.priority import (
    individually_optimal,
    policy_improvement,
    restless_bandit,
)

__all__ = [
    "TIE_TOLERANCE",
    "Node",
    "accepts",
    "condition_note",
    "critical_cost",
    "exact_cap",
    "individually_optimal",
    "lower_bound",
    "policy_improvement",
    "restless_bandit",
    "rho_is_monotone",
    "upper_bound",
]
