"""Solvers, evaluation of policies, stationary laws."""

from __future__ import annotations

from mdpcloud.solve.criteria import AverageCost, Discounted, FiniteHorizon, TotalCost
from mdpcloud.solve.evaluate import evaluate, improve
from mdpcloud.solve.limits import Status
from mdpcloud.solve.optimise import solve
from mdpcloud.solve.result import Evaluation, Solution
from mdpcloud.solve.stationary import RecurrentClass, long_run, recurrent_classes, stationary
from mdpcloud.solve.storage import load_solution

__all__ = [
    "AverageCost",
    "Discounted",
    "Evaluation",
    "FiniteHorizon",
    "RecurrentClass",
    "Solution",
    "Status",
    "TotalCost",
    "evaluate",
    "improve",
    "load_solution",
    "long_run",
    "recurrent_classes",
    "solve",
    "stationary",
]
