"""Engines of this machine: loky's processes, or this very process.

Each worker is a pool of its own, of joblib's loky, so that it is certain which work a dying worker
was computing: that one is tried once more at the end, when no other is being computed, since there
may have been too little memory for all of them. Workers end when the main process has gone: one
that has no parent any more looks for it twice a second.
"""

from __future__ import annotations

import contextlib
import itertools
import os
import re
import signal
import threading
import time
from collections.abc import Generator, Iterable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, ThreadPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass
from typing import Any

from mdpcloud.errors import MdpcloudError
from mdpcloud.study.records.record import NOT_CONVERGED, Record
from mdpcloud.study.running.interrupts import STOPPING, postponed
from mdpcloud.study.running.supply import ONE_THREAD, Supply, cores
from mdpcloud.study.running.time_limits import KILLED, last_moment
from mdpcloud.study.running.work import Work, compute, compute_packed, failed

__all__ = ["LokyEngine", "SequentialEngine"]

STARTS = 5  # of workers in a row that may die before they compute anything
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
        supply = Supply(itertools.chain(first, rest))
        with _workers_of_their_own(max(1, len(first))) as workers:  # no more than there are works
            again: dict[str, tuple[bytes, _Died]] = {}
            for key, content, found in _at_once(supply, workers):
                if isinstance(found, _Died) and not found.was_late(supply.out[key]):
                    again[key] = content, found
                else:
                    yield _record(supply, key, found)
                yield from supply.refused()
            yield from supply.refused()
            alone = [(key, content) for key, (content, _) in again.items()]
            for key, _, found in _at_once(alone, workers[:1]):
                yield _record(
                    supply, key, found, f"it killed its worker twice ({again[key][1].how})"
                )


def _record(supply: Supply, key: str, found: Record | str | _Died, why: str = "") -> Record:
    """The record of a work that will not be tried again."""
    if not isinstance(found, _Died):
        return supply.record(key, found)
    work = supply.out[key]
    if not found.was_late(work):
        return supply.record(key, why)
    late = f"had to be killed, since it went on after the time limit of {work.time_limit:g} s"
    return supply.record(key, failed(work, late, NOT_CONVERGED))


def _at_once(
    works: Iterable[tuple[str, bytes]], workers: Iterable[_OneWorker]
) -> Iterator[tuple[str, bytes, Record | str | _Died]]:
    """Keys, packed works and answers, as many works at a time as there are workers."""
    idle, left = list(workers), iter(works)
    busy: dict[Any, tuple[_OneWorker, str, bytes]] = {}
    answers: list[tuple[str, bytes, Record | str | _Died]] = []
    while True:
        while idle and (one := next(left, None)) is not None:
            worker = idle.pop()
            busy[worker.submit(one[1])] = worker, *one
        yield from answers  # the workers are busy while the caller writes these
        if not busy:
            return
        answers = []
        for future in wait(busy, return_when=FIRST_COMPLETED).done:
            worker, key, content = busy.pop(future)
            found = worker.answer(future)
            if found is None:
                busy[worker.submit(content)] = worker, key, content
            else:
                idle.append(worker)
                answers.append((key, content, found))


# --- workers of their own -------------------------------------------------------------------------


@dataclass(frozen=True)
class _Died:
    """What came of a work that ended its worker.

    Attributes
    ----------
    how : str
        The signal or exit code.
    seconds : float
        After which it did.
    """

    how: str
    seconds: float

    def was_late(self, work: Work) -> bool:
        """Whether the worker ended itself since the work did not end in time."""
        limit = work.time_limit
        killed = self.how == f"exit code {KILLED}"
        return killed and limit is not None and self.seconds >= last_moment(limit)


class _OneWorker:
    """A pool of one worker, which starts anew when it has died."""

    def __init__(self) -> None:
        self._pool: Any = None
        self._started: Any = None
        self._begin = 0.0
        self._dead = 0  # starts in a row that came to nothing

    def submit(self, content: bytes) -> Any:
        """The future answer of `compute_packed`, for `answer`."""
        self._begin = time.monotonic()
        if self._pool is not None:
            with contextlib.suppress(BrokenProcessPool):
                return self._pool.submit(compute_packed, content)
        with _deaf():
            self._pool = _pool_of_one()
            self._started = self._pool.submit(os.getpid)
            return self._pool.submit(compute_packed, content)

    def answer(self, future: Any) -> Record | str | _Died | None:
        """An answer of `compute_packed`, or how the worker died; None if it did so as it started.

        Raises
        ------
        MdpcloudError
            When it did so several times in a row.
        """
        try:
            found: Record | str = future.result()
        except BrokenProcessPool as error:
            how = _how_it_died(error)
            if self._started.exception() is None:
                self._dead = 0
                return _Died(how, time.monotonic() - self._begin)
            self._dead += 1
            if self._dead == STARTS:
                raise MdpcloudError(f"workers die as they start: {how}") from error
            return None
        except MemoryError:
            return "MemoryError: there was none left for what it returned"
        self._dead = 0
        return found

    def end(self) -> None:
        """End the worker, whatever it does."""
        if self._pool is not None:
            self._pool.shutdown(wait=True, kill_workers=True)


@contextlib.contextmanager
def _workers_of_their_own(count: int) -> Iterator[Sequence[_OneWorker]]:
    """Workers that start when there is something to do; all end at the same time."""
    workers = [_OneWorker() for _ in range(count)]
    try:
        yield workers
    finally:
        with _unheard_managers(), ThreadPoolExecutor(count) as threads:
            list(threads.map(_OneWorker.end, workers))


@contextlib.contextmanager
def _unheard_managers() -> Iterator[None]:
    """Without what loky's threads say when their pool ends while they hand out its first work."""
    before = threading.excepthook

    def hook(args: threading.ExceptHookArgs) -> None:
        if args.thread is None or not args.thread.name.startswith("ExecutorManager"):
            before(args)

    threading.excepthook = hook
    try:
        yield
    finally:
        threading.excepthook = before


def _pool_of_one() -> Any:
    from joblib.externals.loky import ProcessPoolExecutor

    return ProcessPoolExecutor(1, timeout=None, env=ONE_THREAD, **_workers())


def _how_it_died(error: Exception) -> str:
    """Signal or exit code of a worker, as loky tells it."""
    codes = re.findall(r"[A-Z]+\((-?\d+)\)", str(error))
    if not codes:
        return str(error).partition("\n")[0].partition(". ")[0]
    code = int(codes[0])
    return f"signal {-code}" if code < 0 else f"exit code {code}"


# --- workers --------------------------------------------------------------------------------------


def _workers() -> dict[str, Any]:
    """How workers start."""
    return {"initializer": _start, "initargs": (os.getpid(),)}


@contextlib.contextmanager
def _deaf() -> Iterator[None]:
    """Start processes that no signal to all of them interrupts, not even while they import modules.

    They inherit what is blocked. Other threads still take signals, whose handlers Python calls in
    the main one: these wait until this has ended. Loky's tracker unblocks signals as it starts.
    """
    from joblib.externals.loky.backend import resource_tracker

    resource_tracker.ensure_running()
    if not hasattr(signal, "pthread_sigmask"):
        yield
        return
    with postponed():
        before = signal.pthread_sigmask(signal.SIG_BLOCK, STOPPING)
        try:
            yield
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _start(main: int) -> None:
    """Leave what stops the run to the main process, and end when that has gone."""
    for one in STOPPING:
        signal.signal(one, _leave)
    if hasattr(signal, "pthread_sigmask"):  # what the user's code starts can be stopped
        signal.pthread_sigmask(signal.SIG_UNBLOCK, STOPPING)
    threading.Thread(target=_follow, args=(main,), daemon=True).start()


def _leave(*_: object) -> None:
    """Do nothing; unlike SIG_IGN, processes that are started here do not inherit it."""


def _follow(main: int) -> None:
    while os.getppid() == main:
        time.sleep(PAUSE)
    os._exit(1)
