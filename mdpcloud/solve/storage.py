"""Solutions in one file: arrays in npz, the rest in a JSON header inside it."""

from __future__ import annotations

import json
import zipfile
from dataclasses import asdict, fields
from pathlib import Path
from typing import Any

import numpy as np

from mdpcloud.criteria import AverageCost, Criterion, Discounted, FiniteHorizon, TotalCost
from mdpcloud.errors import InputError
from mdpcloud.model.policy import Policy
from mdpcloud.model.timed_policy import Changes, TimedPolicy
from mdpcloud.solve.constrained.constrained import ConstrainedSolution, RandomisedState
from mdpcloud.solve.limits import Status
from mdpcloud.solve.result import Evaluation, Solution

__all__ = ["load_solution", "save"]

FORMAT = 1
_KINDS: dict[str, type] = {
    "solution": Solution,
    "evaluation": Evaluation,
    "constrained": ConstrainedSolution,
}
_CRITERIA: dict[str, type] = {
    "average": AverageCost,
    "discounted": Discounted,
    "finite_horizon": FiniteHorizon,
    "total": TotalCost,
}


def save(result: Any, path: str | Path) -> None:
    """Write a `Solution` or `Evaluation`; the file gets exactly the name given.

    Raises
    ------
    InputError
        When the criterion holds a function.
    """
    measures = getattr(result, "measures", {})
    policy = result.policy
    header = {
        "format": FORMAT,
        "kind": _name_of(result, _KINDS),
        "criterion": [_name_of(result.criterion, _CRITERIA), _settings(result.criterion)],
        "status": result.status.name,
        "iterations": result.iterations,
        "solver": result.solver,
        "reason": result.reason,
        "elapsed": result.elapsed,
        "names": {name: list(actions) for name, actions in policy.names.items()},
        "shape": list(policy.shape),
        "horizon": getattr(policy, "horizon", None),
        "measures": list(measures),
        "limits": _limits(result),
    }
    arrays = {
        "gains": result.gains,
        "values": result.values,
        "lower": np.asarray(result.bounds[0]),
        "upper": np.asarray(result.bounds[1]),
        **{f"policy {k}": array for k, array in enumerate(policy.actions.values())},
        **{
            f"{part} {k}": array
            for k, changes in enumerate(getattr(policy, "changes", {}).values())
            for part, array in changes._asdict().items()
        },
        **{f"measure {k}": np.array(bounds) for k, bounds in enumerate(measures.values())},
    }
    with Path(path).open("wb") as file:
        np.savez(file, header=np.array(json.dumps(header)), **arrays)


def _name_of(value: Any, kinds: dict[str, type]) -> str:
    return next(name for name, kind in kinds.items() if type(value) is kind)


def _settings(criterion: Criterion) -> dict[str, Any]:
    """The fields of a criterion, arrays as lists."""
    settings = {field.name: getattr(criterion, field.name) for field in fields(criterion)}
    for name, value in settings.items():
        if callable(value):
            raise InputError(
                f"a {type(criterion).__name__} whose {name} is a function cannot be saved; give "
                "an array"
            )
        if value is not None:
            settings[name] = np.asarray(value).tolist()
    return settings


def _limits(result: Any) -> dict[str, Any]:
    """What a constrained solution says of its limits."""
    if not isinstance(result, ConstrainedSolution):
        return {}
    return {
        "multipliers": dict(result.multipliers),
        "slack": dict(result.slack),
        "randomised": [asdict(state) for state in result.randomised],
    }


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
    lower, upper = stored["lower"], stored["upper"]
    kind, settings = header["criterion"]
    common = {
        "gains": stored["gains"],
        "bounds": _bounds(lower, upper),
        "values": stored["values"],
        "policy": _policy(header, stored),
        "status": Status[header["status"]],
        "iterations": header["iterations"],
        "solver": header["solver"],
        "reason": header.get("reason", ""),
        "elapsed": header["elapsed"],
        "criterion": _CRITERIA[kind](**settings),
    }
    if header["kind"] != "solution":
        common["measures"] = {
            name: _bounds(*stored[f"measure {k}"]) for k, name in enumerate(header["measures"])
        }
    if header["kind"] == "constrained":
        limits = header["limits"]
        randomised = tuple(RandomisedState(**state) for state in limits.pop("randomised"))
        common.update(limits, randomised=randomised)
    return _KINDS[header["kind"]](**common)


def _policy(header: dict[str, Any], stored: dict[str, Any]) -> Policy | TimedPolicy:
    names = {name: tuple(actions) for name, actions in header["names"].items()}
    actions = {name: stored[f"policy {k}"] for k, name in enumerate(names)}
    policy = Policy(actions, names, tuple(header["shape"]))
    if header.get("horizon") is None:
        return policy
    changes = {
        name: Changes(*(stored[f"{part} {k}"] for part in Changes._fields))
        for k, name in enumerate(names)
    }
    return TimedPolicy(policy, changes, header["horizon"])


def _bounds(lower: Any, upper: Any) -> tuple[Any, Any]:
    """Two arrays (n,), or two plain numbers."""
    return (lower, upper) if np.ndim(lower) else (float(lower), float(upper))
