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
from collections.abc import Generator, Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Self

from mdpcloud.errors import MdpcloudError
from mdpcloud.study.record import Record
from mdpcloud.study.supply import AHEAD, ONE_THREAD, TRIES, Supply, answer, cores, stop
from mdpcloud.study.work import Work, compute, compute_packed

__all__ = ["LokyEngine", "SequentialEngine"]

PAUSE = 0.5  # seconds between two looks whether the main process is there


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
        supply = Supply(works)
        while supply.out or not supply.exhausted:
            if jobs == 1:
                yield from _alone(supply, supply)
            else:
                with contextlib.suppress(_broken()):
                    yield from _together(supply, jobs)
            yield from _alone(supply.suspects(), supply)
            yield from supply.refused()


# --- many workers ---------------------------------------------------------------------------------


def _together(supply: Supply, jobs: int) -> Iterator[Record]:
    """Records from joblib's shared pool."""
    from joblib import Parallel, delayed, parallel_config

    with parallel_config("loky", **_workers(), inner_max_num_threads=1):
        parallel = Parallel(
            jobs, return_as="generator_unordered", batch_size=1, pre_dispatch=AHEAD * jobs
        )
    answers = parallel(delayed(answer)(*one) for one in supply)
    try:
        for found in answers:
            yield supply.record(*found)
            yield from supply.refused()
    finally:
        _end(answers)


def _end(answers: Any) -> None:
    """End the workers, whatever they do."""
    from joblib.externals.loky import get_reusable_executor

    stop(answers)
    get_reusable_executor(reuse=True).shutdown(wait=True, kill_workers=True)


# --- one worker -----------------------------------------------------------------------------------


def _alone(works: Iterable[tuple[str, bytes]], supply: Supply) -> Iterator[Record]:
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
    """A pool whose worker is there, so that what ends it from now on is its work."""
    from joblib.externals.loky import ProcessPoolExecutor

    pool = ProcessPoolExecutor(1, timeout=None, env=ONE_THREAD, **_workers())
    try:
        pool.submit(os.getpid).result()
    except _broken() as error:
        raise MdpcloudError(f"a worker died as it started: {_how_it_died(error)}") from error
    return pool


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
