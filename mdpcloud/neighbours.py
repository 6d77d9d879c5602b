"""Neighbours of a file of the user's own: the files below its folder that it imports.

Imports are read from the text, at any depth and as far as they lead to files below the folder; what
is installed is known by its version. Modules that are only named while the code runs
(``importlib.import_module``) and files of data are not found.
"""

from __future__ import annotations

import ast
import contextlib
import hashlib
import sys
import sysconfig
import warnings
from collections.abc import Iterator
from functools import cache, lru_cache
from pathlib import Path

from mdpcloud.errors import InputError

__all__ = ["MixedUp", "importable", "imported_files", "imports_of", "is_installed", "loaded_with"]

PACKAGE = Path(__file__).resolve().parent
Import = tuple[int, str]
"""Number of leading dots, and what follows them."""

_known: dict[str, tuple[Path, bytes]] = {}  # place and content of those that files import
_names: dict[Path, tuple[str, ...]] = {}  # of those that each file imported


class MixedUp(InputError):
    """Two files that Python would know by the same name."""


@contextlib.contextmanager
def importable(path: Path) -> Iterator[None]:
    """Let a file that is being loaded import its neighbours; installed modules come first.

    Raises
    ------
    MixedUp
        When this process knows another file by the name of one, or one as it was before.
    """
    folder = str(path.parent)
    _checked(path)
    sys.path.append(folder)
    try:
        yield
    finally:
        sys.path.remove(folder)
    _known.update(found := _checked(path))
    _names[path] = tuple(found)


def loaded_with(path: Path) -> dict[str, str]:
    """Name and hash of the neighbours that a file imported when this process loaded it."""
    return {name: hashlib.sha256(_known[name][1]).hexdigest() for name in _names.get(path, ())}


def _checked(path: Path) -> dict[str, tuple[Path, bytes]]:
    """Name, place and content of the neighbours that a file imports, each of which is its own."""
    found = {}
    for one in sorted(imported_files(path, path.parent)):
        parts = one.relative_to(path.parent).with_suffix("").parts
        name = ".".join(parts).removesuffix(".__init__")
        loaded = _file_of(name)
        if loaded is None or not is_installed(loaded):  # what is installed comes first
            found[name] = one, one.read_bytes()
            _check(name, *found[name], loaded)
    return found


def _check(name: str, path: Path, content: bytes, loaded: Path | None) -> None:
    """Refuse a neighbour when the module of its name is, or may become, another one."""
    place, held = _known.get(name, (path, content))
    if loaded is None and place == path:  # it may be edited until it is loaded
        return
    if loaded not in (None, path, place):
        place, held = loaded, loaded.read_bytes() if loaded.is_file() else b""
    if place == path and held != content:
        raise MixedUp(
            f"file {path} has changed since this process loaded it; start again in a new one"
        )
    if place != path and (held != content or b"__file__" in content):
        raise MixedUp(
            f"file {path} would be mixed up with {place}, which this process knows as {name!r} "
            "already; rename one of them, or use them in separate processes"
        )


def _file_of(name: str) -> Path | None:
    """File of a module that has been loaded."""
    file = getattr(sys.modules.get(name), "__file__", None)
    return None if file is None else Path(file).resolve()


@cache
def _installed() -> tuple[Path, ...]:
    paths = sysconfig.get_paths()
    return tuple(Path(paths[name]).resolve() for name in ("stdlib", "platlib", "purelib"))


def is_installed(path: Path) -> bool:
    """Whether a file is Python's, or of a package that is known by its version."""
    return any(path.is_relative_to(folder) for folder in _installed())


def imported_files(path: Path, root: Path) -> set[Path]:
    """Files below a folder that a file imports, or that those import, as their texts tell."""
    found: set[Path] = set()
    left = [path]
    while left:
        one = left.pop()
        more = {file for what in imports_of(one.read_bytes()) for file in _files(what, one, root)}
        left += more - found
        found |= more
    return found


@lru_cache(maxsize=256)
def imports_of(source: bytes) -> frozenset[Import]:
    """What a text imports, at any depth."""
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
