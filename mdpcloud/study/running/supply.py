"""Works as joblib's engines hand them out: what has not come back is known, whatever happens."""

from __future__ import annotations

import contextlib
import threading
from collections import deque
from collections.abc import Iterable, Iterator
from typing import Any

from mdpcloud.study.records.identity import sources_of
from mdpcloud.study.records.record import Record
from mdpcloud.study.running.work import Work, compute_packed, failed, packed

__all__ = ["ONE_THREAD", "TRIES", "Supply", "answer", "cores", "stop"]

TRIES = 2  # deaths of workers that a work has before it has failed
ONE_THREAD = dict.fromkeys(
    (
        "OMP_NUM_THREADS",
        "OPENBLAS_NUM_THREADS",
        "MKL_NUM_THREADS",
        "BLIS_NUM_THREADS",
        "VECLIB_MAXIMUM_THREADS",
        "NUMBA_NUM_THREADS",
        "NUMEXPR_NUM_THREADS",
    ),
    "1",
)
"""Environment of a worker."""


def cores() -> int:
    """Cores that this process may use."""
    from joblib import cpu_count

    found: int = cpu_count(only_physical_cores=False)
    return found


class Supply:
    """Works by their keys, packed; iterating it hands them out.

    Parameters
    ----------
    works : iterable of Work

    Attributes
    ----------
    out : dict of key to Work
        What has been handed out and has not come back.
    exhausted : bool
        Whether all works have been taken.
    """

    def __init__(self, works: Iterable[Work]) -> None:
        self.out: dict[str, Work] = {}
        self.exhausted = False
        self._works = iter(works)
        self._contents: dict[str, bytes] = {}
        self._refused: deque[Record] = deque()
        self._lock = threading.Lock()  # joblib's threads take works too

    def __iter__(self) -> Iterator[tuple[str, bytes]]:
        while (work := self._next()) is not None:
            content = packed(work)
            if isinstance(content, bytes):
                self._contents[work.key], self.out[work.key] = content, work
                yield work.key, content
            else:
                self._refused.append(content)

    def _next(self) -> Work | None:
        with self._lock:
            work = next(self._works, None)
            self.exhausted = work is None
            return work

    def record(self, key: str, found: Record | str) -> Record:
        """The record of a work that has come back, or that will not, for a reason.

        Raises
        ------
        InputError
            When the reason may be that a file of the user's has changed: no instance is to blame.
        """
        if isinstance(found, str):
            sources_of(self.out[key].scenario, self.out[key].task.run)
        work = self.out.pop(key)
        del self._contents[key]
        return failed(work, found) if isinstance(found, str) else found

    def suspects(self) -> list[tuple[str, bytes]]:
        """What has been handed out and has not come back."""
        return [(key, self._contents[key]) for key in list(self.out)]

    def refused(self) -> Iterator[Record]:
        """Records of works that could not be handed out, each of them once."""
        while self._refused:
            yield self._refused.popleft()


def answer(key: str, content: bytes) -> tuple[str, Record | str]:
    """What a worker does with what `Supply` hands out: the arguments of `Supply.record`."""
    return key, compute_packed(content)


class _Stopped(Exception):
    pass


def stop(answers: Any) -> None:
    """End joblib's generator; closing it would warn of works that have not come back."""
    with contextlib.suppress(_Stopped):
        answers.throw(_Stopped)
