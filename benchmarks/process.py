"""Measurements in processes of their own, so that none of them finds what another left behind."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

__all__ = ["in_own_process"]

ROOT = Path(__file__).parents[1]
LIBRARIES = ("OMP", "OPENBLAS", "MKL", "NUMBA")


def in_own_process(module: str, *arguments: Any, threads: int = 1) -> Any:
    """What a module prints as JSON when it is run with some arguments."""
    command = [sys.executable, "-m", module, *map(str, arguments)]
    alone = {f"{library}_NUM_THREADS": str(threads) for library in LIBRARIES}
    done = subprocess.run(
        command, cwd=ROOT, env=os.environ | alone, capture_output=True, text=True, check=False
    )
    if done.returncode:
        raise RuntimeError(f"{' '.join(command)} failed:\n{done.stderr}")
    return json.loads(done.stdout)
