"""Every bad input ends `mdpcloud compare FILE` with exit code 2 and words, never a traceback."""

from collections.abc import Callable
from pathlib import Path

import pytest
from typer.testing import CliRunner

from mdpcloud.cli import app

GOOD = """
format = 1
system = "cloud_routing"
[parameters]
arrival_rate = 3.0
outside_cost = 0.4
[[parameters.nodes]]
servers = 1
service_rate = 2.0
abandonment_rate = 0.5
[[parameters.nodes]]
servers = 1
service_rate = 1.0
abandonment_rate = 0.5
[compare]
policies = ["policy_improvement", "own.py:rule"]
"""

RULE = '''
"""Rules of the user's own."""


def rule(x):
    return "node 0" if x.node[0] < 2 else "outside"


def forbidden(x):
    return "node 1"


def unknown(x):
    return "node 7"


def broken(x):
    return x.nodes


table = [1, 2, 3]
'''


@pytest.fixture
def compare(tmp_path: Path) -> Callable[..., tuple[int, str]]:
    """Run the command on a scenario, with replacements; the exit code and what is said."""
    (tmp_path / "own.py").write_text(RULE, encoding="utf-8")

    def run(*changes: tuple[str, str], arguments: tuple[str, ...] = ()) -> tuple[int, str]:
        text = GOOD
        for old, new in changes:
            assert old in text
            text = text.replace(old, new, 1)
        path = tmp_path / "scenario.toml"
        path.write_text(text, encoding="utf-8")
        result = CliRunner().invoke(app, ["compare", str(path), *arguments])
        assert result.exception is None or isinstance(result.exception, SystemExit)
        assert "Traceback" not in result.output
        return result.exit_code, " ".join(result.output.split())

    return run


def test_the_good_file_is_good(compare: Callable[..., tuple[int, str]]) -> None:
    code, said = compare()
    assert code == 0
    assert "0.4596" in said


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("servers = 1", "servers = 0", "parameters.nodes[0].servers"),
        ("servers = 1", "servers = -2", "parameters.nodes[0].servers"),
        ("servers = 1", "servers = 1.5", "must be an integer >= 1"),
        ("servers = 1", "servers = true", "must be an integer >= 1"),
        ("service_rate = 2.0", "service_rate = -2.0", "must be a finite number > 0"),
        ("service_rate = 2.0", "service_rate = nan", "must be a finite number > 0"),
        ("service_rate = 2.0", "service_rate = inf", "must be a finite number > 0"),
        ("service_rate = 2.0", 'service_rate = "2"', "must be a finite number > 0"),
        ("arrival_rate = 3.0", "arrival_rate = 0", "arrival_rate"),
        ("outside_cost = 0.4", "outside_cost = 0", "must be a finite number > 0"),
        ("outside_cost = 0.4", "outside_cost = -1", "must be a finite number > 0"),
        ("outside_cost = 0.4", "outside_costs = 0.4", "did you mean 'outside_cost'"),
        ("arrival_rate = 3.0", "", "arrival_rate"),
        ('"cloud_routing"', '"cloud_ruoting"', "did you mean 'cloud_routing'"),
        ("format = 1", "format = 99", "99"),
        ("[compare]", "[compare", "not"),
        ('"policy_improvement"', '"policy_improvment"', "did you mean 'policy_improvement'"),
        ("own.py:rule", "own.py:rules", "rules"),
        ("own.py:rule", "none.py:rule", "none.py"),
        ("own.py:rule", "own.py:table", "table"),
        ("own.py:rule", "own.py:unknown", "did you mean 'node"),
        ("own.py:rule", "own.py:broken", "nodes"),
        ("[compare]", '[compare]\nties = "fastes"', "did you mean 'fastest'"),
        ("[compare]", "[solve]\ntolerance = 0\n[compare]", "tolerance"),
        ("[compare]", "[solve]\nthreads = 0\n[compare]", "threads"),
        ("[compare]", "[solve]\ncaps = [3]\n[compare]", "caps has 1 numbers for 2 nodes"),
        ("[compare]", "[solve]\ncaps = [3, -1]\n[compare]", "caps"),
        (
            "[compare]",
            "[solve]\ncaps = [999999, 999999]\n[compare]",
            "solve.caps make a lattice of 10^12 states",
        ),
    ],
)
def test_a_mistake_is_named(
    compare: Callable[..., tuple[int, str]], old: str, new: str, message: str
) -> None:
    code, said = compare((old, new))
    assert code == 2, said
    assert message in said


def test_patient_jobs_in_overload_are_refused(compare: Callable[..., tuple[int, str]]) -> None:
    code, said = compare(("abandonment_rate = 0.5", "abandonment_rate = 0"))
    assert code == 2
    assert "nodes[0]: no abandonment_rate, room or holding_cost, and the load is 1;" in said
    assert "no stationary regime" in said


def test_a_dear_outside_is_no_mistake_but_is_said(compare: Callable[..., tuple[int, str]]) -> None:
    code, said = compare(("outside_cost = 0.4", "outside_cost = 1.2"))
    assert code == 0, said
    assert "never refuses" in said
    assert "no finite" in said


def test_a_rule_that_does_what_is_not_allowed_is_told_where(
    compare: Callable[..., tuple[int, str]],
) -> None:
    room = ("service_rate = 1.0", "service_rate = 1.0\nroom = 3")
    code, said = compare(room, ("own.py:rule", "own.py:forbidden"))
    assert code == 2
    assert "'node 1' in state (node=(0, 3)), where it is not allowed" in said


def test_an_empty_list_of_nodes_is_refused(compare: Callable[..., tuple[int, str]]) -> None:
    start = GOOD.index("[[parameters.nodes]]")
    nodes = GOOD[start : GOOD.index("[compare]")]
    code, said = compare((nodes, ""), ("outside_cost = 0.4", "outside_cost = 0.4\nnodes = []"))
    assert code == 2
    assert "at least 1" in said


def test_several_mistakes_are_named_at_once(compare: Callable[..., tuple[int, str]]) -> None:
    code, said = compare(
        ("servers = 1", "servers = 0"), ("outside_cost = 0.4", "outside_cost = -1")
    )
    assert code == 2
    assert "nodes[0].servers" in said
    assert "outside_cost" in said


def test_a_missing_file_and_a_file_that_is_not_toml_are_refused(tmp_path: Path) -> None:
    result = CliRunner().invoke(app, ["compare", str(tmp_path / "none.toml")])
    assert result.exit_code == 2
    assert "none.toml" in result.output
    (tmp_path / "odd.toml").write_bytes(b"\xff\xfe\x00 nothing = = ")
    result = CliRunner().invoke(app, ["compare", str(tmp_path / "odd.toml")])
    assert result.exit_code == 2
    assert "Traceback" not in result.output
