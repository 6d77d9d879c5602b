"""The files behind a module of the user's own: its own, and those beside it that it imports.

`mdpcloud.neighbours` finds them, below the folder of the module or of its package. This package has
a hash of its own (`mdpcloud.study.records.identity.package_hash`), also where it lies beside them.
"""

from __future__ import annotations

import hashlib
import sys
from collections.abc import Iterable
from functools import cache
from pathlib import Path
from typing import Any

from mdpcloud.errors import InputError
from mdpcloud.neighbours import imported_files, is_installed
from mdpcloud.study.records.plain import FILES

__all__ = ["has_own_file", "hash_of_module", "hashes_of_givers", "modules_that_give"]


def hash_of_module(name: str) -> str | None:
    """Hash of the files behind a module, None where it has no file.

    Raises
    ------
    InputError
        When one of them has changed since this process loaded it.
    """
    path = _file_of(name)
    if path is None:
        return None
    if is_installed(path):
        return f"{_version(name)} {_hash(path.read_bytes())}"
    root = _root(name, path)
    behind = sorted({path} | imported_files(path, root))
    found = (f"{one.relative_to(root).as_posix()} {_checked(one, name)}" for one in behind)
    return _hash("\n".join(found).encode())


def modules_that_give(what: Iterable[Any], reference: str = "") -> list[str]:
    """Modules of the user's files that give one of these objects, by any name or by that of a text.

    A study may name a file for what another one defines. Without a path the text is the name in
    any file.
    """
    place, _, name = reference.rpartition(":")
    wanted = {id(one) for one in what}
    return [
        one
        for one, module in [*sys.modules.items()]
        if one.startswith(FILES)
        if not place or Path(str(module.__file__)).name == Path(place).name
        if wanted & {id(found) for key, found in vars(module).items() if name in ("", key)}
        if _is_current(one)
    ]


def hashes_of_givers(reference: str, what: list[Any]) -> list[str]:
    """Hashes of the user's files that a reference may name, where others define what they give."""
    defining = {getattr(one, "__module__", None) for one in what}
    names = {*modules_that_give(what, reference)} - defining if reference else ()
    return sorted(str(hash_of_module(one)) for one in names)


def _is_current(name: str) -> bool:
    """Whether a module of the user's is what its file says now."""
    path = _file_of(name)
    return path is not None and _hash(path.read_bytes()).startswith(name.rsplit("_", 2)[1])


def has_own_file(name: str | None) -> bool:
    """Whether a module has a file that is not installed."""
    path = _file_of(name)
    return path is not None and not is_installed(path)


def _file_of(name: str | None) -> Path | None:
    file = getattr(sys.modules.get(str(name)), "__file__", None)
    return Path(file).resolve() if file is not None and Path(file).is_file() else None


def _version(name: str) -> str:
    return str(getattr(sys.modules.get(name.partition(".")[0]), "__version__", ""))


def _root(name: str, path: Path) -> Path:
    """Folder that the names of a module's neighbours are relative to."""
    spec = getattr(sys.modules.get(name), "__spec__", None)
    name = spec.name if name == "__main__" and spec else name  # as of python -m
    if name.startswith(FILES) or name == "__main__":
        return path.parent
    depth = name.count(".") + (path.stem == "__init__")
    return path.parents[min(depth, len(path.parents) - 1)]


# --- what has been loaded -------------------------------------------------------------------------


def _checked(path: Path, name: str) -> str:
    """Hash of a file, as this process has loaded it."""
    now = _hash(path.read_bytes())
    if name == "__main__":  # a program may be edited while it runs
        return _first(path)
    loaded = name.rsplit("_", 2)[1] if _is_file_of(name, path) else _first(path)
    if not now.startswith(loaded):
        raise InputError(
            f"file {path} has changed since this process loaded it; start again in a new one"
        )
    return now


def _is_file_of(name: str, path: Path) -> bool:
    """Whether a module of the user's is this file, whose hash stands in the name then."""
    return name.startswith(FILES) and path == Path(str(sys.modules[name].__file__)).resolve()


@cache
def _first(path: Path) -> str:
    """Hash of a file when it was first looked at."""
    return _hash(path.read_bytes())


def _hash(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()
