"""Running a parallel kernel, one at a time and never in a forked process."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from mdpcloud.errors import InputError, SolveError

__all__ = ["in_parallel"]

_one_at_a_time = threading.Lock()  # numba's workqueue layer aborts the process when entered twice
_process = os.getpid()
SPINS = "GOMP_SPINCOUNT"
FEW = "2000"  # turns of a waiting loop, some microseconds


@contextmanager
def _short_waits() -> Iterator[None]:
    """Let GNU OpenMP's threads that start here soon sleep when they wait, unless the user says how.

    A sweep has a barrier at its end. Threads that always sleep there cost a tenth of a millisecond
    each time; threads that spin for long keep the one they wait for from a core where other
    processes need cores too, and sweeps were seen to take twelve times as long.
    """
    chosen = os.environ.get(SPINS)
    os.environ.setdefault(SPINS, FEW)
    try:
        yield
    finally:
        if chosen is None:
            del os.environ[SPINS]


def in_parallel(kernel: Callable[..., Any], threads: int, *arguments: Any) -> Any:
    """Call a parallel kernel with a number of threads, its first argument.

    Raises
    ------
    InputError
        When the machine offers fewer threads.
    SolveError
        In a forked child.
    """
    import numba

    if os.getpid() != _process:
        raise SolveError(
            "threads > 1 cannot run in a forked process (numba's threads do not survive a fork); "
            "use threads=1 there, or start workers with spawn or loky"
        )
    available = int(numba.config.NUMBA_NUM_THREADS)  # type: ignore[attr-defined]
    if threads > available:
        raise InputError(f"threads is {threads}; this machine offers {available}")
    with _one_at_a_time:
        with _short_waits():
            before = numba.get_num_threads()  # starts them
        numba.set_num_threads(threads)
        try:
            return kernel(threads, *arguments)
        finally:
            numba.set_num_threads(before)
