"""The words of a table: its title, and notes on how exact it is and on what was left out."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from decimal import ROUND_CEILING, Context, Decimal
from typing import TYPE_CHECKING, Any

from mdpcloud.plots.names import pretty
from mdpcloud.study.outputs import Table
from mdpcloud.study.reports.exactness import (
    CAPPED,
    CERTIFIED,
    ESTIMATED,
    GIVEN,
    RELATIVE,
    RESTRICTED,
    SIMULATED,
    UNBOUNDED,
)
from mdpcloud.study.reports.selection import Selected

if TYPE_CHECKING:
    from mdpcloud.study.reports.results import Results

__all__ = ["FRACTIONS", "label_text", "notes_of", "title_of"]

FRACTIONS = ("gap", "gap_lower", "gap_upper", "profit_gap", "profit_gap_lower", "profit_gap_upper")
TITLES = {
    "gap": "Cost above the optimum, in % of the optimum",
    "profit_gap": "Profit below the optimum, in % of the optimal profit",
    "absolute_gap": "Cost above the optimum",
    "difference": "Cost above that of the best policy simulated",
    "cost": "Long-run cost",
}
NOUNS = {
    "gap": "gap",
    "profit_gap": "gap",
    "absolute_gap": "gap",
    "difference": "difference",
    "cost": "cost",
}
EXACTNESS = {
    CERTIFIED: "certified within {}",
    RESTRICTED: "relative to the optimum within caps set by hand, certified within {}",
    CAPPED: "of the optimum within caps set by hand, certified within {}",
    ESTIMATED: "known by an estimate of the error of a cut of the states, within {}",
    SIMULATED: "simulated, with 95 % confidence intervals within {}",
    GIVEN: "known as the task tells, within {}",
    UNBOUNDED: "given by the task without bounds",
}
NAME = re.compile(r"([^\s:]+:)?[a-z][a-z0-9]*(_[a-z0-9]+)*")  # of a policy or setting, or a rule's
_up = Context(prec=1, rounding=ROUND_CEILING)


def label_text(value: Any) -> str:
    """A value of a column for people: names without underscores, other texts as they are.

    Examples
    --------
    >>> label_text(0.30000000000000004), label_text("begin_service"), label_text(True)
    ('0.3', 'begin service', 'yes')
    >>> label_text("A & B_1"), label_text("my_rules.py:fast_first"), label_text("$x_1$")
    ('A & B_1', 'fast first', '$x_1$')
    """
    if isinstance(value, bool):
        return "yes" if value else "no"
    if value is None:
        return "none"
    if isinstance(value, int | float):
        return f"{value:.6g}"
    return pretty(value, 200) if NAME.fullmatch(value) else str(value)


def title_of(table: Table, instances: int) -> str:
    """The caption of a table."""
    if table.caption:
        return table.caption
    words = _plain(table.value)
    title = TITLES.get(table.value, f"{words[:1].upper()}{words[1:]}")
    over = f", over {counted(instances, 'instance')}" if instances else ""
    where = "; ".join(f"{name} {_listed(value)}" for name, value in (table.where or {}).items())
    return f"{title}{over} ({where})" if where else f"{title}{over}"


def counted(number: int, what: str) -> str:
    """A number of things.

    Examples
    --------
    >>> counted(1, "instance"), counted(2, "instance")
    ('1 instance', '2 instances')
    """
    return f"{number} {what}{'' if number == 1 else 's'}"


def _listed(values: Any) -> str:
    several = values if isinstance(values, list | tuple) else [values]
    return " or ".join(map(label_text, several))


# --- notes ----------------------------------------------------------------------------------------


def notes_of(selected: Selected, results: Results, wins: bool) -> list[str]:
    """What a reader of a table has to know, a sentence each.

    Parameters
    ----------
    selected : Selected
    results : Results
    wins : bool
        Whether the table tells them.
    """
    if not selected.entries:
        return [f"nothing to summarise: {_why_nothing(selected, results)}", *_left_out(selected)]
    return [
        *([_about_wins(selected.table)] if wins else []),
        "percentiles and medians are interpolated linearly between instances",
        *_exactness(selected),
        *_several(selected),
        *_lacking(selected),
        *_left_out(selected),
        *_missing(results),
    ]


def _about_wins(table: Table) -> str:
    is_cost = table.value in (*RELATIVE, "cost")
    better = "is better" if is_cost else f"has a {table.better} value"
    return (
        f"wins: instances in which no other {_plain(table.rows)} {better}, as far as the bounds "
        f"of the {'costs' if is_cost else 'values'} tell; ties count for each"
    )


def _why_nothing(selected: Selected, results: Results) -> str:
    value = selected.table.value
    other = results.columns.get("difference", ())
    if value in RELATIVE and any(one is not None for one in other):
        return (
            f"policies were simulated, so there is no optimum and no {_plain(value)}; the column "
            "'difference' tells their costs above that of the best one"
        )
    return f"no row that counts has a number in column {value!r}"


def _exactness(selected: Selected) -> Iterator[str]:
    """How far numbers are from the truth at most, by what is known of them."""
    total = sum(selected.number.values())
    noun = NOUNS.get(selected.table.value, "value")
    for kind, count in selected.number.items():
        verb = "is" if count == 1 else "are"
        every = f"every {noun} is" if count == total else f"{count} of {total} {noun}s {verb}"
        yield f"{every} {EXACTNESS[kind].format(_width(selected, kind))}"


def _width(selected: Selected, kind: str) -> str:
    width = selected.kinds[kind]
    if not math.isfinite(width):
        return "unknown bounds"
    if selected.table.value in FRACTIONS:
        return f"± {_up.multiply(Decimal(width), Decimal(100)):.1g} percentage points"
    return f"± {_up.plus(Decimal(width)):.1g}"


def _several(selected: Selected) -> Iterator[str]:
    if any(
        len({(one.instance, one.of) for one in group}) < len(group)
        for group in selected.entries.values()
    ):
        yield (
            "an instance counts once for each of its rows in the results; `where` can choose one, "
            "such as a policy"
        )


def _lacking(selected: Selected) -> Iterator[str]:
    noun = NOUNS.get(selected.table.value, "value")
    for of, number in selected.lacking.items():
        yield f"{label_text(of)} has no {noun} in {counted(number, 'instance')}"


def _left_out(selected: Selected) -> Iterator[str]:
    if selected.left_out:
        yield (
            f"left out: {counted(selected.left_out, 'instance')} that failed or did not converge; "
            f"the first error is: {selected.errors[0]}"
        )


def _missing(results: Results) -> Iterator[str]:
    missing = results.counts()["missing"]
    if missing:
        yield f"not computed yet: {counted(missing, 'instance')} of the study"


def _plain(name: str) -> str:
    return name.replace("_", " ")
