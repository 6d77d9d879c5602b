"""Finding dask's scheduler, starting one on this machine, and what its workers must have."""

from __future__ import annotations

import asyncio
import logging
import pickle
import platform
import threading
import warnings
from concurrent.futures import Future
from typing import TYPE_CHECKING, Any

import mdpcloud
from mdpcloud.errors import InputError
from mdpcloud.study.records.identity import package_hash
from mdpcloud.study.running.supply import ONE_THREAD

if TYPE_CHECKING:
    from distributed import Client

__all__ = ["HEALTH", "check_workers", "connect", "find_scheduler", "own_cluster"]

PATIENCE = 4.0  # seconds for the scheduler's first answer, and until a lack of workers is told
SILENCE = 2.0  # seconds for each of its later answers
DEAF = "import signal; signal.signal(signal.SIGINT, signal.SIG_IGN)"
"""Run by workers of this machine: signals of the terminal are for the main process."""
HEALTH = (
    "every worker needs this version of Python and of mdpcloud, and the user's own files at the "
    "same place"
)


# --- the scheduler --------------------------------------------------------------------------------


def find_scheduler(address: str) -> None:
    """Ask who answers at an address.

    Dask itself would wait forever for one who takes the call and says nothing.

    Raises
    ------
    InputError
        If within seconds no scheduler does.
    """
    answered: Future[dict[str, Any]] = Future()
    threading.Thread(target=_ask, args=(address, answered), daemon=True).start()
    try:
        kind = answered.result(PATIENCE + SILENCE)["type"]
    except Exception as error:
        raise _unreachable(address, error) from None
    if kind != "Scheduler":
        raise InputError(f"at {address} there is no scheduler of dask, but a {kind.lower()}")


def _ask(address: str, answered: Future[dict[str, Any]]) -> None:
    try:
        answered.set_result(asyncio.run(_identity(address)))
    except Exception as error:
        answered.set_exception(error)


async def _identity(address: str) -> dict[str, Any]:
    """What says who it is, on a loop of its own: the caller may be on one that runs."""
    from distributed.comm.core import connect
    from distributed.security import Security

    settings = Security().get_connection_args("client")  # type: ignore[no-untyped-call]
    async with asyncio.timeout(PATIENCE):
        call = await connect(  # type: ignore[no-untyped-call]
            address, timeout=0.9 * PATIENCE, **settings
        )
        try:
            await call.write({"op": "identity", "reply": True})
            found: dict[str, Any] = await call.read()
            return found
        finally:
            call.abort()


def _unreachable(address: str, error: Exception) -> InputError:
    reason = f"{type(error).__name__}: {error}" if str(error) else "no answer"
    return InputError(
        f"no scheduler of dask answers at {address!r} ({reason}); "
        "the address must be like 'tcp://127.0.0.1:8786'"
    )


def connect(address: Any) -> Client:
    """A client of the scheduler at an address, or of a cluster.

    Raises
    ------
    InputError
        If it does not answer.
    """
    from distributed import Client

    try:
        with warnings.catch_warnings():  # of versions, which `check_workers` compares
            warnings.simplefilter("ignore")
            return Client(  # type: ignore[no-untyped-call]
                address, timeout=SILENCE, set_as_default=False
            )
    except Exception as error:
        raise _unreachable(str(address), error) from None


def own_cluster(workers: int) -> Any:
    """A cluster on this machine, as a context."""
    from distributed import LocalCluster

    return LocalCluster(  # type: ignore[no-untyped-call]
        n_workers=workers,
        threads_per_worker=1,
        host="127.0.0.1",
        dashboard_address="127.0.0.1:0",
        silence_logs=logging.CRITICAL,
        scheduler_kwargs={"allowed_failures": 0},
        env=ONE_THREAD,
        preload=[DEAF],
    )


# --- the workers ----------------------------------------------------------------------------------


def check_workers(client: Client, content: bytes) -> None:
    """Wait for a worker, and see whether those there are can compute a packed work.

    Raises
    ------
    InputError
        If one lacks what this process has.
    """
    _wait(client)
    versions, trouble = about(content)
    for address, there in client.run(about, content, on_error="return").items():
        if isinstance(there, OSError):
            continue  # it has gone meanwhile
        if isinstance(there, BaseException):
            raise InputError(f"worker {address} cannot load mdpcloud ({there}); {HEALTH}")
        if there[0] != versions:
            raise InputError(f"worker {address} has {there[0]}, not {versions}; {HEALTH}")
        if there[1] is not None and trouble is None:
            raise InputError(f"worker {address} cannot load the study: {there[1]}; {HEALTH}")


def _wait(client: Client) -> None:
    """Wait for the first worker, which a batch system may start hours later.

    It waits for a task, since a cluster that adapts itself starts workers for tasks only.
    """
    asked = client.submit(len, (), pure=False)
    try:
        asked.exception(timeout=PATIENCE)  # type: ignore[no-untyped-call]
    except TimeoutError:
        address = client.scheduler_info()["address"]
        warnings.warn(f"{address} has no worker yet; waiting for one", stacklevel=2)
        asked.exception()  # type: ignore[no-untyped-call]


def about(content: bytes) -> tuple[str, str | None]:
    """Versions of a process, and why it cannot load a packed work, None if it can."""
    python = ".".join(platform.python_version_tuple()[:2])
    versions = f"Python {python}, mdpcloud {mdpcloud.__version__} (sources {package_hash()})"
    try:
        pickle.loads(content)
    except Exception as error:
        return versions, f"{type(error).__name__}: {error}"
    return versions, None
