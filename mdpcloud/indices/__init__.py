"""Priority indices: of nodes that take jobs, and of restless arms in general."""

from __future__ import annotations

from mdpcloud.errors import NoIndexError
from mdpcloud.indices.bounds import (
    TIE_TOLERANCE,
    accepts,
    critical_cost,
    exact_cap,
    lower_bound,
    upper_bound,
)
from mdpcloud.indices.fleets.fleet import Fleet, fleet
from mdpcloud.indices.fleets.relax import Relaxation, relax
from mdpcloud.indices.node import Node, condition_note, rho_is_monotone
from mdpcloud.indices.priority import (
    individually_optimal,
    policy_improvement,
    restless_bandit,
)
from mdpcloud.indices.restless.arm import Arm, arm, rate_arm
from mdpcloud.indices.restless.birth_death_arm import BirthDeathArm, birth_death_arm
from mdpcloud.indices.restless.gittins import gittins, gittins_rates
from mdpcloud.indices.restless.model_arm import model_arm
from mdpcloud.indices.restless.result import ArmIndex, IndexWarning, PricePath, Verdict, Witness
from mdpcloud.indices.restless.whittle import whittle
from mdpcloud.indices.table import IndexTable
from mdpcloud.indices.table_building import index_table_of

__all__ = [
    "TIE_TOLERANCE",
    "Arm",
    "ArmIndex",
    "BirthDeathArm",
    "Fleet",
    "IndexTable",
    "IndexWarning",
    "NoIndexError",
    "Node",
    "PricePath",
    "Relaxation",
    "Verdict",
    "Witness",
    "accepts",
    "arm",
    "birth_death_arm",
    "condition_note",
    "critical_cost",
    "exact_cap",
    "fleet",
    "gittins",
    "gittins_rates",
    "index_table_of",
    "individually_optimal",
    "lower_bound",
    "model_arm",
    "policy_improvement",
    "rate_arm",
    "relax",
    "restless_bandit",
    "rho_is_monotone",
    "upper_bound",
    "whittle",
]
