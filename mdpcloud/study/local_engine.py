"""Engines of this machine: loky's processes through joblib, or this very process.

A worker that dies breaks joblib's whole pool, and nobody can tell which of its works was to blame.
What had been handed out and not returned is therefore computed again in pools of one worker each,
where it is certain; then the shared pool goes on with the rest.
"""

from __future__ import annotations

import contextlib
import os
import re
import signal
import threading
import time
from collections import deque
from collections.abc import Generator, Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Self

from mdpcloud.study.record import Record
from mdpcloud.study.work import Work, compute, compute_packed, failed, packed

__all__ = ["LokyEngine", "SequentialEngine", "cores"]

AHEAD = 2  # works handed out for each worker, the one that it computes included
TRIES = 2  # deaths of its own worker that an instance has
PAUSE = 0.5  # seconds between two looks whether the main process is there
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


def cores() -> int:
    """Cores that this process may use."""
    from joblib import cpu_count

    found: int = cpu_count(only_physical_cores=False)
    return found


class SequentialEngine:
    """Computes in this process, one work after the other: for debugging."""

    def records(self, works: Iterable[Work]) -> Generator[Record, None, None]:
        """See `mdpcloud.study.engines.Engine`; a crash of an instance is one of the caller."""
        yield from map(compute, works)


@dataclass(frozen=True)
class LokyEngine:
    """Computes in processes of this machine.

    Parameters
    ----------
    jobs : int, optional
        Processes; by default as many as there are cores.
    """

    jobs: int | None = None

    def records(self, works: Iterable[Work]) -> Generator[Record, None, None]:
        """See `mdpcloud.study.engines.Engine`."""
        jobs = self.jobs or cores()
        supply = _Supply(works)
        while supply.out or not supply.exhausted:
            if jobs == 1:
                yield from _alone(supply, supply)
            else:
                with contextlib.suppress(_broken()):
                    yield from _together(supply, jobs)
            yield from _alone(supply.suspects(), supply)
            yield from supply.refused()


class _Supply:
    """Works as they are handed out: keys and packed works, and what has not come back yet."""

    def __init__(self, works: Iterable[Work]) -> None:
        self.works = iter(works)
        self.out: dict[str, tuple[Work, bytes]] = {}
        self.exhausted = False
        self._refused: deque[Record] = deque()
        self._lock = threading.Lock()  # joblib's threads take works too

    def __iter__(self) -> Iterator[tuple[str, bytes]]:
        while (work := self._next()) is not None:
            content = packed(work)
            if isinstance(content, bytes):
                self.out[work.key] = work, content
                yield work.key, content
            else:
                self._refused.append(content)

    def _next(self) -> Work | None:
        with self._lock:
            work = next(self.works, None)
            self.exhausted = work is None
            return work

    def record(self, key: str, found: Record | str) -> Record:
        """The record of a work that has come back."""
        work, _ = self.out.pop(key)
        return failed(work, found) if isinstance(found, str) else found

    def suspects(self) -> list[tuple[str, bytes]]:
        """What has been handed out and has not come back."""
        return [(key, content) for key, (_, content) in self.out.items()]

    def refused(self) -> Iterator[Record]:
        """Records of works that could not be handed out."""
        while self._refused:
            yield self._refused.popleft()


# --- many workers ---------------------------------------------------------------------------------


def _together(supply: _Supply, jobs: int) -> Iterator[Record]:
    """Records from joblib's shared pool."""
    from joblib import Parallel, delayed, parallel_config

    with parallel_config("loky", **_workers(), inner_max_num_threads=1):
        parallel = Parallel(
            jobs, return_as="generator_unordered", batch_size=1, pre_dispatch=AHEAD * jobs
        )
    answers = parallel(delayed(_answer)(*one) for one in supply)
    try:
        for answer in answers:
            yield supply.record(*answer)
            yield from supply.refused()
    finally:
        _end(answers)


def _answer(key: str, content: bytes) -> tuple[str, Record | str]:
    return key, compute_packed(content)


class _Stopped(Exception):
    """Thrown into joblib's generator: closing it would warn of works that were not returned."""


def _end(answers: Any) -> None:
    """End the workers, whatever they do."""
    from joblib.externals.loky import get_reusable_executor

    with contextlib.suppress(_Stopped):
        answers.throw(_Stopped)
    get_reusable_executor(reuse=True).shutdown(wait=True, kill_workers=True)


# --- one worker -----------------------------------------------------------------------------------


def _alone(works: Iterable[tuple[str, bytes]], supply: _Supply) -> Iterator[Record]:
    """Records of works one after the other in one worker, so that it is certain who ends it."""
    with _OneWorker() as worker:
        for key, content in works:
            yield supply.record(key, worker.answer(content))
            yield from supply.refused()


class _OneWorker:
    """A pool of one worker, which starts anew when it has died."""

    def __init__(self) -> None:
        self._pool: Any = None

    def answer(self, content: bytes) -> Record | str:
        """Answer of `compute_packed`, or how the worker died of it twice."""
        for _ in range(TRIES):
            self._pool = self._pool or _pool_of_one()
            try:
                found: Record | str = self._pool.submit(compute_packed, content).result()
                return found
            except _broken() as error:
                self._pool, how = None, _how_it_died(error)
        return f"it killed its worker twice ({how})"

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self._pool is not None:
            self._pool.shutdown(wait=True, kill_workers=True)


def _pool_of_one() -> Any:
    from joblib.externals.loky import ProcessPoolExecutor

    return ProcessPoolExecutor(1, timeout=None, env=ONE_THREAD, **_workers())


def _how_it_died(error: Exception) -> str:
    """Signal or exit code of a worker, as loky tells it."""
    codes = re.findall(r"[A-Z]+\((-?\d+)\)", str(error))
    if not codes:
        return str(error).partition("\n")[0]
    code = int(codes[0])
    return f"signal {-code}" if code < 0 else f"exit code {code}"


# --- workers --------------------------------------------------------------------------------------


def _broken() -> type[Exception]:
    from concurrent.futures.process import BrokenProcessPool

    return BrokenProcessPool


def _workers() -> dict[str, Any]:
    """How workers start."""
    return {"initializer": _start, "initargs": (os.getpid(),)}


def _start(main: int) -> None:
    """Leave signals of the terminal to the main process, and end when that has gone."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_follow, args=(main,), daemon=True).start()


def _follow(main: int) -> None:
    while os.getppid() == main:
        time.sleep(PAUSE)
    os._exit(1)
