"""Index tables: what a dispatcher needs in order to follow index policies, as one JSON file.

In state x, the jobs at each node in service and waiting, one more job at node k has the price

    p_k = index_k[x_k] + charge_k,

where beyond the last entry the node refuses (infinite price), or the last entry goes on. The job
goes to the first node k in the order of ties with p_k <= min_j p_j + margin; where every price is
infinite it goes outside.
"""

from __future__ import annotations

import dataclasses
import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from math import isfinite
from typing import Annotated, Any, ClassVar, Literal

from annotated_types import Ge, MinLen, Unit

from mdpcloud.errors import InputError
from mdpcloud.parameters import validate

__all__ = [
    "FORMAT",
    "VERSION",
    "IndexTable",
    "NodeIndex",
    "TableNode",
    "TieOrder",
    "Units",
    "table_adapter",
]

FORMAT: Literal["mdpcloud index table"] = "mdpcloud index table"
VERSION: Literal[1] = 1
Text = Annotated[str, MinLen(1)]
SHA256 = re.compile(r"[0-9a-f]{64}")


@dataclass(frozen=True)
class Units:
    """Units of the table's numbers.

    Parameters
    ----------
    time, cost, index : str
        The index is a cost per unit of work, such as ``euro per job``.
    """

    time: Text
    cost: Text
    index: Text

    def __post_init__(self) -> None:
        validate(self)


@dataclass(frozen=True)
class TieOrder:
    """Which of several nodes of equal price takes the job.

    Parameters
    ----------
    rule : {"first", "last", "fastest", "slowest"}
        How the order was made.
    order : tuple of int
        Nodes in the order in which they win ties.
    margin : float
        Prices that are at most this far above the least one are equal to it; cost per job.
    """

    rule: Literal["first", "last", "fastest", "slowest"]
    order: Annotated[tuple[Annotated[int, Ge(0)], ...], MinLen(1)]
    margin: Annotated[float, Ge(0), Unit("cost")]

    def __post_init__(self) -> None:
        validate(self)
        if sorted(self.order) != list(range(len(self.order))):
            raise InputError(
                f"order must have each of 0 ... {len(self.order) - 1} once, not {list(self.order)}"
            )


@dataclass(frozen=True)
class TableNode:
    """A node.

    Parameters
    ----------
    name : str
    servers : int
        Number of servers; more jobs than that wait.
    charge : float
        Added to the index of each state; cost per job.
    """

    name: Text
    servers: Annotated[int, Ge(1)]
    charge: Annotated[float, Unit("cost")]

    def __post_init__(self) -> None:
        validate(self)


@dataclass(frozen=True)
class NodeIndex:
    """The index of a node under one policy.

    Parameters
    ----------
    index : tuple of float
        Of states 0, 1, ...; cost per job.
    beyond : {"refuse", "last"}
        Beyond the last entry the node refuses, or has the index of the last entry.
    """

    index: tuple[float, ...]
    beyond: Literal["refuse", "last"]

    def __post_init__(self) -> None:
        if not (_are_finite(self.index) and self.beyond in ("refuse", "last")):
            validate(self)  # takes long on long lists
        if self.beyond == "last" and not self.index:
            raise InputError("index must have an entry where beyond is 'last'")


@dataclass(frozen=True, kw_only=True)
class IndexTable:
    """Index policies of a system, for deployment; its JSON is exactly these fields.

    Parameters
    ----------
    format, version
        `FORMAT` and `VERSION`.
    generator : str
        The program that made the table.
    system, name : str
        The system, and the scenario.
    scenario_sha256 : str or None
        Hash of the scenario file's bytes in 64 hexadecimal digits; None where there was no file.
    units : Units
    state : str
        What the state of a node counts.
    outside_cost : float
        Cost of a job that no node takes.
    ties : TieOrder
    nodes : tuple of TableNode
    policies : mapping of str to tuple of NodeIndex
        Per policy one index per node.

    Raises
    ------
    InputError
        If anything is wrong; the message names the mistakes with their places.
    """

    format: Literal["mdpcloud index table"]
    version: Literal[1]
    generator: Text
    system: Text
    name: Text
    scenario_sha256: str | None
    units: Units
    state: Text
    outside_cost: Annotated[float, Unit("cost")]
    ties: TieOrder
    nodes: Annotated[tuple[TableNode, ...], MinLen(1)]
    policies: Annotated[Mapping[str, tuple[NodeIndex, ...]], MinLen(1)]

    __pydantic_config__: ClassVar = {"extra": "forbid", "strict": True, "allow_inf_nan": False}

    def __post_init__(self) -> None:
        validate(self)
        if mistakes := list(self._mistakes()):
            raise InputError("; ".join(mistakes))

    def _mistakes(self) -> Iterator[str]:
        """What is wrong between the fields."""
        digest = self.scenario_sha256
        if digest is not None and not SHA256.fullmatch(digest):
            yield f"scenario_sha256 must be 64 hexadecimal digits, not {digest!r}"
        n, names = len(self.nodes), [node.name for node in self.nodes]
        if len(self.ties.order) != n:
            yield f"ties.order has {len(self.ties.order)} nodes; there are {n}"
        for k, name in enumerate(names):
            if name in names[:k]:
                yield f"nodes[{k}].name is {name!r}, as nodes[{names.index(name)}] has it"
        for name, indices in self.policies.items():
            if not (isinstance(name, str) and name):
                yield f"policies: the name of a policy must not be empty, but is {name!r}"
            if not all(isinstance(one, NodeIndex) for one in indices) or len(indices) != n:
                yield f"policies.{name} must be {n} indices, one per node, not {indices!r}"
                continue
            for k, (one, node) in enumerate(zip(indices, self.nodes, strict=True)):
                if not all(isfinite(x + node.charge + self.ties.margin) for x in one.index):
                    yield f"policies.{name}[{k}].index must be finite with charge and margin added"

    @staticmethod
    def from_json(text: str) -> IndexTable:
        """Read and check a table.

        Parameters
        ----------
        text : str
            The content of a JSON file.

        Raises
        ------
        InputError
            If it is not JSON, has another format or version, or anything in it is wrong: the
            message names every mistake with its place and what is allowed.
        """
        from pydantic import ValidationError

        _check_format(_parsed(text))
        try:
            table: IndexTable = table_adapter().validate_json(text)
        except ValidationError as error:
            found = [_in_words(one) for one in error.errors() if not _is_consequence(one)]
            raise InputError("index table: " + "; ".join(found)) from None
        return table

    def to_json(self) -> str:
        """Write the table as JSON; `from_json` gives back an equal one."""
        return json.dumps(dataclasses.asdict(self), indent=1, allow_nan=False) + "\n"


def _are_finite(numbers: Any) -> bool:
    """Whether this is a tuple of finite floats."""
    return isinstance(numbers, tuple) and all(type(x) is float and isfinite(x) for x in numbers)


@cache
def table_adapter() -> Any:
    """Pydantic's reader of tables."""
    from pydantic import TypeAdapter

    return TypeAdapter(IndexTable)


def _is_consequence(error: Mapping[str, Any]) -> bool:
    """Whether a list is called too short only because its items are wrong."""
    return bool(error["type"] == "too_short" and error["input"])


def _in_words(error: Mapping[str, Any]) -> str:
    """One of pydantic's errors with its place, such as ``nodes[1].servers``."""
    steps = [f"[{step}]" if isinstance(step, int) else f".{step}" for step in error["loc"]]
    place, kind = "".join(steps).removeprefix("."), error["type"]
    if kind == "json_invalid":
        return str(error["msg"])
    if kind == "missing":
        return f"{place} is missing"
    if kind == "unexpected_keyword_argument":
        return f"{place} is not known"
    if kind == "value_error":
        return f"{place}: {error['ctx']['error']}".removeprefix(": ")
    return f"{place}: {error['msg']}, not {error['input']!r}"


def _parsed(text: str) -> Any:
    """Content of a JSON text in which no key is given twice."""
    try:
        return json.loads(text, object_pairs_hook=_once)
    except InputError:
        raise
    except (ValueError, RecursionError) as error:
        raise InputError(f"index table is not JSON: {error}") from None


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for key, value in pairs:
        if key in found:
            raise InputError(f"index table: the key {key!r} is given twice")
        found[key] = value
    return found


def _check_format(document: Any) -> None:
    if not isinstance(document, dict):
        raise InputError(f"index table must be a JSON object, not {type(document).__name__}")
    found = document.get("format"), document.get("version")
    if found != (FORMAT, VERSION) or type(found[1]) is not int:
        raise InputError(
            f"index table has format {found[0]!r}, version {found[1]!r}; this version of mdpcloud "
            f"reads {FORMAT!r}, version {VERSION}"
        )
