"""What the parameters of a system may be: declared once, on the annotations of its dataclass.

A system annotates its fields with the types and limits of `annotated_types`, and calls `validate`
when it is constructed; scenario files are checked against the same annotations::

    @dataclass(frozen=True)
    class Node:
        servers: Annotated[int, Ge(1)]
        service_rate: Annotated[float, Gt(0), Unit("1/time")]

        def __post_init__(self) -> None:
            validate(self)

Types: float (always finite), int, str, bool, Literal, tuples, dataclasses, and unions of them.
"""

from __future__ import annotations

import dataclasses
import math
import operator
import types
from collections.abc import Callable, Hashable, Iterator, Mapping
from functools import lru_cache
from numbers import Integral, Real
from types import MappingProxyType
from typing import Annotated, Any, Literal, Union, get_args, get_origin, get_type_hints

import annotated_types as at

from mdpcloud.errors import InputError
from mdpcloud.plugins import did_you_mean

__all__ = [
    "Bound",
    "Mistakes",
    "Tag",
    "bounds",
    "describe",
    "hints",
    "tagged",
    "unit_of",
    "validate",
    "wrong_value",
]

Mistakes = list[str]
Bound = tuple[str, Any, Callable[[Any, Any], Any]]

_BOUNDS: dict[type, tuple[str, str, Callable[[Any, Any], Any]]] = {
    at.Gt: ("gt", ">", operator.gt),
    at.Ge: ("ge", ">=", operator.ge),
    at.Lt: ("lt", "<", operator.lt),
    at.Le: ("le", "<=", operator.le),
}
_NAMES: dict[Any, str] = {
    float: "a finite number",
    int: "an integer",
    str: "a text",
    bool: "true or false",
}


@dataclasses.dataclass(frozen=True)
class Tag:
    """Annotates a union of dataclasses with the field, a Literal, that tells them apart.

    A table of a scenario file has to give that field.

    Examples
    --------
    >>> @dataclasses.dataclass(frozen=True)
    ... class Fixed:
    ...     kind: Literal["fixed"] = "fixed"
    >>> @dataclasses.dataclass(frozen=True)
    ... class Random:
    ...     seed: int
    ...     kind: Literal["random"] = "random"
    >>> describe(Annotated[Fixed | Random, Tag("kind")])
    'a kind: fixed or random (seed)'
    """

    field: str

    def __get_pydantic_core_schema__(self, source: Any, handler: Any) -> Any:
        from pydantic import Field

        return handler.generate_schema(Annotated[source, Field(discriminator=self.field)])


def validate(parameters: Any) -> None:
    """Check every field of a dataclass against its annotation, and store plain Python values.

    Numpy's scalars become numbers of Python, integers given for a float become floats, lists given
    for a tuple become tuples. To be called by ``__post_init__``, also of a frozen dataclass.

    Raises
    ------
    InputError
        If any field is wrong; the message names every mistake with its path and what is allowed.

    Examples
    --------
    >>> from dataclasses import dataclass
    >>> @dataclass(frozen=True)
    ... class Node:
    ...     servers: Annotated[int, at.Ge(1)]
    ...     def __post_init__(self):
    ...         validate(self)
    >>> Node(servers=0)
    Traceback (most recent call last):
    mdpcloud.errors.InputError: Node: servers must be an integer >= 1, not 0
    """
    mistakes: Mistakes = []
    for name, hint, is_right in _tests(type(parameters)):  # type: ignore[arg-type]
        value = getattr(parameters, name)
        if is_right(value):
            continue
        plain = _check(value, hint, name, mistakes)
        if plain is not value:
            object.__setattr__(parameters, name, plain)
    if mistakes:
        raise InputError(f"{type(parameters).__name__}: " + "; ".join(mistakes))


def hints(cls: type[Any]) -> Mapping[str, Any]:
    """Annotation of each field of a dataclass, with its limits."""
    return _hints(cls)  # type: ignore[arg-type]  # mypy takes no class for hashable


@lru_cache(maxsize=1024)  # of the typing module's answers, which take longer than all checks
def _hints(cls: Hashable) -> Mapping[str, Any]:
    assert isinstance(cls, type)
    known = get_type_hints(cls, include_extras=True)
    return MappingProxyType(
        {field.name: known[field.name] for field in dataclasses.fields(cls) if field.init}
    )


def unit_of(hint: Any) -> str | None:
    """Unit of an annotation, such as ``1/time``, if it declares one."""
    _, limits = _split(hint)
    return next((limit.unit for limit in limits if isinstance(limit, at.Unit)), None)


def bounds(hint: Any) -> list[Bound]:
    """Bounds of an annotation: sign, value, and the comparison that a number must pass."""
    _, limits = _split(hint)
    known = [(limit, *_BOUNDS[type(limit)]) for limit in limits if type(limit) in _BOUNDS]
    return [(sign, getattr(limit, name), compare) for limit, name, sign, compare in known]


def tagged(hint: Any) -> dict[str, Any]:
    """Tag of each class of a union annotated with a `Tag`, to the class; else empty."""
    base, limits = _split(hint)
    field = next((limit.field for limit in limits if isinstance(limit, Tag)), None)
    if field is None:
        return {}
    return {get_args(_split(hints(one)[field])[0])[0]: one for one in get_args(base)}


# --- what is allowed, in words --------------------------------------------------------------------


def describe(hint: Any) -> str:
    """What an annotation allows, to follow "must be".

    Examples
    --------
    >>> describe(Annotated[float, at.Gt(0), at.Le(1)])
    'a finite number > 0 and <= 1'
    >>> describe(Annotated[tuple[int, ...], at.MinLen(1)] | None)
    'a list of at least 1, each an integer, or left out'
    """
    base, limits = _split(hint)
    for limit in limits:
        if isinstance(limit, Tag):
            return _describe_tagged(limit.field, tagged(hint))
    words = _describe_type(base)
    signs = [f"{sign} {value:g}" for sign, value, _ in bounds(hint)]
    sizes = [f"of at least {one.min_length}" for one in limits if isinstance(one, at.MinLen)]
    sizes += [f"of at most {one.max_length}" for one in limits if isinstance(one, at.MaxLen)]
    if sizes:
        return words.replace("a list", f"a list {' and '.join(sizes)}", 1)
    return f"{words} {' and '.join(signs)}" if signs else words


def _describe_type(base: Any) -> str:
    origin, arguments = get_origin(base), get_args(base)
    if base in _NAMES:
        return _NAMES[base]
    if origin is Literal:
        return " or ".join(repr(value) for value in arguments)
    if origin in (Union, types.UnionType):
        others = [describe(hint) for hint in arguments if hint is not type(None)]
        return " or ".join(others) + (", or left out" if len(others) < len(arguments) else "")
    if origin is tuple and arguments[-1] is Ellipsis:
        return f"a list, each {describe(arguments[0])}"
    if origin is tuple:
        return f"a list of {len(arguments)}: " + ", ".join(describe(hint) for hint in arguments)
    if isinstance(base, type) and dataclasses.is_dataclass(base):
        return f"{_with_article(base.__name__)} ({', '.join(hints(base))})"
    return _with_article("value" if base is Any else str(getattr(base, "__name__", base)))


def _with_article(noun: str) -> str:
    return f"an {noun}" if noun[:1] in "AEIOUaeiou" else f"a {noun}"


def _describe_tagged(field: str, options: dict[str, Any]) -> str:
    spelt = []
    for tag, cls in options.items():
        others = ", ".join(name for name in hints(cls) if name != field)
        spelt.append(f"{tag} ({others})" if others else tag)
    return f"a {field}: {', '.join(spelt[:-1])} or {spelt[-1]}"


def _split(hint: Any) -> tuple[Any, tuple[Any, ...]]:
    """Plain type and limits of an annotation."""
    try:
        return _split_known(hint)
    except TypeError:  # it cannot be hashed
        return _split_known.__wrapped__(hint)


@lru_cache(maxsize=4096)
def _split_known(hint: Any) -> tuple[Any, tuple[Any, ...]]:
    if get_origin(hint) is not Annotated:
        return hint, ()
    base, *extras = get_args(hint)
    return base, tuple(one for extra in extras for one in _flat(extra))


def _flat(extra: Any) -> Iterator[Any]:
    if isinstance(extra, at.GroupedMetadata):
        for one in extra:
            yield from _flat(one)
    else:
        yield extra


# --- checks ---------------------------------------------------------------------------------------


@lru_cache(maxsize=1024)
def _tests(cls: Hashable) -> tuple[tuple[str, Any, Callable[[Any], bool]], ...]:
    """Name, annotation and quick test of each field of a dataclass."""
    return tuple((name, hint, _test(hint)) for name, hint in _hints(cls).items())


def _test(hint: Any) -> Callable[[Any], bool]:
    """A quick test that a value is right as it is; where it fails, only `_check` can tell."""
    base, limits = _split(hint)
    if any(not isinstance(one, (*_BOUNDS, at.Unit, at.MinLen)) for one in limits):
        return lambda value: False
    is_one = _type_test(base)
    least = max((one.min_length for one in limits if isinstance(one, at.MinLen)), default=None)
    compared = [(fits, bound) for _, bound, fits in bounds(hint)]
    if least is not None:
        return lambda value: is_one(value) and len(value) >= least and not compared
    if not compared:
        return is_one
    if len(compared) == 1:
        fits, bound = compared[0]
        return lambda value: is_one(value) and fits(value, bound)
    return lambda value: is_one(value) and all(fits(value, bound) for fits, bound in compared)


def _type_test(base: Any) -> Callable[[Any], bool]:
    """A quick test that a value is of a plain type."""
    origin, arguments = get_origin(base), get_args(base)
    if base is float:
        return lambda value: type(value) is float and math.isfinite(value)
    if base in (int, str, bool):
        return lambda value: type(value) is base
    if origin is Literal and all(isinstance(one, str) for one in arguments):
        return lambda value: type(value) is str and value in arguments
    if origin in (Union, types.UnionType):
        none = type(None) in arguments
        others = [one for one in arguments if one is not type(None)]
        only = _test(others[0]) if len(others) == 1 else None  # of several the first converts
        return lambda value: (value is None and none) or (only is not None and only(value))
    if origin is tuple and arguments[-1:] == (Ellipsis,):
        each = _test(arguments[0])
        return lambda value: type(value) is tuple and all(map(each, value))
    if isinstance(base, type) and dataclasses.is_dataclass(base):
        return lambda value: isinstance(value, base)
    return lambda value: False


def _check(value: Any, hint: Any, path: str, mistakes: Mistakes) -> Any:
    """Plain form of a value; what is wrong with it is appended to the mistakes."""
    base, _ = _split(hint)
    before = len(mistakes)
    plain = _check_type(value, base, hint, path, mistakes)
    if len(mistakes) == before and not _within(plain, hint):
        mistakes.append(wrong_value(value, hint, path))
    return plain


def _check_type(value: Any, base: Any, hint: Any, path: str, mistakes: Mistakes) -> Any:
    origin = get_origin(base)
    if origin in (Union, types.UnionType):
        return _check_union(value, get_args(base), hint, path, mistakes)
    if origin is tuple and isinstance(value, (tuple, list)):
        return _check_tuple(value, get_args(base), hint, path, mistakes)
    plain = _plain(value, base)
    if plain is _WRONG:
        mistakes.append(wrong_value(value, hint, path))
        return value
    return plain


def _check_union(value: Any, options: Any, hint: Any, path: str, mistakes: Mistakes) -> Any:
    if value is None and type(None) in options:
        return None
    attempts: list[Mistakes] = []
    for option in options:
        attempt: Mistakes = []
        plain = _check(value, option, path, attempt)
        if not attempt:
            return plain
        if option is not type(None):
            attempts.append(attempt)
    mistakes.extend(attempts[0] if len(attempts) == 1 else [wrong_value(value, hint, path)])
    return value


def _check_tuple(value: Any, options: Any, hint: Any, path: str, mistakes: Mistakes) -> Any:
    if options[-1] is Ellipsis:
        options = options[:1] * len(value)
    if len(options) != len(value):
        mistakes.append(wrong_value(value, hint, path))
        return value
    plain = tuple(
        _check(one, option, f"{path}[{i}]", mistakes)
        for i, (one, option) in enumerate(zip(value, options, strict=True))
    )
    same = isinstance(value, tuple) and all(a is b for a, b in zip(plain, value, strict=True))
    return value if same else plain


_WRONG = object()


def _plain(value: Any, base: Any) -> Any:
    """Value as the plain type, `_WRONG` where it is not of that type. No bool is a number."""
    if base is float:
        return _plain_float(value)
    if base is int:
        whole = isinstance(value, Integral) and not isinstance(value, bool)
        return int(value) if whole else _WRONG
    if get_origin(base) is Literal:
        same = [v for v in get_args(base) if v == value and type(v) is type(value)]
        return same[0] if same else _WRONG
    kind = get_origin(base) or base
    if kind is Any:
        return value
    return value if not isinstance(kind, type) or isinstance(value, kind) else _WRONG


def _plain_float(value: Any) -> Any:
    if not isinstance(value, Real) or isinstance(value, bool):
        return _WRONG
    try:
        number = float(value)
    except OverflowError:
        return _WRONG
    return number if math.isfinite(number) else _WRONG


def _within(value: Any, hint: Any) -> bool:
    _, limits = _split(hint)
    lengths = [one.min_length <= len(value) for one in limits if isinstance(one, at.MinLen)]
    lengths += [len(value) <= one.max_length for one in limits if isinstance(one, at.MaxLen)]
    predicates = [one.func(value) for one in limits if isinstance(one, at.Predicate)]
    return all([*lengths, *predicates, *(fits(value, bound) for _, bound, fits in bounds(hint))])


def wrong_value(value: object, hint: Any, path: str) -> str:
    """What is wrong with a value; scenario files use the same words."""
    near = did_you_mean(value, _words(hint)) if isinstance(value, str) else ""
    return f"{path} must be {describe(hint)}, not {value!r}{near}"


def _words(hint: Any) -> list[str]:
    """Texts that an annotation lists as allowed."""
    base, _ = _split(hint)
    if get_origin(base) is Literal:
        return [one for one in get_args(base) if isinstance(one, str)]
    if get_origin(base) in (Union, types.UnionType):
        return [word for option in get_args(base) for word in _words(option)]
    return []
