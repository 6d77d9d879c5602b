"""Parameters of several kinds in a scenario, of which a field tells which: laws of durations."""

from pathlib import Path
from typing import Any

import pytest

import mdpcloud as mc
from mdpcloud.laws import Erlang, Exponential, Hyperexponential
from mdpcloud.scenario import new_scenario, read_scenario

SYSTEM = '''
from dataclasses import dataclass
from typing import Annotated

from annotated_types import Ge, MinLen

from mdpcloud.laws import Exponential, Law
from mdpcloud.parameters import validate


@dataclass(frozen=True)
class Pool:
    """A pool.

    Parameters
    ----------
    servers : int
        Number of servers.
    service : Law
        Law of service times. Its mean is told by a rate.
    patience : Law
        Law of patience.
    """

    servers: Annotated[int, Ge(1)]
    service: Law = Exponential()
    patience: Law | None = None

    def __post_init__(self):
        validate(self)


@dataclass(frozen=True)
class Pools:
    """Pools."""

    nodes: Annotated[tuple[Pool, ...], MinLen(1)]
    repair: Law | None = None

    def __post_init__(self):
        validate(self)

    def model(self, caps=None): ...


@dataclass(frozen=True)
class Bare:
    """A law that has to be given."""

    service: Law

    def model(self, caps=None): ...
'''
NAMES = (
    "'exponential' or 'deterministic' or 'erlang' or 'hyperexponential' or 'lognormal' or "
    "'uniform' or 'phase_type'"
)
LAWS = (
    "a law: exponential, deterministic, erlang (phases), hyperexponential (weights, rates, scv), "
    "lognormal (scv), uniform (spread) or phase_type (initial, generator)"
)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "pools.py").write_text(SYSTEM, encoding="utf-8")
    return tmp_path


def read(folder: Path, node: str) -> Any:
    file = folder / "case.toml"
    file.write_text(
        f'format = 1\nsystem = "pools.py:Pools"\n[[parameters.nodes]]\nservers = 1\n{node}',
        encoding="utf-8",
    )
    return read_scenario(file)


def test_a_law_is_a_table_that_begins_with_its_name(folder: Path) -> None:
    found = read(
        folder,
        """
        service = { law = "erlang", phases = 3 }
        patience = { law = "hyperexponential", scv = 2 }
        """,
    )
    assert found.system.nodes[0].service == Erlang(3)
    assert found.system.nodes[0].patience == Hyperexponential(scv=2.0)
    assert found.parameters["nodes"][0]["service"] == {"phases": 3, "law": "erlang"}
    assert read(folder, "").system.nodes[0].service == Exponential()


@pytest.mark.parametrize(
    ("line", "message"),
    [
        (
            'service = { law = "erlan" }',
            f"service.law must be {NAMES}, not 'erlan'; did you mean 'erlang'?",
        ),
        ("service = { law = 3 }", f"service.law must be {NAMES}, not 3"),
        ("patience = { phases = 3 }", f"patience.law is missing; it must be {NAMES}"),
        ('service = "erlang"', f"service must be a table of {LAWS}, not 'erlang'"),
        ("patience = 2", f"patience must be a table of {LAWS}, or left out, not 2"),
        (
            'service = { law = "erlang" }',
            "service.phases is missing; it must be an integer >= 1",
        ),
        (
            'patience = { law = "erlang", phases = 0 }',
            "patience.phases must be an integer >= 1, not 0",
        ),
        (
            'service = { law = "erlang", fases = 2 }',
            "service.fases is not known; did you mean 'phases'?",
        ),
        ('service = { law = "hyperexponential" }', "service: give scv, or weights and rates"),
    ],
)
def test_a_wrong_law_is_one_mistake_with_its_place(folder: Path, line: str, message: str) -> None:
    with pytest.raises(mc.InputError) as caught:
        read(folder, line)
    place = "parameters.nodes[0]."
    assert str(caught.value).endswith(f"case.toml has a mistake:\n  {place}{message}")


def test_a_new_scenario_shows_a_law_on_a_line(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(folder)
    lines = new_scenario("pools.py:Pools").splitlines()
    assert 'service = { law = "exponential" }' in lines
    assert '# patience = { law = "exponential" }' in lines
    assert any(line.startswith("# Law of service times; a law: exponential, ") for line in lines)
    assert max(map(len, lines)) <= 100
    (folder / "new.toml").write_text("\n".join(lines), encoding="utf-8")
    assert read_scenario(folder / "new.toml").system.nodes[0].service == Exponential()
    assert 'service = { law = "exponential" }' in new_scenario("pools.py:Bare")
