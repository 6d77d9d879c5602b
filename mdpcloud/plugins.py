"""Rules and systems of the user's own, named by text: ``my_rules.py:rule`` or ``module:name``.

A path is relative to a folder given by the caller, the scenario's. A file is executed once per
content: two scenarios that name the same file get the same objects. They pickle: a process that
unpickles them finds their file by the name of their module.

A file may import its neighbours, the files below its folder. Python knows those by their names
only, so that those of two folders would be mixed up; such a file is refused.
"""

from __future__ import annotations

import difflib
import hashlib
import importlib
import os
import re
import sys
import traceback
from collections.abc import Iterable
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from pathlib import Path
from types import ModuleType

from mdpcloud.errors import InputError
from mdpcloud.neighbours import MixedUp, importable

__all__ = [
    "did_you_mean",
    "is_reference",
    "load",
    "mistake_in_plugin",
    "nearest",
]

_PREFIX = f"{__name__}.file_"
__path__: list[str] = []  # so that modules can lie below this one


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """A suggestion to append to a message, empty if no known word is near.

    Examples
    --------
    >>> did_you_mean("cloud_ruoting", ["cloud_routing", "retrial"])
    "; did you mean 'cloud_routing'?"
    """
    near = nearest(word, known)
    return f"; did you mean {near!r}?" if near else ""


def nearest(word: str, known: Iterable[str]) -> str | None:
    """The known word that is most like a word, None if none is near."""
    return next(iter(difflib.get_close_matches(word, list(known), 1)), None)


def is_reference(text: str) -> bool:
    """Whether the text names an object in a file or module, not an entry of a registry."""
    return ":" in text or text.endswith(".py")


def load(reference: str, folder: Path) -> object:
    """Object named by ``path.py:name``, relative to the folder, or by ``module:name``.

    Raises
    ------
    InputError
        If the reference is malformed, or its file, module or name does not exist or does not load.
    """
    place, _, name = reference.rpartition(":")
    if not place or not name.isidentifier():
        raise InputError(f"{reference!r} must be of the form 'file.py:name' or 'module:name'")
    module = _from_file(folder / place) if place.endswith(".py") else _from_name(place)
    try:
        return getattr(module, name)
    except AttributeError:
        hint = did_you_mean(name, (n for n in vars(module) if not n.startswith("_")))
        raise InputError(f"{place} has no {name!r}{hint}") from None


def _from_name(name: str) -> ModuleType:
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        if error.name and (name == error.name or name.startswith(f"{error.name}.")):
            raise InputError(
                f"module {name!r} is not installed (a file is named by its path: '{name}.py:...')"
            ) from None
        raise InputError(f"module {name!r} could not be loaded: {_summary(error)}") from error
    except (Exception, SystemExit) as error:
        raise InputError(f"module {name!r} could not be loaded: {_summary(error)}") from error


def _from_file(path: Path) -> ModuleType:
    try:
        name = _module_name(path.resolve())
    except OSError as error:
        raise InputError(f"file {path} cannot be read: {error.strerror}") from None
    try:
        return importlib.import_module(name)
    except MixedUp:
        raise
    except (Exception, SystemExit) as error:
        raise InputError(f"file {path} could not be loaded: {_summary(error)}") from error


def _module_name(path: Path) -> str:
    """Name that tells the place of a file and what it holds, so that any process can import it."""
    content = hashlib.sha256(path.read_bytes()).hexdigest()[:12]
    stem = re.sub(r"\W", "_", path.stem)
    return f"{_PREFIX}{stem}_{content}_{os.fsencode(path).hex()}"


class _Files(MetaPathFinder, Loader):
    """Finds and loads the modules of `_module_name`, in other processes when they unpickle too."""

    def find_spec(self, name: str, *_: object) -> ModuleSpec | None:
        """Specification of a module that names a file, None for any other."""
        if not name.startswith(_PREFIX):
            return None
        path = Path(os.fsdecode(bytes.fromhex(name.rpartition("_")[2])))
        if _module_name(path) != name:
            raise ImportError(f"file {path} has changed since it was first loaded")
        return ModuleSpec(name, self, origin=str(path))

    def exec_module(self, module: ModuleType) -> None:
        """Run the file, without a cache of bytecode, whose clock is too coarse for quick edits."""
        origin = Path(str(module.__spec__ and module.__spec__.origin))
        module.__file__ = str(origin)
        with importable(origin):
            exec(compile(origin.read_bytes(), origin, "exec"), vars(module))


sys.meta_path.append(_Files())


def _summary(error: BaseException) -> str:
    """Kind, message and line of an error, in one line."""
    text = "".join(traceback.format_exception_only(error)[-1:]).strip()
    if isinstance(error, SyntaxError):
        return f"{text} (line {error.lineno})"
    frames = traceback.extract_tb(error.__traceback__)
    return f"{text} (line {frames[-1].lineno} of {frames[-1].filename})" if frames else text


def mistake_in_plugin(error: BaseException) -> str | None:
    """Description of an error that the code of a user's file raised, None if another code did."""
    innermost = None
    for frame, _ in traceback.walk_tb(error.__traceback__):
        if str(frame.f_globals.get("__name__", "")).startswith(_PREFIX):
            innermost = frame
    if innermost is None:
        return None
    return f"{innermost.f_code.co_name} of {innermost.f_code.co_filename}: {_summary(error)}"
