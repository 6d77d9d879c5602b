"""Records for tests of what keeps them, and processes of their own that work on a store."""

import multiprocessing
from collections.abc import Callable
from dataclasses import dataclass
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

from mdpcloud.study.records.record import DONE, make_record
from mdpcloud.study.records.store import Store

__all__ = ["Running", "record", "start"]


def record(i: int, *, size: int = 0, **parts: Any) -> dict[str, Any]:
    """A record of content i, longer by size."""
    rows = [{"policy": "optimum", "cost": i / 7, "note": "x" * size}]
    return make_record({"i": i}, {}, DONE, result={"rows": rows}, **parts)


@dataclass
class Running:
    """A process that has begun; once it has ended, ``result`` is what it returned."""

    process: Any
    answers: Connection

    def kill(self) -> None:
        """End it without warning (SIGKILL)."""
        self.process.kill()
        self.process.join()

    @property
    def result(self) -> Any:
        """What it has found, when it has ended well."""
        found = self.answers.recv()
        self.process.join()
        assert self.process.exitcode == 0
        return found


def start(work: Callable[..., Any], store: Store, *arguments: Any) -> Running:
    """Let another process work on a store; it has imported all it needs and begins now."""
    context: Any = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["pytest", "mdpcloud.study.records.store", __name__])
    answers, there = context.Pipe(duplex=False)
    process = context.Process(target=_run, args=(there, work, store.folder, arguments))
    process.start()
    there.close()
    assert answers.recv() == "ready"
    return Running(process, answers)


def _run(answers: Connection, work: Callable[..., Any], folder: Path, arguments: Any) -> None:
    answers.send("ready")
    answers.send(work(Store(folder), *arguments))
