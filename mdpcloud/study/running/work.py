"""Computing one instance: whatever happens, the answer is a record.

A `Work` is what another process needs for one instance. It travels as bytes (`packed`,
`compute_packed`), so that a rule that cannot be pickled, or not be found where it is unpickled,
costs its own instance only and not the pool of processes.
"""

from __future__ import annotations

import contextlib
import datetime
import json
import os
import platform
import re
import sys
import time
import traceback
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import mdpcloud
from mdpcloud.errors import SolveError
from mdpcloud.neighbours import loaded_with
from mdpcloud.plugins import mistake_in_plugin
from mdpcloud.study.records.identity import canonical, classes_of, package_hash, sources_of
from mdpcloud.study.records.own_files import modules_that_give
from mdpcloud.study.records.record import (
    DONE,
    FAILED,
    NOT_CONVERGED,
    Record,
    make_record,
    plain,
    sayable,
)
from mdpcloud.study.running.time_limits import (
    TimeUp,
    killed_after,
    stopped_after,
    within,
)

if TYPE_CHECKING:
    from mdpcloud.scenario import Scenario
    from mdpcloud.study.study import Instance
    from mdpcloud.study.tasks import Task

__all__ = ["Work", "compute", "compute_packed", "failed", "packed", "work_of"]

LONGEST = 2000  # characters of an error
CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f]")  # what terminals obey, but for tab and newline
FILES = re.compile(r"mdpcloud\.plugins\.file_\w+\.")  # what classes of the user's files are below


@dataclass(frozen=True, eq=False)
class Work:
    """An instance to be computed.

    Attributes
    ----------
    key : str
    content : mapping
        What decides the result, as JSON gives it back.
    sources : mapping
        What will compute it, as far as this process knows.
    scenario : Scenario
        Its solves take one thread.
    task : Task
    time_limit : float or None
        Seconds.
    """

    key: str
    content: Mapping[str, Any]
    sources: Mapping[str, Any]
    scenario: Scenario
    task: Task
    time_limit: float | None = None


def work_of(
    instance: Instance, time_limit: float | None = None, sources: Mapping[str, Any] | None = None
) -> Work:
    """The work that an instance makes."""
    return Work(
        instance.key,
        json.loads(canonical(instance.content)),
        sources or sources_of(instance.scenario, instance.task.run),
        within(instance.scenario, time_limit),
        instance.task,
        time_limit,
    )


def compute(work: Work) -> Record:
    """The record of a work; nothing is raised but KeyboardInterrupt."""
    clock, sources = _Clock(), _sources(work)  # before anybody can edit them
    status, error, result = _outcome(work)
    return make_record(work.content, sources, status, result=result, error=error, run=clock.run())


def _outcome(work: Work) -> tuple[str, str | None, Mapping[str, Any] | None]:
    """Status, error and result."""
    try:
        with stopped_after(work.time_limit):
            return DONE, None, _result(work)
    except SolveError as error:
        return NOT_CONVERGED, _told(str(error)), _rows(error.partial)
    except TimeUp as error:
        return NOT_CONVERGED, str(error), None
    except (Exception, SystemExit) as error:
        return FAILED, in_words(error), None


def _result(work: Work) -> Mapping[str, Any]:
    found = work.task.run(work.scenario)
    if not isinstance(found, Mapping) or not isinstance(found.get("rows"), list | tuple):
        raise TypeError(f"task {work.task.name!r} must return a mapping with 'rows', a list")
    if not all(isinstance(row, Mapping) for row in found["rows"]):
        raise TypeError(f"the rows of task {work.task.name!r} must be mappings")
    return dict(plain(found, "result"))


def _rows(partial: Any) -> Mapping[str, Any] | None:
    """The rows that an error carries, None where it has none or they cannot be stored."""
    with contextlib.suppress(ValueError):
        if isinstance(partial, Mapping) and partial.get("rows"):
            return dict(plain(partial, "result"))
    return None


def in_words(error: BaseException) -> str:
    """Kind, message and place of an error."""
    text = mistake_in_plugin(error) or "".join(traceback.format_exception_only(error)).strip()
    return _told(FILES.sub("", text))


def _told(text: str) -> str:
    """A text as the error of a record: not too long, and as any file and terminal can hold it."""
    if len(text) > LONGEST:
        text = f"{text[:LONGEST]} ... ({len(text)} characters)"
    return sayable(CONTROL.sub(lambda found: repr(found[0])[1:-1], text))


def _sources(work: Work) -> dict[str, Any]:
    """What computed it: the package of this process, which another machine may have another of."""
    return {**work.sources, "mdpcloud": mdpcloud.__version__, "package": package_hash()}


# --- travelling -----------------------------------------------------------------------------------


def packed(work: Work) -> bytes | Record:
    """A work for `compute_packed`, or its failed record if it cannot be pickled."""
    from joblib.externals.loky.cloudpickle_wrapper import dumps

    try:
        files = _files(work)
        content: bytes = dumps((files, _neighbours(files), work))
    except Exception as error:
        return failed(work, f"it cannot be sent to another process: {in_words(error)}")
    return content


def _files(work: Work) -> list[Any]:
    """Modules that give what they import from neighbours, which is found where those are loaded."""
    policies = (work.scenario.compare.policies or {}).values()
    rules = [one for one in policies if not isinstance(one, str)]
    what = [*classes_of(work.scenario.system), *rules, work.task.run]
    return [sys.modules[name] for name in modules_that_give(what)]


def _neighbours(files: list[Any]) -> list[dict[str, str]]:
    """What the files were loaded with: workers that live on may have loaded them before an edit."""
    return [loaded_with(Path(str(one.__file__))) for one in files]


def compute_packed(content: bytes) -> Record | str:
    """The record of a work from `packed`, or why it cannot be computed here; never raises.

    A work that does not end in time ends this process.
    """
    from joblib.externals.loky.cloudpickle_wrapper import loads

    try:
        files, neighbours, work = loads(content)
        if neighbours != _neighbours(files):
            return "its worker has loaded other versions of the user's files; start it again"
        with killed_after(work.time_limit):
            return compute(work)
    except BaseException as error:  # raised by the user's code: signals are not for workers
        return in_words(error)


def failed(work: Work, error: str, status: str = FAILED) -> Record:
    """The record of a work that could not be computed."""
    return make_record(work.content, work.sources, status, error=error, run=_Clock().run())


class _Clock:
    """Where and when a record was made, and what it took."""

    def __init__(self) -> None:
        self.started = datetime.datetime.now(datetime.UTC)
        self.cpu = time.process_time()

    def run(self) -> dict[str, Any]:
        from mdpcloud.compare.run import describe_run  # not needed to resume what is done

        return {
            "host": platform.node(),
            "pid": os.getpid(),
            "cpu": time.process_time() - self.cpu,
            **describe_run(self.started),
        }
