"""Files that are there as a whole or as they were, whatever happens while they are written."""

from __future__ import annotations

import contextlib
import os
import uuid
from pathlib import Path

__all__ = ["replace_file"]


def replace_file(path: Path, raw: bytes) -> Path:
    """Write a file to a temporary one beside it, flush that to the disk, and rename it.

    Raises
    ------
    OSError
        When that fails; what there was before is left as it was.
    """
    temporary = path.with_name(f".{path.name}.{uuid.uuid4().hex}.tmp")
    try:
        with temporary.open("xb") as file:
            file.write(raw)
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, path)
    except BaseException:
        with contextlib.suppress(OSError):
            temporary.unlink()
        raise
    return path
