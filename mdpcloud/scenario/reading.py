"""Reading a scenario file (TOML, format 1), with every mistake reported at once."""

from __future__ import annotations

import hashlib
import json
import tomllib
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from os import PathLike
from pathlib import Path
from typing import Annotated, Any, NoReturn

from annotated_types import MinLen

from mdpcloud.errors import InputError
from mdpcloud.plugins import did_you_mean, is_reference, load
from mdpcloud.policies.family import BEST, families_of
from mdpcloud.scenario.mistakes import Mistake, in_words
from mdpcloud.scenario.settings import (
    CompareSettings,
    FigureSettings,
    Rule,
    Scenario,
    SimulateSettings,
    SolveSettings,
    Ties,
)
from mdpcloud.systems.registry import find_system, policy_names

__all__ = ["from_document", "parse", "read_scenario"]

FORMAT = 1
Text = Annotated[str, MinLen(1)]


@dataclass(frozen=True)
class _CompareTable:
    policies: Annotated[tuple[Text, ...], MinLen(1)] | None = None
    ties: Ties = "fastest"


def read_scenario(path: str | PathLike[str]) -> Scenario:
    """Read and check a scenario file.

    Parameters
    ----------
    path : path-like
        The file; paths of the user's own rules and systems in it are relative to its folder.

    Returns
    -------
    Scenario

    Raises
    ------
    InputError
        If the file cannot be read, is not TOML or has another format, or anything in it is wrong:
        the message names every mistake with its place and what is allowed.
    """
    file = Path(path)
    content, document = parse(file)
    scenario, mistakes = from_document(document, file, hashlib.sha256(content).hexdigest())
    if scenario is None:
        _refuse(file, mistakes)
    return scenario


def from_document(
    document: Mapping[str, Any], file: Path, sha256: str = "", rules: Path | None = None
) -> tuple[Scenario | None, list[Mistake]]:
    """The scenario of a document, or None and everything that is wrong with it.

    Parameters
    ----------
    document : mapping
        What a file holds, as TOML reads it.
    file : Path
        Where it stands; its stem is the name of a scenario that has none.
    sha256 : str
        Of the file's bytes.
    rules : Path, optional
        Folder that the files of rules are relative to; by default that of the file.

    Raises
    ------
    InputError
        If it has another format.
    """
    _check_format(document, file)
    mistakes: list[Mistake] = []
    system = _system_class(document, file.parent, mistakes)
    values = _validated(document, system, mistakes)
    listed = _listed(document)
    known_names = _known_names(system, getattr(values, "parameters", None))
    policies = _policies(listed, known_names, rules or file.parent, mistakes)
    if mistakes or values is None:
        return None, mistakes
    return Scenario(
        format=values.format,
        system=values.parameters,
        system_name=values.system,
        name=values.name or file.stem,
        time_unit=values.time_unit,
        cost_unit=values.cost_unit,
        solve=values.solve,
        compare=CompareSettings(policies or None, values.compare.ties, _spellings(listed)),
        simulate=values.simulate,
        figure=values.figure,
        path=file,
        sha256=sha256,
    ), []


def parse(file: Path, what: str = "scenario") -> tuple[bytes, dict[str, Any]]:
    """Bytes and content of a TOML file.

    Raises
    ------
    InputError
        If it cannot be read, or is not TOML; the message calls it by ``what`` it is.
    """
    try:
        content = file.read_bytes()
    except IsADirectoryError:
        raise InputError(f"{file} is a folder; a {what} is a TOML file") from None
    except OSError as error:
        raise InputError(f"{what} {file} cannot be read: {error.strerror}") from None
    try:
        return content, tomllib.loads(content.decode("utf-8"))
    except UnicodeDecodeError as error:
        raise InputError(
            f"{what} {file} is not a text in UTF-8: byte {error.start} is {error.reason}"
        ) from None
    except tomllib.TOMLDecodeError as error:
        raise InputError(f"{what} {file} is not TOML: {error}") from None


def _check_format(document: Mapping[str, Any], file: Path) -> None:
    found = document.get("format", FORMAT)
    if type(found) is not int or found != FORMAT:
        raise InputError(
            f"scenario {file} has format {found!r}; this version of mdpcloud reads format {FORMAT}"
        )


def _system_class(
    document: Mapping[str, Any], folder: Path, mistakes: list[Mistake]
) -> type[Any] | None:
    name = document.get("system")
    if not isinstance(name, str) or not name:
        return None
    try:
        return find_system(name, folder)
    except InputError as error:
        mistakes.append(("system", f"system: {error}"))
        return None


def _validated(
    document: Mapping[str, Any], system: type[Any] | None, mistakes: list[Mistake]
) -> Any:
    """Checked content of a document, None if there are mistakes."""
    from pydantic import ValidationError
    from pydantic.errors import PydanticUserError

    text = json.dumps({"parameters": {}, **document}, default=str)
    try:
        return _model_of(system).model_validate_json(text)  # type: ignore[arg-type]
    except ValidationError as error:
        mistakes.extend(in_words(error.errors(), _keys(system)))
    except PydanticUserError as error:
        reason = str(error).partition("\n")[0]
        mistakes.append(("system", f"system: its fields cannot be read from a file: {reason}"))
    return None


def _keys(system: Any) -> dict[str, Any]:
    """Keys of a scenario of a system, with their annotations."""
    return {
        "format": int,
        "system": Text,
        "name": Text,
        "time_unit": Text,
        "cost_unit": Text,
        "parameters": Any if system is None else system,
        "solve": SolveSettings,
        "compare": _CompareTable,
        "simulate": SimulateSettings,
        "figure": FigureSettings | None,
    }


@lru_cache(maxsize=32)
def _model_of(system: Hashable) -> Any:
    """What checks scenarios of a system; made once, since that takes a hundred times as long."""
    from pydantic import ConfigDict, create_model

    defaults: dict[str, Any] = {
        "name": "",
        "time_unit": "time unit",
        "cost_unit": "cost unit",
        "solve": SolveSettings(),
        "compare": _CompareTable(),
        "simulate": SimulateSettings(),
        "figure": None,
    }
    keys = _keys(system)
    fields: dict[str, Any] = {key: (hint, defaults.get(key, ...)) for key, hint in keys.items()}
    strict = ConfigDict(
        extra="forbid", strict=True, allow_inf_nan=False, arbitrary_types_allowed=True
    )
    return create_model("Scenario", __config__=strict, **fields)


def _listed(document: Mapping[str, Any]) -> dict[int, str]:
    """Policies that the file lists, by their places, whatever else is wrong with it."""
    table = document.get("compare")
    listed = table.get("policies") if isinstance(table, dict) else None
    known = enumerate(listed if isinstance(listed, list) else ())
    return {place: name for place, name in known if isinstance(name, str)}


def _spellings(names: Mapping[int, str]) -> dict[str, str]:
    """Name of each policy as the file spells it, to the name that results have."""
    return {name: _short(name, names.values()) for name in names.values()}


def _policies(
    names: Mapping[int, str], known: _Names, folder: Path, mistakes: list[Mistake]
) -> dict[str, str | Rule]:
    """Rule or name of each policy, by a name that is short where it can be."""
    found: dict[str, str | Rule] = {}
    for place, name in names.items():
        label = _short(name, names.values())
        try:
            if label in found:
                raise InputError(f"{name!r} is given twice")
            found[label] = _policy(name, known, folder)
        except InputError as error:
            where = f"compare.policies[{place}]"
            mistakes.append((where, f"{where}: {error}"))
    return found


def _short(name: str, names: Iterable[str]) -> str:
    """The rule's own name, or the whole reference where another policy has that name too."""
    ends = [one.rpartition(":")[2] for one in {*names}]
    end = name.rpartition(":")[2]
    return end if ends.count(end) == 1 else name


@dataclass(frozen=True)
class _Names:
    """Names of the system's policies, and of the best members of its families.

    None where they are not known, since the system is not, or its parameters are wrong.
    """

    policies: Sequence[str] | None
    best: Sequence[str] | None

    def has(self, name: str) -> bool:
        """Whether there is such a policy, as far as is known."""
        names = self.best if name.startswith(BEST) else self.policies
        return names is None or name in names


def _known_names(system: type[Any] | None, parameters: Any) -> _Names:
    if system is None:
        return _Names(None, None)
    if not isinstance(parameters, system):
        return _Names(policy_names(system), None if hasattr(system, "families") else ())
    return _Names(policy_names(system), tuple(families_of(parameters)))


def _policy(name: str, known: _Names, folder: Path) -> str | Rule:
    if is_reference(name):
        rule = load(name, folder)
        if not (callable(rule) or isinstance(rule, Mapping)):
            raise InputError(
                f"{name!r} must be a function of the state, or a mapping from decisions to such "
                f"functions; it is {rule!r}"
            )
        return rule
    if not known.has(name):
        names = [*(known.policies or ()), *(known.best or ())]
        there = f"; there are {', '.join(names)}" if names else "; it has none of its own"
        raise InputError(f"the system has no policy {name!r}{did_you_mean(name, names) or there}")
    return name


def _refuse(file: Path, mistakes: Sequence[Mistake]) -> NoReturn:
    count = f"{len(mistakes)} mistakes" if len(mistakes) > 1 else "a mistake"
    lines = "\n".join(f"  {message}" for _, message in mistakes)
    raise InputError(f"scenario {file} has {count}:\n{lines}")
