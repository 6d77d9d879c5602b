"""Engines of this machine: loky's processes through joblib, or this very process.

A worker that dies breaks joblib's whole pool, and nobody can tell which of its works was to blame.
What had been handed out and not returned is therefore computed again in pools of one worker each,
where it is certain; then the shared pool goes on with the rest. Workers end when the main process
has gone: one that has no parent any more looks for it twice a second.
"""

from __future__ import annotations

import contextlib
import itertools
import os
import re
import signal
import threading
import time
from collections.abc import Generator, Iterable, Iterator
from concurrent.futures import FIRST_COMPLETED, wait
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass
from typing import Any, Self

from mdpcloud.errors import MdpcloudError
from mdpcloud.study.records.record import Record
from mdpcloud.study.running.supply import AHEAD, ONE_THREAD, Supply, answer, cores, stop
from mdpcloud.study.running.work import Work, compute, compute_packed

__all__ = ["LokyEngine", "SequentialEngine"]

LOST = (BrokenProcessPool, MemoryError)  # what tells of works that did not come back
PAUSE = 0.5  # seconds between two looks whether the main process is there


class SequentialEngine:
    """Computes in this process, one work after the other: for debugging."""

    def records(self, works: Iterable[Work]) -> Generator[Record, None, None]:
        """See `mdpcloud.study.running.engines.Engine`; what crashes, crashes the caller."""
        yield from map(compute, works)


@dataclass(frozen=True)
class LokyEngine:
    """Computes in processes of this machine.

    Parameters
    ----------
    jobs : int, optional
        Processes; by default as many as there are cores, and no more than there are works.
    """

    jobs: int | None = None

    def records(self, works: Iterable[Work]) -> Generator[Record, None, None]:
        """See `mdpcloud.study.running.engines.Engine`."""
        rest = iter(works)
        first = list(itertools.islice(rest, self.jobs or cores()))
        jobs = len(first)  # no more processes than works
        supply = Supply(itertools.chain(first, rest))
        while supply.out or not supply.exhausted:
            if jobs < 2:
                yield from _alone(supply, supply, 1)
            else:
                with contextlib.suppress(*LOST):
                    yield from _together(supply, jobs)
            if suspects := supply.suspects():
                yield from _alone(suspects, supply, min(jobs, len(suspects)))
            yield from supply.refused()


# --- many workers ---------------------------------------------------------------------------------


def _together(supply: Supply, jobs: int) -> Iterator[Record]:
    """Records from joblib's shared pool."""
    from joblib import Parallel, delayed, parallel_config

    with parallel_config("loky", **_workers(), inner_max_num_threads=1):
        parallel = Parallel(
            jobs, return_as="generator_unordered", batch_size=1, pre_dispatch=AHEAD * jobs
        )
    answers = None
    try:
        with _deaf():
            answers = parallel(delayed(answer)(*one) for one in supply)
        for found in answers:
            yield supply.record(*found)
            yield from supply.refused()
    finally:
        _end(answers)


def _end(answers: Any) -> None:
    """End the workers, whatever they do."""
    from joblib.externals.loky import get_reusable_executor

    if answers is not None:
        stop(answers)
    get_reusable_executor(reuse=True).shutdown(wait=True, kill_workers=True)


# --- workers of their own -------------------------------------------------------------------------


def _alone(works: Iterable[tuple[str, bytes]], supply: Supply, places: int) -> Iterator[Record]:
    """Records of works in workers of their own, so that it is certain who ends one.

    A work whose worker dies is tried once more when no other is being computed: there may have been
    too little memory for all of them.
    """
    again: list[tuple[str, bytes, str]] = []
    with contextlib.ExitStack() as stack:
        workers = [stack.enter_context(_OneWorker()) for _ in range(places)]
        for key, content, found in _at_once(works, workers):
            if isinstance(found, _Died):
                again.append((key, content, found.how))
            else:
                yield supply.record(key, found)
            yield from supply.refused()
        for key, content, how in again:
            found = workers[0].answer(workers[0].submit(content))
            twice = f"it killed its worker twice ({how})"
            yield supply.record(key, twice if isinstance(found, _Died) else found)


def _at_once(
    works: Iterable[tuple[str, bytes]], workers: Iterable[_OneWorker]
) -> Iterator[tuple[str, bytes, Record | str | _Died]]:
    """Keys, packed works and answers, as many works at a time as there are workers."""
    idle, left = list(workers), iter(works)
    busy: dict[Any, tuple[_OneWorker, str, bytes]] = {}
    while True:
        while idle and (one := next(left, None)) is not None:
            worker = idle.pop()
            busy[worker.submit(one[1])] = worker, *one
        if not busy:
            return
        for future in wait(busy, return_when=FIRST_COMPLETED).done:
            worker, key, content = busy.pop(future)
            idle.append(worker)
            yield key, content, worker.answer(future)


@dataclass(frozen=True)
class _Died:
    """What came of a work that ended its worker.

    Attributes
    ----------
    how : str
        The signal or exit code.
    """

    how: str


class _OneWorker:
    """A pool of one worker, which starts anew when it has died."""

    def __init__(self) -> None:
        self._pool: Any = None
        self._started: Any = None

    def submit(self, content: bytes) -> Any:
        """The future answer of `compute_packed`, for `answer`."""
        if self._pool is not None:
            with contextlib.suppress(BrokenProcessPool):
                return self._pool.submit(compute_packed, content)
        with _deaf():
            self._pool = _pool_of_one()
            self._started = self._pool.submit(os.getpid)
            return self._pool.submit(compute_packed, content)

    def answer(self, future: Any) -> Record | str | _Died:
        """An answer of `compute_packed`, or how the worker died.

        Raises
        ------
        MdpcloudError
            When it died before it began.
        """
        try:
            found: Record | str = future.result()
        except BrokenProcessPool as error:
            how = _how_it_died(error)
            if self._started.exception() is not None:
                raise MdpcloudError(f"a worker died as it started: {how}") from error
            return _Died(how)
        except MemoryError:
            return "MemoryError: there was none left for what it returned"
        return found

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


def _workers() -> dict[str, Any]:
    """How workers start."""
    return {"initializer": _start, "initargs": (os.getpid(),)}


@contextlib.contextmanager
def _deaf() -> Iterator[None]:
    """Start processes that a terminal does not interrupt, not even while they import modules.

    They inherit what is blocked; the interrupt comes here when this has ended.
    """
    if not hasattr(signal, "pthread_sigmask"):
        yield
        return
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _start(main: int) -> None:
    """Leave interrupts to the main process, and end when that has gone."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_follow, args=(main,), daemon=True).start()


def _follow(main: int) -> None:
    while os.getppid() == main:
        time.sleep(PAUSE)
    os._exit(1)
