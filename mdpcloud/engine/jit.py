"""The one way in which this package compiles functions with numba.

Compiled kernels are cached on disk. Numba's own key is the file of the compiled function alone, so
a change in a function that it calls from another file would go unnoticed and stale code would run.
Here every kernel lives in a file named ``kernels.py`` (or ``*_kernels.py``), kernels call functions
of such files only, and the cache folder is named after a hash of all of them: any edit leads to a
new folder.

``numba.config.CACHE_DIR`` belongs to the whole process; it is set only while a kernel of ours is
decorated.
"""

from __future__ import annotations

import hashlib
import os
import tempfile
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import numba

__all__ = ["cache_folder", "kernel", "kernels_are_cached", "source_hash"]


PACKAGE = Path(__file__).resolve().parent.parent


@cache
def source_hash(package: Path = PACKAGE) -> str:
    """Hash of every kernel file of a package and of numba's version (16 hexadecimal digits)."""
    digest = hashlib.sha256(numba.__version__.encode())
    for path in sorted(package.rglob("*kernels.py")):
        digest.update(path.relative_to(package).as_posix().encode())
        digest.update(path.read_bytes())
    return digest.hexdigest()[:16]


@cache
def cache_folder() -> Path:
    """Folder of compiled kernels: in ``MDPCLOUD_CACHE``, the user's cache or a temporary one."""
    chosen = os.environ.get("MDPCLOUD_CACHE")
    user = os.environ.get("XDG_CACHE_HOME") or os.path.join(os.path.expanduser("~"), ".cache")
    for root in (
        chosen,
        os.path.join(user, "mdpcloud"),
        os.path.join(tempfile.gettempdir(), "mdpcloud"),
    ):
        if root:
            folder = Path(root) / f"kernels-{source_hash()}"
            try:
                folder.mkdir(parents=True, exist_ok=True)
            except OSError:
                continue
            if os.access(folder, os.W_OK):
                return folder
    return Path(tempfile.mkdtemp(prefix="mdpcloud-kernels-"))


def kernels_are_cached() -> bool:
    """Whether any kernel was compiled before; if not, the first call takes some ten seconds."""
    return any(cache_folder().rglob("*.nbi"))


def kernel(**options: Any) -> Callable[[Callable[..., Any]], Any]:
    """Compile a function in nopython mode, without the GIL, cached under `cache_folder`.

    One whose name begins with an underscore is called by other kernels only: it has no entry from
    Python, which saves half the time of compilation, and becomes part of its callers, which saves
    the counting of references to its arguments.

    Parameters
    ----------
    **options
        Passed to `numba.njit`, such as ``fastmath`` or ``parallel``.
    """

    def decorate(function: Callable[..., Any]) -> Any:
        inner = function.__name__.startswith("_")
        settings: dict[str, Any] = {
            "nogil": True,
            "cache": True,
            "no_cfunc_wrapper": True,
            "no_cpython_wrapper": inner,
            "forceinline": inner,
        }
        before = numba.config.CACHE_DIR  # type: ignore[attr-defined]
        numba.config.CACHE_DIR = str(cache_folder())  # type: ignore[attr-defined]
        try:
            return numba.njit(**settings, **options)(function)
        finally:
            numba.config.CACHE_DIR = before  # type: ignore[attr-defined]

    return decorate
