"""A commented scenario to start from, written from the annotations and docstring of a system."""

from __future__ import annotations

import dataclasses
import inspect
import json
import re
import textwrap
import types
from collections.abc import Iterator
from typing import Annotated, Any, Literal, Union, get_args, get_origin

from mdpcloud.errors import InputError
from mdpcloud.model.model import Model
from mdpcloud.parameters import bounds, describe, hints, tagged, unit_of
from mdpcloud.plugins import is_reference
from mdpcloud.policies.family import best_members
from mdpcloud.systems.registry import find_system, policy_names, summary_of

__all__ = ["new_scenario"]

TIME_UNIT = "minute"
COST_UNIT = "service fee"
OWN_COST_UNIT = "euro"  # of systems of the user's own
CAP = 40
WIDEST = 100  # characters of a comment
LONG = 72  # characters of a value of several rows
MOST_NAMES = 12  # lines on decisions and their actions
OPTIONAL = 100  # an optional number that is left out, if its limits allow this

_HEAD = """\
# A scenario for mdpcloud; run it with: mdpcloud compare FILE
# {summary}
format = 1
system = {system}
name = {name}
time_unit = "{time}"          # rates below are per {time}
cost_unit = "{cost}"{space:{gap}}# costs below are in {cost}s
"""

_TAIL = """

[solve]
tolerance = 1e-8              # largest difference of the certified bounds, relative to the optimum
# criterion = "average_cost"  # or {{ discount_rate = 0.1 }}, 1/minute (solve only)
# solver = "policy_iteration" # or "value_iteration", "linear_programming"; by default by size
# threads = 1
# time_limit = 60.0           # seconds; then it stops with the bounds so far
{caps}
# [solve.constraints]         # solve only: limits of long-run averages of the model's measures
# "{rate}" = 0.02{gap}# at most; of one measure, or the ratio of two
# "{mean}" = {{ at_least = 0.1 }}

[compare]
# Your own rule, a function of the state in a file beside this one: "my_rules.py:my_rule"; where
# there are several decisions, a mapping from each of them to such a function
{names}{policies}
{ties}
# [simulate]                  # for simulate, and for compare where there are too many states
# events = 4_000_000          # of each policy; or time = 1000.0, {time}s of each replication
# half_width = 0.01           # {cost}s per {time}; until the 95 % interval is so narrow
# warm_up = "mser"            # {time}s left out at the beginning, or found by MSER-5
# replications = 8
# seed = 0                    # equal seeds give equal results
# n_jobs = 1                  # replications that run at the same time
# time_limit = 60.0           # seconds for all policies; then it stops with what is known
# paths = {paths:19} # state variables whose paths simulate --plots draws
"""

_CAPS = """\
# caps = {:20} # {}; by default the system chooses
"""
_TIES = """\
ties = "fastest"              # which of equal indices: "first", "last", "fastest", "slowest"
"""
_FIGURE = """
# [figure]                    # for figure: "sweep", "scales", "fluid", "family" or "best"
# kind = "scales"
# scales = {}
# measures = [{}]
"""


def new_scenario(system: str) -> str:
    """Text of a commented scenario for a system.

    Values are those of the system's ``example()``, where it has one, else defaults or the simplest
    values allowed.

    Parameters
    ----------
    system : str
        Name of the system, or ``file.py:Class``.

    Raises
    ------
    InputError
        If there is no such system.
    """
    cls = find_system(system)
    example = cls.example() if hasattr(cls, "example") else None
    names = (*policy_names(cls), *best_members(example))
    short = system.rpartition(":")[2]
    cost = OWN_COST_UNIT if is_reference(system) else COST_UNIT
    head = _HEAD.format(
        summary=summary_of(cls),
        system=json.dumps(system),
        name=json.dumps(f"my {short}"),
        time=TIME_UNIT,
        cost=cost,
        space="",
        gap=max(16 - len(cost), 1),
    )
    policies = ("" if names else "# ") + f"policies = {_toml(names or ('my_rules.py:my_rule',))}"
    rate, mean = _measures(example)
    tail = _TAIL.format(
        policies=policies,
        names=_names(example),
        caps="" if _is_finite(cls) else _CAPS.format(*_caps(example)),
        ties="" if _is_finite(cls) else _TIES,
        time=TIME_UNIT,
        cost=cost,
        rate=rate,
        gap=" " * max(40 - len(rate), 1),
        mean=mean,
        paths=_toml((_coordinate(example),)),
    )
    figure = _FIGURE.format(_scales(example), _probability(example)) if _is_finite(cls) else ""
    return head + "\n".join(_table("parameters", cls, example, cost)) + tail + figure


def _is_finite(cls: type[Any]) -> bool:
    """Whether a system has no caps to be chosen, and no policies with ties."""
    return hasattr(cls, "own_policy")


def _scales(example: Any) -> str:
    """Some scales, of which the example's is the first."""
    first = getattr(example, "scale", 1.0)
    return _toml((first, 2.0 * first, 4.0 * first))


def _probability(example: Any) -> str:
    """Name of the probability of loss of the first class."""
    rates = getattr(example, "arrival_rates", ())
    return _toml("blocking[0][0]" if rates and isinstance(rates[0], tuple) else "blocking[0]")


def _measures(example: Any) -> tuple[str, str]:
    """Names of two measures of a system's model, or the ratio of two."""
    model = _model(example)
    usual = ("abandonment_rate[0]", "routing_rate[0]", "mean_jobs")
    if model is None or not model.measures or {*usual} <= {*model.measures}:
        return " / ".join(usual[:2]), usual[2]
    names = [*model.measures]
    return names[0], names[-1]


def _names(example: Any) -> str:
    """Comments on what a rule sees and decides: coordinates, and the actions of each decision."""
    model = _model(example)
    if model is None:
        return ""
    lines = _comment(f"State x: {', '.join(_coordinates(model))}")
    for term in model.events:
        actions = [one.name for one in getattr(term, "actions", ()) or getattr(term, "modes", ())]
        if len(actions) > 1:
            lines += _comment(f"Decision {_toml(term.name)}: {', '.join(map(_toml, actions))}")
    return "".join(f"{line}\n" for line in lines[:MOST_NAMES])


def _coordinates(model: Model) -> Iterator[str]:
    """Each axis of the states, or the first and the last of a family of axes."""
    families: dict[str, list[int | None]] = {}
    for name, member in model.space.axes.flat:
        families.setdefault(name, []).append(member)
    for name, members in families.items():
        ends = dict.fromkeys((members[0], members[-1]))
        yield " ... ".join(f"x.{name}" if k is None else f"x.{name}[{k}]" for k in ends)


def _coordinate(example: Any) -> str:
    """Name of a coordinate of a system's states."""
    model = _model(example)
    if model is None:
        return "jobs"
    name, member = model.space.axes.flat[0]
    return name if member is None else f"{name}[{member}]"


def _model(example: Any) -> Model | None:
    """Model of an example, where it has one whose states have coordinates."""
    try:
        model = None if example is None else example.model()
    except InputError:
        return None
    return model if isinstance(model, Model) else None


def _caps(example: Any) -> tuple[str, str]:
    """Caps for a system, and what they are."""
    nodes = getattr(example, "nodes", ())
    if nodes:
        return _toml((CAP,) * len(nodes)), "largest number of jobs at each node"
    return _toml((CAP,)), "given to the system's model(caps)"


def _table(
    path: str, cls: type[Any], example: Any, cost_unit: str, *, comments: bool = True
) -> Iterator[str]:
    """Lines of a table: plain values first, as TOML wants it, then the tables inside it."""
    about = _explanations(cls)
    fields = [(field, hints(cls)[field.name]) for field in dataclasses.fields(cls) if field.init]
    yield from ("", f"[{path}]")
    for field, hint in fields:
        if _dataclass_of(hint) is None:
            if comments:
                yield from _comment(about.get(field.name, ""), _limits(hint, cost_unit))
            yield _line(field.name, _value(field, hint, example), hint, example)
    for field, hint in fields:
        nested = _dataclass_of(hint)
        value = _value(field, hint, example)
        if nested is not None and isinstance(value, tuple):
            place = f"[{path.strip('[]')}.{field.name}]"
            for i, one in enumerate(value):
                yield from _table(place, nested, one, cost_unit, comments=comments and i == 0)
        elif nested is not None and not (value is None and field.default is None):
            yield from _table(f"{path}.{field.name}", nested, value, cost_unit, comments=comments)


def _comment(*parts: str) -> list[str]:
    text = "; ".join(filter(None, parts))
    return textwrap.wrap(text, WIDEST, initial_indent="# ", subsequent_indent="#   ")


def _line(name: str, value: Any, hint: Any, example: Any) -> str:
    if value is not None:
        return f"{name} = {_matrix(value)}"
    base = _base(hint)
    if base in (int, float):
        return f"# {name} = {_toml(base(_number(hint, OPTIONAL)))}"
    simplest = _simplest(hint)
    if get_args(base)[-1:] == (Ellipsis,):
        simplest *= _length(example)
    return f"# {name} = {_toml(simplest)}"


def _length(example: Any) -> int:
    """Length of a list of an example, such as one number per class."""
    lists = (value for value in vars(example or object).values() if isinstance(value, tuple))
    return len(next(lists, (None,)))


def _matrix(value: Any) -> str:
    """A value of a field, in a line per row where that is a list of lists too long for one."""
    text = _toml(value)
    if len(text) <= LONG or not (isinstance(value, tuple) and isinstance(value[0], tuple)):
        return text
    rows = "".join(f"    {_toml(row)},\n" for row in value)
    return f"[\n{rows}]"


def _limits(hint: Any, cost_unit: str) -> str:
    unit = unit_of(hint)
    spelt = (unit or "").replace("time", TIME_UNIT).replace("cost", cost_unit)
    return describe(hint) + (f" ({spelt})" if spelt else "")


def _explanations(cls: type[Any]) -> dict[str, str]:
    """First sentence on each parameter in the docstring's section "Parameters" (numpydoc)."""
    text = inspect.getdoc(cls) or ""
    section = re.search(r"^Parameters\n-+\n((?:.+\n?|\n(?=\S+ ?:))*)", text, re.MULTILINE)
    found: dict[str, str] = {}
    for entry in re.finditer(
        r"^(\S.*?) ?:.*\n((?:    .*\n?)+)", section[1] if section else "", re.M
    ):
        sentence = " ".join(entry[2].split()).partition(". ")[0].rstrip(".")
        found.update(dict.fromkeys(entry[1].split(", "), sentence))
    return found


def _value(field: dataclasses.Field[Any], hint: Any, example: Any) -> Any:
    if example is not None:
        return getattr(example, field.name)
    if field.default is not dataclasses.MISSING:
        return field.default
    if field.default_factory is not dataclasses.MISSING:
        return field.default_factory()
    return _simplest(hint)


def _base(hint: Any) -> Any:
    """Annotation without its limits and without "or left out"."""
    if get_origin(hint) is Annotated:
        return _base(get_args(hint)[0])
    if get_origin(hint) in (Union, types.UnionType):
        return _base(next(one for one in get_args(hint) if one is not type(None)))
    return hint


def _known(hint: Any) -> Any:
    """Annotation without "or left out"."""
    options = get_args(hint) if get_origin(hint) in (Union, types.UnionType) else ()
    return next((one for one in options if one is not type(None)), hint)


def _dataclass_of(hint: Any) -> type[Any] | None:
    """Dataclass whose tables a field holds, one or a list of them."""
    if tagged(_known(hint)):  # short enough for a line
        return None
    base = _base(hint)
    if get_origin(base) is tuple:
        base = _base(get_args(base)[0])
    return base if isinstance(base, type) and dataclasses.is_dataclass(base) else None


def _simplest(hint: Any) -> Any:
    """A simple value that an annotation allows; None for a dataclass, whose table follows."""
    base = _base(hint)
    if options := tagged(_known(hint)):
        first = next(iter(options.values()))
        fields = [field for field in dataclasses.fields(first) if field.init]
        return first(
            **{field.name: _value(field, hints(first)[field.name], None) for field in fields}
        )
    if get_origin(base) is Literal:
        return get_args(base)[0]
    if get_origin(base) is tuple:
        return tuple(_simplest(one) for one in get_args(base) if one is not Ellipsis)
    if base in (int, float):
        return base(_number(hint))
    return {bool: True, str: "text"}.get(base)


def _number(hint: Any, first: float = 1.0) -> float:
    """The first choice, if the bounds allow it, else a number at, beside or between them."""
    limits = list(bounds(hint))
    ends = [value for _, value, _ in limits]
    beside = [end + d for end in ends for d in (0, 1, -1)]
    candidates = [first, 1.0, *beside, sum(ends) / max(len(ends), 1)]
    fitting = (c for c in candidates if all(fits(c, value) for _, value, fits in limits))
    return float(next(fitting))


def _toml(value: Any) -> str:
    if dataclasses.is_dataclass(value):
        given = {name: one for name, one in vars(value).items() if one is not None}
        return f"{{ {', '.join(f'{name} = {_toml(one)}' for name, one in given.items())} }}"
    if isinstance(value, (tuple, list)):
        return f"[{', '.join(_toml(one) for one in value)}]"
    return json.dumps(value)
