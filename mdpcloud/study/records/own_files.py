"""The files behind a module of the user's own: its own, and those beside it that it imports.

Imports are read from the text, at any depth and as far as they lead to files below the folder of
the module, or of its package; what is installed is known by its version. This package has a hash of
its own (`mdpcloud.study.records.identity.package_hash`), also where it lies beside the module.
Modules that are only named while the code runs (``importlib.import_module``) and files of data are
not found.
"""

from __future__ import annotations

import ast
import hashlib
import sys
import sysconfig
import warnings
from collections.abc import Iterator
from functools import cache, lru_cache
from pathlib import Path

import mdpcloud
from mdpcloud.errors import InputError
from mdpcloud.study.records.plain import FILES

__all__ = ["hash_of_module"]

PACKAGE = Path(mdpcloud.__file__).resolve().parent
Import = tuple[int, str]
"""Number of leading dots, and what follows them."""


def hash_of_module(name: str) -> str | None:
    """Hash of the files behind a module, None where it has no file.

    Raises
    ------
    InputError
        When one of them has changed since this process loaded it.
    """
    file = getattr(sys.modules.get(name), "__file__", None)
    if file is None or not Path(file).is_file():
        return None
    path = Path(file).resolve()
    if _is_installed(path):
        return f"{_version(name)} {_hash(path.read_bytes())}"
    root = _root(name, path)
    found = (
        f"{one.relative_to(root).as_posix()} {_checked(one, name)}" for one in _behind(path, root)
    )
    return _hash("\n".join(found).encode())


def _version(name: str) -> str:
    return str(getattr(sys.modules.get(name.partition(".")[0]), "__version__", ""))


@cache
def _installed() -> tuple[Path, ...]:
    paths = sysconfig.get_paths()
    return tuple(Path(paths[name]).resolve() for name in ("stdlib", "platlib", "purelib"))


def _is_installed(path: Path) -> bool:
    return any(path.is_relative_to(folder) for folder in _installed())


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


# --- imports --------------------------------------------------------------------------------------


def _behind(path: Path, root: Path) -> list[Path]:
    """A file and all that it imports below a folder, in order."""
    found, left = {path}, [path]
    while left:
        one = left.pop()
        more = {file for what in _imports(one.read_bytes()) for file in _files(what, one, root)}
        left += more - found
        found |= more
    return sorted(found)


@lru_cache(maxsize=256)
def _imports(source: bytes) -> frozenset[Import]:
    """What a text imports."""
    try:
        with warnings.catch_warnings():  # of which the author has been told by now
            warnings.simplefilter("ignore")
            tree = ast.parse(source)
    except (SyntaxError, ValueError, RecursionError):  # as of compiled modules
        return frozenset()
    return frozenset(one for node in ast.walk(tree) for one in _imported(node))


def _imported(node: ast.AST) -> Iterator[Import]:
    if isinstance(node, ast.Import):
        yield from ((0, one.name) for one in node.names)
    elif isinstance(node, ast.ImportFrom):
        for one in node.names:
            yield node.level, f"{node.module}.{one.name}" if node.module else one.name


def _files(what: Import, importer: Path, root: Path) -> Iterator[Path]:
    """Files below a folder that are run by an import: those of its packages too."""
    level, name = what
    folder = importer.parents[min(level, len(importer.parents)) - 1] if level else root
    for part in name.split("."):
        if not folder.is_relative_to(root) or folder / part == PACKAGE:
            return
        for place in (folder / f"{part}.py", folder / part / "__init__.py"):
            if place.is_file():
                yield place
        folder = folder / part
