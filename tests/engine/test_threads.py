"""Several threads per sweep: the same numbers, one kernel at a time, never after a fork."""

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from mdpcloud.engine import compile_model
from mdpcloud.errors import InputError
from tests.admission import two_queues

ROOT = Path(__file__).parents[2]

START = """
import numpy as np
from mdpcloud.engine import compile_model
from mdpcloud.errors import SolveError
from tests.admission import two_queues

def swept(threads, count=50):
    problem = compile_model(two_queues((39, 39)), threads=threads)
    h, out = (problem.pack(np.zeros(problem.n)) for _ in range(2))
    problem.sweeps(h, out, count, step=1.0 / problem.rate_bound, recentre=True)
    return problem.unpack(h)
"""

AT_ONCE = """
import os
from concurrent.futures import ThreadPoolExecutor

alone = swept(1)
before = dict(os.environ)
with ThreadPoolExecutor(2) as pool:
    found = list(pool.map(swept, [2] * 8))
assert all(np.array_equal(one, alone) for one in found)
assert dict(os.environ) == before
"""

FORKED = """
import os

swept({before})
child = os.fork()
if child == 0:
    try:
        swept(2)
    except SolveError as error:
        os._exit(0 if "forked" in str(error) else 1)
    os._exit(2)
assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
"""

FORKED_ALONE = """
import os

alone = swept(1)
child = os.fork()
if child == 0:
    os._exit(0 if np.array_equal(swept(1), alone) else 1)
assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
"""

NO_LAYER = """
import numba

swept(1)
try:
    numba.threading_layer()
except ValueError:
    raise SystemExit(0)
raise SystemExit("a threading layer was loaded")
"""


def run(script: str) -> None:
    environment = os.environ | {"NUMBA_NUM_THREADS": "2"}
    command = [sys.executable, "-W", "ignore::DeprecationWarning", "-c", START + script]
    done = subprocess.run(
        command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr


@pytest.mark.slow
def test_two_python_threads_may_sweep_with_two_threads_each_at_once() -> None:
    run(AT_ONCE)


@pytest.mark.slow
@pytest.mark.parametrize("before", [1, 2])
def test_a_forked_child_refuses_several_threads(before: int) -> None:
    run(FORKED.format(before=before))


@pytest.mark.slow
def test_a_forked_child_may_use_one_thread() -> None:
    run(FORKED_ALONE)


@pytest.mark.slow
def test_one_thread_never_loads_a_threading_layer() -> None:
    run(NO_LAYER)


def test_more_threads_than_the_machine_offers_are_refused() -> None:
    problem: Any = compile_model(two_queues((39, 39)), threads=10_000)
    h = problem.pack(np.zeros(problem.n))
    with pytest.raises(InputError, match="threads is 10000; this machine offers"):
        problem.backup(h, h.copy(), step=0.1)
