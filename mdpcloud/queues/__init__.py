"""Closed forms and positive recursions for Markovian queues.

Rates are per unit of time, whichever unit the caller uses; results are rates or times in the same
unit. Numba is loaded when a function is called for the first time.
"""

from __future__ import annotations

from mdpcloud.queues.chain import birth_death
from mdpcloud.queues.erlang import DelayQueue, erlang_b, erlang_c, log_erlang_b, mmc
from mdpcloud.queues.impatient import AbandonmentQueue, abandonment
from mdpcloud.queues.knapsack import kaufman_roberts
from mdpcloud.queues.occupancy import LossLaw
from mdpcloud.queues.product_form import product_form_law

__all__ = [
    "AbandonmentQueue",
    "DelayQueue",
    "LossLaw",
    "abandonment",
    "birth_death",
    "erlang_b",
    "erlang_c",
    "kaufman_roberts",
    "log_erlang_b",
    "mmc",
    "product_form_law",
]
