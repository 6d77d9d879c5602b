"""Solvers, evaluation of policies, laws of chains."""

from __future__ import annotations

from mdpcloud.criteria import AverageCost, Discounted, FiniteHorizon, TotalCost
from mdpcloud.solve.constrained.constrained import ConstrainedSolution
from mdpcloud.solve.constrained.report import InfeasibleError
from mdpcloud.solve.evaluate import evaluate, improve
from mdpcloud.solve.limits import Status
from mdpcloud.solve.optimise import solve
from mdpcloud.solve.result import Evaluation, Solution
from mdpcloud.solve.sensitivity.sensitivity import Sensitivity, sensitivity
from mdpcloud.solve.stationary.stationary import (
    RecurrentClass,
    long_run,
    recurrent_classes,
    stationary,
)
from mdpcloud.solve.storage import load_solution
from mdpcloud.solve.transient.first_passage import FirstPassage, PassageLaw, first_passage
from mdpcloud.solve.transient.transient import Transient, transient
from mdpcloud.solve.truncation.truncation import Truncation, bracketed, estimated

__all__ = [
    "AverageCost",
    "ConstrainedSolution",
    "Discounted",
    "Evaluation",
    "FiniteHorizon",
    "FirstPassage",
    "InfeasibleError",
    "PassageLaw",
    "RecurrentClass",
    "Sensitivity",
    "Solution",
    "Status",
    "TotalCost",
    "Transient",
    "Truncation",
    "bracketed",
    "estimated",
    "evaluate",
    "first_passage",
    "improve",
    "load_solution",
    "long_run",
    "recurrent_classes",
    "sensitivity",
    "solve",
    "stationary",
    "transient",
]
