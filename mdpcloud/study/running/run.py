"""Running a study: what its store lacks is computed, record by record."""

from __future__ import annotations

import contextlib
import warnings
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING

from mdpcloud.errors import InputError
from mdpcloud.study.records.record import DONE, Record
from mdpcloud.study.records.store import Store
from mdpcloud.study.running.engines import Engine, engine_for
from mdpcloud.study.running.interrupts import terminable
from mdpcloud.study.running.resuming import Found, find
from mdpcloud.study.running.work import Work, work_of
from mdpcloud.study.study import Study

if TYPE_CHECKING:
    from mdpcloud.study.reports.results import Results

__all__ = ["Progress", "Say", "load", "run", "store_of"]

Progress = Callable[[int, int, int], object]
"""Called with the numbers of instances done, of all, and of those not done well."""
Say = Callable[[str], object]
"""Called with a line of text."""


def run(
    study: Study | str | PathLike[str],
    *,
    store: str | PathLike[str] | None = None,
    jobs: int | None = None,
    backend: str = "loky",
    scheduler: str | None = None,
    resume: bool = False,
    keep_old: bool = False,
    retry_failed: bool = False,
    time_limit: float | None = None,
    progress: Progress | None = None,
    say: Say | None = None,
) -> Results:
    """Compute the instances of a study that its store lacks.

    Each instance is computed once, on one thread of a process of its own, and its record stored as
    soon as it is there: the run may be stopped or killed at any time, and resumed. An instance that
    fails, does not converge, takes too long or kills its process has a record that says so.

    Parameters
    ----------
    study : Study or path
        A study, or its file.
    store : path, optional
        Folder of the records; by default that of the study's file, ``loads.results`` beside
        ``loads.toml``.
    jobs : int, optional
        Instances at the same time; by default as many as there are cores.
    backend : {"loky", "dask", "sequential"}
        Processes of this machine; those of a cluster; or this very process, for debugging: there a
        crash of an instance ends the run.
    scheduler : str, optional
        Address of dask's scheduler; by default a cluster on this machine.
    resume : bool
        Go on where there are records already.
    keep_old : bool
        Keep records made by other sources, instead of computing them again.
    retry_failed : bool
        Compute again what has failed or did not converge.
    time_limit : float, optional
        Seconds for each instance. Solvers stop by themselves, with bounds on what they look for;
        other code is stopped after half as long again and a second; where that is not possible, its
        process five seconds later.
    progress : function, optional
        Called with the numbers of instances done, of all, and of those that failed or did not
        converge: at the start and after each record.
    say : function, optional
        Called with a line of text about what was found in the store.

    Returns
    -------
    Results

    Raises
    ------
    InputError
        When an argument is wrong, or the store has records and ``resume`` is false.
    OSError
        When a record cannot be written; those written before are sound.
    KeyboardInterrupt
        When interrupted, or told to terminate (SIGTERM, SIGHUP); the processes have ended then.

    Examples
    --------
    >>> import tempfile
    >>> import mdpcloud as mc
    >>> node = mc.systems.Node(servers=2, service_rate=1.0, abandonment_rate=0.5)
    >>> loads = mc.study.Study.of(
    ...     ({"rate": rate}, mc.systems.CloudRouting((node,), rate, outside_cost=0.4))
    ...     for rate in (1.0, 2.0)
    ... )
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     results = mc.study.run(loads, store=folder, backend="sequential")
    >>> results.counts()["done"]
    2
    """
    engine = engine_for(backend, jobs, scheduler)
    _check_limit(time_limit)
    study = _read(study)
    place = Store(Path(store or store_of(study)))
    place.prepare()
    found = find(study, place, resume=resume, keep_old=keep_old, retry_failed=retry_failed)
    if say:
        for line in found.notes:
            say(line)
    running = _Run(study, place, found, time_limit)
    with terminable(), _quiet():
        running.go(engine, progress or (lambda *_: None))
    return _results(study, running.records)


def load(study: Study | str | PathLike[str], store: str | PathLike[str] | None = None) -> Results:
    """The results that a store holds of a study, without computing anything.

    Parameters
    ----------
    study : Study or path
    store : path, optional
        As for `run`.

    Raises
    ------
    InputError
        When there is no such store, or the study's file is not as it must be.
    """
    study = _read(study)
    return _results(study, Store(Path(store or store_of(study))).scan(study.unique).records)


def store_of(study: Study) -> Path:
    """The folder of a study's records where none is given: ``loads.results`` for ``loads.toml``.

    Raises
    ------
    InputError
        When the study has no file.
    """
    if not study.path.name:
        raise InputError(f"study {study.name!r} has no file, so its store must be given")
    return study.path.with_suffix(".results")


def _read(study: Study | str | PathLike[str]) -> Study:
    if isinstance(study, Study):
        return study
    from mdpcloud.study.file.reading import read_study

    return read_study(study)


def _check_limit(time_limit: float | None) -> None:
    known = isinstance(time_limit, int | float) and not isinstance(time_limit, bool)
    if time_limit is not None and not (known and 0 < time_limit < float("inf")):
        raise InputError(f"time_limit must be a finite number of seconds > 0, not {time_limit!r}")


def _results(study: Study, records: Mapping[str, Record]) -> Results:
    from mdpcloud.study.reports.results import Results

    return Results(study, records)


class _Run:
    """What a run has so far."""

    def __init__(self, study: Study, store: Store, found: Found, time_limit: float | None) -> None:
        self.study, self.store, self.found, self.time_limit = study, store, found, time_limit
        self.records = dict(found.kept)
        self.failed = sum(_has_failed(record) for record in self.records.values())
        self.elsewhere: deque[Record] = deque()
        """Records that another run on the same store has made meanwhile."""

    def go(self, engine: Engine, progress: Progress) -> None:
        """Compute what is missing."""
        progress(*self._count())
        with contextlib.closing(engine.records(self._works())) as records:
            for record in records:
                self.store.write(record)
                self._take(record, progress)
                while self.elsewhere:
                    self._take(self.elsewhere.popleft(), progress)
        while self.elsewhere:
            self._take(self.elsewhere.popleft(), progress)
        self._write_lost()
        self.store.flush()

    def _write_lost(self) -> None:
        """Write again what has been deleted meanwhile."""
        self.store.prepare()
        for key in self.records.keys() - set(self.store.keys()):
            self.store.write(self.records[key])

    def _take(self, record: Record, progress: Progress) -> None:
        self.records[record["key"]] = record
        self.failed += _has_failed(record)
        progress(*self._count())

    def _works(self) -> Iterator[Work]:
        """What is still missing when it is asked for."""
        for key, one in self.study.unique.items():
            if key in self.found.kept:
                continue
            record = self.store.read(key) if self.store.has(key) else None
            if record is not None and self.found.has_been_made(key, record):
                self.elsewhere.append(record)
            else:
                yield work_of(one, self.time_limit, self.found.sources[key])

    def _count(self) -> tuple[int, int, int]:
        return len(self.records), len(self.study.unique), self.failed


def _has_failed(record: Record) -> bool:
    return bool(record["status"] != DONE)


@contextlib.contextmanager
def _quiet() -> Iterator[None]:
    """Without loky's warning that it replaced a worker whose memory had grown."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "A worker stopped while some jobs", UserWarning)
        yield
