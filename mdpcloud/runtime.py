"""Decides by an index table: one file, standard library only, to be copied to where it is needed.

The table is what ``mdpcloud indices FILE`` prints, its JSON form. In state x, the jobs at each node
in service and waiting, one more job at node k has the price

    p_k = index_k[x_k] + charge_k,

where beyond the last entry the node refuses (infinite price), or the last entry goes on. The job
goes to the first node k in the order of ties with p_k <= min_j p_j + margin; where every price is
infinite it goes outside::

    import runtime

    table = runtime.load("indices.json")
    choose = table.policy("policy_improvement")
    choose((3, 0, 7))  # 0: outside; k + 1: node k
    table.scenario_sha256  # of the scenario that the table was made of, as sha256sum prints it

From a shell: ``python runtime.py indices.json policy_improvement 3 0 7``. Python 3.8 or newer.
"""

from __future__ import annotations

import json
import math
import re
import sys
from operator import getitem
from typing import Any, Callable, Dict, List, NoReturn, Sequence  # noqa: UP035

__all__ = ["Table", "TableError", "load", "loads"]

FORMAT = "mdpcloud index table"
VERSION = 1
AHEAD = 100  # states beyond the last entry that are looked up as fast as the others
INFINITY = float("inf")

Check = Callable[[Any, str], List[str]]  # noqa: UP006
"""From a value and its place to what is wrong with it."""


class TableError(ValueError):
    """A table or a state is wrong; the message says what, where and what is allowed."""


class Table:
    """An index table.

    Parameters
    ----------
    document : dict
        Content of the JSON file.

    Attributes
    ----------
    names, nodes : tuple of str
        The policies, and the nodes in the order of a state.
    scenario_sha256 : str or None
        Hash of the scenario file of which the table was made; nothing here compares it.

    Raises
    ------
    TableError
        If anything in it is wrong; the message names every mistake with its place.
    """

    def __init__(self, document: Any) -> None:
        _check_table(document)
        self.document: dict[str, Any] = document
        self.names: tuple[str, ...] = tuple(document["policies"])
        self.nodes: tuple[str, ...] = tuple(node["name"] for node in document["nodes"])
        self.scenario_sha256: str | None = document["scenario_sha256"]

    def policy(self, name: str) -> Callable[[Sequence[int]], int]:
        """Decider of a policy: from the jobs at each node to 0, outside, or k + 1, node k.

        It raises TableError for a state that is not one whole number >= 0 per node. Booleans and
        floats that are whole numbers count as such.

        Raises
        ------
        TableError
            If there is no such policy.
        """
        policies = self.document["policies"]
        if name not in policies:
            raise TableError(f"policy {name!r} is unknown; there are {', '.join(self.names)}")
        prices = [
            _Prices(column, node)
            for column, node in zip(policies[name], self.document["nodes"])  # noqa: B905
        ]
        return _decider(prices, self.document["ties"])


def load(path: Any) -> Table:
    """Read and check the table in a JSON file, given by its path.

    Raises
    ------
    TableError
        If it is no index table of this version, or anything in it is wrong; the message begins with
        the path.
    OSError
        If the file cannot be read.
    """
    with open(path, "rb") as file:
        content = file.read()
    try:
        return loads(content.decode("utf-8"))
    except UnicodeDecodeError as error:
        raise TableError(f"{path}: index table is not a text in UTF-8: {error}") from None
    except TableError as error:
        raise TableError(f"{path}: {error}") from None


def loads(text: str) -> Table:
    """Read and check the table in a JSON text; errors as those of `load`."""
    try:
        document = json.loads(text, object_pairs_hook=_once)
        json.dumps(document, ensure_ascii=False).encode("utf-8")  # half a surrogate pair fails
    except TableError:
        raise
    except (ValueError, RecursionError) as error:
        raise TableError(f"index table is not JSON, the only form read here: {error}") from None
    return Table(document)


# --- decisions ------------------------------------------------------------------------------------


class _Prices(Dict[Any, float]):  # noqa: UP006
    """Price of one more job at a node by the jobs there; what is no state is refused."""

    def __init__(self, column: Any, node: Any) -> None:
        prices = [index + float(node["charge"]) for index in map(float, column["index"])]
        self.beyond = prices[-1] if column["beyond"] == "last" else INFINITY
        self.node = node["name"]
        super().__init__(enumerate(prices + [self.beyond] * AHEAD))

    def __missing__(self, jobs: Any) -> float:
        """Price of a state that is not listed."""
        if _is_state(jobs):
            return self.beyond
        raise TableError(f"jobs at {self.node!r} must be a whole number >= 0, not {jobs!r}")


def _is_state(jobs: Any) -> bool:
    """Whether this is a whole number >= 0, of any type."""
    if type(jobs) is int:
        return jobs >= 0
    try:
        return bool(int(jobs) == jobs >= 0)
    except (TypeError, ValueError, OverflowError):
        return False


def _decider(prices: Sequence[_Prices], ties: Any) -> Callable[[Sequence[int]], int]:
    n, margin = len(prices), float(ties["margin"])
    order: tuple[int, ...] = tuple(ties["order"])

    def choose(jobs: Sequence[int]) -> int:
        try:
            if len(jobs) != n:
                _refuse(jobs, n)
            found = list(map(getitem, prices, jobs))
        except TypeError:
            _refuse(jobs, n)
        least = min(found)
        if least == INFINITY:
            return 0
        most = least + margin
        for k in order:
            if found[k] <= most:
                break
        return k + 1

    return choose


def _refuse(jobs: Any, n: int) -> NoReturn:
    raise TableError(f"a state must be a sequence of {n} whole numbers, one per node, not {jobs!r}")


# --- checks ---------------------------------------------------------------------------------------


def _once(pairs: Any) -> Any:
    found: dict[str, Any] = {}
    for key, value in pairs:
        if key in found:
            raise TableError(f"index table: the key {key!r} is given twice")
        found[key] = value
    return found


def _check_table(document: Any) -> None:
    if not isinstance(document, dict):
        raise TableError(f"index table must be a JSON object, not {type(document).__name__}")
    found = document.get("format"), document.get("version")
    if found != (FORMAT, VERSION) or type(found[1]) is not int:
        raise TableError(
            f"index table has format {found[0]!r}, version {found[1]!r}; this file reads "
            f"{FORMAT!r}, version {VERSION}"
        )
    mistakes = _TABLE(document, "") or _mistakes_between(document)
    if mistakes:
        raise TableError("index table: " + "; ".join(mistakes))


def _mistakes_between(document: Any) -> list[str]:
    """What is wrong between the fields, each of which is right."""
    names = [node["name"] for node in document["nodes"]]
    n, order, mistakes = len(names), document["ties"]["order"], []
    if sorted(order) != list(range(n)):
        mistakes.append(f"ties.order must have each of 0 ... {n - 1} once, not {order}")
    if len(set(names)) < n:
        mistakes.append(f"nodes have the names {', '.join(names)}; all must be different")
    for name, columns in document["policies"].items():
        if not name:
            mistakes.append("policies: the name of a policy must not be empty")
        if len(columns) != n:
            mistakes.append(
                f"policies.{name} must be {n} indices, one per node, not {len(columns)}"
            )
        for k, (column, node) in enumerate(zip(columns, document["nodes"])):  # noqa: B905
            place = f"policies.{name}[{k}].index"
            mistakes += _mistakes_of(column, node["charge"], document["ties"]["margin"], place)
    return mistakes


def _mistakes_of(column: Any, charge: Any, margin: Any, place: str) -> list[str]:
    """What is wrong with the index of one node."""
    charge, margin, mistakes = float(charge), float(margin), []
    if column["beyond"] == "last" and not column["index"]:
        mistakes.append(f"{place} must have an entry that goes on")
    if not all(math.isfinite(float(index) + charge + margin) for index in column["index"]):
        mistakes.append(f"{place} must be finite with charge and margin added")
    return mistakes


def _is(allowed: Callable[[Any], bool], words: str) -> Check:
    def check(value: Any, place: str) -> list[str]:
        return [] if allowed(value) else [f"{place} must be {words}, not {value!r}"]

    return check


def _is_finite(value: Any) -> bool:
    if not isinstance(value, (int, float)) or isinstance(value, bool):
        return False
    try:
        return math.isfinite(value)
    except OverflowError:
        return False


def _list_of(check: Check, least: int = 0) -> Check:
    def check_all(value: Any, place: str) -> list[str]:
        if not isinstance(value, list) or len(value) < least:
            return [f"{place} must be a list of at least {least}, not {value!r}"]
        return [wrong for i, one in enumerate(value) for wrong in check(one, f"{place}[{i}]")]

    return check_all


def _object(**fields: Check) -> Check:
    def check_all(value: Any, place: str) -> list[str]:
        if not isinstance(value, dict):
            return [f"{place} must be an object with {', '.join(fields)}, not {value!r}"]
        before = f"{place}." if place else ""
        wrong = [f"{before}{key} is not known" for key in value if key not in fields]
        for key, check in fields.items():
            wrong += (
                check(value[key], before + key) if key in value else [f"{before}{key} is missing"]
            )
        return wrong

    return check_all


def _mapping_to(check: Check) -> Check:
    def check_all(value: Any, place: str) -> list[str]:
        if not isinstance(value, dict) or not value:
            return [f"{place} must be an object with at least one entry, not {value!r}"]
        return [wrong for key, one in value.items() for wrong in check(one, f"{place}.{key}")]

    return check_all


def _one_of(*words: str) -> Check:
    return _is(lambda value: isinstance(value, str) and value in words, " or ".join(words))


def _whole(least: int) -> Check:
    return _is(lambda value: type(value) is int and value >= least, f"a whole number >= {least}")


def _is_digest(value: Any) -> bool:
    return value is None or (
        isinstance(value, str) and re.fullmatch("[0-9a-f]{64}", value) is not None
    )


_TEXT = _is(lambda value: isinstance(value, str) and value != "", "a text that is not empty")
_NUMBER = _is(_is_finite, "a finite number")
_TABLE = _object(
    format=_TEXT,
    version=_whole(1),
    generator=_TEXT,
    system=_TEXT,
    name=_TEXT,
    scenario_sha256=_is(_is_digest, "64 hexadecimal digits or null"),
    units=_object(time=_TEXT, cost=_TEXT, index=_TEXT),
    state=_TEXT,
    outside_cost=_NUMBER,
    ties=_object(
        rule=_one_of("first", "last", "fastest", "slowest"),
        order=_list_of(_whole(0), 1),
        margin=_is(lambda value: _is_finite(value) and value >= 0, "a finite number >= 0"),
    ),
    nodes=_list_of(_object(name=_TEXT, servers=_whole(1), charge=_NUMBER), 1),
    policies=_mapping_to(
        _list_of(_object(index=_list_of(_NUMBER), beyond=_one_of("refuse", "last")))
    ),
)


def _main(arguments: Sequence[str]) -> str:
    """Answer of the command line."""
    if len(arguments) < 2:
        raise TableError("usage: python runtime.py TABLE POLICY JOBS_AT_NODE_0 JOBS_AT_NODE_1 ...")
    path, name, *jobs = arguments
    try:
        table = load(path)
    except OSError as error:
        raise TableError(f"{path}: {error.strerror}") from None
    numbers = [int(text) if text.isdecimal() else text for text in jobs]
    return str(table.policy(name)(numbers))  # type: ignore[arg-type]


if __name__ == "__main__":
    try:
        print(_main(sys.argv[1:]))
    except ValueError as error:  # TableError, or a number of too many digits
        sys.exit(f"error: {error}")
