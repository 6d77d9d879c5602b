"""What decides a result: the content that names its record, and the sources that computed it.

The key of an instance is the sha256 of its canonical content: system, parameters, policies and
settings of the solver, not how long it may take, nor names and units unless a task of the user's
own may read them. It is the same on any machine and
wherever the files lie. The sources are the package's version, a hash of the package's modules that
can change a number, and hashes of the user's own system, task and rules with the files that they
come from (`mdpcloud.study.records.own`); they stand in the record, so that one made by other
sources is noticed.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
import posixpath
from collections.abc import Hashable, Iterator, Mapping
from functools import cache, lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import mdpcloud
from mdpcloud.errors import InputError
from mdpcloud.model.limit import limit_of
from mdpcloud.plugins import is_reference
from mdpcloud.study.records.hidden import hidden_in
from mdpcloud.study.records.own import hash_of, identity_of
from mdpcloud.study.records.own_parts import ATOMS
from mdpcloud.study.records.plain import field_names, name_of_object, plain

if TYPE_CHECKING:
    from mdpcloud.scenario import Scenario

__all__ = ["canonical", "classes_of", "content_of", "key_of", "package_hash", "sources_of"]

PACKAGE = Path(mdpcloud.__file__).resolve().parent
LIMITS = ("time_limit", "threads", "n_jobs")  # settings that change no result
NO_NUMBERS = ("cli", "plots")  # parts of the package that compute no result
STUDY = (  # of studies, what does
    "tasks.py",
    "index_tasks.py",
    "running/work.py",
    "running/time_limits.py",
)


def content_of(scenario: Scenario, task: str) -> dict[str, Any]:
    """What decides the result of a task on a scenario, as plain data.

    Raises
    ------
    InputError
        When a parameter or a rule made in Python holds what cannot be written as data.
    """
    found = {
        "task": _shortest(task),
        "system": _shortest(scenario.system_name),
        "parameters": plain(scenario.system, "parameters"),
        "policies": _policies(scenario),
        "ties": scenario.compare.ties,
        "solve": _solve(scenario.solve),
        "simulate": _known(scenario.simulate, "simulate"),
    }
    if hidden := hidden_in(scenario.system, "parameters"):
        found["hidden"] = hidden
    if is_reference(task):  # it may look at anything
        found |= {name: getattr(scenario, name) for name in ("name", "time_unit", "cost_unit")}
        if scenario.figure is not None:
            found["figure"] = plain(scenario.figure, "figure")
    return found


def _shortest(name: str) -> str:
    """A name as it is, or ``file.py:name`` with the shortest path that is the same."""
    place, _, end = name.replace("\\", "/").rpartition(":")
    return f"{posixpath.normpath(place)}:{end}" if place.endswith(".py") else name


def _policies(scenario: Scenario) -> list[list[str]] | None:
    """Name of each policy and the text that names its rule, in order, which results keep."""
    policies = scenario.compare.policies
    if policies is None:
        return None
    texts = {label: text for text, label in scenario.compare.spellings.items()}
    return [[label, _rule(label, what, texts.get(label))] for label, what in policies.items()]


def _rule(label: str, what: Any, spelt: str | None) -> str:
    if isinstance(what, str) or spelt is not None:
        return what if isinstance(what, str) else _shortest(str(spelt))
    try:
        return identity_of(what)
    except InputError as error:
        raise InputError(f"policy {label!r}: {error}") from None


def _solve(settings: Any) -> dict[str, Any]:
    if settings.constraints is None:
        return {**_known(settings, "solve"), "constraints": {}}
    found = _settings(settings, "solve")
    limits = {name: limit_of(one, name) for name, one in settings.constraints.items()}
    found["constraints"] = {
        name: [None if one is None else float(one) for one in (limit.at_least, limit.at_most)]
        for name, limit in limits.items()
    }
    return found


@lru_cache(maxsize=64)  # all instances of a study have the same
def _known(settings: Hashable, name: str) -> dict[str, Any]:
    return _settings(settings, name)


def _settings(settings: Any, name: str) -> dict[str, Any]:
    """A table of settings, without what changes no result."""
    found: dict[str, Any] = plain(settings, name)
    return {name: value for name, value in found.items() if name not in (*LIMITS, "class")}


def canonical(content: Any) -> str:
    """The one way to write plain data as JSON: sorted keys, no blanks, shortest numbers.

    Raises
    ------
    InputError
        When JSON cannot hold it; the message tells where.

    Examples
    --------
    >>> canonical({"b": (1, 2.0), "a": None})
    '{"a":null,"b":[1,2.0]}'
    """
    try:
        return json.dumps(content, sort_keys=True, separators=(",", ":"), allow_nan=False)
    except (TypeError, ValueError):
        return canonical(plain(content, "content"))


def key_of(content: Mapping[str, Any]) -> str:
    """Sha256 of a content, in hexadecimal digits."""
    return hashlib.sha256(canonical(content).encode()).hexdigest()


# --- sources --------------------------------------------------------------------------------------


def sources_of(scenario: Scenario, task: Any = None) -> dict[str, Any]:
    """Version and hash of the package, and the hash of each object of the user's own.

    Raises
    ------
    InputError
        When a file of the user's own has changed since this process loaded it.
    """
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
        if _counts(place.parts):
            digest.update(f"{place.as_posix()} {_file_hash(path)}\n".encode())
    return digest.hexdigest()[:16]


def _counts(place: tuple[str, ...]) -> bool:
    """Whether a module of the package can change a number."""
    return place[0] not in NO_NUMBERS and (place[0] != "study" or "/".join(place[1:]) in STUDY)


def _file_hash(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def _own(scenario: Scenario, task: Any) -> Iterator[tuple[str, str]]:
    """Name and hash of the user's own system, task and rules."""
    rules = (scenario.compare.policies or {}).items()
    texts = {label: text for text, label in scenario.compare.spellings.items()}
    classes = sorted(classes_of(scenario.system), key=name_of_object)
    objects: dict[str, tuple[Any, str]] = {
        "system": (classes, scenario.system_name),
        "task": (task, getattr(task, "__name__", "")),
        **{
            f"policy {name}": (rule, texts.get(name, ""))
            for name, rule in rules
            if not isinstance(rule, str)
        },
    }
    for name, (what, reference) in objects.items():
        found = hash_of(what, reference)
        if found is not None:
            yield name, found


def classes_of(value: Any) -> set[type[Any]]:
    """Classes of a dataclass and of all that it holds."""
    if type(value) in ATOMS:
        return set()
    if isinstance(value, Mapping):
        value = list(value.values())
    if isinstance(value, list | tuple):
        return {kind for one in value for kind in classes_of(one)}
    if not dataclasses.is_dataclass(value):
        return set()
    parts = [getattr(value, name) for name in field_names(type(value))]  # type: ignore[arg-type]
    return {type(value)} | classes_of(parts)
