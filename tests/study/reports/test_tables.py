"""Tables of studies: their statistics, their digits, their notes, their languages."""

import math
import re
from collections.abc import Sequence
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import mdpcloud as mc
from mdpcloud.errors import InputError
from mdpcloud.study import Figure, Outputs, Study, Table
from mdpcloud.study.records.record import FAILED, make_record
from mdpcloud.study.reports.markup import Grid, latex, markdown, text
from mdpcloud.study.reports.results import Results
from mdpcloud.study.reports.statistics import HIGH, Bounded, Entry, quantile, winners
from mdpcloud.study.reports.tables import Summary, summary, write_tables
from tests.study.made import NODE, Point, policy, results_of

NUMBERS = st.floats(-1e6, 1e6)
SHARES = st.sampled_from([Fraction(0), Fraction(1, 4), Fraction(1, 2), HIGH, Fraction(1)])


@st.composite
def bounded(draw: st.DrawFn) -> Bounded:
    lower, value, upper = sorted(draw(st.tuples(NUMBERS, NUMBERS, NUMBERS)))
    return Bounded(value, lower, upper)


@st.composite
def sharp(draw: st.DrawFn) -> Bounded:
    size = 10.0 ** draw(st.integers(-12, 6))
    value = draw(st.floats(-1.0, 1.0)) * size
    width = draw(st.floats(0.0, 1.0)) * size * 10.0 ** draw(st.integers(-12, 0))
    return Bounded(value, value - width, value + width)


# --- statistics -----------------------------------------------------------------------------------


@settings(max_examples=50)
@given(st.lists(bounded(), min_size=1, max_size=30), SHARES)
def test_quantiles_are_those_of_numpy(numbers: list[Bounded], q: Fraction) -> None:
    found = quantile(numbers, q)
    for one, ends in zip(found, zip(*numbers, strict=True), strict=True):
        assert one == pytest.approx(float(np.quantile(ends, float(q))), rel=1e-12, abs=1e-9)


@settings(max_examples=50)
@given(st.lists(bounded(), min_size=1, max_size=12), SHARES, st.data())
def test_bounds_of_a_quantile_hold_for_all_that_the_numbers_may_be(
    numbers: list[Bounded], q: Fraction, data: st.DataObject
) -> None:
    truth = [data.draw(st.floats(one.lower, one.upper)) for one in numbers]
    ordered = sorted(map(Fraction, truth))
    place = q * (len(ordered) - 1)
    below, above = ordered[math.floor(place)], ordered[math.ceil(place)]
    exact = below + (place - math.floor(place)) * (above - below)
    found = quantile(numbers, q)
    assert Fraction(found.lower) <= exact <= Fraction(found.upper)


def test_an_unknown_bound_leaves_the_quantiles_beyond_it_unknown() -> None:
    numbers = [Bounded(1.0, -math.inf, math.inf), *(Bounded(x, x, x) for x in (2.0, 3.0, 4.0))]
    assert quantile(numbers, Fraction(1, 2)) == (2.5, 2.5, 3.5)
    assert quantile(numbers, HIGH).upper == math.inf
    assert quantile(numbers, Fraction(0)).lower == -math.inf


ENDS = st.tuples(st.integers(-6, 6), st.integers(0, 2)).map(
    lambda pair: Bounded(pair[0] / 3, (pair[0] - pair[1]) / 3, (pair[0] + pair[1]) / 3)
)
GROUPS = st.lists(st.dictionaries(st.sampled_from("abcd"), ENDS, min_size=1), min_size=1)


@settings(max_examples=50)
@given(GROUPS, st.sampled_from([1, -1]))
def test_a_line_wins_where_no_other_is_certainly_better(
    groups: list[dict[str, Bounded]], sign: int
) -> None:
    entries = [
        Entry(i, of, number, number)
        for i, group in enumerate(groups)
        for of, number in group.items()
    ]
    found = winners(entries, sign)
    if all(len(group) == 1 for group in groups):
        assert found is None
        return
    wins = {of: 0 for group in groups for of in group}
    for group in groups:
        for of, mine in group.items():
            others = [number for name, number in group.items() if name != of]
            if sign > 0:
                beaten = any(Fraction(one.upper) < Fraction(mine.lower) for one in others)
            else:
                beaten = any(Fraction(one.lower) > Fraction(mine.upper) for one in others)
            wins[of] += not beaten
    assert found == wins


GAPS = st.one_of(st.none(), st.floats(0.0, 3.0))
INSTANCES = st.lists(
    st.fixed_dictionaries({"a": GAPS, "b": GAPS, "c": GAPS}), min_size=1, max_size=8
)


@settings(max_examples=40, deadline=None)
@given(INSTANCES)
def test_a_summary_is_what_a_few_lines_of_numpy_say(gaps: list[dict[str, float | None]]) -> None:
    points = [
        Point({"load": i}, [policy("optimum", None), *(policy(p, gap) for p, gap in one.items())])
        for i, one in enumerate(gaps)
    ]
    found = {line.of: line for line in summary(results_of(points)).statistics}
    for name in "abc":
        mine = {i: one[name] for i, one in enumerate(gaps) if one[name] is not None}
        assert (name in found) == bool(mine)
        if not mine:
            continue
        line, values = found[name], np.array([*mine.values()], dtype=float)
        assert line.instances == len(mine)
        assert line.median.value == pytest.approx(np.median(values), rel=1e-12)
        assert line.high.value == pytest.approx(np.quantile(values, 0.95), rel=1e-12)
        assert line.worst.value == values.max()
        if line.worst_in is not None:
            assert mine[line.worst_in] == values.max()
        else:
            assert len(values) > 1
            assert values.min() == values.max()
        best = [
            min(v for v in one.values() if v is not None) for i, one in enumerate(gaps) if i in mine
        ]
        compared = [len([v for v in one.values() if v is not None]) for one in gaps]
        if max(compared) > 1:
            equal = [1.0 + v == 1.0 + b for v, b in zip(values, best, strict=True)]
            assert line.wins == sum(equal)


def test_gaps_are_compared_by_their_costs_which_are_sharper() -> None:
    wide = {"gap_lower": 0.0, "gap_upper": 1.0}
    rows = [policy("a", 0.25, **wide), policy("b", 0.5, **wide)]
    found = summary(results_of([Point({}, rows)])).statistics
    assert [line.wins for line in found] == [1, 0]


def test_the_optimum_is_no_competitor_of_the_policies() -> None:
    first = policy("optimum", None) | {"cost": 1.0, "lower": 1.0, "upper": 1.0}
    points = [Point({}, [first, policy("a", 0.25), policy("b", 0.5)])]
    assert [line.of for line in summary(results_of(points)).statistics] == ["a", "b"]
    costs = summary(results_of(points), Table(value="cost")).statistics
    assert [(line.of, line.wins) for line in costs] == [("optimum", None), ("a", 1), ("b", 0)]


COSTS = st.one_of(st.none(), st.floats(0.0, 3.0))
SIMULATED = st.fixed_dictionaries({"a": COSTS, "b": COSTS, "c": COSTS})


@settings(max_examples=40, deadline=None)
@given(st.floats(0.0, 3.0), SIMULATED)
def test_a_policy_with_a_gap_wins_only_where_none_without_one_is_better(
    gap: float, others: dict[str, float | None]
) -> None:
    rows = [policy("known", gap), *(policy(name, None) | {"cost": None} for name in others)]
    for row, cost in zip(rows[1:], others.values(), strict=True):
        if cost is not None:
            row |= {"cost": 1.0 + cost, "lower": 1.0 + cost, "upper": 1.0 + cost}
    (line,) = summary(results_of([Point({}, rows)])).statistics
    there = [1.0 + cost for cost in others.values() if cost is not None]
    assert line.wins == (int(1.0 + gap <= min(there)) if there else None)


def test_where_larger_values_are_better_the_worst_is_the_smallest() -> None:
    points = [
        Point({"load": i}, [{"policy": "a", "profit": 1.0 * i}, {"policy": "b", "profit": 0.5 * i}])
        for i in range(21)
    ]
    found = summary(results_of(points), Table(value="profit", better="larger"))
    assert [(line.wins, line.worst.value, line.high.value) for line in found.statistics] == [
        (21, 0.0, 1.0),
        (1, 0.0, 0.5),
    ]
    assert "5th" in found.text()
    assert "95th" not in found.text()


# --- which rows count -----------------------------------------------------------------------------

GRID = [
    Point({"load": load, "kind": kind}, [policy("a", load * scale), policy("b", 0.5)])
    for kind, scale in (("small", 1.0), ("large", 2.0))
    for load in (0.1, 0.2, 0.30000000000000004)
]


def test_a_table_is_split_by_axes() -> None:
    found = summary(results_of(GRID), Table(by=("kind",)))
    assert [(line.split, line.of, line.worst.value) for line in found.statistics] == [
        (("small",), "a", 0.30000000000000004),
        (("small",), "b", 0.5),
        (("large",), "a", 0.6000000000000001),
        (("large",), "b", 0.5),
    ]
    assert found.grid.blocks == (2,)
    assert [line[0] for line in found.grid.lines] == ["small", "", "large", ""]


@pytest.mark.parametrize(
    ("where", "instances"),
    [
        ({"kind": "large"}, 3),
        ({"load": [0.1, 0.2]}, 4),
        ({"load": 0.3}, 2),
        ({"load": 0.3, "kind": ["small"]}, 1),
    ],
)
def test_only_rows_as_wanted_count(where: dict[str, Any], instances: int) -> None:
    found = summary(results_of(GRID), Table(where=where)).statistics
    assert [line.instances for line in found] == [instances, instances]


def test_lines_may_be_of_any_column() -> None:
    found = summary(results_of(GRID), Table(rows="load", where={"policy": "a"}))
    assert [line.of for line in found.statistics] == [0.1, 0.2, 0.30000000000000004]
    assert {line.wins for line in found.statistics} == {None}
    assert "wins" not in found.text()
    several = summary(results_of(GRID), Table(rows="load"))
    assert "once for each of its rows" in several.text()


@pytest.mark.parametrize(
    ("table", "told"),
    [
        (Table(value="gapp"), "value: there is no column 'gapp'; did you mean 'gap'"),
        (Table(rows="polcy"), "rows: there is no column 'polcy'; did you mean 'policy'"),
        (Table(by=("lod",)), "by: there is no column 'lod'; did you mean 'load'"),
        (Table(where={"lod": 1.0}), "where: there is no column 'lod'; did you mean 'load'"),
        (Table(where={"kind": "huge"}), "no row has kind = 'huge'; there are 'small', 'large'"),
        (Table(where={"kind": "small", "load": 7}), "no row has load = 7; there are 0.1, 0.2"),
        (Table(value="policy"), "column 'policy' must hold numbers; it holds 'a'"),
    ],
)
def test_mistakes_are_told(table: Table, told: str) -> None:
    with pytest.raises(InputError, match=re.escape(told)):
        summary(results_of(GRID), table)


def test_conditions_that_no_row_meets_at_once_are_told() -> None:
    points = [Point({"load": load}, [policy(name, 0.5)]) for load, name in ((1, "a"), (2, "b"))]
    with pytest.raises(InputError, match="no row has all of"):
        summary(results_of(points), Table(where={"load": 1, "policy": "b"}))


# --- notes ----------------------------------------------------------------------------------------


def notes(found: Summary) -> str:
    return "\n".join(found.grid.notes)


def test_what_was_left_out_is_told() -> None:
    bad = Point({"load": 9.0, "kind": "small"}, status=FAILED, error="no memory")
    absent = Point({"load": 10.0, "kind": "small"}, computed=False)
    told = notes(summary(results_of([*GRID, bad, absent])))
    assert (
        "left out: 1 instance that failed or did not converge; the first error is: no memory"
        in told
    )
    assert "not computed yet: 1 instance of the study" in told
    other = summary(results_of([*GRID, bad, absent]), Table(where={"kind": "large"}))
    assert "left out" not in notes(other)


def test_a_policy_that_some_instances_do_not_have_is_told() -> None:
    points = [*GRID, Point({"load": 1.0, "kind": "small"}, [policy("a", None)])]
    told = notes(summary(results_of(points)))
    assert "a has no gap in 1 instance" in told
    assert "b has no gap in 1 instance" in told


@pytest.mark.parametrize(
    ("more", "told"),
    [
        ({}, "every gap is certified within ± 3e-7 percentage points"),
        ({"status": "estimated"}, "1 of 2 gaps is known by an estimate of the error of a cut"),
        ({"truncation": "estimated"}, "1 of 2 gaps is known by an estimate"),
        ({"truncation": "restricted"}, "1 of 2 gaps is relative to the optimum within caps"),
        ({"status": "simulated"}, "1 of 2 gaps is simulated, with 95 % confidence intervals"),
    ],
)
def test_the_exactness_of_gaps_is_told(more: dict[str, Any], told: str) -> None:
    rows = [policy("a", 0.25, 2.1e-9), policy("b", 0.5, 2.1e-9, **more)]
    assert told in notes(summary(results_of([Point({}, rows)])))


def test_costs_of_optima_within_caps_set_by_hand_are_told_apart() -> None:
    first = policy("optimum", None, truncation="restricted", status="converged")
    first |= {"cost": 1.0, "lower": 1.0, "upper": 1.0}
    results = results_of([Point({}, [first, policy("a", 0.5, truncation="restricted")])])
    told = notes(summary(results, Table(value="cost")))
    assert "1 of 2 costs is of the optimum within caps set by hand" in told
    assert "1 of 2 costs is certified" in told


def test_values_without_bounds_are_told_to_have_none() -> None:
    points = [Point({"load": i}, [{"arm": "one", "violations": i % 3}]) for i in range(9)]
    found = summary(results_of(points), Table(value="violations", rows="arm"))
    assert "every value is given by the task without bounds" in notes(found)
    assert found.grid.lines == (("one", "9", "1", "2", "2", "2: load 2"),)


def test_simulated_comparisons_have_differences_to_summarise() -> None:
    row = policy("a", None, status="simulated", truncation="simulated") | {"cost": 2.0}
    row |= {"difference": 0.5, "difference_lower": 0.25, "difference_upper": 0.75}
    results = results_of([Point({}, [row])])
    found = summary(results)
    assert found.statistics == ()
    assert "'difference'" in notes(found)
    assert "Nothing to summarise" in found.latex()
    differences = summary(results, Table(value="difference"))
    assert differences.statistics[0].worst == (0.5, 0.25, 0.75)
    assert "95 % confidence intervals within ± 0.3" in notes(differences)


def test_the_table_of_no_wish_is_empty_where_a_task_gives_no_gaps() -> None:
    found = summary(results_of([Point({}, [{"violations": 1}])]))
    assert "the task 'compare' gives no gap" in found.text()


def test_a_study_of_which_nothing_is_done_says_so() -> None:
    bad = Point({}, status=FAILED, error="no memory")
    found = summary(results_of([bad]), Table(value="anything"))
    assert "no instance is done; the first error is: no memory" in found.text()
    assert "no instance is done" in summary(results_of([Point({}, computed=False)])).markdown()


# --- cells ----------------------------------------------------------------------------------------


@settings(max_examples=60, deadline=None)
@given(st.lists(st.one_of(bounded(), sharp()), min_size=1, max_size=4), st.booleans())
def test_every_printed_digit_follows_from_the_bounds(numbers: list[Bounded], share: bool) -> None:
    column, scale = ("gap", 100) if share else ("level", 1)
    points = [
        Point({"load": i}, [{"policy": "a", column: v, f"{column}_lower": a, f"{column}_upper": b}])
        for i, (v, a, b) in enumerate(numbers)
    ]
    found = summary(results_of(points), Table(value=column))
    line = found.statistics[0]
    for cell, one in zip(
        found.grid.lines[0][2:5], (line.median, line.high, line.worst), strict=True
    ):
        low, high = (Fraction(end * scale) for end in (one.lower, one.upper))  # as floats
        ends = [Fraction(part) for part in cell.split(" to ")]
        digits, _, power = cell.partition("e")
        unit = Fraction(10) ** (int(power or 0) - len(digits.partition(".")[2])) * (len(ends) == 1)
        assert ends[0] - unit / 2 <= low <= high <= ends[-1] + unit / 2


@settings(max_examples=60, deadline=None)
@given(
    st.lists(st.tuples(st.floats(0.01, 100.0), st.floats(0.001, 0.5)), min_size=1, max_size=4),
    st.sampled_from([("gap", 100), ("cost", 1)]),
)
def test_simulated_numbers_are_told_with_half_of_their_intervals(
    numbers: list[tuple[float, float]], what: tuple[str, int]
) -> None:
    column, scale = what
    points = [
        Point({"load": i}, [policy("a", value, width * value, status="simulated")])
        for i, (value, width) in enumerate(numbers)
    ]
    found = summary(results_of(points), Table(value=column))
    (line,) = found.statistics
    for cell, one in zip(
        found.grid.lines[0][2:5], (line.median, line.high, line.worst), strict=True
    ):
        if "±" not in cell:
            assert one.upper - one.lower <= 1e-4 * abs(one.value)
            continue
        value, half = (float(part) for part in cell.split(" ± "))
        digits = cell.split(" ± ")[1].replace(".", "").strip("0")
        assert len(digits) <= 2
        assert value - half <= scale * one.lower + 1e-8 * half
        assert value + half >= scale * one.upper - 1e-8 * half
        assert half <= 1.2 * scale * (one.upper - one.lower)


def test_names_that_people_could_not_tell_apart_are_spelt_out() -> None:
    rows = [policy(name, 0.5) for name in ("x.py:fast", "y.py:fast", "z.py:slow_one")]
    lines = summary(results_of([Point({}, rows)])).grid.lines
    assert [line[0] for line in lines] == ["x.py:fast", "y.py:fast", "slow one"]


def test_texts_of_the_user_are_printed_as_they_are() -> None:
    points = [Point({"case": "A & B_1: x"}, [policy("my_rules.py:fast_first", 0.5)])]
    (line,) = summary(results_of(points), Table(by=("case",))).grid.lines
    assert line[:2] == ("A & B_1: x", "fast first")


def test_the_note_on_wins_of_other_values_says_which_are_better() -> None:
    rows = [{"policy": name, "level": 1.0} for name in "ab"]
    for better in ("smaller", "larger"):
        found = summary(results_of([Point({}, rows)]), Table(value="level", better=better))
        assert f"no other policy has a {better} value" in notes(found)


def test_instances_are_told_in_latex_as_long_as_they_are_few() -> None:
    places = tuple(f"instance {i}: load {i}" for i in range(9))
    made = latex(Grid("a", "b", ("c",), (("1",),), notes=("why?",), places=places))
    assert "Why? Instance 0: load 0. " in made
    assert "% instance 8: load 8" in made
    assert "Instance 8" not in made


def test_latex_says_which_package_it_needs() -> None:
    assert summary(results_of(GRID)).latex().startswith("% \\usepackage{booktabs}\n")


def test_long_labels_of_the_worst_instances_stand_below() -> None:
    axes = [f"parameter {k}" for k in range(6)]
    points = [Point(dict.fromkeys(axes, float(i)), [policy("a", 0.1 * i)]) for i in range(3)]
    found = summary(results_of(points))
    assert found.grid.lines[0][-1] == "2"
    told = f"instance 2: {', '.join(f'{axis} 2' for axis in axes)}"
    assert found.grid.places == (told,)
    assert f"{told[:1].upper()}{told[1:]}." in found.latex()
    assert told in " ".join(found.text().split())


def test_no_instance_is_the_worst_of_several_that_are_all_the_same() -> None:
    points = [Point({"load": i}, [{"arm": "one", "violation": 0.0}]) for i in range(3)]
    found = summary(results_of(points), Table(value="violation", rows="arm"))
    assert found.grid.lines == (("one", "3", "0", "0", "0", ""),)
    assert found.grid.places == ()


def test_splits_are_ordered_by_number_or_as_they_first_appear() -> None:
    order = [("b", 2), ("a", 10), ("a", 2), ("b", 10)]
    points = [Point({"kind": k, "size": n}, [policy("p", 0.1)]) for k, n in order]
    found = summary(results_of(points), Table(by=("kind", "size")))
    assert [line.split for line in found.statistics] == [("b", 2), ("b", 10), ("a", 2), ("a", 10)]
    assert [line[:2] for line in found.grid.lines] == [
        ("b", "2"),
        ("", "10"),
        ("a", "2"),
        ("", "10"),
    ]


# --- languages ------------------------------------------------------------------------------------

ODD = st.text(st.sampled_from("ab_%&#${}^~\\|<>*`[] \n1.2e-9±"), max_size=8)
COMMANDS = re.compile(
    r"\\(?:[_%&#${}]|textbackslash\{\}|textasciitilde\{\}|textasciicircum\{\}|textless\{\}|"
    r"textgreater\{\}|textbar\{\}|textquotedbl\{\})|\$\\pm\$|\$-\$|\$\d+(?:\.\d+)?\\cdot10\^\{-?\d+\}\$|"
    r"^\{\}|\\phantom\{[.0]*\}"
)


@st.composite
def grids(draw: st.DrawFn) -> Grid:
    width = draw(st.integers(1, 4))
    line = st.lists(ODD, min_size=width, max_size=width).map(tuple)
    heading = tuple(f"{draw(ODD)}{i}" for i in range(width))
    lines = tuple(draw(st.lists(line, min_size=1, max_size=4)))
    return Grid("a_b", draw(ODD), heading, lines, frozenset(heading[1:]), (1,), (draw(ODD),))


@settings(max_examples=40)
@given(grids())
def test_latex_has_as_many_cells_in_each_line_as_columns(grid: Grid) -> None:
    made = latex(grid)
    assert made.isascii() or "±" not in made
    inside = made[made.index(r"\begin{tabular}") : made.index(r"\end{tabular}")]
    begin, *lines = inside.splitlines()
    assert re.fullmatch(rf"\\begin{{tabular}}{{[lr]{{{len(grid.heading)}}}}}", begin)
    cells = [line for line in lines if line.endswith(r" \\")]
    rules = [line for line in lines if not line.endswith(r" \\")]
    assert [rule for rule in rules if rule != r"\addlinespace"] == [
        r"\toprule",
        r"\midrule",
        r"\bottomrule",
    ]
    assert len(cells) - len(grid.lines) in (1, 2)
    for line in cells:
        assert len(line.removesuffix(r" \\").split(" & ")) == len(grid.heading)
        for cell in line.removesuffix(r" \\").split(" & "):
            assert not set(COMMANDS.sub("", cell)) & set("\\_%&#${}^~<>|")


@settings(max_examples=40)
@given(grids())
def test_environments_of_latex_are_nested_and_braces_closed(grid: Grid) -> None:
    made, depth = latex(grid), 0
    stack = []
    for kind, name in re.findall(r"\\(begin|end)\{(\w+)\}", made):
        if kind == "begin":
            stack.append(name)
        else:
            assert stack.pop() == name
    assert stack == []
    for brace in re.findall(r"(?<!\\)[{}]", made.replace("\\\\", "")):
        depth += 1 if brace == "{" else -1
        assert depth >= 0
    assert depth == 0
    assert r"\label{tab:a-b}" in made


@settings(max_examples=40)
@given(grids())
def test_markdown_has_as_many_cells_in_each_line_as_columns(grid: Grid) -> None:
    lines = [line for line in markdown(grid).splitlines() if line.startswith("| ")]
    assert len(lines) == len(grid.lines) + 2
    for line in lines:
        bars = re.findall(r"(?:^|[^\\])(?:\\\\)*\|", re.sub(r"\\[^|]", "", line))
        assert line.count("|") - line.count(r"\|") == len(grid.heading) + 1
        assert bars
    assert lines[1] == f"| {' | '.join(['---', *['---:'] * (len(grid.heading) - 1)])} |"


def points_of(lines: Sequence[str]) -> set[int]:
    return {line.index(".") for line in lines}


def test_numbers_are_aligned_at_their_points() -> None:
    lines = (("one", "1.25"), ("two", "12.5"), ("three", "100"), ("four", "-0.125"))
    grid = Grid("t", "c", ("name", "value"), lines, frozenset({"value"}))
    table = text(grid).splitlines()[4:]
    assert points_of([table[0], table[1], table[3]]) == {table[2].index("100") + 3}
    made = latex(grid)
    assert r"12.5\phantom{00} \\" in made
    assert r"100\phantom{.000} \\" in made
    assert "$-$0.125" in made


def test_cells_are_no_arguments_of_the_line_above_in_latex() -> None:
    made = latex(Grid("t", "c", ("a",), (("[2, 3]",), ("*",))))
    assert "\n{}[2, 3] \\\\\n{}* \\\\\n" in made


def test_numbers_with_powers_of_ten_are_formulas_in_latex() -> None:
    made = latex(Grid("t", "within ± 2e-9 of 100 %", ("a",), (("1.5e+3",),)))
    assert r"\caption{within $\pm$ $2\cdot10^{-9}$ of 100 \%}" in made
    assert r"$1.5\cdot10^{3}$ \\" in made


# --- files, and a real study ----------------------------------------------------------------------


def test_every_table_is_written_in_three_languages(tmp_path: Path) -> None:
    tables = (Table(), Table(name="costs", value="cost", caption="What it costs"))
    results = results_of(GRID, Outputs(tables=tables))
    paths = write_tables(results, tmp_path)
    assert [path.relative_to(tmp_path).as_posix() for path in paths] == [
        f"tables/{name}.{ending}" for name in ("gaps", "costs") for ending in ("txt", "md", "tex")
    ]
    assert paths[3].read_text(encoding="utf-8").startswith("What it costs\n")
    assert paths[1].read_text(encoding="utf-8") == summary(results).markdown()
    assert paths[2].read_text(encoding="utf-8") == summary(results).latex()


def test_a_mistake_in_one_table_does_not_keep_the_others_from_being_written(tmp_path: Path) -> None:
    tables = (Table(name="one", value="gapp"), Table(), Table(name="two", rows="polcy"))
    with pytest.raises(InputError, match=r"'gapp'.*\n.*'polcy'"):
        write_tables(results_of(GRID, Outputs(tables=tables)), tmp_path)
    assert sorted(path.stem for path in (tmp_path / "tables").iterdir()) == ["gaps"] * 3


def test_columns_of_the_task_may_split_a_table() -> None:
    rows = [{"index": i, "property": p, "violation": 0.1} for i in "ab" for p in ("P1", "P2")]
    table = Table(value="violation", rows="index", by=("property",))
    found = summary(results_of([Point({}, rows)]), table)
    assert [(line.split, line.of, line.wins) for line in found.statistics] == [
        (("P1",), "a", 1),
        (("P1",), "b", 1),
        (("P2",), "a", 1),
        (("P2",), "b", 1),
    ]
    assert "once for each" not in notes(found)


@pytest.mark.parametrize("name", ["../gaps", "a/b", ".hidden", "a\nb", "C:gaps"])
@pytest.mark.parametrize("kind", [Table, Figure])
def test_names_of_tables_and_figures_are_names_of_files(kind: Any, name: str) -> None:
    with pytest.raises(InputError, match="it names files"):
        kind(name=name)


def test_no_table_needs_no_folder(tmp_path: Path) -> None:
    assert write_tables(results_of(GRID, Outputs(tables=())), tmp_path) == []
    assert not (tmp_path / "tables").exists()


def test_gaps_of_a_real_study_are_certified() -> None:
    other = mc.systems.Node(servers=2, service_rate=0.8, abandonment_rate=0.5)
    study = Study.of(
        ({"rate": rate}, mc.systems.CloudRouting((NODE, other), rate, outside_cost=0.4))
        for rate in (1.5, 2.5, 3.5)
    )
    records = {
        one.key: make_record(one.content, {}, "done", result=study.task.run(one.scenario))
        for one in study.instances
    }
    found = summary(Results(study, records))
    assert [line.instances for line in found.statistics] == [3, 3, 3, 3]
    assert sum(line.wins or 0 for line in found.statistics) >= 3
    assert all(one.upper - one.lower < 1e-6 for one in (line.worst for line in found.statistics))
    assert "every gap is certified within" in notes(found)
    assert "Bernoulli split" in found.text()
