"""Engines: what computes the works of a study, and on which machines.

An engine turns works into records. It knows neither the study nor the store: it takes a work when
it has a place for it, and gives a record back for every work, whatever happens to its processes.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Mapping
from typing import Protocol

from mdpcloud.errors import InputError
from mdpcloud.plugins import did_you_mean
from mdpcloud.study.records.record import Record
from mdpcloud.study.running.work import Work

__all__ = ["ENGINES", "Engine", "engine_for"]


class Engine(Protocol):
    """Computes works."""

    def records(self, works: Iterable[Work]) -> Generator[Record, None, None]:
        """Records of works, in any order, exactly one for each.

        The works are taken lazily, a few at a time, perhaps by another thread: the iterable may
        leave out what has become superfluous meanwhile. It never raises.

        A lost process is replaced, and what it computed is computed again; a work that costs a
        process twice has a failed record (`mdpcloud.study.running.work.failed`). What cannot be
        sent to another process has one too (`mdpcloud.study.running.work.packed`).

        Closing the generator early, as an exception in the caller's loop does, ends the processes.

        Raises
        ------
        InputError
            When a worker of a cluster cannot do what this process can, or a file of the user's own
            has changed meanwhile.
        MdpcloudError
            When no worker can start, or the scheduler of a cluster has gone.
        KeyboardInterrupt
            When interrupted; the processes have ended then.
        """
        ...


def engine_for(backend: str, jobs: int | None, scheduler: str | None) -> Engine:
    """The engine of a name.

    Parameters
    ----------
    backend : {"loky", "dask", "sequential"}
        Processes on this machine; a cluster's; or this very process, for debugging.
    jobs : int, optional
        Instances at the same time; by default as many as there are cores.
    scheduler : str, optional
        Address of dask's scheduler.

    Raises
    ------
    InputError
        If there is no such backend, or jobs or scheduler do not fit it.
    """
    if backend not in ENGINES:
        near = did_you_mean(backend, ENGINES) or f"; there are {', '.join(ENGINES)}"
        raise InputError(f"there is no backend {backend!r}{near}")
    if jobs is not None and (type(jobs) is not int or jobs < 1):
        raise InputError(f"jobs must be an integer >= 1, not {jobs!r}")
    if scheduler is not None and backend != "dask":
        raise InputError(f"a scheduler is for the backend 'dask', not {backend!r}")
    return ENGINES[backend](jobs, scheduler)


def _loky(jobs: int | None, _: str | None) -> Engine:
    from mdpcloud.study.running.local_engine import LokyEngine

    return LokyEngine(jobs)


def _dask(jobs: int | None, scheduler: str | None) -> Engine:
    from mdpcloud.study.running.dask_engine import DaskEngine

    return DaskEngine(jobs, scheduler)


def _sequential(jobs: int | None, _: str | None) -> Engine:
    from mdpcloud.study.running.local_engine import SequentialEngine

    if jobs not in (None, 1):
        raise InputError(f"the backend 'sequential' computes one instance at a time, not {jobs}")
    return SequentialEngine()


ENGINES: Mapping[str, Callable[[int | None, str | None], Engine]] = {
    "loky": _loky,
    "dask": _dask,
    "sequential": _sequential,
}
