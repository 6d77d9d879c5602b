"""What decides a result: the content that names its record, and the sources that computed it.

The key of an instance is the sha256 of its canonical content: system, parameters, policies and
settings of the solver, not names, units or how long it may take. The sources are the package's
version, a hash of the package's modules that can change a number, and hashes of the user's own
files; they stand in the record, so that one made by other sources is noticed.
"""

from __future__ import annotations

import dataclasses
import hashlib
import inspect
import json
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import mdpcloud

if TYPE_CHECKING:
    from mdpcloud.scenario import Scenario

__all__ = ["canonical", "content_of", "key_of", "package_hash", "sources_of"]

PACKAGE = Path(mdpcloud.__file__).resolve().parent
NO_NUMBERS = ("cli", "plots", "study")  # parts of the package that compute no result
LIMITS = ("time_limit", "threads", "n_jobs", "paths")  # settings that change no result


def content_of(scenario: Scenario, task: str) -> dict[str, Any]:
    """What decides the result of a task on a scenario, as plain data."""
    policies = scenario.compare.policies
    return {
        "task": task,
        "system": scenario.system_name,
        "parameters": scenario.parameters,
        "policies": None if policies is None else _spelt(scenario, policies),
        "ties": scenario.compare.ties,
        "solve": _without_limits(scenario.solve),
        "simulate": _without_limits(scenario.simulate),
    }


def _spelt(scenario: Scenario, policies: Mapping[str, Any]) -> dict[str, str]:
    """Name of each policy to the text that names its rule."""
    texts = {label: text for text, label in scenario.compare.spellings.items()}
    return {
        label: texts.get(label, what if isinstance(what, str) else _reference(what))
        for label, what in policies.items()
    }


def _reference(what: Any) -> str:
    """Text that names a rule made in Python."""
    kind = what if hasattr(what, "__qualname__") else type(what)
    return f"{kind.__module__}:{kind.__qualname__}"


def _without_limits(settings: Any) -> dict[str, Any]:
    found = dataclasses.asdict(settings)
    return {name: value for name, value in found.items() if name not in LIMITS}


def canonical(content: Mapping[str, Any]) -> str:
    """The one way to write plain data as JSON: sorted keys, no blanks, shortest numbers.

    Examples
    --------
    >>> canonical({"b": (1, 2.0), "a": None})
    '{"a":null,"b":[1,2.0]}'
    """
    return json.dumps(content, sort_keys=True, separators=(",", ":"), allow_nan=False, default=str)


def key_of(content: Mapping[str, Any]) -> str:
    """Sha256 of a content, in hexadecimal digits."""
    return hashlib.sha256(canonical(content).encode()).hexdigest()


# --- sources --------------------------------------------------------------------------------------


def sources_of(scenario: Scenario, task: Any = None) -> dict[str, Any]:
    """Version and hash of the package, and the hash of each object of the user's own."""
    return {
        "mdpcloud": mdpcloud.__version__,
        "package": package_hash(),
        "own": dict(_own(scenario, task)),
    }


@cache
def package_hash() -> str:
    """Hash of the package's modules that can change a number (16 hexadecimal digits)."""
    digest = hashlib.sha256()
    for path in sorted(PACKAGE.rglob("*.py")):
        place = path.relative_to(PACKAGE)
        if place.parts[0] not in NO_NUMBERS:
            digest.update(place.as_posix().encode())
            digest.update(path.read_bytes())
    return digest.hexdigest()[:16]


def _own(scenario: Scenario, task: Any) -> Iterator[tuple[str, str]]:
    """Name and hash of the user's own system, task and rules."""
    yield from _hashed("system", type(scenario.system))
    if task is not None:
        yield from _hashed("task", task)
    for label, what in (scenario.compare.policies or {}).items():
        if not isinstance(what, str):
            yield from _hashed(f"policy {label}", what)


def _hashed(name: str, what: Any) -> Iterator[tuple[str, str]]:
    module = inspect.getmodule(what if hasattr(what, "__module__") else type(what))
    if module is None or not module.__name__.startswith("mdpcloud."):
        yield name, _hash(what, getattr(module, "__file__", None))


def _hash(what: Any, file: str | None) -> str:
    """Hash of an object and of the file that it comes from: both may change what it does."""
    from joblib.externals import cloudpickle

    digest = hashlib.sha256(cloudpickle.dumps(what))
    if file is not None:
        digest.update(Path(file).read_bytes())
    return digest.hexdigest()[:16]
