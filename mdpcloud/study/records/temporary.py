"""Files that are there as a whole or as they were, whatever happens while they are written.

A file is written to a temporary one beside it, which is flushed to the disk and renamed. The name
of the temporary file, ``.NAME.HOST.PID-BIRTH.RANDOM.tmp``, tells which process writes it, so that
what dead processes left can be told from what others write now.
"""

from __future__ import annotations

import os
import re
import secrets
import socket
import time
from collections.abc import Iterator
from functools import cache
from pathlib import Path

__all__ = ["nameless", "remove", "replace_file", "strays", "temporary_name"]

ENDING = ".tmp"
OLD = 24 * 3600.0  # seconds after which a temporary file of another host is of no live process
NAME = re.compile(r"\..+\.(?P<host>[\w-]+)\.(?P<process>\d+-\d+)\.[0-9a-f]+\.tmp")


def replace_file(path: Path, raw: bytes) -> Path:
    """Write a file, in the place of what is there.

    Raises
    ------
    OSError
        When that fails, with the name of the file; what there was before is left as it was.
    """
    temporary = path.with_name(temporary_name(path.name))
    try:
        with temporary.open("xb", buffering=0) as file:
            left = memoryview(raw)
            while left:
                left = left[file.write(left) :]
            os.fsync(file.fileno())
        os.replace(temporary, path)
    except BaseException as error:
        remove(temporary)
        if isinstance(error, OSError):
            raise OSError(error.errno, error.strerror, str(path)) from error
        raise
    return path


def temporary_name(name: str) -> str:
    """Name of a new temporary file of this process, for a file of another name."""
    process = _this_process(os.getpid())
    return f".{name[:64]}.{_host()}.{process}.{secrets.token_hex(4)}{ENDING}"


def strays(folder: Path) -> Iterator[Path]:
    """Temporary files in a folder that no live process can be writing.

    Those of dead processes of this host, and those of other hosts after a day.

    Raises
    ------
    OSError
        When the folder cannot be read.
    """
    for name in sorted(os.listdir(folder)):
        found = NAME.fullmatch(name)
        if found is not None and _is_dead(found["host"], found["process"], folder / name):
            yield folder / name


def nameless(folder: Path) -> Iterator[Path]:
    """Temporary files in a folder whose names tell no process: no `replace_file` writes them."""
    return (path for path in folder.glob(f"*{ENDING}") if not NAME.fullmatch(path.name))


def remove(path: Path) -> bool:
    """Remove a file; False where it is gone already, or cannot be removed."""
    try:
        path.unlink()
    except OSError:
        return False
    return True


def _is_dead(host: str, process: str, path: Path) -> bool:
    if host == _host():
        pid = process.partition("-")[0]
        return _process(int(pid)) not in (process, f"{pid}-0")
    try:
        return time.time() - path.stat().st_mtime > OLD
    except OSError:
        return False


@cache
def _host() -> str:
    return re.sub(r"[^A-Za-z0-9_-]", "_", socket.gethostname())[:64] or "unknown"


@cache
def _this_process(pid: int) -> str | None:
    return _process(pid)


def _process(pid: int) -> str | None:
    """A live process, ``PID-BIRTH``, with its birth in the unit of the kernel, or 0; else None."""
    try:
        state, *fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return f"{pid}-0" if _answers(pid) else None
    return None if state in "ZX" else f"{pid}-{fields[18]}"


def _answers(pid: int) -> bool:
    if os.name != "posix":  # there is no harmless signal elsewhere
        return True
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except OSError:
        return True
    return True
