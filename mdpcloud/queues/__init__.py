"""Closed forms and positive recursions for Markovian queues.

Rates are per unit of time, whichever unit the caller uses; results are rates or times in the same
unit. Numba is loaded when a function is called for the first time.
"""

from __future__ import annotations

from mdpcloud.queues.chain import birth_death
from mdpcloud.queues.erlang import DelayQueue, erlang_b, erlang_c, log_erlang_b, mmc
from mdpcloud.queues.impatient import AbandonmentQueue, abandonment

__all__ = [
    "AbandonmentQueue",
    "DelayQueue",
    "abandonment",
    "birth_death",
    "erlang_b",
    "erlang_c",
    "log_erlang_b",
    "mmc",
]
