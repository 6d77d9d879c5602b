"""The engine of more than one machine: dask's workers through joblib's backend.

Dask gives a work to another worker where one has died, and gives up one that has cost it several
workers; those are submitted again one by one, where it is certain which of them was to blame. What
the scheduler knew is lost with it: the error says so, and the records of the store remain.
"""

from __future__ import annotations

import contextlib
import itertools
import logging
import time
from collections.abc import Generator, Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from mdpcloud.errors import InputError, MdpcloudError
from mdpcloud.study.records.record import Record
from mdpcloud.study.running.dask_cluster import (
    HEALTH,
    SILENCE,
    check_workers,
    connect,
    find_scheduler,
    own_cluster,
)
from mdpcloud.study.running.supply import TRIES, Supply, answer, cores, stop
from mdpcloud.study.running.work import Work, compute_packed

if TYPE_CHECKING:
    from distributed import Client

__all__ = ["DaskEngine"]

AHEAD = 16  # works handed out for each worker of this machine: dask takes its time to answer
PAUSE = 0.05  # seconds
MANY = 500  # works handed out to a cluster, whose workers may come later


@dataclass(frozen=True)
class DaskEngine:
    """Computes on the workers of a cluster, or of one that it starts on this machine.

    Parameters
    ----------
    jobs : int, optional
        Workers started on this machine, by default as many as there are cores; with a scheduler,
        works handed out at the same time.
    scheduler : str, optional
        Address such as ``tcp://127.0.0.1:8786``.

    Raises
    ------
    InputError
        If dask is not installed, or the address is of no scheduler.
    """

    jobs: int | None = None
    scheduler: str | None = None

    def __post_init__(self) -> None:
        try:
            import distributed  # noqa: F401
        except ImportError as error:
            raise InputError(
                f"the backend 'dask' needs dask: pip install mdpcloud[dask] ({error})"
            ) from None
        if self.scheduler is not None:
            find_scheduler(self.scheduler)

    def records(self, works: Iterable[Work]) -> Generator[Record, None, None]:
        """See `mdpcloud.study.running.engines.Engine`.

        Raises
        ------
        InputError
            If a worker cannot do what this process can.
        MdpcloudError
            If the scheduler has gone.
        """
        supply = Supply(works)
        handed_out = iter(supply)
        first = next(handed_out, None)
        yield from supply.refused()
        if first is not None:
            with _silence(), self._client() as client, _told_if_lost(client):
                if self.scheduler is not None:
                    check_workers(client, first[1])
                yield from self._together(supply, itertools.chain([first], handed_out), client)
                yield from _alone(supply, client)

    @contextlib.contextmanager
    def _client(self) -> Iterator[Client]:
        """A client of the cluster, closed at the end; the cluster too where it is our own."""
        with contextlib.ExitStack() as stack:
            client = connect(self.scheduler or stack.enter_context(own_cluster(self._workers())))
            stack.callback(client.close, timeout=SILENCE)
            yield client

    def _workers(self) -> int:
        return self.jobs or cores()

    def _together(
        self, supply: Supply, works: Iterable[tuple[str, bytes]], client: Client
    ) -> Iterator[Record]:
        """Records of all works but those that cost their workers."""
        from joblib import Parallel, delayed, parallel_config

        ahead = AHEAD * self._workers() if self.scheduler is None else self.jobs or MANY
        with parallel_config(_backend(client)):
            parallel = Parallel(
                -1, return_as="generator_unordered", batch_size=1, pre_dispatch=ahead
            )
        answers = parallel(delayed(answer)(*one) for one in works)
        try:
            for found in answers:
                if isinstance(found, BaseException):
                    _deaths(found)
                else:
                    yield supply.record(*found)
                yield from supply.refused()
        finally:
            stop(answers)


def _alone(supply: Supply, client: Client) -> Iterator[Record]:
    """Records of works one by one, so that it is certain which of them costs its worker."""
    for key, content in supply.suspects():
        yield supply.record(key, _answer_alone(content, supply.out[key].time_limit, client))


def _answer_alone(content: bytes, time_limit: float | None, client: Client) -> Record | str:
    """The answer of `compute_packed`, or how a work killed its workers."""
    deaths = 0
    while deaths < TRIES:
        try:
            found: Record | str = client.submit(compute_packed, content, pure=False).result()
        except Exception as error:
            deaths += _deaths(error)
        else:
            return found
    late = "" if time_limit is None else f", or went on after the time limit of {time_limit:g} s"
    return f"it killed its worker {deaths} times{late}"


def _deaths(error: BaseException) -> int:
    """How many workers a work has cost; an error that came otherwise is raised."""
    from distributed import KilledWorker

    if isinstance(error, KilledWorker):
        return int(error.allowed_failures) + 1
    if isinstance(error, _losses()):
        raise error
    raise InputError(f"a worker cannot compute ({error!r}); {HEALTH}") from error


# --- a lost scheduler -----------------------------------------------------------------------------


def _losses() -> tuple[type[BaseException], ...]:
    from concurrent.futures import CancelledError

    from distributed.client import ClosedClientError

    return CancelledError, ClosedClientError, OSError


@contextlib.contextmanager
def _told_if_lost(client: Client) -> Iterator[None]:
    """One error for all that happens when the scheduler has gone."""
    try:
        yield
    except _losses() as error:
        _give_up(client)
        raise MdpcloudError(
            f"dask's scheduler has gone ({type(error).__name__}); the records so far are kept, and "
            "the study can be resumed"
        ) from error


def _give_up(client: Client) -> None:
    """Wait until a client no longer looks for its scheduler."""
    for _ in range(round(2 * SILENCE / PAUSE)):
        if client.status != "connecting":
            break
        time.sleep(PAUSE)


# --- what joblib and dask leave to do ------------------------------------------------------------


@contextlib.contextmanager
def _silence() -> Iterator[None]:
    """Without dask's own reports of workers and schedulers that have gone."""
    logger = logging.getLogger("distributed")
    before = logger.level
    logger.setLevel(logging.CRITICAL)
    try:
        yield
    finally:
        logger.setLevel(before)


def _backend(client: Client) -> Any:
    """Joblib's backend, with three things mended."""
    from joblib._dask import DaskDistributedBackend

    class Backend(DaskDistributedBackend):  # type: ignore[misc, unused-ignore]
        def effective_n_jobs(self, n_jobs: int) -> int:
            """At least two: joblib computes in this process where there is one worker."""
            there: int = super().effective_n_jobs(n_jobs)
            return max(2, there)

        def submit(self, func: Any, callback: Any = None) -> Any:
            """Tell of a work that was given up too: joblib would wait for it forever."""
            future = super().submit(func, callback)
            future.add_done_callback(lambda done: done.exception() and callback(done.exception()))
            return future

        def retrieve_result_callback(self, out: Any) -> Any:
            """Give the error of one work as its result: the others go on."""
            if isinstance(out, BaseException):
                return [out]
            return super().retrieve_result_callback(out)

    return Backend(client=client)
