"""Dotted paths into a scenario."""

import copy
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mdpcloud.errors import InputError
from mdpcloud.study.file.paths import Path, covers, parse_path, put, short_name, show_path

NAMES = st.text(min_size=1, max_size=8) | st.sampled_from(["nodes", "a-b", "0", 'a"b', "a.b", "*"])
PLACES = st.integers(0, 10**6) | st.just(...)
PATHS = st.builds(lambda name, rest: (name, *rest), NAMES, st.lists(NAMES | PLACES, max_size=5))
SCALARS = st.integers() | st.floats(allow_nan=False) | st.text(max_size=3)
DOCUMENTS = st.recursive(
    SCALARS,
    lambda inner: (
        st.lists(inner, min_size=1, max_size=3)
        | st.dictionaries(st.sampled_from("abc"), inner, min_size=1, max_size=3)
    ),
)
TABLES = st.dictionaries(st.sampled_from("abc"), DOCUMENTS, min_size=1, max_size=3)


def places(document: Any, before: Path = ()) -> list[Path]:
    """Every path of a document that leads to something."""
    inner = document.items() if isinstance(document, dict) else enumerate(document)
    found = []
    for step, one in inner:
        path = (*before, step)
        found += [path, *(places(one, path) if isinstance(one, (dict, list)) else [])]
    return found


def get(document: Any, path: Path) -> Any:
    for step in path:
        document = document[step]
    return document


@given(PATHS)
def test_a_path_is_read_as_it_is_shown(path: Path) -> None:
    assert parse_path(show_path(path)) == path


@pytest.mark.parametrize(
    "text",
    ["", ".", "a.", ".a", "a..b", "[0]", "a[", "a[x]", "a[-1]", "a b", "a[0]b", '"a', "a.[0]"],
)
def test_what_is_no_path_is_refused(text: str) -> None:
    with pytest.raises(InputError, match="is no path; it must be names and places"):
        parse_path(text)


@given(TABLES, st.data())
def test_putting_changes_one_place_and_shares_all_others(document: Any, data: Any) -> None:
    before = copy.deepcopy(document)
    path = data.draw(st.sampled_from(places(document)))
    changed = put(document, path, "new")
    assert document == before
    assert get(changed, path) == "new"
    for other in places(document):
        if not covers(path, other) and not covers(other, path):
            assert get(changed, other) is get(document, other)


@given(TABLES, st.data())
def test_what_is_put_back_is_as_before(document: Any, data: Any) -> None:
    path = data.draw(st.sampled_from(places(document)))
    assert put(put(document, path, "new"), path, get(document, path)) == document


@given(st.lists(st.fixed_dictionaries({"a": st.integers()}), min_size=1), st.integers())
def test_a_star_sets_every_item(items: list[Any], value: int) -> None:
    changed = put({"list": items}, ("list", ..., "a"), value)
    one_by_one: Any = {"list": items}
    for k in range(len(items)):
        one_by_one = put(one_by_one, ("list", k, "a"), value)
    assert changed == one_by_one == {"list": [{"a": value}] * len(items)}


def test_tables_on_the_way_are_made() -> None:
    assert put({}, ("solve", "tolerance"), 0.1) == {"solve": {"tolerance": 0.1}}


@pytest.mark.parametrize(
    ("path", "message"),
    [
        ("parameters.nodes[2].servers", "parameters.nodes is a list of 2, so it has no [2]"),
        ("parameters.noeds[0].servers", "no list parameters.noeds; did you mean 'nodes'?"),
        ("parameters.x[0]", "there is no list parameters.x; there are nodes, rate, rooms"),
        ("parameters.rate.x", "parameters.rate is 1.5, no table with 'x'"),
        ("parameters.rate[*]", "parameters.rate is 1.5, no list with [*]"),
        ("parameters.rooms[*]", "parameters.rooms is an empty list, so parameters.rooms[*] is"),
        ("parameters.nodes.servers", "no table with 'servers'"),
    ],
)
def test_a_place_that_is_not_there_is_named(path: str, message: str) -> None:
    document = {"parameters": {"nodes": [{"servers": 1}, {"servers": 2}], "rate": 1.5, "rooms": []}}
    with pytest.raises(InputError) as caught:
        put(document, parse_path(path), 3)
    assert message in str(caught.value)


@given(PATHS, PATHS)
def test_a_path_covers_all_that_begin_with_it(path: Path, more: Path) -> None:
    assert covers(path, path)
    assert covers(path, (*path, *more))
    assert not covers((*path, *more), path)


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("parameters.arrival_rate", "arrival_rate"),
        ("parameters.nodes[10].servers", "nodes[10].servers"),
        ("parameters.nodes[*].servers", "servers"),
        ("parameters.nodes[1]", "nodes[1]"),
        ("parameters.nodes[*]", "nodes"),
        ("parameters.rates[0][1]", "rates[0][1]"),
        ('solve.constraints."a / b"', "a / b"),
    ],
)
def test_the_short_name_tells_which_item(text: str, name: str) -> None:
    assert short_name(parse_path(text)) == name
