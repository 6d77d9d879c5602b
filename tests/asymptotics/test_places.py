"""Parameters of a system and measures, by the names that figures use."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

import mdpcloud as mc
from mdpcloud.asymptotics.places import measure_at, with_value
from mdpcloud.systems import CloudRouting, Node
from mdpcloud.systems.measures import Measures
from tests.asymptotics.shop import Shop

NESTED = Measures(((0.1, 0.2), (0.3, 0.4)), (1.0,), 5.0, errors={"cost": 0.5})


@given(st.floats(0.1, 100.0), st.floats(0.1, 100.0))
def test_only_the_parameter_that_is_named_changes(rate: float, places: float) -> None:
    changed = with_value(with_value(Shop(), "arrival_rates[0]", rate), "places", places)
    assert changed == Shop((rate,), places)


def test_a_whole_number_stays_one() -> None:
    changed = with_value(Shop(), "tables", 3.0)
    assert type(changed.tables) is int
    with pytest.raises(mc.InputError, match=r"tables = 2.5: Shop: tables must be an integer"):
        with_value(Shop(), "tables", 2.5)


@pytest.mark.parametrize(
    ("path", "words"),
    [
        ("plces", "no parameter 'plces'; did you mean 'places'"),
        ("x", "there are arrival_rates, places, tables, scale"),
        ("arrival_rates", r"is a list of 1; name a place, such as arrival_rates\[0\]"),
        ("arrival_rates[1]", "has no place 1: it is a list of 1"),
        ("places[0]", "has no place 0: it is no list"),
        ("places.count", "must be a name, or a name and places"),
    ],
)
def test_a_path_that_leads_nowhere_is_refused(path: str, words: str) -> None:
    with pytest.raises(mc.InputError, match=words):
        with_value(Shop(), path, 1.0)


def test_a_value_that_the_system_refuses_is_named() -> None:
    system = CloudRouting((Node(1, 1.0, 1.0),), 1.0, 1.0)
    with pytest.raises(mc.InputError, match=r"arrival_rate = -1: .* must be a finite number > 0"):
        with_value(system, "arrival_rate", -1.0)


def test_a_measure_comes_with_its_error() -> None:
    assert measure_at(NESTED, "blocking[1][0]") == (0.3, 0.0)
    assert measure_at(NESTED, "cost") == (5.0, 0.5)


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("bloking[0]", r"no measure 'bloking\[0\]'; did you mean 'blocking'"),
        ("delay", "there are blocking"),
        ("downgraded[0]", r"the system has no measure 'downgraded\[0\]'"),
        ("blocking[0]", r"of several classes; name one, such as blocking\[0\]\[0\]"),
        ("blocking[2][0]", "has no place 2"),
    ],
)
def test_a_measure_that_is_not_there_is_refused(name: str, words: str) -> None:
    with pytest.raises(mc.InputError, match=words):
        measure_at(NESTED, name)
