"""What experiments/cluster.md shows works as it stands there."""

from __future__ import annotations

import ast
import inspect
import os
import re
import shlex
import signal
import socket
import subprocess
import sys
from contextlib import ExitStack
from pathlib import Path
from threading import Event

import pytest

import mdpcloud as mc

PAGE = (Path(__file__).parents[3] / "experiments" / "cluster.md").read_text(encoding="utf-8")
PORT = "8786"

STUDY = """
format = 1
policies = ["individually_optimal", "policy_improvement"]

[base]
format = 1
system = "cloud_routing"

[base.parameters]
arrival_rate = 1.0
outside_cost = 0.4
nodes = [{ servers = 1, service_rate = 1.0, abandonment_rate = 0.5 }]

[[axes]]
path = "parameters.arrival_rate"
values = [0.5, 1.0, 1.5]
"""


def blocks(language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```$", PAGE, re.DOTALL | re.MULTILINE)


def free_port() -> str:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return str(found.getsockname()[1])


def start(command: list[str], folder: Path, stack: ExitStack) -> None:
    """Start a process that ends with the stack, its children with it."""
    process = subprocess.Popen(
        command, cwd=folder, stderr=subprocess.DEVNULL, start_new_session=True
    )
    stack.callback(process.wait)
    stack.callback(os.killpg, process.pid, signal.SIGKILL)


@pytest.mark.slow
def test_the_cluster_of_two_processes_runs_a_study(tmp_path: Path) -> None:
    (tmp_path / "loads.toml").write_text(STUDY, encoding="utf-8")
    port = free_port()
    commands = [shlex.split(block.replace(PORT, port)) for block in blocks("sh")]
    for command in commands:
        command[0] = str(Path(sys.executable).parent / command[0])
    scheduler, worker, study = commands
    with ExitStack() as stack:
        start(scheduler, tmp_path, stack)
        start(worker, tmp_path, stack)
        wait_for(int(port))
        ran = subprocess.run(study, cwd=tmp_path, capture_output=True, text=True, timeout=200)
    assert ran.returncode == 0, ran.stderr
    assert "3 instances, 3 done" in ran.stdout
    assert len(list((tmp_path / "loads.results" / "records").iterdir())) == 3
    assert (tmp_path / "loads.results" / "results.csv").exists()


def wait_for(port: int) -> None:
    """Wait until somebody listens."""
    for _ in range(600):
        with socket.socket() as call:
            call.settimeout(0.1)
            if call.connect_ex(("127.0.0.1", port)) == 0:
                return
            Event().wait(0.1)
    raise AssertionError(f"nobody listens at {port}")


def test_the_cluster_of_slurm_names_what_there_is() -> None:
    """The names are those of dask-jobqueue 0.9, which is not installed for the tests."""
    (block,) = blocks("python")
    calls = {
        ast.unparse(node.func): [word.arg for word in node.keywords]
        for node in ast.walk(ast.parse(block))
        if isinstance(node, ast.Call)
    }
    named = [
        ast.literal_eval(key)
        for node in ast.walk(ast.parse(block))
        if isinstance(node, ast.Dict)
        for key in node.keys
    ]
    assert calls["SLURMCluster"] == [None, None]  # two mappings
    assert set(named) == {
        "queue", "account", "walltime", "cores", "processes", "memory", "worker_extra_args",
    }  # fmt: skip
    assert calls["cluster.adapt"] == ["maximum_jobs"]
    assert set(calls["mc.study.run"]) <= set(inspect.signature(mc.study.run).parameters)
    assert len(block.splitlines()) <= 12
