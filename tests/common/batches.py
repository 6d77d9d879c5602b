"""Errors of simulated averages in standard errors, from batch means.

The error over an estimated standard error has Student's t-distribution, with one degree of freedom
less than there are batches; it is compared with what is as unlikely for it as four is for a normal
variable (6e-5).
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.special import ndtr, stdtrit

__all__ = ["BATCHES", "excess", "four_errors", "standard_error"]

BATCHES = 8  # of each replication


def four_errors(batches: int) -> float:
    """As many standard errors, estimated from so many batches, as four that are known."""
    return float(stdtrit(batches - 1, ndtr(4.0)))


def standard_error(kept: Any) -> float:
    """Of the mean of a series (replications, segments)."""
    used = kept.shape[1] // BATCHES * BATCHES
    batches = kept[:, -used:].reshape(kept.shape[0] * BATCHES, -1).mean(axis=1)
    return float(np.std(batches, ddof=1) / np.sqrt(batches.size))


def excess(kept: Any, lower: float, upper: float) -> float:
    """How far the mean of a series is outside a bracket, over what is allowed; right below 1."""
    gap = max(lower - np.mean(kept), np.mean(kept) - upper, 0.0)
    allowed = four_errors(kept.shape[0] * BATCHES) * standard_error(kept)
    return 0.0 if gap == 0.0 else float(gap / max(allowed, 1e-300))
