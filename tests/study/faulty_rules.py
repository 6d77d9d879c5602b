"""A system whose instances do what the tests of faults need, as a file of a user's own."""

from __future__ import annotations

import contextlib
import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from mdpcloud.errors import InputError, SolveError
from mdpcloud.parameters import validate
from mdpcloud.scenario import Scenario


@dataclass(frozen=True)
class Spot:
    """An instance: what it does, and a folder in which it counts how often."""

    number: int
    does: str = "well"
    folder: str = ""

    def __post_init__(self) -> None:
        validate(self)

    def model(self) -> Any:
        raise NotImplementedError


def task(scenario: Scenario) -> Mapping[str, Any]:
    """What an instance does."""
    spot = scenario.system
    if spot.folder:
        with open(Path(spot.folder) / f"{spot.number}", "a") as file:
            file.write(".")
    return DOES[spot.does](spot) or {"rows": [{"policy": "a", "cost": spot.number / 7}]}


def tries(spot: Spot) -> int:
    """How often an instance was begun."""
    path = Path(spot.folder) / f"{spot.number}"
    return len(path.read_text()) if path.exists() else 0


def _raise(error: BaseException) -> Any:
    raise error


class Mine(Exception):
    pass


def _loop(_: Spot) -> None:
    while True:
        pass


def _stubborn(_: Spot) -> None:
    while True:
        try:
            time.sleep(60)
        except BaseException as error:
            if isinstance(error, KeyboardInterrupt) or _stubborn_enough():
                raise


def _stubborn_enough(seen: list[int] = []) -> bool:  # noqa: B006
    seen.append(1)
    return len(seen) > 2


def _stubborn_for_ever(_: Spot) -> None:
    while True:
        with contextlib.suppress(BaseException):
            time.sleep(60)


def _hold(_: Spot) -> None:
    """Be long in compiled code that hears no signal and lets no other thread run."""
    sum(range(10**12))


def _die(_: Spot) -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def _die_first(spot: Spot) -> None:
    if tries(spot) == 1:
        _die(spot)


def _leave(_: Spot) -> None:
    os._exit(7)


def _fill(_: Spot) -> None:
    """Take more memory than there can be."""
    bytearray(2**60)


DOES: Mapping[str, Callable[[Spot], Any]] = {
    "well": lambda _: None,
    "slowly": lambda _: time.sleep(0.1),
    "wait": lambda _: time.sleep(60),
    "loop": _loop,
    "stubborn": _stubborn,
    "die": _die,
    "die first": _die_first,
    "leave": _leave,
    "stubborn for ever": _stubborn_for_ever,
    "hold": _hold,
    "fill": _fill,
    "mine": lambda _: _raise(Mine("x" * 10_000 + "\udcff")),
    "surrogate": lambda _: _raise(ValueError("no file \x00a\udcff")),
    "raise": lambda spot: _raise(KeyError(f"number {spot.number}")),
    "input": lambda _: _raise(InputError("servers must be >= 1, not 0")),
    "unsolved": lambda _: _raise(
        SolveError("1000 iterations were not enough", {"rows": [{"policy": "a", "cost": 0.5}]})
    ),
    "unsolved alone": lambda _: _raise(SolveError("no bounds at all", object())),
    "exit": lambda _: sys.exit(3),
    "interrupt": lambda _: _raise(KeyboardInterrupt()),
    "nan": lambda _: {"rows": [{"policy": "a", "cost": float("nan")}]},
    "inf": lambda _: {"rows": [{"policy": "a", "cost": 1.0}], "more": [0, -float("inf")]},
    "lock": lambda _: {"rows": [{"policy": "a", "cost": threading.Lock()}]},
    "numbers": lambda _: {"rows": ({"policy": "a", "cost": np.float32(0.5), "n": np.int64(3)},)},
    "threads": lambda _: {
        "rows": [{name: os.environ.get(name) for name in ("OMP_NUM_THREADS", "NUMBA_NUM_THREADS")}]
    },
    "no rows": lambda _: {"cost": 1.0},
    "bad rows": lambda _: {"rows": [1.0]},
}
