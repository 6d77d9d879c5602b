"""Studies on dask's workers; every process that dies here was started here."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing, suppress
from dataclasses import replace
from pathlib import Path
from threading import Timer
from typing import Any

import psutil
import pytest
from distributed import Client

import mdpcloud as mc
from mdpcloud.errors import InputError, MdpcloudError
from mdpcloud.study.running import dask_cluster
from mdpcloud.study.running.dask_engine import DaskEngine
from mdpcloud.study.running.local_engine import SequentialEngine
from mdpcloud.study.running.work import Work, work_of
from mdpcloud.study.study import Study
from mdpcloud.study.tasks import find_task

pytestmark = pytest.mark.slow

TASKS = """
import os
import signal
import time

import numba


def rate(scenario):
    return {"rows": [{"rate": scenario.system.arrival_rate}]}


def slow(scenario):
    time.sleep(0.1)
    return rate(scenario)


def threads(scenario):
    asked = {name: os.environ.get(name) for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS")}
    deaf = signal.getsignal(signal.SIGINT) is signal.SIG_IGN
    return {"rows": [{"numba": numba.config.NUMBA_NUM_THREADS, "deaf": deaf, **asked}]}


def kill_at_two(scenario):
    if scenario.system.arrival_rate == 2.0:
        os.kill(os.getpid(), signal.SIGKILL)
    return rate(scenario)
"""


@pytest.fixture
def tasks(tmp_path: Path) -> Path:
    path = tmp_path / "my_tasks.py"
    path.write_text(TASKS, encoding="utf-8")
    return path


def study(tasks: Path, name: str, size: int) -> Study:
    """A study of a task that knows an instance by its arrival rate: 1, 2, ..."""
    node = mc.systems.Node(servers=1, service_rate=1.0, abandonment_rate=0.5)
    found = Study.of(
        ({"rate": rate}, mc.systems.CloudRouting((node,), float(rate), outside_cost=0.4))
        for rate in range(1, size + 1)
    )
    task = find_task(f"{tasks.name}:{name}", tasks.parent)
    return replace(
        found,
        task=task,
        instances=tuple(replace(one, task=task) for one in found.instances),
    )


def works(tasks: Path, name: str, size: int) -> list[Work]:
    return [work_of(one) for one in study(tasks, name, size).instances]


def result(record: Any) -> Any:
    """What a record says, but for where and when."""
    return {name: value for name, value in record.items() if name != "run"}


def by_key(records: Any) -> dict[str, Any]:
    """Records by their keys, each of which there is once."""
    found = list(records)
    assert len({record["key"] for record in found}) == len(found)
    return {record["key"]: result(record) for record in found}


def rates(records: Any) -> list[float]:
    return sorted(record["result"]["rows"][0]["rate"] for record in records)


# --- clusters -------------------------------------------------------------------------------------


def dask(what: str, *arguments: str, **settings: Any) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-m", f"distributed.cli.dask_{what}", *arguments, "--no-dashboard"]
    return subprocess.Popen(command, stderr=subprocess.DEVNULL, start_new_session=True, **settings)


class Cluster:
    """A scheduler and workers, each a process of its own."""

    def __init__(self, folder: Path) -> None:
        self.file = folder / "scheduler.json"
        self.scheduler = dask(
            "scheduler", "--host=127.0.0.1", "--port=0", f"--scheduler-file={self.file}"
        )
        self.processes = [self.scheduler]
        self.address = eventually(self._address)

    def _address(self) -> str | None:
        try:
            return str(json.loads(self.file.read_text(encoding="utf-8"))["address"])
        except (OSError, ValueError):
            return None

    def add_worker(self, **settings: Any) -> None:
        self.processes.append(dask("worker", self.address, "--nthreads=1", **settings))

    def close(self) -> None:
        """End all processes, the nannies' children with them."""
        for process in self.processes:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()


def eventually(look: Callable[[], Any], seconds: float = 60.0) -> Any:
    """The first thing found that is true."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if found := look():
            return found
        time.sleep(0.05)
    raise AssertionError(f"nothing after {seconds} s")


@pytest.fixture
def empty(tmp_path: Path) -> Iterator[Cluster]:
    """A scheduler alone."""
    with ExitStack() as stack:
        found = Cluster(tmp_path)
        stack.callback(found.close)
        yield found


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """A scheduler and two workers."""
    with ExitStack() as stack:
        found = Cluster(tmp_path_factory.mktemp("cluster"))
        stack.callback(found.close)
        for _ in range(2):
            found.add_worker()
        with Client(found.address, set_as_default=False) as client:
            client.wait_for_workers(2)
        yield found


# --- work -----------------------------------------------------------------------------------------


def test_a_cluster_gives_the_records_that_this_process_gives(tasks: Path, cluster: Cluster) -> None:
    made = works(tasks, "rate", 30)
    here = by_key(SequentialEngine().records(made))
    assert by_key(DaskEngine(scheduler=cluster.address).records(made)) == here


def test_workers_of_a_cluster_take_one_thread(tasks: Path, cluster: Cluster) -> None:
    (record,) = DaskEngine(scheduler=cluster.address).records(works(tasks, "threads", 1))
    (row,) = record["result"]["rows"]
    assert (row["OMP_NUM_THREADS"], row["OPENBLAS_NUM_THREADS"]) == ("1", "1")


def test_a_cluster_of_its_own_takes_one_thread_and_ends(tasks: Path) -> None:
    """Its workers leave Ctrl-C to this process."""
    (record,) = DaskEngine(jobs=1).records(works(tasks, "threads", 1))
    (row,) = record["result"]["rows"]
    assert row == {"numba": 1, "deaf": True, "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
    worker = record["run"]["pid"]
    assert worker != os.getpid()
    assert eventually(lambda: not psutil.pid_exists(worker))


# --- deaths ---------------------------------------------------------------------------------------


def test_a_worker_that_is_killed_costs_no_record_and_none_is_made_twice(
    tasks: Path, cluster: Cluster
) -> None:
    made = works(tasks, "slow", 30)
    seen = []
    for record in DaskEngine(scheduler=cluster.address).records(made):
        seen.append(record)
        if len(seen) == 5:
            os.kill(record["run"]["pid"], signal.SIGKILL)
    assert rates(seen) == [float(rate) for rate in range(1, 31)]


def test_an_instance_that_kills_its_workers_fails_and_the_others_are_computed(tasks: Path) -> None:
    made = works(tasks, "kill_at_two", 4)
    records = list(DaskEngine(jobs=2).records(made))
    (failed,) = [record for record in records if record["status"] == "failed"]
    assert failed["key"] == made[1].key
    assert failed["error"] == "it killed its worker 2 times"
    done = [record for record in records if record is not failed]
    assert rates(done) == [1, 3, 4]


def test_a_run_that_ends_early_leaves_the_cluster_nothing_to_do(
    tasks: Path, cluster: Cluster
) -> None:
    with closing(DaskEngine(scheduler=cluster.address).records(works(tasks, "slow", 60))) as found:
        next(found)
        assert tasks_of(cluster)
    assert eventually(lambda: not tasks_of(cluster))


def tasks_of(cluster: Cluster) -> int:
    """Number of tasks that the scheduler knows."""

    def count(dask_scheduler: Any) -> int:
        return len(dask_scheduler.tasks)

    with Client(cluster.address, set_as_default=False) as client:
        return int(client.run_on_scheduler(count))


def test_a_study_whose_scheduler_dies_keeps_its_records_and_can_be_resumed(
    tasks: Path, empty: Cluster
) -> None:
    empty.add_worker()
    with Client(empty.address, set_as_default=False) as client:
        client.wait_for_workers(1)
    made, store = study(tasks, "slow", 20), tasks.parent / "store"

    def kill(done: int, _: int, __: int) -> None:
        if done == 5:
            empty.scheduler.kill()

    with pytest.raises(MdpcloudError, match=r"scheduler has gone .* resume"):
        mc.study.run(made, store=store, backend="dask", scheduler=empty.address, progress=kill)
    kept = mc.study.load(made, store).counts()
    assert kept["done"] >= 5
    results = mc.study.run(made, store=store, backend="sequential", resume=True)
    assert [row["rate"] for row in results.rows()] == list(range(1, 21))


# --- what a cluster lacks -------------------------------------------------------------------------


def test_an_address_without_a_scheduler_is_told_within_ten_seconds() -> None:
    with ExitStack() as stack:
        silent = stack.enter_context(listening())
        closed = listening()
        addresses = {
            f"tcp://127.0.0.1:{silent.getsockname()[1]}": "no answer",
            f"tcp://127.0.0.1:{closed.getsockname()[1]}": "",
            "tcp://10.255.255.1:8786": "",
            "http://127.0.0.1:80": "unknown address scheme 'http'",
            "tcp://nowhere.invalid:8786": "",
            "127.0.0.1": "missing port",
            "": "missing port",
        }
        closed.close()
        with ThreadPoolExecutor(len(addresses)) as pool:
            told = list(pool.map(why_not, addresses))
    for (seconds, text), (address, reason) in zip(told, addresses.items(), strict=True):
        assert text.startswith(f"no scheduler of dask answers at {address!r} (")
        assert reason in text
        assert "must be like 'tcp://127.0.0.1:8786'" in text
        assert seconds < 10


def listening() -> socket.socket:
    """A port that takes calls and never says anything."""
    found = socket.socket()
    found.bind(("127.0.0.1", 0))
    found.listen()
    return found


def why_not(address: str) -> tuple[float, str]:
    """Seconds until a scheduler is not found, and the error."""
    start = time.monotonic()
    with pytest.raises(InputError) as error:
        DaskEngine(scheduler=address)
    return time.monotonic() - start, str(error.value)


def test_a_worker_is_no_scheduler(cluster: Cluster) -> None:
    with Client(cluster.address, set_as_default=False) as client:
        (worker, *_) = client.scheduler_info()["workers"]
    with pytest.raises(InputError, match="no scheduler of dask, but a worker"):
        DaskEngine(scheduler=worker)


def test_a_scheduler_is_found_from_within_a_running_loop(cluster: Cluster) -> None:
    """As in a notebook."""

    async def find() -> None:
        dask_cluster.find_scheduler(cluster.address)

    asyncio.run(find())


def test_without_dask_the_error_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "distributed", None)
    with pytest.raises(InputError, match=r"pip install mdpcloud\[dask\]"):
        DaskEngine()


def test_a_worker_with_another_package_is_told(
    tasks: Path, cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = works(tasks, "rate", 1)
    monkeypatch.setattr(dask_cluster, "package_hash", lambda: "0123456789abcdef")
    with pytest.raises(InputError, match=r"worker tcp://.* not .*sources 0123456789abcdef"):
        list(DaskEngine(scheduler=cluster.address).records(made))


def test_a_worker_without_the_users_file_is_told(tasks: Path, cluster: Cluster) -> None:
    tasks.write_text("x = 1\n" + TASKS, encoding="utf-8")  # no worker has loaded it before
    made = works(tasks, "rate", 1)
    tasks.unlink()
    with pytest.raises(InputError, match=r"worker tcp://.* cannot load the study: .*my_tasks.py"):
        list(DaskEngine(scheduler=cluster.address).records(made))


WITHOUT = """
import sys

class Without:
    def find_spec(self, name, *_):
        if name.partition(".")[0] == "mdpcloud":
            raise ModuleNotFoundError("No module named 'mdpcloud'")

sys.meta_path.insert(0, Without())
"""


def test_a_worker_without_the_package_is_waited_for_and_told(tasks: Path, empty: Cluster) -> None:
    (tasks.parent / "sitecustomize.py").write_text(WITHOUT, encoding="utf-8")
    lacking = {**os.environ, "PYTHONPATH": str(tasks.parent)}
    records = DaskEngine(scheduler=empty.address).records(works(tasks, "rate", 1))
    later = Timer(dask_cluster.PATIENCE + 1, lambda: empty.add_worker(env=lacking))
    later.start()
    with pytest.raises(InputError) as told, pytest.warns(UserWarning, match="has no worker yet"):
        next(records)
    later.join()
    assert "cannot load mdpcloud (ModuleNotFoundError" in str(told.value)
