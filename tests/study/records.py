"""Records for tests of what keeps them, and programs that write such records."""

import subprocess
import sys
from pathlib import Path
from typing import Any

from mdpcloud.study.record import DONE, make_record

__all__ = ["ended", "record", "start"]

PROGRAM = """
import sys
from pathlib import Path
from mdpcloud.study.store import Store
from mdpcloud.study.record import DONE, make_record
def record(i):
    rows = [{{"policy": "optimum", "cost": i / 7, "note": "x" * size}}]
    return make_record({{"i": i}}, {{}}, DONE, result={{"rows": rows}})
size = {size}
store = Store(Path(sys.argv[1]))
print("ready", flush=True)
{body}
"""


def record(i: int, *, size: int = 0, **parts: Any) -> dict[str, Any]:
    """A record of content i."""
    rows = [{"policy": "optimum", "cost": i / 7, "note": "x" * size}]
    return make_record({"i": i}, {}, DONE, result={"rows": rows}, **parts)


def start(body: str, store: Path, *, size: int = 0) -> "subprocess.Popen[bytes]":
    """A process of its own that works on a store; it has begun."""
    process = subprocess.Popen(
        [sys.executable, "-c", PROGRAM.format(body=body, size=size), str(store)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        bufsize=0,
    )
    assert process.stdout is not None
    assert process.stdout.readline() == b"ready\n"
    return process


def ended(process: "subprocess.Popen[bytes]") -> str:
    """What a process said, once it has ended well."""
    out, err = process.communicate(timeout=100)
    assert process.returncode == 0, err.decode()
    return out.decode()
