"""Solutions in one file: arrays in npz, the rest in a JSON header inside it."""

from __future__ import annotations

import json
import zipfile
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np

from mdpcloud.errors import InputError
from mdpcloud.model.policy import Policy
from mdpcloud.solve.criteria import AverageCost, Discounted
from mdpcloud.solve.limits import Status
from mdpcloud.solve.result import Evaluation, Solution

__all__ = ["load_solution", "save"]

FORMAT = 1
_KINDS = {"solution": Solution, "evaluation": Evaluation}
_CRITERIA = {"average": AverageCost, "discounted": Discounted}


def save(result: Any, path: str | Path) -> None:
    """Write a `Solution` or `Evaluation`; the file gets exactly the name given."""
    average = isinstance(result.criterion, AverageCost)
    measures = result.measures if isinstance(result, Evaluation) else {}
    header = {
        "format": FORMAT,
        "kind": "evaluation" if isinstance(result, Evaluation) else "solution",
        "criterion": ["average" if average else "discounted", asdict(result.criterion)],
        "status": result.status.name,
        "iterations": result.iterations,
        "solver": result.solver,
        "elapsed": result.elapsed,
        "names": {name: list(actions) for name, actions in result.policy.names.items()},
        "shape": list(result.policy.shape),
        "measures": list(measures),
    }
    arrays = {
        "gains": result.gains,
        "values": result.values,
        "lower": np.asarray(result.bounds[0]),
        "upper": np.asarray(result.bounds[1]),
        **{f"policy {k}": array for k, array in enumerate(result.policy.actions.values())},
        **{f"measure {k}": np.array(bounds) for k, bounds in enumerate(measures.values())},
    }
    with Path(path).open("wb") as file:
        np.savez(file, header=np.array(json.dumps(header)), **arrays)


def load_solution(path: str | Path) -> Any:
    """Read what `save` wrote.

    Raises
    ------
    InputError
        When the file is missing, is no such file, or has an unknown format.
    """
    if not Path(path).exists():
        raise InputError(f"{path}: no such file")
    if not zipfile.is_zipfile(path):
        raise InputError(f"{path} is not a saved solution: it is no npz file")
    try:
        with np.load(path, allow_pickle=False) as file:
            stored = {name: file[name] for name in file.files}
        header = dict(json.loads(str(stored["header"])))
    except (OSError, ValueError, TypeError, KeyError, zipfile.BadZipFile) as error:
        raise InputError(f"{path} is not a saved solution ({error})") from None
    if header.get("format") != FORMAT:
        raise InputError(f"{path} has format {header.get('format')!r}; this version reads {FORMAT}")
    try:
        return _restored(header, stored)
    except (KeyError, TypeError, ValueError) as error:
        raise InputError(f"{path} is damaged ({error!r})") from None


def _restored(header: dict[str, Any], stored: dict[str, Any]) -> Any:
    names = {name: tuple(actions) for name, actions in header["names"].items()}
    actions = {name: stored[f"policy {k}"] for k, name in enumerate(names)}
    lower, upper = stored["lower"], stored["upper"]
    kind, settings = header["criterion"]
    common = {
        "gains": stored["gains"],
        "bounds": _bounds(lower, upper),
        "values": stored["values"],
        "policy": Policy(actions, names, tuple(header["shape"])),
        "status": Status[header["status"]],
        "iterations": header["iterations"],
        "solver": header["solver"],
        "elapsed": header["elapsed"],
        "criterion": _CRITERIA[kind](**settings),
    }
    if header["kind"] == "evaluation":
        common["measures"] = {
            name: _bounds(*stored[f"measure {k}"]) for k, name in enumerate(header["measures"])
        }
    return _KINDS[header["kind"]](**common)


def _bounds(lower: Any, upper: Any) -> tuple[Any, Any]:
    """Two arrays (n,), or two plain numbers."""
    return (lower, upper) if np.ndim(lower) else (float(lower), float(upper))
